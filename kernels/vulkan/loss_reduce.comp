// SPDX-License-Identifier: Apache-2.0
void add_rows(nj_f32 rows, int at)
{
    float sum = 0.0;
    for (int m = thread(); m < M; m += NJ_THREADS)
        sum += rows.v[m];
    const float total = block_sum(sum);
    if (thread() == 0)
        sums.v[at] += total;
}

void nj_loss_reduce()
{
    add_rows(kd, 0);
    add_rows(ce, 1);
    add_rows(entropy, 2);
    add_rows(agree, 3);
}
