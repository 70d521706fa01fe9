#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# export.sh: `nojit export` writes files that hold the model they were made of, in every type, and folders back; runs with
# --export write the same; nothing of others is replaced.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive
head -c 3000 /usr/share/common-licenses/LGPL-3 >"$d/text.txt"
small=(--device cpu --seq-len 64 --batch-size 2 --data "$d/text.txt")
same() { # NAME GOT WANTED
    if [ -n "$2" ] && [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi
}
export_to() { # MODEL FILE TYPE ARGUMENT...
    "$nojit" export --model "$d/$1" --out "$d/$2" --type "$3" "${@:4}" >"$scratch/out" 2>&1 || cat "$scratch/out"
}
measured() { "$nojit" eval --model "$d/$1" "${small[@]}" --json; }
loss() { measured "$1" | sed -E 's/.*"ce_loss": ([^,]+),.*/\1/'; }
near() { # NAME A B DIFFERENCE
    if awk -v a="$2" -v b="$3" -v d="$4" 'BEGIN { exit !(a != "" && b != "" && a - b < d && b - a < d) }'; then ok "$1"; else not_ok "$1" "$2 and $3"; fi
}

# Norms and biases must not be those of a new model, 1 and 0; positions of the Llama are scaled.
for m in tiny tiny-qwen3 tiny-llama; do
    "$nojit" init --preset "nojit-$m" --dtype float32 --seed 5 --out "$d/new-$m" >/dev/null
    "$nojit" train --student "$d/new-$m" "${small[@]}" --steps 30 --lr 0.01 --out "$d/$m" >"$scratch/out" 2>&1 || cat "$scratch/out"
    export_to "$m" "$m-f32.gguf" f32
    same "$m in f32 is the same model" "$(measured "$m-f32.gguf")" "$(measured "$m")"
    for type in f16:0.002 bf16:0.01 q8_0:0.01 q6_k:0.02 q5_k_m:0.04 q4_k_m:0.1; do
        export_to "$m" "$m-${type%:*}.gguf" "${type%:*}"
        near "$m exported in ${type%:*} has losses near its own" "$(loss "$m-${type%:*}.gguf")" "$(loss "$m")" "${type#*:}"
    done
    export_to "$m-f32.gguf" "$m-back" hf
    same "a folder exported from a GGUF file is the same model" "$(measured "$m-back")" "$(measured "$m")"
done
if cmp -s "$d/tiny-llama-back/model.safetensors" "$d/tiny-llama/model.safetensors"; then ok "a folder exported from a float32 GGUF file has the bytes of its source"; else not_ok "a folder exported from a float32 GGUF file has the bytes of its source" "they differ"; fi
if grep -q "^$d/tiny-llama-q4_k_m.gguf: 0.[0-9] MB of weights as q4_k_m in" <("$nojit" export --model "$d/tiny-llama" --out "$d/again.gguf" --type q4_k_m 2>&1 |
    sed "s,again,tiny-llama-q4_k_m,"); then ok "export says what it writes"; else not_ok "export says what it writes" "it is not"; fi
if cmp -s "$d/again.gguf" "$d/tiny-llama-q4_k_m.gguf"; then ok "export writes the same bytes each time"; else not_ok "export writes the same bytes each time" "they differ"; fi
OMP_NUM_THREADS=3 "$nojit" export --model "$d/tiny-llama" --out "$d/three-threads.gguf" --type q4_k_m >/dev/null
if cmp -s "$d/three-threads.gguf" "$d/again.gguf"; then ok "three threads export the same bytes"; else not_ok "three threads export the same bytes" "they differ"; fi

# ---- a sliding window goes along, there and back
cp -r "$d/tiny-llama" "$d/window"
sed -i 's/"llama"/"mistral"/; s/LlamaForCausalLM/MistralForCausalLM/; s/^{/{"sliding_window": 8,/' "$d/window/config.json"
if [ "$(loss window)" != "$(loss tiny-llama)" ]; then ok "a window changes the losses"; else not_ok "a window changes the losses" "$(loss window)"; fi
export_to window window.gguf f32
if grep -q 'window: llama.cpp reads no sliding window from GGUF files of architecture llama; past 8 tokens' "$scratch/out"; then
    ok "export says that llama.cpp reads no window"
else
    not_ok "export says that llama.cpp reads no window" "$(cat "$scratch/out")"
fi
same "a GGUF file has the window of its model" "$(measured window.gguf)" "$(measured window)"
export_to window.gguf window-back hf
same "a folder exported from a GGUF file has its window" "$(measured window-back)" "$(measured window)"

# ---- weights that have the type already are copied
export_to tiny-llama-q8_0.gguf copied.gguf q8_0
same "export of q8_0 to q8_0 changes nothing" "$(measured copied.gguf)" "$(measured tiny-llama-q8_0.gguf)"

# ---- adapters
"$nojit" train --student "$d/tiny-llama" "${small[@]}" --steps 4 --lr 0.05 --lora-r 2 --out "$d/adapters" >"$scratch/out" 2>&1 || cat "$scratch/out"
"$nojit" merge --model "$d/tiny-llama" --adapter "$d/adapters" --out "$d/merged" >/dev/null
export_to tiny-llama adapted.gguf f32 --adapter "$d/adapters"
same "export merges adapters" "$(measured adapted.gguf)" "$(measured merged)"
if [ "$(find "$d" -maxdepth 1 -name '*.merged*')" = "" ]; then ok "export leaves nothing of merging adapters"; else not_ok "export leaves nothing of merging adapters" "$(ls "$d")"; fi

# ---- refusals
refuses "export refuses an --out that exists" 2 'it exists already; choose another name, or remove it' \
    "$nojit" export --model "$d/tiny" --out "$d/again.gguf"
for type in q8_0 hf; do
    refuses "export refuses to write an APR file" 2 'n.apr: APR files are read, not written; name a GGUF file' \
        "$nojit" export --model "$d/tiny" --out "$d/n.apr" --type "$type"
done
"$nojit" init --preset nojit-tiny --vocab-size 4096 --dtype float32 --out "$d/wide" >/dev/null
refuses "export says how a model without a tokenizer reads bytes" 1 'or give --tokenizer bytes' "$nojit" export --model "$d/wide" --out "$d/wide.gguf"
export_to wide wide.gguf f32 --tokenizer bytes
same "a model that reads bytes is the same as a file" "$(measured wide.gguf)" "$("$nojit" eval --model "$d/wide" "${small[@]}" --tokenizer bytes --json)"
refuses "a folder has no other tokenizer than its model" 2 'leave the option out with --type hf' "$nojit" export --model "$d/wide" --out "$d/wide-hf" --type hf --tokenizer bytes
refuses "export refuses a model that is not there" 1 'no such' "$nojit" export --model "$d/nothing" --out "$d/n.gguf"
cp -r "$d/tiny" "$d/broken"
# In the middle of the file, where matrices are.
printf '\0\0\x80\x7f' | dd of="$d/broken/model.safetensors" bs=4 seek=$(($(stat -c %s "$d/broken/model.safetensors") / 8)) conv=notrunc 2>/dev/null
refuses "export refuses weights that are not finite" 1 'holds a number that is not finite' "$nojit" export --model "$d/broken" --out "$d/n.gguf" --type q8_0
mkdir "$d/gelu"
cp "$d"/tiny/model.safetensors "$d"/tiny/config.json "$d/gelu"
sed -i 's/"hidden_act": "silu"/"hidden_act": "gelu"/' "$d/gelu/config.json"
refuses "export refuses an activation that a GGUF file cannot say" 1 'gelu: hidden_act is gelu, and llama.cpp computes silu for GGUF files of architecture qwen2; keep' \
    "$nojit" export --model "$d/gelu" --out "$d/n.gguf" --type f32
refuses "a run that exports refuses an activation that a GGUF file cannot say" 1 'gelu: hidden_act is gelu' "$nojit" train --student "$d/gelu" "${small[@]}" --steps 1 \
    --out "$d/n" --export f32
if [ -z "$(find "$d" -name 'n.gguf*' -o -name n)" ]; then ok "a refused export leaves nothing"; else not_ok "a refused export leaves nothing" "$(ls "$d")"; fi

# ---- at the end of a run
run() { # OUT ARGUMENT...
    "$nojit" train --student "$d/tiny-llama" "${small[@]}" --steps 2 --lr 0.01 --out "$d/$1" "${@:2}" >"$scratch/out" 2>&1 || cat "$scratch/out"
}
run run --save-every 1 --export f32 q4_k_m
same "train --export writes the model of the run" "$(measured run/model-f32.gguf)" "$(measured run)"
export_to run beside.gguf q4_k_m
if cmp -s "$d/run/model-q4_k_m.gguf" "$d/beside.gguf"; then ok "train --export writes the bytes that export writes"; else not_ok "train --export writes the bytes that export writes" "they differ"; fi
before=$(measured run)
run run --save-every 1 --export f32 --steps 3 --resume auto
after=$(measured run)
if [ "$before" != "$after" ] && [ "$(measured run/model-f32.gguf)" = "$after" ]; then ok "a resumed run with --export replaces its file"; else not_ok "a resumed run with --export replaces its file" "$before, $after"; fi
mkdir "$d/foreign"
cp "$d/beside.gguf" "$d/foreign/model-q4_k_m.gguf"
refuses "train --export refuses to replace a file of another" 2 'model-q4_k_m.gguf' "$nojit" train --student "$d/tiny-llama" "${small[@]}" --steps 1 --out "$d/foreign" --export q4_k_m
lora=(--lora-r 2 --lr 0.05)
run lora "${lora[@]}" --export f32
"$nojit" merge --model "$d/tiny-llama" --adapter "$d/lora" --out "$d/lora-merged" >/dev/null
same "train --export merges adapters" "$(measured lora/model-f32.gguf)" "$(measured lora-merged)"
run lora-too "${lora[@]}" --export f32 --merge
same "train --export --merge writes the merged model" "$(measured lora-too/model-f32.gguf)" "$(measured lora-too/merged)"
if [ "$(find "$d" -name '*.tmp-*')" = "" ] && [ ! -e "$d/lora/merged" ]; then ok "train --export leaves nothing of merging adapters"; else not_ok "train --export leaves nothing of merging adapters" "$(find "$d" -name '*.tmp-*')"; fi
refuses "train --export refuses an unknown type" 2 'give f32, f16, bf16, q8_0, q6_k, q5_k_m or q4_k_m' "$nojit" train --student "$d/tiny-llama" "${small[@]}" \
    --steps 1 --out "$d/none" --export q3_k
if [ ! -e "$d/none" ]; then ok "train refuses an --export type before anything is made"; else not_ok "train refuses an --export type before anything is made" "$(ls "$d/none")"; fi
finish
