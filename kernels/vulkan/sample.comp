// SPDX-License-Identifier: Apache-2.0
#include "best.glsl"
#include "philox.glsl"

const uint STREAM = 0x73616d70u;
const int TOKENS_OF_A_CALL = 4, PART_MULTIPLE = 8, NONE = 0x7fffffff;
const float UNIT = 2.32830644e-10; // 2^-32

// The Gumbel noise of a word: -log(-log(1 - u)), u = (word + 1/2) / 2^32. Near u = 0 and near 1 from
// the side that keeps the digits.
float noise(uint word)
{
    if (word < 0x40000000u)
        return -nj_log(-nj_log1p(-(float(word) + 0.5) * UNIT));
    return -nj_log(-nj_log((float(~word) + 0.5) * UNIT));
}

void nj_sample()
{
    const int m = block_x(), whole = ceil_div(V, PARTS);
    const int64_t length_of = ceil_div(whole, PART_MULTIPLE) * PART_MULTIPLE;
    const int64_t begin = block_y() * length_of, end = min(begin + length_of, int64_t(V));
    nj_t row = from_t(x, int64_t(m) * ld);
    float top = MINUS_INFINITY, least = MINUS_INFINITY;
    int id = NONE;
    if (given(cut))
        least = cut.v[m];
    for (int64_t v0 = begin + thread() * TOKENS_OF_A_CALL; v0 < end && slot.v[m] >= 0;
         v0 += NJ_THREADS * TOKENS_OF_A_CALL) {
        const uvec4 words = philox(uint64_t(v0) / TOKENS_OF_A_CALL | uint64_t(uint(pos.v[m])) << 32,
                                   uint(number.v[m]), STREAM, uint(seed_low), uint(seed_high));
        for (int i = 0; i < TOKENS_OF_A_CALL && v0 + i < end; i++) {
            const float logit = get(row, int(v0) + i);
            if (!(logit >= least))
                continue;
            const float s = tau == 0.0 ? logit : logit / tau + noise(words[i]);
            if (s > top) {
                top = s;
                id = int(v0) + i;
            }
        }
    }
    block_best(top, id);
    if (thread() == 0) {
        const int64_t at = int64_t(m) * PARTS + block_y();
        from(score, at).v[0] = top;
        from_i32(best, at).v[0] = id == NONE ? -1 : id;
    }
}
