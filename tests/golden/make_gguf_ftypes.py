#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/gguf_ftypes.txt: the types that llama.cpp's quantizer gives to the tensors of tiny models of many shapes.

    python3.11 -m venv /tmp/v && /tmp/v/bin/pip install numpy gguf==0.19.0 cyllama==0.2.18
    /tmp/v/bin/python tests/golden/make_gguf_ftypes.py > tests/golden/gguf_ftypes.txt
The file is kept in the tree; neither build nor tests run this.

A line: family, hidden size, intermediate size, head_dim, heads, key heads, layers, tied (0 or 1), mixture, general.file_type,
and for each role (embedding, head, q, k, v, o, gate, up, down) a letter per layer, or one if all are equal: f F32, h F16,
b BF16, 0 Q8_0, s Q5_0, t Q5_1, 4 Q4_K, 5 Q5_K, 6 Q6_K; - without a head. Of phi3, q stands for q, k and v in one tensor, and up for
gate and up. Norms and biases are F32 in all of them (checked here).
"""
import pathlib
import tempfile

import gguf
import numpy as np
from cyllama.llama import llama_cpp

VOCAB = 64
LETTERS = {"F32": "f", "F16": "h", "BF16": "b", "Q8_0": "0", "Q5_0": "s", "Q5_1": "t", "Q4_K": "4", "Q5_K": "5", "Q6_K": "6"}
MIXTURES = {"f32": 0, "f16": 1, "bf16": 32, "q8_0": 7, "q6_k": 18, "q5_k_m": 17, "q4_k_m": 15}
ROLES = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]

MODELS = [("llama", 256, 256, 64, 4, 2, layers, layers % 2) for layers in [*range(1, 10), 12, 16, 17, 22, 24, 28, 32, 36, 40, 64]]
MODELS += [("llama", 256, 256, 64, 4, kv, 80, 0) for kv in (1, 4)]
MODELS += [("mistral", 256, 256, 64, 4, 1, 80, 0), ("qwen2", 256, 256, 64, 4, 1, 80, 0), ("qwen2", 256, 256, 64, 4, 4, 80, 1)]
MODELS += [("qwen3", 256, 256, 64, 4, 1, 80, 0)]
# Columns that are no multiple of 256, and none of 32.
MODELS += [(family, hidden, 512, 64, hidden // 64, 1, 9, tied) for family in ("llama", "qwen2") for hidden in (896, 960) for tied in (0, 1)]
MODELS += [("qwen3", 256, 288, 64, 5, 1, 8, 1), ("qwen2", 512, 344, 64, 8, 2, 10, 0), ("qwen3", 512, 344, 128, 3, 3, 3, 1)]
MODELS += [("phi3", 256, 256, 64, 4, 4, layers, 0) for layers in (8, 32)]
FUSED = {"attn_q": "attn_qkv", "attn_k": "attn_qkv", "attn_v": "attn_qkv", "ffn_gate": "ffn_up"}


def write(path, model):
    family, hidden, intermediate, head_dim, heads, kv, layers, tied = model
    w = gguf.GGUFWriter(path, "llama" if family == "mistral" else family)
    w.add_context_length(512)
    w.add_embedding_length(hidden)
    w.add_block_count(layers)
    w.add_feed_forward_length(intermediate)
    w.add_head_count(heads)
    w.add_head_count_kv(kv)
    w.add_key_length(head_dim)
    w.add_value_length(head_dim)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_tokenizer_model("gpt2")
    w.add_token_list([f"t{i}" for i in range(VOCAB)])
    w.add_token_merges([])

    def add(name, *shape):
        w.add_tensor(name, np.zeros(shape, np.float32))

    add("token_embd.weight", VOCAB, hidden)
    add("output_norm.weight", hidden)
    if not tied:
        add("output.weight", VOCAB, hidden)
    q, k = heads * head_dim, kv * head_dim
    for i in range(layers):
        shapes = [(q, hidden), (k, hidden), (k, hidden), (hidden, q), (intermediate, hidden), (intermediate, hidden), (hidden, intermediate)]
        if family == "phi3":
            shapes = [(q + 2 * k, hidden), None, None, (hidden, q), None, (2 * intermediate, hidden), (hidden, intermediate)]
        for role, shape in zip(ROLES, shapes):
            if shape:
                add(f"blk.{i}.{named(family, role)}.weight", *shape)
        for norm in ("attn_norm", "ffn_norm"):
            add(f"blk.{i}.{norm}.weight", hidden)
        if family == "qwen2":
            for bias, rows in (("q", q), ("k", k), ("v", k)):
                add(f"blk.{i}.attn_{bias}.bias", rows)
        if family == "qwen3":
            for norm in ("q", "k"):
                add(f"blk.{i}.attn_{norm}_norm.weight", head_dim)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def named(family, role):
    return FUSED.get(role, role) if family == "phi3" else role


def types(path):
    reader = gguf.GGUFReader(path)
    file_type = int(reader.fields["general.file_type"].parts[-1][0])
    return file_type, {t.name: t.tensor_type.name for t in reader.tensors}


def line(of, family, layers):
    wanted = {"token_embd.weight", "output.weight", *(f"blk.{i}.{named(family, r)}.weight" for i in range(layers) for r in ROLES)}
    assert all(t == "F32" for name, t in of.items() if name not in wanted)
    columns = [LETTERS[of["token_embd.weight"]], LETTERS[of["output.weight"]] if "output.weight" in of else "-"]
    for role in ROLES:
        letters = "".join(LETTERS[of[f"blk.{i}.{named(family, role)}.weight"]] for i in range(layers))
        columns.append(letters[0] if len(set(letters)) == 1 else letters)
    return " ".join(columns)


def main():
    with tempfile.TemporaryDirectory() as d:
        for model in MODELS:
            whole, made = str(pathlib.Path(d) / "f32.gguf"), str(pathlib.Path(d) / "made.gguf")
            write(whole, model)
            for name, number in MIXTURES.items():
                params = llama_cpp.LlamaModelQuantizeParams()
                params.ftype = number
                try:
                    llama_cpp.model_quantize(whole, made, params)
                except RuntimeError:
                    assert model[2] % 32 and name == "q8_0"  # llama.cpp has no fallback for Q8_0 there
                    continue
                file_type, of = types(made)
                print(*model, name, file_type, line(of, model[0], model[6]), flush=True)


main()
