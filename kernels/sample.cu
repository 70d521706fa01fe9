// SPDX-License-Identifier: Apache-2.0
#include "argmax.cuh"

// Walks value(i) from begin to end, adding to sum, and returns the i whose value takes the sum
// above target, with sum as it was before i. If rounding left the sum short: the last i that has a
// value above 0.
template <typename F>
static __device__ __forceinline__ int walk(int begin, int end, double target, double &sum, F value)
{
    int last = begin;
    double before = sum;
#pragma unroll 1
    for (int i = begin; i < end; i++) {
        const double x = value(i);
        if (x > 0) {
            last = i;
            before = sum;
            if (sum + x > target)
                break;
        }
        sum += x;
    }
    sum = before;
    return last;
}

// The weight of a token whose logit is x: 1 for the largest. Less than min_p counts as nothing.
static __device__ __forceinline__ float weight(float x, float top, float tau, float min_p)
{
    const float e = expf((x - top) / tau);
    return e < min_p ? 0.0f : e;
}

// A block a row. A thread sums a run of tokens in double; thread 0 adds the runs in order, finds
// the one in which the target falls, and walks it.
template <typename T>
static __device__ __forceinline__ void sample(int *ids, const T *x, const float *u, int M, int V,
                                              int ld, float tau, float min_p)
{
    constexpr int N = vec<T>::N, SEGMENTS = 32, RUNS = NJ_THREADS / SEGMENTS;
    __shared__ double runs[NJ_THREADS], segments[SEGMENTS];
    const T *row = x + (int64_t)blockIdx.x * ld;

    scan_max mine;
#pragma unroll 4
    for (int c = threadIdx.x * N; c < V; c += NJ_THREADS * N) {
        vec<T> a;
        a.load(row + c);
        mine.take(a, c, V);
    }
    float top;
    const int best = block_argmax(mine, row, V, top);
    if (tau == 0) {
        if (threadIdx.x == 0)
            ids[blockIdx.x] = best;
        return;
    }

    const int length = (V + NJ_THREADS * N - 1) / (NJ_THREADS * N) * N;
    const int begin = min(V, (int)threadIdx.x * length), end = min(V, begin + length);
    double sum = 0;
#pragma unroll 1
    for (int c = begin; c < end; c += N) {
        vec<T> a;
        a.load(row + c);
#pragma unroll
        for (int i = 0; i < N; i++)
            if (c + i < end)
                sum += weight(a.v[i], top, tau, min_p);
    }
    runs[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < SEGMENTS) {
        sum = 0;
        for (int i = 0; i < RUNS; i++)
            sum += runs[threadIdx.x * RUNS + i];
        segments[threadIdx.x] = sum;
    }
    __syncthreads();
    if (threadIdx.x != 0)
        return;

    double total = 0;
    for (int i = 0; i < SEGMENTS; i++)
        total += segments[i];
    const double target = u[blockIdx.x] * total;
    sum = 0;
    const int segment = walk(0, SEGMENTS, target, sum, [&](int i) { return segments[i]; });
    const int run =
        walk(segment * RUNS, (segment + 1) * RUNS, target, sum, [&](int i) { return runs[i]; });
    ids[blockIdx.x] = walk(min(V - 1, run * length), min(V, (run + 1) * length), target, sum,
                           [&](int v) { return (double)weight(to_f32(row[v]), top, tau, min_p); });
}
