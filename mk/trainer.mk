# SPDX-License-Identifier: Apache-2.0
#
# trainer.mk: libnojit.a, the trainer, and nojit itself.

LIBRARY := $(B)/libnojit.a
TRAINER_OBJECTS := $(filter-out $(B)/obj/trainer/cli/main.o,$(call objects,trainer/*/*.c))
LINKED := trainer/*/*.c bench/*.c $(addprefix tests/,unit/*.c harness/*.c tools/*.c)
$(call objects,$(LINKED)): INCLUDES := -I. -Iruntime -Ikernels -Itrainer -Itests -Itests/harness -Iruntime/selftest -I$(B)/gen $(OPENMP)
# It is there before the first of them; then those that include it follow it (-MMD).
$(call objects,$(LINKED)): | $(B)/gen/nojit_ops.h
# The bytes of quantized blocks must not depend on the host: with the fused multiply-add that gcc makes of x * y + z where the machine has
# one (aarch64), sums differ from ggml's, and with them some levels. gcc heeds no pragma for it. -O3: loops over a block become vectors.
$(B)/obj/trainer/formats/quantize.o $(B)/obj/trainer/formats/quantize_k.o: INCLUDES += -O3 -ffp-contract=off
$(B)/obj/trainer/formats/tensor_rows.o: INCLUDES += -O3
$(B)/obj/tests/unit/test_quantize.o: INCLUDES += -ffp-contract=off
# Oniguruma, as much of it as UTF-8 takes, in one object.
ONIG_OBJECTS := $(patsubst %,$(B)/obj/onig/%.o,ascii onig_init regcomp regenc regerror regexec regparse regsyntax regtrav regversion st \
	unicode unicode_fold1_key unicode_fold2_key unicode_fold3_key unicode_unfold_key utf8)
ONIG_CONFIG := $(addsuffix =1,$(addprefix HAVE_,STDINT_H INTTYPES_H SYS_TYPES_H SYS_TIME_H UNISTD_H ALLOCA_H)) \
	$(addprefix SIZEOF_,INT=4 LONG=8 LONG_LONG=8 VOIDP=8)
ONIG_MAP = -ffile-prefix-map=$(ONIG_SRC)=oniguruma
$(B)/obj/onig/config.h: mk/trainer.mk
	$(Q)mkdir -p $(@D)
	$(Q)printf '#define %s %s\n' $(subst =, ,$(ONIG_CONFIG)) > $@
# Its matcher counts the retries of a search, not the characters and entries of its stack that it looks at, of which one retry may take any
# number. Here each look is counted, and those at characters fail when none is left (trainer/text/tokenizer_split.c).
ONIG_LOOKS := -e '1i extern __thread long onig_looks_left;' \
	-e 's/^\#define DATA_ENSURE_CHECK1 .*/\#define DATA_ENSURE_CHECK1 (onig_looks_left-- > 0 \&\& s < right_range)/' \
	-e 's/^\#define DATA_ENSURE_CHECK(n) .*/\#define DATA_ENSURE_CHECK(n) (onig_looks_left-- > 0 \&\& (n) <= right_range - s)/' \
	-e 's/^\#define DATA_ENSURE(n) .*/\#define DATA_ENSURE(n) if (onig_looks_left-- <= 0 || right_range - s < (n)) goto fail/' \
	-e 's/^\#define STACK_BASE_CHECK(p, at)$$/\#define STACK_BASE_CHECK(p, at) onig_looks_left--/'
$(B)/obj/onig/regexec.c: $(ONIG_SRC)/regexec.c mk/trainer.mk
	$(Q)mkdir -p $(@D)
	$(Q)sed $(ONIG_LOOKS) $< > $@.tmp
	$(Q)[ "$$(grep -c onig_looks_left $@.tmp)" = 5 ] || { echo "$<: the matcher's macros are not those that are replaced" >&2; exit 1; }
	$(Q)mv $@.tmp $@
$(B)/obj/onig/regexec.o: $(B)/obj/onig/regexec.c $(B)/obj/onig/config.h $(B)/stamp/cflags
	$(if $(V),,@echo "  CC     oniguruma/$(<F)")
	$(Q)$(NJ_CC) $(CFLAGS) -w -I$(@D) -I$(ONIG_SRC) $(ONIG_MAP) -c -o $@ $<
$(B)/obj/onig/%.o: $(ONIG_SRC)/%.c $(B)/obj/onig/config.h $(B)/stamp/cflags
	$(if $(V),,@echo "  CC     oniguruma/$(<F)")
	$(Q)$(NJ_CC) $(CFLAGS) -w -I$(@D) -I$(ONIG_SRC) $(ONIG_MAP) -c -o $@ $<
$(B)/obj/onig.o: $(ONIG_OBJECTS)
	$(Q)$(CC) -r -nostdlib -o $@ $^
TRAINER_OBJECTS += $(B)/obj/onig.o
$(B)/obj/trainer/text/tokenizer_split.o $(B)/obj/trainer/cli/libraries.o: INCLUDES += -isystem $(ONIG_SRC) $(ONIG_MAP)
# The page of `nojit report`, as strings of C. Its policy names style and script by their hashes.
REPORT_PARTS := $(addprefix trainer/report/report.,html css js)
$(B)/gen-page/report_parts.h: $(REPORT_PARTS) mk/trainer.mk
	$(Q)mkdir -p $(@D)
	$(Q)hash() { echo "s,HASH.$$1,sha256-$$(sha256sum trainer/report/report.$$1 | head -c 64 | tr a-f A-F | basenc --base16 -d | base64),"; }; \
		for f in $(REPORT_PARTS); do \
		echo "static const char report_$${f##*.}[] ="; \
		sed -e "$$(hash css)" -e "$$(hash js)" -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' $$f; echo ";"; done > $@
$(B)/obj/trainer/report/report_page.o: $(B)/gen-page/report_parts.h
$(B)/obj/trainer/cli/gpu_code.o: INCLUDES += -Itools
$(B)/obj/trainer/report/report_page.o: INCLUDES += -I$(B)/gen-page
# Linked statically, all but libc and libm: the binary starts on any machine with glibc >= 2.36.
# `nojit version --verbose` and the SBOM name this list (trainer/cli/libraries.c), with libgcc.
STATIC := openblas jansson xxhash yaml gomp utf8proc zstd z onig
LIBS = $(OPENBLAS_DIR)/libopenblas.a $(foreach l,$(filter-out openblas onig,$(STATIC)),$(shell $(CC) -print-file-name=lib$l.a 2>/dev/null)) \
	-lpthread -ldl -lm
$(B)/obj/trainer/cli/libraries.o: INCLUDES += -I$(OPENBLAS_INCLUDE)

$(LIBRARY): $(call objects,runtime/*.c runtime/*/*.c)
	$(archive)

# BLOBS: machine code other than this build's, for a NOJIT or HARNESS of another name (tests/lib/foreign_archs.sh).
BLOBS ?= $(B)/obj/blobs.o
NJ_CODE = $(filter-out %/blobs.o,$(NJ_OBJECTS)) $(BLOBS)
NOJIT ?= $(B)/nojit
$(NOJIT): $(B)/obj/trainer/cli/main.o $(TRAINER_OBJECTS) $(NJ_ORACLES) $(NJ_CODE) $(LIBRARY)
	$(if $(V),,@echo "  LINK   $@")
	$(call program,-static-libgcc $(LIBS))

# The program that ships is checked: every key has machine code for every arch.
$(B)/checked: $(B)/nojit $(CHECKER)
	$(Q)$(CHECKER) $(B)/nojit --quiet
	$(Q)touch $@

$(B)/obj/%.o: %.c $(B)/stamp/cflags
	$(Q)mkdir -p $(@D)
	$(if $(V),,@echo "  CC     $<")
	$(Q)$(NJ_CC) $(CFLAGS) $(COUNTED) $(INCLUDES) -MMD -MP -c -o $@ $<
$(call nj-stamp,$(B)/stamp/cflags,$(call nj-unmapped,$(NJ_CC)) $(CFLAGS) / $(LINK))
$(call nj-stamp,$(B)/stamp/prefix,$(PREFIX))
-include $(wildcard $(B)/obj/*/*.d $(B)/obj/*/*/*.d $(B)/obj/*/*/*/*.d)
