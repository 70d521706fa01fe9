// SPDX-License-Identifier: Apache-2.0
#include "philox.cuh"
#include "ptx.cuh"

// The best token that a thread has seen. A token can only win if its noise exceeds what it lacks, that is if
// -log(u) lies below exp(x/tau - top): that is tried before any logarithm is taken.
struct sample_best {
    float inv_tau, least;
    float top = -INFINITY;
    int id = -1;

    // -log(u) for u = 1 - (w + 1/2)/2^32, where w is small and where it is not.
    static __device__ __forceinline__ float exponential(uint32_t w)
    {
        const float y = ((float)w + 0.5f) * 0x1p-32f, u = ((float)~w + 0.5f) * 0x1p-32f;
        return y < 0.01f ? y * (1 + y * (0.5f + y * 0.33333333f)) : -__logf(u);
    }
    __device__ __forceinline__ void take(float score, int v)
    {
        if (score > top) {
            top = score;
            id = v;
        }
    }
    __device__ __forceinline__ void offer(float x, uint32_t w, int v)
    {
        const float scaled = x * inv_tau;
        if (!(x >= least) || !((float)w * 0x1p-32f < 1.001f * ex2((scaled - top) * LOG2_E)))
            return;
        take(scaled - __logf(exponential(w)), v);
    }
};

// Lanes hold tokens in no order: of equal scores the lowest token wins.
static __device__ __forceinline__ void sample_merge(float &top, int &id, float other, int other_id)
{
    const bool wins = other > top || (other == top && (unsigned)other_id < (unsigned)id);
    top = wins ? other : top;
    id = wins ? other_id : id;
}

// A block a part of a row.
template <typename T>
static __device__ __forceinline__ void sample(float *score, int *best, const T *x, const float *cut,
                                              const int32_t *slot, const int32_t *number,
                                              const int32_t *pos, int R, int V, int ld, int PARTS,
                                              float tau, int seed_low, int seed_high)
{
    constexpr int N = vec<T>::N, WARPS = NJ_THREADS / 32;
    constexpr uint32_t STREAM = 0x73616d70u;
    __shared__ float warp_top[WARPS];
    __shared__ int warp_id[WARPS];
    const int m = blockIdx.x, part = blockIdx.y, lane = threadIdx.x % 32;
    const int length = ((V - 1) / PARTS + 8) / 8 * 8;
    const int begin = min(V, part * length), end = min(V, begin + length);
    const T *row = x + (int64_t)m * ld;
    const uint32_t at = pos[m], n = number[m];
    sample_best mine = {tau == 0 ? 1.0f : 1 / tau, cut ? cut[m] : -INFINITY};
    for (int c = slot[m] < 0 ? end : begin + (int)threadIdx.x * N; c < end; c += NJ_THREADS * N) {
        vec<T> a;
        a.load(row + c);
#pragma unroll
        for (int q = 0; q < N; q += 4) {
            const int v = c + q;
            if (v >= end)
                break;
            if (tau == 0) {
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (v + i < end && a.v[q + i] >= mine.least)
                        mine.take(a.v[q + i], v + i);
                continue;
            }
            const uint4 w =
                philox(make_uint4(v / 4, at, n, STREAM), make_uint2(seed_low, seed_high));
            mine.offer(a.v[q], w.x, v);
            if (v + 1 < end)
                mine.offer(a.v[q + 1], w.y, v + 1);
            if (v + 2 < end)
                mine.offer(a.v[q + 2], w.z, v + 2);
            if (v + 3 < end)
                mine.offer(a.v[q + 3], w.w, v + 3);
        }
    }
    float top = mine.top;
    int id = mine.id;
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        sample_merge(top, id, __shfl_xor_sync(0xffffffffu, top, d),
                     __shfl_xor_sync(0xffffffffu, id, d));
    if (lane == 0) {
        warp_top[threadIdx.x / 32] = top;
        warp_id[threadIdx.x / 32] = id;
    }
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int i = 1; i < WARPS; i++)
        sample_merge(top, id, warp_top[i], warp_id[i]);
    score[(int64_t)m * PARTS + part] = top;
    best[(int64_t)m * PARTS + part] = id;
}
