/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_type.h: how a file holds the elements of a tensor's rows: in blocks of so many elements and bytes.
 * The quantised types are those of ggml, under their names there; a key has the number of one (axis TYPE of
 * dequantize).
 */
#ifndef NJ_TENSOR_TYPE_H
#define NJ_TENSOR_TYPE_H

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
    X(IQ4_XS, 256, 136)

#define NJ_TYPE_NUMBER(name, elements, bytes) NJ_TYPE_##name,
enum nj_tensor_type { NJ_TENSOR_TYPES(NJ_TYPE_NUMBER) NJ_TYPES };
#undef NJ_TYPE_NUMBER

#endif
