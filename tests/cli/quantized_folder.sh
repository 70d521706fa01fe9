#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# quantized_folder.sh: commands give the same numbers with a Hugging Face folder of quantized weights as with one that holds them
# expanded to float32, and a teacher stays quantized.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive
golden=tests/golden/quantized
small=(--device cpu --seq-len 64 --batch-size 2)
same() { # NAME GOT WANTED
    if [ -n "$2" ] && [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi
}
runs() { "$@" 2>"$scratch/err" || tail -n 1 "$scratch/err" >&2; }
measured() { runs "$nojit" eval --model "$1" --data "$d/tokens.bin" "${small[@]}" --json; }
# A token file of llm.c: 2,048 ids below 24.
{
    printf '\210\330\064\001\001\0\0\0\0\010\0\0'
    head -c 1012 /dev/zero
    for ((i = 0; i < 2048; i++)); do printf '%b' "\\x$(printf %02x $((i * i * 7 % 23 % 24)))\\0"; done
} >"$d/tokens.bin"
runs "$nojit" init --like "$golden/nf4" --seed 3 --dtype float32 --out "$d/student" >/dev/null
distill() { # OUT TEACHER ARGUMENT...
    "$nojit" distill --student "$d/student" --teacher "$2" --data "$d/tokens.bin" "${small[@]}" --steps 2 --lr 0.01 --out "$d/$1" "${@:3}" \
        >"$scratch/out" 2>&1 || cat "$scratch/out"
}
teacher_dtype() { sed -n 's/.*"teacher_dtype": "\(.*\)".*/\1/p' "$d/$1/receipt.json"; }
while read -r format types; do
    folder=$golden/$format
    runs "$nojit" init --like "$folder" --layers 0 --dtype float32 --out "$d/$format" >/dev/null
    same "eval of a folder in $format gives the numbers of its expanded weights" "$(measured "$folder")" "$(measured "$d/$format")"
    distill "kept-$format" "$folder"
    distill "whole-$format" "$d/$format"
    if cmp "$d/kept-$format/model.safetensors" "$d/whole-$format/model.safetensors" >"$scratch/out" 2>&1; then
        ok "a teacher in $format teaches as its expanded weights do"
    else
        not_ok "a teacher in $format teaches as its expanded weights do" "$(cat "$scratch/out")"
    fi
    if grep -q "$types" "$d/kept-$format/receipt.json"; then
        ok "a teacher in $format stays quantized"
    else
        not_ok "a teacher in $format stays quantized" "$(grep -i dtype "$d/kept-$format/receipt.json")"
    fi
done <<'END'
nf4 NF4
nf4-nested NF4
gptq I4_64
gptq-v2 I4_64, I4_128
awq I4_32
packed I4_32
packed-zeros I4_64, I4_128
packed-bytes I4_64
float-tensor F8_32, F8_128
float-channel F8_32, F8_128
fp8 F8_32
END
expanded() { runs "$nojit" plan --student "$d/student" --teacher "$1" "${small[@]}" --memory-budget 8 --json | grep -c '"teacher.expanded"'; }
same "a plan of a quantized folder knows its expanded matrices" "$(expanded "$golden/gptq" || :)" 1
mkdir "$d/config"
cp "$golden/gptq/config.json" "$d/config"
same "a plan of a quantized folder's config.json alone expands nothing" "$(expanded "$d/config" || :)" 0
refuses "--teacher-dtype for a quantized folder is refused" 1 'weights of .*gptq are quantized already; leave --teacher-dtype out' \
    "$nojit" distill --student "$d/student" --teacher "$golden/gptq" --data "$d/tokens.bin" "${small[@]}" --teacher-dtype q8_0 --out "$d/twice"

# ---- as a student: its weights are expanded, and its configuration no longer says otherwise
"$nojit" train --student "$golden/awq" --data "$d/tokens.bin" "${small[@]}" --dtype float32 --steps 2 --lr 0.01 --out "$d/trained" >"$scratch/out" 2>&1 ||
    cat "$scratch/out"
same "training from a quantized folder is said once" "$(grep -c 'weights of .*awq (I4_32) are expanded to float32: training starts from them' "$scratch/out")" 1
"$nojit" train --student "$d/awq" --data "$d/tokens.bin" "${small[@]}" --dtype float32 --steps 2 --lr 0.01 --out "$d/again" >"$scratch/out" 2>&1 ||
    cat "$scratch/out"
same "a student made of quantized weights is that of their expanded ones" "$(cksum <"$d/trained/model.safetensors")" "$(cksum <"$d/again/model.safetensors")"
same "the folder of a student made of quantized weights has no quantization_config" "$(grep -c quantization "$d/trained/config.json" || :)" 0
same "a student made of quantized weights is a model folder" "$(measured "$d/trained")" "$(measured "$d/again")"
finish
