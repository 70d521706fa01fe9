# SPDX-License-Identifier: Apache-2.0
#
# simgpu.mk: the simulated GPU of the tests.

# ---- the machine: PTX executed on the CPU ----
# Code that only tests run, on the machine that builds it: it may use all that this CPU has.
SIM_MACHINE := $(B)/libsimmachine.a
SIM_MACHINE_OBJECTS := $(call objects,$(addprefix tests/simgpu/,exec_*.c machine.c memory.c ptx_*.c))
$(SIM_MACHINE_OBJECTS): INCLUDES := -O3 -fPIC $(if $(CROSS),,-march=native) -ffp-contract=off -fno-math-errno \
	-fno-trapping-math -fno-strict-aliasing
$(SIM_MACHINE): $(SIM_MACHINE_OBJECTS)
	$(archive)
# Instrumented builds take the PTX of the plain one.
$(call objects,$(addprefix tests/unit/test_sim_,kernels.c machine.c)): INCLUDES += -DPTX_FOLDER='"$(or $(PLAIN),$(B))/ptx"'
# The harness's cases on the machine: linked as the harness is, without the trainer.
$(B)/tests/test_sim_kernels: $(call objects,tests/unit/test_sim_kernels.c tests/unit/filter.c) $(NJ_ORACLES) $(NJ_CODE) $(LIBRARY) $(SIM_MACHINE)
	$(call program,$(LIBS) -lcmocka)

# ---- the driver, cuBLASLt, NCCL and NVML: libraries that the runtime opens by their names, in a folder of their own ----
SIM := $(B)/sim
SIM_ALL := $(addprefix $(SIM)/,libcuda.so.1 libcublasLt.so.13 libnccl.so.2 libnvidia-ml.so.1 proc.so ptx.txt)
sim-objects = $(patsubst %.c,$(SIM)/obj/%.o,$(wildcard $1))

$(SIM)/obj/%.o: %.c $(B)/stamp/cflags
	$(Q)mkdir -p $(@D)
	$(if $(V),,@echo "  CC     $<")
	$(Q)$(NJ_CC) -O2 -g -fPIC -fvisibility=hidden -I. -Iruntime -Itools $(OPENMP) -I$(OPENBLAS_INCLUDE) -MMD -MP -c -o $@ $<
$(SIM)/libcuda.so.1: $(call sim-objects,tests/simgpu/driver*.c tests/simgpu/profiles.c \
		$(addprefix tools/,image/cubin.c image/elfbin.c image/fatbin.c image/problems.c)) $(SIM_MACHINE)
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,--exclude-libs,ALL -o $@ $^ -lzstd -lgomp -lpthread -ldl -lm
$(SIM)/libcublasLt.so.13: $(call sim-objects,tests/simgpu/cublaslt*.c)
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,--exclude-libs,ALL -o $@ $^ $(OPENBLAS_DIR)/libopenblas.a -lgomp -lpthread -ldl -lm
$(SIM)/libnccl.so.2: $(call sim-objects,tests/simgpu/nccl*.c)
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -o $@ $^ -ldl
$(SIM)/libnvidia-ml.so.1: $(call sim-objects,tests/simgpu/nvml.c)
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -o $@ $^
$(SIM)/proc.so: $(call sim-objects,tests/simgpu/proc.c)
	$(Q)$(LINK) -shared -o $@ $^ -ldl
$(SIM)/ptx_table: $(call sim-objects,tests/simgpu/ptx_table.c)
	$(call program)
# The machine code may be another build's (BLOBS).
SIM_BUILT = $(patsubst %/obj/blobs.o,%,$(abspath $(BLOBS)))
$(SIM)/ptx.txt: $(BLOBS) $(SIM)/ptx_table
	$(Q)cd $(@D) && ./ptx_table $$(realpath --relative-to=. $(SIM_BUILT))/ptx $(SIM_BUILT)/*/*.cubin > $(@F).new
	$(Q)mv $@.new $@
# These open them from there.
$(addprefix $(B)/tests/test_,cuda_sim gemm_check nccl self_test sim_driver spare_code tile_map): | $(SIM_ALL)
-include $(wildcard $(SIM)/obj/*/*.d $(SIM)/obj/*/*/*.d)
