#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make_run.sh [NAME]: writes tests/golden/NAME (run), the folder of a run of two steps of the smallest model, as text: binary files in base64.
# tests/durability/old_run.sh reads what lies there for ever after, so a folder that was committed is never made again: where the format gains something,
# make one of another name beside it.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."
: "${BUILD:=build}"
to=tests/golden/${1:-run}
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
if [ -e "$to/settings.txt" ]; then
    echo "make_run.sh: $to is there; what was promised to stay readable does not change" >&2
    exit 2
fi
mkdir -p "$to" "$d/like"
cat >"$d/like/config.json" <<'END'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
 "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 12, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
 "rope_theta": 10000.0, "tie_word_embeddings": true, "bos_token_id": null, "eos_token_id": 11, "hidden_act": "silu", "torch_dtype": "float32"}
END
# A token file of 64 tokens: 2 (version), 4 (bytes of a token), 64, 12 (vocabulary), then squares mod 11.
{
    printf 'BIN.TOK\n\2\0\0\0\4\0\0\0\100\0\0\0\14\0\0\0'
    head -c 1000 /dev/zero
    for i in $(seq 64); do printf "\\x$(printf %02x $((i * i % 11)))\\0\\0\\0"; done
} >"$d/data.bin"
"$BUILD/nojit" init --like "$d/like" --dtype float32 --seed 5 --out "$d/student"
"$BUILD/nojit" train --student "$d/student" --data "$d/data.bin" --eval-data "$d/data.bin" --eval-every 1 --seq-len 8 --batch-size 1 --steps 2 \
    --save-every 2 --lr 1e-2 --device cpu --out "$d/out"
cp "$d/like/config.json" "$d/out/metrics.jsonl" "$d"/out/checkpoint-2/{settings,progress}.txt "$to"
base64 "$d/data.bin" >"$to/data.bin.base64"
base64 "$d/out/checkpoint-2/state.bin" >"$to/state.bin.base64"
# 2,360 weights of 4 bytes end the file.
tail -c 9440 "$d/out/model.safetensors" | cksum >"$to/weights.cksum"
