// SPDX-License-Identifier: Apache-2.0
#include "decode.glsl"

const int ELEMENTS = 256; // elements per block

void merge_element(int r, int e)
{
    const int head = e / D, d = e % D;
    const int64_t row = D + STATS, chunk = int64_t(R) * H * row;
    const int oldest = first_position(pos.v[r]) / CHUNK, newest = pos.v[r] / CHUNK;
    nj_f32 first = from(part, oldest * chunk + (int64_t(r) * H + head) * row);
    part_stats total = part_stats(first.v[D], first.v[D + 1]);
    float sum = first.v[d];
    for (int c = 1; c <= newest - oldest; c++) {
        nj_f32 next = from(first, c * chunk);
        float old, its;
        part_add(total, part_stats(next.v[D], next.v[D + 1]), old, its);
        sum = sum * old + next.v[d] * its;
    }
    put(from_t(o, int64_t(r) * H * D), e, sum / with_sink(total, head));
}

void nj_attn_decode_merge()
{
    const int r = block_y(), first = block_x() * ELEMENTS;
    if (slot.v[r] < 0)
        return;
    for (int e = first + thread(); e < min(first + ELEMENTS, H * D); e += NJ_THREADS)
        merge_element(r, e);
}
