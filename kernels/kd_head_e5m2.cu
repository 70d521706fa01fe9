// SPDX-License-Identifier: Apache-2.0
#include "kd_head.cuh"
#include "philox.cuh"

// Random words of other kernels have other numbers in the last place of the counter.
#define STREAM 3
// The largest gradient of a token is about 2^8 of these scales. e5m2 has as many orders above as are left for what
// the reverse divergence may come to, and 24 below.
#define HEADROOM 0x1p-8f

// The least power of two from x on, times the headroom: one for all rows.
static __device__ __forceinline__ float scale_of_gradient(float x)
{
    return __uint_as_float((__float_as_uint(x) + 0x007fffffu) & 0x7f800000u) * HEADROOM;
}

// Four numbers, each to one of its two neighbours in e5m2, the upper half of a float16: of the lower half as
// many 256ths of all random bytes carry. Infinity stays what it is; NaN is not for here.
static __device__ __forceinline__ uint32_t e5m2_at_random(const float *x, uint32_t random)
{
    const __half2 low = __floats2half2_rn(x[0], x[1]), high = __floats2half2_rn(x[2], x[3]);
    const uint32_t a = *reinterpret_cast<const uint32_t *>(&low) + __byte_perm(random, 0, 0x4140);
    const uint32_t b = *reinterpret_cast<const uint32_t *>(&high) + __byte_perm(random, 0, 0x4342);
    return __byte_perm(a, b, 0x7531);
}

// The gradient as e5m2. A thread has 16 columns, for which it draws once. From the last columns on, so that bytes may
// lie at the end of the row that they are made of: those of a turn do not reach what later ones read, and before they
// are written all threads have read theirs, which is waited for until no byte of the row can be meant any more.
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
    template <int MODE>
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
                grad.apply<MODE>(a, b, own + k * N, V);
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
             int Vs, int Vt, int G, int first, float tau, float ratio, float beta)
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
    kd_head_row<T>(s, t, {kd, ce, entropy, agree}, {whole / scale, tau, ratio, beta}, target[m], V,
                   kd_as_e5m2<T>{g, s, t, V, Vs, first + (int)m,
                                 make_uint2((uint32_t)key[0], (uint32_t)key[1])});
}
