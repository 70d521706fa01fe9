// SPDX-License-Identifier: Apache-2.0

// A block has consecutive rows; groups of 32 threads take the heads in turn.
const int WIDTH = 32;

void nj_sink_bwd()
{
    const int rows = B * S, each = ceil_div(rows, P), first = block_x() * each;
    for (int head = 0; head < H; head += NJ_THREADS / WIDTH) {
        const int h = head + thread() / WIDTH;
        float sum = 0.0;
        for (int n = first + thread() % WIDTH; n < min(first + each, rows) && h < H; n += WIDTH) {
            const int64_t at = (int64_t(n / S) * H + h) * S + n % S;
            sum -= nj_exp(get(sink, h) - from(lse, at).v[0]) * from(delta, at).v[0];
        }
        sum = group_sum(sum, WIDTH);
        if (thread() % WIDTH == 0 && h < H)
            dsink_part.v[block_x() * H + h] = sum;
    }
}
