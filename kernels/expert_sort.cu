// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

static __device__ __forceinline__ int warp_total(int x)
{
#pragma unroll
    for (int d = 16; d > 0; d >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

// A warp has a stretch of the pairs. It counts those of lower experts and those of the block's expert, and when all
// warps have done so, it gives each of the latter its place.
template <typename T>
static __device__ __forceinline__ void expert_sort(int *first, int *row, int *place,
                                                   const int *chosen, int N, int E, int J)
{
    constexpr int WARPS = NJ_THREADS / 32, UNROLL = 8;
    __shared__ int lower[WARPS], equal[WARPS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, mine = blockIdx.x;
    const int pairs = N * J, stretch = (pairs + NJ_THREADS - 1) / NJ_THREADS * 32;
    const int begin = min(pairs, warp * stretch), end = min(pairs, begin + stretch);
    int less = 0, same = 0;
    for (int from = begin; from < end; from += 32 * UNROLL) {
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const int p = from + lane + 32 * k, e = p < end ? chosen[p] : -1;
            less += e >= 0 && e < mine;
            same += e == mine;
            if (mine == 0 && p < end && e < 0)
                place[p] = -1;
        }
    }
    less = warp_total(less);
    same = warp_total(same);
    if (lane == 0) {
        lower[warp] = less;
        equal[warp] = same;
    }
    __syncthreads();
    int start = 0, before = 0, all = 0;
    for (int w = 0; w < WARPS; w++) {
        start += lower[w];
        before += w < warp ? equal[w] : 0;
        all += equal[w];
    }
    if (threadIdx.x == 0)
        first[mine] = start;
    int at = start + before;
    for (int from = begin; from < end && same > 0; from += 32 * UNROLL) {
        int e[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const int p = from + lane + 32 * k;
            e[k] = p < end ? chosen[p] : -1;
        }
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const uint32_t its = __ballot_sync(0xffffffffu, e[k] == mine);
            const int p = from + lane + 32 * k, to = at + __popc(its & ((1u << lane) - 1));
            if (e[k] == mine) {
                place[p] = to;
                row[to] = p / J;
            }
            at += __popc(its);
        }
    }
    if (mine < E - 1)
        return;
    if (threadIdx.x == 0)
        first[E] = start + all;
    for (int p = start + all + threadIdx.x; p < pairs; p += NJ_THREADS)
        row[p] = -1;
}
