// SPDX-License-Identifier: Apache-2.0
//
// kv_cache.glsl: the cache of one layer. Keys lie as [slot][key head][position][D], values transposed, as
// [slot][key head][D][position].

// Elements of the cache that one thread of a workgroup writes and others read.
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer nj_cache
{
    float v[];
};
nj_cache cache_from(nj_f32 a, int64_t i)
{
    return nj_cache(uint64_t(a) + 4ul * uint64_t(i));
}

// Of one slot and key head: the same offset for keys and for values.
int64_t cache_at(int of_slot, int group)
{
    return (int64_t(of_slot) * K + group) * P * D;
}

// The key and the value of head `group` in a fused row go to a position of a slot.
void cache_put(nj_f32 row, int of_slot, int position, int group)
{
    const int64_t at = cache_at(of_slot, group);
    nj_f32 key = from(row, int64_t(H + group) * D), value = from(row, int64_t(H + K + group) * D);
    for (int d = thread(); d < D; d += NJ_THREADS) {
        cache_from(k, at + int64_t(position) * D).v[d] = key.v[d];
        cache_from(v, at + int64_t(d) * P).v[position] = value.v[d];
    }
}
