#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_kernels.sh: every kernel against its reference on a T4, an RTX 4090, an H100, an RTX 5090 and a GB10, simulated. A
# kernel whose PTX is, but for the line .target and comments, that of an arch before, is not run again: the proof is the
# hash of the rest. Where it differs from that in griddepcontrol alone, which orders launches and computes nothing, its smallest
# case is: its machine code fits the launcher. Cases of more than MOST_FLOPS operations are left out: 10^7, in `make test-all` 10^9; larger ones
# are for a GPU (more blocks than it takes at once). With EVERY=1 all cases of all kernels are run.
set -eu
. tests/lib/lib.sh
: "${EVERY:=0}" "${MOST_FLOPS:=1e7}"
. tests/lib/simulated.sh

# The table of machine code by key and arch, with the hash of its PTX's body, and of that without griddepcontrol.
bodies() {
    mkdir "$d/body" "$d/code"
    cut -f2 "$BUILD/sim/ptx.txt" | while read -r path; do
        name=${path##*/}
        name=${name%.ptx}
        [[ $held == *" sm_${name##*.sm_} "* && $keys == *" ${name%.sm_*} "* ]] && echo "$BUILD/sim/$path" # else of an earlier build
    done | xargs awk -v to="$d" '
        FNR == 1 { close(body); close(code); name = FILENAME; sub(/.*\//, "", name); sub(/\.ptx$/, "", name)
                   body = to "/body/" name; code = to "/code/" name }
        /^\.target / || /^[ \t]*\/\// || /^[ \t]*\.file/ || /^$/ { next }
        { print >body }
        !/^[ \t]*griddepcontrol\./ { print >code }'
    (cd "$d/body" && sha256sum -- *) >"$d/body.sums"
    (cd "$d/code" && sha256sum -- *) | paste -d' ' "$d/body.sums" - | awk '{ n = $2; sub(/.*\.sm_/, "", n); sub(/\.sm_.*/, "", $2); print $2, n, $1, $3 }' |
        sort -t' ' -k2,2n -k1,1
    rm -r "$d/body" "$d/code"
}
keys=" $(cut -f1 "$BUILD/gen/keys.txt" | tr '\n' ' ')"
bodies >"$d/bodies"
# Keys of an arch that have a body of their own: no arch before has run it under that key. In column 3: whatever it differs in, 4: in what it computes.
fresh() { # ARCH COLUMN
    awk -v arch="$1" -v column="$2" -v every="$EVERY" \
        '!(($1, $column) in seen) || every == 1 { if ($2 == arch) print $1 } { seen[$1, $column] = 1 }' "$d/bodies"
}

# Runs the cases of these keys, up to so many operations.
harness() { # PROFILE MOST-FLOPS KEYS
    [ -n "$3" ] || return 0
    NOJIT_SIM_DEVICE=$1 "$BUILD/harness" --device cuda --most-flops "$2" --filter "@($(paste -sd'|' <<<"$3"))" >"$d/log" 2>&1 && clean &&
        grep -qE "^$(wc -l <<<"$3") of [0-9]+ keys, [0-9]+ passed, 0 failed" "$d/log" && echo "     $(tail -n 1 "$d/log"); $(counted)"
}
kernels() { # PROFILE ARCH
    local own waiting most=$MOST_FLOPS
    [ "$EVERY" = 0 ] || most=inf
    own=$(fresh "$2" 4)
    waiting=$(comm -23 <(fresh "$2" 3) <(echo "$own"))
    if harness "$1" $most "$own" && harness "$1" 0 "$waiting"; then
        ok "kernels on $1 agree with their references"
        echo "     the PTX of $(($(grep -c " $2 " "$d/bodies") - $(wc -w <<<"$own"))) is that of an arch before, but for griddepcontrol in $(wc -w <<<"$waiting")"
    else
        grep -E '^FAIL|RERUN' "$d/log" | head -n 5
        not_ok "kernels on $1 agree with their references" "$(tail -n 1 "$d/log"); $(counted)"
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
if [ $tested = 0 ]; then not_ok "this build has code for a simulated GPU" "none of $profiles has code here:$held"; fi
finish
