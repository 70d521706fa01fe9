// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// The elements of a row of x that a thread takes for its vector of y: one access if they lie side by side, as in heads
// that are padded, else an access each, which finds most of them in the L1 cache.
template <typename T> struct mapped {
    static constexpr int V = vec<T>::N, ROWS = 4, GATHERED = 2; // rows under way
    typedef typename vec<T>::raw raw;
    int from[V]; // columns of x; negative: none
    bool whole;

    __device__ __forceinline__ mapped(const int32_t *map, int head_column, int width)
    {
#pragma unroll
        for (int i = 0; i < V; i++)
            from[i] = map[i] >= 0 ? head_column + map[i] : -1;
        whole = from[0] >= 0 && from[0] % V == 0 && width % V == 0;
#pragma unroll
        for (int i = 1; i < V; i++)
            whole = whole && from[i] == from[0] + i;
    }
    // Return the number of rows that are read at once: registers suffice for few gathered elements.
    __device__ __forceinline__ int rows() const
    {
        return whole ? ROWS : GATHERED;
    }
    // Read so many rows, `stride` elements apart, of which `count` exist.
    __device__ __forceinline__ void read(raw (&to)[ROWS], const T *x, int64_t stride,
                                         int count) const
    {
        if (whole) {
#pragma unroll
            for (int k = 0; k < ROWS; k++)
                if (k < count)
                    to[k] = vec<T>::read(x + k * stride + from[0]);
            return;
        }
        alignas(raw) T e[GATHERED][V];
#pragma unroll
        for (int k = 0; k < GATHERED; k++) {
            const T *row = x + k * stride;
#pragma unroll
            for (int i = 0; i < V; i++)
                e[k][i] = k < count && from[i] >= 0 ? row[from[i]] : T();
        }
#pragma unroll
        for (int k = 0; k < GATHERED; k++)
            to[k] = *reinterpret_cast<const raw *>(e[k]);
    }
};

// Block p has the rows p, p + P, ...; groups of its threads take them in turn, and a thread keeps its columns, whose
// sums it has in registers. Rows of more vectors than the block has threads are taken in pieces.
template <typename T>
static __device__ __forceinline__ void heads_map(T *y, float *part, const T *x, const T *bias,
                                                 const int32_t *map, const int32_t *map_v, int N,
                                                 int H, int K, int D_in, int D_out, int P)
{
    constexpr int V = vec<T>::N, ROWS = mapped<T>::ROWS;
    __shared__ __align__(16) float sums[NJ_THREADS * V];
    const int heads = H + 2 * K, in = heads * D_in, out = heads * D_out;
    for (int first = 0; first < out; first += NJ_THREADS * V) {
        const int vectors = min((out - first) / V, NJ_THREADS), groups = NJ_THREADS / vectors;
        const int group = threadIdx.x / vectors;
        const int column = first + (threadIdx.x - group * vectors) * V, head = column / D_out;
        const mapped<T> its((head < H + K ? map : map_v) + column % D_out, head * D_in, in);
        const int64_t step = (int64_t)groups * P;
        vec<T> offset = {}, sum = {};
        if (bias)
#pragma unroll
            for (int i = 0; i < V; i++)
                offset.v[i] = its.from[i] >= 0 ? to_f32(bias[its.from[i]]) : 0.0f;
        int64_t n = group < groups ? blockIdx.x + (int64_t)group * P : N;
        for (; n < N; n += its.rows() * step) {
            int count = 0; // rows of these that exist
#pragma unroll
            for (int k = 0; k < ROWS; k++)
                count += k < its.rows() && n + k * step < N;
            typename vec<T>::raw raw[ROWS];
            its.read(raw, x + n * in, step * in, count);
#pragma unroll
            for (int k = 0; k < ROWS; k++)
                if (k < count) {
                    vec<T> a = vec<T>::of(raw[k]);
                    if (bias) {
#pragma unroll
                        for (int i = 0; i < V; i++)
                            a.v[i] += offset.v[i];
                        raw[k] = a.bits();
                        a.set(raw[k]);
                    }
                    *reinterpret_cast<typename vec<T>::raw *>(y + (n + k * step) * out + column) =
                        raw[k];
#pragma unroll
                    for (int i = 0; i < V; i++)
                        sum.v[i] += a.v[i];
                }
        }
        if (!part)
            continue;
        __syncthreads(); // sums may still be read
#pragma unroll
        for (int i = 0; i < V; i++)
            sums[threadIdx.x * V + i] = sum.v[i];
        __syncthreads();
        for (int c = threadIdx.x; c < vectors * V; c += NJ_THREADS) {
            float total = 0;
            for (int g = 0; g < groups; g++)
                total += sums[g * vectors * V + c];
            part[(int64_t)blockIdx.x * out + first + c] = total;
        }
    }
}
