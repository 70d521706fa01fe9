// SPDX-License-Identifier: Apache-2.0
#ifndef NOJIT_SWIGLU_CUH
#define NOJIT_SWIGLU_CUH

#include "common.cuh"

// gate sigmoid(gate) up
template <typename T> static __device__ __forceinline__ vec<T> swiglu(const T *gate, const T *up)
{
    vec<T> g, u;
    g.load(gate);
    u.load(up);
#pragma unroll
    for (int i = 0; i < vec<T>::N; i++)
        g.v[i] = g.v[i] * sigmoid(g.v[i]) * u.v[i];
    return g;
}

#endif
