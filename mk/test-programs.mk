# SPDX-License-Identifier: Apache-2.0
#
# test-programs.mk: the harness, the unit tests, benchmarks, and the programs that tests use.

MUTANTS ?= *
SINCE ?=
DEVICE ?= cpu
HARNESS ?= $(B)/harness
TEST_PROGRAMS := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
$(HARNESS): $(call objects,tests/harness/*.c) $(NJ_ORACLES) $(NJ_CODE) $(LIBRARY)
	$(call program,-static-libgcc $(LIBS))
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
	$(call program,$(LIBS) -lcmocka)
# A hard link, so that a test which starts itself anew keeps its name.
$(UNIT_JOINED:%=$(B)/tests/%): $(UNIT_TESTS)
	$(Q)mkdir -p $(@D)
	$(Q)ln -f $< $@
$(B)/tests/%: $(B)/obj/tests/unit/%.o $(B)/obj/tests/unit/filter.o $(TRAINER_OBJECTS) $(NJ_ORACLES) $(NJ_CODE) $(LIBRARY)
	$(call program,$(LIBS) -lcmocka)

KBENCH := $(B)/kbench
KBENCH_OBJECTS := $(call objects,bench/kbench*.c)
$(KBENCH): $(KBENCH_OBJECTS) $(NJ_ORACLES) $(NJ_CODE) $(LIBRARY)
	$(call program,-static-libgcc $(LIBS))
# For kernels of other projects, which link them with references of their own.
$(B)/libharness.a: $(call objects,tests/harness/*.c)
$(B)/libkbench.a: $(KBENCH_OBJECTS)
$(B)/libharness.a $(B)/libkbench.a:
	$(archive)

# Compares the decoder's predictions with a forward pass.
DECODE_KL := $(B)/decode_kl
$(DECODE_KL): $(call objects,bench/decode_kl.c) $(B)/libtrainer.a $(NJ_CODE) $(LIBRARY)
	$(call program,-static-libgcc $(LIBS))

# Brings its own kernel table.
$(B)/tests/test_runtime: $(B)/obj/tests/unit/test_runtime.o $(B)/obj/tests/unit/filter.o $(LIBRARY)
	$(call program,$(LIBS) -lcmocka)
# Tests of tools, which have a function fail() of their own, as the trainer has.
$(B)/tests/test_no_memory_tools: $(call objects,tests/unit/test_no_memory_tools.c tests/unit/filter.c tools/check/gguf_keys.c tools/check/modelkeys.c) $(TOOL_SHARED)
$(B)/tests/test_tools_growth: $(call objects,tests/unit/test_tools_growth.c tests/unit/filter.c tools/check/blobindex.c) $(TOOL_SHARED)
$(B)/tests/test_no_memory_tools $(B)/tests/test_tools_growth:
	$(call program,$(LIBS) -lzstd -lcmocka)
$(B)/obj/tests/unit/test_no_memory_tools.o $(B)/obj/tests/unit/test_tools_growth.o: INCLUDES += -Itools
# Refuses allocations: its own and those of the static libraries, but not OpenMP's, which would end the program.
$(B)/tests/test_no_memory $(B)/tests/test_no_memory_tools: LIBS := $(filter-out %/libgomp.a,$(LIBS)) -lgomp \
	$(addprefix -Wl$(COMMA)--wrap=,malloc calloc realloc aligned_alloc posix_memalign strdup strndup getline getdelim __getdelim free)
$(B)/obj/tests/unit/test_cuda_abi.o: INCLUDES += $(if $(CUDA_DIR),-isystem $(CUDA_DIR)/include)

# Plants faults that blobcheck must name.
DAMAGE := $(B)/damage
$(DAMAGE): $(call objects,tests/tools/damage*.c $(addprefix tools/,image/elfbin.c image/fileio.c image/problems.c))
	$(call program)
$(call objects,tests/tools/damage*.c): INCLUDES += -Itools

# Makes a GGUF file of a model.
GGUF_OF := $(B)/gguf-of
$(GGUF_OF): $(call objects,tests/tools/gguf_of.c tests/fuzz/no_kernels.c) $(B)/libtrainer.a $(LIBRARY)
	$(call program,$(LIBS))

# And an APR file.
APR_OF := $(B)/apr-of
$(APR_OF): $(call objects,tests/tools/apr_of.c tests/fuzz/no_kernels.c) $(B)/libtrainer.a $(LIBRARY)
	$(call program,$(LIBS))

# Prints the ids of texts.
IDS_OF := $(B)/ids-of
$(IDS_OF): $(call objects,tests/tools/ids_of.c tests/fuzz/no_kernels.c) $(B)/libtrainer.a $(LIBRARY)
	$(call program,$(LIBS))

# Prints the logits of a GGUF file's model for a text.
LOGITS_OF := $(B)/logits-of
$(LOGITS_OF): $(call objects,tests/tools/logits_of.c) $(B)/libtrainer.a $(NJ_CODE) $(LIBRARY)
	$(call program,$(LIBS))

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
