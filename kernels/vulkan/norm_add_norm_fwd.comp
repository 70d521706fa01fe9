// SPDX-License-Identifier: Apache-2.0
#include "norm.glsl"

void nj_norm_add_norm_fwd()
{
    const int width = NJ_THREADS / norm_rows(), lane = thread() % width;
    const int n = block_x() * norm_rows() + thread() / width;
    const int64_t at = int64_t(n) * C;
    nj_t row = from_t(x, at), branch = from_t(b, at), to = from_t(s, at);
    float sum = 0.0;
    for (int c = lane; c < C && n < N; c += width)
        sum += get(branch, c) * get(branch, c);
    const float q = inversesqrt(group_sum(sum, width) / float(C) + eps_b);
    if (lane == 0 && n < N)
        b_rstd.v[n] = q;
    sum = 0.0;
    for (int c = lane; c < C && n < N; c += width) {
        const float v = as_t(get(row, c) + get(branch, c) * q * (get(g, c) + offset_b));
        put(to, c, v);
        sum += v * v;
    }
    if (given(y))
        norm_row(n, to, sum, lane, width); // a thread reads only what it wrote itself
}
