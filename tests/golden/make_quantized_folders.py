#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/quantized: models of a layer whose matrices are quantized in each format of safetensors that nojit
reads, for tests/unit/test_quantized_folder.c and tests/cli/quantized_folder.sh.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install numpy && /tmp/v/bin/python tests/golden/make_quantized_folders.py [FOLDER]

FOLDER/FORMAT: config.json and model.safetensors as bitsandbytes, GPTQModel, AutoAWQ, compressed-tensors and transformers lay them
out. FOLDER/FORMAT.crc: name and CRC-32 of each tensor as bfloat16, by the formula of the format in float32. With a
second argument, expanded: FOLDER/FORMAT-expanded, the model with those weights in bfloat16, in the place of them.
The files are kept in the tree; neither build nor tests need numpy."""
import json
import os
import struct
import sys
import zlib

import numpy as np

SMALL = sys.argv[2:] != ["expanded"]
OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "quantized")
HIDDEN, INNER, WORDS = 64, 128, 24
CONFIG = {"model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": 1,
          "num_attention_heads": 1, "num_key_value_heads": 1, "vocab_size": WORDS, "max_position_embeddings": 128,
          "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True, "eos_token_id": 23,
          "head_dim": 64, "torch_dtype": "bfloat16"}  # fmt: skip
LAYER = "model.layers.0."
MATRICES = {"self_attn.q_proj": (64, HIDDEN), "self_attn.k_proj": (64, HIDDEN), "self_attn.v_proj": (64, HIDDEN),
            "self_attn.o_proj": (HIDDEN, 64), "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN),
            "mlp.down_proj": (HIDDEN, INNER)}  # fmt: skip
NF4 = np.array([-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                -0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725,
                0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                0.7229568362236023, 1], np.float32)  # fmt: skip
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
rng = np.random.default_rng(17)


class Typed:
    """Bits of a type that numpy does not have."""

    def __init__(self, kind, bits):
        self.kind, self.bits = kind, bits


def bf16(x):
    """To nearest even."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def of_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def e4m3(byte):
    exponent, digits = byte >> 3 & 15, (byte & 7).astype(np.float32)
    x = np.where(exponent == 0, digits * np.float32(2.0**-9),
                 (1 + digits / 8) * np.exp2(exponent.astype(np.float32) - 7)).astype(np.float32)  # fmt: skip
    return np.where(byte & 0x80, -x, x)


def words(numbers):
    """Eight numbers of four bits to a word, along the last axis, the first lowest."""
    n = numbers.astype(np.uint32).reshape(*numbers.shape[:-1], -1, 8)
    return (n << (4 * np.arange(8, dtype=np.uint32))).sum(-1, dtype=np.uint32).astype(np.uint32).view(np.int32)


def scales(*shape, kind="F16"):
    x = (rng.random(shape) * 0.02 + 0.002).astype(np.float32)
    return (x.astype(np.float16), x.astype(np.float16).astype(np.float32)) if kind == "F16" else (
        (Typed("BF16", bf16(x)), of_bf16(bf16(x))) if kind == "BF16" else (x, x))  # fmt: skip


def spread(x, rows, columns, shape):
    """A scale for each element of shape."""
    return np.repeat(np.repeat(x, rows, 0), columns, 1)[: shape[0], : shape[1]]


def nf4(shape, nested, storage):
    count, blocksize = shape[0] * shape[1], 64 if not nested else 128
    q = rng.integers(0, 16, count).astype(np.uint8)
    groups = count // blocksize
    state = {"quant_type": "nf4", "blocksize": blocksize, "dtype": "bfloat16", "shape": list(shape)}
    packed = (q[0::2] << 4 | q[1::2]).astype(np.uint8)
    parts = {"weight": Typed("BF16", packed.view(np.uint16).reshape(-1, 1)) if storage else packed.reshape(-1, 1)}
    if nested:
        code, absmax = np.sort(rng.random(256).astype(np.float32) * 2 - 1), rng.integers(0, 256, groups).astype(np.uint8)
        each = 16
        outer = (rng.random(-(-groups // each)) * 0.05).astype(np.float32)
        state |= {"nested_blocksize": each, "nested_dtype": "float32", "nested_offset": float(np.float32(0.0612345))}
        value = code[absmax] * outer[np.arange(groups) // each] + np.float32(state["nested_offset"])
        parts |= {"weight.absmax": absmax, "weight.nested_absmax": outer, "weight.nested_quant_map": code}
    else:
        value = (rng.random(groups) * 0.1).astype(np.float32)
        parts["weight.absmax"] = value
    parts["weight.quant_map"] = NF4
    parts["weight.quant_state.bitsandbytes__nf4"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    return parts, (NF4[q] * np.repeat(value, blocksize)).reshape(shape)


def gptq(shape, group, second, kind="F16"):
    rows, columns = shape
    group = columns if group < 0 else group
    groups = -(-columns // group)
    q, z = rng.integers(0, 16, shape), rng.integers(0, 16, (groups, rows))
    held, s = scales(groups, rows, kind=kind)
    index = np.arange(columns) // group
    w = (q - (z + (0 if second else 1))[index].T).astype(np.float32) * s[index].T
    return {"qweight": words(q).T.copy(), "qzeros": words(z), "scales": held, "g_idx": index.astype(np.int32),
            "bias": np.zeros(rows, np.float16)}, w  # fmt: skip


def awq(shape, group):
    rows, columns = shape
    groups = -(-columns // group)
    q, z = rng.integers(0, 16, shape), rng.integers(0, 16, (groups, rows))
    held, s = scales(groups, rows)
    index = np.arange(columns) // group

    def packed(n):  # [lines, rows]: eight rows to a word
        return words(n.reshape(n.shape[0], -1, 8)[:, :, AWQ_ORDER].reshape(n.shape[0], -1))

    w = (q - z[index].T).astype(np.float32) * s[index].T
    return {"qweight": packed(q.T), "qzeros": packed(z), "scales": held}, w


def packed(shape, group, zeros, kind="BF16"):
    rows, columns = shape
    group = columns if group < 0 else group
    groups = columns // group
    q = rng.integers(-8, 8, shape)
    z = rng.integers(-8, 8, (rows, groups)) if zeros else np.zeros((rows, groups), int)
    held, s = scales(rows, groups, kind=kind)
    parts = {"weight_packed": words(q + 8), "weight_scale": held, "weight_shape": np.array(shape, np.int64)}
    if zeros == "words":
        parts["weight_zero_point"] = words((z + 8).T).T.copy()
    elif zeros:
        parts["weight_zero_point"] = z.astype(np.int8)
    return parts, (q - spread(z, 1, group, shape)).astype(np.float32) * spread(s, 1, group, shape)


def f8(shape, rows, columns, kind, name="weight_scale"):
    bits = rng.integers(0, 256, shape).astype(np.uint8)
    bits[(bits & 0x7F) == 0x7F] = 0x38
    count = -(-shape[0] // rows), -(-shape[1] // columns)
    held, s = scales(*count, kind=kind)
    w = e4m3(bits) * spread(s / np.float32(256), rows, columns, shape)
    held = Typed("BF16", bf16(s / np.float32(256))) if kind == "BF16" else (s / np.float32(256)).astype(np.float32)
    if count == (1, 1) and name == "weight_scale":
        held = held.bits.reshape(1) if isinstance(held, Typed) else held.reshape(1)
    return {"weight": Typed("F8_E4M3", bits), name: held, "input_scale": np.ones(1, np.float32)}, w


def compressed(form, **weights):
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"], "config_groups": {
        "group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}}}  # fmt: skip


def bitsandbytes(**more):
    return {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "bnb_4bit_quant_type": "nf4", **more}


INT4 = {"num_bits": 4, "type": "int"}
FLOAT8 = {"num_bits": 8, "type": "float", "symmetric": True}
FORMATS = {
    "nf4": (bitsandbytes(), lambda s: nf4(s, False, False)),
    "nf4-nested": (bitsandbytes(bnb_4bit_use_double_quant=True), lambda s: nf4(s, True, True)),
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": False}, lambda s: gptq(s, 64, False)),
    "gptq-v2": ({"quant_method": "gptq", "bits": 4, "group_size": -1, "checkpoint_format": "gptq_v2"},
                lambda s: gptq(s, -1, True, "BF16")),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True}, lambda s: awq(s, 32)),
    "packed": (compressed("pack-quantized", group_size=32, strategy="group", **INT4), lambda s: packed(s, 32, "")),
    "packed-zeros": (compressed("pack-quantized", group_size=None, strategy="channel", **INT4), lambda s: packed(s, -1, "words")),
    "packed-bytes": (compressed("pack-quantized", group_size=64, strategy="group", **INT4), lambda s: packed(s, 64, "bytes", "F16")),
    "float-tensor": (compressed("float-quantized", strategy="tensor", **FLOAT8), lambda s: f8(s, *s, "F32")),
    "float-channel": (compressed("float-quantized", strategy="channel", **FLOAT8), lambda s: f8(s, 1, s[1], "BF16")),
    "fp8": ({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [48, 64], "activation_scheme": "dynamic"},
            lambda s: f8(s, 48, 64, "F32", "weight_scale_inv")),
}  # fmt: skip
KINDS = {"float32": "F32", "float16": "F16", "uint8": "U8", "int8": "I8", "int32": "I32", "int64": "I64"}


def write(folder, config, tensors):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=1)
        f.write("\n")
    header, data = {}, b""
    for name, x in sorted(tensors.items()):
        bits = x.bits if isinstance(x, Typed) else x
        body = np.ascontiguousarray(bits).tobytes()
        kind = x.kind if isinstance(x, Typed) else KINDS[x.dtype.name]
        header[name] = {"dtype": kind, "shape": list(bits.shape), "data_offsets": [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def main():
    for name, (scheme, make) in FORMATS.items():
        plain = {"model.embed_tokens.weight": (WORDS, HIDDEN), "model.norm.weight": (HIDDEN,),
                 LAYER + "input_layernorm.weight": (HIDDEN,), LAYER + "post_attention_layernorm.weight": (HIDDEN,)}  # fmt: skip
        whole = {k: Typed("BF16", bf16(rng.standard_normal(s) * 0.1 + len(s) % 2)) for k, s in plain.items()}
        tensors = dict(whole)
        for module, shape in MATRICES.items():
            if module == "self_attn.k_proj":  # not converted
                weight = Typed("BF16", bf16(rng.standard_normal(shape) * 0.1))
                tensors[LAYER + module + ".weight"] = whole[LAYER + module + ".weight"] = weight
                continue
            parts, weight = make(shape)
            tensors |= {f"{LAYER}{module}.{part}": x for part, x in parts.items()}
            whole[f"{LAYER}{module}.weight"] = Typed("BF16", bf16(weight))
        folder = os.path.join(OUT, name)
        if not SMALL:
            write(folder + "-expanded", CONFIG, whole)
            continue
        write(folder, {**CONFIG, "quantization_config": scheme}, tensors)
        with open(folder + ".crc", "w") as f:
            for k in sorted(whole):
                f.write(f"{k} {zlib.crc32(whole[k].bits.tobytes()):08x}\n")


main()
