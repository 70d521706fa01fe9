// SPDX-License-Identifier: Apache-2.0
#include "conv.cuh"

// A thread has 32 rows of four channels, BATCH of them in flight.
template <typename T, int L>
static __device__ __forceinline__ void conv_rows(T *y, const conv_input<T> &in, const T *w,
                                                 const T *bias, const T *gate_out, int rows, int X,
                                                 int c, int act)
{
    constexpr int ROWS = 32, BATCH = 4;
    const int first = blockIdx.x * ROWS, end = min(first + ROWS, rows);
    conv_taps<T, L> taps;
    taps.load(w, bias, c);
    in.before(taps, first);
    int s = first % in.S;
    for (int from = first; from < end; from += BATCH) {
        channels<T> u[BATCH], gate[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            const int64_t n = min(from + k, end - 1);
            u[k] = in.at(n);
            if (gate_out)
                gate[k].load(gate_out + n * in.ld);
        }
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            const int64_t n = from + k;
            if (n >= end)
                break;
            taps.take(u[k].v, s == in.starts(n));
            s = s + 1 < in.S ? s + 1 : 0;
            channels<T> out;
#pragma unroll
            for (int i = 0; i < 4; i++)
                out.v[i] = conv_act(taps.sum(i), act) * (gate_out ? gate[k].v[i] : 1.0f);
            out.store(y + n * X + c);
        }
    }
}

template <typename T>
static __device__ __forceinline__ void
conv_fwd(T *y, const T *x, const T *w, const T *bias, const T *gate_in, const T *gate_out,
         const int32_t *doc_start, int B, int S, int X, int L, int ld, int act)
{
    const int c = (blockIdx.y * NJ_THREADS + threadIdx.x) * 4;
    if (c >= X)
        return;
    const conv_input<T> in = {x + c, gate_in ? gate_in + c : nullptr, doc_start, S, ld};
    with_taps(L, [&](auto count) {
        conv_rows<T, count.value>(y, in, w, bias, gate_out ? gate_out + c : nullptr, B * S, X, c,
                                  act);
    });
}
