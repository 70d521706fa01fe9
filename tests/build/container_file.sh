#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# container_file.sh: of the Containerfile, what can be known without a container engine: its commands are ones that a shell can read, the
# image is not root's, and its last step, run on a tarball of `make dist` and a stand-in for the wheel of cuBLAS, gives a tree in which
# nojit finds cuBLASLt and every licence is there. No image is built.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
build=$(realpath "$BUILD")
# Its instructions, one a line.
sed -e '/^#/d' -e '/^$/d' -e ':a' -e '/\\$/{N;s/\\\n *//;ba' -e '}' Containerfile >"$scratch/steps"
known() { ! grep -vE '^(FROM|ARG|RUN|WORKDIR|COPY|ENV|USER|ENTRYPOINT|CMD) ' "$scratch/steps"; }
succeeds "instructions of the Containerfile are known" known
commands() { sed -n 's/^RUN //p' "$scratch/steps" >"$scratch/run" && [ "$(wc -l <"$scratch/run")" -ge 5 ] && sh -n "$scratch/run"; }
succeeds "commands of the Containerfile can be read by a shell" commands
succeeds "the container does not run as root" grep -qE '^USER [1-9][0-9]*:[1-9][0-9]*$' "$scratch/steps"
pinned() { # for both machines, a version that the wheel takes
    local wanted
    wanted=$(sed -nE 's/^Requires-Dist: nvidia-cublas>=([0-9]+),.*/\1/p' scripts/wheel.py)
    [ -n "$wanted" ] && grep -qE "^nvidia-cublas==$wanted(\.[0-9]+)+( --hash=sha256:[0-9a-f]{64}){2}\$" scripts/cublas-wheel.txt
}
succeeds "the Containerfile pins cuBLAS" pinned

# ---- what the image holds ----
root=$scratch/root
mkdir -p "$root/src/build" "$root/wheels/cublas/nvidia/cu13/lib" "$root/wheels/cublas/nvidia_cublas-13.dist-info/licenses" "$scratch/driver"
cp "$build/sim/libcublasLt.so.13" "$root/wheels/cublas/nvidia/cu13/lib/"
cp "$build/sim/libcuda.so.1" "$scratch/driver/"
echo terms >"$root/wheels/cublas/nvidia_cublas-13.dist-info/licenses/License.txt"
static=$(sed -n 's/^STATIC := //p' mk/trainer.mk)
ln -s "$build/nojit" "$root/src/build/nojit"
"$build/nojit" help --man >"$root/src/build/nojit.1"
ONIG_SRC=$(sed -n 's/^ONIG_SRC := //p' "$BUILD/setup.mk") B=$root/src/build VERSION=0 ARCHS="sm_1" STATIC="$static" \
    BLOBCHECK="$build/blobcheck" scripts/dist.sh >/dev/null
last() { sed -E "s,(^| )/(package|out|wheels),\1$root/\2,g" <(tail -n 1 "$scratch/run") >"$scratch/last" && (cd "$root/src" && umask 022 && sh -e "$scratch/last"); }
succeeds "the last step of the Containerfile gives a tree" last
complete() {
    local l
    for l in $static gcc; do
        case $l in gomp | gcc) l=gcc-libgomp ;; esac
        [ -s "$root/out/share/doc/nojit/licences/lib$l.txt" ] || { echo "no licence of $l" && return 1; }
    done
    [ -s "$root/out/share/doc/nojit/licences/nvidia-cublas.txt" ] && [ -s "$root/out/share/doc/nojit/LICENSE" ] &&
        [ -s "$root/out/share/man/man1/nojit.1" ]
}
succeeds "the container has licences and the man page" complete
found() {
    env -i "LD_LIBRARY_PATH=$scratch/driver" NOJIT_SIM_DEVICE=h100 NOJIT_SELF_TEST=off "$root/out/bin/nojit" doctor >"$scratch/doctor" 2>&1 || true
    grep -E "cuBLASLt: $root/out/bin/../lib/libcublasLt.so.13: .*, used" "$scratch/doctor" || { cat "$scratch/doctor" && return 1; }
}
succeeds "nojit in the container's tree finds cuBLASLt" found
finish
