// SPDX-License-Identifier: Apache-2.0
#include "norm.glsl"

void nj_add_rmsnorm_fwd()
{
    const int width = NJ_THREADS / norm_rows(), lane = thread() % width;
    const int n = block_x() * norm_rows() + thread() / width;
    const int64_t at = int64_t(n) * C;
    nj_f32 row = from(x, at), branch = from(b, at), to = from(s, at);
    float sum = 0.0;
    for (int c = lane; c < C && n < N; c += width) {
        const float v = row.v[c] + branch.v[c];
        to.v[c] = v;
        sum += v * v;
    }
    norm_row(n, to, sum, lane, width); // a thread reads what it wrote itself
}
