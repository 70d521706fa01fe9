// SPDX-License-Identifier: Apache-2.0
const int COLUMNS = 2048; // of a block

void nj_swiglu_fwd()
{
    const int begin = block_y() * COLUMNS, end = min(I, begin + COLUMNS);
    nj_f32 gate = from(gu, int64_t(block_x()) * 2 * I), up = from(gate, I);
    nj_f32 to = from(y, int64_t(block_x()) * I);
    for (int i = begin + thread(); i < end; i += NJ_THREADS)
        to.v[i] = gate.v[i] * up.v[i] * sigmoid(gate.v[i]);
}
