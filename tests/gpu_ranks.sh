#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpu_ranks.sh [host]: runs that several ranks share, on real GPUs with a real NCCL, bit for bit what one GPU computes for as many ranks. Where there
# is one GPU alone, two ranks share it as two hosts would, over sockets. NOJIT_NCCL names libnccl.so.2 where it is not found by itself. `host` is
# what depends on the number of GPUs alone, on all that there are: bits, a teacher in parts, kills, half of them and all again.
#   DEVICE=cuda GPUS=those there are MODEL=nojit-small SHAPE='--batch-size 4 --seq-len 256' STEPS=600   smaller ones for a try on the CPU
set -u
part=${1:-all}
: "${BUILD:=build}" "${DEVICE:=cuda}" "${GPUS:=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')}"
: "${MODEL:=nojit-small}" "${SHAPE:=--batch-size 4 --seq-len 256}" "${STEPS:=600}"
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch
export XDG_CACHE_HOME=$d/cache-home NCCL_DEBUG=WARN
gpus=$GPUS ranks=2
if [ "$part" = host ]; then ranks=$gpus; fi
if [ "$gpus" -lt 1 ] || [ "$ranks" -lt 2 ]; then echo "gpu_ranks.sh: GPUs there are $gpus" >&2 && exit 2; fi
doctor=$("$nojit" doctor --device "$DEVICE")
echo "$doctor" | grep -i nccl

cp README.md "$d/text.txt"
cat docs/*.md >>"$d/text.txt"
head -c 20000 docs/choosing.md >"$d/held.txt"
"$nojit" init --preset "$MODEL" --out "$d/teacher" >/dev/null
"$nojit" init --preset "$MODEL" --seed 2 --out "$d/student" >/dev/null
# shellcheck disable=SC2206 # words
run=("$nojit" distill --teacher "$d/teacher" --student "$d/student" --data "$d/text.txt" --device "$DEVICE" $SHAPE
    --grad-accum $((2 * ranks)) --steps 20 --lr 1e-3 --save-every 10 --gemm-table none
    --eval-data "$d/held.txt" --eval-every 10)
saved=10
losses() { sed -E 's/, "tokens_per_second.*//' "$1/metrics.jsonl"; }
same() { # NAME RUN RUN
    if [ -s "$2/metrics.jsonl" ] && [ "$(losses "$2")" = "$(losses "$3")" ] && cmp -s "$2"/*model.safetensors "$3"/*model.safetensors &&
        cmp -s "$2/checkpoint-$saved/state.bin" "$3/checkpoint-$saved/state.bin"; then
        ok "$1"
    else
        not_ok "$1" "$(diff <(losses "$2") <(losses "$3") | head -3; tail -n 3 "$3.log")"
    fi
}
# As on a host of its own: rank RANK of two, on GPU RANK, or on the only one.
as_host() { # RANK OUT OPTION...
    env RANK=$1 WORLD_SIZE=2 LOCAL_RANK=$1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$port NCCL_HOSTID=host$1 NCCL_P2P_DISABLE=1 \
        NCCL_SHM_DISABLE=1 NCCL_SOCKET_IFNAME=lo "${run[@]}" --out "$2" "${@:3}"
}
over_sockets() { # OUT OPTION...
    local pid
    port=$((20000 + RANDOM % 10000))
    as_host 1 "$@" >"$1.1.log" 2>&1 &
    pid=$!
    as_host 0 "$@" >"$1.log" 2>&1 || true
    wait $pid || cat "$1.1.log"
}
shared() { # NAME, OUT of one GPU, OPTION...: as two hosts and, where there are as many GPUs, as one
    if [ "$part" = all ]; then
        over_sockets "$2$suffix-sockets" "${@:3}"
        same "$1: two ranks over sockets" "$2" "$2$suffix-sockets"
    fi
    [ "$gpus" -ge "$ranks" ] || return 0
    "${run[@]}" "${@:3}" --gpus "$ranks" --out "$2$suffix-gpus" >"$2$suffix-gpus.log" 2>&1 || cat "$2$suffix-gpus.log"
    same "$1: --gpus $ranks" "$2" "$2$suffix-gpus"
}
variant() { # NAME OPTION...
    "${run[@]}" "${@:2}" --virtual-ranks "$ranks" --out "$d/$1" >"$d/$1.log" 2>&1 || cat "$d/$1.log"
    suffix='' shared "$1" "$d/$1" "${@:2}"
}
shard() { # NAME OPTION...: of a variant that has run
    suffix=-shard shared "$1, the teacher in parts" "$d/$1" "${@:2}" --teacher-shard
}
variant plain
grep -oh "^$ranks ranks.*" "$d"/plain-*.log
if [ "$DEVICE" = cuda ] && [ "$gpus" -ge "$ranks" ]; then # of NCCL's memory: NVLink, or less on other links
    estimate=$("$nojit" plan --json --student "$d/student" --seq-len 256 --device "$DEVICE" --gpus "$ranks" | sed -E 's/.*"comm_bytes_estimate": ([0-9]+).*/\1/')
    taken=$(sed -nE 's/.*"comm_bytes": ([0-9]+),?/\1/p' "$d/plain-gpus/receipt.json")
    echo "NCCL took $taken bytes, $estimate estimated"
    ok_if "NCCL takes no more than a quarter above its estimate" "$taken, $estimate" [ "$taken" -le $((estimate * 5 / 4)) ]
fi
if [ "$part" = all ]; then
    variant bf16-state --optimizer-state bf16
    variant float32 --dtype float32
    variant bf16-gradients --reduce-dtype bf16
    variant lora --lora-r 8 --lora-dropout 0.1
    variant recomputed --recompute block
    for type in fp8 q8_0 q4_k; do
        variant $type --teacher-dtype $type
        shard $type --teacher-dtype $type
    done
fi
shard plain
if [ "$part" = all ] && [ "$gpus" -ge 2 ]; then
    for setting in NCCL_ALGO=Ring NCCL_PROTO=Simple NCCL_PROTO=LL NCCL_P2P_DISABLE=1; do
        env "$setting" "${run[@]}" --gpus 2 --out "$d/$setting" >"$d/$setting.log" 2>&1 || cat "$d/$setting.log"
        same "$setting changes no bit" "$d/plain" "$d/$setting"
    done
fi

# Killed at random moments, and resumed: over sockets, and on GPUs. SEED makes the moments.
run+=(--steps "$STEPS")
saved=$STEPS
RANDOM=${SEED:-7}
"${run[@]}" --virtual-ranks "$ranks" --out "$d/whole" >"$d/whole.log" 2>&1 || cat "$d/whole.log"
killed() { # OUT COMMAND...: two times
    local i out=$1 pid victim
    for i in 1 2; do
        "${@:2}" >>"$out.log" 2>&1 &
        pid=$!
        sleep $((4 + RANDOM % 4)).$((RANDOM % 10))
        mapfile -t victim < <(pgrep -f -- "--out $out( |\$)" | tail -n "$ranks")
        if [ ${#victim[@]} = 0 ]; then not_ok "kill $i" "the run had ended"; else kill -KILL "${victim[$((RANDOM % ${#victim[@]}))]}"; fi
        wait $pid
    done
    "${@:2}" >"$out.log" 2>&1 || cat "$out.log"
    grep -m 1 '^continuing from' "$out.log"
}
if [ "$part" = all ]; then
    killed "$d/killed-sockets" over_sockets "$d/killed-sockets" --resume auto
    same "killed at random moments: over sockets" "$d/whole" "$d/killed-sockets"
fi
if [ "$gpus" -ge 2 ]; then
    killed "$d/killed" "${run[@]}" --gpus "$ranks" --out "$d/killed" --resume auto
    same "killed at random moments: --gpus $ranks" "$d/whole" "$d/killed"
fi
if [ "$gpus" -ge 2 ]; then # on all, on half of them, on all
    half=$((gpus / 2))
    run=("${run[@]}" --grad-accum "$gpus" --lr-schedule constant)
    parted() { # OUT HALF ALL: options that are --gpus or --virtual-ranks
        "${run[@]}" "$3" "$gpus" --steps $((STEPS / 3)) --out "$1" >"$1.log" 2>&1 && "${run[@]}" "$2" "$half" --steps $((2 * STEPS / 3)) --out "$1" --resume auto >>"$1.log" 2>&1 &&
            "${run[@]}" "$3" "$gpus" --steps "$STEPS" --out "$1" --resume auto >>"$1.log" 2>&1 || cat "$1.log"
    }
    parted "$d/parted-here" --virtual-ranks --virtual-ranks
    parted "$d/parted" --gpus --gpus
    same "$gpus, $half, $gpus GPUs" "$d/parted-here" "$d/parted"
fi
for log in plain plain-sockets plain-gpus; do
    [ ! -f "$d/$log.log" ] || { echo "$log:" && grep '^step 20/' "$d/$log.log"; }
done
finish
