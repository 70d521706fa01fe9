#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_ptxas.sh: scripts/check_ptxas.sh counts what each release of an assembler makes of each kernel, and names what stands out.
# Its assemblers and its disassembler are scripts; one kernel has a product and a barrier.
set -eu
. tests/lib/lib.sh
b=$scratch/build
mkdir -p "$b/ptx" "$b/gen" "$scratch/bin"
printf 'sm_89\t89\nsm_120\t120\n' >"$b/gen/archs.txt"
for k in add.f32 attn.lp; do for a in sm_89 sm_120; do echo "// $k" >"$b/ptx/$k.$a.ptx"; done; done
# assembler VERSION COMMANDS: what is said of a kernel is in $regs, $spill and $barriers, its instructions in $code; COMMANDS change them for $key and $level.
assembler() {
    cat >"$scratch/bin/ptxas-$1" <<END
#!/bin/bash
[ "\$1" != --version ] || { echo "Cuda compilation tools, release ${1%.*}, V$1"; exit; }
level=\${2#-O} arch=\${3#-arch=} out=\$5
key=\$(basename "\$6" ".\$arch.ptx")
regs=32 spill=0 barriers=0 code="LDG.E FFMA STG.E EXIT"
[ \$key != attn.lp ] || { barriers=1 code="LDG.E STS LDSM.16 HMMA.16816 HMMA.16816 BAR.SYNC @!P0 EXIT"; }
$2
echo "ptxas info    : Compiling entry function 'nj_\$key' for '\$arch'" >&2
echo "    0 bytes stack frame, \$spill bytes spill stores, \$spill bytes spill loads" >&2
echo "ptxas info    : Used \$regs registers, used \$barriers barriers, 48 bytes smem" >&2
printf '%s\n' "\${code//@!P0 /@!P0_}" | tr ' ' '\n' | sed 's/_/ /; s|^|        /*0010*/    |; s|\$| R0, R1 ;|' >"\$out"
END
    chmod +x "$scratch/bin/ptxas-$1"
}
printf '#!/bin/sh\ncat "$1"\n' >"$scratch/bin/nvdisasm"
chmod +x "$scratch/bin/nvdisasm"
assembler 13.0.1 ''
assembler 13.1.2 'regs=34'
assembler 13.2.3 '[ $key$level != attn.lp3 ] || code="LDG.E STS BAR.SYNC EXIT"'
assembler 13.3.4 '[ $key != attn.lp ] || spill=8'
assembler 13.4.5 '[ $key != attn.lp ] || { barriers=0 code="LDG.E STS HMMA.1 HMMA.1 EXIT"; }'
assembler 13.5.6 '[ $key$arch != add.f32sm_120 ] || { echo "ptxas fatal   : no such thing" >&2; exit 1; }'
check() { # RELEASE...: beside 13.0.1
    got=0
    NVDISASM=$scratch/bin/nvdisasm scripts/check_ptxas.sh "$b" "$scratch/bin/ptxas-13.0.1" "${@/#/$scratch/bin/ptxas-}" >"$scratch/out" 2>"$scratch/err" || got=$?
}
says() { # NAME STATUS REGEX
    ok_if "$1" "$got: $(cat "$scratch/out" "$scratch/err")" [ "$got $(grep -cE -- "$3" "$scratch/out")" = "$2 1" ]
}
check 13.1.2
says "releases that agree pass" 0 '^0 faults$'
says "the table has the first release's registers, barriers and instructions" 0 '^sm_89 +3 +13\.0\.1 +2 +64 +0 +0 +1 +11 +2 +1 +3 +2 +1$'
says "the table has another release's registers" 0 '^sm_120 +1 +13\.1\.2 +2 +68 '
check 13.2.3
says "a kernel that lost its MMAs is named" 1 '^  attn.lp sm_89, 13.2.3 -O3: has no MMA, and another run has 2$'
says "differences are listed beside the first release" 1 '^  attn.lp sm_120, 13.2.3 -O3: registers 32 -> 32, instructions 7 -> 4 \(-42.9 %\), MMA 2 -> 0$'
check 13.3.4
says "a kernel that spills more than by the first release is named" 1 '^  attn.lp sm_120, 13.3.4 -O1: spills 16 bytes, 13.0.1 0$'
check 13.4.5
says "a kernel that lost its barrier is named" 1 '^  attn.lp sm_89, 13.4.5 -O3: uses 0 barriers, 13.0.1 1$'
says "a kernel without the barrier instructions of another release is named" 1 '^  attn.lp sm_89, 13.4.5 -O1: has no synchronisation, and another run has 1$'
check 13.5.6
says "a kernel that a release does not assemble is named" 1 '^  add.f32 sm_120, 13.5.6 -O3: does not assemble: ptxas fatal   : no such thing$'
# The fault may be the first release's.
NVDISASM=$scratch/bin/nvdisasm scripts/check_ptxas.sh "$b" "$scratch/bin/ptxas-13.4.5" "$scratch/bin/ptxas-13.1.2" >"$scratch/out" 2>&1 && got=0 || got=$?
says "a first release that lost a barrier is named" 1 '^  attn.lp sm_89, 13.4.5 -O1: has no barrier, and another run has 1$'
KEYS='add*' ARCHS=sm_89 check 13.5.6
says "kernels and architectures can be chosen" 0 '^sm_89 +3 +13\.5\.6 +1 +32 '

refuses "a release that is neither a file nor in the list is refused" 2 'nvidia-cuda-nvcc 12.0.0: neither a file nor in scripts/ptxas-releases.txt' scripts/check_ptxas.sh "$b" 12.0.0
refuses "a program that is no ptxas is refused" 2 'does not say its version' scripts/check_ptxas.sh "$b" "$(type -P true)"
refuses "a build without PTX is refused" 2 'none/ptx is not there' scripts/check_ptxas.sh "$scratch/none" 13.0.1
refuses "kernels that are not there are refused" 2 'has no kernel nothing' env KEYS=nothing NVDISASM="$scratch/bin/nvdisasm" scripts/check_ptxas.sh "$b" "$scratch/bin/ptxas-13.0.1"
finish
