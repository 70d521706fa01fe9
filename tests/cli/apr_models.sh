#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# apr_models.sh: commands that take a model give the same numbers, to the last digit, and the same trained weights with an APR
# file as with the Hugging Face folder that it was made of.
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

# Norms and biases must not be those of a new model, 1 and 0. Rows of 256 elements, for Q4_K.
for m in tiny tiny-qwen3 tiny-llama; do
    "$nojit" init --preset "nojit-$m" --hidden-size 256 --intermediate-size 256 --heads 4 --kv-heads 2 --dtype float32 --seed 5 \
        --out "$d/new-$m" >/dev/null
    "$nojit" train --student "$d/new-$m" --data "$d/text.txt" "${small[@]}" --steps 1 --lr 0.03 --out "$d/$m" >"$scratch/out" 2>&1 ||
        cat "$scratch/out"
    "$BUILD/apr-of" "$d/$m" "$d/$m.apr"
    same "eval of an APR file of $m gives the numbers of its folder" "$(measured "$d/$m.apr")" "$(measured "$d/$m")"
done

plan() { runs "$nojit" plan --student "$1" --teacher "$2" "${small[@]}" --memory-budget 8 --json; }
same "a plan for APR files is that for their folders" "$(plan "$d/tiny.apr" "$d/tiny-qwen3.apr")" "$(plan "$d/tiny" "$d/tiny-qwen3")"
generate() { runs "$nojit" generate --model "$1" --device cpu --prompt 'This version' --max-tokens 12 --temperature 0; }
same "generate writes the same text from an APR file as from its folder" "$(generate "$d/tiny-llama.apr")" "$(generate "$d/tiny-llama")"

# ---- distillation
distill() { # OUT STUDENT TEACHER ARGUMENT...
    "$nojit" distill --student "$d/$2" --teacher "$d/$3" --data "$d/text.txt" "${small[@]}" --steps 4 --lr 0.01 --out "$d/$1" "${@:4}" \
        >"$scratch/out" 2>&1 || cat "$scratch/out"
}
distill folders tiny tiny-llama
distill teacher tiny tiny-llama.apr
distill files tiny.apr tiny-llama.apr
same_files "the student of an APR teacher is that of its folder" "$d/teacher/model.safetensors" "$d/folders/model.safetensors"
same_files "the student of two files is that of two folders" "$d/files/model.safetensors" "$d/folders/model.safetensors"
same "the student of two files is a model folder" "$(measured "$d/files")" "$(measured "$d/folders")"

# ---- folders and GGUF files made of files
init() { runs "$nojit" init --like "$1" --out "$d/$2" "${@:3}" >/dev/null; }
init "$d/tiny-llama.apr" kept-a --layers 1
init "$d/tiny-llama" kept-b --layers 1
same_files "init --like takes the layers of an APR file" "$d/kept-a/model.safetensors" "$d/kept-b/model.safetensors"
export_q8() { runs "$nojit" export --model "$1" --out "$d/$2.gguf" --type q8_0 >/dev/null; }
export_q8 "$d/tiny-llama.apr" a
export_q8 "$d/tiny-llama" b
same "export makes the same GGUF file of an APR file as of its folder" "$(measured "$d/a.gguf")" "$(measured "$d/b.gguf")"

# ---- types: the model of a folder that holds the expanded weights
for m in tiny-llama:Q4_K tiny-llama:Q4 tiny-llama:Q8; do
    type=${m#*:}
    file=$d/${m%:*}-$type.apr
    "$BUILD/apr-of" "$d/${m%:*}" "$file" "$type"
    init "$file" "expanded-$type" --layers 0,1 --dtype float32
    same "eval of an APR file of $m gives the numbers of its folder" "$(measured "$file")" "$(measured "$d/expanded-$type")"
    if [ "$(measured "$file")" = "$(measured "$d/${m%:*}")" ]; then not_ok "an APR file of $m has rounded weights" "its losses are those of F32"; fi
done
"$BUILD/gguf-of" "$d/tiny-llama" "$d/Q4_K.gguf" Q4_K
same "Q4_K in an APR file gives the numbers of a GGUF file" "$(measured "$d/tiny-llama-Q4_K.apr")" "$(measured "$d/Q4_K.gguf")"
for type in Q4_K Q4 Q8; do
    distill "to-$type" tiny "tiny-llama-$type.apr"
    distill "to-expanded-$type" tiny "expanded-$type"
    same_files "a teacher in $type teaches as its expanded weights do" "$d/to-$type/model.safetensors" "$d/to-expanded-$type/model.safetensors"
done
init "$d/tiny-llama-Q8.apr" blocks-a --layers 1 --dtype float32
init "$d/expanded-Q8" blocks-b --layers 1 --dtype float32
same_files "init --like expands layers of quantized weights" "$d/blocks-a/model.safetensors" "$d/blocks-b/model.safetensors"
"$nojit" train --student "$d/tiny-llama-Q8.apr" --data "$d/text.txt" "${small[@]}" --steps 2 --lr 0.05 --lora-r 2 \
    --lora-target-modules q_proj --out "$d/adapters" >"$scratch/out" 2>&1 || cat "$scratch/out"
same "training from quantized weights is said once" "$(grep -c 'weights of .*Q8.apr (APR_Q8) are expanded to float32: training starts from them' "$scratch/out")" 1
runs "$nojit" merge --model "$d/tiny-llama-Q8.apr" --adapter "$d/adapters" --out "$d/merged-a" >/dev/null
runs "$nojit" merge --model "$d/expanded-Q8" --adapter "$d/adapters" --out "$d/merged-b" >/dev/null
for m in merged-a merged-b; do init "$d/$m" "short-$m" --layers 0,1 --dtype bfloat16; done
same_files "adapters merged into an APR file's weights are as in its folder" "$d/short-merged-a/model.safetensors" "$d/short-merged-b/model.safetensors"
type_of() { sed -n 's/.*"torch_dtype": "\(.*\)".*/\1/p' "$d/$1/config.json"; }
init "$d/tiny-llama-Q8.apr" layers-a --layers 1
same "models made of quantized APR weights are written as bfloat16" "$(type_of merged-a) $(type_of layers-a) $(type_of merged-b)" "bfloat16 bfloat16 float32"

# ---- a tokenizer that came from a GGUF file
cp -r "$d/tiny" "$d/words"
cp tests/golden/tokenizer-qwen2.json "$d/words/tokenizer.json"
sed -i 's/"vocab_size": [0-9]*/"vocab_size": 1280/' "$d/words/config.json"
"$nojit" init --like "$d/words" --out "$d/wide" --dtype float32 --seed 7 >/dev/null
"$BUILD/gguf-of" "$d/wide" "$d/wide.gguf"
"$BUILD/apr-of" "$d/wide" "$d/wide.apr" F32 "$d/wide.gguf"
"$BUILD/apr-of" "$d/wide" "$d/bare.apr"
same "eval of an APR file uses the tokenizer in it" "$(measured "$d/wide.apr")" "$(measured "$d/wide")"
"$nojit" train --student "$d/wide.apr" --data "$d/text.txt" "${small[@]}" --steps 1 --out "$d/trained" >"$scratch/out" 2>&1 ||
    cat "$scratch/out"
tokens() { runs "$nojit" tokenize --model "$1" --data "$d/text.txt" --out "$d/$2"; }
tokens "$d/trained" a.bin >/dev/null
tokens "$d/wide" b.bin >/dev/null
same_files "a student trained from an APR file has the tokenizer of the file" "$d/a.bin" "$d/b.bin"

# ---- what is wrong with a file is said once, before a device is spoken of
head -c 200000 "$d/tiny.apr" >"$d/cut.apr"
refuses "an APR file that is cut is refused" 1 'cut.apr: .* it may be cut short: fetch the file again' \
    "$nojit" eval --model "$d/cut.apr" --data "$d/text.txt" --device cpu
finish
