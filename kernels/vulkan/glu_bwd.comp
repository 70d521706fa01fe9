// SPDX-License-Identifier: Apache-2.0
#include "glu.glsl"

const int COLUMNS = 2048; // of a block

void nj_glu_bwd()
{
    const int begin = block_y() * COLUMNS, end = min(I, begin + COLUMNS);
    nj_f32 gate = from(gu, int64_t(block_x()) * 2 * I), up = from(gate, I);
    nj_f32 dgate = from(dgu, int64_t(block_x()) * 2 * I), dup = from(dgate, I);
    nj_f32 slope = from(dy, int64_t(block_x()) * I), act = from(y, int64_t(block_x()) * I);
    for (int i = begin + thread(); i < end; i += NJ_THREADS) {
        const float g = gate.v[i], u = up.v[i], d = slope.v[i], z = glu_weight(g);
        act.v[i] = g * z * u;
        dgate.v[i] = d * u * glu_slope(g, z);
        dup.v[i] = d * g * z;
    }
}
