// SPDX-License-Identifier: Apache-2.0
//
// wgmma.cuh: matrix products d += a b of a warpgroup, four warps that own 64 rows together. As in mma.cuh, a lane works
// on rows g and g+8 of its warp's 16, with g = lane/4, t = lane%4: d[n][0..1] are columns 8n+2t, 8n+2t+1 of row g,
// d[n][2..3] of row g+8, and two neighbouring d[n], rounded to lp, are the operand a of a later product.
//
// Factors in shared memory lie in panels of 64 columns. A row of a panel is 128 bytes, and its 16-byte chunks are
// permuted by row, so that neither way of reading them has bank conflicts. Panels begin at multiples of 1024 bytes.
//
// Products run asynchronously: the data that they read and write must not be touched until wgmma_wait().
#ifndef NOJIT_WGMMA_CUH
#define NOJIT_WGMMA_CUH

#include "../mma.cuh"

constexpr int PANEL = 64, WARPGROUP = 128;

// Return the number of the warpgroup in the block, which the compiler knows to be the same in a warp.
static __device__ __forceinline__ int warpgroup_id()
{
    return __shfl_sync(0xffffffffu, threadIdx.x / WARPGROUP, 0);
}

// Start the copy of ROWS rows from src on into panels; those from `rows` on become zero. THREADS threads take part: the
// whole block or a warpgroup.
template <int D, int ROWS, int THREADS = NJ_THREADS>
static __device__ __forceinline__ void panels_load(lp *tile, const lp *src, int ld, int rows)
{
    constexpr int CHUNKS = D / 8, STEP = THREADS / CHUNKS;
    static_assert(ROWS % STEP == 0, "a tile is a whole number of copies for every thread");
    const int chunk = threadIdx.x % CHUNKS, row = threadIdx.x % THREADS / CHUNKS;
    tile += chunk / 8 * ROWS * PANEL + tile_at<lp, PANEL>(row, chunk % 8);
    src += (int64_t)row * ld + chunk * 8;
#pragma unroll
    for (int i = 0; i < ROWS; i += STEP)
        cp16(tile + i * PANEL, src + (int64_t)i * ld, row + i < rows);
}

// Wait until the copies of this thread have arrived; products may read them after the next barrier.
static __device__ __forceinline__ void panels_wait()
{
    cp_wait();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Make a group of the copies that this thread started since the last call.
static __device__ __forceinline__ void panels_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
// Do the same as panels_wait() for all groups but the last PENDING.
template <int PENDING> static __device__ __forceinline__ void panels_wait_for()
{
    asm volatile("cp.async.wait_group %0;\n"
                 "fence.proxy.async.shared::cta;" ::"n"(PENDING)
                 : "memory");
}

// Return a descriptor of panels of ROWS rows, from a given row (a multiple of 8) on.
template <int ROWS> static __device__ __forceinline__ uint32_t panels(const lp *tile)
{
    return shared_address(tile) >> 4 | (ROWS * 128 >> 4) << 16;
}
// Return the descriptor of the k-th 16 columns, for a product along the columns (a row is a row of a, or a column of
// b).
template <int ROWS> static __device__ __forceinline__ uint32_t columns16(uint32_t panels, int k)
{
    return panels + ((k / 4 * ROWS * 128 + k % 4 * 32) >> 4);
}
// Return the descriptor of the k-th 16 rows, for a product along the rows (a row is a row of b).
static __device__ __forceinline__ uint32_t rows16_of(uint32_t panels, int k)
{
    return panels + (k * 16 * 128 >> 4);
}

// Set the columns of rows g and g+8 that lie outside [from[0], to[0]] and [from[1], to[1]] to minus infinity.
template <int N>
static __device__ __forceinline__ void mask(float (&d)[N][4], const int (&from)[2],
                                            const int (&to)[2])
{
    const int t2 = lane_id() % 4 * 2;
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int column = 8 * n + e % 2;
            if (column < from[e / 2] - t2 || column > to[e / 2] - t2)
                d[n][e] = -INFINITY;
        }
    }
}

// Synchronize one of two warpgroups.
static __device__ __forceinline__ void warpgroup_sync(int warpgroup)
{
    if (warpgroup == 0)
        asm volatile("bar.sync 1, %0;" ::"n"(WARPGROUP) : "memory");
    else
        asm volatile("bar.sync 2, %0;" ::"n"(WARPGROUP) : "memory");
}

// Pack two neighbouring d[n] as the operand a of a later product.
template <int N>
static __device__ __forceinline__ void pack(uint32_t (&a)[N / 2][4], const float (&d)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++) {
        a[n / 2][n % 2 * 2] = pack2(d[n][0], d[n][1]);
        a[n / 2][n % 2 * 2 + 1] = pack2(d[n][2], d[n][3]);
    }
}

static __device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Keep the compiler from moving uses of the sums across this place.
template <int N> static __device__ __forceinline__ void keep(float (&d)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            asm volatile("" : "+f"(d[n][e])::"memory");
    }
}

// Wait until all products but those of the last PENDING commits are done.
template <int PENDING> static __device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

#define NJ_D4(n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define NJ_D16(n) NJ_D4(n), NJ_D4(n + 1), NJ_D4(n + 2), NJ_D4(n + 3)
#define NJ_D32(n) NJ_D16(n), NJ_D16(n + 4)
#define NJ_D64(n) NJ_D32(n), NJ_D32(n + 8)
#define NJ_D128(n) NJ_D64(n), NJ_D64(n + 16)
#define NJ_R16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define NJ_R32                                                                                     \
    NJ_R16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NJ_R64                                                                                     \
    NJ_R32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "    \
           "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NJ_R128                                                                                    \
    NJ_R64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "    \
           "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "      \
           "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "      \
           "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, "  \
           "%124, %125, %126, %127"

// Define d = a b, or d += a b, N columns wide, over 16 columns of a, which lie in panels or in registers. B_ROWS is 1
// if a row of the panels of b is a row of b, 0 if it is a column. X0 to X6 are the operands after the sums.
#define NJ_WGMMA(N, D, R, X0, X1, X2, X3, X4, X5, X6)                                              \
    template <int B_ROWS>                                                                          \
    static __device__ __forceinline__ void wgmma(float(&d)[N / 8][4], uint32_t a, uint32_t b,      \
                                                 bool add)                                         \
    {                                                                                              \
        asm volatile("{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, " X2 ", 0;\n"              \
                     "mov.b64 a, {" X0 ", 0x40000040};\nmov.b64 b, {" X1 ", 0x40000040};\n"        \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 "                   \
                     "{" R "}, a, b, p, 1, 1, 0, " X3 ";\n}\n"                                     \
                     : D                                                                           \
                     : "r"(a), "r"(b), "r"((int)add), "n"(B_ROWS));                                \
    }                                                                                              \
    template <int B_ROWS>                                                                          \
    static __device__ __forceinline__ void wgmma(float(&d)[N / 8][4], const uint32_t(&a)[4],       \
                                                 uint32_t b, bool add)                             \
    {                                                                                              \
        asm volatile("{\n.reg .pred p;\n.reg .b64 b;\nsetp.ne.b32 p, " X5 ", 0;\n"                 \
                     "mov.b64 b, {" X4 ", 0x40000040};\n"                                          \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 "                   \
                     "{" R "}, {" X0 ", " X1 ", " X2 ", " X3 "}, b, p, 1, 1, " X6 ";\n}\n"         \
                     : D                                                                           \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"((int)add),          \
                       "n"(B_ROWS));                                                               \
    }
NJ_WGMMA(32, NJ_D16(0), NJ_R16, "%16", "%17", "%18", "%19", "%20", "%21", "%22")
NJ_WGMMA(64, NJ_D32(0), NJ_R32, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
NJ_WGMMA(128, NJ_D64(0), NJ_R64, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
NJ_WGMMA(256, NJ_D128(0), NJ_R128, "%128", "%129", "%130", "%131", "%132", "%133", "%134")

// Start d = a b^T over D columns of panels with ROWS_A and ROWS_B rows.
template <int D, int ROWS_A, int ROWS_B, int N>
static __device__ __forceinline__ void start_product(float (&d)[N][4], uint32_t a, uint32_t b)
{
#pragma unroll
    for (int k = 0; k < D / 16; k++)
        wgmma<0>(d, columns16<ROWS_A>(a, k), columns16<ROWS_B>(b, k), k > 0);
    wgmma_commit();
}

// Start d += a b over as many rows of b as a has columns.
template <int N, int M>
static __device__ __forceinline__ void start_sum(float (&d)[M][4], const uint32_t (&a)[N][4],
                                                 uint32_t b)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        wgmma<1>(d, a[k], rows16_of(b, k), true);
    wgmma_commit();
}

// Tiles of the keys and values that some row of a block sees, counted from the first of them.
template <int D, int BN> struct key_tiles {
    const lp *keys, *values; // the first tile's
    int ld, first, count, S;

    // The rows see keys from start on, and none from end on.
    __device__ __forceinline__ key_tiles(const lp *qkv, const heads<D> &at, int start, int end,
                                         int length)
        : ld(at.row), first(start / BN), S(length)
    {
        count = (min(end, S) + BN - 1) / BN - first;
        keys = qkv + at.k + (int64_t)first * BN * ld;
        values = keys + (at.v - at.k);
    }
    __device__ __forceinline__ void load(lp *to, const lp *from, int n) const
    {
        if (n < count)
            panels_load<D, BN>(to, from + (int64_t)n * BN * ld, ld, S - (first + n) * BN);
    }
};

#endif
