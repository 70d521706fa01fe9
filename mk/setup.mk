# SPDX-License-Identifier: Apache-2.0
#
# setup.mk: the packages and compilers that a build needs, found or installed.

# Nothing is installed or written while make reads this: setup.mk is a target, which make makes before it goes on. It is made again
# where it is for other settings (SETUP_FOR; those that name what was found are none), or what it names is gone; until then make
# knows no CUDA and includes nothing else.
ASKED_ASSEMBLER := $(ASSEMBLER)
SETUP_NOW := $(NATIVE_CC) |$(CUDA_HOME)|$(ONIG_SRC)|$(ASKED_ASSEMBLER)|
setup-there = $(and $(wildcard $(CUDA_DIR)/bin/nvcc),$(wildcard $(OPENBLAS_DIR)/*.a),$(wildcard $(ONIG_SRC)/*.c),$(or \
	$(filter toolkit,$(ASSEMBLER)),$(wildcard $(ASSEMBLER)/bin/ptxas)))
setup-other = $(subst |$(filter-out toolkit,$(ASSEMBLER))|,||,$(subst |$(ONIG_SRC)|,||,$(subst |$(CUDA_DIR)|,||,$1)))
SETUP = SETUP='$(filter setup,$(MAKECMDGOALS))' CC='$(NATIVE_CC)' CUDA_HOME='$(CUDA_HOME)' ONIG_SRC='$(ONIG_SRC)' \
	ASSEMBLER='$(ASKED_ASSEMBLER)' SETUP_FOR='$(SETUP_NOW)' scripts/setup.sh $(NATIVE)
SETUP_HOST = SETUP='$(filter setup,$(MAKECMDGOALS))' scripts/setup_host.sh $(CROSS) $(B)
QUIET_GOALS := help clean lint uninstall setup
ifneq ($(if $(MAKECMDGOALS),$(filter-out $(QUIET_GOALS),$(MAKECMDGOALS)),all),)
$(NATIVE)/setup.mk: scripts/setup.sh scripts/apt.sh scripts/ptxas-wheel.txt tools/assembler.sh
	$(Q)$(SETUP)
$(call nj-include,$(NATIVE)/setup.mk)
ifneq ($(if $(setup-there),$(call nj-same,$(call setup-other,$(SETUP_FOR)),$(call setup-other,$(SETUP_NOW)))),same)
$(if $(NJ_DRY),$(error $(NATIVE) is not set up, so make -n cannot know what follows; run 'make setup' first))
$(NATIVE)/setup.mk: nj-force
CUDA_DIR :=
else ifneq ($(CROSS),)
$(B)/setup.mk: scripts/setup_host.sh scripts/apt.sh
	$(Q)$(SETUP_HOST)
$(call nj-include,$(B)/setup.mk)
endif
export ONIG_SRC ASSEMBLER
endif

## setup: install the packages that the build needs (by apt, with sudo) and the CUDA compiler; the other goals ask root alone
setup:
	$(Q)$(SETUP)
	$(if $(CROSS),$(Q)$(SETUP_HOST))
