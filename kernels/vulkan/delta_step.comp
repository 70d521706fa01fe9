// SPDX-License-Identifier: Apache-2.0
const int COLUMNS = 32; // columns of values of a block
const int WIDTH = NJ_THREADS / COLUMNS,
          MOST = D / WIDTH; // threads of a column, elements of a thread

float softplus(float x)
{
    return max(x, 0.0) + nj_log1p(nj_exp(-abs(x)));
}

// A group of threads has a column of values.
void nj_delta_step()
{
    const int h = block_x(), r = block_z(), kv = h / (H / K), lane = thread() % WIDTH;
    const int column = block_y() * COLUMNS + thread() / WIDTH;
    if (slot.v[r] < 0)
        return;
    nj_t row = from_t(qkv, int64_t(r) * (2 * K + H) * D);
    nj_f32 from_state = from(state, ((int64_t(slot.v[r]) * H + h) * D + column) * D);
    float q[MOST], k[MOST], s[MOST], squares_q = 0.0, squares_k = 0.0, seen = 0.0;
    const int64_t at = int64_t(r) * ld;
    const float step = get(from_t(a, at), h) + get(dt_bias, h);
    const float keep = nj_exp(-nj_exp(get(a_log, h)) * softplus(step));
    NJ_UNROLL
    for (int i = 0; i < MOST; i++) {
        const int d = lane + i * WIDTH;
        q[i] = get(row, kv * D + d);
        k[i] = get(row, (K + kv) * D + d);
        s[i] = pos.v[r] > 0 ? keep * from_state.v[d] : 0.0;
        squares_q += q[i] * q[i];
        squares_k += k[i] * k[i];
        seen += s[i] * k[i];
    }
    const float of_q = 1.0 / sqrt((group_sum(squares_q, WIDTH) + 1e-6) * float(D));
    const float of_k = 1.0 / sqrt(group_sum(squares_k, WIDTH) + 1e-6);
    seen = group_sum(seen, WIDTH) * of_k;
    const float v = get(row, (2 * K + h) * D + column);
    const float update = sigmoid(get(from_t(b, at), h)) * (v - seen) * of_k;
    float read = 0.0;
    NJ_UNROLL
    for (int i = 0; i < MOST; i++) {
        s[i] += update * k[i];
        from_state.v[lane + i * WIDTH] = s[i];
        read += s[i] * q[i];
    }
    read = group_sum(read, WIDTH) * of_q;
    if (lane == 0)
        put(from_t(o, (int64_t(r) * H + h) * D), column, read);
}
