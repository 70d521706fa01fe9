# SPDX-License-Identifier: Apache-2.0
#
# flags.mk: compilers, their flags, and the recipes that link programs and archives.

ifeq ($(origin CC),default)
CC := cc
endif
NATIVE_CC := $(CC)
ifneq ($(CROSS),)
# Programs that run on the machine that builds (gen, pack, blobcheck) come from its own build folder, as do PTX and cubins, which are
# the same for every host. From here on CC is the compiler for the other machine.
NATIVE ?= build
AR := $(CROSS)-ar
override CC := $(CROSS)-gcc $(addprefix -isystem $(B)/host/usr/,include include/$(CROSS)) -B$(B)/host/usr/lib/$(CROSS)
ifneq ($(SAN),)
$(error SAN=$(SAN) is for the machine that builds; leave HOST=$(HOST) out)
endif
ifneq ($(filter-out all dist wheel help clean lint setup $(B)/%,$(MAKECMDGOALS)),)
$(error HOST=$(HOST) goes with 'all', 'dist', 'wheel' and files in $(B); leave HOST out for the others)
endif
else
override NATIVE = $(B)
endif
ifeq ($(origin AR),default)
AR := ar
endif
export CC

WARNINGS := -Wall -Wextra -Wshadow -Wundef -Wvla -Wcast-qual -Wstrict-prototypes -Wmissing-prototypes \
	-Wconversion -Wno-sign-conversion
SANITIZE_address := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SANITIZE_undefined := -fsanitize=undefined -fno-sanitize-recover=undefined
SANITIZE_thread := -fsanitize=thread
SANITIZE_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
ifneq ($(SAN),)
ifeq ($(SANITIZE_$(SAN)),)
$(error SAN=$(SAN) is unknown; use SAN=address, SAN=undefined or SAN=thread)
endif
PLAIN := $(B)
B := $(B)-$(SAN)
endif
# Hardening that costs nothing measurable. glibc checks sizes (FORTIFY) in optimised code alone; sanitizers have checks of their own.
# The assembly of OpenBLAS has no note of CET, so the linker leaves it out of the program; our own objects have it.
MACHINE := $(firstword $(subst -, ,$(or $(CROSS),$(shell uname -m))))
HARDEN_x86_64 := -fcf-protection=full
HARDEN_aarch64 := -mbranch-protection=standard
# Level 3 also checks sizes that are known at run time only: gcc 12 or clang 9, glibc 2.34.
FORTIFY := $(shell $(CC) -E -dM -include features.h -xc /dev/null 2>/dev/null | awk '$$2 == "__GNUC__" { gcc = $$3 } \
	$$2 == "__clang_major__" { clang = $$3 } $$2 == "__GLIBC_MINOR__" { glibc = $$3 } \
	END { print (glibc >= 34 && (clang ? clang >= 9 : gcc >= 12) ? 3 : 2) }')
HARDEN := -fPIE -fstack-protector-strong -fstack-clash-protection $(HARDEN_$(MACHINE)) $(if $(SAN),,$(if \
	$(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS)))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY)))
HARDEN_LINK := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code
# Debug information names no folder of this machine: two build folders give the same bytes. With instrumented code gcc warns of what
# cannot be, so only ordinary builds must be free of warnings.
NJ_CC := $(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) $(if $(SAN),,$(if $(CI),-Werror)) $(SANITIZE_$(SAN)) $(HARDEN) \
	-ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(abspath $(B))=build -ffile-prefix-map=$(B)=build
LINK := $(CC) $(SANITIZE_$(SAN)) $(HARDEN_LINK) $(if $(COVERAGE),--coverage) $(LDFLAGS)
# clang without its own OpenMP takes gcc's header (alone: gcc's others would hide its own) and library, and leaves the pragmas out: the
# code runs in one thread.
OPENMP := -fopenmp$(if $(filter fuzz,$(SAN)),=libgomp -idirafter $(B)/omp -Wno-source-uses-openmp)
$(if $(filter fuzz,$(SAN)),$(eval $(B)/stamp/cflags: $(B)/omp/omp.h))
$(B)/omp/omp.h:
	$(Q)mkdir -p $(@D)
	$(Q)ln -sf $$(gcc -print-file-name=include/omp.h) $@

# program LIBRARIES: the recipe that links a target from its prerequisites; LIBRARIES may hold other flags, too.
define program
$(Q)mkdir -p $(@D)
$(Q)$(LINK) -o $@ $^ $1
endef
# archive: the recipe of a static library.
define archive
$(Q)rm -f $@
$(Q)$(AR) rcsD $@ $^
endef

COMMA := ,
SPACE := $(COMMA) $(COMMA)
SPACE := $(subst $(COMMA),,$(SPACE))
