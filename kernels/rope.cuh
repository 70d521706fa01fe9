// SPDX-License-Identifier: Apache-2.0
//
// rope.cuh: rotations of the half-split layout: element i of a head turns with element i + D/2.
#ifndef NOJIT_ROPE_CUH
#define NOJIT_ROPE_CUH

#include "common.cuh"

// Sine and cosine of the float32 product pos * inv_freq. The product is brought to [-pi, pi] by
// subtracting multiples of 2 pi in three exact-enough pieces (the first has so few bits that the
// first step is exact), which holds for angles below 2^17; the hardware functions then err by less
// than 5e-7. sincosf would need stack.
static __device__ __forceinline__ void turn(float pos, float inv_freq, float &sin_a, float &cos_a)
{
    const float angle = __fmul_rn(pos, inv_freq);
    const float turns = rintf(angle * 0.159154943f);
    float rest = fmaf(turns, -6.28318405f, angle);
    rest = fmaf(turns, -1.25566589e-6f, rest);
    rest = fmaf(turns, -2.15612101e-14f, rest);
    sin_a = __sinf(rest);
    cos_a = __cosf(rest);
}

// What one thread turns: V elements of the lower half and their partners. A positive sign turns
// forward.
template <int V> struct rotation {
    float sin_a[V], cos_a[V];

    __device__ __forceinline__ void set(int pos, const float *inv_freq, float sign)
    {
#pragma unroll
        for (int i = 0; i < V; i++) {
            turn((float)pos, inv_freq[i], sin_a[i], cos_a[i]);
            sin_a[i] *= sign;
        }
    }
    __device__ __forceinline__ void apply(float (&lo)[V], float (&hi)[V]) const
    {
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float x = lo[i];
            lo[i] = x * cos_a[i] - hi[i] * sin_a[i];
            hi[i] = hi[i] * cos_a[i] + x * sin_a[i];
        }
    }
};

// Turns the query and key heads of a row and adds the bias, if there is one, first; with a bias the
// values get theirs. Called by `width` threads; `lane` counts them.
template <typename T>
static __device__ __forceinline__ void rope_row(T *row, const T *bias, const float *inv_freq,
                                                int pos, float sign, int H, int K, int D, int lane,
                                                int width)
{
    constexpr int V = vec<T>::N;
    const int half = D / 2, pieces = half / V, step = width / pieces;
    const int i = lane % pieces * V;
    if (lane < step * pieces) {
        rotation<V> rot;
        for (int h = lane / pieces; h < H + K; h += step) {
            const int at = h * D + i;
            typename vec<T>::raw raw[4] = {};
            raw[0] = vec<T>::read(row + at);
            raw[1] = vec<T>::read(row + at + half);
            if (bias) {
                raw[2] = vec<T>::read(bias + at);
                raw[3] = vec<T>::read(bias + at + half);
            }
            if (h < step) // the first turn: here, so that the loads above are under way
                rot.set(pos, inv_freq + i, sign);
            vec<T> lo, hi, add_lo, add_hi;
            lo.set(raw[0]);
            hi.set(raw[1]);
            add_lo.set(raw[2]);
            add_hi.set(raw[3]);
#pragma unroll
            for (int j = 0; j < V; j++) {
                lo.v[j] += add_lo.v[j];
                hi.v[j] += add_hi.v[j];
            }
            rot.apply(lo.v, hi.v);
            lo.store(row + at);
            hi.store(row + at + half);
        }
    }
    if (bias)
        for (int at = (H + K) * D + lane * V; at < (H + 2 * K) * D; at += width * V) {
            vec<T> x, add;
            x.load(row + at);
            add.load(bias + at);
#pragma unroll
            for (int j = 0; j < V; j++)
                x.v[j] += add.v[j];
            x.store(row + at);
        }
}

#endif
