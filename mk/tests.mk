# SPDX-License-Identifier: Apache-2.0
#
# tests.mk: goals that run tests.

TESTED := $(SIM_ALL) $(VKFAULT) $(INTERRUPT) $(GGUF_OF) $(APR_OF) $(LOGITS_OF) $(IDS_OF) $(HARNESS) $(KBENCH) $(DECODE_KL) $(TEST_PROGRAMS) $(DAMAGE) $(FUZZ_PROGRAMS) $(CONTRACTCHECK)
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
## sanitize: the unit tests and the corpus of damaged files under ASan with UBSan, those with threads under TSan (SANITIZERS=address: the first alone; SANITIZED=quick-units: the quick ones)
SANITIZERS ?= address thread
SANITIZED ?= units
sanitize: $(BLOBS)
	$(Q)for s in $(SANITIZERS); do \
		$(MAKE) SAN=$$s CUDA_HOME=$(CUDA_DIR) BLOBS=$(abspath $(BLOBS)) CFLAGS="-O1 -g" sanitized || exit 1; done
# nproc, which run.sh asks, follows OMP_NUM_THREADS.
sanitized: $(TEST_PROGRAMS) $(if $(filter thread,$(SAN)),,$(FUZZ_PROGRAMS))
	$(Q)BUILD=$(B) JOBS=$${JOBS:-$(shell nproc)} $(if $(filter thread,$(SAN)),OMP_NUM_THREADS=1 OMP_THREAD_LIMIT=1) \
		tests/run.sh $(if $(filter thread,$(SAN)),threads,$(SANITIZED))
## check-gpu: every kernel against its reference, and the trainer, on a GPU
check-gpu: all $(HARNESS) $(addprefix $(B)/tests/test_,device f8 gemm_algorithms gemm_table golden golden_families activation attn_decode cache_ring delta_device) $(B)/cupti_modules.so
	$(Q)BUILD=$(B) tests/gpu.sh
# Optional: without CUPTI's headers what they measure is reported as missing.
$(B)/cupti_modules.so: tests/tools/cupti_modules.c
$(B)/cupti_kernels.so: bench/cupti_kernels.c bench/kernel_steps.h
$(B)/cupti_%.so:
	$(Q)$(CC) -shared -fPIC -O2 -I$(CUDA_DIR)/include -o $@ $< -L$(CUDA_DIR)/lib64 -L$(CUDA_DIR)/lib \
		-l:libcupti.so.13 || echo "no CUPTI here: $@ is left out" >&2
