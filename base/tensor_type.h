/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_type.h: how a file holds the elements of a tensor's rows: in blocks of so many elements and bytes.
 * A key has the number of a quantised type (axis TYPE of dequantize); the numbers are this table's, not ggml's.
 * Up to IQ4_XS the types are those of ggml, under their names there. The rest are what weights of safetensors
 * files with scales of their own are packed into when they are read; no file has them:
 *
 *     NF4         float absmax, then a number of bitsandbytes' code per element: code * absmax
 *     I4_32 ...   uint16_t scale, uint8_t zero, uint8_t kind, then a number n below 16 per element: (n - zero) *
 *                 scale; the scale is float16, or bfloat16 if kind is not 0
 *     F8_32 ...   float scale, then a byte of e4m3 per element: e4m3 * scale
 *
 * Two elements of four bits share a byte; in NF4 the first has the high bits, in I4 the low ones. A byte of e4m3
 * that means NaN elsewhere (0x7f, 0xff) reads as 480 or -480: who packs must refuse it.
 */
#ifndef NJ_TENSOR_TYPE_H
#define NJ_TENSOR_TYPE_H

#include <stdint.h>

/* X(name, elements of a block, its bytes) */
#define NJ_TENSOR_TYPES(X)                                                                         \
    X(F32, 1, 4)                                                                                   \
    X(BF16, 1, 2)                                                                                  \
    X(F16, 1, 2)                                                                                   \
    X(Q8_0, 32, 34)                                                                                \
    X(Q4_0, 32, 18)                                                                                \
    X(Q4_1, 32, 20)                                                                                \
    X(Q5_0, 32, 22)                                                                                \
    X(Q5_1, 32, 24)                                                                                \
    X(Q2_K, 256, 84)                                                                               \
    X(Q3_K, 256, 110)                                                                              \
    X(Q4_K, 256, 144)                                                                              \
    X(Q5_K, 256, 176)                                                                              \
    X(Q6_K, 256, 210)                                                                              \
    X(IQ4_NL, 32, 18)                                                                              \
    X(IQ4_XS, 256, 136)                                                                            \
    X(NF4, 64, 36)                                                                                 \
    X(I4_32, 32, 20)                                                                               \
    X(I4_64, 64, 36)                                                                               \
    X(I4_128, 128, 68)                                                                             \
    X(F8_32, 32, 36)                                                                               \
    X(F8_128, 128, 132)

#define NJ_TYPE_NUMBER(name, elements, bytes) NJ_TYPE_##name,
enum nj_tensor_type { NJ_TENSOR_TYPES(NJ_TYPE_NUMBER) NJ_TYPES };
#undef NJ_TYPE_NUMBER

/* Bytes of a row; 0 where it is not whole blocks, or too long, or there is no such type. */
static inline int64_t nj_row_bytes(int64_t type, int64_t columns)
{
#define NJ_TYPE_BLOCK(name, elements, bytes) {elements, bytes},
    static const struct {
        int64_t elements, bytes;
    } block[NJ_TYPES] = {NJ_TENSOR_TYPES(NJ_TYPE_BLOCK)};
#undef NJ_TYPE_BLOCK
    if (type < 0 || type >= NJ_TYPES || columns > INT64_MAX / 4 ||
        columns % block[type].elements != 0)
        return 0;
    return columns / block[type].elements * block[type].bytes;
}

#endif
