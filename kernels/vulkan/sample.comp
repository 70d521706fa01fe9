// SPDX-License-Identifier: Apache-2.0
#include "best.glsl"
#include "philox.glsl"

const uint OF_GROUP = 0x73616d70u, OF_TOKEN = 0x746f6b6eu;
const int TOKENS = 8, GROUPS_OF_A_CALL = 4, NONE = 0x7fffffff;
const float UNIT = 2.32830644e-10; // 2^-32
const float LOG_8 = 2.0795;        // rounded up

// Return the Gumbel noise of a word: -log(-log(1 - u)), u = (word + 1/2) / 2^32, with full precision both near u = 0
// and near u = 1.
float noise(uint word)
{
    if (word < 0x40000000u)
        return -nj_log(-nj_log1p(-(float(word) + 0.5) * UNIT));
    return -nj_log(-nj_log((float(~word) + 0.5) * UNIT));
}

// Return the logit of token i of a group; -inf if it takes no part.
float logit(nj_t row, float least, int group, int i)
{
    const int v = group * TOKENS + i;
    const float x = v < V ? get(row, v) : MINUS_INFINITY;
    return x >= least ? x : MINUS_INFINITY;
}

float largest(nj_t row, float least, int group)
{
    float m = MINUS_INFINITY;
    for (int i = 0; i < TOKENS; i++)
        m = max(m, logit(row, least, group, i));
    return m;
}

// Return exp((x - m) / tau); its limit if tau is 0, which is 1 for the largest.
float weight(float x, float m)
{
    if (x == m)
        return 1.0;
    return tau == 0.0 || x == MINUS_INFINITY ? 0.0 : nj_exp((x - m) / tau);
}

float weights(nj_t row, float least, int group, float m)
{
    float sum = 0.0;
    for (int i = 0; i < TOKENS; i++)
        sum += weight(logit(row, least, group, i), m);
    return sum;
}

// Draw a token of the group by weight; at tau 0 the first of the largest.
int draw(nj_t row, float least, int group, uint word)
{
    const float m = largest(row, least, group);
    const float u = tau == 0.0 ? 0.0 : (float(word) + 0.5) * UNIT;
    const float wanted = u * weights(row, least, group, m);
    float sum = 0.0;
    int at = 0;
    for (int i = 0; i < TOKENS; i++) {
        const float e = weight(logit(row, least, group, i), m);
        if (e > 0.0 && (sum < wanted || sum == 0.0))
            at = i;
        sum += e;
    }
    return group * TOKENS + at;
}

void nj_sample()
{
    const int m = block_x(), groups = ceil_div(V, TOKENS),
              lengths = ceil_div(ceil_div(V, PARTS), TOKENS);
    const int first = int(min(int64_t(block_y()) * lengths, int64_t(groups)));
    const int last = slot.v[m] < 0 ? first : min(groups - first, lengths) + first;
    nj_t row = from_t(x, int64_t(m) * ld);
    float top = MINUS_INFINITY, least = MINUS_INFINITY;
    int id = NONE;
    if (given(cut))
        least = cut.v[m];
    for (int call = first / GROUPS_OF_A_CALL + thread(); call * GROUPS_OF_A_CALL < last;
         call += NJ_THREADS) {
        const uvec4 words = philox(uint64_t(call) | uint64_t(uint(pos.v[m])) << 32,
                                   uint(number.v[m]), OF_GROUP, uint(seed_low), uint(seed_high));
        for (int i = 0; i < GROUPS_OF_A_CALL; i++) {
            const int q = call * GROUPS_OF_A_CALL + i;
            const float peak = first <= q && q < last ? largest(row, least, q) : MINUS_INFINITY;
            float s = tau == 0.0 ? peak : peak / tau + noise(words[i]);
            if (peak == MINUS_INFINITY || s + LOG_8 < top)
                continue;
            if (tau != 0.0)
                s += nj_log(weights(row, least, q, peak));
            if (s > top) {
                top = s;
                id = q;
            }
        }
    }
    block_best(top, id);
    if (thread() == 0) {
        const int64_t at = int64_t(m) * PARTS + block_y();
        from(score, at).v[0] = top;
        if (id != NONE) {
            const uvec4 words =
                philox(uint64_t(id) | uint64_t(uint(pos.v[m])) << 32, uint(number.v[m]), OF_TOKEN,
                       uint(seed_low), uint(seed_high));
            id = draw(row, least, id, words.x);
        }
        from_i32(best, at).v[0] = id == NONE ? -1 : id;
    }
}
