# SPDX-License-Identifier: Apache-2.0
#
# tools.mk: the programs that build the rest: gen, pack, blobcheck, contractcheck.

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
	$(call program,-lyaml)
$(PACK): $(B)/obj/tools/pack/pack.o $(TOOL_SHARED)
	$(call program,-lzstd)
$(PACK_SHADERS): $(call objects,$(addprefix tools/,pack/pack_shaders.c pack/keyfile.c pack/shadercheck.c image/fileio.c image/problems.c image/spirv.c))
	$(call program)
else
$(GEN) $(PACK) $(PACK_SHADERS) $(CHECKER): native-programs ;
native-programs:
	$(Q)$(MAKE) -s HOST= B=$(NATIVE) CC='$(NATIVE_CC)' CUDA_HOME=$(CUDA_DIR) $(GEN) $(PACK) $(PACK_SHADERS) $(CHECKER)
.PHONY: native-programs
endif
$(BLOBCHECK): $(call objects,$(addprefix tools/check/,blobcheck.c blobindex.c blobprint.c blobshaders.c gguf_keys.c modelkeys.c)) $(TOOL_SHARED)
	$(call program,-lzstd -ljansson)

$(CONTRACTCHECK): $(call objects,tools/check/contractcheck.c tools/image/fileio.c tools/image/problems.c gen/falsifier.c gen/util.c gen/yaml.c)
	$(call program,-lyaml)

## all: the binary for all archs, checked by blobcheck (default)
all: $(B)/checked $(GEN) $(PACK) $(PACK_SHADERS) ; @:
