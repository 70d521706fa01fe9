// SPDX-License-Identifier: Apache-2.0
const int COLUMNS = 2048; // columns of a block

void nj_swiglu_fwd()
{
    const int begin = block_y() * COLUMNS, end = min(I, begin + COLUMNS);
    nj_t gate = from_t(gu, int64_t(block_x()) * 2 * I), up = from_t(gate, I);
    nj_t to = from_t(y, int64_t(block_x()) * I);
    for (int i = begin + thread(); i < end; i += NJ_THREADS)
        put(to, i, get(gate, i) * get(up, i) * sigmoid(get(gate, i)));
}
