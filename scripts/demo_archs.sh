#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# demo_archs.sh BUILD: the architectures that `make demo` builds for: those of BUILD, or else the one of this machine's GPU. All
# would take minutes, and on the CPU none is used; then it is one that compiles quickly.
set -eu
export LC_ALL=C
build=${1:?usage: demo_archs.sh BUILD}
if [ -s "$build/gen/archs.txt" ]; then
    cut -f 1 "$build/gen/archs.txt"
    exit
fi
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .) || capability=
for arch in "sm_${capability}a" "sm_$capability"; do
    if grep -qE "name: $arch,.*default: true" contracts/archs.yaml; then
        echo "$arch"
        exit
    fi
done
if [ -n "$capability" ] && grep -q "name: sm_$capability," contracts/archs.yaml; then echo "sm_$capability"; else echo sm_89; fi
