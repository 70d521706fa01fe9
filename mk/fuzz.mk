# SPDX-License-Identifier: Apache-2.0
#
# fuzz.mk: fuzz targets: parsers on damaged input. tests/fuzz/FOLDER/fuzz_NAME.c is the target NAME; its folder decides what it is linked
# with. The tests replay tests/fuzz/corpus, and libFuzzer grows it in `make fuzz`.

FUZZ_SECONDS ?= 30
FUZZ_SOURCES := $(foreach f,parser runtime tools gen engine,$(wildcard tests/fuzz/$f/fuzz_*.c))
FUZZ_TARGETS := $(patsubst fuzz_%,%,$(notdir $(FUZZ_SOURCES:.c=)))
FUZZ_PROGRAMS := $(FUZZ_TARGETS:%=$(B)/fuzz/%)
FUZZ_COMMON := $(call objects,tests/fuzz/fuzz.c $(if $(filter fuzz,$(SAN)),,tests/fuzz/replay.c))
# fuzz-folder FOLDER: the beginning of a rule with the programs of a folder as targets.
fuzz-folder = $(patsubst tests/fuzz/$1/fuzz_%.c,$(B)/fuzz/%,$(filter tests/fuzz/$1/%,$(FUZZ_SOURCES))): \
	$(B)/fuzz/%: $(B)/obj/tests/fuzz/$1/fuzz_%.o $(FUZZ_COMMON)
$(call fuzz-folder,parser) $(call objects,tests/fuzz/no_kernels.c) $(B)/libtrainer.a $(LIBRARY)
$(call fuzz-folder,runtime) $(call objects,tests/fuzz/no_kernels.c) $(LIBRARY)
$(call fuzz-folder,tools) $(call objects,tools/check/blobindex.c tools/check/gguf_keys.c) $(TOOL_SHARED)
$(call fuzz-folder,gen) $(filter-out %/main.o,$(GEN_OBJECTS))
$(call fuzz-folder,engine) $(B)/libtrainer.a $(NJ_CODE) $(LIBRARY)
$(FUZZ_PROGRAMS):
	$(call program,$(if $(filter fuzz,$(SAN)),-fsanitize=fuzzer) $(LIBS) -lzstd)
$(B)/libtrainer.a: $(TRAINER_OBJECTS)
	$(archive)
$(call objects,tests/fuzz/*.c tests/fuzz/*/*.c): INCLUDES := -I. -Itests/fuzz -Iruntime -Itrainer -Ikernels
$(call objects,tests/fuzz/tools/*.c): INCLUDES := -I. -Itests/fuzz -Iruntime -Itools
$(call objects,tests/fuzz/gen/*.c): INCLUDES := -I. -Itests/fuzz -Igen -Ikernels
$(call objects,tests/fuzz/engine/*.c): INCLUDES += -I$(B)/gen
$(call objects,tests/fuzz/engine/*.c): | $(B)/gen/nojit_ops.h

## fuzz: every parser under libFuzzer, FUZZ_SECONDS (30) each; needs clang
fuzz: $(BLOBS)
	$(Q)$(MAKE) SAN=fuzz CC=clang CUDA_HOME=$(CUDA_DIR) BLOBS=$(abspath $(BLOBS)) CFLAGS="-O1 -g" fuzz-run
fuzz-run: $(FUZZ_PROGRAMS)
	$(Q)BUILD=$(B) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run.sh $(FUZZ_TARGETS)
