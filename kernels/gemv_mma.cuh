// SPDX-License-Identifier: Apache-2.0
//
// gemv_mma.cuh: gemv.cuh for eight or sixteen rows of x, which are enough for tensor cores. A warp takes eight rows of
// the weights, or eight of each of two halves, and SPLIT warps divide their columns; the partial sums are added in
// order. That order depends on the number of columns only, so the result for a row has the same bits whether M is 8 or
// 16.
//
// x is the left operand, the weights are the right one. Of every 32 columns, lane 4g + t loads columns 8t to 8t+7 of
// rows g of both operands at once. The first four of them are columns 2t, 2t+1, 2t+8, 2t+9 of one mma, the others those
// of the next.
#ifndef NOJIT_GEMV_MMA_CUH
#define NOJIT_GEMV_MMA_CUH

#include "gemv.cuh"
#include "mma.cuh"

// 16-byte chunks of a row per step of 32 columns.
constexpr int STEP = 4;

// Dot products of M rows of x, 8 or 16, with eight rows of each of HALVES halves of the weights.
template <int M, int HALVES, int UNROLL> struct mma_sums {
    static constexpr int V = vec<lp>::N, SPAN = UNROLL * STEP, WIDTH = 8 * HALVES;
    uint4 w[HALVES][UNROLL];
    float acc[HALVES][4] = {};

    // Load UNROLL steps of this lane's row of each half, from chunk `at` on, up to chunk `end`.
    template <typename W> __device__ __forceinline__ void fetch(W weights, int at, int end)
    {
#pragma unroll
        for (int n = 0; n < HALVES; n++) {
            const lp *p = weights(n) + (int64_t)(at + lane_id() % 4) * V;
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                w[n][u] = load_once(p + u * STEP * V, at + u * STEP + lane_id() % 4 < end);
        }
    }

    // Add the products of the loaded chunks with the same chunks of x: x(m, c) is chunk c of row m.
    template <typename X> __device__ __forceinline__ void add(X x, int at, int end)
    {
        const int g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            // beyond the last chunk the weights are 0
            const int c = min(at + u * STEP + t, end - 1);
            const uint4 a = x(g, c), b = M < 16 ? make_uint4(0, 0, 0, 0) : x(g + 8, c);
#pragma unroll
            for (int n = 0; n < HALVES; n++) {
                mma16816(acc[n], {a.x, b.x, a.y, b.y}, w[n][u].x, w[n][u].y);
                mma16816(acc[n], {a.z, b.z, a.w, b.w}, w[n][u].z, w[n][u].w);
            }
        }
    }

    // Store the sums for the block, as rows of WIDTH with the halves side by side.
    __device__ __forceinline__ void put(float *part) const
    {
        const int g = lane_id() / 4, t = lane_id() % 4;
        float *mine = part + (threadIdx.x / 32 * M + g) * WIDTH + 2 * t;
#pragma unroll
        for (int n = 0; n < HALVES; n++)
#pragma unroll
            for (int e = 0; e < M / 8; e++)
                *reinterpret_cast<float2 *>(mine + 8 * e * WIDTH + 8 * n) =
                    make_float2(acc[n][2 * e], acc[n][2 * e + 1]);
    }
};

// Return the sum of the results that warps first to first + SPLIT - 1 have stored for row m of x and a column.
template <int M, int WIDTH, int SPLIT>
static __device__ __forceinline__ float mma_sum(const float *part, int first, int m, int column)
{
    float sum = 0;
#pragma unroll
    for (int p = 0; p < SPLIT; p++)
        sum += part[((first + p) * M + m) * WIDTH + column];
    return sum;
}

// This warp's share of `chunks` chunks, in whole steps.
template <int SPLIT> struct mma_share {
    int begin, end;

    __device__ __forceinline__ explicit mma_share(int chunks)
    {
        const int each = ((chunks + STEP - 1) / STEP + SPLIT - 1) / SPLIT * STEP;
        begin = threadIdx.x / 32 % SPLIT * each;
        end = min(chunks, begin + each);
    }
};

// The norm's weights for 1024 columns; zeros beyond the last column. They are loaded by load_once(), because, like the
// matrix's weights, they are loaded before the previous kernel has ended.
template <typename T> struct norm_gain {
    uint4 its[4];

    __device__ __forceinline__ void fetch(const T *g, int first, int chunks)
    {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int c = first + lane_id() + 32 * k;
            its[k] = load_once(g + (int64_t)c * vec<T>::N, c < chunks);
        }
    }
};

// M rows, normalized and rounded, in shared memory, 1024 columns at a time. A warp takes every eighth row.
template <typename T, int M> struct normed_rows {
    static constexpr int V = vec<T>::N, MOST = 128, EACH = MOST / 32;
    static constexpr int WARPS = NJ_THREADS / 32, MINE = M / WARPS;
    uint4 *h;
    const T *x;
    int chunks, stride; // chunks of a row; chunks of a row in shared memory
    float root[MINE];

    __device__ __forceinline__ normed_rows(uint4 *shared, const T *rows, int C, float eps)
        : h(shared), x(rows), chunks(C / V), stride(min(MOST, (C + 63) / 64 * 8))
    {
        float sum[MINE] = {};
#pragma unroll 1
        for (int first = 0; first < chunks; first += MOST)
#pragma unroll
            for (int i = 0; i < MINE; i++)
#pragma unroll
                for (int k = 0; k < EACH; k++)
                    sum[i] += sum_of_squares<T>(read(i, first + lane_id() + 32 * k));
#pragma unroll
        for (int i = 0; i < MINE; i++)
            root[i] = rsqrtf(warp_sum(sum[i]) * rcp_fast(C) + eps);
    }
    static __device__ __forceinline__ int row(int i)
    {
        return threadIdx.x / 32 + i * WARPS;
    }
    // Return chunk c of this warp's row i; zeros beyond the last chunk.
    __device__ __forceinline__ uint4 read(int i, int c) const
    {
        return c < chunks ? vec<T>::read(x + ((int64_t)row(i) * chunks + c) * V)
                          : make_uint4(0, 0, 0, 0);
    }
    // Return the place of chunk c of row m. The eight lanes of one access, which read four chunks of two rows, use
    // different banks.
    __device__ __forceinline__ uint4 &at(int m, int c) const
    {
        return h[m * stride + (c ^ m % 2 * STEP)];
    }
    // Normalize the chunks from `first` on, with their part of g.
    __device__ __forceinline__ void fill(const norm_gain<T> &g, int first, float offset) const
    {
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const int c = lane_id() + 32 * k;
            if (c >= stride)
                break;
#pragma unroll
            for (int i = 0; i < MINE; i++)
                at(row(i), c) = normed_chunk<T>(read(i, first + c), g.its[k], root[i], offset);
        }
    }
};

// Multiply the normalized rows of x by the weights: weights(n) is this lane's row of half n. Return the partial sums of
// the warps, in shared memory.
template <typename T, int M, int HALVES, int SPLIT, typename W>
static __device__ __forceinline__ const float *
products_of_normed(uint4 *shared, const T *x, const T *g, int C, float eps, float offset, W weights)
{
    constexpr int MOST = normed_rows<T, M>::MOST;
    const int chunks = C / vec<T>::N;
    mma_sums<M, HALVES, MOST / STEP / SPLIT> sums; // the share of 1024 columns in one load
    mma_share<SPLIT> mine(min(MOST, chunks));
    norm_gain<T> gain;
    sums.fetch(weights, mine.begin, mine.end);
    gain.fetch(g, 0, chunks);
    nj_kernel_begin();
    const normed_rows<T, M> rows(shared, x, C, eps);
    const auto normed = [&](int m, int c) { return rows.at(m, c); };
    for (int first = 0; first < chunks; first += MOST) {
        rows.fill(gain, first, offset);
        __syncthreads();
        if (mine.begin < mine.end)
            sums.add(normed, mine.begin, mine.end);
        if (first + MOST < chunks) {
            mine = mma_share<SPLIT>(min(MOST, chunks - first - MOST));
            gain.fetch(g, first + MOST, chunks);
            sums.fetch(weights, first + MOST + mine.begin, first + MOST + mine.end);
        }
        __syncthreads();
    }
    float *part = reinterpret_cast<float *>(shared);
    sums.put(part);
    __syncthreads();
    return part;
}

#endif
