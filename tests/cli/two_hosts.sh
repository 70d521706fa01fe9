#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# two_hosts.sh: two ranks in network namespaces, joined by a veth pair, each with a host name and an /etc/hosts of its own: they meet over IPv4, over
# IPv6 and by name, say what is wrong where they cannot, and end on both sides when the link is lost. Tensors of the CPU backend travel through
# shared memory. Needs ip (iproute2) and namespaces, as root has, or as users may have.
set -eu
if [ "${1:-}" != inside ] && command -v ip >/dev/null && unshare --map-root-user --net --uts --mount true 2>/dev/null; then
    exec unshare --map-root-user --net --uts --mount bash "$0" inside
fi
. tests/lib/lib.sh
. tests/lib/compare_runs.sh
if [ "${1:-}" != inside ]; then
    skip "everything" "no namespaces here, or no ip"
    finish
    exit
fi
nojit=$(realpath "$BUILD/nojit") # nsenter changes the folder
d=$scratch/work
mkdir "$d"
export OMP_NUM_THREADS=1 MASTER_PORT=29500 NOJIT_CONNECT_TIMEOUT=30

# ---- two hosts: alpha is this one, where rank 0 is
unshare --net --uts --mount sleep 1000 &
beta=$!
trap 'kill $beta; rm -rf "$scratch"' EXIT
on() { # 0|1 COMMAND...
    if [ "$1" = 0 ]; then "${@:2}"; else nsenter --target $beta --net --uts --mount "${@:2}"; fi
}
separate() { [ "$(readlink /proc/$beta/ns/net)" != "$(readlink /proc/self/ns/net)" ] || { sleep 0.01 && false; }; }
until_true $beta separate
names=(alpha beta)
ip link add v0 type veth peer name v1
ip link set v1 netns $beta
for i in 0 1; do
    on $i hostname ${names[$i]}
    on $i ip link set lo up
    on $i ip address add 10.18.0.$((1 + i))/24 dev v$i
    on $i ip -6 address add fd18::$((1 + i))/64 dev v$i nodad 2>"$scratch/six" || true # a kernel may be without
    on $i ip link set v$i up
done
# Host files as Debian writes them for the own name, and the names of the other hosts.
for i in 0 1; do
    printf '127.0.0.1 localhost\n127.0.1.1 %s\n10.18.0.%d %s\n127.0.1.1 nowhere\n' ${names[$i]} $((2 - i)) ${names[$((1 - i))]} >"$d/hosts$i"
    on $i mount --bind "$d/hosts$i" /etc/hosts
done

"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
run=("$nojit" distill --student "$d/student" --teacher "$d/teacher" --data "$d/text.txt" --batch-size 2 --seq-len 24 --grad-accum 6 --lr 1e-2
    --lr-schedule constant --gemm-table none --device cpu)
rank() { # RANK ADDRESS OUT OPTION...: in $3.RANK.log what it says
    on "$1" env RANK="$1" WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR="$2" "${run[@]}" --out "$3" "${@:4}" >"$3.$1.log" 2>"$3.$1.err"
}
start() { # ADDRESS OUT OPTION...
    rank 1 "$@" &
    pid=("" $!)
    rank 0 "$@" &
    pid[0]=$!
}
end() { # statuses in $status
    status=(0 0)
    wait "${pid[0]}" || status[0]=$?
    wait "${pid[1]}" || status[1]=$?
}
# Each host has a sentence of its own, and one alone.
each_says() { # NAME OUT REGEX REGEX
    local i regex=("$3" "$4")
    for i in 0 1; do
        if [ "${status[$i]}" != 1 ] || [ "$(grep -vc ' waits for rank 0 at ' "$2.$i.err")" != 1 ] || ! grep -qE "${regex[$i]}" "$2.$i.err"; then
            not_ok "$1" "rank $i, status ${status[$i]}, no '${regex[$i]}': $(cat "$2.$i.err")" && return
        fi
    done
    ok "$1"
}

# ---- ways to meet
"${run[@]}" --virtual-ranks 2 --steps 4 --out "$d/virtual" >"$d/virtual.log"
for address in 10.18.0.1 fd18::1 alpha; do
    if [ $address = fd18::1 ] && [ -s "$scratch/six" ]; then
        skip "two hosts train together with rank 0 at $address" "no IPv6: $(head -n 1 "$scratch/six")"
        continue
    fi
    start $address "$d/$address" --steps 4
    end
    if cmp "$d/virtual/model.safetensors" "$d/$address/model.safetensors" >"$scratch/diff" 2>&1; then
        ok "two hosts train together with rank 0 at $address"
    else
        not_ok "two hosts train together with rank 0 at $address" "$(cat "$scratch/diff" "$d/$address".[01].err)"
    fi
done
if grep -q '^2 ranks, 1 on this host (torchrun)$' "$d/alpha.0.log"; then ok "a run on two hosts counts the ranks of each"; else not_ok "a run on two hosts counts the ranks of each" "$(cat "$d/alpha.0.log")"; fi

# ---- doctor, with the adapters of two Sparks as sysfs shows them
sim=$(realpath "$BUILD/sim")
adapter() { # NAME GBIT LANES
    local at=/sys/class/infiniband/$1
    mkdir -p "$at/ports/1" "$at/device"
    echo "4: ACTIVE" >"$at/ports/1/state"
    echo "$2 Gb/sec (4X HDR)" >"$at/ports/1/rate"
    echo "32.0 GT/s PCIe" >"$at/device/current_link_speed"
    echo "$3" >"$at/device/current_link_width"
}
export -f adapter
doctor() { # RANK NAME LANES: of the second adapter; with 0 there is none
    on "$1" unshare --mount env RANK="$1" WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=alpha LD_LIBRARY_PATH="$sim" NOJIT_CUBLASLT="$sim" \
        NOJIT_NCCL="$sim" NOJIT_SIM_DEVICE=h100 NOJIT_SIM_LOG="$d/sim" TMPDIR="$scratch" bash -ec \
        'mount -t tmpfs none /sys/class; adapter one 200 4; [ "$0" = 0 ] || adapter two 200 "$0"; exec "$@"' "$3" "$nojit" doctor --gpus all >"$2.$1.log" 2>"$2.$1.err"
}
both() { # NAME REGEX LANES LANES
    local other
    doctor 1 "$d/doctor" "$4" &
    other=$!
    doctor 0 "$d/doctor" "$3" || true
    wait $other || true
    if grep -qE "$2" "$d/doctor.0.log"; then ok "$1"; else not_ok "$1" "$(cat "$d"/doctor.[01].{log,err})"; fi
}
if unshare --mount mount -t tmpfs none /sys/class 2>/dev/null && [[ $("$nojit" version) == *sm_90a* ]]; then
    both "doctor expects two adapters on hosts with two halves of a cable" '^expected   network, 2 adapters of a host, 31.5 GB/s: about 25 GB/s$' 4 4
    both "doctor expects one adapter where a host has one half of a cable" '^expected   network, 1 adapter of a host, 15.8 GB/s: about 13 GB/s$' 4 0
    export NCCL_IB_HCA=one
    both "doctor advises to name both adapters" '^verdict .*: NCCL_IB_HCA names 1 of the 2 adapters that are up; name all$' 4 4
    unset NCCL_IB_HCA
else
    skip "doctor expects two adapters on hosts with two halves of a cable" "no tmpfs can be mounted, or the build lacks sm_90a"
fi

# ---- addresses at which rank 0 is not
export NOJIT_CONNECT_TIMEOUT=1
unreached() { # NAME ADDRESS WHY
    start "$2" "$d/$1"
    end
    each_says "$1" "$d/$1" '^nojit distill: rank 0: 1 of 2 ranks did not connect within 1 s, rank 1 is the first; ' \
        "^nojit distill: rank 1: rank 1 did not reach rank 0 at $2 port 29501 within 1 s \\($3\\); .*MASTER_ADDR"
}
unreached "a rank 0 in another subnet is said to be unreachable" 10.99.0.1 "Network is unreachable"
unreached "a rank 0 at nobody's address is said to be unreachable" 10.18.0.77 "Connection timed out|No route to host"
unreached "a rank 0 by a name of the host itself is said to be unreachable" nowhere "Connection refused"
export NOJIT_CONNECT_TIMEOUT=30

# ---- a link that is lost
start 10.18.0.1 "$d/lost" --steps 100000 --save-every 20 --log-every 100000
until_true "${pid[0]}" row_of_step "$d/lost" 24 || true
on 1 ip link set v1 down
end
each_says "a lost link ends the ranks of both hosts" "$d/lost" '^nojit distill: rank 1 is gone; ' '^nojit distill: rank 0 is gone; '
on 1 ip link set v1 up
saved=$(newest "$d/lost")
start 10.18.0.1 "$d/lost" --steps $((${saved##*-} + 2)) --resume auto
end
if [ "${status[*]}" = "0 0" ] && [ -s "$d/lost/model.safetensors" ]; then ok "a run whose link was lost goes on"; else not_ok "a run whose link was lost goes on" "$(cat "$d"/lost.[01].err)"; fi
finish
