#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# blobcheck_model.sh: blobcheck --model lists the kernels that a model uses, from its config.json, and says what there is none for.
set -eu
. tests/lib/lib.sh
needs softcap.lp rope_fwd.lp rope_bwd.f32 add.f32 dequantize.lp.type10 qknorm_rope_fwd.lp qknorm_rope_bwd.f32 {attn_fwd,attn_bwd_dq}.lp.d{64,128}
model=$scratch/model
mkdir "$model"
check() { "$BUILD/blobcheck" "$BUILD/nojit" --model "$model" "$@"; }
config() { printf '{%s}\n' "$1" >"$model/config.json"; }
# uses NAME KEYS OTHERS: all of KEYS are listed, none of OTHERS.
uses() {
    local k
    check >"$scratch/list"
    for k in $2; do
        if grep -qx "  $k" "$scratch/list"; then ok "blobcheck --model lists $k for $1"; else not_ok "blobcheck --model lists $k for $1" "is not listed"; fi
    done
    for k in $3; do
        if grep -qx "  $k" "$scratch/list"; then not_ok "blobcheck --model lists $k for $1" "is listed"; else ok "blobcheck --model does not list $k for $1"; fi
    done
}

config '"model_type": "qwen2", "hidden_size": 896, "num_attention_heads": 14'
uses qwen2 "rope_fwd.lp rope_bwd.f32 attn_fwd.lp.d64 add.f32" "qknorm_rope_fwd.lp attn_fwd.lp.d128"
config '"model_type": "qwen3", "hidden_size": 1024, "num_attention_heads": 16'
uses qwen3 "qknorm_rope_fwd.lp qknorm_rope_bwd.f32 attn_fwd.lp.d128" "rope_fwd.lp attn_fwd.lp.d64"
for family in llama mistral; do
    config "\"model_type\": \"$family\", \"hidden_size\": 2048, \"num_attention_heads\": 16, \"head_dim\": 64"
    uses $family "rope_fwd.lp attn_bwd_dq.lp.d64" "qknorm_rope_fwd.lp attn_bwd_dq.lp.d128"
done
check --json >"$scratch/json"
if grep -q '"attn_fwd.lp.d64"' "$scratch/json" && grep -q '"model_type": *"mistral"' "$scratch/json"; then ok "blobcheck --model --json has kernels and family"; else not_ok "blobcheck --model --json has kernels and family" "$(tail -c 300 "$scratch/json")"; fi

config '"model_type": "llama", "head_dim": 64'
uses silu "swiglu_fwd.lp swiglu_bwd.f32" "glu_fwd.lp.act1 glu_bwd.f32.act2"
config '"model_type": "llama", "head_dim": 64, "hidden_act": "gelu_new"'
uses gelu "glu_fwd.lp.act2 glu_bwd.f32.act2 glu_quantize.lp.act2" "swiglu_fwd.lp glu_fwd.lp.act1 gemv_norm_swiglu.lp.m1"
config '"model_type": "llama", "head_dim": 64, "final_logit_softcapping": 30.0'
uses "a bound of logits" "softcap.lp softcap.f32 kd_head.lp" ""
config '"model_type": "llama", "head_dim": 64, "final_logit_softcapping": null'
uses "logits without a bound" "kd_head.lp" "softcap.lp"
config '"model_type": "llama", "head_dim": 64, "hidden_act": "relu"'
refuses "blobcheck --model refuses an unknown activation" 2 'hidden_act is relu; silu, swish, gelu, gelu_python, gelu_pytorch_tanh, gelu_python_tanh and gelu_new are supported' check
config '"model_type": "phi3", "head_dim": 96'
uses "padded heads" "attn_fwd.lp.d128 rope_fwd.lp" "attn_fwd.lp.d64 qknorm_rope_fwd.lp"
config '"model_type": "gemma3", "text_config": {"num_attention_heads": 4, "head_dim": 128}'
uses "the language model of a file" "qknorm_rope_fwd.lp attn_fwd.lp.d128 glu_fwd.lp.act2" "attn_fwd.lp.d64 swiglu_fwd.lp"
config '"model_type": "llama", "head_dim": 320'
refuses "blobcheck --model refuses a head size without kernels" 1 'attn_fwd has no key for head size 320' check --quiet
config '"model_type": "gpt2"'
refuses "blobcheck --model refuses an unknown family" 2 'config.json: model_type is gpt2; llama, mistral, ' check
config '"hidden_size": 64'
refuses "blobcheck --model refuses a config.json without family" 2 'model_type is missing' check
config '"model_type": "llama", "hidden_size": 64'
refuses "blobcheck --model refuses a config.json without head size" 2 'neither head_dim nor hidden_size and num_attention_heads' check
config '"model_type": '
refuses "blobcheck --model refuses a config.json that is not JSON" 2 'config.json: ' check
rm "$model/config.json"
"$BUILD/nojit" init --preset nojit-tiny-qwen3 --out "$scratch/folder" >"$scratch/out"
"$BUILD/gguf-of" "$scratch/folder" "$scratch/model.gguf"
folder=$model
model=$scratch/model.gguf
uses "a GGUF file" "qknorm_rope_fwd.lp attn_fwd.lp.d64 swiglu_fwd.lp dequantize.lp.type10" "rope_fwd.lp attn_fwd.lp.d128"
# number N BYTES, text TEXT: little-endian, as GGUF has them
number() {
    local i
    for ((i = 0; i < $2; i++)); do printf '%b' "\\x$(printf '%02x' $(($1 >> 8 * i & 255)))"; done
}
text() { number ${#1} 8 && printf '%s' "$1"; }
{
    printf GGUF && number 3 4 && number 0 8 && number 2 8
    text general.architecture && number 8 4 && text gemma3
    text gemma3.attention.key_length && number 4 4 && number 128 4
} >"$scratch/gemma3.gguf"
model=$scratch/gemma3.gguf
uses "a GGUF file whose architecture is named otherwise than its family" "qknorm_rope_fwd.lp attn_fwd.lp.d128" "rope_fwd.lp attn_fwd.lp.d64"
head -c 300 "$scratch/model.gguf" >"$scratch/cut.gguf"
model=$scratch/cut.gguf
refuses "blobcheck --model refuses a cut GGUF file" 2 'cut.gguf: neither a folder nor a whole GGUF file' check
"$BUILD/apr-of" "$scratch/folder" "$scratch/model.apr"
model=$scratch/model.apr
refuses "blobcheck --model refuses an APR file" 2 "model.apr: APR files are not read here; give the model's folder or GGUF file" check
model=$folder
refuses "blobcheck --model refuses a folder without config.json" 2 'config.json: No such file|config.json: .*unable to open' check
finish
