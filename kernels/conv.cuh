// SPDX-License-Identifier: Apache-2.0
//
// conv.cuh: causal convolution of W neighbouring channels, which a thread has for consecutive rows.
#ifndef NOJIT_CONV_CUH
#define NOJIT_CONV_CUH

#include "common.cuh"

template <typename T, int W = 4> using channels = vec<T, W>;

// A thread's taps, and the rows that they multiply.
template <typename T, int L, int W = 4> struct conv_taps {
    float w[L][W], bias[W];
    float u[L][W]; // rows n - L + 1, ..., n; 0 before the start of row n's document

    __device__ __forceinline__ void load(const T *taps, const T *b, int c)
    {
        channels<T, W> first = {};
        if (b)
            first.load(b + c);
#pragma unroll
        for (int i = 0; i < W; i++) {
            bias[i] = first.v[i];
#pragma unroll
            for (int t = 0; t < L; t++)
                w[t][i] = to_f32(taps[(int64_t)(c + i) * L + t]);
        }
    }
    __device__ __forceinline__ void forget()
    {
#pragma unroll
        for (int t = 0; t < L; t++)
#pragma unroll
            for (int i = 0; i < W; i++)
                u[t][i] = 0;
    }
    __device__ __forceinline__ void push(const float (&x)[W])
    {
#pragma unroll
        for (int i = 0; i < W; i++) {
#pragma unroll
            for (int t = 0; t + 1 < L; t++)
                u[t][i] = u[t + 1][i];
            u[L - 1][i] = x[i];
        }
    }
    // Take the next row, and forget what is before it if its document begins there.
    __device__ __forceinline__ void take(const float (&x)[W], bool begins)
    {
        if (begins)
            forget();
        push(x);
    }
    // Return the argument of the activation for channel i.
    __device__ __forceinline__ float sum(int i) const
    {
        float h = bias[i];
#pragma unroll
        for (int t = 0; t < L; t++)
            h = fmaf(w[t][i], u[t][i], h);
        return h;
    }
};

// The input of a convolution, and where its documents begin.
template <typename T, int W = 4> struct conv_input {
    const T *x, *gate_in; // from the thread's channels on; gate_in may be NULL
    const int32_t *doc_start;
    int S, ld;

    __device__ __forceinline__ conv_input from(int c) const
    {
        return {x + c, gate_in ? gate_in + c : nullptr, doc_start, S, ld};
    }
    // Return the first row of the document of row n, within its sequence.
    __device__ __forceinline__ int starts(int64_t n) const { return doc_start ? doc_start[n] : 0; }
    __device__ __forceinline__ channels<T, W> at(int64_t n) const
    {
        channels<T, W> u;
        u.load(x + n * ld);
        if (gate_in) {
            channels<T, W> gate;
            gate.load(gate_in + n * ld);
#pragma unroll
            for (int i = 0; i < W; i++)
                u.v[i] *= gate.v[i];
        }
        return u;
    }
    // Take the rows before row n that its document has.
    template <int L> __device__ __forceinline__ void before(conv_taps<T, L, W> &taps, int n) const
    {
        taps.forget();
        const int s = n % S, first = starts(n);
#pragma unroll
        for (int back = L - 1; back > 0; back--)
            if (s - back >= first)
                taps.push(at(n - back).v);
    }
};

static __device__ __forceinline__ float conv_act(float h, int act)
{
    return act ? h * sigmoid(h) : h;
}

// Call run(taps) with the number of taps as a constant.
template <int L> struct taps_count {
    static constexpr int value = L;
};
template <typename F> static __device__ __forceinline__ void with_taps(int L, F run)
{
    switch (L) {
    case 2:
        return run(taps_count<2>());
    case 3:
        return run(taps_count<3>());
    case 4:
        return run(taps_count<4>());
    case 5:
        return run(taps_count<5>());
    case 6:
        return run(taps_count<6>());
    case 7:
        return run(taps_count<7>());
    default:
        return run(taps_count<8>());
    }
}

#endif
