#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hardening_elf.sh: the programs of this build are hardened, as readelf and objdump see them. No $BUILD/gen-bin: a build for another machine.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh

lacks() { # FILE: prints what a program lacks
    local -a want=('no PIE' 'FLAGS_1.*PIE' 'no BIND_NOW' 'FLAGS_1.*NOW' 'no RELRO' 'GNU_RELRO' 'an executable stack' 'GNU_STACK.* RW  *0x')
    local i
    readelf -Wld "$1" >"$scratch/headers" || { echo "cannot be read"; return; }
    for ((i = 0; i < ${#want[@]}; i += 2)); do grep -qE "${want[i + 1]}" "$scratch/headers" || echo "${want[i]}"; done
    if grep -qE '^ +[A-Z_]+ +(0x[0-9a-f]+ +){5}RWE' "$scratch/headers"; then echo "a segment that is writable and executable"; fi
    if grep -q TEXTREL "$scratch/headers"; then echo "relocations in code"; fi
}
check() { # NAME WHAT IS WRONG
    if [ -z "$2" ]; then ok "$1"; else not_ok "$1" "$(head -n 3 <<<"$2" | tr '\n' ';')"; fi
}
wrong=$(for f in "$BUILD"/{nojit,blobcheck,gen-bin/gen,pack-bin/pack}; do
    case $f in */gen-bin/* | */pack-bin/*) [ -e "$BUILD/gen-bin" ] || continue ;; esac
    lacks "$f" | sed "s|^|$(basename "$f"): |"
done)
check "programs are hardened" "$wrong"
# The code of a segment has no data of the file beside it: a page that can be executed holds nothing else.
if readelf -Wl "$BUILD/nojit" | sed -n '/Segment Sections/,$p' | grep -E ' \.text( |$)' | grep -qE '\.(rodata|nojit\.index|dynsym)'; then
    not_ok "code of the programs has segments of its own" "$(readelf -Wl "$BUILD/nojit" | grep ' \.text')"
else
    ok "code of the programs has segments of its own"
fi

imports() { nm -Au "$@" 2>/dev/null | grep -E " U $calls(@.*)?\$" || true; } # FILE...: those of $calls that it makes
calls='(system|popen|vfork|posix_spawnp?|exec[lv]p?e?)'
check "nojit starts no other program" "$(imports -D "$BUILD/nojit")"
calls='(fork|socket|connect|bind|listen|accept4?|send(to|msg)?|recv(from|msg)?|getaddrinfo)'
apart='/trainer/(ranks/[a-z]+|run/run_ranks)\.o:'
objects=$(imports "$BUILD"/obj/{runtime,runtime/*,trainer/*}/*.o)
if grep -qE "$apart" <<<"$objects"; then wrong=$(grep -vE "$apart" <<<"$objects" || true); else wrong="nothing found in trainer/ranks"; fi
check "nojit uses network and processes for the ranks of a run alone" "$wrong"

# Objects of this tree, one by one: a program's note is there only if every object that is linked has one.
case $(readelf -h "$BUILD/nojit") in
*X86-64*) feature='x86 feature: IBT, SHSTK' probe='or[lq] +\$0x0,\(%rsp\)' ;;
*AArch64*) feature='AArch64 feature: BTI, PAC' probe='str\s+xzr, \[sp' ;;
*) feature='' ;;
esac
objects=("$BUILD"/obj/{runtime,runtime/*,trainer/*,ref32}/*.o "$BUILD"/obj/{blobs,gen/ops}.o)
unmarked=$(for f in "${objects[@]}"; do
    readelf -Wn "$f" | grep -qF "$feature" || echo "$f has no note: $feature"
    readelf -WS "$f" | grep -qE '\.note\.GNU-stack +PROGBITS( +[0-9a-f]+){4} +[0-9]' || echo "$f does not say that its stack holds no code"
done)
check "each object protects branches, returns and the stack" "$unmarked"
calls() { nm -u "$BUILD/libnojit.a" "$BUILD"/obj/trainer/*/*.o 2>/dev/null | grep -cE "$1" || true; }
[ "$(calls ' __stack_chk_fail$')" -gt 50 ] && wrong='' || wrong="$(calls ' __stack_chk_fail$') objects check their stack"
check "programs have the stack protector" "$wrong"
[ "$(calls ' __[a-z_]+_chk$')" -gt 20 ] && wrong='' || wrong="$(calls ' __[a-z_]+_chk$') calls are checked by glibc; built without -O?"
check "glibc checks sizes in the programs" "$wrong"
if grep -qs 'FORTIFY_SOURCE=3' "$BUILD/stamp/cflags"; then
    [ "$(calls ' __mem(cpy|move|set)_chk$')" -gt 15 ] && wrong='' || wrong="$(calls ' __mem(cpy|move|set)_chk$') objects have copies that glibc checks; at level 2 there are 4"
    check "sizes that are known at run time only are checked, too" "$wrong"
else
    skip "sizes that are known at run time only are checked, too" "this compiler is older than gcc 12"
fi
objdump=objdump
[ -e "$BUILD/gen-bin" ] || objdump=aarch64-linux-gnu-objdump
"$objdump" -d "$BUILD"/obj/trainer/*/*.o | grep -qE "$probe" && wrong='' || wrong="no page of a large frame is touched"
check "large frames touch each page of the stack" "$wrong"
finish
