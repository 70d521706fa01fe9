// SPDX-License-Identifier: Apache-2.0
#include "best.glsl"
#include "decode.glsl"
#include "kv_cache.glsl"
#include "rope.glsl"

// Dims that one thread has: thread(), thread() + NJ_THREADS, and so on.
const int MINE = (D + NJ_THREADS - 1) / NJ_THREADS;

shared float nj_scores[CHUNK], nj_query[D];

float with_bias(int64_t row, int column)
{
    const float x = get(from_t(qkv, row), column);
    return given(bias) ? x + get(bias, column) : x;
}

// Return element d of a query or key head in the row at element `row`, as the projection left it, with its bias and
// rotated.
float turned(int64_t row, int head, int d, int position)
{
    const int half_d = D / 2, i = d % half_d, lo = head * D + i;
    float a = with_bias(row, lo), b = with_bias(row, lo + half_d);
    if (given(inv_freq))
        rope_pair(a, b, position, i);
    return as_t(d < half_d ? a : b);
}

void put_new(int64_t row, int of_slot, int position, int group)
{
    const int64_t at = cache_at(of_slot, group);
    const int place = position % P;
    nj_cache key = cache_from(k, at + int64_t(place) * D), value = cache_from(v, at);
    for (int d = thread(); d < D; d += NJ_THREADS) {
        cache_store(key, d, turned(row, H + group, d, position));
        cache_store(value, value_at(place, d), with_bias(row, (H + K + group) * D + d));
    }
}

// The keys of a chunk that a row sees: those from `begin` on, the first of which has the place `place`.
struct chunk_keys {
    int begin, count, place;
};

// Return the place of key j. What a row sees goes at most once from the end of its slot to the beginning.
int place_of(chunk_keys its, int j)
{
    const int place = its.place + j - its.begin;
    return place < P ? place : place - P;
}

// Compute the scores of a head with the keys of a chunk, as exponentials.
part_stats score_chunk(nj_cache keys, chunk_keys its)
{
    float top = MINUS_INFINITY, sum = 0.0;
    int at = 0;
    barrier(); // the last scores may still be read
    for (int j = its.begin + thread(); j < its.count; j += NJ_THREADS) {
        const int place = place_of(its, j);
        float s = 0.0;
        for (int d = 0; d < D; d++)
            s += nj_query[d] * cached(keys, place * D + d);
        nj_scores[j] = scale * s;
        top = max(top, scale * s);
    }
    block_best(top, at);
    for (int j = its.begin + thread(); j < its.count; j += NJ_THREADS) {
        nj_scores[j] = nj_exp(nj_scores[j] - top);
        sum += nj_scores[j];
    }
    return part_stats(top * LOG2_E, block_sum(sum));
}

// Return element d of the weighted values.
float weigh_values(nj_cache values, chunk_keys its, int d)
{
    float sum = 0.0;
    for (int j = its.begin; j < its.count && d < D; j++)
        sum += nj_scores[j] * cached(values, value_at(place_of(its, j), d));
    return sum;
}

void decode_head(int r, int head, int group, int first_chunk, int last_chunk)
{
    const int64_t at = cache_at(slot.v[r], group), width = int64_t(H + 2 * K) * D;
    barrier(); // the last query may still be read
    for (int d = thread(); d < D; d += NJ_THREADS)
        nj_query[d] = turned(r * width, head, d, pos.v[r]);
    part_stats total = part_stats(MINUS_INFINITY, 0.0);
    float sums[MINE];
    NJ_UNROLL
    for (int i = 0; i < MINE; i++)
        sums[i] = 0.0;
    for (int c = first_chunk; c <= last_chunk; c++) {
        const int first = c * CHUNK, begin = max(0, first_position(pos.v[r]) - first);
        const chunk_keys keys =
            chunk_keys(begin, min(CHUNK, pos.v[r] + 1 - first), (first + begin) % P);
        const part_stats next = score_chunk(cache_from(k, at), keys);
        float old = 0.0, its = 1.0;
        if (c > first_chunk)
            part_add(total, next, old, its);
        else
            total = next;
        NJ_UNROLL
        for (int i = 0; i < MINE; i++) {
            const int d = thread() + i * NJ_THREADS;
            const float value = weigh_values(cache_from(v, at), keys, d);
            sums[i] = sums[i] * old + value * its;
        }
    }
    nj_t whole = from_t(o, (int64_t(r) * H + head) * D);
    nj_f32 to = from(part, ((int64_t(first_chunk) * R + r) * H + head) * (D + STATS));
    NJ_UNROLL
    for (int i = 0; i < MINE; i++) {
        const int d = thread() + i * NJ_THREADS;
        if (d < D && C == 1)
            put(whole, d, sums[i] / with_sink(total, head));
        else if (d < D)
            to.v[d] = sums[i];
    }
    if (thread() == 0 && C > 1) {
        to.v[D] = total.top;
        to.v[D + 1] = total.sum;
    }
}

// Compute the query heads of one key head per block, for one row and, with C > 1, one chunk.
void nj_attn_decode()
{
    const int group = block_x(), r = block_z(), heads = H / K;
    if (slot.v[r] < 0)
        return;
    const int first = first_position(pos.v[r]) / CHUNK, last = pos.v[r] / CHUNK;
    if (C > 1 && (block_y() < first || block_y() > last))
        return;
    if (C == 1 || block_y() == last) {
        put_new(r * int64_t(H + 2 * K) * D, slot.v[r], pos.v[r], group);
        memoryBarrierBuffer();
        barrier();
    }
    for (int h = group * heads; h < (group + 1) * heads; h++)
        decode_head(r, h, group, C > 1 ? block_y() : first, C > 1 ? block_y() : last);
}
