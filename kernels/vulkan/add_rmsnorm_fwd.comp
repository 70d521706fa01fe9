// SPDX-License-Identifier: Apache-2.0
#include "norm.glsl"

void nj_add_rmsnorm_fwd()
{
    const int width = NJ_THREADS / norm_rows(), lane = thread() % width;
    const int n = block_x() * norm_rows() + thread() / width;
    const int64_t at = int64_t(n) * C;
    nj_t row = from_t(x, at), branch = from_t(b, at), to = from_t(s, at);
    float sum = 0.0;
    for (int c = lane; c < C && n < N; c += width) {
        const float v = as_t(get(row, c) + get(branch, c));
        put(to, c, v);
        sum += v * v;
    }
    norm_row(n, to, sum, lane, width); // a thread reads only what it wrote itself
}
