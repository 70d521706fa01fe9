// SPDX-License-Identifier: Apache-2.0
//
// rope_rows.cuh: in-place RoPE on rows of query, key and value heads. Block p has the rows p, p + P, ...; groups of its
// threads take them in turn, and a thread keeps its place in the row. Heads share the angles of a row, so these lie in
// shared memory.
#ifndef NOJIT_ROPE_ROWS_CUH
#define NOJIT_ROPE_ROWS_CUH

#include "rope.cuh"

// Return a / b, rounded down, for numbers below 2^20, in a third of the time of an integer division.
static __device__ __forceinline__ int quotient(int a, int b)
{
    return (unsigned)__fdividef((float)a + 0.5f, (float)b);
}

// The heads from `first` on that a group of threads covers, and the thread's place in them.
template <typename T> struct head_range {
    static constexpr int V = vec<T>::N;
    static constexpr int SHARED = NJ_THREADS * 2 * V; // floats: the elements of all threads
    int half, kept;                     // heads, or angles of rows, that fill `shared`
    int heads, groups;                  // heads per group; groups
    int in_block, group, piece, column; // number of the head in the block, place in head and row

    __device__ __forceinline__ head_range(int first, int last, int D) : half(D / 2)
    {
        const int lane = threadIdx.x, pieces = half / V;
        kept = quotient(NJ_THREADS, pieces);
        heads = min(last - first, kept);
        groups = quotient(kept, heads);
        in_block = quotient(lane, pieces);
        group = quotient(in_block, heads);
        piece = (lane - in_block * pieces) * V;
        column = (first + in_block - group * heads) * D + piece;
    }
    // Add the groups' sums, in order, to give the block's sums.
    __device__ __forceinline__ void add_groups(float *part, float *shared,
                                               const float (&sum)[2][V]) const
    {
        const int columns = heads * 2 * half;
        float *own = shared + in_block * 2 * half + piece;
        __syncthreads(); // shared may still be read
        if (group < groups)
#pragma unroll
            for (int i = 0; i < V; i += 4) {
                *reinterpret_cast<float4 *>(own + i) =
                    make_float4(sum[0][i], sum[0][i + 1], sum[0][i + 2], sum[0][i + 3]);
                *reinterpret_cast<float4 *>(own + half + i) =
                    make_float4(sum[1][i], sum[1][i + 1], sum[1][i + 2], sum[1][i + 3]);
            }
        __syncthreads();
        for (int c = threadIdx.x; c < columns; c += NJ_THREADS) {
            float total = 0;
            for (int g = 0; g < groups; g++)
                total += shared[g * columns + c];
            part[c] = total;
        }
    }
};

// Rotations of the block's rows by the angles pos inv_freq; backward if the sign is negative.
struct row_turns {
    const float *inv_freq;
    const int *pos;
    float amplitude, sign;

    // Compute the cosines and sines of own.kept rows, from row n on: D floats per row.
    template <typename T>
    __device__ __forceinline__ void compute(float *turns, const head_range<T> &own, int64_t n,
                                            int N, int P) const
    {
        constexpr int V = vec<T>::N, BATCH = 4; // positions in flight
        const int half = own.half, lanes = own.kept / V, i = threadIdx.x - own.in_block / V * half;
        if (own.in_block >= lanes * V)
            return;
        const float frequency = inv_freq[i];
        for (int first = own.in_block / V; first < own.kept; first += BATCH * lanes) {
            int at[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                const int64_t row = n + (int64_t)(first + k * lanes) * P;
                at[k] = row < N ? pos[row] : 0;
            }
#pragma unroll
            for (int k = 0; k < BATCH; k++) {
                const int r = first + k * lanes;
                if (r < own.kept && n + (int64_t)r * P < N) {
                    float sin_a, cos_a;
                    turn((float)at[k], frequency, amplitude, sin_a, cos_a);
                    turns[r * 2 * half + i] = cos_a;
                    turns[r * 2 * half + half + i] = sign * sin_a;
                }
            }
        }
    }
};

// Rotate the heads of `own` that end before column `turned`: queries and keys. `part` belongs to its first head.
template <typename T>
static __device__ __forceinline__ void rope_range(const head_range<T> &own, int turned, T *x,
                                                  const T *bias, float *part, const row_turns &by,
                                                  int N, int width, int P)
{
    constexpr int V = vec<T>::N, AHEAD = 3; // pieces of a thread in flight
    __shared__ __align__(16) float shared[head_range<T>::SHARED];
    const int half = own.half, step = own.groups * P; // step: rows
    const int64_t stride = (int64_t)step * width;
    int left = own.group < own.groups ? (int)(N - blockIdx.x) - own.group * P : 0;
    T *row = x + (blockIdx.x + (int64_t)own.group * P) * width + own.column;
    float sum[2][V] = {}, offset[2][V] = {};
    head_piece<T> next[AHEAD];
#pragma unroll
    for (int k = 0; k < AHEAD; k++)
        if (left > k * step)
            next[k].read(row + k * stride, half);
    if (bias) {
        head_piece<T> b;
        b.read(bias + own.column, half);
        b.add_to(offset);
    }
    int r = own.group;
    for (int64_t n = blockIdx.x; n < N; n += (int64_t)own.kept * P, r -= own.kept) {
        __syncthreads(); // shared may still be read
        by.compute(shared, own, n, N, P);
        __syncthreads();
        for (; r < own.kept && left > 0; r += own.groups, left -= step, row += stride) {
            head_piece<T> now = next[0];
#pragma unroll
            for (int k = 1; k < AHEAD; k++)
                next[k - 1] = next[k];
            if (left > AHEAD * step)
                next[AHEAD - 1].read(row + AHEAD * stride, half);
            if (own.column < turned || bias) {
                vec<T> y[2];
                y[0].set(now.lo);
                y[1].set(now.hi);
                if (bias) {
                    add(y[0].v, offset[0]);
                    add(y[1].v, offset[1]);
                }
                if (own.column < turned) {
                    rotation<V> angle;
                    angle.load(shared + r * 2 * half + own.piece, half);
                    angle.apply(y[0].v, y[1].v);
                }
                now.lo = y[0].bits();
                now.hi = y[1].bits();
                now.write(row, half);
            }
            if (part)
                now.add_to(sum);
        }
    }
    if (part)
        own.add_groups(part, shared, sum);
}

// Rotate the query and key heads of rows p, p + P, ... in block p. A bias is added first; sums of the resulting rows,
// rounded to the element type, go to row p of `part`. Without a bias and `part`, values are not touched. While a thread
// works on one row, it loads the next ones.
template <typename T>
static __device__ __forceinline__ void
rope_rows(T *x, const T *bias, float *part, const row_turns &by, int N, int H, int K, int D, int P)
{
    const int width = (H + 2 * K) * D, last = bias || part ? H + 2 * K : H + K;
    float *sums = part ? part + (int64_t)blockIdx.x * width : nullptr;
    for (int first = 0; first < last;) {
        const head_range<T> own(first, last, D);
        rope_range(own, (H + K) * D, x, bias, sums ? sums + first * D : nullptr, by, N, width, P);
        first += own.heads;
    }
}

#endif
