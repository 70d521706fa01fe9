// SPDX-License-Identifier: Apache-2.0

// A block has the rows p, p + P, ... of COLUMNS columns, as the contract's grid has it; a thread sums one of them.
const int COLUMNS = 512 / int(T_BYTES);

void nj_bias_bwd()
{
    const int c = block_y() * COLUMNS + thread();
    if (thread() >= COLUMNS || c >= C)
        return;
    float sum = 0.0;
    for (int64_t n = block_x(); n < N; n += P)
        sum += get(from_t(dy, n * C), c);
    from(part, int64_t(block_x()) * C).v[c] = sum;
}
