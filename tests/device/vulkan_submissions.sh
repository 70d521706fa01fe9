#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# vulkan_submissions.sh: a GPU by Vulkan gets as much work at a time as it does in a tenth of a second, and its results do not
# follow from that.
set -eu
. tests/lib/lib.sh
. tests/lib/vulkan.sh
fresh

# ---- in pieces ----
head -c 3000 LICENSE >"$d/text.txt"
"$nojit" init --preset nojit-tiny --out "$d/model" >/dev/null
train() { "$nojit" train --model "$d/model" --data "$d/text.txt" --device vulkan --seq-len 48 --batch-size 2 --steps 3 --out "$@"; }
disturbed caching=1 train "$d/run" >"$d/log" 2>&1 || not_ok "a run with Vulkan runs to its end" "$(tail -n 2 "$d/log")"
pieces() { sed -nE '$s/.*; ([0-9]+) dispatches in [0-9]+ pieces, ([0-9]+) submissions; .*/\1 \2/p' "$d/calls"; }
read -r whole few < <(pieces)
NOJIT_VULKAN_SUBMIT=2e5 disturbed caching=1 train "$d/cut" >"$d/log" 2>&1 || not_ok "a run in short submissions runs to its end" "$(tail -n 2 "$d/log")"
read -r cut many < <(pieces)
ok_if "long launches are cut and submitted in pieces" "$whole launches in $few submissions, $cut in $many" [ "$cut" -gt $((2 * whole)) -a "$many" -gt $((3 * few)) ]
ok_if "launches that are cut give the same bits" "the weights differ" cmp -s "$d/run/model.safetensors" "$d/cut/model.safetensors"
refuses "a NOJIT_VULKAN_SUBMIT that is no number is refused" 2 '^nojit doctor: --device vulkan: NOJIT_VULKAN_SUBMIT=many: operations of a submission' \
    env NOJIT_VULKAN_SUBMIT=many "$nojit" doctor --device vulkan

# ---- as many as the GPU is fast ----
# A GPU is timed at the first start; a driver that runs on the CPU is one here, whose timestamps say that each launch and each copy takes
# so many nanoseconds: the GEMM has 2 x 1024^3 operations, the copy reads and writes 64 MiB.
gpu() { # DISPATCH COPY
    disturbed "caching=1,type=2,dispatch=$1,copy=$2" "$nojit" doctor --device vulkan --verbose | sed -nE 's/^work      in submissions of at most //p'
}
was=$(disturbed caching=1 "$nojit" doctor --device vulkan --verbose | grep '^work')
ok_if "a Vulkan driver that runs on the CPU is not timed" "$was" [ "$was" = 'work      in submissions of at most 2e+10 operations' ]
fresh
tenth='2.15e+11 operations; timed at the first start: a GEMM at 2147 GFLOP/s, a copy at 1342.2 GB/s'
was=$(gpu 1000000 100000)
ok_if "a GPU by Vulkan is timed and gets a tenth of a second at a time" "$was" [ "$was" = "$tenth" ]
was=$(gpu 9000000 100000)
ok_if "a GPU by Vulkan gets the same work at the next start" "$was" [ "$was" = "$tenth" ]
was=$(NOJIT_VULKAN_SUBMIT=3e9 gpu 1000000 100000)
ok_if "NOJIT_VULKAN_SUBMIT sets the work at a time" "$was" [ "$was" = "3e+09 operations" ]
fresh
given=$(NOJIT_VULKAN_SUBMIT=2e5 gpu 1000000 100000) again=$(gpu 1000 100)
ok_if "with NOJIT_VULKAN_SUBMIT nothing is timed" "$given, then $again" [ "$given" = "2e+05 operations" -a "${again%% *}" = 1e+12 ]
fresh
was=$(gpu 1000000 1000000)
ok_if "a GPU with slow memory gets less work at a time" "$was" [ "${was%% *}" = 5.37e+10 ]

# ---- programs that do not try the kernels ----
ran() { # TYPE OF DEVICE: launches of a `plan`, in a cache that holds nothing
    rm -rf "$d/cache"
    disturbed "caching=1,type=$1" "$nojit" plan --student "$d/model" --device vulkan --seq-len 48 >"$d/log" 2>&1 || not_ok "a plan with Vulkan is printed" "$(tail -n 2 "$d/log")"
    sed -nE '$s/.*; ([0-9]+) dispatches.*/\1/p' "$d/calls"
}
of_cpu=$(ran 4) of_gpu=$(ran 2)
ok_if "a GPU by Vulkan is timed also where its kernels are not tested" "$of_cpu and $of_gpu launches" [ "$of_cpu" = 0 -a "$of_gpu" -gt 0 ]
ok_if "a GPU whose kernels were not tested is not kept as one that has passed" "$(ls "$d/cache/nojit")" [ -z "$(compgen -G "$d/cache/nojit/*.tested")" ]
finish
