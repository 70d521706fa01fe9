// SPDX-License-Identifier: Apache-2.0
const int WIDTH = 32; // threads that have a channel of y

void nj_expert_gemv_down()
{
    const int c = block_x() * (NJ_THREADS / WIDTH) + thread() / WIDTH, lane = thread() % WIDTH;
    const int n = block_y(), column = min(c, C - 1);
    float sum = 0.0;
    for (int j = 0; j < J; j++) {
        const int pair = n * J + j, e = chosen.v[pair];
        if (e < 0)
            continue;
        const int64_t at = int64_t(e) * C + column;
        nj_t its = from_t(w, at * I), mine = from_t(act, int64_t(pair) * I);
        float one = given(bias) && lane == 0 ? get(from_t(bias, at), 0) : 0.0;
        for (int i = lane; i < I; i += WIDTH)
            one += get(mine, i) * get(its, i);
        sum += weight.v[pair] * one;
    }
    sum = group_sum(sum, WIDTH);
    nj_t to = from_t(y, int64_t(n) * C);
    if (lane == 0 && c < C)
        put(to, c, get(to, c) + sum);
}
