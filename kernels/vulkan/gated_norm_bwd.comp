// SPDX-License-Identifier: Apache-2.0
const int WIDTH = 32, MOST = D / WIDTH; // threads of a head, elements of a thread
const int GROUPS = NJ_THREADS / WIDTH;

shared float nj_gains[GROUPS * D];

// A block has consecutive heads, which its groups take in turn.
void nj_gated_norm_bwd()
{
    const int heads = N * H, each = ceil_div(heads, P), first = block_x() * each;
    const int end = min(first + each, heads), lane = thread() % WIDTH, group = thread() / WIDTH;
    float dw[MOST];
    NJ_UNROLL
    for (int k = 0; k < MOST; k++)
        dw[k] = 0.0;
    for (int from_head = first; from_head < end; from_head += GROUPS) {
        const int i = from_head + group;
        const bool live = i < end;
        const int64_t at = int64_t(i) * D, gates = int64_t(i / H) * ld + i % H * D;
        float squares = 0.0, along = 0.0;
        for (int d = lane; d < D && live; d += WIDTH) {
            const float v = get(from_t(o, at), d), gate = get(from_t(z, gates), d);
            squares += v * v;
            along += get(from_t(dy, at), d) * get(w, d) * gate * sigmoid(gate) * v;
        }
        const float r = 1.0 / sqrt(group_sum(squares, WIDTH) / float(D) + eps);
        const float mean = group_sum(along, WIDTH) * r / float(D);
        NJ_UNROLL
        for (int k = 0; k < MOST; k++) {
            const int d = lane + k * WIDTH;
            if (!live)
                continue;
            const float gate = get(from_t(z, gates), d), share = sigmoid(gate), t = gate * share;
            const float normed = get(from_t(o, at), d) * r, g = get(from_t(dy, at), d);
            const float gain = get(w, d);
            dw[k] += g * normed * t;
            put(from_t(dz, gates), d, g * normed * gain * share * (1.0 + gate * (1.0 - share)));
            if (given(y))
                put(from_t(y, at), d, normed * gain * t);
            put(from_t(dout, at), d, r * (g * gain * t - normed * mean));
        }
    }
    NJ_UNROLL
    for (int k = 0; k < MOST; k++)
        nj_gains[group * D + lane + k * WIDTH] = dw[k];
    barrier();
    for (int d = thread(); d < D; d += NJ_THREADS) {
        float sum = 0.0;
        for (int g = 0; g < GROUPS; g++)
            sum += nj_gains[g * D + d];
        from(dw_part, int64_t(block_x()) * D).v[d] = sum;
    }
}
