#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gguf_models.sh: every command that takes a model gives the same numbers, to the last digit, and the same trained weights with a
# GGUF file as with the Hugging Face folder that it was made of.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive
head -c 3000 /usr/share/common-licenses/LGPL-3 >"$d/text.txt"
small=(--device cpu --seq-len 64 --batch-size 2)
same() { # NAME GOT WANTED
    if [ -n "$2" ] && [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi
}
same_files() { # NAME A B
    if cmp "$2" "$3" >"$scratch/out" 2>&1; then ok "$1"; else not_ok "$1" "$(cat "$scratch/out")"; fi
}
runs() { "$@" 2>"$scratch/err" || tail -n 1 "$scratch/err" >&2; }
measured() { runs "$nojit" eval --model "$1" --data "$d/text.txt" "${small[@]}" --json; }

# Norms and biases must not be those of a new model, 1 and 0.
for m in tiny tiny-qwen3 tiny-llama; do
    "$nojit" init --preset "nojit-$m" --dtype float32 --seed 5 --out "$d/new-$m" >/dev/null
    "$nojit" train --student "$d/new-$m" --data "$d/text.txt" "${small[@]}" --steps 1 --lr 0.03 --out "$d/$m" >"$scratch/out" 2>&1 ||
        cat "$scratch/out"
    "$BUILD/gguf-of" "$d/$m" "$d/$m.gguf"
    same "eval of a GGUF file of $m gives the numbers of its folder" "$(measured "$d/$m.gguf")" "$(measured "$d/$m")"
done
"$BUILD/gguf-of" "$d/tiny" "$d/tiny-split" F32 split
same "eval of a GGUF file in three parts gives the numbers of its folder" "$(measured "$d/tiny-split-00001-of-00003.gguf")" "$(measured "$d/tiny")"

plan() { runs "$nojit" plan --student "$1" --teacher "$2" "${small[@]}" --memory-budget 8 --json; }
same "a plan for GGUF files is that for their folders" "$(plan "$d/tiny.gguf" "$d/tiny-qwen3.gguf")" "$(plan "$d/tiny" "$d/tiny-qwen3")"
generate() { runs "$nojit" generate --model "$1" --device cpu --prompt 'This version' --max-tokens 12 --temperature 0; }
same "generate writes the same text from a GGUF file as from its folder" "$(generate "$d/tiny-llama.gguf")" "$(generate "$d/tiny-llama")"
tokenize() { runs "$nojit" tokenize --model "$1" --data "$d/text.txt" --out "$d/$2"; }
tokenize "$d/tiny.gguf" a.bin >/dev/null
tokenize "$d/tiny" b.bin >/dev/null
same_files "tokenize with a GGUF file's tokenizer gives the tokens of its folder" "$d/a.bin" "$d/b.bin"

# ---- distillation
distill() { # OUT STUDENT TEACHER ARGUMENT...
    "$nojit" distill --student "$d/$2" --teacher "$d/$3" --data "$d/text.txt" "${small[@]}" --steps 4 --lr 0.01 --out "$d/$1" "${@:4}" \
        >"$scratch/out" 2>&1 || cat "$scratch/out"
}
hash_of() { sed -n "s/.*\"$2_hash\": \"\([0-9a-f]*\)\".*/\1/p" "$d/$1/receipt.json"; }
distill folders tiny tiny-qwen3
distill files tiny.gguf tiny-qwen3.gguf --save-every 2
same_files "the student of two files is that of two folders" "$d/files/model.safetensors" "$d/folders/model.safetensors"
same "the student of two files is a model folder" "$(measured "$d/files")" "$(measured "$d/folders")"
same "the student of two files has its type in config.json" "$(sed -n 's/.*"torch_dtype": "\(.*\)".*/\1/p' "$d/files/config.json")" float32
if [ -n "$(hash_of files teacher)" ] && [ "$(hash_of files teacher)" != "$(hash_of files student)" ]; then
    ok "the receipt has the hashes of GGUF files"
else
    not_ok "the receipt has the hashes of GGUF files" "$(hash_of files teacher) $(hash_of files student)"
fi
distill resumed tiny.gguf tiny-qwen3.gguf --resume "$d/files/checkpoint-2"
same_files "a student made of a GGUF file is resumed bit for bit" "$d/resumed/model.safetensors" "$d/folders/model.safetensors"
"$BUILD/gguf-of" "$d/tiny-qwen3" "$d/half.gguf" F16
refuses "resuming with another teacher's file is refused" 2 'was made with teacher [0-9a-f]*, this run has teacher [0-9a-f]* \(--teacher names other weights\)' \
    "$nojit" distill --student "$d/tiny.gguf" --teacher "$d/half.gguf" --data "$d/text.txt" "${small[@]}" --steps 4 --lr 0.01 \
    --out "$d/other" --resume "$d/files/checkpoint-2"
refuses "a student whose file has the teacher's weights is refused" 2 'have the same weights' \
    "$nojit" distill --student "$d/tiny.gguf" --teacher "$d/tiny.gguf" --data "$d/text.txt" "${small[@]}" --steps 4 --out "$d/self"

# ---- folders made of files
init() { runs "$nojit" init --like "$1" --out "$d/$2" "${@:3}" >/dev/null; }
init "$d/tiny-llama.gguf" kept-a --layers 1
init "$d/tiny-llama" kept-b --layers 1
same_files "init --like takes the layers of a GGUF file" "$d/kept-a/model.safetensors" "$d/kept-b/model.safetensors"
same "init --like keeps the scaled positions of a GGUF file" "$(measured "$d/kept-a")" "$(measured "$d/kept-b")"
init "$d/tiny.gguf" like-a
init "$d/tiny" like-b
same_files "init --like takes the shape of a GGUF file" "$d/like-a/model.safetensors" "$d/like-b/model.safetensors"
"$nojit" train --student "$d/tiny-llama.gguf" --data "$d/text.txt" "${small[@]}" --steps 2 --lr 0.05 --lora-r 2 --lora-target-modules q_proj \
    --out "$d/adapters" >"$scratch/out" 2>&1 || cat "$scratch/out"
runs "$nojit" merge --model "$d/tiny-llama.gguf" --adapter "$d/adapters" --out "$d/merged-a" >/dev/null
runs "$nojit" merge --model "$d/tiny-llama" --adapter "$d/adapters" --out "$d/merged-b" >/dev/null
same_files "adapters merged into a GGUF file's weights are as in its folder" "$d/merged-a/model.safetensors" "$d/merged-b/model.safetensors"

# ---- quantized weights, expanded: the model of a folder that holds the expanded ones
"$nojit" init --like "$d/tiny-llama" --hidden-size 256 --intermediate-size 256 --heads 4 --kv-heads 2 --head-dim 64 --dtype float32 --seed 6 \
    --out "$d/new-wide" >/dev/null
"$nojit" train --student "$d/new-wide" --data "$d/text.txt" "${small[@]}" --steps 1 --lr 0.03 --out "$d/wide" >"$scratch/out" 2>&1 ||
    cat "$scratch/out"
for m in tiny:Q8_0 wide:Q4_K wide:Q6_K; do
    type=${m#*:}
    file=$d/$type.gguf
    "$BUILD/gguf-of" "$d/${m%:*}" "$file" "$type"
    init "$file" "expanded-$type" --layers 0,1 --dtype float32
    same "eval of a file in $type gives the numbers of its expanded weights" "$(measured "$file")" "$(measured "$d/expanded-$type")"
    if [ "$(measured "$file")" = "$(measured "$d/${m%:*}")" ]; then not_ok "a file in $type has rounded weights" "its losses are those of F32"; fi
done
distill quantized Q8_0.gguf Q4_K.gguf
same "training from a quantized GGUF file is said once" "$(grep -c 'weights of .*Q8_0.gguf (Q8_0) are expanded to float32: training starts from them' "$scratch/out")" 1
distill expanded expanded-Q8_0 expanded-Q4_K
same "training from a folder says nothing of expanded weights" "$(grep -c 'expanded to' "$scratch/out")" 0
same_files "the student of two quantized files is that of their expanded weights" "$d/quantized/model.safetensors" "$d/expanded/model.safetensors"
init "$d/Q6_K.gguf" kept-type --layers 1
same "init --like writes bfloat16 where no type is named" "$(sed -n 's/.*"torch_dtype": "\(.*\)".*/\1/p' "$d/kept-type/config.json")" bfloat16

# ---- what is wrong with a file is said once, before a device is spoken of
head -c 200 "$d/tiny.gguf" >"$d/cut.gguf"
refuses "a GGUF file that is cut is refused" 1 'cut.gguf: .*fetch the file again' "$nojit" eval --model "$d/cut.gguf" --data "$d/text.txt" --device cpu
finish
