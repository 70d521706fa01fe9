// SPDX-License-Identifier: Apache-2.0
#include "conv.cuh"

template <typename T, int L>
static __device__ __forceinline__ void step(T *y, float *state, const conv_input<T> &in, const T *w,
                                            const T *bias, const T *gate_out, int r, int X, int c,
                                            bool begun, int act)
{
    conv_taps<T, L> taps;
    taps.load(w, bias, c);
    taps.forget();
    channels<float> before[L];
#pragma unroll
    for (int t = 0; t + 1 < L; t++) {
        before[t] = {};
        if (begun)
            before[t].load(state + (int64_t)t * X);
    }
    const channels<T> x = in.at(r);
#pragma unroll
    for (int t = 0; t + 1 < L; t++)
        taps.push(before[t].v);
    taps.push(x.v);
    channels<T> out, gate;
    if (gate_out)
        gate.load(gate_out + (int64_t)r * in.ld);
#pragma unroll
    for (int i = 0; i < 4; i++)
        out.v[i] = conv_act(taps.sum(i), act) * (gate_out ? gate.v[i] : 1.0f);
    out.store(y + (int64_t)r * X + c);
#pragma unroll
    for (int t = 0; t + 1 < L; t++) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            before[t].v[i] = taps.u[t + 1][i];
        before[t].store(state + (int64_t)t * X);
    }
}

// Compute 1024 channels of row r in block (r, y), four a thread.
template <typename T>
static __device__ __forceinline__ void conv_step(T *y, float *state, const T *x, const T *w,
                                                 const T *bias, const T *gate_in, const T *gate_out,
                                                 const int32_t *slot, const int32_t *pos, int R,
                                                 int X, int L, int ld, int G, int act)
{
    const int r = blockIdx.x, place = slot[r], c = (blockIdx.y * NJ_THREADS + threadIdx.x) * 4;
    if (place < 0 || c >= X)
        return;
    const conv_input<T> in = {x + c, gate_in ? gate_in + c : nullptr, nullptr, R, ld};
    with_taps(L, [&](auto count) {
        step<T, count.value>(y, state + (int64_t)place * (L - 1) * X + c, in, w, bias,
                             gate_out ? gate_out + c : nullptr, r, X, c, pos[r] > 0, act);
    });
}
