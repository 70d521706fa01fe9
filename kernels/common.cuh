// SPDX-License-Identifier: Apache-2.0
//
// common.cuh: code shared by all kernels: the 16-bit type of the arch, 16-byte loads and stores, reductions. Sums are
// float32 and run in a fixed order; no kernel uses floating-point atomics.
#ifndef NOJIT_COMMON_CUH
#define NOJIT_COMMON_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "base/step_state.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
typedef __half lp; // sm_75 has no bfloat16 arithmetic
#else
typedef __nv_bfloat16 lp;
#endif

#ifndef NJ_THREADS
#define NJ_THREADS 256
#endif

// Return the number of this block, counted from the last. cuBLASLt's GEMMs write rows in ascending order, so the last
// rows of their output are still in the L2 cache; and the next GEMM will find the first rows there, since they are
// written last.
static __device__ __forceinline__ int block_from_last()
{
    return gridDim.x - 1 - blockIdx.x;
}

static __device__ __forceinline__ float to_f32(float x)
{
    return x;
}
static __device__ __forceinline__ float to_f32(__half x)
{
    return __half2float(x);
}
static __device__ __forceinline__ float to_f32(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

template <typename T> static __device__ __forceinline__ T from_f32(float x);
template <> __device__ __forceinline__ float from_f32<float>(float x)
{
    return x;
}
template <> __device__ __forceinline__ __half from_f32<__half>(float x)
{
    return __float2half_rn(x);
}
template <> __device__ __forceinline__ __nv_bfloat16 from_f32<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

// Convert the elements of a 32-bit word to floats and back. A bfloat16 is the upper half of a float.
static __device__ __forceinline__ void widen(float (&v)[1], uint32_t word, float)
{
    v[0] = __uint_as_float(word);
}
static __device__ __forceinline__ void widen(float (&v)[2], uint32_t word, __half)
{
    const float2 f = __half22float2(*reinterpret_cast<const __half2 *>(&word));
    v[0] = f.x;
    v[1] = f.y;
}
static __device__ __forceinline__ void widen(float (&v)[2], uint32_t word, __nv_bfloat16)
{
    v[0] = __uint_as_float(word << 16);
    v[1] = __uint_as_float(word & 0xffff0000u);
}
static __device__ __forceinline__ uint32_t narrow(const float (&v)[1], float)
{
    return __float_as_uint(v[0]);
}
static __device__ __forceinline__ uint32_t narrow(const float (&v)[2], __half)
{
    const __half2 x = __floats2half2_rn(v[0], v[1]);
    return *reinterpret_cast<const uint32_t *>(&x);
}
static __device__ __forceinline__ uint32_t narrow(const float (&v)[2], __nv_bfloat16)
{
    const __nv_bfloat162 x = __floats2bfloat162_rn(v[0], v[1]);
    return *reinterpret_cast<const uint32_t *>(&x);
}

template <int BYTES> struct words;
template <> struct words<16> {
    typedef uint4 type;
};
template <> struct words<8> {
    typedef uint2 type;
};
template <> struct words<4> {
    typedef uint32_t type;
};

// Consecutive elements that one access moves, widened to float: by default 16 bytes, which is 8 elements of the 16-bit
// type or 4 floats. Elements at index `count` and above are neither read (they become 0) nor written.
template <typename T, int WIDTH = 16 / sizeof(T)> struct vec {
    static constexpr int N = WIDTH, IN_WORD = 4 / sizeof(T), WORDS = N / IN_WORD;
    typedef typename words<N * sizeof(T)>::type raw;
    float v[N];

    static __device__ __forceinline__ raw read(const T *p)
    {
        return *reinterpret_cast<const raw *>(p);
    }
    __device__ __forceinline__ void set(raw bits)
    {
        alignas(raw) uint32_t w[WORDS];
        *reinterpret_cast<raw *>(w) = bits;
#pragma unroll
        for (int i = 0; i < WORDS; i++) {
            float x[IN_WORD];
            widen(x, w[i], T());
#pragma unroll
            for (int k = 0; k < IN_WORD; k++)
                v[i * IN_WORD + k] = x[k];
        }
    }
    static __device__ __forceinline__ vec of(raw bits)
    {
        vec x;
        x.set(bits);
        return x;
    }
    __device__ __forceinline__ raw bits() const
    {
        alignas(raw) uint32_t w[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS; i++) {
            float x[IN_WORD];
#pragma unroll
            for (int k = 0; k < IN_WORD; k++)
                x[k] = v[i * IN_WORD + k];
            w[i] = narrow(x, T());
        }
        return *reinterpret_cast<const raw *>(w);
    }
    __device__ __forceinline__ void load(const T *p)
    {
        set(read(p));
    }
    __device__ __forceinline__ void store(T *p) const
    {
        *reinterpret_cast<raw *>(p) = bits();
    }

    static __device__ __forceinline__ raw read(const T *p, int64_t count)
    {
        if (count >= N)
            return read(p);
        alignas(raw) T e[N];
        *reinterpret_cast<raw *>(e) = {};
#pragma unroll
        for (int i = 0; i < N; i++)
            if (i < count)
                e[i] = p[i];
        return *reinterpret_cast<const raw *>(e);
    }
    __device__ __forceinline__ void load(const T *p, int64_t count)
    {
        set(read(p, count));
    }
    __device__ __forceinline__ void store(T *p, int64_t count) const
    {
        if (count >= N) {
            store(p);
            return;
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            if (i < count)
                p[i] = from_f32<T>(v[i]);
    }
};

// Return 2^x, accurate to 2 units in the last place; 0 if the result would be subnormal.
static __device__ __forceinline__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Return 1 / (1 + e^-x), each step accurate to 2 units in the last place. Even memory-bound kernels cannot afford more
// instructions: they cost power, and so lower the clock of the kernels that follow.
static __device__ __forceinline__ float sigmoid(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.0f + exp2_fast(-1.4426950408889634f * x)));
    return y;
}

// Return the square root within 2^-23, in a fraction of the instructions of sqrtf().
static __device__ __forceinline__ float sqrt_fast(float x)
{
    float y;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (int d = 16; d > 0; d >>= 1)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

static __device__ __forceinline__ float warp_max(float x)
{
#pragma unroll
    for (int d = 16; d > 0; d >>= 1)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

// Return the sum over the block, the same in every thread. All threads must call it.
template <int THREADS = NJ_THREADS> static __device__ __forceinline__ float block_sum(float x)
{
    __shared__ float part[THREADS / 32];
    x = warp_sum(x);
    __syncthreads(); // part may still be read from an earlier call
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < THREADS / 32; i++)
        sum += part[i];
    return sum;
}

// Return the maximum over the block, the same in every thread. All threads must call it. T is the kernel's element
// type: kernels of one translation unit must not share `part`.
template <typename T, int THREADS = NJ_THREADS>
static __device__ __forceinline__ float block_max(float x)
{
    __shared__ float part[THREADS / 32];
    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    float top = part[0];
#pragma unroll
    for (int i = 1; i < THREADS / 32; i++)
        top = fmaxf(top, part[i]);
    return top;
}

#endif
