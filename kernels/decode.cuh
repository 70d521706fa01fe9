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
    float acc[WARPS][ROWS][D + 8], top[WARPS][ROWS], sum[WARPS][ROWS];
};

// 16-bit: tensor cores, with K and V in registers as they come from memory, 16 bytes a load. With
// g = lane/4, t = lane%4, column 8n+2t+j of the scores of KEYS keys stands for key 8t+2n+j, and
// columns 2t, 2t+1, 2t+8, 2t+9 of a product's k for dims 8t to 8t+3, in the next product 8t+4 to
// 8t+7. So a lane's load holds what two products want of it, and its scores, once they are
// probabilities, are the left factor for the values that it has loaded.
template <typename T, int D> struct decode_warp {
    static constexpr int ROWS = 16, KEYS = 32,
                         AHEAD = 8; // tiles of values on their way before the scores
    uint4 q[D / 32][2];
    acc16<T, D> acc;
    softmax16 soft;

    // Query heads from q on; rows beyond the last repeat it.
    __device__ __forceinline__ decode_warp(const T *head, int heads)
    {
        const int g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
        for (int i = 0; i < D / 32; i++) {
#pragma unroll
            for (int r = 0; r < 2; r++)
                q[i][r] = vec<T>::read(head + min(g + 8 * r, heads - 1) * D + 32 * i + 8 * t);
        }
        acc.zero();
        soft = {{-INFINITY, -INFINITY}, {0, 0}};
    }
    // Zeros beyond the newest position, and there the value of the row: which bytes of a word of the
    // cache and of the new element to take.
    static __device__ __forceinline__ uint32_t picked(int left)
    {
        return left >= 2 ? 0x3210 : left == 1 ? 0x5410 : left == 0 ? 0x7654 : 0x7676;
    }
    // Keys from j0 on, of which the first exists.
    __device__ __forceinline__ void step(const decode_cache<T> &cache, int j0, float scale_log2)
    {
        const int g = lane_id() / 4, t = lane_id() % 4;
        uint4 k[KEYS / 8][D / 32], v[D / 8];
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++) {
            const int j = j0 + 8 * (g / 2) + 2 * n + g % 2;
            const T *key = (j < cache.pos ? cache.k + (int64_t)j * D : cache.new_k) + 8 * t;
#pragma unroll
            for (int i = 0; i < D / 32; i++)
                k[n][i] = vec<T>::read(key + 32 * i);
        }
        const T *values = cache.v + (int64_t)g * cache.P + j0 + 8 * t;
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            v[i] = vec<T>::read(values + (int64_t)8 * i * cache.P);
        const bool last = j0 + KEYS > cache.pos;
        float s[KEYS / 8][4], factor[2];
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++) {
            s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
#pragma unroll
            for (int i = 0; i < D / 32; i++) {
                const uint4 a = q[i][0], b = q[i][1], w = k[n][i];
                mma16816(s[n], {a.x, b.x, a.y, b.y}, w.x, w.y);
                mma16816(s[n], {a.z, b.z, a.w, b.w}, w.z, w.w);
            }
        }
#pragma unroll
        for (int i = AHEAD; i < D / 8; i++)
            v[i] = vec<T>::read(values + (int64_t)8 * i * cache.P);
        if (last) {
            const int left = cache.pos - j0 - 8 * t; // keys of this lane before the newest
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    if (2 * n + e % 2 > left)
                        s[n][e] = -INFINITY;
            }
            const uint16_t *row = reinterpret_cast<const uint16_t *>(cache.new_v) + g;
#pragma unroll
            for (int i = 0; i < D / 8; i++) {
                const uint32_t x = row[8 * i];
                v[i].x = __byte_perm(v[i].x, x, picked(left));
                v[i].y = __byte_perm(v[i].y, x, picked(left - 2));
                v[i].z = __byte_perm(v[i].z, x, picked(left - 4));
                v[i].w = __byte_perm(v[i].w, x, picked(left - 6));
            }
        }
        soft.step(s, scale_log2, factor);
        acc.multiply(factor[0], factor[1]);
        uint32_t p[KEYS / 8][2];
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++) {
            p[n][0] = pack2(s[n][0], s[n][1]);
            p[n][1] = pack2(s[n][2], s[n][3]);
        }
#pragma unroll
        for (int i = 0; i < D / 8; i++) {
            mma16816(acc.c[i], {p[0][0], p[0][1], p[1][0], p[1][1]}, v[i].x, v[i].y);
            mma16816(acc.c[i], {p[2][0], p[2][1], p[3][0], p[3][1]}, v[i].z, v[i].w);
        }
    }
    __device__ __forceinline__ void put(decode_shared<ROWS, D> &shared, float scale_log2) const
    {
        const int warp = threadIdx.x / 32, g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = g + 8 * r;
            const float sum = quad_sum(soft.sum[r]);
            if (t == 0) {
                shared.top[warp][row] = soft.top[r] * scale_log2;
                shared.sum[warp][row] = sum;
            }
#pragma unroll
            for (int i = 0; i < D / 8; i++)
                store2(&shared.acc[warp][row][8 * i + 2 * t], acc.c[i][2 * r], acc.c[i][2 * r + 1]);
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
    __device__ __forceinline__ void put(decode_shared<ROWS, D> &shared, float) const
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
