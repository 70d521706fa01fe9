// SPDX-License-Identifier: Apache-2.0
//
// conv.cuh: causal convolution of four neighbouring channels, which a thread has for consecutive rows.
#ifndef NOJIT_CONV_CUH
#define NOJIT_CONV_CUH

#include "common.cuh"

template <typename T> using channels = vec<T, 4>;

// A thread's taps, and the rows that they multiply.
template <typename T, int L> struct conv_taps {
    float w[L][4], bias[4];
    float u[L][4]; // rows n - L + 1, ..., n; 0 before the start of row n's document

    __device__ __forceinline__ void load(const T *taps, const T *b, int c)
    {
        channels<T> first = {};
        if (b)
            first.load(b + c);
#pragma unroll
        for (int i = 0; i < 4; i++) {
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
            for (int i = 0; i < 4; i++)
                u[t][i] = 0;
    }
    __device__ __forceinline__ void push(const float (&x)[4])
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int t = 0; t + 1 < L; t++)
                u[t][i] = u[t + 1][i];
            u[L - 1][i] = x[i];
        }
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
template <typename T> struct conv_input {
    const T *x, *gate_in; // from the thread's channels on; gate_in may be NULL
    const int32_t *doc_start;
    int S, ld;

    // Return the first row of the document of row n, whose place in its sequence is s.
    __device__ __forceinline__ int starts(int64_t n, int s) const
    {
        return doc_start ? doc_start[n] : 0;
    }
    __device__ __forceinline__ channels<T> at(int64_t n) const
    {
        channels<T> u;
        u.load(x + n * ld);
        if (gate_in) {
            channels<T> gate;
            gate.load(gate_in + n * ld);
#pragma unroll
            for (int i = 0; i < 4; i++)
                u.v[i] *= gate.v[i];
        }
        return u;
    }
    // Take the rows before row n that its document has.
    template <int L> __device__ __forceinline__ void before(conv_taps<T, L> &taps, int n) const
    {
        taps.forget();
        const int s = n % S, first = starts(n, s);
#pragma unroll
        for (int back = L - 1; back > 0; back--)
            if (s - back >= first)
                taps.push(at(n - back).v);
    }
    // Take row n, and forget what is before its document.
    template <int L>
    __device__ __forceinline__ void take(conv_taps<T, L> &taps, const float (&u)[4], int64_t n,
                                         int s) const
    {
        if (s == starts(n, s))
            taps.forget();
        taps.push(u);
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
