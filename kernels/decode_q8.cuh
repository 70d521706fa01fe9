// SPDX-License-Identifier: Apache-2.0
//
// decode_q8.cuh: decode.cuh over a cache of bytes. Tensor cores take the bytes as float16, which represents each
// exactly; the scale of a key multiplies its score, that of a value its probability.
#ifndef NOJIT_DECODE_Q8_CUH
#define NOJIT_DECODE_Q8_CUH

#include "decode.cuh"
#include "kv_levels.cuh"

// The newest key and value, and both rounded to bytes, four per word.
template <typename T, int D> struct decode_newest_q8 {
    decode_newest<T, D> full;
    alignas(16) uint32_t k[D / 4], v[D / 4];
    float2 scales;
};

// The cache of one slot and key head, and the new row.
template <typename T, int D> struct decode_cache_q8 {
    int8_t *k, *v;
    float2 *scales;
    int pos, window;
    decode_places places;
    decode_input<T, D> in;
    decode_newest_q8<T, D> *newest; // in shared memory

    // Returns the position of the first key that the row sees.
    __device__ __forceinline__ int oldest() const { return oldest_here(pos, window); }

    static __device__ __forceinline__ float round(uint32_t *to, const uint32_t *from)
    {
        constexpr int N = (D / 4 + 31) / 32;
        vec<T, 4> x[N] = {};
        const int lane = lane_id();
        float most = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (lane + 32 * i < D / 4)
                x[i].load(reinterpret_cast<const T *>(from) + 4 * (lane + 32 * i));
            most = fmaxf(most, most_of(x[i].v));
        }
        const kv_levels levels(warp_max(most));
#pragma unroll
        for (int i = 0; i < N; i++)
            if (lane + 32 * i < D / 4)
                to[lane + 32 * i] = levels.word(x[i].v);
        return levels.scale;
    }
    // Prepare the newest position; only the one warp that reaches it calls this.
    __device__ __forceinline__ void begin() const
    {
        newest->full.begin(in);
        const float2 both = {round(newest->k, newest->full.k), round(newest->v, newest->full.v)};
        if (lane_id() == 0)
            newest->scales = both;
        __syncwarp();
    }
    __device__ __forceinline__ uint32_t new_value(int d) const
    {
        return newest->v[d / 4] >> d % 4 * 8 & 255;
    }
    __device__ __forceinline__ void store() const
    {
        const int lane = lane_id(), place = pos + places.shift(pos);
        for (int i = lane; i < D / 4; i += 32)
            reinterpret_cast<uint32_t *>(k + (int64_t)place * D)[i] = newest->k[i];
        for (int d = lane; d < D; d += 32)
            v[value_at<D>(place, d)] = new_value(d);
        if (lane == 0)
            scales[place] = newest->scales;
    }
};

// Return a word of values with its byte `left` replaced by the new value, if 0 <= left <= 3.
static __device__ __forceinline__ uint32_t with_byte(uint32_t word, uint32_t byte, int left)
{
    return __byte_perm(word, byte, left < 0 || left > 3 ? 0x3210 : 0x3210 ^ (left ^ 4) << 4 * left);
}

// Convert four signed bytes to float16, exactly: 1024 + 128 + x has x in its last digits.
static __device__ __forceinline__ void widen_bytes(uint32_t (&pairs)[2], uint32_t bytes)
{
    bytes ^= 0x80808080u;
    pairs[0] = sub_f16x2(__byte_perm(bytes, 0x64646464u, 0x4140), 0x64806480u);
    pairs[1] = sub_f16x2(__byte_perm(bytes, 0x64646464u, 0x4342), 0x64806480u);
}

// A warp over a cache of bytes, like decode_warp: a load holds four dims for each of four mma, or four keys for each of
// two.
template <typename T, int D> struct decode_warp_q8 : decode_mma<D> {
    static constexpr int KEYS = CACHE_BLOCK;
    // Probabilities times the scales of their values are rounded to float16. Multiplied by this, they do not overflow
    // for any value that float16 can hold, and values of 1e-4 keep as many digits as in bfloat16.
    static constexpr float LIFT = 64;
    // Values lie in registers in so many parts, one after the other.
    static constexpr int PARTS = D > 128 ? 2 : 1, LOADS = D / 8 / PARTS;
    uint32_t q[D / 64][8];
    decode_queries<T, D, 8, 2> asked[PARTS]; // each of 64 dims and their partners

    // Return the first angle of this lane, which has 16 dims of every 64. If D is 64, their partners belong to another
    // lane, so it loads both.
    static __device__ __forceinline__ int angle() { return lane_id() % 4 * 16 % (D / 2); }
    __device__ __forceinline__ decode_warp_q8(const decode_input<T, D> &in, int first, int heads)
    {
#pragma unroll
        for (int i = 0; i < PARTS; i++)
            asked[i].ask(in, first + min(lane_id() / 4, heads - 1) * D + angle() + 64 * i);
    }
    static __device__ __forceinline__ void pack(uint32_t *to, uint4 from)
    {
        const vec<T> x = vec<T>::of(from);
#pragma unroll
        for (int e = 0; e < 4; e++)
            to[e] = pack2_f16(x.v[2 * e], x.v[2 * e + 1]);
    }
    __device__ __forceinline__ void take(const decode_input<T, D> &in, int pos)
    {
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            asked[i].take(in, pos, angle() + 64 * i);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const head_piece<T> &x = asked[i].x[half];
                if constexpr (D == 64) {
                    pack(q[0] + 4 * half, lane_id() % 4 < 2 ? x.lo : x.hi);
                } else {
                    pack(q[i] + 4 * half, x.lo);
                    pack(q[PARTS + i] + 4 * half, x.hi);
                }
            }
        }
    }
    static __device__ __forceinline__ void load(uint32_t *to, const int8_t *from)
    {
        *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(from);
    }
    // Add a b to c, with 16 rows and 16 columns of k: rows g and g+8 have the bytes a and b.
    static __device__ __forceinline__ void multiply(float (&c)[4], uint32_t a, uint32_t b,
                                                    uint32_t right0, uint32_t right1)
    {
        uint32_t x[2], y[2];
        widen_bytes(x, a);
        widen_bytes(y, b);
        mma16816_f16(c, {x[0], y[0], x[1], y[1]}, right0, right1);
    }
    static __device__ __forceinline__ void
    load_values(uint2 (&v)[LOADS], const decode_cache_q8<T, D> &cache, int j0, int part)
    {
        const int lane = lane_id();
        const int64_t place = j0 + cache.places.shift(j0);
        const int8_t *values = cache.v + place * D + lane / 4 * CACHE_BLOCK + lane % 4 * 8;
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            v[i] = *reinterpret_cast<const uint2 *>(values + 8 * (part * LOADS + i) * CACHE_BLOCK);
    }
    // Put the newest value in place, `left` keys behind the lane's first.
    static __device__ __forceinline__ void
    put_newest_value(uint2 (&v)[LOADS], const decode_cache_q8<T, D> &cache, int part, int left)
    {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const uint32_t byte = cache.new_value(8 * (part * LOADS + i) + lane_id() / 4);
            v[i].x = with_byte(v[i].x, byte, left);
            v[i].y = with_byte(v[i].y, byte, left - 4);
        }
    }
    __device__ __forceinline__ void weigh(const uint32_t (&p)[4], const uint2 (&v)[LOADS], int part)
    {
#pragma unroll
        for (int i = 0; i < LOADS / 2; i++) {
            float(&sums)[4] = this->acc[part * (LOADS / 2) + i];
            multiply(sums, v[2 * i].x, v[2 * i + 1].x, p[0], p[1]);
            multiply(sums, v[2 * i].y, v[2 * i + 1].y, p[2], p[3]);
        }
    }
    __device__ __forceinline__ void step(const decode_cache_q8<T, D> &cache, int j0,
                                         float scale_log2)
    {
        const int g = lane_id() / 4, t = lane_id() % 4, quad = 4 * g;
        const int key = j0 + 8 * (g / 2) + g % 2;       // key for row g of the first eight
        const int place = key + cache.places.shift(j0); // place of that key
        const int8_t *keys = cache.k + (int64_t)place * D + 16 * t;
        alignas(16) uint32_t k[4][D / 16];
        uint2 v[LOADS];
#pragma unroll
        for (int n = 0; n < 4; n++) {
#pragma unroll
            for (int i = 0; i < D / 64; i++)
                load(k[n] + 4 * i, keys + 2 * n * D + 64 * i);
        }
        float2 scales = cache.scales[place + 2 * t]; // scales of this quad's t-th key
        if (PARTS == 1)
            load_values(v, cache, j0, 0); // a whole block
        const bool last = j0 + KEYS > cache.pos, first = j0 < cache.oldest();
        if (last) {
            cache.begin();
#pragma unroll
            for (int n = 0; n < 4; n++) {
                if (key + 2 * n < cache.pos)
                    continue;
#pragma unroll
                for (int i = 0; i < D / 64; i++)
                    load(k[n] + 4 * i,
                         reinterpret_cast<int8_t *>(cache.newest->k) + 64 * i + 16 * t);
            }
            if (key + 2 * t >= cache.pos) // for a later key any finite scale will do
                scales = cache.newest->scales;
            if (PARTS == 1)
                put_newest_value(v, cache, 0, cache.pos - j0 - 8 * t);
        }
        float s[2][4] = {};
#pragma unroll
        for (int i = 0; i < D / 16; i++) {
#pragma unroll
            for (int n = 0; n < 2; n++)
                multiply(s[n], k[2 * n][i], k[2 * n + 1][i], q[i / 4][i % 4 * 2],
                         q[i / 4][i % 4 * 2 + 1]);
        }
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const float factor = __shfl_sync(0xffffffffu, scales.x, quad + n);
            const int j = key + 2 * n;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float &x = s[n / 2][n % 2 * 2 + h];
                x = (last && j > cache.pos) || (first && j < cache.oldest()) ? -INFINITY
                                                                             : x * factor;
            }
        }
        this->softmax(s, scale_log2);
        uint32_t p[4];
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const float factor = __shfl_sync(0xffffffffu, scales.y * LIFT, quad + n);
            p[n] = transposed(
                pack2_f16(s[n / 2][n % 2 * 2] * factor, s[n / 2][n % 2 * 2 + 1] * factor));
        }
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            if (PARTS > 1) {
                load_values(v, cache, j0, part);
                if (last)
                    put_newest_value(v, cache, part, cache.pos - j0 - 8 * t);
            }
            weigh(p, v, part);
        }
    }
    __device__ __forceinline__ void put(decode_shared<decode_mma<D>::ROWS, D> &shared)
    {
#pragma unroll
        for (int i = 0; i < D / 16; i++) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                this->acc[i][e] *= 1 / LIFT;
        }
        decode_mma<D>::put(shared);
    }
};

// Access to the keys and values of a cache of bytes, for float32.
template <int D> struct decode_bytes {
    const decode_cache_q8<float, D> &cache;
    int shift;

    __device__ __forceinline__ decode_bytes(const decode_cache_q8<float, D> &from, int j0)
        : cache(from), shift(from.places.shift(j0))
    {
        if (j0 + 32 > from.pos)
            from.begin();
    }
    __device__ __forceinline__ float2 scales(int j) const
    {
        return j < cache.pos ? cache.scales[j + shift] : cache.newest->scales;
    }
    static __device__ __forceinline__ float byte(uint32_t word, int e)
    {
        return (int32_t)(word << (24 - 8 * e)) >> 24;
    }
    // Return four dims of a key; for a later key, those of the newest.
    __device__ __forceinline__ float4 key(int j, int d) const
    {
        const uint32_t x =
            j < cache.pos ? *reinterpret_cast<uint32_t *>(cache.k + (int64_t)(j + shift) * D + d)
                          : cache.newest->k[d / 4];
        return make_float4(byte(x, 0), byte(x, 1), byte(x, 2), byte(x, 3));
    }
    // Load dim d of four keys' values; beyond the newest they are arbitrary.
    __device__ __forceinline__ void values(float (&x)[4], int d, int j) const
    {
        uint32_t word = *reinterpret_cast<uint32_t *>(cache.v + value_at<D>(j + shift, d));
        if (j + 3 >= cache.pos)
            word = with_byte(word, cache.new_value(d), cache.pos - j);
#pragma unroll
        for (int e = 0; e < 4; e++)
            x[e] = byte(word, e);
    }
};
template <int D> struct decode_warp_q8<float, D> : decode_lanes<decode_bytes<D>, D> {
    using decode_lanes<decode_bytes<D>, D>::decode_lanes;
};

#endif
