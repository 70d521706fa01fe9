#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/quantized.txt: what ggml makes of rows of many kinds, which tests/unit/test_quantize.c makes again.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install numpy xllamacpp==2026.10.11549
    /tmp/v/bin/python tests/golden/make_quantized.py > tests/golden/quantized.txt
The file is kept in the tree; neither build nor tests need this. `make_quantized.py SEED ROWS` writes another such table
(tests/cli/quantize_ggml.sh).

A line: type, kind of row, CRC-32 of the blocks of all rows, the first block in hexadecimal or -. The first line: seed, rows.
"""
import ctypes
import pathlib
import sys
import zlib

import numpy as np
import xllamacpp

COLUMNS = 1024
TYPES = {  # ggml's number, elements and bytes of a block
    "Q8_0": (8, 32, 34), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24),
    "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210),
}  # fmt: skip
VERBATIM = ("normal", "sparse")


def mixed(n):
    """SplitMix64's output function."""
    z = (n + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def kinds(seed, count):
    """Each kind of row by operations that IEEE rounds in one way."""
    f = np.float32
    i = np.arange(count, dtype=np.uint64)
    r = mixed(i + np.uint64(seed << 32))
    u = mixed(r)
    bell = sum(((r >> np.uint64(16 * k)) & np.uint64(0xFFFF)).astype(np.int64) for k in range(4)) - 131070
    bell = bell.astype(f)
    normal = bell * f(1e-6)
    zero = np.where(u & np.uint64(1), f(-0.0), f(0))
    block = i // np.uint64(256)
    spike = mixed(block) % np.uint64(256) == i % np.uint64(256)
    small = np.ldexp(f(1), -(mixed(i // np.uint64(16)) % np.uint64(40)).astype(np.int32)).astype(f)
    return {
        "normal": normal,
        "heavy": bell / (1 + (u & np.uint64(0xFFFF)).astype(f)),
        "constant": normal[(i - i % np.uint64(256)).astype(np.int64)],
        "zero": zero,
        "spike": np.where(spike, normal, f(0)),
        "tiny": bell * f(1e-35),
        "scale_zero": bell * f(1e-13),
        "denormal": bell * f(2.0**-149),
        "denormal_scale": bell * f(2.0**-143),
        "large": bell * f(0.25),
        "negative": -np.abs(normal),
        "positive": np.abs(normal),
        "offset": f(100) + normal,
        "near": f(-1) + bell * f(1e-12),
        "ties": ((u % np.uint64(509)).astype(f) - f(254)) * f(0.5),
        "sparse": np.where(u % np.uint64(20) == 0, normal, zero),
        "scales": normal * small,
    }


def main():
    seed, rows = (int(a) for a in sys.argv[1:3]) if len(sys.argv) > 1 else (1, 16)
    ggml = ctypes.CDLL(str(next(pathlib.Path(xllamacpp.__path__[0]).glob("*.so"))))
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int] + [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    print(seed, rows)
    for kind, x in kinds(seed, rows * COLUMNS).items():
        assert x.dtype == np.float32 and np.isfinite(x).all(), kind
        for name, (number, elements, size) in TYPES.items():
            blocks = np.zeros(rows * COLUMNS // elements * size, np.uint8)
            written = ggml.ggml_quantize_chunk(number, x.ctypes.data, blocks.ctypes.data, 0, rows, COLUMNS, None)
            assert written == blocks.size
            first = blocks[:size].tobytes().hex() if kind in VERBATIM else "-"
            print(name, kind, f"{zlib.crc32(blocks.tobytes()):08x}", first)


main()
