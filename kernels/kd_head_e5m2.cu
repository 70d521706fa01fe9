// SPDX-License-Identifier: Apache-2.0
#include "kd_head.cuh"
#include "philox.cuh"

// Last word of the counter: other kernels that draw random words use other numbers.
#define STREAM 3
// The largest gradient of a token is about 2^8 times the scale. E5M2 has about as many powers of two above that, left
// for the gradients of the reverse divergence, and 24 below.
#define HEADROOM 0x1p-8f

// Return the least power of two that is at least x, times the headroom: one scale for all rows.
static __device__ __forceinline__ float scale_of_gradient(float x)
{
    return __uint_as_float((__float_as_uint(x) + 0x007fffffu) & 0x7f800000u) * HEADROOM;
}

// Round four numbers, each to one of its two neighbours in E5M2, which is the upper half of a float16: a random byte is
// added to the lower half, and carries with the right probability. Infinity stays what it is; NaN must not be passed.
static __device__ __forceinline__ uint32_t e5m2_at_random(const float *x, uint32_t random)
{
    const __half2 low = __floats2half2_rn(x[0], x[1]), high = __floats2half2_rn(x[2], x[3]);
    const uint32_t a = *reinterpret_cast<const uint32_t *>(&low) + __byte_perm(random, 0, 0x4140);
    const uint32_t b = *reinterpret_cast<const uint32_t *>(&high) + __byte_perm(random, 0, 0x4342);
    return __byte_perm(a, b, 0x7531);
}

// Writer of the gradient as E5M2. A thread has 16 columns, for which it draws random words once. It runs from the last
// columns to the first, so that the bytes may lie at the end of the row that they are computed from: the bytes of one
// round lie behind all columns that later rounds read. Where they could overlap the columns of the same round, a
// barrier makes all threads read before any writes.
template <typename T> struct kd_as_e5m2 {
    static constexpr int N = vec<T>::N, OWN = 16, PARTS = OWN / N, STEP = NJ_THREADS * OWN;
    uint8_t *g;
    const T *s, *t;
    int V, Vs, row;
    uint2 key;

    __device__ __forceinline__ void store(int c, uint4 word) const
    {
        if (c < Vs)
            __stcs(reinterpret_cast<uint4 *>(g + c), word);
    }
    template <int MODE, bool CAPPED>
    __device__ __forceinline__ void write(const kd_grad &grad, bool broken) const
    {
        for (int first = (Vs - 1) / STEP * STEP; first >= 0; first -= STEP) {
            const int own = first + threadIdx.x * OWN;
            typename vec<T>::raw s_raw[PARTS], t_raw[PARTS];
#pragma unroll
            for (int k = 0; k < PARTS; k++) {
                const int c = own + k * N;
                s_raw[k] = t_raw[k] = {};
                if (c < V) {
                    s_raw[k] = vec<T>::read(s + c);
                    if (MODE != KD_NONE)
                        t_raw[k] = vec<T>::read(t + c);
                }
            }
            uint4 random = philox(make_uint4(own / OWN, row, 0, STREAM), key);
            uint32_t word[4] = {random.x, random.y, random.z, random.w};
#pragma unroll
            for (int k = 0; k < PARTS; k++) {
                vec<T> a, b;
                a.set(s_raw[k]);
                b.set(t_raw[k]);
                grad.apply<MODE, CAPPED>(a, b, own + k * N, V);
#pragma unroll
                for (int i = 0; i < N; i += 4)
                    word[(k * N + i) / 4] = e5m2_at_random(a.v + i, word[(k * N + i) / 4]);
            }
            if (reinterpret_cast<const char *>(g) <
                reinterpret_cast<const char *>(s + min(first + STEP, V)))
                __syncthreads();
            store(own, broken ? make_uint4(0x7f7f7f7f, 0x7f7f7f7f, 0x7f7f7f7f, 0x7f7f7f7f)
                              : make_uint4(word[0], word[1], word[2], word[3]));
        }
    }
    __device__ __forceinline__ void zero() const
    {
        for (int c = threadIdx.x * OWN; c < Vs; c += STEP)
            store(c, make_uint4(0, 0, 0, 0));
    }
};

template <typename T>
static __device__ __forceinline__ void
kd_head_e5m2(uint8_t *g, float *g_scale, float *kd, float *ce, float *entropy, float *agree, T *s,
             const T *t, const int *target, const float *state, const int *key, int M, int V,
             int Vs, int Vt, int G, int first, float tau, float ratio, float beta, float cap)
{
    const int64_t m = blockIdx.x;
    g += m * G;
    s += m * Vs;
    if (t)
        t += m * Vt;
    const float whole = state[NJ_STEP_INV_VALID] * state[NJ_STEP_LOSS_SCALE];
    const float scale = scale_of_gradient(whole);
    if (m == 0 && threadIdx.x == 0)
        *g_scale = scale;
    kd_head_row<T>(s, t, {kd, ce, entropy, agree}, {whole / scale, tau, ratio, beta, cap},
                   target[m], V,
                   kd_as_e5m2<T>{g, s, t, V, Vs, first + (int)m,
                                 make_uint2((uint32_t)key[0], (uint32_t)key[1])});
}
