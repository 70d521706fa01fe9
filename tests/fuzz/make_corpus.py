#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# make_corpus.py BUILD: writes tests/fuzz/corpus/FORMAT/DEFECT: a small sound file of each format (valid*), the same with one
# defect, and an empty one. BUILD holds the machine code that the fatbin and ELF files are made of (add.f32). Other files there, such as what the
# fuzzers found, are left alone.
import functools
import json
import os
import struct
import sys
import zlib

here = os.path.dirname(__file__)
MAX = (1 << 32) - 1


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def write_all(target, files):
    folder = os.path.join(here, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    for name, data in (files if "valid_empty" in files else {"empty": "", **files}).items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)


# ---- safetensors ----
def weights(header, data=bytes(16), length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


A, B = tensor(), tensor("BF16", (2, 2), (8, 16))
write_all("safetensors", {
    "valid": weights({"__metadata__": {"format": "pt"}, "a": A, "b": B}),
    "valid_unaligned": weights({"aaa": A, "b": B}),
    "valid_empty_tensor": weights({"a": tensor(shape=(0, 3), offsets=(0, 0))}, b""),
    "header_length_cut": b"\x20\0\0",
    "header_length_beyond_file": weights({"a": A, "b": B}, length=1 << 20),
    "header_length_beyond_format": weights({"a": A, "b": B}, length=1 << 40),
    "header_length_wraps": weights({"a": A, "b": B}, length=(1 << 64) - 8),
    "header_length_zero": weights(b"", length=0),
    "header_cut": weights(b'{"a":{"dtype":"F3', b""),
    "header_is_a_list": weights([A, B]),
    "header_not_json": weights(b"\xff\xfe{}"),
    "header_truncated_utf8": weights(b'{"a\xc3":1}'),
    "header_nul": weights(b'{"a\\u0000b":{}}'),
    "header_deep_nesting": weights(b'{"a":' + b"[" * 5000),
    "duplicate_name": weights(b'{"a":' + json.dumps(A).encode() + b',"a":' + json.dumps(A).encode() + b"}"),
    "entry_is_a_number": weights({"a": 1, "b": B}),
    "dtype_missing": weights({"a": {"shape": [2], "data_offsets": [0, 8]}, "b": B}),
    "dtype_unknown": weights({"a": tensor("I8", (8,)), "b": B}),
    "shape_missing": weights({"a": {"dtype": "F32", "data_offsets": [0, 8]}, "b": B}),
    "shape_negative": weights({"a": tensor(shape=(-2,)), "b": B}),
    "shape_of_five": weights({"a": tensor(shape=(1, 1, 1, 1, 2)), "b": B}),
    "shape_product_wraps": weights({"a": tensor(shape=(1 << 32, 1 << 32)), "b": B}),
    "shape_bytes_wrap": weights({"a": tensor(shape=(1 << 62,), offsets=(0, 0)), "b": B}),
    "shape_fraction": weights({"a": tensor(shape=(2.5,)), "b": B}),
    "negative_offset": weights({"a": tensor(offsets=(-8, 0)), "b": B}),
    "offsets_reversed": weights({"a": tensor(offsets=(8, 0)), "b": B}),
    "offsets_of_three": weights({"a": tensor(offsets=(0, 8, 16)), "b": B}),
    "offset_beyond_file": weights({"a": A, "b": tensor(offsets=(1 << 40, (1 << 40) + 8))}),
    "overlapping_tensors": weights({"a": A, "b": tensor(offsets=(4, 12))}, bytes(12)),
    "hole_between_tensors": weights({"a": A, "b": tensor(offsets=(12, 20))}, bytes(20)),
    "bytes_after_last_tensor": weights({"a": A, "b": B}, bytes(17)),
    "data_cut": weights({"a": A, "b": B}, bytes(15)),
    "name_too_long": weights({"a" * 200: A, "b": B}),
    "name_empty": weights({"": A, "b": B}),
})
good = {"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors"}


def index(change=None, total=24):
    return json.dumps({"metadata": {"total_size": total}, "weight_map": {**good, **(change or {})}})


write_all("shards", {
    "valid": index(),
    "valid_without_total": json.dumps({"weight_map": good}),
    "not_json": "{",
    "weight_map_missing": "{}",
    "weight_map_empty": '{"weight_map":{}}',
    "weight_map_is_a_list": '{"weight_map":["a.safetensors"]}',
    "shard_is_a_number": index({"z": 3}),
    "shard_missing": index({"z": "c.safetensors"}),
    "shard_in_another_folder": index({"z": "../b.safetensors"}),
    "shard_name_empty": index({"z": ""}),
    "shard_name_too_long": index({"z": "b" * 5000}),
    "shard_is_the_index": index({"z": "model.safetensors.index.json"}),
    "shard_is_the_folder": index({"z": "."}),
    "tensor_in_another_shard": index({"z": "a.safetensors", "y": "b.safetensors"}),
    "tensor_unknown": index({"w": "a.safetensors"}),
    "tensor_not_in_the_index": json.dumps({"weight_map": {"x": "a.safetensors", "z": "b.safetensors"}}),
    "valid_total_size_of_another_type": index(total=25),
    "valid_total_size_negative": index(total=-24),
})

# ---- caches of hidden states ----
facts = {"format": "nojit-cache/1", "store": "hidden", "dtype": "BF16", "hidden_size": 64, "vocab_size": 264, "source": "teacher",
         **{name: "0123456789abcdef" for name in ("teacher", "head", "config", "rotation")}}
write_all("cache", {
    "valid": json.dumps(facts),
    "valid_field_of_later_versions": json.dumps({**facts, "more": 1}),
    "not_json": "{",
    "is_a_list": "[]",
    "format_unknown": json.dumps({**facts, "format": "nojit-cache/2"}),
    "store_unknown": json.dumps({**facts, "store": "logits"}),
    "dtype_of_blocks": json.dumps({**facts, "dtype": "Q4_K"}),
    "hidden_size_zero": json.dumps({**facts, "hidden_size": 0}),
    "hidden_size_wraps": json.dumps({**facts, "hidden_size": (1 << 32) + 64}),
    "vocab_size_is_a_text": json.dumps({**facts, "vocab_size": "264"}),
    "hash_is_short": json.dumps({**facts, "teacher": "0123456789abcde"}),
    "hash_has_a_sign": json.dumps({**facts, "head": "-123456789abcdef"}),
    "source_missing": json.dumps({name: facts[name] for name in facts if name != "source"}),
})


def shard(change=None, keys=((1, 2), (3, 4)), rows=(0, 1, 3), drop=None):
    """The tensors of two passages with one row and two, in rows of two elements."""
    parts = {
        "key": ("U64", [len(keys), 2], struct.pack(f"<{2 * len(keys)}Q", *(half for key in keys for half in key))),
        "first_row": ("U64", [len(rows)], struct.pack(f"<{len(rows)}Q", *rows)),
        "first_token": ("U64", [3], struct.pack("<3Q", 0, 1, 3)),
        "check": ("U64", [2], bytes(16)),
        "ids": ("I32", [3], bytes(12)),
        "place": ("I32", [3], bytes(12)),
        "hidden": ("F32", [3, 2], bytes(24)),
        **(change or {}),
    }
    header, data = {}, b""
    for name, (dtype, shape, content) in parts.items():
        if name != drop:
            header[name] = tensor(dtype, shape, (len(data), len(data) + len(content)))
            data += content
    return weights(header, data)


write_all("cache_shard", {
    "valid": shard(),
    "valid_without_tokens": shard(drop="ids"),
    "data_cut": shard()[:-1],
    "key_missing": shard(drop="key"),
    "first_row_missing": shard(drop="first_row"),
    "check_missing": shard(drop="check"),
    "hidden_missing": shard(drop="hidden"),
    "rows_reversed": shard(rows=(0, 3, 1)),
    "rows_beyond_the_last": shard(rows=(0, 4, 3)),
    "rows_more_than_there_are": shard(rows=(0, 1, 4)),
    "rows_wrap": shard(rows=(0, 1, (1 << 64) - 1)),
    "rows_of_no_passage": shard({"first_row": ("U64", [0], b"")}),
    "one_key_too_many": shard(keys=((1, 2), (3, 4), (5, 6))),
    "keys_of_one_dimension": shard({"key": ("U64", [4], bytes(32))}),
    "hidden_of_another_type": shard({"hidden": ("BF16", [3, 2], bytes(12))}),
    "hidden_of_another_size": shard({"hidden": ("F32", [2, 3], bytes(24))}),
})

# ---- GGUF files as models ----
def gguf_text(x):
    data = x.encode() if isinstance(x, str) else x
    return struct.pack("<Q", len(data)) + data


def gguf_value(x):  # whole numbers are u32, lists of them arrays of i32
    if isinstance(x, str):
        return struct.pack("<I", 8) + gguf_text(x)
    if isinstance(x, list):
        return struct.pack("<IIQ", 9, 5, len(x)) + struct.pack(f"<{len(x)}i", *x)
    return struct.pack("<If", 6, x) if isinstance(x, float) else struct.pack("<II", 4, x)


gguf_keys = {"general.architecture": "llama", "llama.context_length": 64, "llama.embedding_length": 8, "llama.block_count": 1,
             "llama.feed_forward_length": 8, "llama.attention.head_count": 1, "llama.attention.head_count_kv": 1,
             "llama.attention.key_length": 64, "llama.attention.layer_norm_rms_epsilon": 1e-5}
F32, F16, Q8_0 = 0, 1, 8
gguf_tensors = {"token_embd.weight": (F16, 2, 8), "output_norm.weight": (F32, 8), "blk.0.attn_norm.weight": (F32, 8),
                "blk.0.attn_q.weight": (F16, 64, 8), "blk.0.attn_k.weight": (F16, 64, 8), "blk.0.attn_v.weight": (F16, 64, 8),
                "blk.0.attn_output.weight": (F16, 8, 64), "blk.0.ffn_norm.weight": (F32, 8), "blk.0.ffn_gate.weight": (F16, 8, 8),
                "blk.0.ffn_up.weight": (F16, 8, 8), "blk.0.ffn_down.weight": (F16, 8, 8)}


def gguf(keys=None, tensors=None, data=None, arch="llama"):
    keys = {k.replace("llama.", arch + "."): v for k, v in {**gguf_keys, **(keys or {})}.items() if v is not None}
    tensors = {k: v for k, v in {**gguf_tensors, **(tensors or {})}.items() if v}
    head, body = b"", b""
    for key, value in keys.items():
        head += gguf_text(key) + gguf_value(value)
    for name, (kind, *shape) in tensors.items():
        head += gguf_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(body))
        elements = functools.reduce(lambda a, b: a * b, shape)
        size = {F32: 4 * elements, F16: 2 * elements, Q8_0: elements // 32 * 34}[kind]
        body += (data or {}).get(name, bytes(range(1, 56)) * size)[:size]
        body += bytes(-len(body) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + head
    return head + bytes(-len(head) % 32) + body


# Two layers, of which the second has attention, and the first a convolution or the delta rule.
no_attention = {f"blk.0.attn_{part}.weight": None for part in ("q", "k", "v", "output")}
second_layer = {name.replace("blk.0", "blk.1"): shape for name, shape in gguf_tensors.items() if "blk.0" in name}
head_norms = {"blk.1.attn_q_norm.weight": (F32, 64), "blk.1.attn_k_norm.weight": (F32, 64)}
lfm2_keys = {"general.architecture": "lfm2", "llama.block_count": 2, "llama.attention.head_count_kv": [0, 1], "llama.shortconv.l_cache": 3}
lfm2_tensors = {**no_attention, **second_layer, **head_norms, "output_norm.weight": None, "token_embd_norm.weight": (F32, 8),
                "blk.0.shortconv.in_proj.weight": (F16, 24, 8), "blk.0.shortconv.conv.weight": (F32, 8, 3),
                "blk.0.shortconv.out_proj.weight": (F16, 8, 8)}
qwen35_keys = {"general.architecture": "qwen35", "llama.block_count": 2, "llama.full_attention_interval": 2, "llama.ssm.conv_kernel": 4,
               "llama.ssm.state_size": 64, "llama.ssm.group_count": 2, "llama.ssm.time_step_rank": 4, "llama.ssm.inner_size": 256,
               "llama.rope.dimension_count": 16, "llama.rope.dimension_sections": [11, 11, 10, 0]}
qwen35_tensors = {**no_attention, **second_layer, **head_norms, "blk.1.attn_q.weight": (F16, 128, 8),
                  **{f"blk.{layer}.{name}": shape for layer in (0, 1)
                     for name, shape in (("ffn_norm.weight", None), ("post_attention_norm.weight", (F32, 8)))},
                  "blk.0.attn_qkv.weight": (F16, 512, 8), "blk.0.attn_gate.weight": (F16, 256, 8), "blk.0.ssm_alpha.weight": (F32, 4, 8),
                  "blk.0.ssm_beta.weight": (F32, 4, 8), "blk.0.ssm_conv1d.weight": (F32, 512, 4), "blk.0.ssm_a": (F32, 4),
                  "blk.0.ssm_dt.bias": (F32, 4), "blk.0.ssm_norm.weight": (F32, 64), "blk.0.ssm_out.weight": (Q8_0, 8, 256)}
qkv = {"blk.0.attn_q.weight": None, "blk.0.attn_k.weight": None, "blk.0.attn_v.weight": None}
ones = struct.pack("<32f", *[1.0] * 32)
write_all("gguf_model", {
    "valid": gguf(),
    "valid_untied": gguf(tensors={"output.weight": (F16, 2, 8)}),
    "valid_fused": gguf(tensors={**qkv, "blk.0.attn_qkv.weight": (F16, 192, 8)}),
    "valid_quantized": gguf(tensors={"blk.0.attn_output.weight": (Q8_0, 8, 64)}),
    "valid_rope_freqs": gguf(tensors={"rope_freqs.weight": (F32, 32)}, data={"rope_freqs.weight": ones}),
    "valid_arrays": gguf({"llama.feed_forward_length": [8], "llama.attention.head_count": [1]}),
    "valid_qwen3": gguf({"general.architecture": "qwen3"}, {"blk.0.attn_q_norm.weight": (F32, 64),
                                                            "blk.0.attn_k_norm.weight": (F32, 64)}, arch="qwen3"),
    "valid_lfm2": gguf(lfm2_keys, lfm2_tensors, arch="lfm2"),
    "valid_qwen35": gguf(qwen35_keys, qwen35_tensors, arch="qwen35"),
    "valid_predictions": gguf(qwen35_keys | {"llama.block_count": 3, "llama.nextn_predict_layers": 1},
                              qwen35_tensors | {"blk.2.nextn.eh_proj.weight": (F16, 8, 8)}, arch="qwen35"),
    "predictions_only": gguf(qwen35_keys | {"llama.nextn_predict_layers": 2}, qwen35_tensors, arch="qwen35"),
    "interval_zero": gguf(qwen35_keys | {"llama.full_attention_interval": 0}, qwen35_tensors, arch="qwen35"),
    "sections_negative": gguf(qwen35_keys | {"llama.rope.dimension_sections": [11, -11, 10, 0]}, qwen35_tensors, arch="qwen35"),
    "value_heads_do_not_divide": gguf(qwen35_keys | {"llama.ssm.group_count": 3}, qwen35_tensors, arch="qwen35"),
    "taps_quantized": gguf(lfm2_keys | {"llama.shortconv.l_cache": 8},
                           lfm2_tensors | {"blk.0.shortconv.conv.weight": (Q8_0, 8, 8)}, arch="lfm2"),
    "key_heads_of_too_few_layers": gguf(lfm2_keys | {"llama.attention.head_count_kv": [0]}, lfm2_tensors, arch="lfm2"),
    "arch_missing": gguf({"general.architecture": None}),
    "arch_unknown": gguf({"general.architecture": "gemma"}),
    "arch_with_nul": gguf({"general.architecture": "llama\0"}),
    "heads_zero": gguf({"llama.attention.head_count": 0}),
    "heads_many": gguf({"llama.attention.head_count": MAX}),
    "heads_do_not_divide": gguf({"llama.attention.head_count": 3, "llama.attention.head_count_kv": 2}),
    "head_dim_odd": gguf({"llama.attention.key_length": 65}),
    "layers_many": gguf({"llama.block_count": 1 << 30}),
    "layers_differ": gguf({"llama.feed_forward_length": [8, 16]}),
    "array_empty": gguf({"llama.feed_forward_length": []}),
    "eps_is_text": gguf({"llama.attention.layer_norm_rms_epsilon": "1e-5"}),
    "eps_infinite": gguf({"llama.attention.layer_norm_rms_epsilon": float("inf")}),
    "theta_nan": gguf({"llama.rope.freq_base": float("nan")}),
    "vocab_beyond_the_table": gguf({"llama.vocab_size": 3}),
    "table_of_no_rows": gguf(tensors={"token_embd.weight": (F32, 8)}),
    "table_missing": gguf(tensors={"token_embd.weight": None}),
    "tensor_missing": gguf(tensors={"blk.0.ffn_up.weight": None}),
    "tensor_unknown": gguf(tensors={"blk.0.attn_output.bias": (F32, 8)}),
    "tensor_of_another_layer": gguf(tensors={"blk.1.attn_norm.weight": (F32, 8)}),
    "tensor_transposed": gguf(tensors={"blk.0.attn_output.weight": (F16, 64, 8)}),
    "rows_of_half_a_head": gguf(tensors={"blk.0.attn_q.weight": (F16, 32, 8)}),
    "fused_and_apart": gguf(tensors={"blk.0.attn_qkv.weight": (F16, 192, 8)}),
    "fused_beside_queries": gguf(tensors={**qkv, "blk.0.attn_q.weight": (F16, 64, 8), "blk.0.attn_qkv.weight": (F16, 192, 8)}),
    "fused_short": gguf(tensors={**qkv, "blk.0.attn_qkv.weight": (F16, 191, 8)}),
    "fused_of_rank_1": gguf(tensors={**qkv, "blk.0.attn_qkv.weight": (F32, 192)}),
    "norm_quantized": gguf({"general.architecture": "qwen3"}, {"blk.0.attn_q_norm.weight": (Q8_0, 64),
                                                               "blk.0.attn_k_norm.weight": (F32, 64)}, arch="qwen3"),
    "biases_of_llama": gguf(tensors={"blk.0.attn_q.bias": (F32, 64)}),
    "biases_missing": gguf({"general.architecture": "qwen2"}, arch="qwen2"),
    "rope_freqs_infinite": gguf(tensors={"rope_freqs.weight": (F32, 32)}, data={"rope_freqs.weight": b"\0\0\x80\x7f" * 32}),
    "rope_freqs_of_zeros": gguf(tensors={"rope_freqs.weight": (F32, 32)}, data={"rope_freqs.weight": bytes(128)}),
    "rope_freqs_negative": gguf(tensors={"rope_freqs.weight": (F32, 32)}, data={"rope_freqs.weight": b"\0\0\x80\xbf" * 32}),
    "rope_freqs_short": gguf(tensors={"rope_freqs.weight": (F32, 31)}),
    "valid_rope_scaling_yarn": gguf({"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0}),
    "experts": gguf({"llama.expert_count": 8}),
    "eos_beyond_vocabulary": gguf({"tokenizer.ggml.eos_token_id": 2}),
})

# ---- APR files as models, with tokenizers ----
APR_Q4_K, APR_BF16, APR_Q4, APR_Q8 = 12, 30, 128, 129
apr_keys = {"architecture": "llama", "original_format": "gguf", "hidden_size": 8, "num_layers": 1, "num_heads": 1, "num_kv_heads": 1,
            "vocab_size": 2, "intermediate_size": 8, "max_position_embeddings": 64, "rope_type": 0, "rope_theta": 1e4,
            "rms_norm_eps": 1e-5, "head_dim": 64, "license": None}
layer = "model.layers.0."
apr_tensors = {"model.embed_tokens.weight": (F16, 2, 8), "model.norm.weight": (F32, 8), layer + "input_layernorm.weight": (F32, 8),
               layer + "post_attention_layernorm.weight": (F32, 8), layer + "self_attn.q_proj.weight": (APR_Q4, 64, 8),
               layer + "self_attn.k_proj.weight": (F16, 64, 8), layer + "self_attn.v_proj.weight": (APR_BF16, 64, 8),
               layer + "self_attn.o_proj.weight": (APR_Q4, 8, 64), layer + "mlp.gate_proj.weight": (APR_Q8, 8, 8),
               layer + "mlp.up_proj.weight": (F16, 8, 8), layer + "mlp.down_proj.weight": (F16, 8, 8)}


def apr_bytes(kind, elements):
    return {F32: 4 * elements, F16: 2 * elements, APR_BF16: 2 * elements, APR_Q4: -(-elements // 32) * 18, APR_Q8: 4 + elements,
            APR_Q4_K: elements // 256 * 144}.get(kind, elements)


def apr_seal(data):
    crc = struct.pack("<I", zlib.crc32(data[:40] + data[44:64]))
    data = data[:40] + crc + data[44:]
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


def apr(keys=None, tensors=None, metadata=None, flags=1024, version=2, sort=True, change=None, count=None):
    """change: a tensor's name, then where and what in its entry after the name."""
    text = metadata if metadata is not None else json.dumps({k: v for k, v in {**apr_keys, **(keys or {})}.items() if v != ""}).encode()
    tensors = {k: v for k, v in {**apr_tensors, **(tensors or {})}.items() if v}
    index, body = b"", b""
    for name, (kind, *shape) in sorted(tensors.items(), reverse=not sort):
        size = apr_bytes(kind, functools.reduce(lambda a, b: a * b, shape))
        entry = struct.pack(f"<BB{len(shape)}QQQ", kind, len(shape), *shape, len(body), size)
        if change and change[0] == name:
            entry = entry[:change[1]] + change[2] + entry[change[1] + len(change[2]):]
        index += struct.pack("<H", len(name)) + name.encode() + entry
        body += (bytes(range(1, 56)) * size)[:size]
        body += bytes(-len(body) % 64)
    text_end = 64 + len(text) + -len(text) % 64
    head = b"APR\0" + struct.pack("<BBHIQIQQ", version, 0, flags, len(tensors) if count is None else count, 64, len(text), text_end,
                                  text_end + len(index) + -len(index) % 64) + bytes(24)
    return apr_seal(head + text + bytes(-len(text) % 64) + index + bytes(-len(index) % 64) + body + bytes(4))


letters = [chr(c) for c in [*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324)]]  # of the 256 bytes
apr_words = {"tokenizer.vocabulary": [*letters, "ab", "<|endoftext|>"], "tokenizer.token_type": [1] * 257 + [3], "tokenizer.merges": ["a b"],
             "tokenizer.model": "gpt2", "tokenizer.pre_type": "gpt-2", "tokenizer.eos_token_id": 257, "vocab_size": 258}
apr_table = {"model.embed_tokens.weight": (F16, 258, 8)}
apr_valid = apr()
up = layer + "mlp.up_proj.weight"
write_all("apr", {
    "valid": apr_valid,
    "valid_halves": apr({"rope_type": 2, "original_format": ""}),
    "valid_names_of_gguf": apr(tensors={"model.embed_tokens.weight": None, "token_embd.weight": (F16, 2, 8)}),
    "valid_tied_copy": apr({"tied_embeddings": True}, {"lm_head.weight": (F16, 2, 8)}),
    "valid_untied": apr(tensors={"lm_head.weight": (APR_Q8, 2, 8)}),
    "valid_aliases": apr({"hidden_size": None, "n_embd": 8, "num_layers": None, "n_layer": 1}),
    "valid_q4_k": apr({"intermediate_size": 256}, {layer + "mlp.gate_proj.weight": (F16, 256, 8), up: (APR_Q4, 256, 8),
                                                   layer + "mlp.down_proj.weight": (APR_Q4_K, 8, 256)}),
    "valid_tokenizer": apr(apr_words, apr_table),
    "valid_tokenizer_without_types": apr({**apr_words, "tokenizer.token_type": None}, apr_table),
    "valid_key_twice": apr(metadata=b'{"num_layers": 7, ' + json.dumps(apr_keys).encode()[1:]),
    "magic_wrong": b"APX" + apr_valid[3:],
    "version_1": b"APRN" + apr_valid[4:],
    "version_3": apr(version=3),
    "header_cut": apr_valid[:40],
    "metadata_cut": apr_valid[:200],
    "index_cut": apr_valid[:800],
    "data_cut": apr_valid[:-200],
    "header_checksum_wrong": apr_valid[:41] + b"x" + apr_valid[42:],
    "footer_checksum_wrong": apr_valid[:-1] + b"x",
    "flag_lz4": apr(flags=1025),
    "flag_zstd": apr(flags=1026),
    "flag_encrypted": apr(flags=1028),
    "flag_sharded": apr(flags=1040),
    "flag_columns": apr(flags=3072),
    "metadata_not_json": apr(metadata=b"{"),
    "metadata_a_list": apr(metadata=b"[]"),
    "metadata_deep": apr(metadata=b'{"a":' + b"[" * 5000),
    "metadata_beyond_file": apr_seal(apr_valid[:12] + struct.pack("<Q", 1 << 40) + apr_valid[20:]),
    "metadata_size_beyond": apr_seal(apr_valid[:20] + struct.pack("<I", MAX) + apr_valid[24:]),
    "index_beyond_file": apr_seal(apr_valid[:24] + struct.pack("<Q", (1 << 64) - 64) + apr_valid[32:]),
    "data_unaligned": apr_seal(apr_valid[:32] + struct.pack("<Q", 65) + apr_valid[40:]),
    "data_wraps": apr_seal(apr_valid[:32] + struct.pack("<Q", (1 << 64) - 64) + apr_valid[40:]),
    "count_beyond_file": apr(count=MAX),
    "count_more": apr(count=12),
    "count_fewer": apr(count=10),
    "index_unsorted": apr(sort=False),
    "type_unknown": apr(change=(up, 0, b"\x02")),
    "type_f64": apr(change=(up, 0, b"\x03")),
    "type_mxfp4": apr(change=(up, 0, b"\x27")),
    "rank_zero": apr(change=(up, 1, b"\0")),
    "rank_of_nine": apr(change=(up, 1, b"\x09")),
    "shape_of_zero": apr(change=(up, 2, bytes(8))),
    "shape_wraps": apr(change=(up, 2, struct.pack("<QQ", 1 << 32, 1 << 32))),
    "offset_unaligned": apr(change=(up, 18, b"\x01")),
    "offset_beyond": apr(change=(up, 18, struct.pack("<Q", 1 << 62))),
    "offset_wraps": apr(change=(up, 18, struct.pack("<Q", (1 << 64) - 64))),
    "tensors_overlap": apr(change=(up, 18, bytes(8))),
    "bytes_too_many": apr(change=(up, 26, struct.pack("<Q", 129))),
    "name_long": apr(tensors={"a" * 128: (F32, 1)}),
    "norm_quantized": apr(tensors={"model.norm.weight": (APR_Q8, 8)}),
    "rows_of_half_a_block": apr(tensors={up: (APR_Q4_K, 8, 8)}),
    "architecture_missing": apr({"architecture": None}),
    "architecture_unknown": apr({"architecture": "bert"}),
    "layers_missing": apr({"num_layers": None}),
    "layers_many": apr({"num_layers": 1 << 30}),
    "heads_a_text": apr({"num_heads": "1"}),
    "theta_negative": apr({"rope_theta": -1}),
    "experts": apr({"num_experts": 8}),
    "rope_type_0_of_safetensors": apr({"original_format": None}),
    "rope_type_unknown": apr({"rope_type": 1}),
    "tensor_missing": apr(tensors={up: None}),
    "tensor_unknown": apr(tensors={"x": (F32, 1)}),
    "tensor_twice": apr(tensors={"token_embd.weight": (F16, 2, 8)}),
    "tensor_transposed": apr(tensors={layer + "self_attn.o_proj.weight": (APR_Q4, 64, 8)}),
    "rope_freqs_short": apr(tensors={"rope_freqs.weight": (F32, 31)}),
    "head_missing_bytes": apr({"tied_embeddings": True}, {"lm_head.weight": (F16, 3, 8)}),
})

# ---- quantized folders: quantization_config, then the weights; a matrix of 32 rows and 64 columns ----
def quantized(scheme, parts, extra=None):
    """parts: dtype, shape, and data or its length, by what comes after the name of the module."""
    entries, data = {}, b""
    for name, (dtype, shape, body) in parts.items():
        body = bytes(body) if isinstance(body, int) else body
        entries["model.layers.0.mlp.down_proj." + name] = tensor(dtype, shape, (len(data), len(data) + len(body)))
        data += body
    line = scheme if isinstance(scheme, str) else json.dumps(scheme)
    return line.encode() + b"\n" + weights({**entries, **(extra or {})}, data)


def state(**fields):
    text = json.dumps({"quant_type": "nf4", "blocksize": 64, "shape": [32, 64], **fields}).encode()
    return "U8", (len(text),), text


def with_part(parts, **changes):
    return {k: v for k, v in {**parts, **{k.replace("__", "."): v for k, v in changes.items()}}.items() if v}


code = struct.pack("<16f", -1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                   -0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
                   0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1)
NF4_STATE = "weight.quant_state.bitsandbytes__nf4"
bnb = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
nf4 = {"weight": ("U8", (1024, 1), 1024), "weight.absmax": ("F32", (32,), 128), "weight.quant_map": ("F32", (16,), code), NF4_STATE: state()}
nested = {**nf4, "weight.absmax": ("U8", (32,), bytes(range(32))), "weight.nested_absmax": ("F32", (2,), 8),
          "weight.nested_quant_map": ("F32", (256,), 1024), NF4_STATE: state(nested_blocksize=16, nested_offset=0.5)}
gptq_config = {"quant_method": "gptq", "bits": 4, "group_size": 32}
order = struct.pack("<64i", *(c // 32 for c in range(64)))
gptq = {"qweight": ("I32", (8, 32), 1024), "qzeros": ("I32", (2, 4), 32), "scales": ("F16", (2, 32), 128), "g_idx": ("I32", (64,), order)}
awq_config = {"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm"}
awq = {"qweight": ("I32", (64, 4), 1024), "qzeros": ("I32", (1, 4), 16), "scales": ("F16", (1, 32), 64)}


def ct_config(form, **w):
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": {"group_0": {"weights": w}}}


ct = ct_config("pack-quantized", num_bits=4, type="int", group_size=32)
packed = {"weight_packed": ("I32", (32, 8), 1024), "weight_scale": ("BF16", (32, 2), 128), "weight_shape": ("I64", (2,), 16)}
zeros = {**packed, "weight_zero_point": ("I32", (4, 2), 32)}
fp8 = {"quant_method": "fp8", "weight_block_size": [24, 32]}
f8 = {"weight": ("F8_E4M3", (32, 64), 2048), "weight_scale_inv": ("F32", (2, 2), 16)}
f8_tensor = {"weight": ("F8_E4M3", (32, 64), 2048), "weight_scale": ("BF16", (1,), 2)}
f8_config = ct_config("float-quantized", num_bits=8, type="float")
write_all("quantized", {
    "valid_nf4": quantized(bnb, nf4),
    "valid_nf4_nested": quantized(bnb, nested),
    "valid_gptq": quantized(gptq_config, gptq),
    "valid_gptq_v2": quantized({**gptq_config, "checkpoint_format": "gptq_v2"}, with_part(gptq, g_idx=None)),
    "valid_awq": quantized(awq_config, awq),
    "valid_packed": quantized(ct, packed),
    "valid_zeros": quantized(ct, zeros),
    "valid_zeros_in_bytes": quantized(ct, with_part(packed, weight_zero_point=("I8", (32, 2), 64))),
    "valid_fp8": quantized(fp8, f8),
    "valid_fp8_of_a_tensor": quantized(f8_config, f8_tensor),
    "valid_not_quantized": quantized("null", {"weight": ("F32", (2,), 8)}),
    "scheme_is_a_number": quantized("4", gptq),
    "method_unknown": quantized({"quant_method": "mxfp4"}, gptq),
    "bits_8": quantized({**gptq_config, "bits": 8}, gptq),
    "group_negative": quantized({**gptq_config, "group_size": -32}, gptq),
    "group_huge": quantized({**gptq_config, "group_size": 1 << 62}, gptq),
    "group_of_8": quantized({**gptq_config, "group_size": 8}, gptq),
    "groups_are_a_number": quantized({**ct, "config_groups": 4}, packed),
    "groups_differ": quantized({**ct, "config_groups": {"a": ct["config_groups"]["group_0"], "b": {"weights": {"num_bits": 4, "type": "int"}}}}, packed),
    "block_of_one_size": quantized({**fp8, "weight_block_size": [24]}, f8),
    "block_zero": quantized({**fp8, "weight_block_size": [0, 32]}, f8),
    "block_huge": quantized({**fp8, "weight_block_size": [1 << 62, 1 << 62]}, f8),
    "nf4_state_not_json": quantized(bnb, {**nf4, NF4_STATE: ("U8", (4,), b"{\xff\0}")}),
    "nf4_state_of_no_bytes": quantized(bnb, {**nf4, NF4_STATE: ("U8", (0,), b"")}),
    "nf4_blocksize_0": quantized(bnb, {**nf4, NF4_STATE: state(blocksize=0)}),
    "nf4_blocksize_huge": quantized(bnb, {**nf4, NF4_STATE: state(blocksize=1 << 62)}),
    "nf4_shape_turned": quantized(bnb, {**nf4, NF4_STATE: state(shape=[64, 32])}),
    "nf4_nested_of_0": quantized(bnb, {**nested, NF4_STATE: state(nested_blocksize=0)}),
    "nf4_nested_absmax_short": quantized(bnb, {**nested, "weight.nested_absmax": ("F32", (1,), 4)}),
    "nf4_code_short": quantized(bnb, {**nf4, "weight.quant_map": ("F32", (8,), 32)}),
    "nf4_code_of_zeros": quantized(bnb, {**nf4, "weight.quant_map": ("F32", (16,), 64)}),
    "nf4_weight_short": quantized(bnb, {**nf4, "weight": ("U8", (1023, 1), 1023)}),
    "nf4_weight_missing": quantized(bnb, with_part(nf4, weight=None)),
    "gptq_zeros_missing": quantized(gptq_config, with_part(gptq, qzeros=None)),
    "gptq_zeros_short": quantized(gptq_config, with_part(gptq, qzeros=("I32", (2, 3), 24))),
    "gptq_scales_float": quantized(gptq_config, with_part(gptq, scales=("F32", (2, 32), 256))),
    "gptq_weight_turned": quantized(gptq_config, with_part(gptq, qweight=("I32", (32, 8), 1024))),
    "gptq_order_mixed": quantized(gptq_config, with_part(gptq, g_idx=("I32", (64,), order[::-1]))),
    "gptq_order_negative": quantized(gptq_config, with_part(gptq, g_idx=("I32", (64,), b"\xff" * 256))),
    "gptq_order_short": quantized(gptq_config, with_part(gptq, g_idx=("I32", (1,), 4))),
    "awq_weight_of_gptq": quantized(awq_config, with_part(awq, qweight=("I32", (8, 32), 1024))),
    "packed_in_order": quantized(ct, with_part(packed, weight_g_idx=("I32", (64,), order))),
    "packed_zeros_short": quantized(ct, with_part(zeros, weight_zero_point=("I32", (3, 2), 24))),
    "fp8_scale_missing": quantized(fp8, with_part(f8, weight_scale_inv=None)),
    "fp8_scales_few": quantized(fp8, with_part(f8, weight_scale_inv=("F32", (1, 2), 8))),
    "fp8_scales_of_no_rows": quantized(fp8, with_part(f8, weight_scale_inv=("F32", (0, 2), 0))),
    "fp8_scales_in_bytes": quantized(fp8, with_part(f8, weight_scale_inv=("U8", (2, 2), 4))),
    "fp8_weight_of_another_shape": quantized(fp8, with_part(f8, weight=("F8_E4M3", (64, 32), 2048))),
    "left_over": quantized(awq_config, with_part(awq, g_idx=("I32", (64,), order))),
    "quantized_and_not": quantized(awq_config, with_part(awq, weight=("F32", (32, 64), 8192))),
})

# ---- GGUF files byte by byte ----
def gguf_file(keys=(), tensors=(), data=bytes(64), version=3, counts=None, alignment=32):
    """keys: (key, type, bytes of the value); tensors: (name, sizes, type, offset)."""
    counts = counts or (len(tensors), len(keys))
    head = b"GGUF" + struct.pack("<IQQ", version, *counts)
    for key, kind, value in keys:
        head += gguf_text(key) + struct.pack("<I", kind) + value
    for name, sizes, kind, offset in tensors:
        head += gguf_text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, offset)
    return head + bytes(-len(head) % alignment) + data


def array(kind, count, elements):
    return struct.pack("<IQ", kind, count) + elements


U16, U32, BOOL, TEXT, ARRAY, U64 = 2, 4, 7, 8, 9, 10
every_type = [(f"k{kind}", kind, bytes(range(1, 9))[:size]) for kind, size in
              enumerate((1, 1, 2, 2, 4, 4, 4, 1, None, None, 8, 8, 8)) if size]
text_key = ("text", TEXT, struct.pack("<Q", 3) + b"a\0\x1b")
texts_key = ("texts", ARRAY, array(TEXT, 2, gguf_text("one") + gguf_text("")))
split = [("split.no", U16, b"\0\0"), ("split.count", U16, b"\2\0")]
w = ("w", (8,), F32, 0)
blocks = {1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176),
          14: (256, 210), 20: (32, 18), 23: (256, 136), 30: (1, 2)}  # elements and bytes, by ggml's number
offsets = [1 + sum(size for _, size in list(blocks.values())[:i]) for i in range(len(blocks) + 1)]
write_all("gguf", {
    "valid": gguf_file([*every_type, text_key, texts_key], [w, ("v", (2, 4), F32, 32)]),
    "valid_version_2": gguf_file([text_key], [w], version=2),
    "valid_nothing": gguf_file(data=b""),
    "valid_arrays": gguf_file([(f"a{kind}", ARRAY, array(kind, 2, value * 2)) for _, kind, value in every_type]),
    "valid_array_of_none": gguf_file([("a", ARRAY, array(TEXT, 0, b"")), ("b", ARRAY, array(U64, 0, b""))]),
    "valid_integer_of_64_bits": gguf_file([("a", ARRAY, array(U64, 2, b"\xff" * 16)), ("b", U64, b"\xff" * 8)]),
    "valid_quantized": gguf_file(tensors=[("q", (32, 2), Q8_0, 0)], data=bytes(range(68))),
    "valid_every_type_unaligned": gguf_file([("general.alignment", U32, struct.pack("<I", 1))], [(f"t{kind}", (elements,), kind, at) for
                                            (kind, (elements, _)), at in zip(blocks.items(), offsets)], bytes(range(256)) * 5, alignment=1),
    "valid_alignment_of_1": gguf_file([("general.alignment", U32, struct.pack("<I", 1))], [("w", (8,), F32, 3)], alignment=1),
    "valid_order_of_their_own": gguf_file(tensors=[("w", (8,), F32, 32), ("v", (8,), F32, 0)]),
    "valid_gap": gguf_file(tensors=[("w", (8,), F32, 0), ("v", (8,), F32, 64)], data=bytes(96)),
    "valid_first_of_two": gguf_file([*split, ("split.tensors.count", U16, b"\2\0")], [w]),
    "valid_key_with_nul": gguf_file([("a\0b", BOOL, b"\1"), ("a", BOOL, b"\1")]),
    "magic": b"GGML" + gguf_file()[4:],
    "pointer_of_git_lfs": "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 9\n",
    "version_0": gguf_file(version=0),
    "version_1": gguf_file(version=1),
    "version_4": gguf_file(version=4),
    "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "header_cut": gguf_file([text_key])[:23],
    "keys_more_than_bytes": gguf_file(counts=(0, 1 << 60)),
    "keys_more_than_there_are": gguf_file([text_key], counts=(0, 2), data=b""),
    "tensors_more_than_bytes": gguf_file(counts=(1 << 60, 0)),
    "key_empty": gguf_file([("", BOOL, b"\1")]),
    "key_of_64_kib": gguf_file([("k" * 65536, BOOL, b"\1")]),
    "key_twice": gguf_file([text_key, text_key]),
    "key_beyond_the_file": gguf_file([text_key]).replace(struct.pack("<Q", 4) + b"text", struct.pack("<Q", 4000) + b"text"),
    "type_unknown": gguf_file([("a", 13, bytes(8))]),
    "array_type_unknown": gguf_file([("a", ARRAY, array(13, 1, bytes(8)))]),
    "array_of_arrays": gguf_file([("a", ARRAY, array(ARRAY, 1, array(BOOL, 1, b"\1")))]),
    "array_beyond_the_file": gguf_file([("a", ARRAY, array(U32, 1 << 20, b""))]),
    "array_count_wraps": gguf_file([("a", ARRAY, array(U64, 1 << 61, b""))]),
    "array_of_texts_beyond_the_file": gguf_file([("a", ARRAY, array(TEXT, 9, bytes(8)))], data=b""),
    "text_beyond_the_file": gguf_file([("a", TEXT, struct.pack("<Q", 1 << 20))]),
    "text_length_wraps": gguf_file([("a", TEXT, struct.pack("<Q", (1 << 64) - 8))]),
    "alignment_zero": gguf_file([("general.alignment", U32, bytes(4))], [w]),
    "alignment_of_three": gguf_file([("general.alignment", U32, b"\3\0\0\0")], [w]),
    "alignment_beyond_the_file": gguf_file([("general.alignment", U32, b"\0\0\1\0")], [w]),
    "alignment_is_text": gguf_file([("general.alignment", TEXT, gguf_text("32"))], [w]),
    "name_empty": gguf_file(tensors=[("", (8,), F32, 0)]),
    "name_too_long": gguf_file(tensors=[("w" * 64, (8,), F32, 0)]),
    "name_with_nul": gguf_file(tensors=[("w\0v", (8,), F32, 0)]),
    "name_twice": gguf_file(tensors=[w, ("w", (8,), F32, 32)]),
    "no_dimensions": gguf_file(tensors=[("w", (), F32, 0)]),
    "five_dimensions": gguf_file(tensors=[("w", (1,) * 5, F32, 0)]),
    "dimension_zero": gguf_file(tensors=[("w", (8, 0), F32, 0)]),
    "shape_wraps": gguf_file(tensors=[("w", (1 << 32, 1 << 32), F32, 0)]),
    "shape_bytes_wrap": gguf_file(tensors=[("w", (1 << 62,), F32, 0)]),
    "tensor_type_unknown": gguf_file(tensors=[("w", (8,), 4, 0)]),
    "tensor_type_not_supported": gguf_file(tensors=[("w", (32,), 40, 0)]),
    "tensor_type_beyond_the_table": gguf_file(tensors=[("w", (8,), MAX, 0)]),
    "rows_of_half_a_block": gguf_file(tensors=[("w", (16, 4), Q8_0, 0)]),
    "offset_unaligned": gguf_file(tensors=[("w", (8,), F32, 8)]),
    "offset_beyond_the_file": gguf_file(tensors=[("w", (8,), F32, 64)]),
    "offset_wraps": gguf_file(tensors=[("w", (8,), F32, (1 << 64) - 32)]),
    "tensors_overlap": gguf_file(tensors=[("w", (16,), F32, 0), ("v", (8,), F32, 32)]),
    "tensors_in_one_place": gguf_file(tensors=[("w", (8,), F32, 0), ("v", (8,), F32, 0)]),
    "data_cut": gguf_file(tensors=[w], data=bytes(31)),
    "data_missing": gguf_file(tensors=[w], data=b"")[:-1],
    "second_of_two": gguf_file([("split.no", U16, b"\1\0"), split[1]], [w]),
    "part_beyond_the_count": gguf_file([("split.no", U64, b"\xff" * 7 + b"\x7f"), split[1]], [w]),
    "part_missing": gguf_file([split[0], ("split.count", U16, b"\3\0")], [w]),
    "parts_too_many": gguf_file([split[0], ("split.count", U16, b"\xff\xff")], [w]),
    "parts_hold_fewer_tensors": gguf_file([*split, ("split.tensors.count", U16, b"\3\0")], [w]),
    "tensor_of_the_other_part": gguf_file(split, [("second", (8,), F32, 0)]),
})

# what blobcheck reads of them
values = gguf()[:640]
write_all("gguf_keys", {
    "valid": values,
    "valid_text_key_too_long": gguf({"llama." + "a" * 100: "b" * 100})[:900],
    "valid_array_of_heads": gguf({"llama.attention.head_count": [1, 1]})[:700],
    "magic": b"GGML" + values[4:],
    "cut_in_a_key": values[:60],
    "cut_in_the_counts": values[:20],
    "values_more_than_bytes": values[:16] + struct.pack("<Q", 1 << 60) + values[24:],
    "text_beyond_the_file": values[:24] + struct.pack("<Q", 1 << 63) + values[32:],
    "type_unknown": values.replace(struct.pack("<I", 8) + gguf_text("llama"), struct.pack("<I", 13) + gguf_text("llama")),
    "array_beyond_the_file": gguf({"a.b": [7, 7, 7]}).replace(struct.pack("<IIQ", 9, 5, 3), struct.pack("<IIQ", 9, 5, 1 << 62))[:700],
    "array_of_arrays": gguf({"a.b": [7, 7, 7]}).replace(struct.pack("<IIQ", 9, 5, 3), struct.pack("<IIQ", 9, 9, 3))[:700],
})

# ---- configurations ----
model = {"model_type": "qwen2", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2,
         "num_key_value_heads": 1, "vocab_size": 264, "eos_token_id": [5, 6], "rope_theta": 1e6}
scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 8192}
lora = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "model.layers.0.mlp.down_proj"]}


def config(**change):
    return json.dumps({**model, **change})


write_all("json", {
    "valid": '{"a":[1,-2.5e3,"x"],"b":{"c":null}}',
    "valid_words": '{"a":NaN,"b":[Infinity,-Infinity]}',
    "valid_words_in_texts": '{"NaN":"Infinity \\" NaN"}',
    "valid_number_of_100_bits": '{"a":1000000000000000019884624838656}',
    "valid_number_of_1000_digits": "[-" + "9" * 1000 + "]",
    "valid_float_too_large": "[1e400,-1e400]",
    "valid_byte_order_mark": b'\xef\xbb\xbf{"a":1}',
    "valid_field_twice": '{"a":1,"a":NaN}',
    "cut": '{"a":NaN',
    "text_cut": '{"a":"NaN',
    "text_cut_in_an_escape": '{"a":"x\\',
    "word_cut": '{"a":Infinit}',
    "word_beside_another": "[NaNNaN]",
    "number_with_leading_zeros": "[" + "0" * 30 + "]",
    "number_of_signs": "[" + "-" * 30 + "]",
    "number_cut": "[1000000000000000019884624838656.]",
    "two_marks": b"\xef\xbb\xbf\xef\xbb\xbf[1]",
    "utf16": b"\xff\xfe[\0001\0]\0",
    "deep_nesting": "[" * 3000,
})

write_all("config", {
    "valid_fields_unread": config()[:-1] + ',"temperature":Infinity,"id2label":[NaN],"model_max_length":1000000000000000019884624838656,"zzq":null}',
    "field_unknown": config()[:-1] + ',"zzq":1}',
    "field_unknown_with_a_tab": config()[:-1] + ',"z\\tq":1}',
    "layers_of_their_own": config(per_layer_config={"0": {"intermediate_size": 512}}),
    "theta_infinite": config()[:-1] + ',"rope_theta":Infinity}',
    "valid": config(),
    "valid_llama3_scaling": config(model_type="llama", rope_scaling=scaling),
    "valid_qwen3": config(model_type="qwen3", head_dim=64),
    "valid_qwen3_moe": config(model_type="qwen3_moe", head_dim=64, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, mlp_only_layers=[0]),
    "experts_many": config(model_type="qwen3_moe", head_dim=64, num_experts=1 << 30),
    "valid_adapter": json.dumps(lora),
    "valid_adapter_all_linear": json.dumps({**lora, "target_modules": "all-linear"}),
    "cut": config()[:-20],
    "not_an_object": "[1,2]",
    "truncated_utf8": b'{"model_type":"qwen2\xe2\x82"}',
    "deep_nesting": "[" * 3000,
    "field_twice": config()[:-1] + ',"vocab_size":3}',
    "model_type_number": config(model_type=2),
    "model_type_with_nul": config(model_type="qwen2\0"),
    "model_type_unknown": config(model_type="q" * 300),
    "size_missing": json.dumps({k: v for k, v in model.items() if k != "hidden_size"}),
    "size_zero": config(hidden_size=0),
    "size_negative": config(num_hidden_layers=-1),
    "size_beyond_int": config(vocab_size=1 << 40),
    "size_beyond_int64": config()[:-1] + ',"head_dim":99999999999999999999}',
    "size_is_text": config(hidden_size="128"),
    "heads_more_than_channels": config(num_attention_heads=1024),
    "kv_heads_do_not_divide": config(num_key_value_heads=3),
    "eos_beyond_vocabulary": config(eos_token_id=264),
    "eos_negative": config(eos_token_id=-1),
    "eos_is_text": config(eos_token_id="5"),
    "eps_zero": config(rms_norm_eps=0),
    "eps_underflows_float": config(rms_norm_eps=1e-60),
    "eps_overflows_float": config(rms_norm_eps=1e60),
    "rope_scaling_is_a_list": config(rope_scaling=[1]),
    "rope_type_unknown": config(rope_scaling={"rope_type": "zzq", "factor": 4}),
    "rope_list_short": config(rope_scaling={"rope_type": "longrope", "short_factor": [1], "long_factor": [1]}),
    "rope_yarn_without_factor": config(rope_scaling={"rope_type": "yarn"}),
    "valid_rope_yarn": config(rope_scaling={"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 128}),
    "valid_rope_longrope": config(head_dim=64, rope_scaling={"rope_type": "longrope", "short_factor": [1.5] * 32, "long_factor": [2.5] * 32}),
    "valid_windows_of_some_layers": config(use_sliding_window=True, sliding_window=16, max_window_layers=1),
    "valid_ministral": config(model_type="mistral", sliding_window=16, layer_types=["sliding_attention", "full_attention"]),
    "valid_ministral3": json.dumps({"model_type": "mistral3", "text_config": {**model, "model_type": "ministral3", "head_dim": 64, "rope_parameters": {"rope_type": "yarn", "factor": 16, "original_max_position_embeddings": 64, "llama_4_scaling_beta": 0.1}}}),
    "valid_gemma3": config(model_type="gemma3_text", head_dim=64, sliding_window=16, sliding_window_pattern=2, query_pre_attn_scalar=64),
    "valid_gemma3_of_images": json.dumps({"model_type": "gemma3", "vision_config": {}, "eos_token_id": [1], "text_config": {k: v for k, v in model.items() if k != "model_type"}}),
    "valid_smollm3": config(model_type="smollm3", no_rope_layers=[1, 0]),
    "valid_olmo2": config(model_type="olmo2"),
    "valid_olmo3": config(model_type="olmo3", sliding_window=16, layer_types=["sliding_attention", "full_attention"]),
    "valid_exaone4": config(model_type="exaone4", sliding_window=16, sliding_window_pattern="LG"),
    "valid_granite": config(model_type="granite", embedding_multiplier=12, logits_scaling=8, residual_multiplier=0.22, attention_multiplier=0.0156),
    "valid_granitemoehybrid": config(model_type="granitemoehybrid", num_local_experts=0, shared_intermediate_size=64, layer_types=["attention"] * 2, position_embedding_type="rope"),
    "valid_granite_swa": config(model_type="granite_swa", sliding_window=16, layer_rope_theta=[0, 10000], logits_scaling=8),
    "bases_of_texts": config(model_type="granite_swa", layer_rope_theta=["0", "1"]),
    "valid_muse": json.dumps({"model_type": "muse_glimmer", "vision_config": {}, "text_config": {**model, "model_type": "muse_glimmer_text", "head_dim": 64, "layer_rope_theta": [1000000, 0]}}),
    "valid_phi3": config(model_type="phi3", partial_rotary_factor=0.5, sliding_window=16),
    "valid_glm4": config(model_type="glm4", head_dim=64),
    "valid_hunyuan": config(model_type="hunyuan_v1_dense", rope_scaling={"type": "dynamic", "alpha": 1000, "factor": 1}),
    "valid_lfm2": config(model_type="lfm2", conv_L_cache=3, full_attn_idxs=[1], block_ff_dim=96, block_multiple_of=8),
    "valid_qwen3_5": config(model_type="qwen3_5_text", head_dim=64, full_attention_interval=2, linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=64, linear_value_head_dim=64),
    "valid_qwen3_5_moe": config(model_type="qwen3_5_moe_text", head_dim=64, full_attention_interval=1, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, shared_expert_intermediate_size=16),
    "valid_qwen3_next": config(model_type="qwen3_next", head_dim=64, full_attention_interval=1, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, mlp_only_layers=[0]),
    "valid_lfm2_moe": config(model_type="lfm2_moe", layer_types=["conv", "full_attention"], num_dense_layers=1, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8, routed_scaling_factor=2.5),
    "valid_glm4_moe": config(model_type="glm4_moe", head_dim=64, n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=8, n_group=4, topk_group=2),
    "groups_of_two_sizes": config(model_type="glm4_moe", head_dim=64, n_routed_experts=8, num_experts_per_tok=2, n_group=3),
    "heads_of_two_sizes": config(model_type="qwen3_5_text", full_attention_interval=2, linear_key_head_dim=64),
    "convolutions_alone": config(model_type="lfm2", layer_types=["conv"] * 2),
    "valid_minicpm": config(model_type="minicpm", scale_emb=12, scale_depth=1.4, dim_model_base=32),
    "experts_by_default": config(model_type="granitemoehybrid", shared_intermediate_size=64, layer_types=["attention"] * 2),
    "text_config_is_a_list": json.dumps({"model_type": "gemma3", "text_config": [1]}),
    "text_config_in_text_config": json.dumps({"model_type": "gemma3", "text_config": {**model, "text_config": model}}),
    "pattern_of_letters": config(model_type="exaone4", sliding_window=16, sliding_window_pattern="GL"),
    "unrotated_of_texts": config(model_type="smollm3", no_rope_layers=["1", "0"]),
    "rope_factors_reversed": config(rope_scaling={**scaling, "high_freq_factor": 0.5}),
    "rope_factor_infinite": config(rope_scaling=scaling).replace("8.0", "1e400"),
    "layer_types_of_objects": config(layer_types=[{}]),
    "adapter_rank_zero": json.dumps({**lora, "r": 0}),
    "adapter_rank_huge": json.dumps({**lora, "r": 1 << 40}),
    "adapter_alpha_missing": json.dumps({k: v for k, v in lora.items() if k != "lora_alpha"}),
    "adapter_target_is_a_number": json.dumps({**lora, "target_modules": [7]}),
    "adapter_target_unknown": json.dumps({**lora, "target_modules": ["x" * 3000]}),
})

# ---- lines, rows, options, contracts ----
turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello there, all of you"}]
line = '{"text": "a line of text that has a few tokens"}\n'
write_all("jsonl", {
    "valid_text": line * 3 + "\n  \n",
    "valid_pair": json.dumps({"prompt": "one two", "completion": " three"}) + "\n",
    "valid_messages": json.dumps({"messages": turns}) + "\n",
    "valid_nul_in_text": '{"text":"a\\u0000b and more"}\n',
    "valid_no_last_newline": line[:-1],
    "blank_lines": "\n \n\t\n",
    "line_cut": line + '{"text":"a',
    "line_is_a_list": "[]\n",
    "line_is_a_number": line + "7\n",
    "text_is_a_number": '{"text":7}\n',
    "no_known_field": '{"body":"x"}\n',
    "prompt_without_completion": '{"prompt":"x"}\n',
    "completion_is_null": '{"prompt":"x","completion":null}\n',
    "truncated_utf8": b'{"text":"\xe2\x82"}\n',
    "valid_lone_surrogates": '{"text":"\\ud800 and \\udc00\\ud83d\\ude00 \\ud83d"}\n',
    "valid_numbers_beyond_types": '{"text":"a line","id":18446744073709551615,"x":[-1e999,' + "9" * 400 + "]}\n",
    "valid_byte_order_mark": b"\xef\xbb\xbf" + line.encode(),
    "valid_byte_order_mark_in_the_second_line": line.encode() + b"\xef\xbb\xbf" + line.encode(),
    "valid_conversations": json.dumps({"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello there, all of you"}]}),
    "valid_instruction": json.dumps({"instruction": "say", "input": "hi", "output": "hello there, all of you", "text": None}),
    "valid_lists": json.dumps({"prompt": turns[:1], "completion": turns[1:], "id": 1}),
    "valid_parts": json.dumps({"messages": [{**turns[0], "content": [{"type": "text", "text": "hi"}] * 2}, {**turns[1], "train": True}]}),
    "two_shapes": json.dumps({"messages": turns, "text": "a"}),
    "prompt_list_completion_text": json.dumps({"prompt": turns[:1], "completion": "a"}),
    "field_of_a_turn_unknown": json.dumps({"messages": [{**turns[1], "audio": "x"}]}),
    "trained_and_not": json.dumps({"messages": [{**turns[1], "train": True, "loss_mask": 0}]}),
    "part_of_an_image": json.dumps({"messages": [{**turns[1], "content": [{"type": "image"}]}]}),
    "column_that_means_something": json.dumps({"text": "a", "loss_mask": [1]}),
    "escape_cut_at_the_end": '{"text":"\\ud83d\\',
    "escape_of_three_digits": '{"text":"\\ud83"}\n',
    "number_without_exponent": '{"text":"a","x":1e}\n',
    "role_with_nul": '{"messages":[{"role":"assistant\\u0000x","content":"a"}]}\n',
    "messages_is_an_object": '{"messages":{}}\n',
    "messages_empty": '{"messages":[]}\n',
    "messages_without_assistant": json.dumps({"messages": turns[:1]}) + "\n",
    "role_unknown": '{"messages":[{"role":"tool","content":"x"}]}\n',
    "role_missing": '{"messages":[{"content":"x"}]}\n',
    "content_is_a_list": '{"messages":[{"role":"assistant","content":["x"]}]}\n',
    "tools_given": json.dumps({"messages": turns, "tools": [{}]}) + "\n",
    "tool_calls_given": json.dumps({"messages": [{**turns[1], "tool_calls": [{}]}]}) + "\n",
    "weight_of_a_half": json.dumps({"messages": [{**turns[1], "weight": 0.5}]}) + "\n",
    "valid_weight_zero": json.dumps({"messages": [{**turns[1], "weight": 0}, turns[1]], "tools": None}) + "\n",
    "deep_nesting": '{"text":' + "[" * 4000 + "\n",
    "nul_byte_after_line": line[:-1].encode() + b"\0\n",
    "parts_without_a_byte": '{"prompt":"","completion":""}\n',
    "one_token_each": '{"text":""}\n',
})


# ---- Parquet ----
def thrift(fields):
    """A struct of the compact protocol: {id: int | bytes | bool | struct (dict) | list of structs}."""
    out, last = b"", 0

    def varint(n):
        b = b""
        while n >= 128:
            b += bytes([n & 127 | 128])
            n >>= 7
        return b + bytes([n])

    for i, v in sorted(fields.items()):
        kind = 1 if v is True else 2 if v is False else 6 if isinstance(v, int) else 8 if isinstance(v, bytes) else 12 if isinstance(v, dict) else 9
        out += bytes([(i - last) << 4 | kind])
        last = i
        if kind == 6:
            out += varint(v << 1 if v >= 0 else -v * 2 - 1)
        elif kind == 8:
            out += varint(len(v)) + v
        elif kind == 12:
            out += thrift(v)
        elif kind == 9:
            out += (bytes([len(v) << 4 | 12]) if len(v) < 15 else b"\xfc" + varint(len(v))) + b"".join(map(thrift, v))
    return out + b"\0"


def page(data, values, encoding=0, kind=0, size=None, **more):
    head = {1: kind, 2: len(data) if size is None else size, 3: len(data), {0: 5, 2: 7, 3: 8}.get(kind, 5): {
        1: values, **({4: encoding, 5: more.get("defs", 0), 6: more.get("reps", 0), 2: 0, 3: values} if kind == 3
                      else {2: encoding} if kind == 2 else {2: encoding, 3: more.get("levels", 3), 4: 3})}}
    if "sum" in more:
        head[4] = more["sum"]
    return thrift(head) + data


def parquet(pages, schema=None, values=2, rows=2, codec=0, footer=None, chunk=None, group=None, columns=1, **meta):
    schema = schema or [{4: b"root", 5: 1}, {1: 6, 3: 0, 4: b"text", 6: 0}]
    column = {3: {1: 6, 4: codec, 5: values, 6: len(pages), 7: meta.get("bytes", len(pages)), 9: meta.get("at", 4)}, **(chunk or {})}
    end = thrift({1: 2, 2: schema, 3: rows, 4: [{1: [column] * columns, 2: len(pages), 3: rows, **(group or {})}]}) if footer is None else footer
    return b"PAR1" + pages + end + struct.pack("<I", meta.get("length", len(end))) + b"PAR1"


def texts(*each):
    return b"".join(struct.pack("<I", len(t)) + t for t in each)


two = page(texts(b"one", b"three"), 2)
root = {4: b"root", 5: 1}
optional = [root, {1: 6, 3: 1, 4: b"text"}]
numbers = [root, {1: 1, 3: 0, 4: b"n"}]
listed = [root, {3: 1, 4: b"l", 5: 1, 6: 3}, {3: 2, 4: b"list", 5: 1}, {1: 1, 3: 1, 4: b"element"}]
levels = lambda data: struct.pack("<I", len(data)) + data
write_all("parquet", {
    "valid": parquet(two),
    "valid_nulls": parquet(page(levels(b"\x04\x00"), 2), optional),
    "valid_some_null": parquet(page(levels(b"\x02\x01\x02\x00") + texts(b"a"), 2), optional),
    "valid_dictionary": parquet(page(texts(b"a", b"b"), 2, kind=2) + page(b"\x01\x02\x01\x02\x00", 2, 8)),
    "valid_version_2": parquet(page(texts(b"a", b"b"), 2, kind=3)),
    "valid_list": parquet(page(levels(b"\x03\x02") + levels(b"\x06\x03") + struct.pack("<3i", 1, 2, 3), 3), listed, values=3),
    "valid_empty_list": parquet(page(levels(b"\x04\x00") + levels(b"\x04\x01"), 2), listed),
    "valid_delta": parquet(page(b"\x80\x01\x04\x02\x02\x02\x00\x00\x00\x00", 2, 5), numbers),
    "valid_snappy": parquet(page(b"\x0a\x24" + texts(b"a", b"b"), 2, size=10), codec=1),
    "valid_checksum": parquet(page(texts(b"a", b"b"), 2, sum=struct.unpack("<i", struct.pack("<I", zlib.crc32(texts(b"a", b"b"))))[0])),
    "valid_no_row": parquet(b"", values=0, rows=0),
    "valid_index_page": parquet(page(b"xyz", 0, kind=1) + two),
    "magic_missing": parquet(two)[:-1] + b"2",
    "magic_of_encryption": parquet(two)[:-1] + b"E",
    "footer_longer_than_file": parquet(two, length=1 << 20),
    "footer_length_wraps": parquet(two, length=(1 << 32) - 1),
    "footer_empty": parquet(two, footer=b""),
    "footer_cut": parquet(two, footer=thrift({1: 2, 2: [root]})[:-4]),
    "footer_deep": parquet(two, footer=b"\x1c" * 4000),
    "schema_missing": parquet(two, footer=thrift({1: 2, 4: []})),
    "schema_twice": parquet(two, footer=thrift({2: [root, {1: 6, 4: b"t"}]})[:-1] + b"\x09\x04" + thrift({2: [root, {1: 6, 4: b"t"}]})[1:]),
    "schema_of_many_children": parquet(two, [{4: b"root", 5: (1 << 31) - 1}, {1: 6, 3: 0, 4: b"text"}]),
    "schema_of_minus_one_child": parquet(two, [{4: b"root", 5: -1}, {1: 6, 3: 0, 4: b"text"}]),
    "schema_deep": parquet(two, [{4: b"g", 5: 1, 3: 1}] * 60 + [{1: 6, 3: 0, 4: b"text"}]),
    "schema_leaf_with_children": parquet(two, [root, {1: 6, 3: 0, 4: b"text", 5: 3}]),
    "schema_unknown_type": parquet(two, [root, {1: 9, 3: 0, 4: b"text"}]),
    "schema_int96": parquet(two, [root, {1: 3, 3: 0, 4: b"text"}]),
    "column_of_brotli": parquet(two, codec=4),
    "column_of_unknown_packing": parquet(two, codec=9),
    "column_beyond_file": parquet(two, bytes=1 << 40),
    "column_at_minus_one": parquet(two, at=-1),
    "column_in_other_file": parquet(two, chunk={1: b"other"}),
    "column_of_no_bytes": parquet(two, bytes=0),
    "columns_too_many": parquet(two, columns=2),
    "rows_of_minus_one": parquet(two, rows=-1),
    "rows_more_than_values": parquet(two, rows=3),
    "rows_fewer_than_values": parquet(two, rows=1),
    "page_head_cut": parquet(two[:5]),
    "page_longer_than_column": parquet(two, bytes=len(two) - 1),
    "page_unknown_kind": parquet(page(texts(b"a", b"b"), 2, kind=7)),
    "page_of_too_many_values": parquet(page(texts(b"a", b"b"), 3)),
    "page_of_minus_one_value": parquet(page(texts(b"a", b"b"), -1)),
    "page_of_huge_size": parquet(page(texts(b"a", b"b"), 2, size=(1 << 31) - 1), codec=1),
    "page_of_another_size": parquet(page(texts(b"a", b"b"), 2, size=11)),
    "page_checksum_wrong": parquet(page(texts(b"a", b"b"), 2, sum=1)),
    "page_unknown_encoding": parquet(page(texts(b"a", b"b"), 2, 6 + 60)),
    "text_longer_than_page": parquet(page(struct.pack("<I", 99) + b"abc", 2)),
    "text_not_utf8": parquet(page(texts(b"\xff", b"b"), 2)),
    "index_beyond_dictionary": parquet(page(texts(b"a"), 1, kind=2) + page(b"\x01\x04\x01", 2, 8)),
    "index_without_dictionary": parquet(page(b"\x01\x04\x00", 2, 8)),
    "index_of_33_bits": parquet(page(texts(b"a"), 1, kind=2) + page(b"\x21\x04\x00", 2, 8)),
    "dictionary_of_too_many": parquet(page(texts(b"a"), 99, kind=2) + two),
    "levels_longer_than_page": parquet(page(struct.pack("<I", 99) + b"\x04", 2), optional),
    "levels_too_few": parquet(page(levels(b"\x02\x00"), 2), optional),
    "levels_that_cannot_be": parquet(page(levels(b"\x04\x01") + levels(b"\x04\x07"), 2), listed),
    "valid_levels_that_are_not_there": parquet(page(texts(b"a", b"b"), 2, levels=4)),
    "levels_packed_of_old": parquet(page(levels(b"\x04\x00"), 2, levels=4), optional),
    "levels_of_version_2_too_long": parquet(page(texts(b"a", b"b"), 2, kind=3, defs=99)),
    "list_begins_in_its_middle": parquet(page(levels(b"\x06\x01") + levels(b"\x06\x03") + struct.pack("<3i", 1, 2, 3), 3), listed, values=3),
    "delta_of_no_miniblock": parquet(page(b"\x80\x01\x00\x02\x02", 2, 5), numbers),
    "delta_width_of_65": parquet(page(b"\x80\x01\x04\x02\x02\x02\x41\x00\x00\x00", 2, 5), numbers),
    "delta_cut": parquet(page(b"\x80\x01\x04\x02\x02", 2, 5), numbers),
    "delta_of_a_text": parquet(page(b"\x80\x01\x04\x02\x02\x02\x00\x00\x00\x00", 2, 5)),
    "snappy_beyond_its_start": parquet(page(b"\x0a\x01\x05" + b"x" * 8, 2, size=10), codec=1),
})
write_all("template", {
    "valid_empty": "",
    "valid_conversation": "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m['content'] | trim + '\\n' }}{% endfor %}"
                          "{% if add_generation_prompt %}a{% endif %}",
    "valid_generation": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
    "valid_white_space": "  {%- if n -%}\n a \n{%+ endif +%}\r\n{#- c -#} {{- n -}} {% raw %}{{ }}{% endraw %}\n",
    "valid_macros": "{% macro f(i, b=2) %}{{ i }}{% if i > 0 %}{{ f(i - 1) }}{% endif %}{{ caller() if caller }}{% endmacro %}"
                    "{{ f(3) }}{% call(x) f(0, *[1]) %}c{% endcall %}",
    "valid_loops": "{% for i in list if i > 1 recursive %}{{ loop.index }}{{ loop.cycle(1, 2) }}{% break %}{% else %}e{% endfor %}",
    "valid_names": "{% set ns = namespace(a=1) %}{% set ns.a = ns.a + 1 %}{% set a, b = 1, 2 %}{% set t | upper %}x{% endset %}"
                   "{% with q = 1 %}{{ q }}{% endwith %}{{ ns }}",
    "valid_filters": "{{ messages | selectattr('role', 'in', ['user']) | map(attribute='content') | join(',') | e | tojson }}"
                     "{{ list | sort(reverse=true) | unique | list | length }}{{ '%5.2f' | format(x) }}{{ text | indent(2) | title }}",
    "valid_texts": "{{ text.split()[::-1] }}{{ 'a,b'.rsplit(',', 1) }}{{ text.replace('a', 'b').center(9) }}{{ text[-1:] }}{{ '\\u00e9'.upper() }}",
    "valid_json": "{{ messages | tojson(indent=2, sort_keys=true) }}{{ [1.5, none, true, 'a'] }}",
    "raised": "{{ raise_exception('no') }}",
    "loop_without_end": "{% set l = range(99999) %}{% for a in l %}{% for b in l %}{% endfor %}{% endfor %}",
    "macro_without_end": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "memory_without_end": "{% set ns = namespace(a='abcdefgh') %}{% for i in range(99999) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
    "nested_brackets": "{{ " + "(" * 5000 + ")" * 5000 + " }}",
    "nested_statements": "{% if 1 %}" * 5000,
    "nested_lists_made": "{% set ns = namespace(a=[]) %}{% for i in range(5000) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}{{ ns.a == [ns.a] }}",
    "long_sum": "{{ " + "1+" * 5000 + "1 }}",
    "many_signs": "{{ " + "-" * 5000 + "1 }}",
    "width_of_a_format": "{{ '%999999999d' % 1 }}",
    "string_without_end": "{{ 'a",
    "tag_without_end": "{% if 1",
    "not_utf8": b"{{ '\xff' }}",
    "nul": b"{{ 1 \0 }}",
    "whole_beyond_64_bits": "{{ 9223372036854775807 + 1 }}",
    "division_that_overflows": "{{ (-9223372036854775807 - 1) // -1 }}",
})
says = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
write_all("chat", {
    "valid_empty": "",
    "valid_turns": says,
    "valid_system": "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\\nBe brief.<|im_end|>\\n' }}{% endif %}" + says,
    "valid_system_not_utf8": b"\xa9" * 60 + says.encode(),
    "valid_thoughts_lost": says.replace("m.content", "m.content.split('</think>')[-1] if not loop.last else m.content"),
    "valid_opens_thought": says.replace("assistant\n", "assistant\n<think>\n"),
    "valid_generation": "{% for m in messages %}{{ m.role }}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
    "valid_generation_in_a_macro": "{% macro f(m) %}{% generation %}{{ m.content }}{% endgeneration %}{% endmacro %}"
                                   "{% for m in messages %}{{ m.role }}:{{ f(m) }};{% endfor %}{{ 'assistant:' if add_generation_prompt }}",
    "answers_twice": "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}{{ messages | length }}",
    "answers_backwards": "{% for m in messages | reverse %}{{ m.role }}{{ m.content }}{% endfor %}",
    "end_of_text_between": says.replace("<|im_end|>", "<|endoftext|>"),
    "raises": "{{ raise_exception('no') }}",
    "syntax": "[INST] {{ m } [/INST]",
})
asks = turns[:1]
write_all("prompts", {
    "valid_text": '{"prompt":"one two","completion":" three","id":7}\n\n{"prompt":"","id":"a\\"b"}',
    "valid_messages": json.dumps({"messages": turns}) + "\n" + json.dumps({"messages": asks}) + "\n",
    "valid_lists": json.dumps({"prompt": asks, "completion": turns[1:]}) + "\n",
    "valid_teacher": json.dumps({"prompt": "q", "teacher_prompt": asks, "id": None}) + "\n" + json.dumps({"prompt": asks, "teacher_prompt": "q"}),
    "valid_completions_unread": '{"prompt":"a","completion":1}\n' + json.dumps({"prompt": "a", "completion": asks}) + "\n",
    "valid_long_one_dropped": json.dumps({"prompt": "q " * 90, "teacher_prompt": "q"}) + '\n{"prompt":"q"}\n',
    "valid_nul_in_texts": '{"prompt":"a\\u0000b","completion":"\\u0000","id":"\\u0000"}\n',
    "valid_number_beyond_types": '{"prompt":"a","x":1e999}\n',
    "blank_lines": "\n \n\t\n",
    "line_cut": '{"prompt":"a"}\n{"prompt":"a',
    "line_is_a_list": "[]\n",
    "no_known_field": '{"text":"x"}\n',
    "prompt_is_a_number": '{"prompt":1}\n',
    "prompt_is_an_empty_list": '{"prompt":[]}\n',
    "prompt_of_numbers": '{"prompt":[1]}\n',
    "prompt_too_long": json.dumps({"prompt": "q " * 90}) + "\n",
    "teacher_prompt_too_long": json.dumps({"prompt": "q", "teacher_prompt": "q " * 90}) + "\n",
    "teacher_prompt_is_a_number": '{"prompt":"a","teacher_prompt":1}\n',
    "teacher_prompt_without_a_user": json.dumps({"prompt": "a", "teacher_prompt": turns[1:]}) + "\n",
    "messages_without_a_user": json.dumps({"messages": turns[1:]}) + "\n",
    "messages_is_an_object": '{"messages":{}}\n',
    "role_is_a_number": json.dumps({"messages": [{"role": 1, "content": "x"}, *asks]}) + "\n",
    "content_is_a_list": '{"messages":[{"role":"user","content":["x"]}]}\n',
    "tools_given": json.dumps({"messages": asks, "tools": [{}]}) + "\n",
    "id_is_a_list": '{"prompt":"a","id":[1]}\n',
    "id_is_true": '{"prompt":"a","id":true}\n',
    "id_beyond_int64": '{"prompt":"a","id":18446744073709551615}\n',
    "truncated_utf8": b'{"prompt":"\xe2\x82"}\n',
    "deep_nesting": '{"prompt":' + "[" * 4000 + "\n",
})
write_all("tasks", {
    "valid_choices": '{"context":"one ","choices":["two","three"],"answer":1,"id":7}\n\n{"query":"","choices":["a","b"],"gold":"a","task":"t"}',
    "valid_delimiter": '{"context":"one","target_delimiter":" ","choices":["two","three"],"answer":1}\n',
    "valid_context_of_white_space": '{"context":" \\n","choices":["two","three"],"answer":1}\n',
    "valid_begins_with_end_of_text": '{"context":"","choices":["<|endoftext|>a","b"],"answer":1}\n',
    "valid_one_token_each": '{"context":"a b c d e:","choices":[" A"," B"," C"," D"],"answer":3}\n',
    "valid_long": json.dumps({"context": "q " * 90, "choices": ["a", "b"], "answer": 0}) + "\n",
    "valid_text": '{"prompt":"one","answer":"two","until":["\\n",""],"max_tokens":5}\n{"prompt":"","target":"","until":"x"}\n',
    "valid_messages": json.dumps({"messages": asks, "answer": "a", "task": "t"}) + "\n" + json.dumps({"prompt": asks, "answer": ""}),
    "valid_nul_in_texts": '{"context":"a\\u0000","choices":["\\u0000","b"],"answer":"\\u0000"}\n{"prompt":"a\\u0000","answer":"\\u0000","until":"\\u0000"}\n',
    "valid_many_tasks": "".join(f'{{"prompt":"a","answer":"b","task":"t{i}"}}\n' for i in range(40)),
    "blank_lines": "\n \n\t\n",
    "line_cut": '{"prompt":"a","answer":"b"}\n{"prompt":"a',
    "line_is_a_list": "[]\n",
    "no_known_field": '{"text":"x"}\n',
    "no_context": '{"choices":["a","b"],"answer":0}\n',
    "context_is_a_number": '{"context":1,"choices":["a","b"],"answer":0}\n',
    "delimiter_is_a_number": '{"context":"c","target_delimiter":1,"choices":["a","b"],"answer":0}\n',
    "choices_is_text": '{"context":"c","choices":"ab","answer":0}\n',
    "choices_of_numbers": '{"context":"c","choices":[1,2],"answer":0}\n',
    "choice_empty": '{"context":"c","choices":["a",""],"answer":0}\n',
    "choice_alone": '{"context":"c","choices":["a"],"answer":0}\n',
    "choices_too_many": json.dumps({"context": "c", "choices": ["a"] * 1025, "answer": 0}) + "\n",
    "choice_without_a_token": '{"context":"","choices":["<|endoftext|>","b"],"answer":0}\n',
    "answer_absent": '{"context":"c","choices":["a","b"]}\n',
    "answer_beyond": '{"context":"c","choices":["a","b"],"answer":2}\n',
    "answer_beyond_int": '{"context":"c","choices":["a","b"],"answer":4294967296}\n',
    "answer_negative": '{"context":"c","choices":["a","b"],"answer":-1}\n',
    "answer_of_none": '{"context":"c","choices":["a","b"],"answer":"c"}\n',
    "answer_is_a_number": '{"prompt":"a","answer":1}\n',
    "prompt_is_a_number": '{"prompt":1,"answer":"b"}\n',
    "messages_without_a_user": json.dumps({"messages": turns[1:], "answer": "b"}) + "\n",
    "until_is_a_number": '{"prompt":"a","answer":"b","until":1}\n',
    "until_of_lists": '{"prompt":"a","answer":"b","until":[[]]}\n',
    "max_tokens_zero": '{"prompt":"a","answer":"b","max_tokens":0}\n',
    "max_tokens_beyond_int": '{"prompt":"a","answer":"b","max_tokens":4294967297}\n',
    "task_empty": '{"prompt":"a","answer":"b","task":""}\n',
    "task_with_a_nul": '{"prompt":"a","answer":"b","task":"a\\u0000b"}\n',
    "id_is_a_list": '{"prompt":"a","answer":"b","id":[1]}\n',
    "truncated_utf8": b'{"context":"\xe2\x82"}\n',
    "deep_nesting": '{"choices":' + "[" * 4000 + "\n",
})
write_all("generation", {
    "valid": '{"eos_token_id":[5,256],"do_sample":true,"temperature":0.6,"top_p":0.95,"top_k":20,"min_p":0.0}',
    "valid_without_a_field": "{}",
    "valid_nulls": '{"eos_token_id":null,"do_sample":null,"temperature":null,"top_p":null,"top_k":null,"min_p":null}',
    "valid_others": '{"eos_token_id":0,"pad_token_id":-1,"bos_token_id":"x","transformers_version":"5.0.0"}',
    "valid_sampling_of_other_types": '{"eos_token_id":5,"do_sample":1,"temperature":"0.6","top_p":[],"top_k":-1,"min_p":7}',
    "valid_seven_ids": '{"eos_token_id":[1,2,3,4,5,6,7,1]}',
    "cut": '{"eos_token_id":[5,',
    "not_an_object": "[]",
    "valid_field_twice": '{"top_k":1,"top_k":2}',
    "deep_nesting": '{"eos_token_id":' + "[" * 4000,
    "truncated_utf8": b'{"x":"\xe2\x82"}',
    "eos_is_text": '{"eos_token_id":"5"}',
    "eos_negative": '{"eos_token_id":-1}',
    "eos_beyond_vocabulary": '{"eos_token_id":[1,300]}',
    "eos_beyond_int": '{"eos_token_id":4294967301}',
    "eos_in_two_lists": '{"eos_token_id":[[1]]}',
    "eos_of_eight_and_the_tokenizer": '{"eos_token_id":[1,2,3,4,5,6,7,8]}',
    "eos_of_nine": '{"eos_token_id":[1,2,3,4,5,6,7,8,9]}',
})
write_all("node_list", {
    "valid": "a[01-03,7],b",
    "valid_alone": "gpu-1.example",
    "valid_two_ranges": "r[1-2]n[03-04]",
    "bracket_open": "a[01-03",
    "bracket_empty": "a[]",
    "bracket_letters": "a[x-y]",
    "bracket_too_long": "a[" + "1" * 300 + "]",
    "first_missing": ",a",
    "name_too_long": "a" * 256,
    "name_with_space": "a b",
})


# ---- ranks ----
def greeting(rank=1, size=3, texts=("run", "version", "1", "--lr", "1e-4"), magic=b"nojitrk", version=2, end=b"\0", length=None,
             secret=b"of these three"):
    text = "\0".join(texts).encode() + end
    return struct.pack("<7sBIII16s", magic, version, rank, size, len(text) if length is None else length, secret) + text


def message(kind, text=b"", magic=0x6E6A4601, rank=1):
    return struct.pack("<III1024s", magic, kind, rank, text)


write_all("greeting", {
    "valid": greeting(),
    "valid_last_rank": greeting(rank=2),
    "valid_and_more": greeting() + message(2),
    "magic_of_another": greeting(magic=b"notours"),
    "http": "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "version_of_another": greeting(version=3),
    "version_without_a_secret": greeting(version=1)[:20] + greeting()[36:],
    "secret_of_another": greeting(secret=b"of those three"),
    "secret_none": greeting(secret=b""),
    "secret_torn": greeting()[:35],
    "head_torn": greeting()[:19],
    "text_torn": greeting()[:-1],
    "text_none": greeting(length=0),
    "text_too_long": greeting(length=65536),
    "text_longer_than_int": greeting(length=MAX),
    "end_missing": greeting(end=b""),
    "run_of_another": greeting(texts=("other", "version", "1", "--lr", "1e-4")),
    "rank_0": greeting(rank=0),
    "rank_beyond_size": greeting(rank=3),
    "rank_beyond_int": greeting(rank=MAX),
    "size_of_another": greeting(size=4),
    "value_differs": greeting(texts=("run", "version", "1", "--lr", "2e-4")),
    "name_differs": greeting(texts=("run", "version", "1", "--l", "1e-4")),
    "value_missing": greeting(texts=("run", "version", "1", "--lr")),
    "names_missing": greeting(texts=("run",)),
    "names_too_many": greeting(texts=("run", "version", "1", "--lr", "1e-4", "a", "b")),
})
write_all("messages", {
    "valid": message(4),
    "valid_stop_first": message(2) + message(4),
    "valid_kind_unknown": message(99, b"x" * 1024) + message(4),
    "shared_by_another": message(1, b"x" * 1024) * 9 + message(4),
    "failed": message(3, b"rank 1: disk full"),
    "failed_without_end": message(3, b"x" * 1024),
    "failed_without_a_word": message(3),
    "failed_after_the_end": message(4) + message(3, b"rank 1: disk full"),
    "stop_and_gone": message(2),
    "torn": message(4)[:-1],
    "magic_of_another": message(4, magic=0x6E6A4602),
    "http": "HTTP/1.1 400 Bad Request\r\n\r\n",
})
row = '{"step":%d,"loss":2.5,"lr":1e-4}\n'
write_all("metrics", {
    "valid": "".join(row % i for i in range(8)),
    "valid_last_row_torn": row % 1 + '{"step":2,"lo',
    "valid_long": "".join('{"step":%d,"l":%d}\n' % (i, i % 7) for i in range(1300)),
    "valid_no_number": row % 1 + '{"step":2,"loss":null}\n',
    "first_row_torn": '{"step"',
    "step_missing": '{"loss":1}\n',
    "step_beyond_int64": '{"step":1e44}\n',
    "step_is_text": '{"step":"1"}\n',
    "row_is_a_list": "[1]\n",
    "row_not_json_in_the_middle": row % 1 + "nonsense\n" + row % 2,
    "number_overflows": '{"step":1,"loss":1e999}\n',
    "number_beyond_int64": '{"step":99999999999999999999,"loss":1}\n',
    "metrics_too_many": '{"step":1,' + ",".join('"m%d":1' % i for i in range(200)) + "}\n",
    "truncated_utf8": b'{"step":1,"l\xc3":1}\n',
    "nul_byte": b'{"step":1}\0\n',
})
write_all("options", {
    "valid": "steps: 20\nbatch-size: 4\ndata: [a.txt, b.txt]\nlearning_rate: 1e-4\n",
    "valid_empty": "",
    "valid_flow": "{seed: 3, 'out': \"run\"}\n",
    "not_yaml": "steps: [1\n",
    "not_a_mapping": "- steps\n",
    "name_unknown": "stepz: 3\n",
    "name_too_long": "s" * 3000 + ": 3\n",
    "name_is_a_list": "[steps]: 3\n",
    "name_twice": "steps: 3\nsteps: 4\n",
    "name_twice_by_alias": "steps: 3\nmax_steps: 4\n",
    "merge_key": "<<: {steps: 3}\n",
    "own_tag": "log: !include other.yaml\n",
    "octal_number": "steps: 010\n",
    "valid_receipt": '{"command": "distill", "options": {"steps": "3", "data": ["a", "b"], "batch-size": "auto"}, "applied": {"batch_size": 7}}',
    "receipt_of_another_command": '{"command": "train", "options": {"steps": "3"}}',
    "receipt_option_unknown": '{"command": "distill", "options": {"stepps": "3"}}',
    "receipt_option_is_a_list": '{"command": "distill", "options": {[1]: "3"}}',
    "value_missing": "steps:\n",
    "value_is_a_mapping": "steps: {a: 1}\n",
    "value_not_a_number": "steps: many\n",
    "value_beyond_bounds": "steps: 99999999999999999999\n",
    "value_not_finite": "lr: .nan\n",
    "list_for_one_value": "steps: [1, 2]\n",
    "list_of_lists": "data: [[a]]\n",
    "list_refers_to_itself": "data: &a [*a]\n",
    "alias_unknown": "steps: *x\n",
    "truncated_utf8": b"out: \xe2\x82\n",
    "nul_byte": b"out: a\0b\n",
    "deep_nesting": "data: " + "[" * 2000 + "\n",
    "another_file": "config: other.yaml\n",
    "valid_anchor": "steps: &n 20\nwarmup-steps: *n\n",
    "valid_one_document": "---\nsteps: 20\n...\n",
    "two_documents": "steps: 20\n---\nsteps: 30\n",
    "escaped_nul_in_value": 'out: "a\\0b"\n',
    "escaped_nul_in_name": '"steps\\0x": 3\n',
    "anchors_many": "".join("? &a%d x\n" % i for i in range(2000)),
    "mappings_deep": "".join(" " * i + "a:\n" for i in range(40)),
    "tab_indent": "data:\n\t- a\n",
})
add = read(here, "../../contracts/kernels/add.yaml").decode().split("falsifiers:")[0]


def contract(old, new):
    assert old in add
    return add.replace(old, new, 1)


write_all("contract", {
    "valid": add,
    "cut": add[:400],
    "not_a_map": "[1]\n",
    "two_documents": add + "---\n" + add,
    "field_twice": add + "op: add\n",
    "field_unknown": add + "colour: red\n",
    "field_missing": contract("cost:", "# cost:"),
    "alias": contract("op: add", "op: &a add\nbackward_of: *a"),
    "deep_nesting": "op: " + "[" * 1000,
    "truncated_utf8": contract("Sum of", "Sum \xe2").encode("latin-1"),
    "axis_value_unknown": contract("[lp, f32]", "[lp, f77]"),
    "axis_values_too_many": contract("{T: [lp, f32]}", "{T: [f32], D: [%s]}" % ", ".join(map(str, range(1, 40)))),
    "dims_too_many": contract("{n: {", "{%sn: {" % "".join("a%d: {type: i32, doc: x}, " % i for i in range(40))),
    "shape_of_unknown_symbol": contract("shape: [n]", "shape: [m]"),
    "shape_division_by_zero": contract("shape: [n]", 'shape: ["n / 0"]'),
    "shape_overflows": contract("shape: [n]", 'shape: ["n * 9223372036854775807 * 4"]'),
    "expression_deep": contract("n >= 1", "(" * 3000 + "n" + ")" * 3000 + " >= 1"),
    "expression_cut": contract("n >= 1", "n >="),
    "number_beyond_int64": contract("n >= 1", "n >= 99999999999999999999"),
    "least_number_divided_by_minus_one": contract("n >= 1", "(0 - 9223372036854775807 - 1) / (0 - 1) >= n"),
    "tolerance_negative": contract("8e-3", "-1"),
    "tolerance_not_a_number": contract("8e-3", "nan"),
    "threads_zero": contract("threads: 256", "threads: 0"),
    "threads_huge": contract("threads: 256", "threads: 99999"),
    "test_dim_negative": contract("{n: 1}", "{n: -1}"),
    "test_dim_missing": contract("{n: 1}", "{}"),
    "op_is_a_list": contract("op: add", "op: [add]"),
    "op_is_another_file": contract("op: add", "op: addition"),
})


# ---- tokenizers ----
def alphabet():
    seen = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    return [chr(c) for c in seen] + [chr(256 + i) for i in range(256 - len(seen))]


def tokenizer(**change):
    vocab = {c: i for i, c in enumerate(alphabet() + ["in", "\u0120t", "the", "he"])}
    out = {
        "added_tokens": [{"id": 260, "content": "<|endoftext|>", "special": True},
                         {"id": 261, "content": "<left>", "lstrip": True, "normalized": True}],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": ["i n", ["h", "e"], "t he"]},
    }
    for path, value in change.items():
        *parents, last = path.split("__")
        functools.reduce(dict.get, parents, out)[last] = value
    return json.dumps(out, ensure_ascii=False, separators=(",", ":"))


def pipeline(**change):  # for what is refused before the vocabulary is read
    return tokenizer(model__vocab={}, model__merges=[], **change)


def template(token):
    return {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
            "special_tokens": {"<s>": {"ids": [token]}}}


def split(pattern, kind="Regex", behavior="Isolated", invert=False):
    return {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {kind: pattern}, "behavior": behavior,
                                                   **({"invert": True} if invert else {})},
                                                  {"type": "ByteLevel", "add_prefix_space": True, "use_regex": False}]}


def spaces(**change):
    """Return a tokenizer of the SentencePiece kind."""
    words = ["<unk>", "\u2581", "t", "h", "e", "\u2581t", "he", "\u2581the"] + [f"<0x{i:02X}>" for i in range(256)]
    mark = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    return tokenizer(**{
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, mark]}, "pre_tokenizer": None,
        "decoder": {"type": "ByteFallback"}, "model__vocab": {w: i for i, w in enumerate(words)}, "model__byte_fallback": True,
        "model__merges": [["\u2581", "t"], ["h", "e"], ["\u2581t", "he"]], "added_tokens": [], **change})


def metaspace(**change):
    return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False, **change}


write_all("added", {
    "valid": '{"added_tokens_decoder":{"7":{"content":"<a>","special":true},"x":{"content":"<b>"}},"eos_token":"<s>","pad_token":{"content":"<p>"}}',
    "valid_extra": '{"additional_special_tokens":["<a>",{"content":"<b>","lstrip":true}],"extra_special_tokens":{"a":"<c>"}}',
    "valid_other_types": '{"added_tokens_decoder":{"1":7,"2":null,"3":{"content":4}},"bos_token":5,"additional_special_tokens":"x"}',
    "valid_list": "[]",
    "cut": '{"added_tokens_decoder":{"7":{"content":"<a>"',
    "not_utf8": b'{"pad_token":"\xff"}',
    "nul_in_a_token": '{"pad_token":"a\\u0000"}',
})

write_all("vocab_files", {
    "valid": "#version: 0.2\na b\nab a\n",
    "valid_carriage_returns": "a b\r\nab a",
    "version_alone": "#version: 0.2\n",
    "empty_line": "a b\n\nab a\n",
    "merge_of_one": "ab\n",
    "merge_of_three": "a b a\n",
    "merge_unknown": "a c\n",
    "not_utf8": b"a \xff\n",
    "nul": b"a b\0\n",
})

doubled = {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {kind: text}, "content": to}
                                              for kind, text, to in [("String", " ", "\u2581"), ("Regex", "\\A\u2581", "\u2581\u2581")]]}
write_all("tokenizer", {
    "valid_spaces": spaces(),
    "valid_spaces_first": spaces(normalizer=None, pre_tokenizer=metaspace()),
    "valid_spaces_always_split": spaces(normalizer=None, pre_tokenizer=metaspace(prepend_scheme="always", split=True)),
    "valid_spaces_over_words": spaces(model__merges=[["e", "\u2581"]], model__vocab={
        **{f"<0x{i:02X}>": i for i in range(256)}, "e": 256, "\u2581": 257, "e\u2581": 258}),
    "valid_spaces_doubled": spaces(normalizer=doubled, pre_tokenizer={"type": "Sequence", "pretokenizers": [
        metaspace(prepend_scheme="always"), {"type": "Split", "pattern": {"Regex": "\\[a\\]|<b>"}, "behavior": "Isolated"}]}, model__ignore_merges=True),
    "spaces_doubled_alone": spaces(normalizer=doubled),
    "spaces_beside_bytes": pipeline(normalizer={"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}),
    "spaces_prefix_alone": pipeline(normalizer={"type": "Prepend", "prepend": "\u2581"}),
    "spaces_twice_prefixed": spaces(pre_tokenizer=metaspace()),
    "spaces_of_another_mark": spaces(normalizer=None, pre_tokenizer=metaspace(replacement="_")),
    "spaces_of_an_unknown_scheme": spaces(normalizer=None, pre_tokenizer=metaspace(prepend_scheme="last")),
    "spaces_without_a_byte": spaces(model__vocab={"<unk>": 0, "\u2581": 1, "<0x00>": 2}, model__merges=[]),
    "spaces_merge_a_byte": spaces(model__merges=[["<0x41>", "e"]]),
    "valid": tokenizer(),
    "valid_begin_of_text": tokenizer(post_processor=template(260)),
    "valid_pattern": tokenizer(pre_tokenizer=split("\\s?\\p{L}+|\\d{1,2}|.")),
    "valid_pattern_that_backtracks": tokenizer(pre_tokenizer=split("(([a-z]+)*)*!")),
    "cut": tokenizer()[:2000],
    "truncated_utf8": tokenizer().encode().replace("\u0120t".encode(), b"\xc4t"),
    "model_missing": "{}",
    "model_unigram": tokenizer(model__type="Unigram"),
    "vocab_is_a_list": tokenizer(model__vocab=[]),
    "vocab_empty": tokenizer(model__vocab={}, added_tokens=[]),
    "vocab_without_a_byte": tokenizer(model__vocab={"in": 0}, model__merges=[], added_tokens=[]),
    "unknown_token_missing": tokenizer(model__vocab={"i": 0}, model__merges=[], added_tokens=[], model__unk_token="?"),
    "valid_vocab_lacks_bytes": tokenizer(model__vocab={c: i for i, c in enumerate(alphabet()[:200])}, model__merges=[], added_tokens=[]),
    "id_negative": tokenizer(model__vocab={"in": -1}),
    "id_beyond_24_bits": tokenizer(model__vocab={"in": 1 << 24}),
    "id_beyond_int32": tokenizer(model__vocab={"in": 1 << 32}),
    "id_is_text": tokenizer(model__vocab={"in": "256"}),
    "merge_of_one": tokenizer(model__merges=["in"]),
    "merge_of_three": tokenizer(model__merges=["i n t"]),
    "merge_of_numbers": tokenizer(model__merges=[[1, 2]]),
    "merge_unknown": tokenizer(model__merges=["q q"]),
    "merge_too_long": tokenizer(model__merges=["x" * 5000 + " y"]),
    "merge_empty_side": tokenizer(model__merges=[" n"]),
    "merges_is_an_object": tokenizer(model__merges={}),
    "added_id_missing": pipeline(added_tokens=[{"content": "x"}]),
    "added_content_is_a_number": pipeline(added_tokens=[{"id": 260, "content": 4}]),
    "added_too_long": tokenizer(added_tokens=[{"id": 260, "content": "x" * 257}]),
    "valid_added_with_another_id": tokenizer(added_tokens=[{"id": 260, "content": "in"}]),
    "begin_of_text_beyond_table": tokenizer(post_processor=template(1000000)),
    "begin_of_text_beyond_int32": tokenizer(post_processor=template((1 << 32) + 1)),
    "begin_of_text_negative": tokenizer(post_processor=template(-3)),
    "two_begin_tokens": pipeline(post_processor={**template(260), "single": template(260)["single"][:1] * 2}),
    "normalizer_unknown": pipeline(normalizer={"type": "NFKC"}),
    "byte_level_missing": pipeline(pre_tokenizer={"type": "Digits"}),
    "byte_level_twice": pipeline(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}] * 2}),
    "stages_too_many": pipeline(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Digits"}] * 40}),
    "pattern_unbalanced": pipeline(pre_tokenizer=split("(a")),
    "pattern_ends_in_backslash": pipeline(pre_tokenizer=split("a\\")),
    "pattern_too_long": tokenizer(pre_tokenizer=split("x" * 17000)),
    "valid_pattern_word_class": tokenizer(pre_tokenizer=split("\\w+|[[:punct:]&&[^!]]|(?=\\h)")),
    **{f"valid_split_{behavior}{'_inverted' * invert}": tokenizer(pre_tokenizer=split("[a-e]*|\\d", behavior=behavior, invert=invert))
       for behavior in ("Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous") for invert in (False, True)},
    "valid_split_at_a_text": tokenizer(pre_tokenizer=split(". (x)", kind="String", behavior="MergedWithNext")),
    "split_at_nothing": pipeline(pre_tokenizer=split("", kind="String")),
    "split_behavior_unknown": pipeline(pre_tokenizer=split("a", behavior="Merged")),
    "spaces_split_by_a_pattern": spaces(pre_tokenizer=split("\\s")),
    "sequence_deep": pipeline(normalizer=json.loads('{"type":"Sequence","normalizers":[' * 300 + '{"type":"x"}' + "]}" * 300)),
})


# ---- tokenizers in GGUF files ----
def texts(list_of):
    return ARRAY, array(TEXT, len(list_of), b"".join(map(gguf_text, list_of)))


def ints(list_of):
    return ARRAY, array(5, len(list_of), struct.pack(f"<{len(list_of)}i", *list_of))


def whole(x):
    return U32, struct.pack("<I", x)


def text_of(x):
    return TEXT, gguf_text(x)


def gguf_tokenizer(more=("<|endoftext|>", "<|x|>", "<u>", "[PAD263]"), types=(3, 3, 4, 5), **change):
    tokens = alphabet() + ["in", "\u0120t", "the", "he"]
    keys = {"model": text_of("gpt2"), "pre": text_of("qwen2"), "tokens": texts([*tokens, *more]),
            "token_type": ints([1] * len(tokens) + list(types)), "merges": texts(["i n", "\u0120 t", "h e", "t he"]),
            "eos_token_id": whole(260), **change}
    return gguf_file([("tokenizer.ggml." + k, *v) for k, v in keys.items() if v], data=b"")


yes = (BOOL, b"\1")


def gguf_scores(more=(), scores=None, types=(), **change):
    """SentencePiece's, with scores: those of ab and bc are the same."""
    words = ["\u2581", "a", "b", "c", "\u00e9", "bc", "ab", "cab", "\u2581a", *more]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *words, "<u>"]
    values = [0.0] * 259 + [-9.0] * 5 + [-1.0, -1.0, -2.0, -3.0] + [-4.0] * len(more) + [0.0]
    scores = values if scores is None else scores
    return gguf_tokenizer(**{
        "model": text_of("llama"), "pre": None, "merges": None, "tokens": texts(tokens),
        "token_type": ints([2, 3, 3] + [6] * 256 + ([1] * len(words) if not types else list(types)) + [4]),
        "scores": (ARRAY, array(6, len(scores), struct.pack("<%df" % len(scores), *scores))),
        "bos_token_id": whole(1), "eos_token_id": whole(2), **change})


write_all("gguf_tokenizer", {
    "valid_scores": gguf_scores(),
    "valid_scores_without_a_space": gguf_scores(add_space_prefix=(BOOL, b"\0"), add_bos_token=(BOOL, b"\0")),
    "valid_scores_infinite": gguf_scores(scores=[0.0] * 264 + [float("inf"), float("-inf"), -2.0, -3.0, 0.0]),
    "scores_missing": gguf_scores(scores=[]),
    "scores_too_few": gguf_scores(scores=[0.0] * 267),
    "scores_not_numbers": gguf_scores(scores=[float("nan")] * 269),
    "scores_are_whole": gguf_tokenizer(model=text_of("llama"), bos_token_id=whole(261), scores=ints([0] * 264)),
    "scores_token_too_long": gguf_scores(more=["a" * 600]),
    "scores_character_missing": gguf_scores(more=["az"]),
    "scores_byte_missing": gguf_scores(more=["\u2581b"], token_type=ints([2, 3, 3, 5] + [6] * 255 + [1] * 10 + [4])),
    "ends_with_eos": gguf_scores(add_eos_token=yes),
    "valid": gguf_tokenizer(),
    "valid_no_vocab": gguf_tokenizer(model=text_of("no_vocab")),
    **{f"valid_{pre}": gguf_tokenizer(pre=text_of(pre), bos_token_id=whole(261)) for pre in ("llama-bpe", "smaug-bpe", "smollm", "gpt-2", "tekken", "gpt-4o", "deepseek-v3", "deepseek-llm", "superbpe")},
    "valid_gemma": gguf_scores(model=text_of("gemma4"), merges=texts(["b c", "a b", "c ab", "\u2581 a"])),
    "valid_gemma_spaces": gguf_scores(["  "], types=[1] * 9 + [4], model=text_of("gemma4"), merges=texts(["\u2581 \u2581", "\u2581 a"])),
    "gemma_without_merges": gguf_scores(model=text_of("gemma4")),
    "gemma_merge_unknown": gguf_scores(model=text_of("gemma4"), merges=texts(["b \u2581"])),
    "valid_without_tokenizer": gguf_file(data=b""),
    "valid_begins": gguf_tokenizer(bos_token_id=whole(261), add_bos_token=yes),
    "valid_empty_tokens": gguf_tokenizer(("<|endoftext|>", "", ""), (3, 1, 4)),
    "valid_no_merges": gguf_tokenizer(merges=texts([])),
    "model_of_sentencepiece": gguf_tokenizer(model=text_of("llama")),
    "model_with_nul": gguf_tokenizer(model=text_of("gpt2\0")),
    "model_is_a_number": gguf_tokenizer(model=whole(2)),
    "pre_missing": gguf_tokenizer(pre=None),
    "pre_unknown": gguf_tokenizer(pre=text_of("kimi-k2")),
    "pre_empty": gguf_tokenizer(pre=text_of("")),
    "tokens_missing": gguf_tokenizer(tokens=None),
    "tokens_empty": gguf_tokenizer(tokens=texts([]), token_type=ints([])),
    "tokens_are_numbers": gguf_tokenizer(tokens=ints([1] * 264)),
    "tokens_are_one_text": gguf_tokenizer(tokens=text_of("a")),
    "types_missing": gguf_tokenizer(token_type=None),
    "types_short": gguf_tokenizer(types=(3, 3, 4)),
    "types_are_texts": gguf_tokenizer(token_type=texts(["1"] * 264)),
    "type_unknown": gguf_tokenizer(types=(3, 3, 7, 5)),
    "type_negative": gguf_tokenizer(types=(3, 3, -1, 5)),
    "token_twice": gguf_tokenizer(("<|endoftext|>", "the"), (3, 4)),
    "token_with_nul": gguf_tokenizer(("<|endoftext|>", "<\0>"), (3, 3)),
    "token_not_utf8": gguf_tokenizer(("<|endoftext|>", b"<\xff>"), (3, 3)),
    "token_too_long": gguf_tokenizer(("<|endoftext|>", "<" + "x" * 256 + ">"), (3, 3)),
    "merges_missing": gguf_tokenizer(merges=None),
    "merge_of_one": gguf_tokenizer(merges=texts(["in"])),
    "merge_of_three": gguf_tokenizer(merges=texts(["i n t"])),
    "merge_unknown": gguf_tokenizer(merges=texts(["q q"])),
    "merge_empty": gguf_tokenizer(merges=texts([""])),
    "merge_empty_side": gguf_tokenizer(merges=texts([" n"])),
    "merge_not_utf8": gguf_tokenizer(merges=texts([b"i \xff"])),
    "eos_beyond_the_tokens": gguf_tokenizer(eos_token_id=whole(264)),
    "eos_is_padding": gguf_tokenizer(eos_token_id=whole(263)),
    "eos_beyond_int32": gguf_tokenizer(eos_token_id=whole(MAX)),
    "bos_missing": gguf_tokenizer(add_bos_token=yes),
    "bos_is_text": gguf_tokenizer(bos_token_id=text_of("<|x|>"), add_bos_token=yes),
    "begins_is_a_number": gguf_tokenizer(add_bos_token=whole(1)),
})
write_all("encode", {
    "valid_empty": "",
    "valid_text": "It's 12345 words,  \n\n<|endoftext|> caf\u00e9 cafe\u0301 \u0e33\u0327\n",
    "valid_not_utf8": bytes(range(256)),
    "valid_truncated_utf8": b"abc \xf0\x9f\x98",
    "valid_overlong_utf8": b"\xc0\x80 \xe0\x80\x80 \xf4\x90\x80\x80 \xed\xa0\x80",
    "valid_added_tokens_touch": "<left><right> <left> <right>word words wordword <tool><\u00e9><|endoftext",
    "valid_marks_of_spaces": "\u2581 a\u2581\u2581b  c   \u2581\n\n <bos>x<end_of_turn>\n<0x41> \u2581",
    "valid_many_marks": "a" + "\u0301\u0323" * 400,
    "valid_spaces": " \t\n\r\u2003\u00a0" * 40,
    "valid_one_long_word": "the" * 700,
    "valid_contractions": "'S'T'RE'VE'M'LL'D'\u017f 'x ''",
})


# ---- token files ----
def llmc(count, ids, version=1):
    return b"b" + struct.pack("<3i", 20240520, version, count).ljust(1024, b"\0") + struct.pack("<%dH" % len(ids), *ids)


def llmq(count, ids, version=2, size=4, mask=None, vocabulary=1000):
    head = b"BIN.TOK\n" + struct.pack("<5i", version, size, count, vocabulary, mask is not None)
    return b"b" + head.ljust(1024, b"\0") + struct.pack("<%di" % len(ids), *ids) + (mask or b"")


ids = list(range(1, 25))
write_all("tokens", {
    "valid_llmc": llmc(24, ids),
    "valid_llmq": llmq(24, ids),
    "valid_llmq_mask": llmq(24, ids, mask=b"\xff\x0f\xff"),
    "valid_u16": b"2" + struct.pack("<24H", *ids),
    "valid_u32": b"4" + struct.pack("<24I", *ids),
    "empty_bin": b"b",
    "magic_unknown": b"b" + bytes(2000),
    "header_cut": llmc(24, ids)[:500],
    "header_of_twelve_bytes": llmc(24, ids)[:13],
    "version_unknown": llmc(24, ids, version=7),
    "count_negative": llmc(-24, ids),
    "count_beyond_file": llmc(25, ids),
    "count_below_file": llmc(23, ids),
    "count_wraps": llmq(-2147483648, ids),
    "count_zero": llmc(0, []),
    "q_version_unknown": llmq(24, ids, version=1),
    "q_size_unknown": llmq(24, ids, size=2),
    "q_mask_cut": llmq(24, ids, mask=b"\xff\x0f"),
    "q_id_negative": llmq(24, [-1] + ids[1:]),
    "q_header_cut": llmq(24, ids)[:40],
    "u16_empty": b"2",
    "u32_empty": b"4",
    "u16_odd": b"2" + bytes(33),
    "u32_not_whole": b"4" + bytes(35),
    "u16_id_beyond_vocabulary": b"2" + struct.pack("<24H", *ids[:-1], 1000),
    "u32_id_beyond_vocabulary": b"4" + struct.pack("<24I", *ids[:-1], 1 << 31),
    "valid_fewer_tokens_than_a_row": b"2" + struct.pack("<5H", *ids[:5]),
})

# ---- tables of matrix products ----
heading = "nojit-gemm 1\ndevice fuzz sm_0 bfloat16\nlibrary 0\n"
choice = "NT 128x64: " + "0a" * 72 + "\n"
write_all("gemm_table", {
    "valid": heading + choice + choice.replace("NT", "NN"),
    "valid_shape_twice": heading + choice + choice.replace("0a", "0b"),
    "valid_last_row_torn": heading + choice + choice[:60],
    "heading_cut": heading[:30],
    "another_device": heading.replace("fuzz", "other") + choice,
    "no_rows": heading,
    "row_without_colon": heading + choice.replace(":", ""),
    "row_without_newline": heading + choice[:-1],
    "shape_too_long": heading + "N" * 170 + choice,
    "line_too_long": heading + "N" * 5000 + choice,
    "hex_cut": heading + choice[:-9] + "\n",
    "hex_longer": heading + choice[:-1] + "00\n",
    "hex_not_hex": heading + choice.replace("0a", "0g"),
    "hex_signs": heading + choice.replace("0a", "-a"),
    "hex_spaces": heading + choice.replace("0a", " a"),
    "nul_in_row": heading + choice.replace("128", "1\0008"),
})


# ---- the index of kernels: hashes of 0 are filled in by the target ----
def make_index(record_arch=1, end=b"", **change):
    strings = b"\0add.f32\0nj_add_f32\0ptxas 13.0.88\0"
    entries = 72 + 32
    records = entries + 96
    h = {"magic": 0x0031494454494A4E, "version": 2, "entry_count": 1, "arch_count": 2, "record_count": 2, "entries_off": entries,
         "archs_off": 72, "records_off": records, "params_off": records + 64, "strings_off": records + 64 + 8,
         "index_bytes": records + 64 + 8 + len(strings), "param_count": 2, "reserved": 0, "blobs_bytes": 64, "hash": 0}
    a = {"assembler_str": 20, "spare": 1, "reserved": 0}
    e = {"key_hash": 0, "blob_off": 0, "blob_bytes": 64, "blob_hash": 0, "spare_off": 0, "spare_bytes": 32, "spare_hash": 0, "key_str": 1, "entry_str": 9, "threads": 256, "shared": 0,
         "first_record": 0, "record_count": 2, "first_param": 0, "param_count": 2, "param_bytes": 16, "min_sm": 75}
    for name, value in change.items():
        table, field = name.split("__")
        {"h": h, "a": a, "e": e}[table][field] = value
    out = struct.pack("<Q12I2Q", *h.values())
    out += struct.pack("<HBBIIB3x", 75, 0, 1, 65536, 20, 0)
    out += struct.pack("<HBBIIBBxx", 90, ord("a"), 0, 232448, *a.values())
    out += struct.pack("<7Q7I3H6x", *e.values())
    out += b"".join(struct.pack("<QIHHIIII", 1, 64, a, 32, 0, 0, 0, 0) for a in (0, record_arch))
    out += struct.pack("<4H", 0, 8, 8, 8) + strings
    return (out[:-len(end)] + end if end else out) + bytes(range(64))


indexes = {
    "valid": make_index(),
    "header_cut": make_index()[:40],
    "magic_wrong": make_index(h__magic=1),
    "version_unknown": make_index(h__version=1),
    "index_bytes_beyond_file": make_index(h__index_bytes=4096),
    "index_bytes_zero": make_index(h__index_bytes=0),
    "blobs_bytes_beyond_file": make_index(h__blobs_bytes=1 << 40),
    "index_hash_wrong": make_index(h__hash=1),
    "entries_beyond_index": make_index(h__entry_count=MAX),
    "records_beyond_index": make_index(h__record_count=MAX),
    "params_beyond_index": make_index(h__param_count=MAX),
    "archs_beyond_index": make_index(h__arch_count=MAX),
    "entries_unaligned": make_index(h__entries_off=89),
    "entries_in_the_header": make_index(h__entries_off=0),
    "strings_beyond_index": make_index(h__strings_off=MAX),
    "strings_do_not_end": make_index(end=b"x"),
    "assembler_beyond_strings": make_index(a__assembler_str=MAX),
    "key_beyond_strings": make_index(e__key_str=MAX),
    "entry_beyond_strings": make_index(e__entry_str=100),
    "key_hash_wrong": make_index(e__key_hash=5),
    "blob_hash_wrong": make_index(e__blob_hash=5),
    "first_record_wraps": make_index(e__first_record=MAX),
    "record_count_wraps": make_index(e__record_count=MAX),
    "first_param_wraps": make_index(e__first_param=MAX),
    "arch_of_record_unknown": make_index(record_arch=2),
    "blob_beyond_section": make_index(e__blob_off=1),
    "blob_offset_wraps": make_index(e__blob_off=(1 << 64) - 32),
    "records_without_code": make_index(e__blob_bytes=0),
    "code_without_records": make_index(e__record_count=0),
    "spare_beyond_section": make_index(e__spare_off=33),
    "spare_offset_wraps": make_index(e__spare_off=(1 << 64) - 16),
    "spare_hash_wrong": make_index(e__spare_hash=5),
    "spare_without_code": make_index(e__blob_bytes=0, e__record_count=0),
}
write_all("index", indexes)

# ---- what blobcheck reads ----
keys = "add.f32\tnj_add_f32\t256\t0\t75\t32\t0:8,8:8,16:8,24:8\n"
write_all("keys", {
    "valid_keys": keys,
    "valid_archs": "sm_75\t75\t-\t65536\t1\t0\nsm_90a\t90\ta\t232448\t0\t1\n",
    "archs_spare_missing": "sm_75\t75\t-\t65536\t1\n",
    "valid_index": make_index()[:-64],
    "no_last_newline": keys[:-1],
    "nul_byte": keys.replace("256", "2\0006"),
    "key_twice": keys * 2,
    "key_too_long": keys.replace("add", "a" * 100),
    "entry_of_another_key": keys.replace("nj_add", "nj_sub"),
    "field_missing": keys.replace("\t75", ""),
    "valid_keys_of_some_models": keys[:-1] + "\tqk_norm\n" + "b.lp\tnj_b_lp\t32\t0\t75\t8\t0:8\tnot qk_norm\n",
    "feature_empty": keys[:-1] + "\t\n",
    "feature_not_a_name": keys[:-1] + "\tqk-norm\n",
    "feature_negated_twice": keys[:-1] + "\tnot not qk_norm\n",
    "feature_and_more": keys[:-1] + "\tqk_norm\t1\n",
    "valid_keys_of_one_arch": keys.replace("\t75", "\tsm_90a") + "b.lp\tnj_b_lp\t32\t0\tsm_120\t128\t0:128\n",
    "one_arch_suffix_unknown": keys.replace("\t75", "\tsm_90b"),
    "one_arch_leading_zero": keys.replace("\t75", "\tsm_090a"),
    "one_arch_without_number": keys.replace("\t75", "\tsm_a"),
    "one_arch_number_wraps": keys.replace("\t75", "\tsm_4294967386"),
    "params_beyond_a_map": keys.replace("\t32\t", "\t320\t").replace("24:8", "24:129"),
    "leading_zero": keys.replace("256", "0256"),
    "negative": keys.replace("256", "-256"),
    "number_wraps": keys.replace("256", "4294967552"),
    "params_overlap": keys.replace("8:8", "7:8"),
    "params_beyond_their_size": keys.replace("24:8", "32:8"),
    "params_of_no_bytes": keys.replace("24:8", "24:0"),
    "archs_out_of_order": "sm_90\t90\t-\t232448\t0\t0\nsm_75\t75\t-\t65536\t1\t0\n",
    "archs_too_many": "".join("sm_%d\t%d\t-\t65536\t1\t0\n" % (i, i) for i in range(75, 110)),
    **{"index_" + name: indexes[name][:-64] for name in
       ("header_cut", "magic_wrong", "version_unknown", "archs_beyond_index", "strings_beyond_index", "assembler_beyond_strings")},
    "index_reserved_not_zero": make_index(h__reserved=1)[:-64],
})


def damaged(data, at, form, *values):
    return data[:at] + struct.pack(form, *values) + data[at + struct.calcsize(form):]


# ---- SPIR-V ----
shader = read(sys.argv[1], "spirv", "add.f32.spv")


def instruction(op, last=False):
    """Offset of the first (or last) instruction of that opcode."""
    found, at = None, 20
    while at < len(shader):
        word, = struct.unpack_from("<I", shader, at)
        if word & 0xFFFF == op and (found is None or last):
            found = at
        at += 4 * (word >> 16)
    return found


# Push constants of structs of structs.
nested = b"".join(struct.pack("<502I", 502 << 16 | 30, 4000 + i, *[4001 + i] * 500) for i in range(7)) + struct.pack(
    "<8I", 4 << 16 | 32, 4100, 9, 4000, 4 << 16 | 59, 4100, 4101, 9)
write_all("spirv", {
    "valid": shader,
    "header_alone": shader[:20],
    "magic_wrong": damaged(shader, 0, "<I", 0x03022307),
    "cut": shader[:-3],
    "version_newer": damaged(shader, 4, "<I", 0x10600),
    "ids_too_many": damaged(shader, 12, "<I", MAX),
    "ids_none": damaged(shader, 12, "<I", 0),
    "instruction_empty": damaged(shader, 20, "<I", 17),
    "instruction_beyond_file": damaged(shader, 20, "<I", 0xFFFF0011),
    "capability_double": damaged(shader, instruction(17) + 4, "<I", 10),
    "memory_model_logical": damaged(shader, instruction(14) + 4, "<I", 0),
    "entry_of_a_fragment": damaged(shader, instruction(15) + 4, "<I", 4),
    "entry_of_another_name": damaged(shader, instruction(15) + 12, "<4s", b"name"),
    "entry_name_endless": shader[:instruction(15) + 12] + b"x" * (len(shader) - instruction(15) - 12),
    "threads_other": damaged(shader, instruction(16) + 12, "<I", 128),
    "offset_other": damaged(shader, instruction(72, True) + 16, "<I", 96),
    "structs_in_structs": damaged(shader, 12, "<I", 5000) + nested,
})

elf = read(sys.argv[1], "cubin", "add.f32.sm_75.cubin")
segments, sections = struct.unpack_from("<QQ", elf, 32)
while struct.unpack_from("<I", elf, segments)[0] != 1:  # one that is loaded
    segments += 56
names = sections + 64 * struct.unpack_from("<H", elf, 62)[0]
write_all("elf", {
    "valid": elf,
    "names_too_long": damaged(elf, names + 24, "<2Q", len(elf), 8001) + b"x" * 8000 + b"\0",
    "header_cut": elf[:50],
    "class_32": damaged(elf[:64], 4, "<B", 1),
    "big_endian": damaged(elf[:64], 5, "<B", 2),
    "machine_unknown": damaged(elf, 18, "<H", 62),
    "sections_beyond_file": damaged(elf, 40, "<Q", len(elf) + 64),
    "sections_offset_wraps": damaged(elf, 40, "<Q", (1 << 64) - 64),
    "sections_too_many": damaged(elf, 60, "<H", 0xFFFF),
    "section_size_wrong": damaged(elf, 58, "<H", 1),
    "names_index_beyond_table": damaged(elf, 62, "<H", 0xFFF0),
    "segments_beyond_file": damaged(elf, 32, "<Q", (1 << 64) - 8),
    "name_beyond_names": damaged(elf, sections + 64, "<I", MAX),
    "section_beyond_file": damaged(elf, sections + 64 + 24, "<Q", 1 << 50),
    "section_offset_wraps": damaged(elf, sections + 64 + 24, "<Q", (1 << 64) - 4),
    "section_bytes_wrap": damaged(elf, sections + 64 + 32, "<Q", (1 << 64) - 4),
    "segment_beyond_file": damaged(elf, segments + 8, "<Q", 1 << 50),
})


def fatbin(entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def library(code, name=b".nv_fatbin"):
    names = b"\0" + name + b"\0.shstrtab\0"
    sections = [(0, 0, 0), (1, 64, len(code)), (2 + len(name), 64 + len(code), len(names))]
    header = struct.pack("<4s4B8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 3, 62, 1, 0, 0, 64 + len(code) + len(names), 0, 64, 0, 0, 64, 3, 2)
    return header + code + names + b"".join(struct.pack("<IIQQQQIIQQ", n, 1, 0, 0, at, count, 0, 0, 1, 0) for n, at, count in sections)


def code_entry(kind, sm, flags=1, payload=b"8 bytes."):
    return struct.pack("<HHIQ", kind, 0, 64, len(payload)) + struct.pack("<12xI8xQ24x", sm, flags) + payload


def ir_entry(kind, version, flags, payload, options=b""):
    """64 bytes as of all entries, then offset and length of the options, and the options, filled up to 8 bytes."""
    options += bytes(-len(options) % 8)
    header = 80 + len(options)
    fixed = struct.pack("<HHIQIIIIQQQQ", kind, 0x101, header, len(payload), 0, 64, version, 120, 0, flags, 0, 0)
    return fixed + struct.pack("<II8x", 72, len(options)) + options + payload


several = fatbin([code_entry(2, 75), code_entry(1, 120)]) + b"padding." + fatbin([code_entry(2, 90, 0x100001), code_entry(2, 100, 0x200001)])
one_entry = library(fatbin([code_entry(2, 80)]))
write_all("gpu_code", {
    "valid": one_entry,
    "valid_several": library(several),
    "valid_forty_archs": library(fatbin([code_entry(2, 50 + i) for i in range(40)])),
    "valid_twice": library(fatbin([code_entry(2, 80)] * 3)),
    "header_cut": one_entry[:63],
    "section_of_another_name": library(several, b".text"),
    "ptx_alone": library(fatbin([code_entry(1, 80)])),
    "container_empty": library(fatbin([])),
    "container_beyond_section": library(damaged(several, 8, "<Q", 1 << 40)[:88]),
    "entry_beyond_container": library(fatbin([damaged(code_entry(2, 80), 8, "<Q", (1 << 64) - 8)])),
    "entry_header_short": library(fatbin([damaged(code_entry(2, 80), 4, "<I", 0)])),
    "sections_offset_wraps": damaged(one_entry, 40, "<Q", (1 << 64) - 64),
    "section_beyond_file": damaged(one_entry, len(one_entry) - 128 + 24, "<Q", 1 << 50),
    "names_index_beyond_table": damaged(one_entry, 62, "<H", 0xFFF0),
    "sm_beyond_all": library(fatbin([code_entry(2, 4000)])),
})
whole = read(sys.argv[1], "fatbin", "add.f32.fatbin")
parts, at = {}, 16
while at < len(whole):
    header, payload = struct.unpack_from("<IQ", whole, at + 4)
    parts[struct.unpack_from("<I", whole, at + 28)[0]] = whole[at:at + header + payload]
    at += header + payload
part, one = parts[75], fatbin([parts[75]])
short = fatbin([damaged(part[:72], 8, "<Q", 8)])  # for what is refused before the code is read
write_all("fatbin", {
    "valid": one,
    "magic_wrong": damaged(fatbin([]), 0, "<I", 1),
    "version_unknown": damaged(fatbin([]), 4, "<H", 9),
    "container_bytes_beyond_file": damaged(fatbin([]), 8, "<Q", 1 << 40),
    "container_bytes_wrap": damaged(fatbin([]), 8, "<Q", (1 << 64) - 16),
    "container_cut": one[:4000],
    "bytes_after_container": one + b"\0" * 8,
    "entry_header_zero": damaged(short, 16 + 4, "<I", 0),
    "entry_header_beyond_file": damaged(short, 16 + 4, "<I", MAX),
    "entry_payload_wraps": damaged(short, 16 + 8, "<Q", (1 << 64) - 64),
    "entry_is_ptx": damaged(short, 16, "<H", 1),
    # Kinds 8 and 128 are what `fatbinary --image3=kind=nvvm` and `kind=tileir` of CUDA 13.5.37 write, with flags and headers of
    # `nvcc -gencode arch=compute_120,code=lto_120` and `nvcc -enable-tile -tilefatbin -gencode arch=compute_120,code=compute_120`.
    "entry_is_lto_ir": fatbin([ir_entry(8, 0x10043, 0x18011, b"\xedCN\x7f\x01C\x02\x83\x03\x02\x17\0\x18\0\x01\0", b"-ftz=0 ")]),
    "entry_is_tile_ir": fatbin([ir_entry(128, 0xD050000, 0x11, b"\x7fTileIR\0\x0d\x05\0\0\0\0\0\0")]),
    "entry_kind_unknown": damaged(short, 16, "<H", 77),
    "arch_missing": fatbin([]),
    "arch_twice": fatbin([part, part]),
    "arch_nobody_asked_for": fatbin([damaged(part, 28, "<I", 90)]),
    "code_of_another_arch": fatbin([damaged(parts[90], 28, "<I", 75)]),
    "code_damaged": fatbin([damaged(part, 64, "<I", 0)]),
    "marked_as_compressed": fatbin([damaged(part, 40, "<Q", struct.unpack_from("<Q", part, 40)[0] | 1 << 15)]),
})


# ---- state.bin of a checkpoint: 128 elements; a layout or hash of 0 is filled in by the target ----
def state(magic=b"NJSTATE\0", version=1, dtype=0, layout=0, elements=128, step=3, place=(0, 0), updates=3.0, scale=1.0,
          sections=(0, 0, 0), header=0, data=bytes(3 * 4 * 128)):
    slots = [0.0] * 4 + [updates] + [0.0] * 4 + [scale] + [0.0] * 6
    return magic + struct.pack("<IIQqqQQ16f3QQ", version, dtype, layout, elements, step, *place, *slots, *sections, header) + data


STATE_ARRAYS = ("weights", "moments.1", "moments.2")


def tagged(change=None, hashes=None, records_hash=0, count=None, order=None, **more):
    """Version 2: a record for each tag, then what they speak of. change: other bytes under a tag, None leaves it out."""
    slots = [0.0] * 4 + [3.0] + [0.0] * 4 + [1.0] + [0.0] * 6
    parts = {"step": struct.pack("<q", 3), "dtype": struct.pack("<I", 0), "kept": struct.pack("<I", 0),
             "layout": struct.pack("<Q", 0), "elements": struct.pack("<q", 128), "epoch": struct.pack("<Q", 0),
             "window": struct.pack("<Q", 0), "slots": struct.pack("<16f", *slots), **{a: bytes(512) for a in STATE_ARRAYS}}
    parts.update(change or {})
    rows = [(tag, data) for tag, data in parts.items() if data is not None]
    rows = [rows[i] for i in order] if order else rows
    rows += list(more.get("behind", []))
    records = b"".join(struct.pack("<16sQQ", tag.encode(), more.get("sizes", {}).get(tag, len(data)), (hashes or {}).get(tag, 0))
                       for tag, data in rows)
    return b"NJSTATE\0" + struct.pack("<IIQ", 2, len(rows) if count is None else count, records_hash) + records + b"".join(
        data for _, data in rows)


write_all("state", {
    "valid": state(),
    "valid_before_the_first_step": state(step=0, updates=0.0),
    "valid_place_beyond_the_data": state(place=((1 << 64) - 1, (1 << 64) - 1)),
    "valid_weights_not_finite": state(data=struct.pack("<f", float("nan")) * 384),
    "header_cut": state()[:151],
    "header_alone": state(data=b""),
    "magic_wrong": state(magic=b"NJSTATF\0"),
    "version_unknown": state(version=4),
    "version_zero": state(version=0),
    "dtype_of_another_run": state(dtype=1),
    "dtype_unknown": state(dtype=77),
    "layout_of_another_model": state(layout=1),
    "elements_zero": state(elements=0),
    "elements_negative": state(elements=-1),
    "elements_of_another_model": state(elements=129),
    "elements_wrap": state(elements=1 << 62),
    "step_negative": state(step=-1),
    "step_least": state(step=-(1 << 63)),
    "updates_negative": state(updates=-1.0),
    "updates_not_a_number": state(updates=float("nan")),
    "updates_infinite": state(updates=float("inf")),
    "loss_scale_zero": state(scale=0.0),
    "loss_scale_infinite": state(scale=float("inf")),
    "loss_scale_not_a_number": state(scale=float("nan")),
    "header_hash_wrong": state(header=1),
    "master_hash_wrong": state(sections=(1, 0, 0)),
    "first_moments_hash_wrong": state(sections=(0, 1, 0)),
    "second_moments_hash_wrong": state(sections=(0, 0, 1)),
    "master_cut": state(data=bytes(511)),
    "second_moments_cut": state(data=bytes(3 * 512 - 1)),
    "bytes_after_the_end": state(data=bytes(3 * 512 + 1)),
    "valid_tagged": tagged(),
    "valid_tagged_in_another_order": tagged(order=[8, 0, 9, 1, 2, 3, 4, 10, 5, 6, 7]),
    "valid_tagged_without_a_place": tagged({"epoch": None, "window": None}),
    "tagged_cut": tagged()[:-1],
    "tagged_head_cut": tagged()[:23],
    "tagged_records_cut": tagged()[:200],
    "tagged_bytes_after_the_end": tagged() + b"x",
    "tagged_no_record": tagged(count=0),
    "tagged_too_many_records": tagged(count=65),
    "tagged_records_wrap": tagged(count=(1 << 32) - 1),
    "tagged_records_hash_wrong": tagged(records_hash=1),
    "tagged_field_unknown": tagged({"stept": bytes(8)}),
    "tagged_field_of_16_letters": tagged({"abcdefghijklmnop": b""}),
    "tagged_field_of_control_characters": tagged({"\n\x1b[1m": b""}),
    "tagged_field_twice": tagged(behind=[("step", struct.pack("<q", 3))]),
    "tagged_array_twice": tagged(behind=[("weights", bytes(512))]),
    "tagged_field_too_long": tagged({"step": bytes(16)}),
    "tagged_field_empty": tagged({"step": b""}),
    "tagged_field_hash_wrong": tagged(hashes={"step": 1}),
    "tagged_array_hash_wrong": tagged(hashes={"moments.2": 1}),
    "tagged_array_missing": tagged({"moments.1": None}),
    "tagged_array_short": tagged({"moments.1": bytes(511)}),
    "tagged_array_wraps": tagged(sizes={"moments.2": (1 << 64) - 1}),
    "tagged_step_negative": tagged({"step": struct.pack("<q", -1)}),
    "tagged_without_elements": tagged({"elements": None}),
    "tagged_without_slots": tagged({"slots": None}),
})


# ---- answers.bin of a checkpoint: two rows of four tokens; a hash of 0 is filled in by the target ----
# Two prompts with answers of two tokens: [1, 2 | 3, 4], for the teacher [2 | 3, 4] and padding; [0 | 1, 2] and padding.
ANSWERS = dict(ids=[[1, 2, 3, 0], [0, 1, 0, 0]], target=[[-100, 3, 4, -100], [1, 2, -100, -100]],
               pos=[[0, 1, 2, 0], [0, 1, 0, 1]], doc_start=[[0, 0, 0, 3], [0, 0, 2, 2]],
               teacher_ids=[[2, 3, 0, 0], [0, 1, 0, 0]], teacher_pos=[[0, 1, 0, 0], [0, 1, 0, 1]],
               teacher_doc_start=[[0, 0, 2, 3], [0, 0, 2, 2]], teacher_at=[[0, 0, 1, 3], [0, 1, 2, 3]])


def answers(magic=b"NJANSW1\0", seq_len=4, rows=2, valid=4, arrays_hash=0, head_hash=0, cut=None, end=b"", at=None):
    arrays = {name: [x for row in part for x in row] for name, part in ANSWERS.items()}
    for name, i, value in at or []:
        arrays[name][i] = value
    numbers = [x for part in arrays.values() for x in part[:4 * max(0, min(rows, 2))]]
    data = struct.pack(f"<{len(numbers)}i", *numbers)
    return (magic + struct.pack("<qqqQQ", seq_len, rows, valid, arrays_hash, head_hash) + data)[:cut] + end


write_all("answers", {
    "valid": answers(),
    "valid_one_row": answers(rows=1, valid=2),
    "valid_no_row": answers(rows=0, valid=0),
    "empty": b"",
    "header_cut": answers()[:47],
    "header_alone": answers()[:48],
    "magic_wrong": answers(magic=b"NJANSW2\0"),
    "rows_of_another_length": answers(seq_len=5),
    "rows_too_many": answers(rows=3),
    "rows_negative": answers(rows=-1),
    "rows_wrap": answers(rows=1 << 62),
    "length_wraps": answers(seq_len=(1 << 32) + 4),
    "targets_miscounted": answers(valid=3),
    "header_hash_wrong": answers(head_hash=1),
    "arrays_hash_wrong": answers(arrays_hash=1),
    "arrays_cut": answers(cut=-1),
    "bytes_after_the_end": answers(end=b"\0"),
    "id_negative": answers(at=[("ids", 1, -1)]),
    "id_beyond_vocabulary": answers(at=[("ids", 1, 5)]),
    "target_beyond_vocabulary": answers(at=[("target", 2, 5)]),
    "target_negative": answers(at=[("target", 2, -1)]),
    "position_not_of_its_document": answers(at=[("pos", 2, 1)]),
    "document_begins_later": answers(at=[("doc_start", 1, 2), ("pos", 1, -1)]),
    "document_begins_before_the_row": answers(at=[("doc_start", 0, -1), ("pos", 0, 1)]),
    "teacher_id_beyond_vocabulary": answers(at=[("teacher_ids", 7, 5)]),
    "teacher_document_begins_later": answers(at=[("teacher_doc_start", 4, 1), ("teacher_pos", 4, -1)]),
    "teacher_reads_beyond_the_row": answers(at=[("teacher_at", 2, 4)]),
    "teacher_reads_before_the_row": answers(at=[("teacher_at", 2, -1)]),
})


# ---- plan ----
MODEL = dict(hidden=64, intermediate=192, layers=2, heads=2, kv_heads=1, head_dim=64, vocab=264, tied=1, qkv_bias=1, qk_norm=0)
OPTIONS = dict(batch_size=2, seq_len=32, grad_accum=1, steps=1, f32=1, head_chunk=0, recompute=0, state16=0, rank=0,
               targets=127, dropout=0, vocab=0, workspace=0, teacher_fp8=0, decode_rows=0, decode_positions=0,
               teacher_writes=0, teacher_has_context=0, has_teacher=0)


def plan(student=None, teacher=None, **options):
    numbers = [*{**MODEL, **(student or {})}.values(),
               *{**OPTIONS, "has_teacher": int(teacher is not None), **options}.values(),
               *{**MODEL, **(teacher or {})}.values()]
    return struct.pack(f"<{len(numbers)}i", *numbers)


widest = dict(hidden=1 << 24, intermediate=1 << 24, layers=1024, vocab=1 << 24, heads=1024, kv_heads=1024, head_dim=128)
most = dict(batch_size=1 << 12, seq_len=1 << 12)
write_all("plan", {
    "valid": plan(),
    "valid_16_bits": plan(f32=0, workspace=32 << 20),
    "valid_untied_odd_vocabulary": plan(dict(tied=0, vocab=263, qk_norm=1, qkv_bias=0, hidden=72)),
    "valid_adapters": plan(rank=5, dropout=1, recompute=1),
    "valid_some_adapters": plan(rank=65536, targets=9, recompute=2, grad_accum=3),
    "valid_16_bit_state": plan(f32=0, state16=1, grad_accum=7),
    "valid_evaluation": plan(steps=0, teacher={}),
    "valid_teacher": plan(teacher=dict(hidden=128, layers=5, vocab=272), head_chunk=7),
    "valid_teacher_f8": plan(teacher=dict(hidden=128, vocab=272), teacher_fp8=1, f32=0),
    "valid_largest_model": plan(widest, f32=0, state16=1, recompute=2),
    "valid_most_rows": plan(**most),
    "valid_most_activations": plan(widest, rank=1, **most),
    "valid_decoder": plan(decode_rows=3),
    "valid_decoder_16_bits": plan(dict(qk_norm=1, vocab=263, tied=0), f32=0, decode_rows=300, decode_positions=257),
    "valid_decoder_many_short": plan(steps=0, decode_rows=65535, decode_positions=1),
    "valid_decoder_few_long": plan(steps=0, decode_rows=1, decode_positions=(1 << 21) - 1),
    "valid_decoder_adapters": plan(rank=5, dropout=1, decode_rows=9, decode_positions=1000),
    "valid_decoder_of_teacher": plan(teacher=dict(hidden=128, layers=5, kv_heads=2), teacher_writes=1, decode_rows=7),
    "valid_decoder_of_teacher_f8": plan(teacher=dict(hidden=128, vocab=272), teacher_fp8=1, f32=0, teacher_writes=1,
                                        teacher_has_context=1, decode_rows=70, decode_positions=300),
    "valid_teacher_has_context": plan(teacher={}, teacher_has_context=1, grad_accum=3),
    "decoder_wraps": plan(widest, steps=0, decode_rows=65535, decode_positions=(1 << 21) - 1),
    "training_wraps": plan(widest, **most),
    "teacher_wraps": plan(widest, teacher=widest, f32=0, **most),
    "rows_too_many": plan(batch_size=1 << 12, seq_len=(1 << 12) + 1),
    "teacher_f8_too_wide": plan(teacher=dict(intermediate=30736), teacher_fp8=1),
    "layers_too_many": plan(dict(layers=1025)),
    "rank_of_odd_width": plan(dict(hidden=12)),
})
