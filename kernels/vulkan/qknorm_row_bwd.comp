// SPDX-License-Identifier: Apache-2.0

// Block p has the rows p, p + P, ...; a thread has the same columns of each, and their sums.
const int KEEP = 8192 / NJ_THREADS;

// Compute the gradient of C elements of the block's rows, from `first` on, whose roots are rstd[2 n + part].
void back_part(int part, int first, int C, int width, nj_t w, nj_f32 dw_part)
{
    float dw[KEEP];
    NJ_UNROLL
    for (int k = 0; k < KEEP; k++)
        dw[k] = 0.0;
    for (int64_t n = block_x(); n < N; n += P) {
        const int64_t at = n * width + first;
        nj_t g = from_t(dqkv, at), a = from_t(x, at);
        const float r = from(rstd, 2 * n).v[part];
        float dot_sum = 0.0;
        for (int c = thread(); c < C; c += NJ_THREADS)
            dot_sum += get(g, c) * get(w, c) * get(a, c) * r;
        const float mean = block_sum(dot_sum) / float(C);
        NJ_UNROLL
        for (int k = 0; k < KEEP; k++) {
            const int c = thread() + k * NJ_THREADS;
            if (c >= C)
                break;
            const float h = get(a, c) * r, slope = get(g, c);
            dw[k] += slope * h;
            put(g, c, r * (slope * get(w, c) - h * mean));
        }
    }
    nj_f32 sums = from(dw_part, int64_t(block_x()) * C);
    NJ_UNROLL
    for (int k = 0; k < KEEP; k++) {
        const int c = thread() + k * NJ_THREADS;
        if (c < C)
            sums.v[c] = dw[k];
    }
}

void nj_qknorm_row_bwd()
{
    const int q = H * D, k = K * D;
    back_part(0, 0, q, q + 2 * k, wq, dwq_part);
    back_part(1, q, k, q + 2 * k, wk, dwk_part);
}
