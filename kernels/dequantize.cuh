// SPDX-License-Identifier: Apache-2.0
//
// dequantize.cuh: eight elements of a block, for each quantized type. Blocks follow each other without padding, so a
// block is only aligned to the powers of two that divide its size. kernels/ref/blocks.h has the same in C.
#ifndef NOJIT_DEQUANTIZE_CUH
#define NOJIT_DEQUANTIZE_CUH

#include "base/tensor_type.h"
#include "common.cuh"

// Eight 8-bit numbers, four per word.
struct bytes8 {
    uint32_t word[2];

    // Return (byte >> from) & mask for each byte.
    __device__ __forceinline__ bytes8 bits(int from, uint32_t mask) const
    {
        return {word[0] >> from & mask * 0x01010101u, word[1] >> from & mask * 0x01010101u};
    }
    // Return byte | other << up for each byte.
    __device__ __forceinline__ bytes8 with(const bytes8 &other, int up) const
    {
        return {word[0] | other.word[0] << up, word[1] | other.word[1] << up};
    }
};

// Eight quantized elements: their values are scale times the value of each number, plus offset. In ggml's types and I4
// the product is exact in float32, so fma rounds once; in NF4 and F8 the product is rounded. An offset of -0 changes
// nothing.
struct eight {
    bytes8 q;
    float scale, offset = -0.0f;
    uint32_t zero = 0; // I4 only: the number that stands for 0
};

// Return 2^23 + q for a byte q of a word. The low bits of a float in [2^23, 2^24) are an integer: 0x4b000000 | q is
// 2^23 + q.
static __device__ __forceinline__ float plus_2_23(uint32_t word, int byte)
{
    return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440 | byte));
}

// Decoding of ggml's types: scale * (q - BIAS) + offset.
template <int BIAS> struct whole_numbers {
    static __device__ __forceinline__ void begin() {}
    static __device__ __forceinline__ void values(float (&v)[8], const eight &x)
    {
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] =
                fmaf(x.scale, plus_2_23(x.q.word[i / 4], i % 4) - float(0x800000 + BIAS), x.offset);
    }
};

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

// The first byte of a block, and the 4-byte word that contains it. If the size of a block is not a multiple of 4, every
// other block (odd) begins in the middle of a word.
struct place {
    const uint8_t *byte, *word;
    int odd;

    __device__ __forceinline__ place operator+(int bytes) const
    {
        return {byte + bytes, word + bytes, odd};
    }
    // Return eight bytes of such a block, from the three words around them. All three words lie within blocks, so they
    // may be read even where two would do.
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

// Return elements e to e + 7 of 32. The low nibbles of 16 bytes are the first half of the elements, the high nibbles
// the second.
static __device__ __forceinline__ bytes8 nibbles(const bytes8 &q, int e)
{
    return q.bits(e / 16 * 4, 15);
}

// Expand eight bits to a byte each: bit i moves to bit 8 i.
static __device__ __forceinline__ bytes8 spread(uint32_t bits)
{
    return {(bits & 15) * 0x204081u & 0x01010101u, (bits >> 4 & 15) * 0x204081u & 0x01010101u};
}

// Decoder of eight elements of a block, from element e on, a multiple of 8: read() loads them, values() converts them
// to floats. All threads call begin() before values().
template <int TYPE> struct block;

template <> struct block<NJ_TYPE_Q8_0> : whole_numbers<128> {
    static constexpr int ELEMENTS = 32, BYTES = 34;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const bytes8 q = at.load8(2 + e);
        return {{q.word[0] ^ 0x80808080u, q.word[1] ^ 0x80808080u}, load_half(at.byte)};
    }
};

template <> struct block<NJ_TYPE_Q4_0> : whole_numbers<8> {
    static constexpr int ELEMENTS = 32, BYTES = 18;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        return {nibbles(at.load8(2 + e % 16), e), load_half(at.byte)};
    }
};

template <> struct block<NJ_TYPE_Q4_1> : whole_numbers<0> {
    static constexpr int ELEMENTS = 32, BYTES = 20;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *b = at.byte;
        const float2 d = halves(load<uint32_t>(b));
        return {nibbles(load8<4>(b + 4 + e % 16), e), d.x, d.y};
    }
};

template <> struct block<NJ_TYPE_Q5_0> : whole_numbers<16> {
    static constexpr int ELEMENTS = 32, BYTES = 22;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const bytes8 high = spread(at.byte[2 + e / 8]);
        return {nibbles(at.load8(6 + e % 16), e).with(high, 4), load_half(at.byte)};
    }
};

template <> struct block<NJ_TYPE_Q5_1> : whole_numbers<0> {
    static constexpr int ELEMENTS = 32, BYTES = 24;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *b = at.byte;
        const float2 d = halves(load<uint32_t>(b));
        return {nibbles(load8<8>(b + 8 + e % 16), e).with(spread(b[4 + e / 8]), 4), d.x, d.y};
    }
};

template <> struct block<NJ_TYPE_Q2_K> : whole_numbers<0> {
    static constexpr int ELEMENTS = 256, BYTES = 84;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *b = at.byte;
        const int s = b[e / 16];
        const float2 d = halves(load<uint32_t>(b + 80));
        const bytes8 q = load8<4>(b + 16 + 32 * (e / 128) + e % 32);
        return {q.bits(2 * (e / 32 % 4), 3), d.x * float(s & 15), -(d.y * float(s >> 4))};
    }
};

template <> struct block<NJ_TYPE_Q3_K> : whole_numbers<4> {
    static constexpr int ELEMENTS = 256, BYTES = 110;
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

// Return eight elements of Q4_K or Q5_K. Their blocks begin with two float16 numbers and, in twelve bytes, a 6-bit
// scale and a 6-bit minimum for each group of 32 elements.
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

template <> struct block<NJ_TYPE_Q4_K> : whole_numbers<0> {
    static constexpr int ELEMENTS = 256, BYTES = 144;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *b = at.byte;
        const bytes8 q = load8<8>(b + 16 + 32 * (e / 64) + e % 32);
        return grouped(b, e / 32, q.bits(4 * (e / 32 % 2), 15));
    }
};

template <> struct block<NJ_TYPE_Q5_K> : whole_numbers<0> {
    static constexpr int ELEMENTS = 256, BYTES = 176;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *b = at.byte;
        const bytes8 q = load8<8>(b + 48 + 32 * (e / 64) + e % 32);
        const bytes8 high = load8<8>(b + 16 + e % 32).bits(e / 32, 1);
        return grouped(b, e / 32, q.bits(4 * (e / 32 % 2), 15).with(high, 4));
    }
};

template <> struct block<NJ_TYPE_Q6_K> : whole_numbers<32> {
    static constexpr int ELEMENTS = 256, BYTES = 210;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const int half = e / 128, r = e / 32 % 4, l = e % 32;
        const bytes8 low = at.load8(64 * half + 32 * (r % 2) + l).bits(4 * (r / 2), 15);
        const bytes8 high = at.load8(128 + 32 * half + l).bits(2 * r, 3);
        return {low.with(high, 4), load_half(at.byte + 208) * float(int8_t(at.byte[192 + e / 16]))};
    }
};

// Return the entries of a table of sixteen bytes for four numbers below 16; A to D are four of its bytes each.
template <uint32_t A, uint32_t B, uint32_t C, uint32_t D>
static __device__ __forceinline__ uint32_t of_table(uint32_t n)
{
    const uint32_t packed = __byte_perm(n | n >> 4, 0, 0x4420), at = packed & 0x7777;
    const uint32_t low = __byte_perm(A, B, at), high = __byte_perm(C, D, at);
    return __byte_perm(low, high, 0x3210 | (packed & 0x8888) >> 1);
}

// Return the entries of the IQ4 table, plus 128.
static __device__ __forceinline__ uint32_t iq4_values(uint32_t n)
{
    return of_table<0x3f2d1801u, 0x766a5d4fu, 0xa6998d81u, 0xf1d9c5b5u>(n);
}

static __device__ __forceinline__ bytes8 iq4_values(const bytes8 &n)
{
    return {iq4_values(n.word[0]), iq4_values(n.word[1])};
}

template <> struct block<NJ_TYPE_IQ4_NL> : whole_numbers<128> {
    static constexpr int ELEMENTS = 32, BYTES = 18;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        return {iq4_values(nibbles(at.load8(2 + e % 16), e)), load_half(at.byte)};
    }
};

template <> struct block<NJ_TYPE_IQ4_XS> : whole_numbers<128> {
    static constexpr int ELEMENTS = 256, BYTES = 136;
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

// Split a word into its 4-bit numbers when the first element of a byte is in the low bits: elements 0, 2, 4, 6 and
// elements 1, 3, 5, 7.
static __device__ __forceinline__ bytes8 low_first(uint32_t w)
{
    return {w & 0x0f0f0f0fu, w >> 4 & 0x0f0f0f0fu};
}

template <int SIZE> struct block_i4 {
    static constexpr int ELEMENTS = SIZE, BYTES = 4 + SIZE / 2;
    static __device__ __forceinline__ void begin() {}
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint32_t head = load<uint32_t>(at.byte), kind = head >> 24;
        const float scale = kind ? __uint_as_float(head << 16) : halves(head).x;
        return {low_first(load<uint32_t>(at.byte + 4 + e / 2)), scale, -0.0f, head >> 16 & 255};
    }
    static __device__ __forceinline__ void values(float (&v)[8], const eight &x)
    {
        const float zero = plus_2_23(x.zero, 0);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = fmaf(x.scale, plus_2_23(x.q.word[i % 2], i / 2) - zero, x.offset);
    }
};

template <> struct block<NJ_TYPE_I4_32> : block_i4<32> {
};
template <> struct block<NJ_TYPE_I4_64> : block_i4<64> {
};
template <> struct block<NJ_TYPE_I4_128> : block_i4<128> {
};

// Return the NF4 code in shared memory. Its 16 numbers are in different banks, so reads by different lanes do not
// conflict.
static __device__ __forceinline__ float *nf4_code()
{
    __shared__ float code[16];
    return code;
}

template <> struct block<NJ_TYPE_NF4> {
    static constexpr int ELEMENTS = 64, BYTES = 36;
    static __device__ __forceinline__ void begin()
    {
        static constexpr float code[16] = {-1.0f,        -0.69619280f, -0.52507305f,  -0.39491749f,
                                           -0.28444138f, -0.18477343f, -0.091050036f, 0.0f,
                                           0.079580300f, 0.16093020f,  0.24611230f,   0.33791524f,
                                           0.44070983f,  0.56261700f,  0.72295684f,   1.0f};
        if (threadIdx.x < 16) {
            float mine = code[0];
#pragma unroll
            for (int i = 1; i < 16; i++)
                mine = threadIdx.x == i ? code[i] : mine;
            nf4_code()[threadIdx.x] = mine;
        }
        __syncthreads();
    }
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        return {{load<uint32_t>(at.byte + 4 + e / 2)}, load<float>(at.byte)};
    }
    static __device__ __forceinline__ void values(float (&v)[8], const eight &x)
    {
        const float *code = nf4_code();
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = fmaf(code[x.q.word[0] >> 4 * (i ^ 1) & 15], x.scale, x.offset);
    }
};

template <int SIZE> struct block_f8 {
    static constexpr int ELEMENTS = SIZE, BYTES = 4 + SIZE;
    static __device__ __forceinline__ void begin() {}
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        return {load8<4>(at.byte + 4 + e), load<float>(at.byte)};
    }
    // The bits of an E4M3 number, placed among those of a float, mean 2^-120 times its value; this includes subnormal
    // numbers.
    static __device__ __forceinline__ void values(float (&v)[8], const eight &x)
    {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int bits = x.q.word[i / 4] << (24 - i % 4 * 8);
            v[i] = fmaf(__int_as_float(bits >> 4 & 0x87f00000) * 0x1p120f, x.scale, x.offset);
        }
    }
};

template <> struct block<NJ_TYPE_F8_32> : block_f8<32> {
};
template <> struct block<NJ_TYPE_F8_128> : block_f8<128> {
};

// MXFP4: a byte e, which stands for 2^(e - 128), and numbers for twice the values of E2M1. Blocks begin at any byte.
template <> struct block<NJ_TYPE_MXFP4> : whole_numbers<12> {
    static constexpr int ELEMENTS = 32, BYTES = 17;
    static __device__ __forceinline__ eight read(const place &at, int e)
    {
        const uint8_t *p = at.byte + 1 + e % 16;
        const int beyond = after_word(p), shift = 8 * beyond, start = after_word(at.byte);
        p -= beyond;
        const uint32_t exponent = load<uint32_t>(at.byte - start) >> 8 * start & 255;
        const uint32_t a = load<uint32_t>(p), b = load<uint32_t>(p + 4);
        const uint32_t c = beyond ? load<uint32_t>(p + 8) : 0; // may lie behind the last block
        const bytes8 n = nibbles({__funnelshift_rc(a, b, shift), __funnelshift_rc(b, c, shift)}, e);
        return {{values_plus_12(n.word[0]), values_plus_12(n.word[1])},
                __uint_as_float(exponent < 2 ? 0x00200000u << exponent : exponent - 1 << 23)};
    }
    // Return how many bytes an address lies behind a multiple of 4.
    static __device__ __forceinline__ int after_word(const uint8_t *p)
    {
        return int(reinterpret_cast<uintptr_t>(p) & 3);
    }
    static __device__ __forceinline__ uint32_t values_plus_12(uint32_t n)
    {
        return of_table<0x0f0e0d0cu, 0x18141210u, 0x090a0b0cu, 0x00040608u>(n);
    }
};

// Return where block n begins.
template <int TYPE> static __device__ __forceinline__ place place_of(const int *data, int64_t n)
{
    const int odd = block<TYPE>::BYTES % 4 ? int(n) & 1 : 0;
    const uint8_t *b = reinterpret_cast<const uint8_t *>(data) + n * block<TYPE>::BYTES;
    return {b, b - 2 * odd, odd};
}

#endif
