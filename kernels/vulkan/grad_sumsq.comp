// SPDX-License-Identifier: Apache-2.0
void nj_grad_sumsq()
{
    float sum = 0.0;
    for (int64_t i = flat_thread(); i < n; i += flat_threads()) {
        const float x = from(g, i).v[0];
        sum += x * x;
    }
    const float total = block_sum(sum);
    if (thread() == 0)
        part.v[block_x()] = total;
}
