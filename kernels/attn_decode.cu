// SPDX-License-Identifier: Apache-2.0
#include "ptx.cuh"

// One block a query head. D * size / 16 lanes share a row, 16 bytes each, and walk over every
// ROWS-th row with an online softmax of their own; then all of them are combined in a fixed order.
template <typename T, int D>
static __device__ __forceinline__ void attn_decode(T *o, const T *qkv, int S, int H, int K,
                                                   float scale)
{
    constexpr int N = vec<T>::N, LANES = D / N, ROWS = NJ_THREADS / LANES, AHEAD = 4;
    __shared__ float shared_top[ROWS], shared_sum[ROWS], shared_acc[ROWS][D];
    const int head = blockIdx.x, kv = head / (H / K), group = threadIdx.x / LANES;
    const int column = threadIdx.x % LANES * N;
    const int64_t ld = (int64_t)(H + 2 * K) * D;
    const T *keys = qkv + (H + kv) * D + column, *values = keys + K * D;
    const float scale_log2 = scale * LOG2_E;
    vec<T> q;
    q.load(qkv + (S - 1) * ld + head * D + column);
    float top = -INFINITY, sum = 0, acc[N] = {};
    for (int j0 = 0; j0 < S; j0 += AHEAD * ROWS) {
        vec<T> k[AHEAD], v[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) { // rows beyond the last repeat it and count nothing
            const int j = min(j0 + a * ROWS + group, S - 1);
            k[a].load(keys + j * ld);
            v[a].load(values + j * ld);
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            float s = 0;
#pragma unroll
            for (int i = 0; i < N; i++)
                s += q.v[i] * k[a].v[i];
#pragma unroll
            for (int d = LANES / 2; d > 0; d /= 2)
                s += __shfl_xor_sync(0xffffffffu, s, d);
            if (j0 + a * ROWS + group >= S)
                continue;
            const float next = fmaxf(top, s * scale_log2), old = ex2(top - next);
            const float p = ex2(s * scale_log2 - next);
            top = next;
            sum = sum * old + p;
#pragma unroll
            for (int i = 0; i < N; i++)
                acc[i] = acc[i] * old + p * v[a].v[i];
        }
    }
    if (column == 0) {
        shared_top[group] = top;
        shared_sum[group] = sum;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        shared_acc[group][column + i] = acc[i];
    __syncthreads();
    if (threadIdx.x >= D)
        return;
    float all_top = shared_top[0], all_sum = 0, x = 0; // group 0 has row 0
    for (int r = 1; r < ROWS; r++)
        all_top = fmaxf(all_top, shared_top[r]);
    for (int r = 0; r < ROWS; r++) {
        const float f = ex2(shared_top[r] - all_top);
        all_sum += f * shared_sum[r];
        x += f * shared_acc[r][threadIdx.x];
    }
    o[head * D + threadIdx.x] = from_f32<T>(x / all_sum);
}
