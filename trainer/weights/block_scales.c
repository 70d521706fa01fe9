/* SPDX-License-Identifier: Apache-2.0
 *
 * block_scales.c: see block_scales.h.
 */
#include "weights/block_scales.h"

#include "formats/tensors.h"

/* Form of a scale: float16, float, given by byte 3 of an I4 block, or the exponent of a power of two. */
enum form { HALF, SINGLE, BY_KIND, POWER };

/* Offsets of the scales in a block; the second is -1 if it has one. */
static const struct scales {
    int first, second;
    enum form form;
} scales_of[NJ_TYPES] = {
    [NJ_TYPE_Q8_0] = {0, -1},
    [NJ_TYPE_Q4_0] = {0, -1},
    [NJ_TYPE_Q4_1] = {0, 2},
    [NJ_TYPE_Q5_0] = {0, -1},
    [NJ_TYPE_Q5_1] = {0, 2},
    [NJ_TYPE_Q2_K] = {80, 82},
    [NJ_TYPE_Q3_K] = {108, -1},
    [NJ_TYPE_Q4_K] = {0, 2},
    [NJ_TYPE_Q5_K] = {0, 2},
    [NJ_TYPE_Q6_K] = {208, -1},
    [NJ_TYPE_IQ4_NL] = {0, -1},
    [NJ_TYPE_IQ4_XS] = {0, -1},
    [NJ_TYPE_NF4] = {0, -1, SINGLE},
    [NJ_TYPE_I4_32] = {0, -1, BY_KIND},
    [NJ_TYPE_I4_64] = {0, -1, BY_KIND},
    [NJ_TYPE_I4_128] = {0, -1, BY_KIND},
    [NJ_TYPE_F8_32] = {0, -1, SINGLE},
    [NJ_TYPE_F8_128] = {0, -1, SINGLE},
    [NJ_TYPE_MXFP4] = {0, -1, POWER},
};

/* Return whether a scale is finite. The upper half of a float, which is a bfloat16, decides; the largest exponent
 * stands for NaN. */
static bool is_finite(enum form form, const unsigned char *scale)
{
    if (form == POWER)
        return *scale != 0xff;
    const unsigned char *upper = scale + (form == SINGLE ? 2 : 0);
    const bool half = form == HALF || (form == BY_KIND && scale[3] == 0);
    const unsigned char all = half ? 0x7c : 0x7f;
    return (upper[1] & all) != all || (!half && (upper[0] & 0x80) == 0);
}

bool block_scales_finite(enum nj_tensor_type type, const void *data, size_t bytes)
{
    const unsigned char *blocks = data;
    const struct scales at = scales_of[type];
    const size_t each = tensor_type_bytes(type, tensor_type_block(type));
    for (size_t b = 0; b < bytes; b += each)
        if (!is_finite(at.form, blocks + b + at.first) ||
            (at.second >= 0 && !is_finite(at.form, blocks + b + at.second)))
            return false;
    return true;
}
