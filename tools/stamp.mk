# SPDX-License-Identifier: Apache-2.0
#
# stamp.mk: what a target depends on beside files.

# nj-stamp FILE TEXT: a file that changes only when TEXT does, so that a changed setting rebuilds what it should.
nj-stamp = $(shell mkdir -p $(dir $1); printf '%s\n' '$2' | cmp -s - $1 || printf '%s\n' '$2' > $1)
# Objects do not depend on the folder that they were built in, so a moved tree rebuilds nothing.
nj-unmapped = $(filter-out -ffile-prefix-map=%,$1)
