// SPDX-License-Identifier: Apache-2.0
//
// gemv.cuh: product of a few rows x and a matrix. It is bound by reading the weights, which happens once: a warp takes
// ROWS rows of them, and its lanes take 16-byte chunks of each row in turn, UNROLL at a time. The first loads are
// issued before x is ready. The order of a sum depends on the number of columns only, so the result for a row has the
// same bits for every M.
#ifndef NOJIT_GEMV_CUH
#define NOJIT_GEMV_CUH

#include "begin.cuh"
#include "ptx.cuh"

// Weights are loaded before the previous kernel has ended, so that kernel must not write them.
#undef NJ_BEGIN
#define NJ_BEGIN()

// Return `row`, or the last row in place of one beyond it.
static __device__ __forceinline__ int64_t row_below(int64_t row, int N)
{
    return row < N ? row : N - 1;
}

// Dot products of M rows of x with ROWS rows of the weights.
template <typename T, int M, int ROWS, int UNROLL> struct gemv_sums {
    static constexpr int V = vec<T>::N;
    uint4 tile[ROWS][UNROLL];
    float acc[ROWS][M];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int m = 0; m < M; m++)
                acc[r][m] = 0;
    }

    // Load chunks at, at + 32, ... of the rows weights(r), up to `end`.
    template <typename W> __device__ __forceinline__ void fetch(W weights, int at, int end)
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const T *p = weights(r) + (int64_t)at * V;
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                tile[r][u] = load_once(p + u * 32 * V, at + u * 32 < end);
        }
    }

    // Add the products of the loaded chunks with the same chunks of x: x(m, c) is chunk c of row m.
    template <typename X> __device__ __forceinline__ void add(X x, int at, int end)
    {
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int c = min(at + u * 32, end - 1); // beyond the last chunk the weights are 0
            vec<T> w[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                w[r].set(tile[r][u]);
#pragma unroll
            for (int m = 0; m < M; m++) {
                const vec<T> a = vec<T>::of(x(m, c));
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    float sum = a.v[0] * w[r].v[0];
#pragma unroll
                    for (int i = 1; i < V; i++)
                        sum += a.v[i] * w[r].v[i];
                    acc[r][m] += sum;
                }
            }
        }
    }

    // Reduce the sums over the lanes. Lane r M + m gets the sum of rows r and m.
    __device__ __forceinline__ float finish()
    {
        float mine = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int m = 0; m < M; m++) {
                acc[r][m] = warp_sum(acc[r][m]);
                if (threadIdx.x % 32 == r * M + m)
                    mine = acc[r][m];
            }
        return mine;
    }
};

template <typename T> static __device__ __forceinline__ float sum_of_squares(uint4 bits)
{
    const vec<T> a = vec<T>::of(bits);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < vec<T>::N; i++)
        sum += a.v[i] * a.v[i];
    return sum;
}

template <typename T>
static __device__ __forceinline__ uint4 normed_chunk(uint4 x, uint4 gain, float r, float offset)
{
    vec<T> a = vec<T>::of(x);
    const vec<T> g = vec<T>::of(gain);
#pragma unroll
    for (int i = 0; i < vec<T>::N; i++)
        a.v[i] = a.v[i] * r * (g.v[i] + offset);
    return a.bits();
}

// Return 1 / x within 2^-23.
static __device__ __forceinline__ float rcp_fast(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Store the M rows of x, normalized and rounded, in h; the whole block takes part. Until then h holds the sums of the
// warps: at 8192 channels four rows take all the shared memory of sm_75.
template <typename T, int M>
static __device__ __forceinline__ void norm_into_shared(uint4 *h, const T *x, const T *g, int C,
                                                        float eps, float offset)
{
    constexpr int V = vec<T>::N, WARPS = NJ_THREADS / 32;
    const int chunks = C / V, first = threadIdx.x;
    const float per_channel = rcp_fast(C);
    float *part = reinterpret_cast<float *>(h), sum[M];
    uint4 keep[M], gain = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int m = 0; m < M; m++) {
        keep[m] = make_uint4(0, 0, 0, 0);
        if (first < chunks)
            keep[m] = vec<T>::read(x + m * C + first * V);
    }
    if (first < chunks)
        gain = vec<T>::read(g + first * V);
#pragma unroll
    for (int m = 0; m < M; m++)
        sum[m] = sum_of_squares<T>(keep[m]);
#pragma unroll 1 // the registers are full of weights in flight
    for (int c = first + NJ_THREADS; c < chunks; c += NJ_THREADS)
#pragma unroll
        for (int m = 0; m < M; m++)
            sum[m] += sum_of_squares<T>(vec<T>::read(x + m * C + c * V));
#pragma unroll
    for (int m = 0; m < M; m++) {
        sum[m] = warp_sum(sum[m]);
        if (threadIdx.x % 32 == 0)
            part[threadIdx.x / 32 * M + m] = sum[m];
    }
    __syncthreads();
    float root[M];
#pragma unroll
    for (int m = 0; m < M; m++) {
        float squares = 0;
#pragma unroll
        for (int i = 0; i < WARPS; i++)
            squares += part[i * M + m];
        root[m] = rsqrtf(squares * per_channel + eps);
    }
    __syncthreads();
    if (first < chunks)
#pragma unroll
        for (int m = 0; m < M; m++)
            h[m * chunks + first] = normed_chunk<T>(keep[m], gain, root[m], offset);
#pragma unroll 1
    for (int c = first + NJ_THREADS; c < chunks; c += NJ_THREADS) {
        gain = vec<T>::read(g + c * V);
#pragma unroll
        for (int m = 0; m < M; m++)
            h[m * chunks + c] =
                normed_chunk<T>(vec<T>::read(x + m * C + c * V), gain, root[m], offset);
    }
    __syncthreads();
}

// Multiply the normalized rows of x by `count` groups of ROWS rows of the weights. weights(n, r) is row r of group n.
// Lane r M + m passes its sum to store(n, sum); all lanes call store().
template <typename T, int M, int ROWS, int UNROLL, typename W, typename S>
static __device__ __forceinline__ void gemv_of_normed(uint4 *h, const T *x, const T *g, int C,
                                                      float eps, float offset, int count, W weights,
                                                      S store)
{
    constexpr int WARPS = NJ_THREADS / 32, SPAN = UNROLL * 32;
    const int lane = threadIdx.x % 32, chunks = C / vec<T>::N;
    int64_t n = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const auto row = [&](int r) { return weights(n, r); };
    const auto rows_of_x = [&](int m, int c) { return h[m * chunks + c]; };
    gemv_sums<T, M, ROWS, UNROLL> sums;
    sums.fetch(row, lane, n < count ? chunks : 0);
    nj_kernel_begin();
    norm_into_shared<T, M>(h, x, g, C, eps, offset);
    while (n < count) {
        const int64_t now = n;
        sums.clear();
        for (int done = 0; done < chunks;) {
            sums.add(rows_of_x, done + lane, chunks);
            done += SPAN;
            if (done >= chunks) // load the next group before the sums of this one are reduced
                n += gridDim.x * WARPS;
            sums.fetch(row, (done < chunks ? done : 0) + lane, n < count ? chunks : 0);
        }
        store(now, sums.finish());
    }
}

#endif
