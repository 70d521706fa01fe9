// SPDX-License-Identifier: Apache-2.0
const int MOST = 1024; // columns of a block

// Products of the gradient and the output; a head's are added in order.
shared float nj_products[MOST];

void nj_gate_bwd()
{
    const int whole = MOST / D * D, begin = block_y() * whole, count = min(C - begin, whole);
    const int64_t at = int64_t(block_x()) * C + begin;
    nj_t slope = from_t(dy, at), x = from_t(o, at), gate = from_t(g, at / D);
    nj_t to = from_t(dout, at), dgate = from_t(dg, at / D);
    for (int c = thread(); c < count; c += NJ_THREADS) {
        const float z = sigmoid(get(gate, c / D)), d = get(slope, c), value = get(x, c);
        nj_products[c] = d * value;
        put(to, c, d * z);
        if (given(y))
            put(from_t(y, at), c, value * z);
    }
    barrier();
    for (int h = thread(); h < count / D; h += NJ_THREADS) {
        const float z = sigmoid(get(gate, h));
        float sum = 0.0;
        for (int k = 0; k < D; k++)
            sum += nj_products[h * D + k];
        put(dgate, h, sum * z * (1.0 - z));
    }
}
