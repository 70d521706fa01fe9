#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# vulkan_submissions.sh: how much work a GPU by Vulkan gets at a time, and that its results do not follow from that.
set -eu
. tests/lib/lib.sh
. tests/lib/vulkan.sh
fresh

# ---- in pieces ----
head -c 3000 LICENSE >"$d/text.txt"
"$nojit" init --preset nojit-tiny --out "$d/model" >/dev/null
train() { "$nojit" train --model "$d/model" --data "$d/text.txt" --device vulkan --seq-len 48 --batch-size 2 --steps 3 --out "$@"; }
disturbed caching=1 train "$d/run" >"$d/log" 2>&1 || not_ok "a run" "$(tail -n 2 "$d/log")"
pieces() { sed -nE '$s/.*; ([0-9]+) dispatches in [0-9]+ pieces, ([0-9]+) submissions; .*/\1 \2/p' "$d/calls"; }
read -r whole few < <(pieces)
NOJIT_VULKAN_SUBMIT=2e5 disturbed caching=1 train "$d/cut" >"$d/log" 2>&1 || not_ok "a run in pieces" "$(tail -n 2 "$d/log")"
read -r cut many < <(pieces)
ok_if "long launches are cut, and submitted in pieces" "$whole launches in $few submissions, $cut in $many" [ "$cut" -gt $((2 * whole)) -a "$many" -gt $((3 * few)) ]
ok_if "and give the same bits" "the weights differ" cmp -s "$d/run/model.safetensors" "$d/cut/model.safetensors"
refuses "a number of operations that is none" 2 '^nojit doctor: --device vulkan: NOJIT_VULKAN_SUBMIT=many: operations of a submission' \
    env NOJIT_VULKAN_SUBMIT=many "$nojit" doctor --device vulkan

# ---- as many as the GPU is fast ----
# A GPU is timed at the first start; a driver that runs on the CPU is one here, with a clock by which it is faster.
gpu() { disturbed "caching=1,type=2,ticks=$1" "$nojit" doctor --device vulkan --verbose | sed -nE 's/^work .* at most ([^ ]+) operations(; .*)?$/\1 \2/p'; }
of() { awk -v gflops="$2" -v most="$1" 'BEGIN { n = gflops * 1e8; n = n < 2e10 ? 2e10 : n > 1e12 ? 1e12 : n; exit !(most > 0.98 * n && most < 1.02 * n) }'; }
timed() { sed -nE 's/.*: a GEMM at ([0-9]+) GFLOP.s, a copy at [0-9.]+ GB.s$/\1/p' <<<"$1"; }
was=$(disturbed caching=1 "$nojit" doctor --device vulkan --verbose | grep '^work')
ok_if "a driver that runs on the CPU is not timed" "$was" [ "$was" = 'work      in submissions of at most 2e+10 operations' ]
fresh
was=$(gpu 2000)
ok_if "a GPU is timed, and gets a tenth of a second" "$was" of "${was%% *}" "$(timed "$was")"
ok_if "which is the same at the next start" "$was; $(gpu 9000)" [ "$was" = "$(gpu 9000)" ]
given=$(NOJIT_VULKAN_SUBMIT=3e9 gpu 2000)
ok_if "unless NOJIT_VULKAN_SUBMIT says another number" "$given" [ "$given" = "3e+09 " ]
fresh
given=$(NOJIT_VULKAN_SUBMIT=2e5 gpu 2000) again=$(gpu 1000000)
ok_if "with which nothing is timed" "$given, then $again" [ "$given" = "2e+05 " -a "${again%% *}" = 1e+12 ]
fresh
slow=$(gpu 2000,copies=200)
ok_if "a GPU with slow memory gets less" "$slow" awk -v most="${slow%% *}" -v gflops="$(timed "$slow")" 'BEGIN { exit !(most > 0 && most < 0.7 * 1e8 * gflops) }'

# ---- programs that do not try the kernels ----
ran() { # TYPE OF DEVICE: launches of a `plan`, in a cache that holds nothing
    rm -rf "$d/cache"
    disturbed "caching=1,type=$1" "$nojit" plan --student "$d/model" --device vulkan --seq-len 48 >"$d/log" 2>&1 || not_ok "a plan" "$(tail -n 2 "$d/log")"
    sed -nE '$s/.*; ([0-9]+) dispatches.*/\1/p' "$d/calls"
}
of_cpu=$(ran 4) of_gpu=$(ran 2)
ok_if "a GPU is timed also where its kernels are not tried" "$of_cpu and $of_gpu launches" [ "$of_cpu" = 0 -a "$of_gpu" -gt 0 ]
ok_if "and is not kept as one that has passed" "$(ls "$d/cache/nojit")" [ -z "$(compgen -G "$d/cache/nojit/*.tested")" ]
finish
