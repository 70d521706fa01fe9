#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# library_search.sh: no code runs of a cuBLASLt or NCCL that others could have put there, that is another library, or that is not used, in a run
# or in doctor, which says why. What runs is seen by a library that makes the file $ran when it is opened.
set -eu
. tests/lib/lib.sh
sim=$PWD/$BUILD/sim
[[ "$BUILD" != /* ]] || sim=$BUILD/sim
export ran=$scratch/ran NOJIT_SIM_DEVICE=h100 NOJIT_NCCL=$scratch/none
unset NOJIT_CUBLASLT CUDA_HOME CUDA_PATH CONDA_PREFIX VIRTUAL_ENV
export LD_LIBRARY_PATH=$no_driver
cat >"$scratch/other.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void opened(void)
{
    fclose(fopen(getenv("ran"), "w"));
}
END
lib=libcublasLt.so.13
"${CC:-cc}" -shared -fPIC -Wl,-soname,$lib -o "$scratch/$lib" "$scratch/other.c"
"${CC:-cc}" -shared -fPIC -Wl,-soname,libother.so.1 -o "$scratch/libother.so.1" "$scratch/other.c"
umask 022
mkdir -p "$scratch"/{prefix/{bin,lib},flat/unpacked,flat/lib,named,open,beside/lib}
cp "$BUILD/nojit" "$scratch/prefix/bin/nojit"
ln "$scratch/prefix/bin/nojit" "$scratch/flat/unpacked/nojit"
ln "$scratch/prefix/bin/nojit" "$scratch/beside/nojit"
cp "$scratch/$lib" "$scratch/prefix/lib/"
cp "$scratch/$lib" "$scratch/flat/lib/"
cp "$scratch/$lib" "$scratch/named/"

# opens yes|no NAME REGEX COMMAND...: whether a planted library is opened, and what the command says.
opens() {
    local want=$1 name=$2 pattern=$3 got=no
    shift 3
    rm -f "$ran"
    env "$@" >"$scratch/out" 2>&1 || true
    [ ! -e "$ran" ] || got=yes
    if [ $got = "$want" ] && grep -qE -- "$pattern" "$scratch/out"; then
        ok "$name"
    else
        not_ok "$name" "opened: $got, expected $want; no '$pattern' in: $(grep -iE "cublas|nccl" "$scratch/out" | head -c 600)"
    fi
}
driver=LD_LIBRARY_PATH=$sim
doctor=("$scratch/prefix/bin/nojit" doctor)
named=("NOJIT_CUBLASLT=$scratch/named" "$driver" "${doctor[@]}")

# ---- where it is looked for ----
opens yes "a cuBLASLt in lib beside bin is opened" "prefix/bin/../lib/$lib.*has no function" "$driver" "${doctor[@]}"
opens no "cuBLASLt is not opened without a driver" "prefix/bin/../lib/$lib: version 13.*not opened, without a driver" "${doctor[@]}"
opens no "lib beside a folder that is not bin is not opened" 'verdict|no machine code' "$driver" "$scratch/flat/unpacked/nojit" doctor
if grep -q "flat/" "$scratch/out"; then not_ok "lib beside a folder that is not bin is not looked at" "$(grep flat/ "$scratch/out")"; else ok "lib beside a folder that is not bin is not looked at"; fi
cp "$sim/$lib" "$scratch/beside/"
cp "$scratch/$lib" "$scratch/beside/lib/"
opens no "a cuBLASLt behind the one that is used is not opened" "beside/lib/$lib: version 13.*not opened, since one is used" "$driver" "$scratch/beside/nojit" doctor
env="$scratch/env[1]"
packages=lib/python3.11/site-packages/nvidia/cu13/lib
mkdir -p "$env/bin" "$env/$packages"
ln "$scratch/prefix/bin/nojit" "$env/bin/nojit"
cp "$scratch/$lib" "$env/$packages/"
opens yes "a cuBLASLt of Python packages beside bin comes before the loader's" "bin/../$packages/$lib.*has no function" "$driver" "$env/bin/nojit" doctor
opens yes "the cuBLASLt that NOJIT_CUBLASLT names is opened" "named/$lib.*has no function" "${named[@]}"
cp "$scratch/libother.so.1" "$scratch/named/$lib"
opens no "another library named libcublasLt is not opened" "named/$lib: its SONAME is 'libother.so.1'" "${named[@]}"
echo text >"$scratch/named/$lib"
opens no "a file that is no library is not opened" "named/$lib: no library" "${named[@]}"
cp "$scratch/$lib" "$scratch/named/$lib"

mkdir -p "$scratch"/cuda-13/{targets/host/lib,alternatives} # as CUDA is installed
cp "$scratch/$lib" "$scratch/cuda-13/targets/host/lib/$lib.1.0"
ln -s $lib.1.0 "$scratch/cuda-13/targets/host/lib/$lib"
ln -s targets/host/lib "$scratch/cuda-13/lib64"
ln -s "$scratch/cuda-13" "$scratch/cuda-13/alternatives/cuda"
ln -s "$scratch/cuda-13/alternatives/cuda" "$scratch/cuda"
opens yes "a cuBLASLt behind links upon links is opened" "cuda/lib64/$lib.*has no function" "NOJIT_CUBLASLT=$scratch/cuda/lib64" "$driver" "${doctor[@]}"
opens no "the version of a cuBLASLt behind links is known by its file" "cuda/lib64/$lib: version 13.1.0[,;].* not opened, without a driver" \
    "NOJIT_CUBLASLT=$scratch/cuda/lib64" "${doctor[@]}"
ln -s round "$scratch/round"
opens no "a link to itself is not followed" "round: too many links" "NOJIT_CUBLASLT=$scratch/round" "$driver" "${doctor[@]}"

# ---- what others can write ----
writable() { # NAME MODE PATH: doctor and a run refuse it
    local before
    before=$(stat -c %a "$3")
    chmod "$2" "$3"
    opens no "$1" "others can write to $3" "${named[@]}"
    opens no "$1 by a run" "others can write to $3" "NOJIT_CUBLASLT=$scratch/named" "$driver" "${doctor[@]}" --device cuda
    chmod "$before" "$3"
}
writable "a cuBLASLt that all can write is not opened" 666 "$scratch/named/$lib"
writable "a cuBLASLt in a folder that all can write is not opened" 777 "$scratch/named"
writable "a cuBLASLt in a folder that all can write but not remove from is not opened" 1777 "$scratch/named"
chmod 777 "$scratch/open"
mkdir "$scratch/open/inner"
cp "$scratch/$lib" "$scratch/open/inner/"
ln -s "$scratch/named/$lib" "$scratch/open/link.so"
ln -s ../open/inner "$scratch/named/way"
opens no "a cuBLASLt below a folder that all can write is not opened" "others can write to $scratch/open\$|others can write to $scratch/open[;) ]" \
    "NOJIT_CUBLASLT=$scratch/open/inner" "$driver" "${doctor[@]}"
opens no "a link to a cuBLASLt in a folder that all can write is not followed" "others can write to $scratch/open" "NOJIT_CUBLASLT=$scratch/open/link.so" "$driver" "${doctor[@]}"
opens no "a link into a folder that all can write is not followed" "others can write to .*/named/../open" "NOJIT_CUBLASLT=$scratch/named/way/$lib" "$driver" "${doctor[@]}"
chmod 1777 "$scratch/open"
opens yes "a cuBLASLt in a folder of one's own in one as /tmp is opened" "has no function" "NOJIT_CUBLASLT=$scratch/open/inner" "$driver" "${doctor[@]}"
chmod 777 "$scratch/open"
cp "$sim/libcuda.so.1" "$scratch/open/"
opens no "the loader's folders are left out where others can write to one" "driver: loader search skipped: LD_LIBRARY_PATH contains $scratch/open: others can write" \
    "LD_LIBRARY_PATH=$sim:$scratch/open" "${doctor[@]}"

# ---- NCCL, in the same places ----
nccl=libnccl.so.2
{
    cat "$scratch/other.c"
    sed -n 's/.*X([^"]*"\(nccl[A-Za-z]*\)".*/int \1(void) { return 0; }/p' runtime/cuda/api.h | grep -v -e ncclGetVersion -e ncclAlltoAll # which came in 2.28
    echo 'int ncclGetVersion(int *out) { return !(*out = atoi(getenv("version"))); }'
} >"$scratch/nccl.c"
"${CC:-cc}" -shared -fPIC -Wl,-soname,$nccl -o "$scratch/$nccl" "$scratch/nccl.c"
export version=22703 NOJIT_CUBLASLT=$sim
cp "$scratch/$nccl" "$scratch/prefix/lib/"
cp "$scratch/$nccl" "$scratch/named/"
mkdir -p "$env/lib/python3.11/site-packages/nvidia/nccl/lib"
cp "$scratch/$nccl" "$env/lib/python3.11/site-packages/nvidia/nccl/lib/"
found="NOJIT_NCCL=$scratch/named"
opens yes "an NCCL in lib beside bin is used" "NCCL: .*prefix/bin/../lib/$nccl: 2.27.3, used" NOJIT_NCCL= "$driver" "${doctor[@]}"
opens no "NCCL is not opened without a driver" "NCCL: .*prefix/bin/../lib/$nccl: version 2.*not opened, without a driver" NOJIT_NCCL= "${doctor[@]}"
opens yes "an NCCL of Python packages beside bin is used" "NCCL: .*bin/../lib/python3.11/site-packages/nvidia/nccl/lib/$nccl: 2.27.3, used" \
    NOJIT_NCCL= "$driver" "$env/bin/nojit" doctor
opens yes "the NCCL that NOJIT_NCCL names is used" "NCCL: .*named/$nccl: 2.31.0, used" version=23100 "$found" "$driver" "${doctor[@]}"
opens yes "an NCCL that is too old is refused" "NCCL: .*named/$nccl: is version 2.26.2, not 2.27 or newer" version=22602 "$found" "$driver" "${doctor[@]}"
opens yes "an NCCL of another major version is refused" "NCCL: .*named/$nccl: is version 3.0.0, not 2.27 or newer" version=30000 "$found" "$driver" "${doctor[@]}"
chmod 777 "$scratch/named"
opens no "an NCCL in a folder that all can write is not opened" "NCCL: .*named/$nccl: others can write" "$found" "$driver" "${doctor[@]}"
chmod 755 "$scratch/named"
cp "$scratch/libother.so.1" "$scratch/named/$nccl"
opens no "another library named libnccl is not opened" "NCCL: .*named/$nccl: its SONAME is 'libother.so.1'" "$found" "$driver" "${doctor[@]}"
opens no "doctor says that NCCL is needed for several GPUs only" "NCCL: none found, needed for several GPUs only; .*pip package nvidia-nccl-cu13.*NOJIT_NCCL" "$driver" "${doctor[@]}"
if grep -q "^verdict   ready" "$scratch/out"; then ok "one GPU does without NCCL"; else not_ok "one GPU does without NCCL" "$(tail -n 3 "$scratch/out")"; fi
unset NOJIT_CUBLASLT

env "NOJIT_CUBLASLT=/"$'no\e[31mne' "$BUILD/nojit" doctor --device cpu >"$scratch/shown"
if grep -qF '/no?[31mne' "$scratch/shown" && ! grep -qF $'\e' "$scratch/shown"; then
    ok "escapes in names of libraries are not sent to the terminal"
else
    not_ok "escapes in names of libraries are not sent to the terminal" "$(cat -v "$scratch/shown")"
fi

# ---- whose it is ----
if [ "$(id -u)" = 0 ]; then
    chgrp 12345 "$scratch/named"
    writable "a cuBLASLt in a folder that a group can write is not opened" 775 "$scratch/named"
    chown 12345 "$scratch/named"
    chmod 775 "$scratch/named"
    opens yes "a cuBLASLt in a folder for the group of its owner alone is opened" "has no function" "${named[@]}"
    chown -R 12345 "$scratch/prefix/lib"
    opens no "a cuBLASLt of another user is not opened" "prefix/bin/../lib belongs to user 12345" "$driver" "${doctor[@]}"
fi
finish
