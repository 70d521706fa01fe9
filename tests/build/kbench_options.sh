#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# kbench_options.sh: kbench times what patterns name, at the shapes it is given, in a table and as JSON; what it cannot time it says.
set -eu
. tests/lib/lib.sh
kbench=("$BUILD/kbench" --device cpu)
value() { sed -nE "s/.*\"$1\": (\"[^\"]*\"|[-0-9.e+]+).*/\1/p" "$scratch/json" | head -n 1; }
check() { # NAME CONDITION...
    local name=$1
    shift
    if "$@"; then ok "$name"; else not_ok "$name" "$(head -c 600 "$scratch/log" "$scratch/json" 2>/dev/null)"; fi
}

"${kbench[@]}" 'add*' 'attn_decode' --shape 'n=1000, N=8 C=64 R=4' --shape 'N=16 C=64 n=2000 R=8' \
    --json "$scratch/json" >"$scratch/log"
keys=$(sed -nE 's/^ +\{"key": "([^"]+)".*/\1/p' "$scratch/json" | uniq -c | awk '{ printf "%s %s ", $1, $2 }')
want="2 add.f32 2 add_rmsnorm_fwd.f32 2 add_rmsnorm_quantize.f32 2 attn_decode.f32.d128 2 attn_decode.f32.d256 2 attn_decode.f32.d64 "
check "kbench times keys and ops, a row for each shape" [ "$keys" = "$want" ]
check "the table of kbench has the shape" grep -qE '^add.f32 +n=1000 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ GB/s +[0-9]+ % +[0-9.]+ +[0-9.]+ +[0-9]+ %$' "$scratch/log"
check "a dim that an op lacks does not concern it in kbench" grep -qE '^add_rmsnorm_fwd.f32 +N=16 C=64 ' "$scratch/log"
check "a dim that is left out stays as it is in kbench" grep -qE '^attn_decode.f32.d64 +R=8 H=14 K=2 P=512 ' "$scratch/log"
check "bytes that kbench counts follow the shape" grep -q '"key": "add.f32", .*"n": 2000}.*"bytes": 24000,' "$scratch/json"
check "kbench times a copy of as many bytes" grep -q '"copy": {"us": [0-9]' "$scratch/json"
check "operations that kbench counts follow axes and shape" \
    grep -qE '"key": "attn_decode.f32.d128".*"R": 4, .*"D": 128.*"flops": '$((4 * 4 * 512 * 14 * 128))',' "$scratch/json"
check "quantiles of kbench are in order" awk '
    match($0, /"warm": [^}]*/) { split(substr($0, RSTART, RLENGTH), v, /[:,]/); n++; bad += !(v[5] <= v[3] && v[3] <= v[7]) }
    END { exit !(n == 12 && bad == 0) }' "$scratch/json"
check "the JSON of kbench has roofs and versions" [ -n "$(value copy_gbs)" -a -n "$(value product_f32_gflops)" -a "$(value backend)" = '"cpu"' ]
if command -v python3 >/dev/null; then check "what kbench writes is JSON" python3 -m json.tool "$scratch/json" /dev/null; fi

# The benchmark's rows are at the last of 512 positions.
"${kbench[@]}" attn_decode.f32.d64 --shape 'R=2 H=2 K=1 P=256 G=2 C=1' --shape 'R=2 H=2 K=1 P=1024 G=2 C=1' --shape 'R=2 H=2 K=1 P=1024 G=2 C=2' >"$scratch/log"
check "positions stay within a shorter slot" grep -qE '^attn_decode.f32.d64 +R=2 .* P=256 .* pos=253 ' "$scratch/log"
check "and at the end of a longer one" grep -qE '^attn_decode.f32.d64 +R=2 .* P=1024 .* C=1 .*pos=1021 ' "$scratch/log"
check "but within the chunks" grep -qE '^attn_decode.f32.d64 +R=2 .* P=1024 .* C=2 .*pos=509 ' "$scratch/log"

"${kbench[@]}" attn_fwd --shape 'B=1 S=8 doc_start=null' >"$scratch/log"
check "kbench leaves out an optional argument" grep -qE '^attn_fwd.f32.d64 +B=1 S=8 H=14 K=2 window=0 doc_start=null ' "$scratch/log"

# The script reads the rows; a Python that is none shows what it is given.
printf '#!/bin/sh\necho "script $1"\ncat\nexit 5\n' >"$scratch/python"
chmod +x "$scratch/python"
got=0
PYTHON=$scratch/python "${kbench[@]}" add.f32 --shape n=100 --torch >"$scratch/log" || got=$?
check "kbench --torch runs PyTorch's script" [ "$got $(sed -n '/^script/,$p' "$scratch/log" | head -n 1)" = "5 script bench/torch_ops.py" ]
check "kbench --torch hands its rows over" grep -q '"key": "add.f32"' "$scratch/log"

"${kbench[@]}" --gemm --shape 'M=256 N=512 K=384' >"$scratch/log"
rates=$(awk '/^given/ { rate = 2 * 256 * 512 * 384 / $7 * 1e-6; same = $8 / rate; print $2, $3, $4, $5, $6, same - 1 < 2e-3 && 1 - same < 2e-3 }' "$scratch/log" |
    tr '\n' ' ')
check "kbench --gemm gives the rate of each kind of GEMM" [ "$rates" = "NT f32 256 512 384 1 NN f32 256 512 384 1 TN f32 256 512 384 1 " ]
check "kbench --gemm times a tile beside a large GEMM on the CPU" \
    grep -qE '^one thread: a tile of 256 x 256 x 512 [0-9.]+ GFLOP/s, a large product [0-9.]+ GFLOP/s \([0-9]+ %\)$' "$scratch/log"
refuses "kbench --gemm refuses a shape that is none" 2 "^kbench: --shape 'M=8': write 'M=NUMBER N=NUMBER K=NUMBER'" "${kbench[@]}" --gemm --shape M=8
refuses "kbench --gemm refuses a pattern beside it" 2 '^kbench: --gemm: takes --shape and --device alone' "${kbench[@]}" --gemm add
"${kbench[@]}" --launch add.f32 'accum*' >"$scratch/log"
check "kbench --launch times launches of each key that matches" \
    [ "$(sed -nE 's/^([a-z.0-9]+) +[0-9]+ +[0-9]+ +[0-9]+  n=1$/\1/p' "$scratch/log" | tr '\n' ' ')" = "accumulate.f32 add.f32 " ]
refuses "kbench --launch refuses a shape beside it" 2 '^kbench: --launch: takes patterns and --device alone' "${kbench[@]}" --launch --shape n=4
"$BUILD/kbench" --help >"$scratch/log"
check "kbench --help has its options" grep -q -- '--shape S' "$scratch/log"
check "kbench --list prints the keys that match" [ "$("$BUILD/kbench" --list "attn_decode.f32.*" | tr '\n' ' ')" = "attn_decode.f32.d128 attn_decode.f32.d256 attn_decode.f32.d64 " ]
refuses "kbench refuses a pattern without a key" 2 "no key matches 'nothing.\*'; kbench --list prints all" "${kbench[@]}" 'nothing.*'
refuses "kbench refuses a pattern without a key beside one with" 2 "no key matches 'ad'" "${kbench[@]}" add.f32 ad --shape n=10
refuses "kbench refuses a shape without quotes" 2 "'C=128' is no key; quote the shape: --shape 'N=64 C=128'" "${kbench[@]}" rmsnorm_fwd --shape N=64 C=128
refuses "kbench refuses a shape that is missing" 2 '^kbench: --shape needs a value' "${kbench[@]}" add --shape
refuses "kbench refuses an unknown option" 2 'unknown option --jso;' "${kbench[@]}" --jso x
refuses "kbench refuses a dim that no op has" 2 "no op that is timed has 'Z'" "${kbench[@]}" add --shape Z=5
refuses "kbench refuses a shape that is none" 2 "write 'NAME=NUMBER" "${kbench[@]}" add --shape 'n'
refuses "kbench refuses a dim that is no number" 1 "n=x: a dim must be a whole number" "${kbench[@]}" add --shape n=x
refuses "kbench refuses a dim below one" 1 "add.f32: .* y would have 0 elements" "${kbench[@]}" add --shape n=0
refuses "kbench refuses null for an argument that is not optional" 1 'a is not NULL' "${kbench[@]}" add --shape a=null
refuses "kbench refuses a shape that the contract forbids" 1 "attn_fwd.f32.d64 is left out: .*H % K == 0" "${kbench[@]}" attn_fwd.f32.d64 --shape 'S=8 B=1 H=7 K=2'
refuses "kbench refuses an unknown device" 2 '--device tpu: must be one of auto' "$BUILD/kbench" --device tpu
refuses "kbench refuses a file that cannot be written" 1 '^kbench: /nonexistent/json: No such file' "${kbench[@]}" add.f32 --shape n=10 --json /nonexistent/json
if [ -s "$scratch/out" ] && grep -q '^add.f32' "$scratch/out"; then not_ok "kbench refuses before it measures" "$(tail -n 1 "$scratch/out")"; else ok "kbench refuses before it measures"; fi
finish
