# SPDX-License-Identifier: Apache-2.0
# `make help` lists the goals and settings.

# Some shells export the name of the machine as HOST.
ifneq ($(origin HOST),command line)
override HOST :=
endif
# Empty where HOST is the machine that builds, whatever it is called.
CROSS := $(if $(HOST),$(filter-out $(shell uname -m)-linux-gnu,$(HOST)))
B ?= build$(addprefix -,$(CROSS))
ARCHS ?= default
ifeq ($(MAKECMDGOALS):$(origin ARCHS):$(HOST),demo:file:)
ARCHS := $(shell scripts/demo_archs.sh $(B))
endif
ONLY ?=
SAN ?=
PREFIX ?= /usr/local
DESTDIR ?=
# Names in which make or a shell sees more than a name are refused before anything runs.
UNUSABLE := ( ) < > { } [ ] \ & ; | * ? ! ' " ` $$ % \#
$(foreach v,CURDIR B NATIVE CUDA_HOME ONIG_SRC ASSEMBLER PREFIX DESTDIR,\
	$(if $(or $(word 2,x$($v)x),$(strip $(foreach c,$(UNUSABLE),$(findstring $c,$($v))))),\
	$(error $(if $(filter CURDIR,$v),this folder,$v) is '$($v)'; use a folder whose name has no space and none of $(UNUSABLE))))

CFLAGS ?= -O2 -g
V ?=
Q := $(if $(V),,@)
VERSION := $(shell sed -n 's/^.define NOJIT_VERSION "\(.*\)"/\1/p' runtime/nojit.h)

.DEFAULT_GOAL := all
# Every core, unless -j or a make that called this one says how many.
JOBS_GIVEN := $(filter j% -j% --jobs%,$(MAKEFLAGS) $(shell printenv MAKEFLAGS))
MAKEFLAGS += -r --no-print-directory $(if $(filter 0,$(MAKELEVEL)),$(if $(JOBS_GIVEN),,-j$(shell nproc)))

include tools/stamp.mk
PARTS := flags setup tools kernels trainer test-programs fuzz tests measure install
include $(PARTS:%=mk/%.mk)

## help: this text
help:
	@echo "nojit $(VERSION). Goals:"
	@sed -n 's/^## \([a-z-]*\): \(.*\)/  make \1|\2/p' $(PARTS:%=mk/%.mk) $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'
	@echo "Settings:"
	@echo "  ARCHS=\"sm_121\"     targets (default: five; an unknown one lists what is known)"
	@echo "  ONLY='rmsnorm_*'   kernels of these ops only      SAN=address|undefined|thread"
	@echo "  V=1                show commands                  CUDA_HOME=DIR   B=DIR (build folder)"
	@echo "  CFLAGS='-O0 -g'    of C code; also CC, LDFLAGS"
	@echo "  ASSEMBLER=toolkit  the ptxas of CUDA_HOME for every target; or the folder of a newer CUDA (docs/toolchain.md)"
	@echo "  HOST=aarch64-linux-gnu   build for another machine (goals all, dist and wheel), in build-HOST"
	@echo "  PREFIX=DIR DESTDIR=DIR   where install puts things"
## clean: remove the build folder
clean:
	rm -rf $(B)
## lint: formatting, sizes, layers and words
lint:
	$(Q)scripts/lint.sh
## compdb: write compile_commands.json, for editors and clang-tidy
compdb: $(B)/gen/list.mk $(B)/gen-page/report_parts.h
	$(Q)$(MAKE) -nBk V=1 B=$(B) programs | scripts/compdb.sh >compile_commands.json
## tidy: clang-tidy over the C code (SINCE=COMMIT: what changed since)
tidy: compdb
	$(Q)scripts/tidy.sh $(SINCE)

.PHONY: setup install uninstall dist wheel all programs test test-all test-changed test-long check bench-gpu check-ranks bench-start coverage fuzz fuzz-run mutants gpu-mutants sanitize sanitized check-gpu check-ptxas demo demo-says manifest help clean lint compdb tidy
