// SPDX-License-Identifier: Apache-2.0
#include "glu_clamped.glsl"

const int WIDTH = 32; // threads that have a row of gate and that of up

void nj_expert_gemv_swiglu()
{
    const int i = block_x() * (NJ_THREADS / WIDTH) + thread() / WIDTH, lane = thread() % WIDTH;
    const int pair = block_y(), e = chosen.v[pair];
    const int64_t gate_row = int64_t(max(e, 0)) * I + min(i, I - 1);
    const int64_t up_row = gate_row + int64_t(E) * I;
    nj_t mine = from_t(x, int64_t(pair / J) * C);
    nj_t gate_of = from_t(w, gate_row * C), up_of = from_t(w, up_row * C);
    float gate = 0.0, up = 0.0;
    for (int c = lane; c < C && e >= 0; c += WIDTH) {
        gate += get(mine, c) * get(gate_of, c);
        up += get(mine, c) * get(up_of, c);
    }
    gate = group_sum(gate, WIDTH);
    up = group_sum(up, WIDTH);
    if (lane != 0 || i >= I)
        return;
    if (given(bias)) {
        gate += get(from_t(bias, gate_row), 0);
        up += get(from_t(bias, up_row), 0);
    }
    put(from_t(act, int64_t(pair) * I), i, e < 0 ? 0.0 : glu_clamped(as_t(gate), as_t(up)));
}
