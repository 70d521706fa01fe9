// SPDX-License-Identifier: Apache-2.0
#include "head_gain.glsl"
#include "rope.glsl"

// Block p has the rows p, p + P, ...; a team takes every TEAMS-th head of each, and sums the gradients of the weights
// of queries and of keys. At the end these sums are added in the order of the teams.
const int LANES = 32, TEAMS = NJ_THREADS / LANES, PAIRS = 256 / 2 / LANES; // D <= 256

shared float nj_team_sums[TEAMS * 256];

// Turn the gradient of y into that of x, and add the head's share to dw; r is 0 if there is no head.
void back_head(nj_t d, nj_t row, nj_t w, float r, int position, int lane, inout float dw[2 * PAIRS])
{
    const int half_d = D / 2;
    float g[2 * PAIRS], dot_sum = 0.0;
    for (int k = 0; k < PAIRS; k++) {
        const int i = lane + k * LANES;
        g[2 * k] = g[2 * k + 1] = 0.0;
        if (i >= half_d || r == 0.0)
            continue;
        float sin_a, cos_a, a = get(d, i), b = get(d, i + half_d);
        const float lo = get(row, i) * r, hi = get(row, i + half_d) * r;
        const float gain_lo = head_gain(w, i), gain_hi = head_gain(w, i + half_d);
        rope_turn(position, i, sin_a, cos_a);
        if (gain_last != 0) {
            dw[2 * k] += a * (lo * cos_a - hi * sin_a);
            dw[2 * k + 1] += b * (hi * cos_a + lo * sin_a);
            a *= gain_lo;
            b *= gain_hi;
        }
        g[2 * k] = a * cos_a + b * sin_a;
        g[2 * k + 1] = b * cos_a - a * sin_a;
        if (gain_last == 0) {
            dw[2 * k] += g[2 * k] * lo;
            dw[2 * k + 1] += g[2 * k + 1] * hi;
            g[2 * k] *= gain_lo;
            g[2 * k + 1] *= gain_hi;
        }
        dot_sum += g[2 * k] * lo + g[2 * k + 1] * hi;
    }
    const float mean = group_sum(dot_sum, LANES) / float(D);
    for (int k = 0; k < PAIRS; k++) {
        const int i = lane + k * LANES;
        if (i >= half_d || r == 0.0)
            continue;
        put(d, i, r * (g[2 * k] - get(row, i) * r * mean));
        put(d, i + half_d, r * (g[2 * k + 1] - get(row, i + half_d) * r * mean));
    }
}

// Add the sums of all teams, in their order, and store them in the block's row.
void store_sums(nj_f32 part, float dw[2 * PAIRS], int lane, int team)
{
    const int half_d = D / 2;
    barrier(); // the last sums may still be read
    for (int k = 0; k < PAIRS; k++) {
        const int i = lane + k * LANES;
        if (i < half_d) {
            nj_team_sums[team * 256 + i] = dw[2 * k];
            nj_team_sums[team * 256 + i + half_d] = dw[2 * k + 1];
        }
    }
    barrier();
    for (int i = thread(); i < D && given(part); i += NJ_THREADS) {
        float sum = 0.0;
        for (int t = 0; t < TEAMS; t++)
            sum += nj_team_sums[t * 256 + i];
        from(part, int64_t(block_x()) * D).v[i] = sum;
    }
}

void nj_qknorm_rope_bwd()
{
    const int lane = thread() % LANES, team = thread() / LANES, heads = H + K,
              width = (heads + K) * D;
    float dq[2 * PAIRS], dk[2 * PAIRS];
    for (int k = 0; k < 2 * PAIRS; k++)
        dq[k] = dk[k] = 0.0;
    for (int64_t n = block_x(); n < N; n += P)
        for (int first = 0; first < H; first += TEAMS) {
            const int h = min(first + team, H - 1);
            const int64_t at = n * width + int64_t(h) * D;
            const float r = first + team < H ? from(rstd, n * heads).v[h] : 0.0;
            back_head(from_t(dqkv, at), from_t(x, at), wq, r, pos.v[int(n)], lane, dq);
        }
    for (int64_t n = block_x(); n < N; n += P)
        for (int first = H; first < heads; first += TEAMS) {
            const int h = min(first + team, heads - 1);
            const int64_t at = n * width + int64_t(h) * D;
            const float r = first + team < heads ? from(rstd, n * heads).v[h] : 0.0;
            back_head(from_t(dqkv, at), from_t(x, at), wk, r, pos.v[int(n)], lane, dk);
        }
    store_sums(dwq_part, dq, lane, team);
    store_sums(dwk_part, dk, lane, team);
}
