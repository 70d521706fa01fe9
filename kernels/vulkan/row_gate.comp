// SPDX-License-Identifier: Apache-2.0
void nj_row_gate()
{
    const int64_t n = block_x();
    nj_t row = from_t(x, n * C), all = from_t(w, 0), from_row = from_t(d, n * I),
         to = from_t(y, n * I);
    float sum = 0.0;
    for (int c = thread(); c < C; c += NJ_THREADS)
        sum += get(row, c) * get(all, c);
    const float gate = sigmoid(block_sum(sum));
    for (int i = thread(); i < I; i += NJ_THREADS)
        put(to, i, get(from_row, i) * gate);
}
