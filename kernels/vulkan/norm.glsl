// SPDX-License-Identifier: Apache-2.0
//
// norm.glsl: rows of a norm's forward pass. A block takes as many as the contract's grid gives it, each by a group of
// its threads.
#include "gain.glsl"

int norm_rows()
{
    return C > 4096 ? 1 : C > 2048 ? 2 : C > 1024 ? 4 : 8;
}

// Normalize the row in `row`; `sum` is this thread's sum of squares. For a row past the last, only the sum is computed.
void norm_row(int n, nj_t row, float sum, int lane, int width)
{
    const float r = inversesqrt(group_sum(sum, width) / float(C) + eps);
    if (n >= N)
        return;
    nj_t to = from_t(y, int64_t(n) * C);
    if (lane == 0)
        rstd.v[n] = r;
    for (int c = lane; c < C; c += width)
        put(to, c, get(row, c) * r * gain(c));
}
