# SPDX-License-Identifier: Apache-2.0
#
# nojit.mk: from kernel contracts to objects to link. Used by nojit itself and, installed, by other projects.
#
# Set before including:
#   NJ_BUILD      folder for everything made here            NJ_CONTRACTS  folder of <op>.yaml
#   NJ_KERNELS    folder of <op>.cu and ref/<op>.c           ARCHS         "default" or a list such as "sm_86 sm_90a"
#                 and vulkan/<op>.comp, of ops that have one GLSLC         compiler of shaders (glslc), where there are some
#   ONLY          pattern of ops, or empty                   CUDA_DIR      CUDA 13 (bin/nvcc, bin/ptxas, bin/fatbinary)
#   ASSEMBLER     a newer CUDA's folder (bin/ptxas), for archs that archs.yaml asks one for; `toolkit`: CUDA_DIR's for all
#   CC, CFLAGS    of launchers and references                 NJ_CC         the compiler with flags that CFLAGS keeps
#   NJ_SHARED       folder of instances, PTX and cubins; builds for several hosts can share one (NJ_BUILD)
# nojit's own build also sets NJ_GEN and the rest of the first lines below; installed, they point beside this file.
# Gives: NJ_OBJECTS (launchers, references, machine code), NJ_ORACLES (test cases, references in double: for libharness.a and
# libkbench.a), NJ_CFLAGS, NJ_GENERATED, and the goal $(NJ_BUILD)/pack/MANIFEST.

NJ_SHARED ?= $(NJ_BUILD)
NJ_HERE := $(dir $(lastword $(MAKEFILE_LIST)))
include $(NJ_HERE)stamp.mk
NJ_INCLUDE ?= $(NJ_HERE)include
NJ_GEN ?= $(NJ_HERE)bin/gen
NJ_PACK ?= $(NJ_HERE)bin/pack
NJ_PACK_SHADERS ?= $(NJ_HERE)bin/pack-shaders
GLSLC ?= glslc
NJ_BLOBS_S ?= $(NJ_HERE)blobs.S
NJ_ARCHS_YAML ?= $(NJ_HERE)archs.yaml
NJ_KERNEL_AWK := $(NJ_HERE)kernel.awk
NJ_REF_CFLAGS ?= -O3 -fopenmp
NJ_CC ?= $(CC)
CUDA_DIR ?= $(or $(CUDA_HOME),$(patsubst %/bin/nvcc,%,$(realpath $(shell command -v nvcc))))
ifeq ($(wildcard $(CUDA_DIR)/bin/nvcc),)
$(error no CUDA 13 compiler on PATH or in CUDA_HOME)
endif
ARCHS ?= default
ONLY ?=
Q ?= $(if $(V),,@)

NJ_CFLAGS := $(addprefix -I,$(NJ_BUILD)/gen $(NJ_INCLUDE) $(NJ_KERNELS) $(NJ_KERNELS)/ref)
NJ_GENERATED := $(addprefix $(NJ_BUILD)/gen/,nojit_ops.h ops.c cases.c keys.txt shaders.txt archs.txt spills.txt KERNELS.md)

$(call nj-stamp,$(NJ_BUILD)/stamp/gen,$(ARCHS) / $(ONLY))
$(call nj-stamp,$(NJ_SHARED)/stamp/nvcc,$(CUDA_DIR) $(shell $(CUDA_DIR)/bin/nvcc --version | tail -n 1))
$(call nj-stamp,$(NJ_BUILD)/stamp/cc,$(call nj-unmapped,$(NJ_CC)) $(CFLAGS) $(NJ_REF_CFLAGS) $(NJ_CFLAGS))

$(NJ_BUILD)/gen/list.mk: $(NJ_GEN) $(NJ_ARCHS_YAML) $(wildcard $(NJ_CONTRACTS)/*.yaml) $(NJ_CONTRACTS) $(wildcard $(NJ_KERNELS)/vulkan) \
		$(NJ_BUILD)/stamp/gen | $(NJ_KERNELS)
	$(Q)mkdir -p $(@D)
	$(Q)$(NJ_GEN) --contracts $(NJ_CONTRACTS) --kernels $(NJ_KERNELS) --archs-file $(NJ_ARCHS_YAML) \
		--archs "$(ARCHS)" $(if $(ONLY),--only '$(ONLY)') --out $(@D)

$(call nj-include,$(NJ_BUILD)/gen/list.mk)
ifneq ($(NJ_ARCHS),)
$(call nj-stamp,$(NJ_BUILD)/stamp/archs,$(NJ_ARCHS) / $(NJ_SPARE_ARCHS))
endif

# ---- which ptxas assembles an arch ----
# NJ_PTXAS_ARCH is the least release that archs.yaml asks for. The toolkit's own is taken where it is as new: a newer nvcc writes PTX that
# an older ptxas does not read. NJ_ASSEMBLER_LEAST is a folder and its release, or empty.
nj-least = $(if $(filter toolkit,$(ASSEMBLER)),,$(NJ_PTXAS_$1))
$(foreach l,$(sort $(foreach a,$(NJ_ARCHS),$(call nj-least,$a))),$(eval \
	NJ_ASSEMBLER_$l := $(shell sh $(NJ_HERE)assembler.sh $l $(CUDA_DIR) $(ASSEMBLER))))
nj-assembler = $(NJ_ASSEMBLER_$(call nj-least,$1))
nj-ptxas = $(or $(firstword $(nj-assembler)),$(CUDA_DIR))/bin/ptxas
# Another assembler of an arch makes its cubins anew and no others. A stamp for each arch that asks or once asked.
NJ_PTXAS_STAMPS := $(sort $(wildcard $(NJ_SHARED)/stamp/ptxas.*) \
	$(foreach a,$(NJ_ARCHS),$(if $(NJ_PTXAS_$a),$(NJ_SHARED)/stamp/ptxas.$a)))
$(foreach s,$(NJ_PTXAS_STAMPS),$(call nj-stamp,$s,$(or $(lastword $(call nj-assembler,$(patsubst .%,%,$(suffix $s)))),toolkit)))
# Archs that ask for a newer one than there is.
NJ_BEHIND := $(strip $(foreach a,$(NJ_ARCHS),$(if $(call nj-least,$a),$(if $(call nj-assembler,$a),,$a))))

# The generator rewrites only what changed: the list is its target, the rest follows without a recipe of its own.
$(NJ_GENERATED) $(NJ_UNITS:%=$(NJ_BUILD)/gen/inst/%.cu) $(NJ_SHADERS:%=$(NJ_BUILD)/gen/inst/%.comp): $(NJ_BUILD)/gen/list.mk ;

ifneq ($(NJ_SHARED),$(NJ_BUILD))
$(NJ_UNITS:%=$(NJ_SHARED)/gen/inst/%.cu) $(NJ_SHADERS:%=$(NJ_SHARED)/gen/inst/%.comp): $(NJ_SHARED)/%: $(NJ_BUILD)/%
	$(Q)mkdir -p $(@D)
	$(Q)cmp -s $< $@ || cp $< $@
endif

# A stem is UNIT.ARCH (attn_fwd.t256.sm_90a) or KEY.ARCH (attn_fwd.lp.d64.sm_90a). A source in the folder of its arch stands in for
# the common one. A stamp for each that there is or was: make does not rebuild what included a file that is gone.
nj-arch = $(patsubst .%,%,$(suffix $1))
nj-arch-stamp = $(NJ_SHARED)/stamp/$(nj-arch)/$(firstword $(subst ., ,$1))
NJ_ARCH_STAMPS := $(sort $(wildcard $(NJ_SHARED)/stamp/sm_*/*) \
	$(patsubst $(NJ_KERNELS)/%.cu,$(NJ_SHARED)/stamp/%,$(wildcard $(NJ_KERNELS)/sm_*/*.cu)))
$(foreach s,$(NJ_ARCH_STAMPS),$(call nj-stamp,$s,$(wildcard $(s:$(NJ_SHARED)/stamp/%=$(NJ_KERNELS)/%.cu))))
.SECONDEXPANSION:
$(NJ_SHARED)/unit/%.ptx: $(NJ_SHARED)/gen/inst/$$(basename $$*).cu $(NJ_SHARED)/stamp/nvcc \
		$$(filter $$(call nj-arch-stamp,$$*),$(NJ_ARCH_STAMPS))
	$(Q)mkdir -p $(@D)
	$(if $(V),,@echo "  PTX    $*")
	$(Q)$(CUDA_DIR)/bin/nvcc -ptx -std=c++17 -arch=$(subst sm_,compute_,$(call nj-arch,$*)) \
		-MD -MP -MF $(@:.ptx=.d) -MT $@ \
		$(addprefix -I,$(NJ_KERNELS)/$(call nj-arch,$*) $(NJ_KERNELS) $(NJ_INCLUDE)) -o $@ $<

# The kernel of one key.
$(NJ_SHARED)/ptx/%.ptx: $(NJ_SHARED)/unit/$$(NJ_UNIT_$$(basename $$*))$$(suffix $$*).ptx $(NJ_KERNEL_AWK)
	$(Q)mkdir -p $(@D)
	$(Q)awk -v entry=nj_$(subst .,_,$(basename $*)) -f $(NJ_KERNEL_AWK) $< > $@

nj-assemble = $(call nj-ptxas,$(nj-arch)) -v -arch=$(nj-arch)
$(NJ_SHARED)/cubin/%.cubin: $(NJ_SHARED)/ptx/%.ptx $$(filter $(NJ_SHARED)/stamp/ptxas$$(suffix $$*),$(NJ_PTXAS_STAMPS))
	$(Q)mkdir -p $(@D)
	$(Q)$(call nj-assemble,$*) -o $@ $< 2> $(@:.cubin=.log) || { cat $(@:.cubin=.log) >&2; exit 1; }
# The spare code of archs that have it: the same PTX at -O1, compressed, as it is loaded where the other has failed.
$(NJ_SHARED)/spare/%.cubin: $(NJ_SHARED)/ptx/%.ptx $$(filter $(NJ_SHARED)/stamp/ptxas$$(suffix $$*),$(NJ_PTXAS_STAMPS))
	$(Q)mkdir -p $(@D)
	$(Q)$(call nj-assemble,$*) -O1 -o $@ $< 2> $(@:.cubin=.log) || { cat $(@:.cubin=.log) >&2; exit 1; }

nj-fatbinary = $(CUDA_DIR)/bin/fatbinary -64 --create=$@ $(foreach c,$(filter %.cubin,$^),\
	--image3=kind=elf,sm=$(patsubst .sm_%,%,$(suffix $(basename $c))),file=$c)
$(NJ_BUILD)/fatbin/%.fatbin: $$(NJ_FATBIN_$$*_CUBINS) $(NJ_BUILD)/stamp/archs
	$(Q)mkdir -p $(@D)
	$(Q)$(nj-fatbinary) --compress-mode=none
nj-spares = $(patsubst $(NJ_SHARED)/cubin/%,$(NJ_SHARED)/spare/%,\
	$(filter $(addprefix %.,$(addsuffix .cubin,$(NJ_SPARE_ARCHS))),$(NJ_FATBIN_$1_CUBINS)))
$(NJ_BUILD)/spare/%.fatbin: $$(call nj-spares,$$*) $(NJ_BUILD)/stamp/archs
	$(Q)mkdir -p $(@D)
	$(Q)$(nj-fatbinary) --compress-mode=size --compress-all

# A key that none of the archs has needs none.
NJ_FATBINS := $(foreach k,$(NJ_KEYS),$(if $(NJ_FATBIN_$k_CUBINS),$(NJ_BUILD)/fatbin/$k.fatbin) \
	$(if $(call nj-spares,$k),$(NJ_BUILD)/spare/$k.fatbin))
$(NJ_BUILD)/pack/MANIFEST: $(NJ_FATBINS) $(NJ_PACK) $(addprefix $(NJ_BUILD)/gen/,keys.txt archs.txt spills.txt)
	$(Q)mkdir -p $(@D)
	$(if $(V),,@echo "  PACK   $(words $(NJ_KEYS)) keys for $(NJ_ARCHS)")
	$(Q)$(NJ_PACK) --keys $(NJ_BUILD)/gen/keys.txt --archs $(NJ_BUILD)/gen/archs.txt \
		--spills $(NJ_BUILD)/gen/spills.txt --fatbins $(NJ_BUILD)/fatbin --logs $(NJ_SHARED)/cubin \
		--spares $(NJ_BUILD)/spare --spare-logs $(NJ_SHARED)/spare --out $(@D)
	$(if $(NJ_BEHIND),@echo "nojit.mk: the ptxas of $(CUDA_DIR) is older than archs.yaml asks for $(NJ_BEHIND); set ASSEMBLER to the folder" \
		"of a newer CUDA ($(sort $(foreach a,$(NJ_BEHIND),$(NJ_PTXAS_$a)))) or to 'toolkit'" >&2)
	$(Q)touch $@

$(NJ_BUILD)/obj/blobs.o: $(NJ_BLOBS_S) $(NJ_BUILD)/pack/MANIFEST $(NJ_BUILD)/gen/keys.txt
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -c -I$(NJ_BUILD)/pack -I$(NJ_BUILD)/gen -o $@ $<

# Shaders for Vulkan: those of contracts, and those that *.keys describes. The source of such a key is named like its first word, the other
# words are macros: gemm.nt.f32 is gemm.comp with KEY_nt and KEY_f32.
NJ_SHADER_KEYS := $(wildcard $(NJ_KERNELS)/vulkan/*.keys)
NJ_OWN_SHADERS := $(if $(NJ_SHADER_KEYS),$(shell cut -f1 $(NJ_SHADER_KEYS)))
NJ_MODULES := $(patsubst %,$(NJ_SHARED)/spirv/%.spv,$(NJ_SHADERS) $(if $(ONLY),,$(NJ_OWN_SHADERS)))
$(call nj-stamp,$(NJ_SHARED)/stamp/glslc,$(if $(NJ_MODULES),$(GLSLC) $(firstword $(shell $(GLSLC) --version))))
nj-glslc = $(GLSLC) --target-env=vulkan1.3 --target-spv=spv1.5 -O -MD -MF $(@:.spv=.d) -MT $@ $(addprefix -I,$(NJ_KERNELS)/vulkan $(NJ_INCLUDE)) -o $@ $<
$(NJ_OWN_SHADERS:%=$(NJ_SHARED)/spirv/%.spv): $(NJ_SHARED)/spirv/%.spv: $(NJ_KERNELS)/vulkan/$$(firstword $$(subst ., ,$$*)).comp \
		$(NJ_SHARED)/stamp/glslc
	$(Q)mkdir -p $(@D)
	$(if $(V),,@echo "  GLSL   $*")
	$(Q)$(nj-glslc) $(patsubst %,-DKEY_%,$(wordlist 2,9,$(subst ., ,$*)))
$(NJ_SHADERS:%=$(NJ_SHARED)/spirv/%.spv): $(NJ_SHARED)/spirv/%.spv: $(NJ_SHARED)/gen/inst/%.comp $(NJ_SHARED)/stamp/glslc
	$(Q)mkdir -p $(@D)
	$(if $(V),,@echo "  GLSL   $*")
	$(Q)$(nj-glslc)

$(NJ_BUILD)/pack/shader_index.bin: $(NJ_MODULES) $(NJ_PACK_SHADERS) $(NJ_BUILD)/gen/shaders.txt $(NJ_SHADER_KEYS)
	$(Q)mkdir -p $(@D)
	$(Q)LC_ALL=C sort $(NJ_BUILD)/gen/shaders.txt $(if $(ONLY),,$(NJ_SHADER_KEYS)) > $(@D)/shaders.txt
	$(Q)$(NJ_PACK_SHADERS) --keys $(@D)/shaders.txt --shaders $(NJ_SHARED)/spirv --compiler "$$($(GLSLC) --version | sed -n '1s/^\([a-z]*\) v*\([0-9.]*\).*/\1 \2/p')" --out $(@D)
	$(Q)touch $@

$(NJ_BUILD)/obj/shaders.o: $(NJ_BLOBS_S) $(NJ_BUILD)/pack/shader_index.bin
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -c -DNJ_SHADERS -I$(NJ_BUILD)/pack -o $@ $<

$(NJ_BUILD)/obj/gen/%.o: $(NJ_BUILD)/gen/%.c $(NJ_BUILD)/stamp/cc
	$(Q)mkdir -p $(@D)
	$(Q)$(NJ_CC) $(CFLAGS) $(NJ_CFLAGS) -MMD -MP -c -o $@ $<

NJ_REF_NAMES := $(notdir $(basename $(NJ_REFS)))
$(NJ_BUILD)/obj/ref32/%.o: $(NJ_KERNELS)/ref/%.c $(NJ_BUILD)/stamp/cc
	$(Q)mkdir -p $(@D)
	$(Q)$(NJ_CC) $(CFLAGS) $(NJ_REF_CFLAGS) $(NJ_CFLAGS) -MMD -MP -c -o $@ $<
$(NJ_BUILD)/obj/ref64/%.o: $(NJ_KERNELS)/ref/%.c $(NJ_BUILD)/stamp/cc
	$(Q)mkdir -p $(@D)
	$(Q)$(NJ_CC) $(CFLAGS) $(NJ_REF_CFLAGS) -DNJ_REAL_DOUBLE $(NJ_CFLAGS) -MMD -MP -c -o $@ $<

NJ_OBJECTS := $(NJ_BUILD)/obj/gen/ops.o $(NJ_BUILD)/obj/blobs.o $(if $(NJ_MODULES),$(NJ_BUILD)/obj/shaders.o) $(NJ_REF_NAMES:%=$(NJ_BUILD)/obj/ref32/%.o)
NJ_ORACLES := $(NJ_BUILD)/obj/gen/cases.o $(NJ_REF_NAMES:%=$(NJ_BUILD)/obj/ref64/%.o)

.SECONDARY:
.DELETE_ON_ERROR:
-include $(wildcard $(NJ_SHARED)/unit/*.d $(NJ_SHARED)/spirv/*.d $(NJ_BUILD)/obj/gen/*.d $(NJ_BUILD)/obj/ref32/*.d $(NJ_BUILD)/obj/ref64/*.d)
