// SPDX-License-Identifier: Apache-2.0
const int COLUMNS = 1024; // in a block

void nj_conv_step()
{
    const int r = block_x(), end = min(X, block_y() * COLUMNS + COLUMNS);
    const int64_t at = int64_t(r) * ld;
    if (slot.v[r] < 0)
        return;
    for (int c = block_y() * COLUMNS + thread(); c < end; c += NJ_THREADS) {
        nj_f32 before = from(state, int64_t(slot.v[r]) * (L - 1) * X + c);
        nj_t taps = from_t(w, int64_t(c) * L);
        float u = get(from_t(x, at), c), h = given(bias) ? get(bias, c) : 0.0;
        if (given(gate_in))
            u *= get(from_t(gate_in, at), c);
        for (int t = 0; t < L - 1; t++) {
            const float old = pos.v[r] > 0 ? before.v[t * X] : 0.0;
            h += get(taps, t) * old;
            if (t > 0)
                before.v[(t - 1) * X] = old;
        }
        before.v[(L - 2) * X] = u;
        h += get(taps, L - 1) * u;
        h = act != 0 ? h * sigmoid(h) : h;
        if (given(gate_out))
            h *= get(from_t(gate_out, at), c);
        put(from_t(y, int64_t(r) * X), c, h);
    }
}
