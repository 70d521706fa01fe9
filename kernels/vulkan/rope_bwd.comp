// SPDX-License-Identifier: Apache-2.0
#include "rope.glsl"

// Block p has the rows p, p + P, ...; a thread has the same pairs of each, and their sums.
void nj_rope_bwd()
{
    const int width = (H + 2 * K) * D, half_d = D / 2, turned = (H + K) * half_d;
    const int pairs = given(dbias_part) ? width / 2 : turned;
    for (int j = thread(); j < pairs; j += NJ_THREADS) {
        const int i = j % half_d, lo = j / half_d * D + i, hi = lo + half_d;
        float sum_lo = 0.0, sum_hi = 0.0;
        for (int64_t n = block_x(); n < N; n += P) {
            nj_f32 row = from(dqkv, n * width);
            float a = row.v[lo], b = row.v[hi];
            if (j < turned) {
                float sin_a, cos_a;
                rope_turn(pos.v[int(n)], i, sin_a, cos_a);
                const float before = a;
                a = before * cos_a + b * sin_a;
                b = b * cos_a - before * sin_a;
                row.v[lo] = a;
                row.v[hi] = b;
            }
            sum_lo += a;
            sum_hi += b;
        }
        if (given(dbias_part)) {
            nj_f32 part = from(dbias_part, int64_t(block_x()) * width);
            part.v[lo] = sum_lo;
            part.v[hi] = sum_hi;
        }
    }
}
