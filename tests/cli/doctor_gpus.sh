#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# doctor_gpus.sh: `doctor --gpus` measures the links between simulated GPUs, says what they should carry, and names what makes
# them slow. Between hosts: two_hosts.sh.
set -eu
. tests/lib/lib.sh
. tests/lib/simulated.sh
export OMP_NUM_THREADS=1 TMPDIR=$scratch NOJIT_SIM_ELAPSED=50 # ms for 33.6 MB in each direction: 0.7 GB/s
needs sm_89 sm_90a

on() { NOJIT_SIM_DEVICE=$1 "$nojit" doctor "${@:2}"; }
if on h100,h100 --gpus all >"$d/doctor" && grep -q '^ranks      2 ranks, 2 on this host (--gpus), NCCL 2.28.3' "$d/doctor" &&
    grep -qE '^rank 1 +GPU 1 of .*H100.*, sm_90a, 79.19 GiB; peer access to 0$' "$d/doctor" &&
    [ "$(grep -cE '^(exchange|gather) +64 MiB per rank in [0-9.]+ ms: [0-9.]+ GB/s in each direction$' "$d/doctor")" = 2 ]; then
    ok "doctor --gpus measures the links"
else
    not_ok "doctor --gpus measures the links" "$(cat "$d/doctor")"
fi
# NAME REGEX GPUS LINKS: in a line of what doctor says; LINKS as tests/simgpu/nvml.c has them
says() {
    NOJIT_SIM_LINKS=$4 on "$3" --gpus 2 >"$d/doctor" 2>&1 || true
    if grep -qE -- "$2" "$d/doctor"; then ok "$1"; else not_ok "$1" "$(cat "$d/doctor")"; fi
}
says "doctor knows NVLink" '^expected   NVLink, 18 of 25 GB/s: about 270 GB/s$' h100,h100 18:5:16:5:16,18:5:16:5:16
says "doctor knows PCIe with peer access" '^expected   PCIe 5.0 x16 with peer access: about 50 GB/s$' h100,h100 -1:5:16:5:16,-1:5:16:5:16
says "doctor knows PCIe without peer access" "^expected   PCIe 4.0 x16 through the host's memory: about 14 GB/s\$" rtx4090,rtx4090 -1:4:16:4:16,-1:4:16:4:16
says "doctor expects the rate of the slower slot" "^expected   PCIe 3.0 x8 through" rtx4090,rtx4090 -1:4:16:4:16,-1:3:8:3:8
says "doctor judges a slow link by its kind" '^verdict    the links are as fast as expected$' h100,h100 0:1:2:1:2,0:1:2:1:2
says "doctor expects nothing of a link that is not known" '^verdict    slow, below 10 GB/s: ' h100,h100 ''
NOJIT_SIM_ELAPSED=0.15 says "doctor finds 224 GB/s of NVLink good" '^verdict    the links are as fast as expected$' h100,h100 18:5:16:5:16,18:5:16:5:16
NOJIT_SIM_ELAPSED=0.6 says "doctor finds 56 GB/s of NVLink slow" '^verdict    slow, below 70 % of that: ' h100,h100 18:5:16:5:16,18:5:16:5:16
NOJIT_SIM_ELAPSED=0.6 says "doctor finds 56 GB/s of PCIe good" '^verdict    the links are as fast as expected$' h100,h100 -1:5:16:5:16,-1:5:16:5:16
says "doctor names a GPU in a narrow slot" '^verdict    slow, below 70 % of that: the GPU of rank 1 runs at PCIe 4.0 x8, 4.0 x16 is possible; see its slot' \
    rtx4090,rtx4090 -1:4:16:4:16,-1:4:8:4:16
says "doctor names an NVLink that is down" '^verdict .*: the GPU of rank 1 has 17 NVLinks up, others have more' h100,h100 18:5:16:5:16,17:5:16:5:16
says "doctor says that there is no peer access" '^verdict .*: the driver gives no peer access .*--reduce-dtype bf16' rtx4090,rtx4090 -1:4:16:4:16,-1:4:16:4:16
for setting in NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_PROTO=LL; do
    export "${setting?}"
    says "doctor names a setting of NCCL that is in the way" "^verdict    slow, .*: ${setting%=*} is set; unset it\$" rtx4090,rtx4090 -1:4:8:4:16,-1:4:8:4:16
    unset "${setting%=*}"
done
if NCCL_P2P_DISABLE=1 NOJIT_SIM_LINKS=18:5:16:5:16,18:5:16:5:16 on h100,h100 --gpus 2 --json |
    grep -q '"link": "NVLink, 18 of 25 GB/s", "exchange_gb_expected": 270.0, "gather_gb_expected": 270.0, "fast": false, "problem": "NCCL_P2P_DISABLE is set; unset it"'; then
    ok "doctor --gpus --json has the links and what is expected"
else
    not_ok "doctor --gpus --json has the links and what is expected" "$(on h100,h100 --gpus 2 --json)"
fi
# The code for the GPU in NCCL's file: two containers, whose entries have a header of 64 bytes.
bytes() { # NUMBER COUNT: little-endian
    local i
    for ((i = 0; i < $2; i++)); do printf "\\x$(printf %02x $(($1 >> 8 * i & 255)))"; done
}
container() { # KIND:SM:FLAGS...
    local entry kind sm flags
    bytes 0xba55ed50 4 && bytes 1 2 && bytes 16 2 && bytes $(($# * 72)) 8
    for entry in "$@"; do
        IFS=: read -r kind sm flags <<<"$entry"
        bytes "$kind" 2 && bytes 0 2 && bytes 64 4 && bytes 8 8 && bytes 0 12 && bytes "$sm" 4 && bytes 0 8 && bytes "$flags" 8 && bytes 0 24
    done
}
library() { # KIND:SM:FLAGS of the second container...
    mkdir -p "$d/nccl"
    { container 2:75:1 1:120:1 && printf 'padding.' && container "$@"; } >"$d/code"
    objcopy --add-section .nv_fatbin="$d/code" "$(realpath "$BUILD/sim/libnccl.so.2")" "$d/nccl/libnccl.so.2"
    chmod 755 "$d/nccl" "$d/nccl/libnccl.so.2"
}
code() { # NAME REGEX
    NOJIT_NCCL=$d/nccl says "$1" "$2" rtx4090,rtx4090 ''
}
says "doctor says that NCCL lacks code for the GPU" '^NCCL code  unknown: no GPU code is found in .*/sim/libnccl.so.2$' rtx4090,rtx4090 ''
library 2:80:1 2:90:0x100001
code "doctor takes NCCL's code of an older GPU of the generation" '^NCCL code  for sm_75 sm_80 sm_90a; that for sm_80 runs here$'
library 2:90:0x100001 2:100:0x200001 2:87:1 2:89:0x200001
code "doctor takes NCCL's newest code that runs" '^NCCL code  for sm_75 sm_87 sm_89f sm_90a sm_100f; that for sm_89 runs here$'
library 2:90:1 1:89:1 2:86:0x100001
code "doctor counts PTX of NCCL as no code" '^NCCL code  none for sm_89, only for sm_75 sm_86a sm_90: the driver would have to compile it'
if NOJIT_NCCL=$d/nccl on rtx4090,rtx4090 --gpus 2 --json | grep -q '"nccl_code": {"archs": \["sm_75", "sm_86a", "sm_90"\], "runs": false}'; then
    ok "doctor --gpus --json says whether NCCL has code for the GPU"
else
    not_ok "doctor --gpus --json says whether NCCL has code for the GPU" "$(NOJIT_NCCL=$d/nccl on rtx4090,rtx4090 --gpus 2 --json)"
fi
refuses "doctor --hosts is refused" 2 '^nojit doctor: --hosts: nojit starts nothing on other hosts; .*mpirun' on h100 --hosts a,b
refuses "doctor --gpus with one GPU is refused" 2 'there is one GPU here' on h100 --gpus all
refuses "doctor --gpus of more GPUs than there are is refused" 1 'GPU 1 wanted, the driver sees 1' on h100 --gpus 2
finish
