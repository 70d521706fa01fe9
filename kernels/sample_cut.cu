// SPDX-License-Identifier: Apache-2.0
#include "ptx.cuh"

// Floats in their order: a place for each, whose upper bits alone count for a 16-bit type.
template <typename T> struct cut_places {
    static constexpr int BITS = sizeof(T) == 4 ? 32 : NJ_SM75 ? 20 : 16;
    static constexpr uint32_t REST = BITS == 32 ? 0 : 0xffffffffu >> (BITS % 32);

    // Beyond the infinities places go on.
    static __device__ __forceinline__ float value(uint32_t place)
    {
        const float x = __uint_as_float(place >> 31 ? place ^ 0x80000000u : ~place);
        if (x != x)
            return place >> 31 ? INFINITY : -INFINITY;
        return x;
    }
    // The value of the type that a place of its upper bits is: a negative one lies at the other
    // end of those that share them.
    static __device__ __forceinline__ float exact(uint32_t place)
    {
        return value(place >> 31 ? place : place | REST);
    }
};

// A row of logits, of which those from `least` on count: 1 each, or exp((x - top) / tau).
template <typename T> struct cut_row {
    const T *row;
    int V;
    float least, top, per_tau;

    // What the tokens from each of three values on count, the same in every thread.
    template <bool MASS>
    __device__ __forceinline__ void measure(const float (&from)[3], float (&sum)[3]) const
    {
        constexpr int N = vec<T>::N;
        sum[0] = sum[1] = sum[2] = 0;
        for (int c = threadIdx.x * N; c < V; c += NJ_THREADS * N) {
            vec<T> a;
            a.load(row + c);
#pragma unroll
            for (int i = 0; i < N; i++) {
                const float x = c + i < V ? fmaxf(a.v[i], -INFINITY) : NAN; // NaN counts as -inf
                const float w = MASS ? (x >= least ? ex2((x - top) * per_tau) : 0.0f) : 1.0f;
#pragma unroll
                for (int k = 0; k < 3; k++)
                    sum[k] += x >= from[k] ? w : 0.0f;
            }
        }
#pragma unroll
        for (int k = 0; k < 3; k++)
            sum[k] = block_sum(sum[k]);
    }
    // The highest value from which on they count `enough`: two bits of its place at a time.
    template <bool MASS> __device__ __forceinline__ float highest(float enough) const
    {
        uint32_t place = 0;
#pragma unroll 1
        for (int shift = 30; shift >= 32 - cut_places<T>::BITS; shift -= 2) {
            float from[3], sum[3];
#pragma unroll
            for (uint32_t k = 0; k < 3; k++)
                from[k] = cut_places<T>::value(place | (k + 1) << shift);
            measure<MASS>(from, sum);
            const uint32_t digit = (sum[0] >= enough) + (sum[1] >= enough) + (sum[2] >= enough);
            place |= digit << shift;
        }
        return cut_places<T>::exact(place);
    }
};

// A block a row.
template <typename T>
static __device__ __forceinline__ void sample_cut(float *cut, const T *x, const int32_t *slot,
                                                  int R, int V, int ld, float tau, int top_k,
                                                  float top_p, float min_p)
{
    constexpr int N = vec<T>::N;
    const int m = blockIdx.x;
    const T *row = x + (int64_t)m * ld;
    if (slot[m] < 0) {
        if (threadIdx.x == 0)
            cut[m] = INFINITY;
        return;
    }
    float top = -INFINITY;
    for (int c = threadIdx.x * N; c < V; c += NJ_THREADS * N) {
        vec<T> a;
        a.load(row + c);
#pragma unroll
        for (int i = 0; i < N; i++)
            top = c + i < V ? fmaxf(top, a.v[i]) : top;
    }
    top = block_max(top);
    cut_row<T> all = {row, V, -INFINITY, top, LOG2_E / tau};
    float lower = top;
    if (tau != 0) {
        if (top_k > 0 && top_k < V)
            all.least = all.template highest<false>((float)top_k);
        lower = all.least;
        if (top_p < 1) {
            const float everything[3] = {-INFINITY, INFINITY, INFINITY};
            float sum[3];
            all.template measure<true>(everything, sum);
            lower = all.template highest<true>(top_p * sum[0]);
        }
        if (min_p > 0)
            lower = fmaxf(lower, top + tau * logf(min_p));
    }
    if (threadIdx.x == 0)
        cut[m] = fminf(lower, top);
}
