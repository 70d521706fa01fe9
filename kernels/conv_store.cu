// SPDX-License-Identifier: Apache-2.0
#include "conv.cuh"

// Block (e, y) stores 1024 channels of the rows that end with row e, if that is the last of a document.
template <typename T>
static __device__ __forceinline__ void conv_store(float *state, const T *x, const T *gate_in,
                                                  const int32_t *doc_start, const int32_t *slot,
                                                  int B, int S, int X, int L, int ld, int G)
{
    const int e = blockIdx.x, s = e % S, place = slot[e], start = doc_start[e];
    const int c = (blockIdx.y * NJ_THREADS + threadIdx.x) * 4;
    if (place < 0 || c >= X || (s + 1 < S && doc_start[e + 1] == start))
        return;
    const conv_input<T> in = {x + c, gate_in ? gate_in + c : nullptr, doc_start, S, ld};
    for (int t = 0; t < L - 1; t++) {
        const int n = s - L + 2 + t;
        channels<float> out = {};
        if (n >= start) {
            const channels<T> u = in.at(e - s + n);
#pragma unroll
            for (int i = 0; i < 4; i++)
                out.v[i] = u.v[i];
        }
        out.store(state + ((int64_t)place * (L - 1) + t) * X + c);
    }
}
