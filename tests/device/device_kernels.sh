#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_kernels.sh: every kernel against its reference on a T4, an RTX 4090, an H100, an RTX 5090 and a GB10, simulated. A
# kernel whose PTX is, but for the line .target and comments, that of an arch before, is not run again: the proof is the
# hash of the rest. With EVERY=1 all are run.
set -eu
. tests/lib/lib.sh
: "${EVERY:=0}"
. tests/lib/simulated.sh

# What the table of machine code says of each key and arch, with the hash of its PTX's body.
bodies() {
    cut -f2 "$BUILD/sim/ptx.txt" | while read -r path; do
        name=${path##*/}
        name=${name%.ptx}
        [[ $held == *" sm_${name##*.sm_} "* ]] && grep -q "^${name%.sm_*}"$'\t' "$BUILD/gen/keys.txt" || continue # of an earlier build
        printf '%s %s %s\n' "${name%.sm_*}" "${name##*.sm_}" \
            "$(sed -E '/^\.target /d; /^\/\//d; /^[[:space:]]*\.file/d' "$BUILD/sim/$path" | sha256sum | cut -c1-32)"
    done | sort -t' ' -k2,2n -k1,1
}
bodies >"$d/bodies"
# Keys of an arch that have a body of their own: no arch before has run it under that key.
fresh() { awk -v arch="$1" -v every="$EVERY" '!(($1, $3) in seen) || every == 1 { if ($2 == arch) print $1 } { seen[$1, $3] = 1 }' "$d/bodies"; }

kernels() { # PROFILE ARCH
    local keys all new
    keys=$(fresh "$2")
    all=$(grep -c " $2 " "$d/bodies")
    new=$(echo "$keys" | wc -l)
    if NOJIT_SIM_DEVICE=$1 "$BUILD/harness" --device cuda --filter "@($(echo "$keys" | paste -sd'|'))" >"$d/log" 2>&1 && clean &&
        grep -qE "^$new of [0-9]+ keys, [0-9]+ passed, 0 failed" "$d/log"; then
        ok "kernels on $1"
        echo "     $(tail -n 1 "$d/log"); the PTX of $((all - new)) is that of an arch before; $(counted)"
    else
        grep -E '^FAIL|RERUN' "$d/log" | head -n 5
        not_ok "kernels on $1" "$(tail -n 1 "$d/log"); $(counted)"
    fi
}

tested=0
for p in $profiles; do
    arch=${p#*:}
    [[ $held != *" sm_${arch}a "* ]] || arch=${arch}a
    [[ $held == *" sm_$arch "* ]] || continue
    tested=$((tested + 1))
    kernels "${p%:*}" "$arch"
done
if [ $tested = 0 ]; then not_ok "GPUs" "none of $profiles has code here:$held"; fi
finish
