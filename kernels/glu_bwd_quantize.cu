// SPDX-License-Identifier: Apache-2.0
#include "glu.cuh"
#include "quantize.cuh"

// The gradients of gate and up, and the activation, for some columns.
template <typename T> struct glu_gradient {
    vec<T> dgate, dup, y;

    template <int ACT> __device__ __forceinline__ void make(const T *gate, const T *up, const T *dy)
    {
        vec<T> d;
        d.load(dy);
        dgate.load(gate);
        dup.load(up);
#pragma unroll
        for (int i = 0; i < vec<T>::N; i++) {
            const float x = dgate.v[i], u = dup.v[i], z = activation<ACT>::weight(x);
            y.v[i] = x * z * u;
            dgate.v[i] = activation<ACT>::backward(d.v[i] * u, x, z);
            dup.v[i] = d.v[i] * x * z;
        }
    }
    __device__ __forceinline__ void keep(T *at, int stride) const
    {
        dgate.store(at);
        dup.store(at + stride);
        y.store(at + 2 * stride);
    }
    __device__ __forceinline__ void load(const T *at, int stride)
    {
        dgate.load(at);
        dup.load(at + stride);
        y.load(at + 2 * stride);
    }
};

// Quantize the gradients and the activation; one block per row. They wait in shared memory for the scales of the row,
// as far as it has room (10,240 columns of 16 bits), and each thread reads back only its own data; the rest is computed
// again.
template <typename T, int ACT>
static __device__ __forceinline__ void glu_bwd_quantize(uint8_t *dq, float *dscale, uint8_t *q,
                                                        float *scale, float *dmost, float *most,
                                                        const T *dy, const T *gu, int N, int I)
{
    extern __shared__ uint4 shared_row[];
    constexpr int V = vec<T>::N;
    const int64_t n = block_from_last();
    const T *gate = gu + n * 2 * I, *up = gate + I, *d = dy + n * I;
    T *kept = reinterpret_cast<T *>(shared_row);
    const int room = sizeof(T) == 2 ? min(I, 10240) : 0;
    uint32_t dtop = LEAST_TOP, top = LEAST_TOP;
    for (int c = threadIdx.x * V; c < I; c += NJ_THREADS * V) {
        glu_gradient<T> g;
        g.template make<ACT>(gate + c, up + c, d + c);
        if (c < room) {
            g.keep(kept + c, room);
            g.load(kept + c, room);
        }
        dtop = largest(g.dup, largest(g.dgate, dtop));
        top = largest(g.y, top);
    }
    dtop = group_max<NJ_THREADS>(dtop);
    top = group_max<NJ_THREADS>(top);
    if (threadIdx.x == 0) {
        keep_scale(dscale + n, dmost, dtop);
        keep_scale(scale + n, most, top);
    }
    const float dinverse = inverse_of(dtop), inverse = inverse_of(top);
    for (int c = threadIdx.x * V; c < I; c += NJ_THREADS * V) {
        glu_gradient<T> g;
        if (c < room)
            g.load(kept + c, room);
        else
            g.template make<ACT>(gate + c, up + c, d + c);
        store_e4m3(dq + n * 2 * I + c, g.dgate, dinverse);
        store_e4m3(dq + n * 2 * I + I + c, g.dup, dinverse);
        store_e4m3(q + n * I + c, g.y, inverse);
    }
}
