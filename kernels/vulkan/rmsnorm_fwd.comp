// SPDX-License-Identifier: Apache-2.0
#include "norm.glsl"

void nj_rmsnorm_fwd()
{
    const int width = NJ_THREADS / norm_rows(), lane = thread() % width;
    const int n = block_x() * norm_rows() + thread() / width;
    nj_t row = from_t(x, int64_t(n) * C);
    float sum = 0.0;
    for (int c = lane; c < C && n < N; c += width)
        sum += get(row, c) * get(row, c);
    norm_row(n, row, sum, lane, width);
}
