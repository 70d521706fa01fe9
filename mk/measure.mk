# SPDX-License-Identifier: Apache-2.0
#
# measure.mk: goals that measure, and the demo.

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
