// SPDX-License-Identifier: Apache-2.0
//
// decode.cuh: one new query over the keys of a cache, for attn_decode and attn_decode_merge. A warp
// takes KEYS keys at a time for ROWS query heads of one key head, with an online softmax of its own.
#ifndef NOJIT_DECODE_CUH
#define NOJIT_DECODE_CUH

#include "decode.h"
#include "mma.cuh"

// Two neighbours of a row of results.
static __device__ __forceinline__ void store2(float *p, float x, float y)
{
    *reinterpret_cast<float2 *>(p) = make_float2(x, y);
}
static __device__ __forceinline__ void store2(lp *p, float x, float y)
{
    *reinterpret_cast<uint32_t *>(p) = pack2(x, y);
}

// A sum over parts in a fixed order, each with a maximum of its own; TOP(i), SUM(i) and VALUE(i) are
// those of part i. A single part stays as it is, bit for bit.
struct decode_sum {
    float top, sum, x, y;

    template <typename Top, typename Sum, typename Value>
    __device__ __forceinline__ decode_sum(int parts, Top part_top, Sum part_sum, Value part_value)
        : top(part_top(0)), sum(0), x(0), y(0)
    {
        for (int i = 1; i < parts; i++)
            top = fmaxf(top, part_top(i));
        for (int i = 0; i < parts; i++) {
            const float factor = ex2(part_top(i) - top);
            const float2 value = part_value(i);
            sum += factor * part_sum(i);
            x += factor * value.x;
            y += factor * value.y;
        }
    }
    template <typename T> __device__ __forceinline__ void store(T *p) const
    {
        store2(p, x / sum, y / sum);
    }
};

// Keys and values of one slot and key head. The newest position is not in the cache yet: its key and value are
// those of the row.
template <typename T> struct decode_cache {
    const T *k, *v, *new_k, *new_v;
    int pos, P;
};

// What the warps of a block leave for the others.
template <int ROWS, int D> struct decode_shared {
    static constexpr int WARPS = NJ_THREADS / 32;
    float acc[WARPS][ROWS][D + 4], top[WARPS][ROWS], sum[WARPS][ROWS];
};

// 16-bit: tensor cores, with K and V in registers as they come from memory, 16 bytes per load. Keys are
// the rows of the scores and dims those of the output; heads are the columns of both, so that up to 8
// of them waste nothing. With g = lane/4, t = lane%4, row g of the n-th eight rows of scores stands for
// key 8(g/2)+2n+g%2, and rows 2t, 2t+1, 2t+8, 2t+9 of the right operand for dims 8t to 8t+3, in the
// next mma for 8t+4 to 8t+7. So one load of a lane has what it gives to two of them, and its scores,
// once they are probabilities and transposed, are the right operand for the values that it has loaded.
template <typename T, int D> struct decode_warp {
    static constexpr int ROWS = 8, KEYS = 32;
    uint4 q[D / 32];
    float acc[D / 16][4], top[2], sum[2];

    // Query heads from the first on; columns beyond the last repeat it.
    __device__ __forceinline__ decode_warp(const T *head, int heads)
    {
#pragma unroll
        for (int i = 0; i < D / 32; i++)
            q[i] =
                vec<T>::read(head + min(lane_id() / 4, heads - 1) * D + 32 * i + lane_id() % 4 * 8);
#pragma unroll
        for (int i = 0; i < D / 16; i++)
            acc[i][0] = acc[i][1] = acc[i][2] = acc[i][3] = 0;
        top[0] = top[1] = -INFINITY;
        sum[0] = sum[1] = 0;
    }
    // Which bytes of a word of values and of the new value to take, `left` keys before the newest: its
    // own value for that, zeros behind it.
    static __device__ __forceinline__ uint32_t picked(int left)
    {
        return left >= 2 ? 0x3210 : left == 1 ? 0x5410 : left == 0 ? 0x7654 : 0x7676;
    }
    // Keys from j0 on, of which the first exists.
    __device__ __forceinline__ void step(const decode_cache<T> &cache, int j0, float scale_log2)
    {
        const int g = lane_id() / 4, t = lane_id() % 4;
        uint4 k[4][D / 32], v[D / 8];
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const int j = j0 + 8 * (g / 2) + 2 * n + g % 2;
            const T *key = (j < cache.pos ? cache.k + (int64_t)j * D : cache.new_k) + 8 * t;
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                k[n][i] = vec<T>::read(key + 32 * i);
        }
        const T *values = cache.v + (int64_t)g * cache.P + j0 + 8 * t;
#pragma unroll
        for (int i = 0; i < D / 8; i++)
            v[i] = vec<T>::read(values + (int64_t)8 * i * cache.P);
        float s[2][4] = {};
#pragma unroll
        for (int i = 0; i < D / 32; i++) {
#pragma unroll
            for (int n = 0; n < 2; n++) {
                const uint4 a = k[2 * n][i], b = k[2 * n + 1][i];
                mma16816(s[n], {a.x, b.x, a.y, b.y}, q[i].x, q[i].y);
                mma16816(s[n], {a.z, b.z, a.w, b.w}, q[i].z, q[i].w);
            }
        }
        if (j0 + KEYS > cache.pos) {
            const int row = cache.pos - j0 - 8 * (g / 2) - g % 2, left = cache.pos - j0 - 8 * t;
#pragma unroll
            for (int n = 0; n < 2; n++) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    if (4 * n + e / 2 * 2 > row)
                        s[n][e] = -INFINITY;
            }
            const uint16_t *value = reinterpret_cast<const uint16_t *>(cache.new_v) + g;
#pragma unroll
            for (int i = 0; i < D / 8; i++) {
                const uint32_t x = value[8 * i];
                v[i].x = __byte_perm(v[i].x, x, picked(left));
                v[i].y = __byte_perm(v[i].y, x, picked(left - 2));
                v[i].z = __byte_perm(v[i].z, x, picked(left - 4));
                v[i].w = __byte_perm(v[i].w, x, picked(left - 6));
            }
        }
        softmax(s, scale_log2);
        uint32_t p[4];
#pragma unroll
        for (int n = 0; n < 4; n++)
            p[n] = transposed(pack2(s[n / 2][n % 2 * 2], s[n / 2][n % 2 * 2 + 1]));
#pragma unroll
        for (int i = 0; i < D / 16; i++) {
            const uint4 a = v[2 * i], b = v[2 * i + 1];
            mma16816(acc[i], {a.x, b.x, a.y, b.y}, p[0], p[1]);
            mma16816(acc[i], {a.z, b.z, a.w, b.w}, p[2], p[3]);
        }
    }
    // Scores become probabilities under the maximum so far, which what was added up before follows.
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

// float32: plain multiply-adds. A lane takes a key for the scores and every 32nd dim of the values.
template <int D> struct decode_warp<float, D> {
    static constexpr int ROWS = 8, KEYS = 32;
    const float *q[ROWS];
    float acc[ROWS][D / 32], top[ROWS], sum[ROWS];

    __device__ __forceinline__ decode_warp(const float *head, int heads)
    {
#pragma unroll
        for (int h = 0; h < ROWS; h++) {
            q[h] = head + min(h, heads - 1) * D;
            top[h] = -INFINITY;
            sum[h] = 0;
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                acc[h][i] = 0;
        }
    }
    __device__ __forceinline__ void step(const decode_cache<float> &cache, int j0, float scale_log2)
    {
        const int j = j0 + lane_id();
        const float *key = j < cache.pos ? cache.k + (int64_t)j * D : cache.new_k;
        float p[ROWS] = {};
        for (int d = 0; d < D; d += 4) {
            const float4 x = *reinterpret_cast<const float4 *>(key + d);
#pragma unroll
            for (int h = 0; h < ROWS; h++)
                p[h] += dot4(*reinterpret_cast<const float4 *>(q[h] + d), x);
        }
#pragma unroll
        for (int h = 0; h < ROWS; h++) {
            const float s = j <= cache.pos ? p[h] * scale_log2 : -INFINITY;
            const float next = fmaxf(top[h], warp_max(s)), factor = ex2(top[h] - next);
            p[h] = ex2(s - next);
            top[h] = next;
            sum[h] = sum[h] * factor + p[h];
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                acc[h][i] *= factor;
        }
        for (int n = 0; n < KEYS && j0 + n <= cache.pos; n += 4)
            add(cache, j0 + n, p);
    }
    // Adds four values from j0 on; p are the probabilities of the keys that the lanes have.
    __device__ __forceinline__ void add(const decode_cache<float> &cache, int j0,
                                        const float (&p)[ROWS])
    {
        float x[D / 32][4];
#pragma unroll
        for (int i = 0; i < D / 32; i++) {
            const int d = lane_id() + 32 * i;
            const float4 v = *reinterpret_cast<const float4 *>(cache.v + (int64_t)d * cache.P + j0);
            x[i][0] = v.x, x[i][1] = v.y, x[i][2] = v.z, x[i][3] = v.w;
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (j0 + e >= cache.pos)
                    x[i][e] = j0 + e == cache.pos ? cache.new_v[d] : 0;
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
#pragma unroll
            for (int h = 0; h < ROWS; h++) {
                const float y = __shfl_sync(0xffffffffu, p[h], j0 % KEYS + e);
#pragma unroll
                for (int i = 0; i < D / 32; i++)
                    acc[h][i] += y * x[i][e];
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

#endif
