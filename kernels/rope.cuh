// SPDX-License-Identifier: Apache-2.0
//
// rope.cuh: RoPE in the half-split layout: element i of a head rotates with element i + D/2.
#ifndef NOJIT_ROPE_CUH
#define NOJIT_ROPE_CUH

#include "common.cuh"

// Compute sine and cosine of the float32 product pos * inv_freq, times the amplitude; a pair with frequency 0 has none.
// The product is reduced to [-pi, pi] by subtracting a multiple of 2 pi in three parts. The first part has so few bits
// that its product is exact, for angles below 2^17; the hardware functions then err by less than 5e-7. sincosf would
// need a stack.
static __device__ __forceinline__ void turn(float pos, float inv_freq, float amplitude,
                                            float &sin_a, float &cos_a)
{
    const float angle = __fmul_rn(pos, inv_freq);
    const float turns = rintf(angle * 0.159154943f);
    float rest = fmaf(turns, -6.28318405f, angle);
    rest = fmaf(turns, -1.25566589e-6f, rest);
    rest = fmaf(turns, -2.15612101e-14f, rest);
    const float length = inv_freq != 0 ? amplitude : 1.0f;
    sin_a = __fmul_rn(length, __sinf(rest));
    cos_a = __fmul_rn(length, __cosf(rest));
}

// The rotation of one thread's elements: V of the lower half and their partners. Each rounding is explicit, so that
// every kernel gives bitwise identical results.
template <int V> struct rotation {
    float sin_a[V], cos_a[V];

    __device__ __forceinline__ void set(int pos, const float *inv_freq, float amplitude)
    {
#pragma unroll
        for (int i = 0; i < V; i++)
            turn((float)pos, inv_freq[i], amplitude, sin_a[i], cos_a[i]);
    }
    // Load the rotation from D/2 cosines, followed by as many sines; `turns` points to the thread's own first cosine
    // and is 16-byte aligned.
    __device__ __forceinline__ void load(const float *turns, int half)
    {
#pragma unroll
        for (int i = 0; i < V; i += 4) {
            const float4 c = *reinterpret_cast<const float4 *>(turns + i);
            const float4 s = *reinterpret_cast<const float4 *>(turns + half + i);
            cos_a[i] = c.x, cos_a[i + 1] = c.y, cos_a[i + 2] = c.z, cos_a[i + 3] = c.w;
            sin_a[i] = s.x, sin_a[i + 1] = s.y, sin_a[i + 2] = s.z, sin_a[i + 3] = s.w;
        }
    }
    __device__ __forceinline__ void apply(float (&lo)[V], float (&hi)[V]) const
    {
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float x = lo[i];
            lo[i] = fmaf(x, cos_a[i], -__fmul_rn(hi[i], sin_a[i]));
            hi[i] = fmaf(x, sin_a[i], __fmul_rn(hi[i], cos_a[i]));
        }
    }
    // Apply the transpose: turn the gradient of rotated elements into that of the elements.
    __device__ __forceinline__ void apply_back(float (&lo)[V], float (&hi)[V]) const
    {
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float x = lo[i];
            lo[i] = fmaf(x, cos_a[i], __fmul_rn(hi[i], sin_a[i]));
            hi[i] = fmaf(-x, sin_a[i], __fmul_rn(hi[i], cos_a[i]));
        }
    }
};

template <int V> static __device__ __forceinline__ void add(float (&sum)[V], const float (&x)[V])
{
#pragma unroll
    for (int i = 0; i < V; i++)
        sum[i] += x[i];
}

// A thread's elements of one head: V of the lower half and their partners in the upper half.
template <typename T> struct head_piece {
    static constexpr int V = vec<T>::N;
    uint4 lo, hi;

    __device__ __forceinline__ void read(const T *at, unsigned half)
    {
        lo = vec<T>::read(at);
        hi = vec<T>::read(at + half);
    }
    __device__ __forceinline__ void write(T *at, unsigned half) const
    {
        *reinterpret_cast<uint4 *>(at) = lo;
        *reinterpret_cast<uint4 *>(at + half) = hi;
    }
    __device__ __forceinline__ void add_to(float (&sum)[2][V]) const
    {
        add(sum[0], vec<T>::of(lo).v);
        add(sum[1], vec<T>::of(hi).v);
    }
};

#endif
