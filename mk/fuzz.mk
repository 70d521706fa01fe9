# SPDX-License-Identifier: Apache-2.0
#
# fuzz.mk: fuzz targets: parsers on damaged input.

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
	$(call program,$(if $(filter fuzz,$(SAN)),-fsanitize=fuzzer) $(LIBS) -lzstd)
$(B)/libtrainer.a: $(TRAINER_OBJECTS)
	$(archive)
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
