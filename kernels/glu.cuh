// SPDX-License-Identifier: Apache-2.0
//
// glu.cuh: gated activations. Each is x times a weight(x) between 0 and 1; a specialization gives that weight and the
// derivative of the product.
#ifndef NOJIT_GLU_CUH
#define NOJIT_GLU_CUH

#include "base/activation.h"
#include "common.cuh"

template <int ACT> struct activation;

template <> struct activation<NJ_SILU> {
    static __device__ __forceinline__ float weight(float x) { return sigmoid(x); }
    // Return d times the derivative of x weight(x), where z = weight(x).
    static __device__ __forceinline__ float backward(float d, float x, float z)
    {
        return d * z * (1 + x * (1 - z));
    }
};

template <> struct activation<NJ_GELU> {
    static __device__ __forceinline__ float weight(float x)
    {
        return 0.5f + 0.5f * erff(0.70710678f * x);
    }
    static __device__ __forceinline__ float backward(float d, float x, float z)
    {
        const float density = 0.39894228f * exp2_fast(-0.72134752f * x * x);
        return d * (z + x * density);
    }
};

// GELU with tanh: (1 + tanh(v)) / 2 is sigmoid(2 v), here with 2 v = x (A + B x^2).
template <> struct activation<NJ_GELU_TANH> {
    static constexpr float A = 1.5957691f, B = 0.044715f * A; // 2 sqrt(2 / pi)
    static __device__ __forceinline__ float weight(float x)
    {
        return sigmoid(x * (A + B * (x * x)));
    }
    static __device__ __forceinline__ float backward(float d, float x, float z)
    {
        const float square =
            fminf(x * x, 400.0f); // beyond, z or 1 - z is 0; infinity would give NaN
        return d * (z + x * z * (1 - z) * (A + 3 * B * square));
    }
};

// Return gate weight(gate) up.
template <int ACT, typename T>
static __device__ __forceinline__ vec<T> gated(const T *gate, const T *up)
{
    vec<T> g, u;
    g.load(gate);
    u.load(up);
#pragma unroll
    for (int i = 0; i < vec<T>::N; i++)
        g.v[i] = g.v[i] * activation<ACT>::weight(g.v[i]) * u.v[i];
    return g;
}

#endif
