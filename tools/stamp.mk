# SPDX-License-Identifier: Apache-2.0
#
# stamp.mk: what a target depends on beside files. Nothing here runs or writes while make reads its makefiles.

# nj-stamp FILE TEXT: FILE holds TEXT and is written anew only where TEXT is another, so that a changed setting rebuilds what it should.
# make 4.3 sometimes leaves the last newline of $(file <...) in place.
nj-stamp = $(eval $(call nj-stamp-rule,$1,$(subst $$,$$$$,$2),$(if $(call nj-same,$(subst $(NJ_NEWLINE),,$(file <$1)),$2),,nj-force)))
define NJ_NEWLINE


endef
define nj-stamp-rule
$1: $3
	@mkdir -p $$(@D)
	@printf '%s\n' '$2' >$$@
endef
nj-same = $(if $(subst x$1x,,x$2x)$(subst x$2x,,x$1x),,same)
.PHONY: nj-force

# nj-include FILE: make brings FILE up to date and reads it; `make -n`, which would do so too, only reads it.
NJ_DRY := $(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
nj-include = $(eval $(if $(NJ_DRY),$(file <$1),include $1))

# Objects do not depend on the folder that they were built in, so a moved tree rebuilds nothing.
nj-unmapped = $(filter-out -ffile-prefix-map=%,$1)
