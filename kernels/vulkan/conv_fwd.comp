// SPDX-License-Identifier: Apache-2.0
#include "conv.glsl"

const int ROWS = 32, COLUMNS = 1024; // in a block

void nj_conv_fwd()
{
    const int begin = block_x() * ROWS, end = min(begin + ROWS, B * S);
    const int columns = min(X - block_y() * COLUMNS, COLUMNS);
    for (int i = thread(); i < columns * (end - begin); i += NJ_THREADS) {
        const int n = begin + i / columns, c = block_y() * COLUMNS + i % columns;
        float h = conv_sum(n, c);
        h = act != 0 ? h * sigmoid(h) : h;
        if (given(gate_out))
            h *= get(from_t(gate_out, int64_t(n) * ld), c);
        put(from_t(y, int64_t(n) * X), c, h);
    }
}
