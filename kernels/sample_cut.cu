// SPDX-License-Identifier: Apache-2.0
#include "ptx.cuh"

constexpr int BITS = 11, BINS = 1 << BITS, OF_A_THREAD = BINS / NJ_THREADS;

// Return the rank of a value in the order of all floats.
static __device__ __forceinline__ uint32_t place_of(float x)
{
    const uint32_t bits = __float_as_uint(x);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// A histogram of 64-bit sums in two halves: shared memory adds 32 bits in one instruction, but 64 in a loop.
struct histogram {
    uint32_t low[BINS], high[BINS];
    uint64_t warp[NJ_THREADS / 32], before;
    int found;
};

// Weights for top_k: each token counts 1. The sum never reaches the upper half.
struct tokens {
    uint64_t k;

    __device__ __forceinline__ void add(histogram &h, uint32_t bin, float) const
    {
        atomicAdd(&h.low[bin], 1);
    }
    __device__ __forceinline__ uint64_t enough(uint64_t) const { return k; }
};

// Weights for top_p: 2^40 times exp((x - top) / tau), truncated, if top_k keeps the token.
struct masses {
    float top, least, factor; // factor: log2(e) / tau
    uint64_t part;            // 2^32 top_p

    __device__ __forceinline__ void add(histogram &h, uint32_t bin, float x) const
    {
        const float e = x >= least ? ex2(x == top ? 0 : (x - top) * factor) : 0;
        uint32_t high = __float2uint_rz(e * 0x1p8f);
        const uint32_t low = __float2uint_rz(fmaf(e, 0x1p40f, (float)high * -0x1p32f));
        if ((low | high) == 0)
            return;
        const uint32_t before = atomicAdd(&h.low[bin], low);
        high += before + low < before;
        if (high)
            atomicAdd(&h.high[bin], high);
    }
    // Return all part / 2^32, rounded up, and at least 1, so that one token remains.
    __device__ __forceinline__ uint64_t enough(uint64_t all) const
    {
        const uint64_t of_low = ((all & 0xffffffffu) * part + 0xffffffffu) >> 32;
        return max((uint64_t)1, (all >> 32) * part + of_low);
    }
};

// Call f for the logits of a row; NaN counts as -inf.
template <typename T, typename F>
static __device__ __forceinline__ void each(const T *row, int V, F f)
{
    constexpr int N = vec<T>::N, STEP = NJ_THREADS * N;
    int v = threadIdx.x * N;
    typename vec<T>::raw next;
    if (v < V)
        next = vec<T>::read(row + v);
#pragma unroll 1
    for (; v < V; v += STEP) {
        const vec<T> a = vec<T>::of(next);
        if (v + STEP < V)
            next = vec<T>::read(row + v + STEP);
#pragma unroll
        for (int i = 0; i < N; i++)
            if (v + i < V)
                f(fmaxf(a.v[i], -INFINITY));
    }
}

// Return the sum over the threads before this one, and set `all` to the sum over all threads.
static __device__ __forceinline__ uint64_t sum_before(histogram &h, uint64_t mine, uint64_t &all)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint64_t sum = mine;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        const uint64_t other = __shfl_sync(0xffffffffu, sum, (lane - d) & 31);
        sum += lane >= d ? other : 0;
    }
    if (lane == 31)
        h.warp[warp] = sum;
    __syncthreads();
    sum -= mine;
    all = 0;
    for (int i = 0; i < NJ_THREADS / 32; i++) {
        sum += i < warp ? h.warp[i] : 0;
        all += h.warp[i];
    }
    return sum;
}

// Return the highest value such that the tokens of a row from it upwards have enough weight. It is found BITS of its
// rank at a time; a rank of a 16-bit type has at most 19 significant bits, and equal ones after them.
template <typename T, typename C>
static __device__ __forceinline__ float highest(histogram &h, const T *row, int V, const C &count)
{
    constexpr int PASSES = sizeof(T) == 2 ? 2 : 3;
    uint32_t place = 0; // its leading bits, found so far
    uint64_t target = 0, above = 0;
#pragma unroll 1
    for (int pass = 0; pass < PASSES; pass++) {
        const int shift = max(0, 32 - BITS * (pass + 1)), width = pass < 2 ? BITS : 32 - 2 * BITS;
        for (int i = threadIdx.x; i < BINS; i += NJ_THREADS)
            h.low[i] = h.high[i] = 0;
        __syncthreads();
        each(row, V, [&](float x) {
            const uint32_t at = place_of(x) >> shift;
            if (pass == 0 || at >> width == place)
                count.add(h, at & ((1u << width) - 1), x);
        });
        __syncthreads();
        const int first = BINS - 1 - threadIdx.x * OF_A_THREAD; // thread 0 has the highest bins
        uint64_t of[OF_A_THREAD], mine = 0, all;
#pragma unroll
        for (int i = 0; i < OF_A_THREAD; i++)
            mine += of[i] = (uint64_t)h.high[first - i] << 32 | h.low[first - i];
        uint64_t sum = above + sum_before(h, mine, all);
        if (pass == 0)
            target = count.enough(all);
#pragma unroll
        for (int i = 0; i < OF_A_THREAD; i++) {
            if (sum < target && target <= sum + of[i]) {
                h.found = first - i;
                h.before = sum;
            }
            sum += of[i];
        }
        __syncthreads();
        place = place << width | h.found;
        above = h.before;
    }
    const int rest = max(0, 32 - BITS * PASSES);
    const uint32_t bits = place >> (31 - rest) ? (place << rest) ^ 0x80000000u : ~place << rest;
    return __uint_as_float(bits);
}

template <typename T>
static __device__ __forceinline__ void sample_cut(float *cut, const T *x, const int32_t *slot,
                                                  int R, int V, int ld, float tau, int top_k,
                                                  float top_p, float min_p)
{
    __shared__ histogram h;
    const int m = blockIdx.x;
    const T *row = x + (int64_t)m * ld;
    if (slot[m] < 0) {
        if (threadIdx.x == 0)
            cut[m] = INFINITY;
        return;
    }
    float top = -INFINITY, least = -INFINITY;
    each(row, V, [&](float x) { top = fmaxf(top, x); });
    top = block_max<T>(top);
    if (tau == 0)
        least = top;
    else if (top_k > 0 && top_k < V)
        least = highest(h, row, V, tokens{(uint64_t)top_k});
    float lower = least;
    if (tau != 0 && top_p < 1) {
        const masses m = {top, least, LOG2_E / tau, __float2uint_rz(top_p * 0x1p32f)};
        lower = highest(h, row, V, m);
    }
    if (tau != 0 && min_p > 0)
        lower = fmaxf(lower, top + tau * logf(min_p));
    if (threadIdx.x == 0)
        cut[m] = fminf(lower, top);
}
