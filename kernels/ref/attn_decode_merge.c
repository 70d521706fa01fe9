/* SPDX-License-Identifier: Apache-2.0 */
#include "decode_part.h"

void NJ_REF(attn_decode_merge)(int D, real *o, const real *part, const real *sink,
                               const int32_t *slot, const int32_t *pos, int32_t R, int32_t H,
                               int32_t C, int32_t window)
{
    const int64_t row = D + DECODE_STATS, chunk = (int64_t)R * H * row;
    (void)C;
#pragma omp parallel for
    for (int64_t i = 0; i < (int64_t)R * H; i++) {
        const int32_t last = pos[i / H], first = first_position(last, window) / DECODE_CHUNK;
        const real *p = part + i * row + first * chunk;
        const real *end = part + i * row + (last / DECODE_CHUNK + 1) * chunk;
        real total[DECODE_D_MAX + DECODE_STATS];
        if (slot[i / H] < 0)
            continue;
        memcpy(total, p, (size_t)row * sizeof *p);
        for (p += chunk; p < end; p += chunk)
            part_add(total, p, D);
        part_finish(o + i * D, total, D, sink ? sink + i % H : NULL);
    }
}
