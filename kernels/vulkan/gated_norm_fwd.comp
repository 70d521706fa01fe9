// SPDX-License-Identifier: Apache-2.0

// A group of threads has a head, as the contract's grid divides the block: 16 bytes a thread.
void nj_gated_norm_fwd()
{
    const int width = D / (16 / int(T_BYTES)), lane = thread() % width;
    const int i = block_x() * (NJ_THREADS / width) + thread() / width;
    const bool live = i < N * H;
    nj_t head = from_t(o, int64_t(i) * D);
    float sum = 0.0;
    for (int d = lane; d < D && live; d += width)
        sum += get(head, d) * get(head, d);
    const float r = 1.0 / sqrt(group_sum(sum, width) / float(D) + eps);
    nj_t gates = from_t(z, int64_t(i / H) * ld + i % H * D);
    for (int d = lane; d < D && live; d += width) {
        const float gate = get(gates, d);
        put(from_t(y, int64_t(i) * D), d, get(head, d) * r * get(w, d) * gate * sigmoid(gate));
    }
}
