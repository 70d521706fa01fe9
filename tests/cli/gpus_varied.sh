#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpus_varied.sh: runs on two to eight simulated GPUs, bit for bit what one process computes for as many ranks: whatever NCCL does otherwise from one run to
# the next, with other objectives, optimizers and batches. Ranks whose GPU or NCCL is another one.
set -eu
. tests/lib/lib.sh
. tests/lib/ranks.sh
needs sm_75 sm_89 sm_90a

distill virtual-cuda-3 "${few[@]}" --device cuda --virtual-ranks 3
# Things that NCCL may do differently from run to run: the order in which parts arrive, and which rank is late. It computes no sums here. One stream
# does its work at once, which reveals a transfer that does not wait for the data that it sends.
for set in ORDER=1 ORDER=-1 LATE=0:20 LATE=2:20; do
    rm -rf "$d/varied"
    env NOJIT_SIM_EAGER=1 "NOJIT_SIM_NCCL_$set" "$nojit" distill "${few[@]}" --device cuda --gpus 3 --out "$d/varied" >"$d/varied.log" 2>"$d/varied.err" || true
    same "parts that arrive in another order give the same bits" virtual-cuda-3 varied
done
if grep -aoE 'nccl(All|)Reduce[A-Za-z]*' "$nojit" >"$d/sums"; then not_ok "NCCL is asked for no sum" "$(sort -u "$d/sums")"; else ok "NCCL is asked for no sum"; fi
# More ranks, of another arch, and float16 with its loss scale.
NOJIT_SIM_DEVICE=t4,t4,t4,t4,t4,t4,t4,t4
for ranks in 4 8; do
    distill "virtual-$ranks" "${few[@]}" --batch-size 1 --grad-accum 8 --device cuda --virtual-ranks $ranks
    distill "gpus-$ranks" "${few[@]}" --batch-size 1 --grad-accum 8 --device cuda --gpus $ranks || true
    same "more GPUs give the bits of one process" virtual-$ranks gpus-$ranks
    rm -r "$d/virtual-$ranks" "$d/gpus-$ranks"
done
NOJIT_SIM_DEVICE=rtx4090,rtx4090,rtx4090
# Other objectives, optimizers and batches that are found: of a shorter text, all of whose rows they are.
head -c 800 LICENSE >"$d/text.txt"
while IFS="|" read -r name options; do
    for ranks in --virtual-ranks --gpus; do
        rm -rf "$d/of$ranks"
        # shellcheck disable=SC2086 # options
        distill "of$ranks" "${few[@]}" --device cuda $ranks 2 $options || true
    done
    same "$name" of--virtual-ranks of--gpus
done <<'SETS'
reverse KL on two GPUs gives the bits of one process|--beta 1 --temperature 2 --recompute block
a clipped update of bf16 moments on two GPUs gives the bits of one process|--kd-ratio 0 --optimizer-state bf16 --max-grad-norm 0.01
an automatic batch on two GPUs gives the bits of one process|--batch-size auto --memory-budget 0.05 --steps 2
packed rows on two GPUs give the bits of one process|--packing bfd --dtype float32 --lr-schedule cosine
adapters on two GPUs give the bits of one process|--lora-r 4
SETS
head -c 3000 LICENSE >"$d/text.txt"
# A rank whose NCCL is another one, or whose GPU is.
another() { # RANK COMMAND...
    if [ "$1" = 1 ]; then torchrun 1 env "$it" "${@:2}"; else torchrun 0 "${@:2}"; fi
}
differs() { # NAME SETTING DIFFERENCE
    it=$2
    launched another differs "${few[@]}" --device cuda
    if [ $status0 != 0 ] && [ $status1 != 0 ] && [ ! -e "$d/differs" ] && [ "$(cat "$d/differs.err" "$d/differs.1.err" | sed -E 's/rank [01]: //' | sort -u)" = \
        "nojit distill: $3 on rank 0; it must be the same on all ranks" ]; then
        ok "$1"
    else
        not_ok "$1" "$status0 $status1 $(cat "$d/differs.err" "$d/differs.1.err")"
    fi
}
NOJIT_SIM_NCCL_VERSION=22703 distill older "${few[@]}" --device cuda --gpus 3 || true
same "NCCL 2.27, without copy engines, gives the same bits" virtual-cuda-3 older
differs "another NCCL on one rank is refused" NOJIT_SIM_NCCL_VERSION=22703 "the version of NCCL is '22703' on rank 1 but '22803'"
differs "another kind of GPU on one rank is refused" NOJIT_SIM_DEVICE=rtx4090,h100 "the architecture of the GPU is 'sm_90a' on rank 1 but 'sm_89'"
finish
