// SPDX-License-Identifier: Apache-2.0
//
// ptx.cuh: instructions that CUDA C lacks. sm_75 lacks m16n8k16 and cp.async; their replacements are here, so that
// kernels themselves never ask which arch they are built for.
#ifndef NOJIT_PTX_CUH
#define NOJIT_PTX_CUH

#include "common.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define NJ_SM75 1
#else
#define NJ_SM75 0
#endif

constexpr float LOG2_E = 1.4426950408889634f;

// Return 2^x; results below 2^-126 are 0.
static __device__ __forceinline__ float ex2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Return log2(x), with a relative error of 2^-22, or an absolute one for x between 1/2 and 2; -inf for x below 2^-126.
static __device__ __forceinline__ float lg2(float x)
{
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Round two values to lp and pack them, the first in the low half.
static __device__ __forceinline__ uint32_t pack2(float lo, float hi)
{
    uint32_t r;
#if NJ_SM75
    __half2 h = __floats2half2_rn(lo, hi);
    r = *reinterpret_cast<uint32_t *>(&h);
#else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
#endif
    return r;
}

// Load 16 bytes that no other thread will read, without keeping them in the L1 cache; zeros if not valid. This is not
// ld.global.nc, which ptxas may move behind the wait for the previous kernel (begin.cuh).
static __device__ __forceinline__ uint4 load_once(const void *p, bool valid)
{
    uint4 x = make_uint4(0, 0, 0, 0);
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n"
                 "@p ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
                 : "+r"(x.x), "+r"(x.y), "+r"(x.z), "+r"(x.w)
                 : "l"(p), "r"((int)valid));
    return x;
}

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Load four 8x8 matrices of 16-bit elements; lane l gives the shared address of row l%8 of matrix l/8. r[m] holds row
// lane/4 of matrix m, columns 2*(lane%4) and the next; transposed: column lane/4, rows 2*(lane%4) and the next.
static __device__ __forceinline__ void ldmatrix4(uint32_t (&r)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void ldmatrix4_trans(uint32_t (&r)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

// Transpose an 8x8 matrix of 16-bit elements, of which lane l holds row l/4, columns 2*(l%4) and the next.
static __device__ __forceinline__ uint32_t transposed(uint32_t x)
{
    uint32_t y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

// Add a[16x16] b[16x8] to c[16x8], in float32. With g = lane/4, t = lane%4 a lane holds
//   a[0..3]: columns 2t, 2t+1 of row g, of row g+8, columns 2t+8, 2t+9 of row g, of row g+8
//   b0, b1:  rows 2t, 2t+1 and rows 2t+8, 2t+9 of column g
//   c[0..3]: columns 2t, 2t+1 of row g, then of row g+8
static __device__ __forceinline__ void mma16816(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                                uint32_t b1)
{
#if NJ_SM75
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, "
        "%1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, "
        "%1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// Do the same with float16, whatever lp is.
static __device__ __forceinline__ void mma16816_f16(float (&c)[4], const uint32_t (&a)[4],
                                                    uint32_t b0, uint32_t b1)
{
#if NJ_SM75
    mma16816(c, a, b0, b1);
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// Round two values to float16 and pack them, the first in the low half.
static __device__ __forceinline__ uint32_t pack2_f16(float lo, float hi)
{
#if NJ_SM75
    return pack2(lo, hi);
#else
    uint32_t r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
#endif
}

// Return the differences of two pairs of float16 numbers.
static __device__ __forceinline__ uint32_t sub_f16x2(uint32_t x, uint32_t y)
{
    uint32_t r;
    asm("sub.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
    return r;
}

#if !NJ_SM75
// Do as cp16() to a shared address.
static __device__ __forceinline__ void cp16_at(uint32_t dst, const void *src, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src),
                 "r"(valid ? 16 : 0)
                 : "memory");
}
#endif

// Copy 16 bytes (cp4: 4 bytes) to shared memory, zeros if not valid; src must be readable either way. The copy is
// complete after cp_wait() in the same thread; other threads see it after the barrier that follows.
static __device__ __forceinline__ void cp16(void *dst, const void *src, bool valid)
{
#if NJ_SM75
    *static_cast<uint4 *>(dst) = valid ? *static_cast<const uint4 *>(src) : make_uint4(0, 0, 0, 0);
#else
    cp16_at(shared_address(dst), src, valid);
#endif
}

static __device__ __forceinline__ void cp4(void *dst, const void *src, bool valid)
{
#if NJ_SM75
    *static_cast<uint32_t *>(dst) = valid ? *static_cast<const uint32_t *>(src) : 0;
#else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(dst)),
                 "l"(src), "r"(valid ? 4 : 0)
                 : "memory");
#endif
}

// Wait until all copies of this thread have arrived.
static __device__ __forceinline__ void cp_wait()
{
#if !NJ_SM75
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

#endif
