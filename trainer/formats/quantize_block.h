/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize_block.h: one block of 256 finite values, for quantize.c. /
 */
#ifndef NOJIT_TRAINER_QUANTIZE_BLOCK_H
#define NOJIT_TRAINER_QUANTIZE_BLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "formats/tensors.h"

#include "base/float16.h"

/* Store x as float16; return false if that is infinite. */
static inline bool put_half(float x, unsigned char *dst)
{
    const uint16_t half = f16_from_f32(x);
    memcpy(dst, &half, sizeof half);
    return (half & 0x7c00u) != 0x7c00u;
}

/* Quantize one block; return false if a scale is infinite in float16. */
bool quantize_q4_k(const float *x, unsigned char *block);
bool quantize_q5_k(const float *x, unsigned char *block);
bool quantize_q6_k(const float *x, unsigned char *block);

#endif
