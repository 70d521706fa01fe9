// SPDX-License-Identifier: Apache-2.0
#include "rope.glsl"

// Rotate the rows p, p + P, ... back in block p; a thread has the same pairs of each, and their sums.
void nj_rope_bwd()
{
    const int width = (H + 2 * K) * D, half_d = D / 2, turned = (H + K) * half_d;
    const int pairs = given(dbias_part) ? width / 2 : turned;
    for (int j = thread(); j < pairs; j += NJ_THREADS) {
        const int i = j % half_d, lo = j / half_d * D + i, hi = lo + half_d;
        float sum_lo = 0.0, sum_hi = 0.0;
        for (int64_t n = block_x(); n < N; n += P) {
            nj_t row = from_t(dqkv, n * width);
            float a = get(row, lo), b = get(row, hi);
            if (j < turned) {
                float sin_a, cos_a;
                rope_turn(pos.v[int(n)], i, sin_a, cos_a);
                const float before = a;
                a = before * cos_a + b * sin_a;
                b = b * cos_a - before * sin_a;
                put(row, lo, a);
                put(row, hi, b);
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
