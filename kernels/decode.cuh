// SPDX-License-Identifier: Apache-2.0
//
// decode.cuh: attention of one new query over the keys of a cache, for attn_decode, attn_decode_q8 and
// attn_decode_merge. A warp takes KEYS keys at a time for ROWS query heads of one key head, with its own online
// softmax:
//
//    decode_warp      over a cache of 16-bit elements, or of floats with plain multiply-adds
//    decode_warp_q8   (decode_q8.cuh) over a cache of bytes
//
// The newest position is not in the cache yet: the one warp that reaches it takes its key and value from the row, and
// stores them (decode_input.cuh).
#ifndef NOJIT_DECODE_CUH
#define NOJIT_DECODE_CUH

#include "decode_input.cuh"
#include "kv_cache.cuh"

// Store two neighbours of a row of results.
static __device__ __forceinline__ void store2(float *p, float x, float y)
{
    *reinterpret_cast<float2 *>(p) = make_float2(x, y);
}
static __device__ __forceinline__ void store2(lp *p, float x, float y)
{
    *reinterpret_cast<uint32_t *>(p) = pack2(x, y);
}

// Sum of partial results, each with its own maximum, in the order in which they come. A single part keeps its bits.
struct decode_sum {
    float top, sum, x, y;

    static __device__ __forceinline__ decode_sum none() { return {-INFINITY, 0, 0, 0}; }
    __device__ __forceinline__ void add(float part_top, float part_sum, float2 part)
    {
        const float next = fmaxf(top, part_top), old = ex2(top - next), its = ex2(part_top - next);
        sum = fmaf(sum, old, part_sum * its);
        x = fmaf(x, old, part.x * its);
        y = fmaf(y, old, part.y * its);
        top = next;
    }
    // Add a sink, the score of a key whose value is 0.
    __device__ __forceinline__ void add_sink(float score) { sum += ex2(score * LOG2_E - top); }
    template <typename T> __device__ __forceinline__ void store(T *p) const
    {
        store2(p, x / sum, y / sum);
    }
};

// Partial results of the warps of a block.
template <int ROWS, int D> struct decode_shared {
    static constexpr int WARPS = NJ_THREADS / 32;
    float acc[WARPS][ROWS][D + 4], top[WARPS][ROWS], sum[WARPS][ROWS];

    // Return the sum for row h and two of its dims. The maximum is computed first, so that no factor waits for the one
    // before it.
    __device__ __forceinline__ decode_sum sum_of(int h, int d) const
    {
        decode_sum all = decode_sum::none();
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            all.top = fmaxf(all.top, top[w][h]);
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            const float factor = ex2(top[w][h] - all.top);
            const float2 its = *reinterpret_cast<const float2 *>(&acc[w][h][d]);
            all.sum += factor * sum[w][h];
            all.x += factor * its.x;
            all.y += factor * its.y;
        }
        return all;
    }
};

// Return the block's partial results. With heads of 256 all that a block shares is more than may be declared.
template <int ROWS, int D>
static __device__ __forceinline__ decode_shared<ROWS, D> &decode_shared_of()
{
    if constexpr (D > 128) {
        extern __shared__ __align__(16) unsigned char nj_dynamic[];
        static_assert(sizeof(decode_shared<ROWS, D>) == 33536, "this is smem in the contracts");
        return *reinterpret_cast<decode_shared<ROWS, D> *>(nj_dynamic);
    } else {
        __shared__ decode_shared<ROWS, D> shared;
        return shared;
    }
}

// Compute all query heads of one key head of row r, ROWS at a time (more of them read the keys again), over one chunk
// of the keys that it sees in the cache that cache_of(slot, position) gives; with C = 1 over all chunks in turn. The
// warps of the block take KEYS keys in turn, and their results are added in order.
template <typename Warp, int D, typename T, typename CacheOf>
static __device__ __forceinline__ void
decode_row(T *o, float *part, const decode_input<T, D> &in, const T *sink, const int32_t *slot,
           const int32_t *pos, const CacheOf &cache_of, int R, int H, int K, int C, int window,
           float scale)
{
    constexpr int ROWS = Warp::ROWS, KEYS = Warp::KEYS, WARPS = NJ_THREADS / 32;
    auto &shared = decode_shared_of<ROWS, D>();
    // sums of the chunks before; each is used by one thread
    __shared__ decode_sum before[ROWS * D / 2];
    const int kv = blockIdx.x, r = blockIdx.z, group = H / K;
    const int chunk = blockIdx.y;
    for (int head = kv * group; head < (kv + 1) * group; head += ROWS) {
        const int heads = min(ROWS, (kv + 1) * group - head);
        Warp mine(in, head * D, heads);
        loads_first();
        const int s = slot[r], last = pos[r];
        // Before the branch, even if there is no row: ptxas would move the loads behind it.
        mine.take(in, last);
        const int oldest_chunk = first_seen(0, last, window) / DECODE_CHUNK;
        int first = (C == 1 ? oldest_chunk : chunk) * DECODE_CHUNK;
        if (s < 0 || first > last || (C > 1 && chunk < oldest_chunk))
            return;
        const auto cache = cache_of(s, last);
#pragma unroll 1
        for (bool more = true; more; first += DECODE_CHUNK) {
            const int end = min(first + DECODE_CHUNK, cache.pos + 1);
            more = C == 1 && end <= cache.pos;
            mine.begin();
#pragma unroll 1
            for (int j = max(first, cache.oldest() / KEYS * KEYS) + threadIdx.x / 32 * KEYS;
                 j < end; j += WARPS * KEYS) {
                mine.step(cache, j, scale * LOG2_E);
                if (j + KEYS > cache.pos)
                    cache.store();
            }
            // wait until all have read the results of the chunk or the heads before
            __syncthreads();
            mine.put(shared);
            __syncthreads();
            for (int i = threadIdx.x; i < heads * (D / 2); i += NJ_THREADS) {
                const int h = i / (D / 2), d = i % (D / 2) * 2;
                decode_sum all = shared.sum_of(h, d);
                if (C == 1 && first > cache.oldest()) {
                    const decode_sum its = all;
                    all = before[i];
                    all.add(its.top, its.sum, make_float2(its.x, its.y));
                }
                const int to = r * H + head + h;
                if (more) {
                    before[i] = all;
                } else if (C == 1) {
                    if (sink)
                        all.add_sink(to_f32(sink[head + h]));
                    all.store(o + (int64_t)to * D + d);
                } else {
                    float *p = part + ((int64_t)chunk * R * H + to) * (D + DECODE_STATS);
                    store2(p + d, all.x, all.y);
                    if (d == 0)
                        store2(p + D, all.top, all.sum);
                }
            }
        }
    }
}

// The sums of a warp on tensor cores. Heads are the columns of the scores and of the sums, so that up to 8 of them
// waste nothing; keys are the rows of the scores, dims those of the sums. With t = lane%4 a lane has heads 2t and 2t+1.
template <int D> struct decode_mma {
    static constexpr int ROWS = 8;
    float acc[D / 16][4], top[2], sum[2];

    __device__ __forceinline__ void begin()
    {
#pragma unroll
        for (int i = 0; i < D / 16; i++)
            acc[i][0] = acc[i][1] = acc[i][2] = acc[i][3] = 0;
        top[0] = top[1] = -INFINITY;
        sum[0] = sum[1] = 0;
    }
    // Turn scores into probabilities relative to the maximum so far, and rescale the earlier sums accordingly.
    template <int N> __device__ __forceinline__ void softmax(float (&s)[N][4], float scale_log2)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float next = s[0][h];
#pragma unroll
            for (int n = 0; n < N; n++)
                next = fmaxf(next, fmaxf(s[n][h], s[n][2 + h]));
#pragma unroll
            for (int d = 4; d < 32; d *= 2)
                next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, d));
            next = fmaxf(top[h], next * scale_log2);
            const float factor = ex2(top[h] - next);
            top[h] = next;
            sum[h] *= factor;
#pragma unroll
            for (int n = 0; n < N; n++) {
#pragma unroll
                for (int e = h; e < 4; e += 2) {
                    s[n][e] = ex2(s[n][e] * scale_log2 - next);
                    sum[h] += s[n][e];
                }
            }
#pragma unroll
            for (int i = 0; i < D / 16; i++) {
                acc[i][h] *= factor;
                acc[i][2 + h] *= factor;
            }
        }
    }
    __device__ __forceinline__ void put(decode_shared<ROWS, D> &shared) const
    {
        const int warp = threadIdx.x / 32, g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float all = sum[h];
#pragma unroll
            for (int d = 4; d < 32; d *= 2)
                all += __shfl_xor_sync(0xffffffffu, all, d);
            if (g == 0) {
                shared.top[warp][2 * t + h] = top[h];
                shared.sum[warp][2 * t + h] = all;
            }
#pragma unroll
            for (int i = 0; i < D / 16; i++) {
                shared.acc[warp][2 * t + h][16 * i + g] = acc[i][h];
                shared.acc[warp][2 * t + h][16 * i + g + 8] = acc[i][2 + h];
            }
        }
    }
};

// The places of a slot (base/decode.h). Of the positions that a row sees, those from `turn` on lie from place 0 on, the
// others at the end.
struct decode_places {
    int P, turn;

    __device__ __forceinline__ decode_places(int places, int pos)
        : P(places), turn(pos < places ? 0 : pos / places * places)
    {
    }
    // Return what to add to a position to get its place, the same for all positions of a block. It is computed anew
    // for each load, as lane_here() is.
    __device__ __forceinline__ int shift(int j) const
    {
        asm volatile("" : "+r"(j));
        return (j < turn ? P : 0) - turn;
    }
};

// The cache of one slot and key head, and the new row.
template <typename T, int D> struct decode_cache {
    T *k, *v;
    int pos, window;
    decode_places places;
    decode_input<T, D> in;
    decode_newest<T, D> *newest;

    // Return the position of the first key that the row sees.
    __device__ __forceinline__ int oldest() const { return oldest_here(pos, window); }

    // Prepare the newest position; only the one warp that reaches it calls this.
    __device__ __forceinline__ void begin() const { newest->begin(in); }
    // Store the newest key and value. The same warp calls this, the only one that reads the values next to the newest.
    __device__ __forceinline__ void store() const
    {
        constexpr int N = decode_newest<T, D>::N;
        const int place = pos + places.shift(pos);
        uint32_t *key = reinterpret_cast<uint32_t *>(k + (int64_t)place * D);
        for (int i = lane_here(); i < D / N; i += 32) {
            float x[N];
            widen(x, newest->v[i], T());
            key[i] = newest->k[i];
#pragma unroll
            for (int n = 0; n < N; n++)
                v[value_at<D>(place, N * i + n)] = from_f32<T>(x[n]);
        }
    }
};

// A warp over a cache of 16-bit elements. K and V lie in registers as they come from memory, 16 bytes per load. With g
// = lane/4, t = lane%4, row g of the n-th eight rows of scores stands for key 8(g/2)+2n+g%2, and rows 2t, 2t+1, 2t+8,
// 2t+9 of the right operand stand for dims 8t to 8t+3, in the next mma for 8t+4 to 8t+7. So one load of a lane holds
// its elements for two mma, and its scores, once they are transposed probabilities, are the right operand for the
// values that it has loaded.
template <typename T, int D> struct decode_warp : decode_mma<D> {
    // Keys and values lie in registers in so many parts, one after the other.
    static constexpr int KEYS = CACHE_BLOCK, PARTS = D > 128 ? 2 : 1;
    static constexpr int KEY_LOADS = D / 32 / PARTS, VALUE_LOADS = D / 8 / PARTS;
    decode_queries<T, D, 32, D / 64> q;

    // Load the query heads from the first column on; columns of the mma beyond the last head repeat it.
    __device__ __forceinline__ decode_warp(const decode_input<T, D> &in, int first, int heads)
    {
        q.ask(in, first + min(lane_id() / 4, heads - 1) * D + lane_id() % 4 * 8);
    }
    __device__ __forceinline__ void take(const decode_input<T, D> &in, int pos)
    {
        q.take(in, pos, lane_id() % 4 * 8);
    }
    // Return 8 dims of every 32 of a head.
    __device__ __forceinline__ uint4 query(int i) const
    {
        return i < D / 64 ? q.x[i].lo : q.x[i - D / 64].hi;
    }
    // Return which bytes to take from a word of values and from the new value, `left` keys before the newest: the
    // newest key's own value, and zeros behind it.
    static __device__ __forceinline__ uint32_t picked(int left)
    {
        return left >= 2 ? 0x3210 : left == 1 ? 0x5410 : left == 0 ? 0x7654 : 0x7676;
    }
    // Put the newest key in place, which also stands for those behind it. `pos` counts from the first of these keys.
    static __device__ __forceinline__ void
    put_newest_key(uint4 (&k)[4][KEY_LOADS], const decode_newest<T, D> &newest, int part, int pos)
    {
        const int lane = lane_here(), g = lane / 4, t = lane % 4;
#pragma unroll
        for (int n = 0; n < 4; n++) {
            if (8 * (g / 2) + g % 2 + 2 * n < pos)
                continue;
#pragma unroll
            for (int i = 0; i < KEY_LOADS; i++)
                k[n][i] = *reinterpret_cast<const uint4 *>(newest.k + 4 * t +
                                                           16 * (part * KEY_LOADS + i));
        }
    }
    static __device__ __forceinline__ void
    put_newest_value(uint4 (&v)[VALUE_LOADS], const decode_newest<T, D> &newest, int part, int pos)
    {
        const int lane = lane_here(), g = lane / 4, left = pos - 8 * (lane % 4);
#pragma unroll
        for (int i = 0; i < VALUE_LOADS; i++) {
            const uint32_t x = __byte_perm(newest.v[4 * (part * VALUE_LOADS + i) + g / 2], 0,
                                           g % 2 ? 0x4432 : 0x4410);
            v[i].x = __byte_perm(v[i].x, x, picked(left));
            v[i].y = __byte_perm(v[i].y, x, picked(left - 2));
            v[i].z = __byte_perm(v[i].z, x, picked(left - 4));
            v[i].w = __byte_perm(v[i].w, x, picked(left - 6));
        }
    }
    static __device__ __forceinline__ void
    load_keys(uint4 (&k)[4][KEY_LOADS], const decode_cache<T, D> &cache, int key, int part)
    {
        const T *keys = cache.k + (int64_t)cache.places.shift(key) * D + lane_id() % 4 * 8;
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const T *p = keys + (int64_t)min(key + 2 * n, cache.pos) * D;
#pragma unroll
            for (int i = 0; i < KEY_LOADS; i++)
                k[n][i] = vec<T>::read(p + 32 * (part * KEY_LOADS + i));
        }
    }
    static __device__ __forceinline__ void
    load_values(uint4 (&v)[VALUE_LOADS], const decode_cache<T, D> &cache, int j0, int part)
    {
        const int lane = lane_id();
        const int64_t place = j0 + cache.places.shift(j0);
        const T *values = cache.v + place * D + lane / 4 * CACHE_BLOCK + lane % 4 * 8;
#pragma unroll
        for (int i = 0; i < VALUE_LOADS; i++)
            v[i] = vec<T>::read(values + 8 * (part * VALUE_LOADS + i) * CACHE_BLOCK);
    }
    __device__ __forceinline__ void score(float (&s)[2][4], const uint4 (&k)[4][KEY_LOADS],
                                          int part) const
    {
#pragma unroll
        for (int i = 0; i < KEY_LOADS; i++) {
            const uint4 its = query(part * KEY_LOADS + i);
#pragma unroll
            for (int n = 0; n < 2; n++) {
                const uint4 a = k[2 * n][i], b = k[2 * n + 1][i];
                mma16816(s[n], {a.x, b.x, a.y, b.y}, its.x, its.y);
                mma16816(s[n], {a.z, b.z, a.w, b.w}, its.z, its.w);
            }
        }
    }
    __device__ __forceinline__ void weigh(const uint32_t (&p)[4], const uint4 (&v)[VALUE_LOADS],
                                          int part)
    {
#pragma unroll
        for (int i = 0; i < VALUE_LOADS / 2; i++) {
            const uint4 a = v[2 * i], b = v[2 * i + 1];
            float(&sums)[4] = this->acc[part * (VALUE_LOADS / 2) + i];
            mma16816(sums, {a.x, b.x, a.y, b.y}, p[0], p[1]);
            mma16816(sums, {a.z, b.z, a.w, b.w}, p[2], p[3]);
        }
    }
    // Take the keys from j0 on, of which the first exists.
    __device__ __forceinline__ void step(const decode_cache<T, D> &cache, int j0, float scale_log2)
    {
        const int g = lane_id() / 4;
        const int key = j0 + 8 * (g / 2) + g % 2; // key for row g of the first eight
        uint4 k[4][KEY_LOADS], v[VALUE_LOADS];
        float s[2][4] = {};
        load_keys(k, cache, key, 0);
        if (PARTS == 1)
            load_values(v, cache, j0, 0); // a whole block
        const bool last = j0 + KEYS > cache.pos, first = j0 < cache.oldest();
        if (last) {
            cache.begin();
            put_newest_key(k, *cache.newest, 0, cache.pos - j0);
            if (PARTS == 1)
                put_newest_value(v, *cache.newest, 0, cache.pos - j0);
        }
        score(s, k, 0);
        if (PARTS > 1) {
            load_keys(k, cache, key, 1);
            if (last)
                put_newest_key(k, *cache.newest, 1, cache.pos - j0);
            score(s, k, 1);
            load_values(v, cache, j0, 0);
        }
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const int j = key + 2 * n;
            if ((last && j > cache.pos) || (first && j < cache.oldest()))
                s[n / 2][n % 2 * 2] = s[n / 2][n % 2 * 2 + 1] = -INFINITY;
        }
        this->softmax(s, scale_log2);
        uint32_t p[4];
#pragma unroll
        for (int n = 0; n < 4; n++)
            p[n] = transposed(pack2(s[n / 2][n % 2 * 2], s[n / 2][n % 2 * 2 + 1]));
        if (PARTS > 1 && last)
            put_newest_value(v, *cache.newest, 0, cache.pos - j0);
        weigh(p, v, 0);
        if (PARTS > 1) {
            load_values(v, cache, j0, 1);
            if (last)
                put_newest_value(v, *cache.newest, 1, cache.pos - j0);
            weigh(p, v, 1);
        }
    }
};

// A warp over float32, with plain multiply-adds. A lane takes one key for the scores and every 32nd dim of the values.
// Load gives access to the elements of a cache.
template <typename Load, int D> struct decode_lanes {
    static constexpr int ROWS = 8, KEYS = 32;
    int first, heads;
    const float *q[ROWS];
    float acc[ROWS][D / 32], top[ROWS], sum[ROWS];

    // Set the query heads from the first column on; the last stands for missing ones.
    __device__ __forceinline__ decode_lanes(const decode_input<float, D> &, int from, int count)
        : first(from), heads(count)
    {
    }
    __device__ __forceinline__ void take(const decode_input<float, D> &in, int pos)
    {
        constexpr int V = vec<float>::N, PIECES = D / 2 / V;
        __shared__ __align__(16) float turned[ROWS][D];
        decode_turns<float, D> turns;
        turns.ask(in);
        turns.take(in, pos);
        const float *angles = decode_turns<float, D>::its();
        for (int i = threadIdx.x; i < heads * PIECES; i += NJ_THREADS) {
            const int h = i / PIECES, angle = i % PIECES * V;
            head_piece<float> x, b;
            x.read(in.row + first + h * D + angle, D / 2);
            b.read(in.offset() + first + h * D + angle, D / 2);
            decode_finish(in, x, b, angles + angle);
            x.write(turned[h] + angle, D / 2);
        }
        __syncthreads();
#pragma unroll
        for (int h = 0; h < ROWS; h++)
            q[h] = turned[min(h, heads - 1)];
    }
    __device__ __forceinline__ void begin()
    {
#pragma unroll
        for (int h = 0; h < ROWS; h++) {
            top[h] = -INFINITY;
            sum[h] = 0;
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                acc[h][i] = 0;
        }
    }
    template <typename Cache>
    __device__ __forceinline__ void step(const Cache &cache, int j0, float scale_log2)
    {
        const Load load(cache, j0);
        const int j = j0 + lane_id();
        const bool seen = j >= cache.oldest() && j <= cache.pos;
        const float2 scales = load.scales(j); // scales of key and value
        float p[ROWS] = {};
        for (int d = 0; d < D; d += 4) {
            const float4 x = load.key(j, d);
#pragma unroll
            for (int h = 0; h < ROWS; h++)
                p[h] += dot4(*reinterpret_cast<const float4 *>(q[h] + d), x);
        }
#pragma unroll
        for (int h = 0; h < ROWS; h++) {
            const float s = seen ? p[h] * scales.x * scale_log2 : -INFINITY;
            const float next = fmaxf(top[h], warp_max(s)), factor = ex2(top[h] - next);
            p[h] = ex2(s - next);
            top[h] = next;
            sum[h] = sum[h] * factor + p[h];
            p[h] *= scales.y;
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                acc[h][i] *= factor;
        }
        for (int n = 0; n < KEYS && j0 + n <= cache.pos; n += 4) {
            float x[D / 32][4];
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                load.values(x[i], lane_id() + 32 * i, j0 + n);
#pragma unroll
            for (int e = 0; e < 4; e++) {
#pragma unroll
                for (int h = 0; h < ROWS; h++) {
                    const float y = __shfl_sync(0xffffffffu, p[h], n + e);
#pragma unroll
                    for (int i = 0; i < D / 32; i++)
                        acc[h][i] += y * x[i][e];
                }
            }
        }
    }
    __device__ __forceinline__ void put(decode_shared<ROWS, D> &shared) const
    {
        const int warp = threadIdx.x / 32;
#pragma unroll
        for (int h = 0; h < ROWS; h++) {
            const float all = warp_sum(sum[h]);
            if (lane_id() == 0) {
                shared.top[warp][h] = top[h];
                shared.sum[warp][h] = all;
            }
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                shared.acc[warp][h][lane_id() + 32 * i] = acc[h][i];
        }
    }
};

// Access to the keys and values of a cache of floats.
template <int D> struct decode_floats {
    const decode_cache<float, D> &cache;
    int shift;

    __device__ __forceinline__ decode_floats(const decode_cache<float, D> &from, int j0)
        : cache(from), shift(from.places.shift(j0))
    {
        if (j0 + 32 > from.pos)
            from.begin();
    }
    static __device__ __forceinline__ float2 scales(int) { return make_float2(1, 1); }
    // Return four dims of a key; for a later key, those of the newest.
    __device__ __forceinline__ float4 key(int j, int d) const
    {
        if (j < cache.pos)
            return *reinterpret_cast<const float4 *>(cache.k + (int64_t)(j + shift) * D + d);
        return *reinterpret_cast<const float4 *>(cache.newest->k + d);
    }
    // Load dim d of four keys' values; zeros beyond the newest.
    __device__ __forceinline__ void values(float (&x)[4], int d, int j) const
    {
        const float4 v = *reinterpret_cast<const float4 *>(cache.v + value_at<D>(j + shift, d));
        x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (j + e >= cache.pos)
                x[e] = j + e == cache.pos ? __uint_as_float(cache.newest->v[d]) : 0;
    }
};
template <int D> struct decode_warp<float, D> : decode_lanes<decode_floats<D>, D> {
    using decode_lanes<decode_floats<D>, D>::decode_lanes;
};

#endif
