// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Return the token of a row: that of its best part, the lowest among equals; -1 if no part has one.
static __device__ __forceinline__ int best_part(const float *score, const int *best, int PARTS)
{
    float top = -INFINITY;
    int id = -1;
    for (int p = 0; p < PARTS; p++) {
        const float s = score[p];
        const int b = best[p];
        if (b >= 0 && (id < 0 || s > top || (s == top && b < id))) {
            top = s;
            id = b;
        }
    }
    return id;
}

// One block takes all rows, so that the step is counted once all rows have used it.
template <typename T>
static __device__ __forceinline__ void
sample_next(int *out, int *ids, int *pos, int *left, int *slot, int *counter, const float *score,
            const int *best, const int *stop, int R, int PARTS, int W)
{
    const int step = counter[0];
    for (int m = threadIdx.x; m < R; m += NJ_THREADS) {
        const bool idle = slot[m] < 0;
        const int64_t at = (int64_t)m * PARTS;
        const int id = idle ? -1 : best_part(score + at, best + at, PARTS);
        int ends = id < 0 || left[m] <= 1;
#pragma unroll
        for (int i = 0; i < 8; i++)
            ends |= id == stop[i];
        if (step >= 0 && step < W)
            out[(int64_t)step * R + m] = id;
        if (idle)
            continue;
        if (ends) {
            slot[m] = -1;
        } else {
            ids[m] = id;
            pos[m]++;
            left[m]--;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0)
        counter[0] = step + 1;
}
