/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

/* Return the exponent of a scale as a byte, with a bias of 127; 255 for infinity and NaN. */
static uint32_t exponent_of(real x)
{
    int exponent;
    frexp(x, &exponent);
    return !isfinite(x) ? 255 : exponent < -125 ? 0 : (uint32_t)(exponent + 126);
}

void NJ_REF(e4m3_blocks)(int32_t *words, const real *scale, int32_t R, int32_t C)
{
    const int32_t tiles = (C + 127) / 128;
    for (int32_t b = 0; b < (R + 127) / 128; b++)
        for (int32_t t = 0; t < tiles; t++)
            for (int32_t i = 0; i < 128; i++) {
                const int32_t r = 128 * b + 32 * (i % 4) + i / 4;
                const uint32_t byte = r < R ? exponent_of(scale[r]) : 0;
                words[((int64_t)b * tiles + t) * 128 + i] = (int32_t)(byte * 0x01010101u);
            }
}
