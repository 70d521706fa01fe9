/* SPDX-License-Identifier: Apache-2.0 */
#include "decode.h"
#include "ref.h"

void NJ_REF(attn_decode_merge)(int D, real *o, const real *part, const int32_t *slot,
                               const int32_t *pos, int32_t R, int32_t H, int32_t C)
{
    const int64_t row = D + DECODE_STATS, chunk = (int64_t)R * H * row;
    (void)C;
#pragma omp parallel for
    for (int64_t i = 0; i < (int64_t)R * H; i++) {
        const real *first = part + i * row, *end = first + (pos[i / H] / DECODE_CHUNK + 1) * chunk;
        real *out = o + i * D, top = first[D + DECODE_TOP], sum = 0;
        if (slot[i / H] < 0)
            continue;
        for (const real *p = first; p < end; p += chunk)
            if (!(p[D + DECODE_TOP] <= top)) /* takes a NaN, too */
                top = p[D + DECODE_TOP];
        for (int d = 0; d < D; d++)
            out[d] = 0;
        for (const real *p = first; p < end; p += chunk) {
            const real factor = exp2(p[D + DECODE_TOP] - top);
            sum += factor * p[D + DECODE_SUM];
            for (int d = 0; d < D; d++)
                out[d] += factor * p[d];
        }
        for (int d = 0; d < D; d++)
            out[d] /= sum;
    }
}
