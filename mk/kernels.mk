# SPDX-License-Identifier: Apache-2.0
#
# kernels.mk: machine code from contracts and CUDA C, by tools/nojit.mk.

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
