// SPDX-License-Identifier: Apache-2.0
#include "gain.glsl"

// Block p has the rows p, p + P, ...; a thread has the same columns of each, and their sums.
const int KEEP = 10240 / NJ_THREADS;

void nj_rmsnorm_bwd()
{
    float dw[KEEP];
    NJ_UNROLL
    for (int k = 0; k < KEEP; k++)
        dw[k] = 0.0;
    for (int64_t n = block_x(); n < N; n += P) {
        const int64_t at = n * C;
        nj_t g = from_t(dy, at), a = from_t(x, at), to = from_t(dx, at);
        const float r = rstd.v[int(n)];
        float dot_sum = 0.0;
        for (int c = thread(); c < C; c += NJ_THREADS)
            dot_sum += get(g, c) * gain(c) * get(a, c) * r;
        const float mean = block_sum(dot_sum) / float(C);
        NJ_UNROLL
        for (int k = 0; k < KEEP; k++) {
            const int c = thread() + k * NJ_THREADS;
            if (c >= C)
                break;
            const float h = get(a, c) * r, slope = get(g, c);
            float bypass = 0.0;
            if (given(dres))
                bypass = get(from_t(dres, at), c);
            dw[k] += slope * h;
            put(to, c, bypass + r * (slope * gain(c) - h * mean));
        }
    }
    if (!given(dw_part))
        return;
    nj_f32 part = from(dw_part, int64_t(block_x()) * C);
    NJ_UNROLL
    for (int k = 0; k < KEEP; k++) {
        const int c = thread() + k * NJ_THREADS;
        if (c < C)
            part.v[c] = dw[k];
    }
}
