#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the blocks that tests/unit/test_dequantize.c holds dequantize against: make_blocks.py [OUT]

Needs gguf, of PyPI. OUT (default: tests/golden/blocks.bin) receives for each quantised type of kernels/tensor_type.h,
in the order there:

    BLOCKS blocks of random bits, in which each half (scale, or what is added or subtracted) is one of HALVES in turn
    their elements in float32, as gguf.dequantize has them
"""
import pathlib
import sys

import gguf
import numpy as np

BLOCKS = 6
# Types, and where the halves of a block lie.
TYPES = {
    "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0],
}
# An ordinary number, the largest, the least of either kind, negative zero, and one below zero.
HALVES = [0x211d, 0x7bff, 0x0001, 0x83ff, 0x8000, 0xa7c5]


def blocks_of(name, rng):
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    blocks = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for i, at in enumerate(TYPES[name]):
        halves = np.roll(np.array(HALVES, "<u2"), i)
        blocks[:, at:at + 2] = halves.view(np.uint8).reshape(BLOCKS, 2)
    return blocks


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "blocks.bin"
    rng = np.random.default_rng(20)
    with open(out, "wb") as f:
        for name in TYPES:
            blocks = blocks_of(name, rng)
            values = gguf.dequantize(blocks, gguf.GGMLQuantizationType[name])
            assert values.dtype == np.float32 and np.isfinite(values).all()
            f.write(blocks.tobytes())
            f.write(values.astype("<f4").tobytes())


main()
