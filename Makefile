# SPDX-License-Identifier: Apache-2.0
# `make help` lists the goals and settings.

# Some shells export the name of the machine as HOST.
ifneq ($(origin HOST),command line)
override HOST :=
endif
# Empty where HOST is the machine that builds, whatever it is called.
CROSS := $(if $(HOST),$(filter-out $(shell uname -m)-linux-gnu,$(HOST)))
B ?= build$(addprefix -,$(CROSS))
ARCHS ?= default
ifeq ($(MAKECMDGOALS):$(origin ARCHS):$(HOST),demo:file:)
ARCHS := $(shell scripts/demo_archs.sh $(B))
endif
ONLY ?=
SAN ?=
PREFIX ?= /usr/local
DESTDIR ?=
# Names in which make or a shell sees more than a name are refused before anything runs.
UNUSABLE := ( ) < > { } [ ] \ & ; | * ? ! ' " ` $$ % \#
$(foreach v,CURDIR B NATIVE CUDA_HOME ONIG_SRC ASSEMBLER PREFIX DESTDIR,\
	$(if $(or $(word 2,x$($v)x),$(strip $(foreach c,$(UNUSABLE),$(findstring $c,$($v))))),\
	$(error $(if $(filter CURDIR,$v),this folder,$v) is '$($v)'; use a folder whose name has no space and none of $(UNUSABLE))))

CFLAGS ?= -O2 -g
V ?=
Q := $(if $(V),,@)
VERSION := $(shell sed -n 's/^.define NOJIT_VERSION "\(.*\)"/\1/p' runtime/nojit.h)

.DEFAULT_GOAL := all
# Every core, unless -j or a make that called this one says how many.
JOBS_GIVEN := $(filter j% -j% --jobs%,$(MAKEFLAGS) $(shell printenv MAKEFLAGS))
MAKEFLAGS += -r --no-print-directory $(if $(filter 0,$(MAKELEVEL)),$(if $(JOBS_GIVEN),,-j$(shell nproc)))
ifeq ($(origin CC),default)
CC := cc
endif
NATIVE_CC := $(CC)
ifneq ($(CROSS),)
# What runs on the machine that builds (gen, pack, blobcheck), and PTX and cubins, which are the same for every host, are those of
# its own build folder. CC goes on to mean that machine's compiler.
NATIVE ?= build
AR := $(CROSS)-ar
override CC := $(CROSS)-gcc $(addprefix -isystem $(B)/host/usr/,include include/$(CROSS)) -B$(B)/host/usr/lib/$(CROSS)
ifneq ($(SAN),)
$(error SAN=$(SAN) is for the machine that builds; leave HOST=$(HOST) out)
endif
ifneq ($(filter-out all dist wheel help clean lint setup $(B)/%,$(MAKECMDGOALS)),)
$(error HOST=$(HOST) goes with 'all', 'dist', 'wheel' and files in $(B); leave HOST out for the others)
endif
else
override NATIVE = $(B)
endif
ifeq ($(origin AR),default)
AR := ar
endif
export CC

WARNINGS := -Wall -Wextra -Wshadow -Wundef -Wvla -Wcast-qual -Wstrict-prototypes -Wmissing-prototypes \
	-Wconversion -Wno-sign-conversion
SANITIZE_address := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SANITIZE_undefined := -fsanitize=undefined -fno-sanitize-recover=undefined
SANITIZE_thread := -fsanitize=thread
SANITIZE_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
ifneq ($(SAN),)
ifeq ($(SANITIZE_$(SAN)),)
$(error SAN=$(SAN) is unknown; use SAN=address, SAN=undefined or SAN=thread)
endif
PLAIN := $(B)
B := $(B)-$(SAN)
endif
# Hardening that costs nothing measurable. glibc checks sizes (FORTIFY) in optimised code alone; sanitizers have checks of their own.
# The assembly of OpenBLAS has no note of CET, so the linker leaves it out of the program; our own objects have it.
MACHINE := $(firstword $(subst -, ,$(or $(CROSS),$(shell uname -m))))
HARDEN_x86_64 := -fcf-protection=full
HARDEN_aarch64 := -mbranch-protection=standard
# Level 3 also checks sizes that are known at run time only: gcc 12 or clang 9, glibc 2.34.
FORTIFY := $(shell $(CC) -E -dM -include features.h -xc /dev/null 2>/dev/null | awk '$$2 == "__GNUC__" { gcc = $$3 } \
	$$2 == "__clang_major__" { clang = $$3 } $$2 == "__GLIBC_MINOR__" { glibc = $$3 } \
	END { print (glibc >= 34 && (clang ? clang >= 9 : gcc >= 12) ? 3 : 2) }')
HARDEN := -fPIE -fstack-protector-strong -fstack-clash-protection $(HARDEN_$(MACHINE)) $(if $(SAN),,$(if \
	$(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS)))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY)))
HARDEN_LINK := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code
# Debug information names no folder of this machine: two build folders give the same bytes. With instrumented code gcc warns of what
# cannot be, so only ordinary builds must be free of warnings.
NJ_CC := $(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) $(if $(SAN),,$(if $(CI),-Werror)) $(SANITIZE_$(SAN)) $(HARDEN) \
	-ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(abspath $(B))=build -ffile-prefix-map=$(B)=build
LINK := $(CC) $(SANITIZE_$(SAN)) $(HARDEN_LINK) $(if $(COVERAGE),--coverage) $(LDFLAGS)
# clang without its own OpenMP takes gcc's header (alone: gcc's others would hide its own) and library, and leaves the pragmas out: the
# code runs in one thread.
OPENMP := -fopenmp$(if $(filter fuzz,$(SAN)),=libgomp -idirafter $(B)/omp -Wno-source-uses-openmp)
$(if $(filter fuzz,$(SAN)),$(eval $(B)/stamp/cflags: $(B)/omp/omp.h))
$(B)/omp/omp.h:
	$(Q)mkdir -p $(@D)
	$(Q)ln -sf $$(gcc -print-file-name=include/omp.h) $@

COMMA := ,
SPACE := $(COMMA) $(COMMA)
SPACE := $(subst $(COMMA),,$(SPACE))
include tools/stamp.mk

# Nothing is installed or written while make reads this: setup.mk is a target, which make makes before it goes on. It is made again
# where it is for other settings (SETUP_FOR; those that name what was found are none), or what it names is gone; until then make
# knows no CUDA and includes nothing else.
ASKED_ASSEMBLER := $(ASSEMBLER)
SETUP_NOW := $(NATIVE_CC) |$(CUDA_HOME)|$(ONIG_SRC)|$(ASKED_ASSEMBLER)|
setup-there = $(and $(wildcard $(CUDA_DIR)/bin/nvcc),$(wildcard $(OPENBLAS_DIR)/*.a),$(wildcard $(ONIG_SRC)/*.c),$(or \
	$(filter toolkit,$(ASSEMBLER)),$(wildcard $(ASSEMBLER)/bin/ptxas)))
setup-other = $(subst |$(filter-out toolkit,$(ASSEMBLER))|,||,$(subst |$(ONIG_SRC)|,||,$(subst |$(CUDA_DIR)|,||,$1)))
SETUP = SETUP='$(filter setup,$(MAKECMDGOALS))' CC='$(NATIVE_CC)' CUDA_HOME='$(CUDA_HOME)' ONIG_SRC='$(ONIG_SRC)' \
	ASSEMBLER='$(ASKED_ASSEMBLER)' SETUP_FOR='$(SETUP_NOW)' scripts/setup.sh $(NATIVE)
SETUP_HOST = SETUP='$(filter setup,$(MAKECMDGOALS))' scripts/setup_host.sh $(CROSS) $(B)
QUIET_GOALS := help clean lint uninstall setup
ifneq ($(if $(MAKECMDGOALS),$(filter-out $(QUIET_GOALS),$(MAKECMDGOALS)),all),)
$(NATIVE)/setup.mk: scripts/setup.sh scripts/apt.sh scripts/ptxas-wheel.txt tools/assembler.sh
	$(Q)$(SETUP)
$(call nj-include,$(NATIVE)/setup.mk)
ifneq ($(if $(setup-there),$(call nj-same,$(call setup-other,$(SETUP_FOR)),$(call setup-other,$(SETUP_NOW)))),same)
$(if $(NJ_DRY),$(error $(NATIVE) is not set up, so make -n cannot know what follows; run 'make setup' first))
$(NATIVE)/setup.mk: nj-force
CUDA_DIR :=
else ifneq ($(CROSS),)
$(B)/setup.mk: scripts/setup_host.sh scripts/apt.sh
	$(Q)$(SETUP_HOST)
$(call nj-include,$(B)/setup.mk)
endif
export ONIG_SRC ASSEMBLER
endif

# ---- programs that build the rest ----
objects = $(sort $(patsubst %.c,$(B)/obj/%.o,$(wildcard $1)))
GEN := $(NATIVE)/gen-bin/gen
PACK := $(NATIVE)/pack-bin/pack
PACK_SHADERS := $(NATIVE)/pack-bin/pack-shaders
CHECKER := $(NATIVE)/blobcheck
BLOBCHECK := $(B)/blobcheck
CONTRACTCHECK := $(B)/contractcheck
TOOL_SHARED := $(call objects,tools/image/*.c $(addprefix tools/pack/,codecheck.c keyfile.c shadercheck.c))
GEN_OBJECTS := $(call objects,gen/*.c)

OPENBLAS_INCLUDE := $(subst /usr/lib/,/usr/include/,$(OPENBLAS_DIR))
$(call objects,gen/*.c): INCLUDES := -I. -Iruntime -Ikernels
$(call objects,tools/*/*.c): INCLUDES := -I. -Iruntime -Itools
$(B)/obj/tools/check/contractcheck.o: INCLUDES += -Igen
$(call objects,runtime/*.c runtime/*/*.c): INCLUDES := -I. -Iruntime -Iruntime/selftest -Ikernels $(OPENMP) -I$(OPENBLAS_INCLUDE)

# scripts/coverage.sh sets COVERAGE, in a build folder of its own.
$(call objects,$(addsuffix /*.c,gen tools/* trainer/* runtime runtime/*)): COUNTED := $(if $(COVERAGE),--coverage)

ifeq ($(CROSS),)
$(GEN): $(GEN_OBJECTS)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ -lyaml
$(PACK): $(B)/obj/tools/pack/pack.o $(TOOL_SHARED)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ -lzstd
$(PACK_SHADERS): $(call objects,$(addprefix tools/,pack/pack_shaders.c pack/keyfile.c pack/shadercheck.c image/fileio.c image/problems.c image/spirv.c))
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^
else
$(GEN) $(PACK) $(PACK_SHADERS) $(CHECKER): native-programs ;
native-programs:
	$(Q)$(MAKE) -s HOST= B=$(NATIVE) CC='$(NATIVE_CC)' CUDA_HOME=$(CUDA_DIR) $(GEN) $(PACK) $(PACK_SHADERS) $(CHECKER)
.PHONY: native-programs
endif
$(BLOBCHECK): $(call objects,$(addprefix tools/check/,blobcheck.c blobindex.c blobprint.c blobshaders.c gguf_keys.c modelkeys.c)) $(TOOL_SHARED)
	$(Q)$(LINK) -o $@ $^ -lzstd -ljansson

$(CONTRACTCHECK): $(call objects,tools/check/contractcheck.c tools/image/fileio.c tools/image/problems.c gen/falsifier.c gen/util.c gen/yaml.c)
	$(Q)$(LINK) -o $@ $^ -lyaml

## setup: install the packages that the build needs (by apt, with sudo) and the CUDA compiler; the other goals ask root alone
setup:
	$(Q)$(SETUP)
	$(if $(CROSS),$(Q)$(SETUP_HOST))
## all: the binary for all archs, checked by blobcheck (default)
all: $(B)/checked $(GEN) $(PACK) $(PACK_SHADERS) ; @:

# ---- kernels ----
# The programs above need none, so that making them in NATIVE leaves its kernels as they are.
ifneq ($(and $(CUDA_DIR),$(filter-out setup $(GEN) $(PACK) $(PACK_SHADERS) $(CHECKER),$(or $(MAKECMDGOALS),all))),)
NJ_BUILD := $(B)
NJ_SHARED := $(NATIVE)
NJ_CONTRACTS := contracts/kernels
NJ_KERNELS := kernels
NJ_INCLUDE := . runtime runtime/selftest
NJ_GEN := $(GEN)
NJ_PACK := $(PACK)
NJ_PACK_SHADERS := $(PACK_SHADERS)
NJ_BLOBS_S := runtime/blobs.S
NJ_ARCHS_YAML := contracts/archs.yaml
NJ_REF_CFLAGS = -O3 -fno-trapping-math $(OPENMP) -I$(OPENBLAS_INCLUDE)
include tools/nojit.mk
endif

# ---- library and trainer ----
LIBRARY := $(B)/libnojit.a
TRAINER_OBJECTS := $(filter-out $(B)/obj/trainer/cli/main.o,$(call objects,trainer/*/*.c))
LINKED := trainer/*/*.c bench/*.c $(addprefix tests/,unit/*.c harness/*.c tools/*.c)
$(call objects,$(LINKED)): INCLUDES := -I. -Iruntime -Ikernels -Itrainer -Itests -Itests/harness -Iruntime/selftest -I$(B)/gen $(OPENMP)
$(call objects,$(LINKED)): $(B)/gen/nojit_ops.h
# The bytes of quantised blocks must not depend on the host: with the fused multiply-add that gcc makes of x * y + z where the machine has
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
$(B)/obj/onig/config.h: Makefile
	$(Q)mkdir -p $(@D)
	$(Q)printf '#define %s %s\n' $(subst =, ,$(ONIG_CONFIG)) > $@
# Its matcher counts the retries of a search, not the characters and entries of its stack that it looks at, of which one retry may take any
# number. Here each look is counted, and those at characters fail when none is left (trainer/text/tokenizer_split.c).
ONIG_LOOKS := -e '1i extern __thread long onig_looks_left;' \
	-e 's/^\#define DATA_ENSURE_CHECK1 .*/\#define DATA_ENSURE_CHECK1 (onig_looks_left-- > 0 \&\& s < right_range)/' \
	-e 's/^\#define DATA_ENSURE_CHECK(n) .*/\#define DATA_ENSURE_CHECK(n) (onig_looks_left-- > 0 \&\& (n) <= right_range - s)/' \
	-e 's/^\#define DATA_ENSURE(n) .*/\#define DATA_ENSURE(n) if (onig_looks_left-- <= 0 || right_range - s < (n)) goto fail/' \
	-e 's/^\#define STACK_BASE_CHECK(p, at)$$/\#define STACK_BASE_CHECK(p, at) onig_looks_left--/'
$(B)/obj/onig/regexec.c: $(ONIG_SRC)/regexec.c Makefile
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
$(B)/gen-page/report_parts.h: $(REPORT_PARTS) Makefile
	$(Q)mkdir -p $(@D)
	$(Q)hash() { echo "s,HASH.$$1,sha256-$$(sha256sum trainer/report/report.$$1 | head -c 64 | tr a-f A-F | basenc --base16 -d | base64),"; }; \
		for f in $(REPORT_PARTS); do \
		echo "static const char report_$${f##*.}[] ="; \
		sed -e "$$(hash css)" -e "$$(hash js)" -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' $$f; echo ";"; done > $@
$(B)/obj/trainer/report/report_page.o: $(B)/gen-page/report_parts.h
$(B)/obj/trainer/cli/gpu_code.o: INCLUDES += -Itools
$(B)/obj/trainer/report/report_page.o: INCLUDES += -I$(B)/gen-page
# Linked statically, all but libc and libm: the binary starts on any machine with glibc >= 2.36.
# What `nojit version --verbose` and the SBOM name (trainer/cli/libraries.c) is this list, with libgcc.
STATIC := openblas jansson xxhash yaml gomp utf8proc zstd z onig
LIBS = $(OPENBLAS_DIR)/libopenblas.a $(foreach l,$(filter-out openblas onig,$(STATIC)),$(shell $(CC) -print-file-name=lib$l.a 2>/dev/null)) \
	-lpthread -ldl -lm
$(B)/obj/trainer/cli/libraries.o: INCLUDES += -I$(OPENBLAS_INCLUDE)

$(LIBRARY): $(call objects,runtime/*.c runtime/*/*.c)
	$(Q)rm -f $@
	$(Q)$(AR) rcsD $@ $^

# BLOBS: machine code other than this build's, for a NOJIT or HARNESS of another name (tests/lib/foreign_archs.sh).
BLOBS ?= $(B)/obj/blobs.o
NJ_CODE = $(filter-out %/blobs.o,$(NJ_OBJECTS)) $(BLOBS)
NOJIT ?= $(B)/nojit
$(NOJIT): $(B)/obj/trainer/cli/main.o $(TRAINER_OBJECTS) $(NJ_ORACLES) $(NJ_CODE) $(LIBRARY)
	$(if $(V),,@echo "  LINK   $@")
	$(Q)$(LINK) -static-libgcc -o $@ $^ $(LIBS)

# What ships is checked: every key has machine code for every arch.
$(B)/checked: $(B)/nojit $(CHECKER)
	$(Q)$(CHECKER) $(B)/nojit --quiet
	$(Q)touch $@

$(B)/obj/%.o: %.c $(B)/stamp/cflags
	$(Q)mkdir -p $(@D)
	$(if $(V),,@echo "  CC     $<")
	$(Q)$(NJ_CC) $(CFLAGS) $(COUNTED) $(INCLUDES) -MMD -MP -c -o $@ $<
$(call nj-stamp,$(B)/stamp/cflags,$(call nj-unmapped,$(NJ_CC)) $(CFLAGS) / $(LINK))
$(call nj-stamp,$(B)/stamp/prefix,$(PREFIX))
-include $(wildcard $(B)/obj/*/*.d $(B)/obj/*/*/*.d)

# ---- tests ----
MUTANTS ?= *
SINCE ?=
DEVICE ?= cpu
HARNESS ?= $(B)/harness
TEST_PROGRAMS := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
$(HARNESS): $(call objects,tests/harness/*.c) $(NJ_ORACLES) $(NJ_CODE) $(LIBRARY)
	$(Q)$(LINK) -static-libgcc -o $@ $^ $(LIBS)
include tests/simgpu/simgpu.mk

# Most unit tests are one program under many names (tests/unit/unit_tests.c). Those that put functions of their own in the place of libc's
# or the kernel table's, or must not hold all of it, are programs of their own.
UNIT_ALONE := $(addprefix test_,gemm_table nccl no_memory no_memory_tools out runtime sim_kernels tools_growth)
UNIT_JOINED := $(filter-out $(UNIT_ALONE),$(notdir $(TEST_PROGRAMS)))
UNIT_TESTS := $(B)/unit-tests
$(call nj-stamp,$(B)/stamp/unit-tests,$(UNIT_JOINED))
$(B)/gen-tests/unit_tests.h: $(B)/stamp/unit-tests
	$(Q)mkdir -p $(@D)
	$(Q)printf 'UNIT_TEST(%s)\n' $$(cat $<) > $@
$(B)/obj/tests/unit/unit_tests.o: $(B)/gen-tests/unit_tests.h
$(B)/obj/tests/unit/unit_tests.o: INCLUDES := -I. -I$(B)/gen-tests
$(foreach t,$(UNIT_JOINED),$(eval $(B)/obj/tests/unit/$t.o: INCLUDES += -Dmain=$t_main -Wno-missing-prototypes))
# Their objects are others where a test joins or leaves.
$(call nj-stamp,$(B)/stamp/unit-alone,$(UNIT_ALONE))
$(call objects,tests/unit/test_*.c): $(B)/stamp/unit-alone
$(UNIT_TESTS): $(call objects,$(addprefix tests/unit/,unit_tests.c filter.c sim_forms.c sim_forms_sm90.c)) $(UNIT_JOINED:%=$(B)/obj/tests/unit/%.o) \
		$(TRAINER_OBJECTS) $(NJ_ORACLES) $(NJ_CODE) $(LIBRARY) $(SIM_MACHINE)
	$(if $(V),,@echo "  LINK   $@")
	$(Q)$(LINK) -o $@ $^ $(LIBS) -lcmocka
# A hard link, so that a test which starts itself anew keeps its name.
$(UNIT_JOINED:%=$(B)/tests/%): $(UNIT_TESTS)
	$(Q)mkdir -p $(@D)
	$(Q)ln -f $< $@
$(B)/tests/%: $(B)/obj/tests/unit/%.o $(B)/obj/tests/unit/filter.o $(TRAINER_OBJECTS) $(NJ_ORACLES) $(NJ_CODE) $(LIBRARY)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ $(LIBS) -lcmocka

KBENCH := $(B)/kbench
KBENCH_OBJECTS := $(call objects,bench/kbench*.c)
$(KBENCH): $(KBENCH_OBJECTS) $(NJ_ORACLES) $(NJ_CODE) $(LIBRARY)
	$(Q)$(LINK) -static-libgcc -o $@ $^ $(LIBS)
# For kernels of other projects, which link them with references of their own.
$(B)/libharness.a: $(call objects,tests/harness/*.c)
$(B)/libkbench.a: $(KBENCH_OBJECTS)
$(B)/libharness.a $(B)/libkbench.a:
	$(Q)rm -f $@
	$(Q)$(AR) rcsD $@ $^

# What the decoder predicts, beside a forward pass.
DECODE_KL := $(B)/decode_kl
$(DECODE_KL): $(call objects,bench/decode_kl.c) $(B)/libtrainer.a $(NJ_CODE) $(LIBRARY)
	$(Q)$(LINK) -static-libgcc -o $@ $^ $(LIBS)

# Brings its own kernel table.
$(B)/tests/test_runtime: $(B)/obj/tests/unit/test_runtime.o $(B)/obj/tests/unit/filter.o $(LIBRARY)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ $(LIBS) -lcmocka
# Of tools, whose sentences come from a function of the trainer's name.
$(B)/tests/test_no_memory_tools: $(call objects,tests/unit/test_no_memory_tools.c tests/unit/filter.c tools/check/gguf_keys.c tools/check/modelkeys.c) $(TOOL_SHARED)
$(B)/tests/test_tools_growth: $(call objects,tests/unit/test_tools_growth.c tests/unit/filter.c tools/check/blobindex.c) $(TOOL_SHARED)
$(B)/tests/test_no_memory_tools $(B)/tests/test_tools_growth:
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ $(LIBS) -lzstd -lcmocka
$(B)/obj/tests/unit/test_no_memory_tools.o $(B)/obj/tests/unit/test_tools_growth.o: INCLUDES += -Itools
# Refuses allocations: its own and those of the static libraries, but not OpenMP's, which would end the program.
$(B)/tests/test_no_memory $(B)/tests/test_no_memory_tools: LIBS := $(filter-out %/libgomp.a,$(LIBS)) -lgomp \
	$(addprefix -Wl$(COMMA)--wrap=,malloc calloc realloc aligned_alloc posix_memalign strdup strndup getline getdelim __getdelim free)
$(B)/obj/tests/unit/test_cuda_abi.o: INCLUDES += $(if $(CUDA_DIR),-isystem $(CUDA_DIR)/include)

# Parsers against damaged input: a target for each, with the objects that it is linked with. Replayed over tests/fuzz/corpus by
# the tests; grown by libFuzzer in `make fuzz`.
FUZZ_SECONDS ?= 30
FUZZ_trainer := added answers apr chat config encode generation gguf gguf_model gguf_tokenizer gpu_code greeting json jsonl \
	messages metrics node_list options parquet prompts quantised safetensors shards tasks template tokenizer tokens vocab_files
FUZZ_runtime := gemm_table index
FUZZ_tools := elf fatbin gguf_keys keys spirv
FUZZ_gen := contract
FUZZ_engine := plan state
FUZZ_TARGETS := $(FUZZ_trainer) $(FUZZ_runtime) $(FUZZ_tools) $(FUZZ_gen) $(FUZZ_engine)
FUZZ_PROGRAMS := $(FUZZ_TARGETS:%=$(B)/fuzz/%)
FUZZ_COMMON := $(call objects,tests/fuzz/fuzz.c $(if $(filter fuzz,$(SAN)),,tests/fuzz/replay.c))
fuzz-programs = $(addprefix $(B)/fuzz/,$(FUZZ_$1)): $(B)/fuzz/%: $(B)/obj/tests/fuzz/fuzz_%.o $(FUZZ_COMMON)
$(call fuzz-programs,trainer) $(call objects,tests/fuzz/no_kernels.c) $(B)/libtrainer.a $(LIBRARY)
$(call fuzz-programs,runtime) $(call objects,tests/fuzz/no_kernels.c) $(LIBRARY)
$(call fuzz-programs,tools) $(call objects,tools/check/blobindex.c tools/check/gguf_keys.c) $(TOOL_SHARED)
$(call fuzz-programs,gen) $(filter-out %/main.o,$(GEN_OBJECTS))
$(call fuzz-programs,engine) $(B)/libtrainer.a $(NJ_CODE) $(LIBRARY)
$(FUZZ_PROGRAMS):
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) $(if $(filter fuzz,$(SAN)),-fsanitize=fuzzer) -o $@ $^ $(LIBS) -lzstd
$(B)/libtrainer.a: $(TRAINER_OBJECTS)
	$(Q)rm -f $@
	$(Q)$(AR) rcsD $@ $^
$(call objects,tests/fuzz/*.c): INCLUDES := -I. -Iruntime -Itrainer -Ikernels
$(FUZZ_tools:%=$(B)/obj/tests/fuzz/fuzz_%.o): INCLUDES := -I. -Iruntime -Itools
$(FUZZ_gen:%=$(B)/obj/tests/fuzz/fuzz_%.o): INCLUDES := -I. -Igen -Ikernels
$(FUZZ_engine:%=$(B)/obj/tests/fuzz/fuzz_%.o): INCLUDES += -I. -I$(B)/gen
$(FUZZ_engine:%=$(B)/obj/tests/fuzz/fuzz_%.o): $(B)/gen/nojit_ops.h
## fuzz: every parser under libFuzzer, FUZZ_SECONDS (30) each; needs clang
fuzz: $(BLOBS)
	$(Q)$(MAKE) SAN=fuzz CC=clang CUDA_HOME=$(CUDA_DIR) BLOBS=$(abspath $(BLOBS)) CFLAGS="-O1 -g" fuzz-run
fuzz-run: $(FUZZ_PROGRAMS)
	$(Q)BUILD=$(B) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run.sh $(FUZZ_TARGETS)

# Plants faults that blobcheck must name.
DAMAGE := $(B)/damage
$(DAMAGE): $(call objects,tests/tools/damage*.c $(addprefix tools/,image/elfbin.c image/fileio.c image/problems.c))
	$(Q)$(LINK) -o $@ $^
$(call objects,tests/tools/damage*.c): INCLUDES += -Itools

# Makes a GGUF file of a model.
GGUF_OF := $(B)/gguf-of
$(GGUF_OF): $(call objects,tests/tools/gguf_of.c tests/fuzz/no_kernels.c) $(B)/libtrainer.a $(LIBRARY)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

# And an APR file.
APR_OF := $(B)/apr-of
$(APR_OF): $(call objects,tests/tools/apr_of.c tests/fuzz/no_kernels.c) $(B)/libtrainer.a $(LIBRARY)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

# What a GGUF file's model says to a text.
LOGITS_OF := $(B)/logits-of
$(LOGITS_OF): $(call objects,tests/tools/logits_of.c) $(B)/libtrainer.a $(NJ_CODE) $(LIBRARY)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

# Loaded before nojit, disturbs it at a system call.
INTERRUPT := $(B)/interrupt.so
$(INTERRUPT): tests/tools/interrupt.c $(B)/stamp/cflags
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) -O2 -g -fPIC -shared -o $@ $<

# Vulkan's loader, which disturbs its calls.
VKFAULT := $(B)/vkfault/libvulkan.so.1
$(VKFAULT): tests/vkfault/vkfault.c $(B)/stamp/cflags
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) -O2 -g -fPIC -fvisibility=hidden -shared -Wl,-soname,libvkfault.so \
		-DREAL_LOADER='"/usr/lib/$(MACHINE)-linux-gnu/libvulkan.so.1"' -o $@ $< -ldl

TESTED := $(SIM_ALL) $(VKFAULT) $(INTERRUPT) $(GGUF_OF) $(APR_OF) $(LOGITS_OF) $(HARNESS) $(KBENCH) $(DECODE_KL) $(TEST_PROGRAMS) $(DAMAGE) $(FUZZ_PROGRAMS) $(CONTRACTCHECK)
programs: $(B)/checked $(GEN) $(PACK) $(PACK_SHADERS) $(TESTED) ; @:

## test: set-up and the tests of every part; they need no GPU (simulated ones serve)
test: programs
	$(Q)BUILD=$(B) tests/run.sh test
## test-all: every test, sanitizers, clang-tidy and a second of each fuzz target; nightly, and before a release
test-all: programs
	$(Q)BUILD=$(B) tests/run.sh all
	$(Q)$(MAKE) tidy
	$(Q)$(MAKE) sanitize
	$(Q)$(MAKE) fuzz FUZZ_SECONDS=1
	$(Q)BUILD=$(B) tests/record.sh
## test-changed: the tests of what changed since a commit (SINCE=HEAD)
test-changed: programs
	$(Q)BUILD=$(B) tests/run.sh changed $(SINCE)
## test-long: in full what test-all does in part, without a GPU too: every kernel and PyTorch's numbers on each simulated GPU, every call failing in turn
test-long: programs
	$(Q)BUILD=$(B) tests/run.sh long
## check: the quick tests, a minute; before every commit
check: $(B)/nojit $(BLOBCHECK) $(TESTED)
	$(Q)BUILD=$(B) tests/run.sh quick
## mutants: plants every fault that a contract names; the test must fail (MUTANTS='F-KD-HEAD-*', JOBS=2, DEVICE=cuda)
mutants: all $(TESTED)
	$(Q)BUILD=$(B) DEVICE=$(DEVICE) tests/mutants.sh '$(MUTANTS)'
## gpu-mutants: those that need a GPU, ready to run where there is no compiler (tests/gpumutants.sh run build/gpu-mutants.tar.xz)
gpu-mutants: all $(CONTRACTCHECK) $(B)/cupti_modules.so
	$(Q)BUILD=$(B) MUTANTS='$(MUTANTS)' tests/gpumutants.sh prepare $(B)/gpu-mutants
## coverage: lines of C that the tests without a GPU run, by file; under 90 % of all fails
coverage: all
	$(Q)scripts/coverage.sh $(B)
## sanitize: the unit tests and the corpus of damaged files under ASan with UBSan, those with threads under TSan (SANITIZERS=address: the first alone)
SANITIZERS ?= address thread
sanitize: $(BLOBS)
	$(Q)for s in $(SANITIZERS); do \
		$(MAKE) SAN=$$s CUDA_HOME=$(CUDA_DIR) BLOBS=$(abspath $(BLOBS)) CFLAGS="-O1 -g" sanitized || exit 1; done
# nproc, which run.sh asks, follows OMP_NUM_THREADS.
sanitized: $(TEST_PROGRAMS) $(if $(filter thread,$(SAN)),,$(FUZZ_PROGRAMS))
	$(Q)BUILD=$(B) JOBS=$${JOBS:-$(shell nproc)} $(if $(filter thread,$(SAN)),OMP_NUM_THREADS=1 OMP_THREAD_LIMIT=1) \
		tests/run.sh $(if $(filter thread,$(SAN)),threads,units)
## check-gpu: every kernel against its reference, and the trainer, on a GPU
check-gpu: all $(HARNESS) $(addprefix $(B)/tests/test_,device f8 gemm_algorithms gemm_table golden activation attn_decode) $(B)/cupti_modules.so
	$(Q)BUILD=$(B) tests/gpu.sh
# Optional: without CUPTI's headers what they measure is reported as missing.
$(B)/cupti_modules.so: tests/tools/cupti_modules.c
$(B)/cupti_kernels.so: bench/cupti_kernels.c bench/kernel_steps.h
$(B)/cupti_%.so:
	$(Q)$(CC) -shared -fPIC -O2 -I$(CUDA_DIR)/include -o $@ $< -L$(CUDA_DIR)/lib64 -L$(CUDA_DIR)/lib \
		-l:libcupti.so.13 || echo "no CUPTI here: $@ is left out" >&2
## bench-gpu: speed and memory on a GPU beside its roofs and, with TORCH=COMMAND, PyTorch; a table and JSON (bench/gpu.sh --help)
bench-gpu: all $(KBENCH) $(B)/cupti_kernels.so
	$(Q)BUILD=$(B) bench/gpu.sh
## check-ptxas: every kernel by other releases of ptxas (PTXAS='13.3.73 FILE'), beside that of the build (scripts/check_ptxas.sh --help)
PTXAS ?= 13.1.115 13.3.73 13.5.37
check-ptxas: $(B)/pack/MANIFEST
	$(Q)ARCHS="$(NJ_ARCHS)" scripts/check_ptxas.sh $(B) $(CUDA_DIR)/bin/ptxas $(PTXAS)
## check-ranks: several GPUs of this host, in minutes: speed beside one of them, then bits, kills, and half of them (bench/ranks.sh --help)
check-ranks: all $(B)/cupti_kernels.so
	$(Q)BUILD=$(B) bench/ranks.sh; speed=$$?; BUILD=$(B) tests/gpu_ranks.sh host && exit $$speed
## bench-start: time to the first step and rate of loading, beside that of the page cache (bench/start.sh --help)
bench-start: all
	$(Q)BUILD=$(B) bench/start.sh
## demo: a language model distilled from text of this machine, in minutes on a CPU, seconds on a GPU
demo: demo-says $(B)/checked
	$(Q)BUILD=$(B) scripts/demo.sh
demo-says:
	@[ -e $(B)/nojit ] || echo "demo: nojit is built first, in one or two minutes on two cores"

## manifest: write blobs/MANIFEST from this build (all archs)
manifest: $(B)/pack/MANIFEST
	$(Q)cp $< blobs/MANIFEST
$(B)/nojit.1: $(B)/nojit
	$(Q)$(EMULATOR) $(B)/nojit help --man > $@
$(B)/nojit.bash $(B)/nojit.zsh: $(B)/nojit.%: $(B)/nojit
	$(Q)$(EMULATOR) $(B)/nojit help --$* > $@

# ---- installation and packages ----
INSTALL_FILES = bin/nojit:$(B)/nojit lib/libnojit.a:$(LIBRARY) include/nojit.h:runtime/nojit.h \
	share/man/man1/nojit.1:$(B)/nojit.1 share/bash-completion/completions/nojit:$(B)/nojit.bash \
	share/zsh/site-functions/_nojit:$(B)/nojit.zsh lib/pkgconfig/nojit.pc:$(B)/nojit.pc \
	lib/nojit/bin/gen:$(GEN) lib/nojit/bin/pack:$(PACK) lib/nojit/bin/pack-shaders:$(PACK_SHADERS) lib/nojit/bin/blobcheck:$(BLOBCHECK) \
	lib/nojit/include/common.glsl:kernels/vulkan/common.glsl lib/nojit/include/grid.glsl:kernels/vulkan/grid.glsl \
	lib/nojit/nojit.mk:tools/nojit.mk lib/nojit/stamp.mk:tools/stamp.mk lib/nojit/assembler.sh:tools/assembler.sh lib/nojit/kernel.awk:tools/kernel.awk lib/nojit/blobs.S:runtime/blobs.S lib/nojit/archs.yaml:contracts/archs.yaml \
	lib/nojit/include/nojit.h:runtime/nojit.h lib/nojit/include/common.cuh:kernels/common.cuh lib/nojit/include/tiles.cuh:kernels/tiles.cuh lib/nojit/include/begin.cuh:kernels/begin.cuh \
	lib/nojit/include/base/step_state.h:base/step_state.h lib/nojit/include/base/tensor_type.h:base/tensor_type.h \
	lib/nojit/include/ref.h:kernels/ref/ref.h \
	lib/nojit/include/kernel_case.h:runtime/selftest/kernel_case.h \
	lib/nojit/libharness.a:$(B)/libharness.a lib/nojit/libkbench.a:$(B)/libkbench.a

$(B)/nojit.pc: tools/nojit.pc.in $(B)/stamp/prefix
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@OPENBLAS_DIR@|$(OPENBLAS_DIR)|' $< > $@

## install: binary, library, header, man page, completion and toolchain under PREFIX
install: all $(B)/nojit.1 $(B)/nojit.bash $(B)/nojit.zsh $(B)/nojit.pc $(B)/libharness.a $(B)/libkbench.a
	$(Q)$(foreach f,$(INSTALL_FILES),install -D -m $(if $(filter bin/% lib/nojit/bin/%,$f),755,644) \
		$(word 2,$(subst :, ,$f)) $(DESTDIR)$(PREFIX)/$(firstword $(subst :, ,$f)) &&) true
	@echo "nojit $(VERSION) is in $(DESTDIR)$(PREFIX): $(DESTDIR)$(PREFIX)/bin/nojit"
## uninstall: remove what install put there
uninstall:
	$(Q)rm -f $(foreach f,$(INSTALL_FILES),$(DESTDIR)$(PREFIX)/$(firstword $(subst :, ,$f)))
	$(Q)rmdir $(addprefix $(DESTDIR)$(PREFIX)/lib/,nojit/bin nojit/include nojit) 2>/dev/null || true
## dist: a tarball with the binary for ARCHS, its man page, SBOM and licences, and its checksum
dist: $(B)/checked $(B)/nojit.1
	$(Q)B=$(B) VERSION=$(VERSION) ARCHS="$(NJ_ARCHS)" BLOBCHECK=$(CHECKER) STRIP=$(addsuffix -,$(CROSS))strip STATIC='$(STATIC)' \
		EMULATOR='$(EMULATOR)' DOC=$(if $(CROSS),$(B)/host)/usr/share/doc scripts/dist.sh
## wheel: a wheel for pip of what dist packs, which puts nojit on PATH and depends on nvidia-cublas; needs Python and glibc <= 2.36
wheel: dist
	$(Q)python3 scripts/wheel.py $(B)/dist/nojit-$(VERSION)-$(MACHINE)-$(subst $(SPACE),-,$(strip $(NJ_ARCHS))).tar.gz manylinux_2_36 \
		$(if $(filter-out default,$(ARCHS)),$(NJ_ARCHS))
## help: this text
help:
	@echo "nojit $(VERSION). Goals:"
	@sed -n 's/^## \([a-z-]*\): \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'
	@echo "Settings:"
	@echo "  ARCHS=\"sm_121\"     targets (default: five; an unknown one lists what is known)"
	@echo "  ONLY='rmsnorm_*'   kernels of these ops only      SAN=address|undefined|thread"
	@echo "  V=1                show commands                  CUDA_HOME=DIR   B=DIR (build folder)"
	@echo "  CFLAGS='-O0 -g'    of C code; also CC, LDFLAGS"
	@echo "  ASSEMBLER=toolkit  the ptxas of CUDA_HOME for every target; or the folder of a newer CUDA (docs/toolchain.md)"
	@echo "  HOST=aarch64-linux-gnu   build for another machine (goals all, dist and wheel), in build-HOST"
	@echo "  PREFIX=DIR DESTDIR=DIR   where install puts things"
## clean: remove the build folder
clean:
	rm -rf $(B)
## lint: formatting, sizes, layers and words
lint:
	$(Q)scripts/lint.sh
## compdb: write compile_commands.json, for editors and clang-tidy
compdb: $(B)/gen/list.mk $(B)/gen-page/report_parts.h
	$(Q)$(MAKE) -nBk V=1 B=$(B) programs | scripts/compdb.sh >compile_commands.json
## tidy: clang-tidy over the C code (SINCE=COMMIT: what changed since)
tidy: compdb
	$(Q)scripts/tidy.sh $(SINCE)

.PHONY: setup install uninstall dist wheel all programs test test-all test-changed test-long check bench-gpu check-ranks bench-start coverage fuzz fuzz-run mutants gpu-mutants sanitize sanitized check-gpu check-ptxas demo demo-says manifest help clean lint compdb tidy
