// SPDX-License-Identifier: Apache-2.0
#include "glu.glsl"

const int COLUMNS = 2048; // columns of a block

void nj_glu_bwd()
{
    const int begin = block_y() * COLUMNS, end = min(I, begin + COLUMNS);
    nj_t gate = from_t(gu, int64_t(block_x()) * 2 * I), up = from_t(gate, I);
    nj_t dgate = from_t(dgu, int64_t(block_x()) * 2 * I), dup = from_t(dgate, I);
    nj_t slope = from_t(dy, int64_t(block_x()) * I), act = from_t(y, int64_t(block_x()) * I);
    for (int i = begin + thread(); i < end; i += NJ_THREADS) {
        const float g = get(gate, i), u = get(up, i), d = get(slope, i), z = glu_weight(g);
        put(act, i, g * z * u);
        put(dgate, i, d * u * glu_slope(g, z));
        put(dup, i, d * g * z);
    }
}
