#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/gguf: files of the PyPI package gguf, for tests/unit/test_gguf.c.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install numpy gguf==0.19.0 && /tmp/v/bin/python tests/golden/make_gguf.py [FOLDER]

written.gguf: what the test writes, byte for byte. types.gguf: a value of each type and an array of each. split-*: three tensors in
three parts. The files are kept in the tree; tests/cli/llama_cpp.sh runs this where the package is installed, and compares."""
import os
import sys

import gguf
import numpy as np

out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "gguf")
os.makedirs(out, exist_ok=True)
F32, Q8_0, Q4_K = (gguf.GGMLQuantizationType[t] for t in ("F32", "Q8_0", "Q4_K"))


def write(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def data(tensor, *shape):
    return ((np.arange(np.prod(shape)) * 31 + tensor * 7) % 256).astype(np.uint8).reshape(shape)


w = gguf.GGUFWriter(f"{out}/written.gguf", "llama")
w.add_uint32("u32", 4000000000)
w.add_float32("f32", 0.25)
w.add_bool("bool", True)
w.add_custom_alignment(32)
w.add_array("strings", ["a", "", "b\0c"])
w.add_array("ints", [-1, 0, 2147483647])
w.add_tensor("token_embd.weight", data(0, 3, 68), raw_dtype=Q8_0)
w.add_tensor("output_norm.weight", data(1, 20).view(np.float32), raw_dtype=F32)
w.add_tensor("blk.0.ffn_up.weight", data(2, 2, 288), raw_dtype=Q4_K)
write(w)

T = gguf.GGUFValueType
most = {T.UINT8: 255, T.INT8: -128, T.UINT16: 65535, T.INT16: -32768, T.UINT32: 4294967295, T.INT32: -2147483648,
        T.UINT64: 9223372036854775807, T.INT64: -9223372036854775808, T.FLOAT32: 1.5, T.FLOAT64: -1e300, T.BOOL: True, T.STRING: "caf\u00e9"}
w = gguf.GGUFWriter(f"{out}/types.gguf", "llama")
w.add_custom_alignment(64)
for kind, value in most.items():
    w.add_key_value(kind.name, value, kind)
    w.add_key_value(f"{kind.name}s", [value, value], T.ARRAY, sub_type=kind)
w.add_tensor("w", np.arange(6, dtype=np.float32).reshape(2, 3))
w.add_tensor("v", np.ones(1, np.float32))
write(w)

w = gguf.GGUFWriter(f"{out}/split.gguf", "llama", split_max_tensors=1)
for i, name in enumerate("cab"):
    w.add_tensor(name, np.full(2, i, np.float32))
write(w)
