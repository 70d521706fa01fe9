#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tier: all
#
# install_example.sh: an installed nojit builds examples/own-kernel, a project of its own, whose blobcheck passes and
# which runs; uninstall leaves nothing.
set -eu
. tests/lib.sh
unset MAKEFLAGS MAKELEVEL MFLAGS B # of a make that runs this
prefix=$scratch/prefix
cuda=$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")
if make --no-print-directory B="$BUILD" PREFIX="$prefix" install >"$scratch/log" 2>&1 && [ -x "$prefix/bin/nojit" ] &&
    [ -f "$prefix/share/man/man1/nojit.1" ] && [ -f "$prefix/share/bash-completion/completions/nojit" ]; then
    ok "install"
else
    not_ok "install" "$(tail -n 3 "$scratch/log")"
fi
cp -r examples/own-kernel "$scratch/project"
if PKG_CONFIG_PATH=$prefix/lib/pkgconfig CUDA_HOME=$cuda make -C "$scratch/project" ARCHS="sm_75 sm_90 sm_121" run >"$scratch/log" 2>&1 &&
    grep -q 'softcap on .*: worst error' "$scratch/log"; then
    ok "own kernel builds, passes blobcheck and runs"
else
    not_ok "own kernel builds, passes blobcheck and runs" "$(tail -n 5 "$scratch/log")"
fi
if grep -q '2 keys x 3 archs' "$scratch/log"; then ok "blobcheck saw its keys"; else not_ok "blobcheck saw its keys" "$(tail -n 5 "$scratch/log")"; fi
if echo '#include "nojit.h"' | "${CC:-cc}" -std=c11 -Wall -Werror -I"$prefix/include" -fsyntax-only -x c - &&
    echo '#include "nojit.h"' | g++ -Wall -Werror -I"$prefix/include" -fsyntax-only -x c++ -; then
    ok "the header stands alone, in C and C++"
else
    not_ok "the header stands alone, in C and C++" "see above"
fi
if ldd "$prefix/bin/nojit" | grep -qiE 'cuda|cublas|nvidia|openblas|jansson'; then
    not_ok "no load-time dependency" "$(ldd "$prefix/bin/nojit")"
else
    ok "no load-time dependency"
fi
make --no-print-directory B="$BUILD" PREFIX="$prefix" uninstall >"$scratch/log" 2>&1
if [ -z "$(find "$prefix" -type f)" ]; then ok "uninstall leaves nothing"; else not_ok "uninstall leaves nothing" "$(find "$prefix" -type f)"; fi
finish
