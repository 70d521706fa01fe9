// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Return the gradient of a gate from that of its share z, which is dot.
static __device__ __forceinline__ float through_sigmoid(float dot, float z)
{
    return dot * z * (1 - z);
}

// A block has whole heads of a row. For a gate of a head, each thread sums the products of its 16 bytes, and one thread
// adds those of the head in order.
template <typename T>
static __device__ __forceinline__ void gate_bwd(T *dout, T *dg, T *y, const T *dy, const T *o,
                                                const T *g, int N, int C, int D)
{
    constexpr int V = vec<T>::N, MOST = 1024;
    __shared__ float dots[MOST / V];
    const int64_t n = block_from_last(), at = n * C;
    const int whole = MOST / D * D, begin = blockIdx.y * whole, end = min(C, begin + whole);
    g += n * (C / D);
    dg += n * (C / D);
    for (int c = begin + threadIdx.x * V; c < end; c += NJ_THREADS * V) {
        vec<T> d, x, z, slope;
        d.load(dy + at + c);
        x.load(o + at + c);
        if (D == 1) {
            z.load(g + c);
#pragma unroll
            for (int i = 0; i < V; i++)
                z.v[i] = sigmoid(z.v[i]);
        } else {
            const float share = sigmoid(to_f32(g[c / D]));
#pragma unroll
            for (int i = 0; i < V; i++)
                z.v[i] = share;
        }
        float dot = 0;
#pragma unroll
        for (int i = 0; i < V; i++) {
            slope.v[i] = through_sigmoid(d.v[i] * x.v[i], z.v[i]);
            dot = fmaf(d.v[i], x.v[i], dot);
            d.v[i] *= z.v[i];
            x.v[i] *= z.v[i];
        }
        if (D == 1)
            slope.store(dg + c);
        else
            dots[(c - begin) / V] = dot;
        d.store(dout + at + c);
        if (y)
            x.store(y + at + c);
    }
    if (D == 1)
        return;
    __syncthreads();
    for (int h = threadIdx.x; h < (end - begin) / D; h += NJ_THREADS) {
        float dot = 0;
        for (int k = 0; k < D / V; k++)
            dot += dots[h * (D / V) + k];
        const int head = begin / D + h;
        dg[head] = from_f32<T>(through_sigmoid(dot, sigmoid(to_f32(g[head]))));
    }
}
