// SPDX-License-Identifier: Apache-2.0
//
// dequantize.cuh: eight elements of a block, of each quantised type, as floats. A block is aligned to what
// divides its bytes, since blocks follow each other: ALIGN of its loads. kernels/ref/blocks.h has the same in C.
#ifndef NOJIT_DEQUANTIZE_CUH
#define NOJIT_DEQUANTIZE_CUH

#include "common.cuh"
#include "tensor_type.h"

// So many bytes from p on, which has that alignment, as words.
template <int BYTES, int ALIGN> struct bytes_at {
    uint32_t word[(BYTES + 3) / 4];

    __device__ __forceinline__ explicit bytes_at(const uint8_t *p)
    {
#pragma unroll
        for (int i = 0; i < (BYTES + 3) / 4; i++) {
            if (ALIGN >= 4)
                word[i] = *reinterpret_cast<const uint32_t *>(p + 4 * i);
            else
                word[i] = *reinterpret_cast<const uint16_t *>(p + 4 * i) |
                          uint32_t(*reinterpret_cast<const uint16_t *>(p + 4 * i + 2)) << 16;
        }
    }
    __device__ __forceinline__ uint32_t operator[](uint32_t i) const
    {
        return word[i / 4] >> 8 * (i % 4) & 255;
    }
};

// Byte i of an array at an even address.
static __device__ __forceinline__ uint32_t byte_at(const uint8_t *p, uint32_t i)
{
    return *reinterpret_cast<const uint16_t *>(p + (i & ~1u)) >> 8 * (i & 1) & 255;
}

// The lowest byte, with its sign.
static __device__ __forceinline__ int signed_byte(uint32_t x)
{
    return int(x << 24) >> 24;
}

static __device__ __forceinline__ float half_at(const uint8_t *p)
{
    return __half2float(*reinterpret_cast<const __half *>(p));
}

// What a type's block is: elements, bytes, and its elements from e on, a multiple of 8, as v.
template <int TYPE> struct block;

template <> struct block<NJ_TYPE_Q8_0> {
    static constexpr int ELEMENTS = 32, BYTES = 34;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const float d = half_at(b);
        const bytes_at<8, 2> q(b + 2 + e);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = d * float(signed_byte(q[i]));
    }
};

// Types of 32 elements in nibbles: the low ones of 16 bytes, then the high ones.
template <int FIRST, int ALIGN> struct nibbles {
    const bytes_at<8, ALIGN> q;
    const uint32_t shift;

    __device__ __forceinline__ nibbles(const uint8_t *b, uint32_t e)
        : q(b + FIRST + e % 16), shift(e / 16 * 4)
    {
    }
    __device__ __forceinline__ int operator[](int i) const { return q[i] >> shift & 15; }
};

template <> struct block<NJ_TYPE_Q4_0> {
    static constexpr int ELEMENTS = 32, BYTES = 18;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const float d = half_at(b);
        const nibbles<2, 2> q(b, e);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = d * float(int(q[i]) - 8);
    }
};

template <> struct block<NJ_TYPE_Q4_1> {
    static constexpr int ELEMENTS = 32, BYTES = 20;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const float d = half_at(b), m = half_at(b + 2);
        const nibbles<4, 4> q(b, e);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = d * float(q[i]) + m;
    }
};

template <> struct block<NJ_TYPE_Q5_0> {
    static constexpr int ELEMENTS = 32, BYTES = 22;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const float d = half_at(b);
        const uint32_t high = byte_at(b + 2, e / 8);
        const nibbles<6, 2> q(b, e);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = d * float(int(q[i] | (high >> i & 1) << 4) - 16);
    }
};

template <> struct block<NJ_TYPE_Q5_1> {
    static constexpr int ELEMENTS = 32, BYTES = 24;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const float d = half_at(b), m = half_at(b + 2);
        const uint32_t high = byte_at(b + 4, e / 8);
        const nibbles<8, 4> q(b, e);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = d * float(q[i] | (high >> i & 1) << 4) + m;
    }
};

template <> struct block<NJ_TYPE_Q2_K> {
    static constexpr int ELEMENTS = 256, BYTES = 84;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const uint32_t s = byte_at(b, e / 16), shift = 2 * (e % 128 / 32);
        const float d = half_at(b + 80) * float(s & 15), m = half_at(b + 82) * float(s >> 4);
        const bytes_at<8, 4> q(b + 16 + 32 * (e / 128) + e % 32);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = d * float(q[i] >> shift & 3) - m;
    }
};

template <> struct block<NJ_TYPE_Q3_K> {
    static constexpr int ELEMENTS = 256, BYTES = 110;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const uint32_t j = e / 16, shift = 2 * (e % 128 / 32);
        const uint32_t low = byte_at(b + 96, j % 8) >> j / 8 * 4 & 15;
        const uint32_t scale = (low | (byte_at(b + 104, j % 4) >> 2 * (j / 4) & 3) << 4);
        const float d = half_at(b + 108) * float(int(scale) - 32);
        const bytes_at<8, 2> high(b + e % 32), q(b + 32 + 32 * (e / 128) + e % 32);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = d * float(int(q[i] >> shift & 3) - (high[i] >> e / 32 & 1 ? 0 : 4));
    }
};

// The scale of a group of 32 and what is subtracted, six bits each.
struct group_q4_k {
    float d, m;

    __device__ __forceinline__ group_q4_k(const uint8_t *b, uint32_t g)
    {
        const uint8_t *s = b + 4;
        const uint32_t scale =
            g < 4 ? byte_at(s, g) & 63 : (byte_at(s, g + 4) & 15) | byte_at(s, g - 4) >> 6 << 4;
        const uint32_t least =
            g < 4 ? byte_at(s, g + 4) & 63 : byte_at(s, g + 4) >> 4 | byte_at(s, g) >> 6 << 4;
        d = half_at(b) * float(scale);
        m = half_at(b + 2) * float(least);
    }
};

template <> struct block<NJ_TYPE_Q4_K> {
    static constexpr int ELEMENTS = 256, BYTES = 144;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const uint32_t g = e / 32;
        const group_q4_k group(b, g);
        const bytes_at<8, 4> q(b + 16 + 32 * (g / 2) + e % 32);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = group.d * float(q[i] >> 4 * (g & 1) & 15) - group.m;
    }
};

template <> struct block<NJ_TYPE_Q5_K> {
    static constexpr int ELEMENTS = 256, BYTES = 176;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const uint32_t which = e / 32;
        const group_q4_k group(b, which);
        const bytes_at<8, 4> high(b + 16 + e % 32), q(b + 48 + 32 * (which / 2) + e % 32);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const uint32_t bit = (high[i] >> which & 1) << 4;
            v[i] = group.d * float((q[i] >> 4 * (which & 1) & 15) | bit) - group.m;
        }
    }
};

template <> struct block<NJ_TYPE_Q6_K> {
    static constexpr int ELEMENTS = 256, BYTES = 210;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const uint32_t half = e / 128, r = e % 128 / 32, l = e % 32;
        const float d = half_at(b + 208) * float(signed_byte(byte_at(b + 192, e / 16)));
        const bytes_at<8, 2> low(b + 64 * half + 32 * (r & 1) + l), high(b + 128 + 32 * half + l);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const uint32_t q = (low[i] >> 4 * (r >> 1) & 15) | (high[i] >> 2 * r & 3) << 4;
            v[i] = d * float(int(q) - 32);
        }
    }
};

// The 16 values of the IQ4 types, of which n is the number.
static __device__ __forceinline__ float iq4_value(uint32_t n)
{
    // -127 -104 -83 -65, -49 -35 -22 -10, 1 13 25 38, 53 69 89 113: a byte each.
    const uint32_t low = __byte_perm(0xbfad9881u, 0xf6eaddcfu, n & 7);
    const uint32_t high = __byte_perm(0x26190d01u, 0x71594535u, n & 7);
    return float(signed_byte(n < 8 ? low : high));
}

template <> struct block<NJ_TYPE_IQ4_NL> {
    static constexpr int ELEMENTS = 32, BYTES = 18;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const float d = half_at(b);
        const nibbles<2, 2> q(b, e);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = d * iq4_value(q[i]);
    }
};

template <> struct block<NJ_TYPE_IQ4_XS> {
    static constexpr int ELEMENTS = 256, BYTES = 136;
    static __device__ __forceinline__ void eight(float (&v)[8], const uint8_t *b, uint32_t e)
    {
        const uint32_t which = e / 32, high = *reinterpret_cast<const uint16_t *>(b + 2);
        const uint32_t low = byte_at(b + 4, which / 2) >> 4 * (which & 1) & 15;
        const float d = half_at(b) * float(int(low | (high >> 2 * which & 3) << 4) - 32);
        const nibbles<8, 4> q(b + 16 * which, e % 32);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = d * iq4_value(q[i]);
    }
};

#endif
