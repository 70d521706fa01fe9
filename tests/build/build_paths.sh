#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build_paths.sh: a folder whose name make or a shell would take apart is refused in one sentence before anything runs, wherever it
# is named; and so is what gen refuses. Uninstalling removes what was installed, nothing else.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
unset MAKEFLAGS MAKELEVEL MFLAGS B PREFIX DESTDIR # of a make that runs this
top=$PWD
sentence="; use a folder whose name has no space and none of "
for name in 'a b' 'a(b' 'a;touch PWNED;b' 'a;>PWNED;b' 'a&>PWNED' "a'b" 'a$(>PWNED)b' 'a#b' 'a%b'; do
    mkdir "$scratch/$name"
    cp Makefile "$scratch/$name"
    refuses "make in a folder named '$name' is refused" 2 "this folder is .*$sentence" make -C "$scratch/$name" all
    refuses "make B='$name' is refused" 2 "B is .*$sentence" make B="${name//$/$$}" clean
    refuses "make PREFIX='$name' is refused" 2 "PREFIX is .*$sentence" make PREFIX="${name//$/$$}" uninstall
done
if [ -z "$(find "$top" "$scratch" -maxdepth 2 -name PWNED)" ]; then ok "no part of a refused name was run"; else not_ok "no part of a refused name was run" "there is a file PWNED"; fi

mkdir "$scratch/in"
touch "$scratch/in/kept"
refuses "a PREFIX of two words is refused" 2 "PREFIX is '$scratch/in st'$sentence" make PREFIX="$scratch/in st" uninstall
refuses "a DESTDIR of two words is refused" 2 "DESTDIR is '$scratch/in st'$sentence" make DESTDIR="$scratch/in st" uninstall
if [ -e "$scratch/in/kept" ]; then ok "a refused uninstall removes nothing"; else not_ok "a refused uninstall removes nothing" "it did"; fi
mkdir -p "$scratch/in/lib/nojit/include"
touch "$scratch/in/lib/nojit/nojit.mk" "$scratch/in/lib/nojit/include/foreign.h"
make PREFIX="$scratch/in" uninstall >"$scratch/log" 2>&1 || not_ok "uninstall ends with 0" "$(tail -n 3 "$scratch/log")"
if [ -e "$scratch/in/lib/nojit/include/foreign.h" ] && [ ! -e "$scratch/in/lib/nojit/nojit.mk" ]; then
    ok "uninstall leaves the files of others"
else
    not_ok "uninstall leaves the files of others" "$(find "$scratch/in" -type f)"
fi
rm -f "$scratch/in/lib/nojit/include/foreign.h"
make PREFIX="$scratch/in" uninstall >"$scratch/log" 2>&1 || not_ok "uninstall ends with 0" "$(tail -n 3 "$scratch/log")"
if [ ! -e "$scratch/in/lib/nojit" ]; then ok "uninstall leaves no empty folder"; else not_ok "uninstall leaves no empty folder" "$(find "$scratch/in")"; fi

refuses "gen refuses an unknown arch" 2 "^--archs: unknown architecture 'sm_999'; known: " \
    make -f tools/nojit.mk NJ_BUILD="$scratch/own" NJ_CONTRACTS=contracts/kernels NJ_KERNELS=kernels NJ_GEN="$BUILD/gen-bin/gen" \
    NJ_PACK="$BUILD/pack-bin/pack" NJ_ARCHS_YAML=contracts/archs.yaml CUDA_DIR="$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")" \
    ARCHS=sm_999 "$scratch/own/pack/MANIFEST"
finish
