#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the blocks that tests/unit/test_dequantize.c holds dequantize against: make_blocks.py [OUT]

Needs gguf, of PyPI. OUT (default: tests/golden/blocks.bin) receives for each quantized type of base/tensor_type.h,
in the order there:

    BLOCKS blocks of random bits, in which each half (scale, or what is added or subtracted) is one of HALVES in turn;
    of the types that are not ggml's, each scale is one of HALVES, BFLOATS or FLOATS
    their elements in float32, as gguf.dequantize or the formula here has them
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
# Types that are not ggml's: elements and bytes of a block.
OURS = {"NF4": (64, 36), "I4_32": (32, 20), "I4_64": (64, 36), "I4_128": (128, 68), "F8_32": (32, 36),
        "F8_128": (128, 132)}
# The last type of tensor_type.h is ggml's, too; its scales are exponents, of which the least give subnormal numbers.
EXPONENTS = [127, 0, 1, 250, 100, 130]
# Ordinary numbers of either sign, negative zero, the least, a small and a large one.
BFLOATS = [0x3ca7, 0xbd91, 0x8000, 0x0001, 0x3300, 0x7200]
FLOATS = [0.0123456789, -3.1415927, -0.0, 2.0 ** -149, 2.0 ** -120, 2.0 ** 117]
# bitsandbytes' code: quantiles of the normal distribution.
NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                0.7229568362236023, 1.0], np.float32)


def blocks_of(name, rng):
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    blocks = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for i, at in enumerate(TYPES[name]):
        halves = np.roll(np.array(HALVES, "<u2"), i)
        blocks[:, at:at + 2] = halves.view(np.uint8).reshape(BLOCKS, 2)
    return blocks


def power_blocks(rng):
    blocks = rng.integers(0, 256, (BLOCKS, 17), dtype=np.uint8)
    blocks[:, 0] = EXPONENTS
    return blocks


def our_blocks(name, rng):
    blocks = rng.integers(0, 256, (BLOCKS, OURS[name][1]), dtype=np.uint8)
    if name.startswith("I4"):
        blocks[:, 3] = [0, 0, 1, 1, 255, 0]
        scales = [BFLOATS[i] if kind else HALVES[i] for i, kind in enumerate(blocks[:, 3])]
        blocks[:, :2] = np.array(scales, "<u2").view(np.uint8).reshape(BLOCKS, 2)
        blocks[:, 2] = [0, 8, 16, 7, 15, 1]
    else:
        blocks[:, :4] = np.array(FLOATS, "<f4").view(np.uint8).reshape(BLOCKS, 4)
    return blocks


def e4m3(q):
    """Sign, four bits of exponent, three of mantissa; NaN as the number that its bits would be."""
    exponent, digits = q.astype(int) >> 3 & 15, q.astype(int) & 7
    size = np.where(exponent > 0, np.ldexp(8.0 + digits, exponent - 10), np.ldexp(digits.astype(float), -9))
    return np.copysign(size, np.where(q & 0x80, -1.0, 1.0))


def our_values(name, blocks):
    """Products in float64, which holds them exactly, rounded to float32."""
    low, high = blocks[:, 4:] & 15, blocks[:, 4:] >> 4
    single = blocks[:, :4].copy().view("<f4").astype(float)
    if name == "NF4":
        numbers = np.stack([high, low], axis=2).reshape(BLOCKS, -1)
        return (NF4[numbers].astype(float) * single).astype(np.float32)
    if name.startswith("F8"):
        return (e4m3(blocks[:, 4:]) * single).astype(np.float32)
    half = blocks[:, :2].copy().view("<f2").astype(float)
    bfloat = (blocks[:, :2].copy().view("<u2").astype("<u4") << 16).view("<f4").astype(float)
    numbers = np.stack([low, high], axis=2).reshape(BLOCKS, -1).astype(float)
    return ((numbers - blocks[:, 2:3]) * np.where(blocks[:, 3:4] > 0, bfloat, half)).astype(np.float32)


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "blocks.bin"
    rng = np.random.default_rng(20)
    with open(out, "wb") as f:
        for name in [*TYPES, *OURS, "MXFP4"]:
            if name not in OURS:
                blocks = blocks_of(name, rng) if name in TYPES else power_blocks(rng)
                values = gguf.dequantize(blocks, gguf.GGMLQuantizationType[name])
            else:
                blocks = our_blocks(name, rng)
                values = our_values(name, blocks)
            assert values.dtype == np.float32 and np.isfinite(values).all()
            f.write(blocks.tobytes())
            f.write(values.astype("<f4").tobytes())


main()
