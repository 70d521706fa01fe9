// SPDX-License-Identifier: Apache-2.0
#include "head_gain.glsl"
#include "rope.glsl"

const int ROWS = 4, LANES = 32,
          TEAMS = NJ_THREADS / LANES; // per block; a team takes one head at a time

// Compute u = x r for one head, and rotate it; the gain goes before or after.
void norm_turn(nj_t to, nj_t row, nj_t w, float r, int position, int lane)
{
    const int half_d = D / 2;
    for (int i = lane; i < half_d; i += LANES) {
        float sin_a, cos_a;
        const float gain_a = head_gain(w, i), gain_b = head_gain(w, i + half_d);
        const float before_a = gain_last != 0 ? 1.0 : gain_a,
                    after_a = gain_last != 0 ? gain_a : 1.0,
                    before_b = gain_last != 0 ? 1.0 : gain_b,
                    after_b = gain_last != 0 ? gain_b : 1.0;
        const float a = get(row, i) * r * before_a, b = get(row, i + half_d) * r * before_b;
        rope_turn(position, i, sin_a, cos_a);
        put(to, i, (a * cos_a - b * sin_a) * after_a);
        put(to, i + half_d, (b * cos_a + a * sin_a) * after_b);
    }
}

void nj_qknorm_rope_fwd()
{
    const int lane = thread() % LANES, team = thread() / LANES, heads = H + K,
              width = (heads + K) * D;
    for (int n = block_x() * ROWS; n < min(block_x() * ROWS + ROWS, N); n++) {
        const int64_t at = int64_t(n) * width;
        for (int first = 0; first < heads; first += TEAMS) {
            const int h = first + team;
            nj_t row = from_t(x, at + int64_t(h) * D), to = from_t(y, at + int64_t(h) * D);
            float sum = 0.0;
            for (int i = lane; i < D && h < heads; i += LANES)
                sum += get(row, i) * get(row, i);
            const float r = inversesqrt(group_sum(sum, LANES) / float(D) + eps);
            if (h >= heads)
                continue;
            if (lane == 0)
                from(rstd, int64_t(n) * heads).v[h] = r;
            if (h < H)
                norm_turn(to, row, wq, r, pos.v[n], lane);
            else
                norm_turn(to, row, wk, r, pos.v[n], lane);
        }
        for (int c = heads * D + thread(); c < width; c += NJ_THREADS)
            put(from_t(y, at), c, get(from_t(x, at), c));
    }
}
