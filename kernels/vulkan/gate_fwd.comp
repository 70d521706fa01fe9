// SPDX-License-Identifier: Apache-2.0
const int COLUMNS = 2048; // columns of a block

void nj_gate_fwd()
{
    const int begin = block_y() * COLUMNS, end = min(C, begin + COLUMNS);
    const int64_t at = int64_t(block_x()) * C;
    nj_t from_row = from_t(o, at), to = from_t(y, at), gate = from_t(g, at / D);
    for (int c = begin + thread(); c < end; c += NJ_THREADS)
        put(to, c, get(from_row, c) * sigmoid(get(gate, c / D)));
}
