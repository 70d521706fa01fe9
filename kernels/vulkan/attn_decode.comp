// SPDX-License-Identifier: Apache-2.0
#include "best.glsl"
#include "decode.glsl"
#include "kv_cache.glsl"

shared float nj_scores[CHUNK];

// Scores of a head with the keys of a chunk, as exponentials.
part_stats score_chunk(nj_t q, nj_cache keys, int count)
{
    float top = MINUS_INFINITY, sum = 0.0;
    int at = 0;
    barrier(); // the last scores may still be read
    for (int j = thread(); j < count; j += NJ_THREADS) {
        float s = 0.0;
        for (int d = 0; d < D; d++)
            s += get(q, d) * cached(keys, j * D + d);
        nj_scores[j] = scale * s;
        top = max(top, scale * s);
    }
    block_best(top, at);
    for (int j = thread(); j < count; j += NJ_THREADS) {
        nj_scores[j] = nj_exp(nj_scores[j] - top);
        sum += nj_scores[j];
    }
    return part_stats(top * LOG2_E, block_sum(sum));
}

// This thread's element of the values, weighted.
float weigh_values(int64_t at, int count)
{
    float sum = 0.0;
    for (int j = 0; j < count && thread() < D; j++)
        sum += nj_scores[j] * cached(cache_from(v, at + int64_t(thread()) * P), j);
    return sum;
}

void decode_head(int r, int head, int group, int first_chunk, int last_chunk)
{
    const int64_t at = cache_at(slot.v[r], group), width = int64_t(H + 2 * K) * D;
    nj_t q = from_t(qkv, r * width + int64_t(head) * D);
    part_stats total = part_stats(MINUS_INFINITY, 0.0);
    float sum = 0.0;
    for (int c = first_chunk; c <= last_chunk; c++) {
        const int first = c * CHUNK, count = min(CHUNK, pos.v[r] + 1 - first);
        const part_stats next = score_chunk(q, cache_from(k, at + int64_t(first) * D), count);
        const float value = weigh_values(at + first, count);
        float old = 0.0, its = 1.0;
        if (c > first_chunk)
            part_add(total, next, old, its);
        else
            total = next;
        sum = sum * old + value * its;
    }
    if (C == 1) {
        if (thread() < D)
            put(from_t(o, (int64_t(r) * H + head) * D), thread(), sum / total.sum);
        return;
    }
    nj_f32 to = from(part, ((int64_t(first_chunk) * R + r) * H + head) * (D + STATS));
    if (thread() < D)
        to.v[thread()] = sum;
    if (thread() == 0) {
        to.v[D] = total.top;
        to.v[D + 1] = total.sum;
    }
}

// A block has the query heads of one key head, of one row and, with C > 1, of one chunk.
void nj_attn_decode()
{
    const int group = block_x(), r = block_z(), heads = H / K;
    if (slot.v[r] < 0)
        return;
    const int last = pos.v[r] / CHUNK;
    if (C > 1 && block_y() > last)
        return;
    if (C == 1 || block_y() == last) {
        cache_put(from_t(qkv, r * int64_t(H + 2 * K) * D), slot.v[r], pos.v[r], group);
        memoryBarrierBuffer();
        barrier();
    }
    for (int h = group * heads; h < (group + 1) * heads; h++)
        decode_head(r, h, group, C > 1 ? block_y() : 0, C > 1 ? block_y() : last);
}
