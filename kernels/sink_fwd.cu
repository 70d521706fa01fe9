// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// A block has ROWS rows of a sequence, so that what it reads of lse for a head is a whole sector.
template <typename T>
static __device__ __forceinline__ void sink_fwd(T *o, float *lse, const T *sink, int B, int S,
                                                int H, int D)
{
    constexpr int ROWS = 8, MOST_HEADS = 256;
    // by row and head: the part of all weights that keys have
    __shared__ float share[ROWS * MOST_HEADS];
    const int64_t b = blockIdx.y;
    const int first = blockIdx.x * ROWS, rows = min(ROWS, S - first), width = H * D;
    for (int i = threadIdx.x; i < ROWS * H; i += NJ_THREADS) {
        const int h = i / ROWS, r = i % ROWS;
        if (r >= rows)
            continue;
        float *at = lse + (b * H + h) * S + first + r;
        const float was = *at, bias = to_f32(sink[h]);
        share[r * H + h] = sigmoid(was - bias);
        *at = fmaxf(was, bias) + logf(1 + exp2_fast(fabsf(was - bias) * -1.44269504f));
    }
    __syncthreads();
    T *row = o + (b * S + first) * width;
    for (int c = threadIdx.x * vec<T>::N; c < rows * width; c += NJ_THREADS * vec<T>::N) {
        vec<T> x;
        x.load(row + c);
        const float its = share[c / D];
#pragma unroll
        for (int i = 0; i < vec<T>::N; i++)
            x.v[i] *= its;
        x.store(row + c);
    }
}
