// SPDX-License-Identifier: Apache-2.0
//
// kv_cache.glsl: the cache of one layer. Keys lie as [slot][key head][position][D], values as [slot][key head][position
// / CACHE_BLOCK][D][CACHE_BLOCK] (base/decode.h).
const int CACHE_BLOCK = 32;

// Elements of the cache that one thread of a workgroup writes and others read.
#ifdef NJ_LP
#define NJ_CACHED uint16_t
#else
#define NJ_CACHED float
#endif
layout(buffer_reference, scalar, buffer_reference_align = 2) coherent buffer nj_cache
{
    NJ_CACHED v[];
};
nj_cache cache_from(nj_t a, int64_t i)
{
    return nj_cache(uint64_t(a) + T_BYTES * uint64_t(i));
}
float cached(nj_cache a, int i)
{
#ifdef NJ_LP
    return uintBitsToFloat(uint(a.v[i]) << 16);
#else
    return a.v[i];
#endif
}

void cache_store(nj_cache a, int i, float x)
{
#ifdef NJ_LP
    a.v[i] = uint16_t(to_bf16(x));
#else
    a.v[i] = x;
#endif
}

// Return the offset of one slot and key head, the same for keys and values.
int64_t cache_at(int of_slot, int group)
{
    return (int64_t(of_slot) * K + group) * P * D;
}

// Return the offset of dim d of the value at a place, among the values of the slot and head.
int value_at(int place, int d)
{
    return (place / CACHE_BLOCK * D + d) * CACHE_BLOCK + place % CACHE_BLOCK;
}

// Store the key and the value of head `group` of a fused row at a place of a slot.
void cache_put(nj_t row, int of_slot, int place, int group)
{
    const int64_t at = cache_at(of_slot, group);
    nj_t key = from_t(row, int64_t(H + group) * D), value = from_t(row, int64_t(H + K + group) * D);
    for (int d = thread(); d < D; d += NJ_THREADS) {
        cache_from(k, at + int64_t(place) * D).v[d] = key.v[d];
        cache_from(v, at).v[value_at(place, d)] = value.v[d];
    }
}
