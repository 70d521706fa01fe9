// SPDX-License-Identifier: Apache-2.0
//
// dequantize.cuh: eight elements of a block, of each quantised type. Blocks follow each other without
// padding, so a block is aligned to whatever divides its bytes. kernels/ref/blocks.h has the same in C.
#ifndef NOJIT_DEQUANTIZE_CUH
#define NOJIT_DEQUANTIZE_CUH

#include "common.cuh"
#include "tensor_type.h"

// Eight numbers of 8 bits, four to a word.
struct bytes8 {
    uint32_t word[2];

    // (byte >> from) & mask, of each.
    __device__ __forceinline__ bytes8 bits(int from, uint32_t mask) const
    {
        return {word[0] >> from & mask * 0x01010101u, word[1] >> from & mask * 0x01010101u};
    }
    // byte | other << up, of each.
    __device__ __forceinline__ bytes8 with(const bytes8 &other, int up) const
    {
        return {word[0] | other.word[0] << up, word[1] | other.word[1] << up};
    }
};

// Eight elements: scale * (q - BIAS) + offset, BIAS that of the type. The product is exact in float32, so
// fma rounds once. Adding an offset of -0 changes nothing.
struct eight {
    bytes8 q;
    float scale, offset = -0.0f;
};

// A float from 2^23 on has a whole number for its last bits: 0x4b000000 | q is 2^23 + q.
template <int BIAS> static __device__ __forceinline__ void values(float (&v)[8], const eight &x)
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const uint32_t bits = __byte_perm(x.q.word[i / 4], 0x4b000000u, 0x7440 | i % 4);
        v[i] = fmaf(x.scale, __uint_as_float(bits) - float(0x800000 + BIAS), x.offset);
    }
}

template <typename W> static __device__ __forceinline__ W load(const uint8_t *p)
{
    return *reinterpret_cast<const W *>(p);
}

template <int ALIGN> static __device__ __forceinline__ bytes8 load8(const uint8_t *p)
{
    if (ALIGN == 8) {
        const uint2 w = load<uint2>(p);
        return {w.x, w.y};
    }
    return {load<uint32_t>(p), load<uint32_t>(p + 4)};
}

// Where a block begins, and the 4-byte word that this lies in. Where a block's bytes are no multiple of 4,
// every other block (odd) begins in the middle of a word.
struct place {
    const uint8_t *byte, *word;
    int odd;

    __device__ __forceinline__ place operator+(int bytes) const
    {
        return {byte + bytes, word + bytes, odd};
    }
    // Eight bytes of such a block, from the three words around them. Each of the three holds bytes of blocks,
    // even where two would do.
    __device__ __forceinline__ bytes8 load8(int first) const
    {
        const uint8_t *p = word + first / 4 * 4;
        const int shift = 16 * (first / 2 % 2 + odd);
        const uint32_t a = load<uint32_t>(p), b = load<uint32_t>(p + 4), c = load<uint32_t>(p + 8);
        return {__funnelshift_rc(a, b, shift), __funnelshift_rc(b, c, shift)};
    }
};

static __device__ __forceinline__ float load_half(const uint8_t *p)
{
    return __half2float(load<__half>(p));
}

static __device__ __forceinline__ float2 halves(uint32_t word)
{
    return __half22float2(*reinterpret_cast<const __half2 *>(&word));
}

// Elements e to e + 7 of 32, of which the low nibbles of 16 bytes are the first half, the high ones the second.
static __device__ __forceinline__ bytes8 nibbles(const bytes8 &q, int e)
{
    return q.bits(e / 16 * 4, 15);
}

// Eight bits, as a byte each: i goes to 8 i.
static __device__ __forceinline__ bytes8 spread(uint32_t bits)
{
    return {(bits & 15) * 0x204081u & 0x01010101u, (bits >> 4 & 15) * 0x204081u & 0x01010101u};
}

// Eight elements of a block from e on, a multiple of 8.
template <int TYPE> struct block;

template <> struct block<NJ_TYPE_Q8_0> {
    static constexpr int ELEMENTS = 32, BYTES = 34, BIAS = 128;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const bytes8 q = at.load8(2 + e);
        return {{q.word[0] ^ 0x80808080u, q.word[1] ^ 0x80808080u}, load_half(at.byte)};
    }
};

template <> struct block<NJ_TYPE_Q4_0> {
    static constexpr int ELEMENTS = 32, BYTES = 18, BIAS = 8;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        return {nibbles(at.load8(2 + e % 16), e), load_half(at.byte)};
    }
};

template <> struct block<NJ_TYPE_Q4_1> {
    static constexpr int ELEMENTS = 32, BYTES = 20, BIAS = 0;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *b = at.byte;
        const float2 d = halves(load<uint32_t>(b));
        return {nibbles(load8<4>(b + 4 + e % 16), e), d.x, d.y};
    }
};

template <> struct block<NJ_TYPE_Q5_0> {
    static constexpr int ELEMENTS = 32, BYTES = 22, BIAS = 16;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const bytes8 high = spread(at.byte[2 + e / 8]);
        return {nibbles(at.load8(6 + e % 16), e).with(high, 4), load_half(at.byte)};
    }
};

template <> struct block<NJ_TYPE_Q5_1> {
    static constexpr int ELEMENTS = 32, BYTES = 24, BIAS = 0;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *b = at.byte;
        const float2 d = halves(load<uint32_t>(b));
        return {nibbles(load8<8>(b + 8 + e % 16), e).with(spread(b[4 + e / 8]), 4), d.x, d.y};
    }
};

template <> struct block<NJ_TYPE_Q2_K> {
    static constexpr int ELEMENTS = 256, BYTES = 84, BIAS = 0;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *b = at.byte;
        const int s = b[e / 16];
        const float2 d = halves(load<uint32_t>(b + 80));
        const bytes8 q = load8<4>(b + 16 + 32 * (e / 128) + e % 32);
        return {q.bits(2 * (e / 32 % 4), 3), d.x * float(s & 15), -(d.y * float(s >> 4))};
    }
};

template <> struct block<NJ_TYPE_Q3_K> {
    static constexpr int ELEMENTS = 256, BYTES = 110, BIAS = 4;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const int j = e / 16;
        const int low = at.byte[96 + j % 8] >> 4 * (j / 8) & 15;
        const int high = at.byte[104 + j % 4] >> 2 * (j / 4) & 3;
        const bytes8 q = at.load8(32 + 32 * (e / 128) + e % 32).bits(2 * (e / 32 % 4), 3);
        return {q.with(at.load8(e % 32).bits(e / 32, 1), 2),
                load_half(at.byte + 108) * float((low | high << 4) - 32)};
    }
};

// Q4_K and Q5_K begin with two halves and, in twelve bytes, a scale and a minimum of six bits for each
// group of 32 elements.
static __device__ __forceinline__ eight grouped(const uint8_t *b, int g, const bytes8 &q)
{
    const uint4 head = load<uint4>(b);
    const int at = g % 4 * 8;
    const uint32_t s = head.y >> at, m = head.z >> at, rest = head.w >> at;
    const int scale = g < 4 ? s & 63 : (rest & 15) | (s >> 2 & 48);
    const int minimum = g < 4 ? m & 63 : (rest >> 4 & 15) | (m >> 2 & 48);
    const float2 d = halves(head.x);
    return {q, d.x * float(scale), -(d.y * float(minimum))};
}

template <> struct block<NJ_TYPE_Q4_K> {
    static constexpr int ELEMENTS = 256, BYTES = 144, BIAS = 0;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *b = at.byte;
        const bytes8 q = load8<8>(b + 16 + 32 * (e / 64) + e % 32);
        return grouped(b, e / 32, q.bits(4 * (e / 32 % 2), 15));
    }
};

template <> struct block<NJ_TYPE_Q5_K> {
    static constexpr int ELEMENTS = 256, BYTES = 176, BIAS = 0;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *b = at.byte;
        const bytes8 q = load8<8>(b + 48 + 32 * (e / 64) + e % 32);
        const bytes8 high = load8<8>(b + 16 + e % 32).bits(e / 32, 1);
        return grouped(b, e / 32, q.bits(4 * (e / 32 % 2), 15).with(high, 4));
    }
};

template <> struct block<NJ_TYPE_Q6_K> {
    static constexpr int ELEMENTS = 256, BYTES = 210, BIAS = 32;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const int half = e / 128, r = e / 32 % 4, l = e % 32;
        const bytes8 low = at.load8(64 * half + 32 * (r % 2) + l).bits(4 * (r / 2), 15);
        const bytes8 high = at.load8(128 + 32 * half + l).bits(2 * r, 3);
        return {low.with(high, 4), load_half(at.byte + 208) * float(int8_t(at.byte[192 + e / 16]))};
    }
};

// The table of the IQ4 types, plus 128, at four numbers below 16.
static __device__ __forceinline__ uint32_t iq4_values(uint32_t n)
{
    const uint32_t packed = __byte_perm(n | n >> 4, 0, 0x4420), at = packed & 0x7777;
    const uint32_t low = __byte_perm(0x3f2d1801u, 0x766a5d4fu, at);
    const uint32_t high = __byte_perm(0xa6998d81u, 0xf1d9c5b5u, at);
    return __byte_perm(low, high, 0x3210 | (packed & 0x8888) >> 1);
}

static __device__ __forceinline__ bytes8 iq4_values(const bytes8 &n)
{
    return {iq4_values(n.word[0]), iq4_values(n.word[1])};
}

template <> struct block<NJ_TYPE_IQ4_NL> {
    static constexpr int ELEMENTS = 32, BYTES = 18, BIAS = 128;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        return {iq4_values(nibbles(at.load8(2 + e % 16), e)), load_half(at.byte)};
    }
};

template <> struct block<NJ_TYPE_IQ4_XS> {
    static constexpr int ELEMENTS = 256, BYTES = 136, BIAS = 128;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *b = at.byte;
        const int g = e / 32;
        const uint32_t head = load<uint32_t>(b);
        const int low = b[4 + g / 2] >> 4 * (g % 2) & 15, high = head >> (16 + 2 * g) & 3;
        return {iq4_values(nibbles(load8<8>(b + 8 + 16 * g + e % 32 % 16), e % 32)),
                halves(head).x * float((low | high << 4) - 32)};
    }
};

#endif
