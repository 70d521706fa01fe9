/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_type.h: storage of a tensor's rows in a file, in blocks with a fixed number of elements and bytes. The number
 * of a quantized type is the value of axis TYPE in a key of dequantize; it is this table's number, not ggml's. The
 * types up to IQ4_XS, and MXFP4, have their names from ggml. No file contains the others: safetensors weights with
 * separate scales are packed into them when they are read:
 *
 *     NF4         float absmax, then a number in bitsandbytes' code per element: code * absmax
 *     I4_32 ...   uint16_t scale, uint8_t zero, uint8_t kind, then a number n below 16 per element:
 *                 (n - zero) * scale; the scale is float16, or bfloat16 if kind is not 0
 *     F8_32 ...   float scale, then an E4M3 byte per element: e4m3 * scale
 *
 * Two 4-bit elements share a byte; in NF4 the first has the high bits, in I4 the low ones. The E4M3 bytes for NaN
 * (0x7f, 0xff) read as 480 or -480 here, so the packing code must refuse them.
 */
#ifndef NJ_TENSOR_TYPE_H
#define NJ_TENSOR_TYPE_H

#include <stdint.h>

/* X(name, elements per block, bytes per block) */
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
    X(F8_128, 128, 132)                                                                            \
    X(MXFP4, 32, 17)

#define NJ_TYPE_NUMBER(name, elements, bytes) NJ_TYPE_##name,
enum nj_tensor_type { NJ_TENSOR_TYPES(NJ_TYPE_NUMBER) NJ_TYPES };
#undef NJ_TYPE_NUMBER

/* Return the bytes of a row; 0 if it is not whole blocks, is too long, or has no such type. */
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
