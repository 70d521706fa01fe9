// SPDX-License-Identifier: Apache-2.0

// Norm C elements of a row of y and x, from `first` on. Return the reciprocal root.
float norm_part(int64_t row, int first, int C, nj_t w)
{
    nj_t from_x = from_t(x, row + first), to = from_t(y, row + first);
    float sum = 0.0;
    for (int c = thread(); c < C; c += NJ_THREADS)
        sum += get(from_x, c) * get(from_x, c);
    const float r = inversesqrt(block_sum(sum) / float(C) + eps);
    for (int c = thread(); c < C; c += NJ_THREADS)
        put(to, c, get(from_x, c) * r * get(w, c));
    return r;
}

void nj_qknorm_row_fwd()
{
    const int q = H * D, k = K * D;
    const int64_t row = int64_t(block_x()) * (q + 2 * k);
    const float of_q = norm_part(row, 0, q, wq), of_k = norm_part(row, q, k, wk);
    nj_f32 roots = from(rstd, int64_t(block_x()) * 2);
    if (thread() == 0) {
        roots.v[0] = of_q;
        roots.v[1] = of_k;
    }
    nj_t values = from_t(x, row + q + k), to = from_t(y, row + q + k);
    for (int c = thread(); c < k; c += NJ_THREADS)
        put(to, c, get(values, c));
}
