// SPDX-License-Identifier: Apache-2.0
#include "glu_clamped.glsl"

const int COLUMNS = 2048; // columns of a block

void nj_expert_glu_clamped()
{
    const int begin = block_y() * COLUMNS, end = min(I, begin + COLUMNS);
    const int64_t p = int64_t(block_x());
    nj_t to = from_t(act, p * I), gate = from_t(gu, p * 2 * I), up = from_t(gu, (p * 2 + 1) * I);
    for (int i = begin + thread(); i < end; i += NJ_THREADS)
        put(to, i, glu_clamped(get(gate, i), get(up, i)));
}
