// SPDX-License-Identifier: Apache-2.0
#include "norm.glsl"

void nj_rmsnorm_fwd()
{
    const int width = NJ_THREADS / norm_rows(), lane = thread() % width;
    const int n = block_x() * norm_rows() + thread() / width;
    nj_f32 row = from(x, int64_t(n) * C);
    float sum = 0.0;
    for (int c = lane; c < C && n < N; c += width)
        sum += row.v[c] * row.v[c];
    norm_row(n, row, sum, lane, width);
}
