// SPDX-License-Identifier: Apache-2.0

void nj_expert_combine()
{
    const int64_t n = int64_t(block_x());
    nj_i32 its = from_i32(place, n * J);
    nj_f32 part = from(weight, n * J);
    nj_t to = from_t(y, n * C), plus = from_t(addend, n * C);
    for (int c = thread(); c < C; c += NJ_THREADS) {
        float sum = given(addend) ? get(plus, c) : 0.0;
        for (int j = 0; j < J; j++)
            if (its.v[j] >= 0)
                sum += part.v[j] * get(from_t(d, int64_t(its.v[j]) * C), c);
        put(to, c, sum);
    }
}
