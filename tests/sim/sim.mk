# SPDX-License-Identifier: Apache-2.0
#
# sim.mk: the simulated GPU of the tests.

# ---- the machine: PTX executed on the CPU ----
# Code that only tests run, on the machine that builds it: it may use all that this CPU has.
SIM_MACHINE := $(B)/libsimmachine.a
SIM_MACHINE_OBJECTS := $(call objects,$(addprefix tests/sim/,exec_*.c machine.c memory.c ptx_*.c))
$(SIM_MACHINE_OBJECTS): INCLUDES := -O3 -fPIC -march=native -ffp-contract=off -fno-math-errno \
	-fno-trapping-math -fno-strict-aliasing -Wno-conversion -Wno-cast-qual
$(SIM_MACHINE): $(SIM_MACHINE_OBJECTS)
	$(Q)rm -f $@
	$(Q)$(AR) rcsD $@ $^
$(addprefix $(B)/tests/test_sim_,forms machine): $(SIM_MACHINE)
$(B)/tests/test_sim_forms: $(call objects,tests/sim_forms.c)
# The harness's cases on the machine: linked as the harness is, without the trainer.
$(B)/tests/test_sim_kernels: $(call objects,tests/test_sim_kernels.c tests/filter.c \
	$(addprefix tests/,harness_case.c harness_compare.c harness_fill.c)) $(NJ_ORACLES) $(NJ_CODE) $(LIBRARY) $(SIM_MACHINE)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -o $@ $^ $(LIBS) -lcmocka
# ---- end of the machine ----
