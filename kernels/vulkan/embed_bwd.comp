// SPDX-License-Identifier: Apache-2.0

// Sum run k of equal ids in block k, which alone writes their row of the gradient; later blocks have empty runs.
void nj_embed_bwd()
{
    const int begin = runs.v[block_x()], end = runs.v[block_x() + 1];
    if (begin >= end)
        return;
    nj_f32 to = from(dw, int64_t(ids.v[order.v[begin]]) * C);
    for (int c = thread(); c < C; c += NJ_THREADS) {
        float sum = to.v[c];
        for (int j = begin; j < end; j++)
            sum += scale * get(from_t(dy, int64_t(order.v[j]) * C), c);
        to.v[c] = sum;
    }
}
