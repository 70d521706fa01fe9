// SPDX-License-Identifier: Apache-2.0
//
// argmax.cuh: the largest element of a row, and the lowest index that holds it. While it scans, a thread only notes
// which of its groups of elements held its maximum; at the end the winner searches that group again.
#ifndef NOJIT_ARGMAX_CUH
#define NOJIT_ARGMAX_CUH

#include "common.cuh"

// below every logit, and finite, so that the difference of two is never NaN
#define LOWEST (-1e30f)

struct scan_max {
    float top = LOWEST;
    int at = 0; // first element of the group that holds top

    // Take the elements of the columns from c on; those from column V on become LOWEST.
    template <typename V_T> __device__ __forceinline__ float take(V_T &x, int c, int V)
    {
        if (c + V_T::N > V)
#pragma unroll
            for (int i = 0; i < V_T::N; i++)
                x.v[i] = c + i < V ? x.v[i] : LOWEST;
        float most = x.v[0];
#pragma unroll
        for (int i = 1; i < V_T::N; i++)
            most = fmaxf(most, x.v[i]);
        if (most > top) {
            top = most;
            at = c;
        }
        return most;
    }
};

// Return the index of the maximum of row, which the threads have scanned in ascending order of columns, and give every
// thread that maximum in `top`.
template <typename T>
static __device__ __forceinline__ int block_argmax(const scan_max &mine, const T *row, int V,
                                                   float &top)
{
    __shared__ int index;
    top = block_max<T>(mine.top); // its barriers keep the next line after earlier reads of index
    if (threadIdx.x == 0)
        index = V - 1;
    __syncthreads();
    if (mine.top == top)
        for (int v = mine.at; v < min(mine.at + vec<T>::N, V); v++)
            if (to_f32(row[v]) == top) {
                atomicMin(&index, v);
                break;
            }
    __syncthreads();
    return index;
}

#endif
