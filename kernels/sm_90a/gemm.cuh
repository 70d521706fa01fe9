// SPDX-License-Identifier: Apache-2.0
//
// gemm.cuh: GEMMs whose results are processed before they are stored. One warpgroup copies tiles of both factors to
// shared memory with TMA; two multiply them, 64 rows each. Blocks form clusters of two, one above the other: each
// fetches half of the tile of b for both. Blocks are persistent, and compute one tile of the result after another.
//
// Shared memory is a ring of stages. A full stage goes to both multiplying warpgroups, an empty one back to the first.
#ifndef NOJIT_GEMM_CUH
#define NOJIT_GEMM_CUH

#include "../tiles.cuh"
#include "wgmma.cuh"

constexpr int TILE_M = 128, TILE_N = 256, TILE_K = PANEL, STAGES = 4;
constexpr int A_BYTES = TILE_M * TILE_K * 2, STAGE_BYTES = A_BYTES + TILE_N * TILE_K * 2;

// ---- barriers in shared memory ----

static __device__ __forceinline__ void barrier_init(uint32_t barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

// Arrive, and extend the phase until so many bytes have been copied.
static __device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t phase)
{
    asm volatile("{\n.reg .pred done;\n"
                 "again:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}\n" ::"r"(barrier),
                 "r"(phase)
                 : "memory");
}

// Arrive at the same barrier in another block of the cluster. The data that must be visible there was read, by products
// that are complete, not written: no fence beyond the block is needed, and one would cost as much as a stage.
static __device__ __forceinline__ void barrier_arrive(uint32_t barrier, int block)
{
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n}\n" ::"r"(barrier),
                 "r"(block)
                 : "memory");
}

static __device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

static __device__ __forceinline__ int cluster_block()
{
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// ---- TMA ----

// Start the copy of the tile at (row, column) of an array; elements outside of the array become zero.
static __device__ __forceinline__ void tile_copy(uint32_t to, const nj_tiles &array, int row,
                                                 int column, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(&array), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

// Start the same copy to both blocks of the cluster.
static __device__ __forceinline__ void tile_copy_both(uint32_t to, const nj_tiles &array, int row,
                                                      int column, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(&array), "r"(column), "r"(row), "r"(barrier), "h"((uint16_t)3)
                 : "memory");
}

// ---- the ring ----

struct ring {
    uint32_t base; // address of the stages, which the full and empty barriers follow
    int stage;
    uint32_t phase; // parity of the phase that a wait of this warpgroup ends with

    __device__ __forceinline__ ring(const unsigned char *shared, bool producer)
        : base(shared_address(shared) + 1023 & ~1023u), stage(0), phase(producer)
    {
    }
    __device__ __forceinline__ uint32_t full_of(int which) const
    {
        return base + STAGES * STAGE_BYTES + 8 * which;
    }
    __device__ __forceinline__ uint32_t full() const { return full_of(stage); }
    __device__ __forceinline__ uint32_t empty() const { return full() + 8 * STAGES; }
    __device__ __forceinline__ uint32_t a() const { return base + stage * STAGE_BYTES; }
    __device__ __forceinline__ uint32_t b() const { return a() + A_BYTES; }
    __device__ __forceinline__ void next()
    {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
    // Initialize the barriers; one thread calls this before anything else. Each warpgroup returns a stage to all blocks
    // of the cluster, since all write to it. `fillers` threads say that a stage is full, `readers` that it is empty.
    template <int BLOCKS = 2>
    __device__ __forceinline__ void init(int fillers = 1, int readers = 2 * BLOCKS)
    {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(full_of(s), fillers);
            barrier_init(full_of(STAGES + s), readers);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
};

// Return a stage that a multiplying warpgroup has read to the blocks of the cluster.
template <int BLOCKS> static __device__ __forceinline__ void stage_release(uint32_t empty)
{
    if (threadIdx.x % WARPGROUP < BLOCKS)
        barrier_arrive(empty, threadIdx.x % BLOCKS);
}

// The order of the tiles that clusters compute, each of two tiles of rows and one of columns. Tiles that are computed
// at the same time share rows and columns in the L2 cache. The order is from last to first, so that the first rows are
// still cached when the next GEMM starts.
struct tile_order {
    int pairs, columns;

    __device__ __forceinline__ tile_order(int rows, int columns, int width)
        : pairs((rows + 2 * TILE_M - 1) / (2 * TILE_M)), columns((columns + width - 1) / width)
    {
    }
    // Find the i-th tile; return false if there are not so many.
    __device__ __forceinline__ bool at(int i, int &pair, int &column) const
    {
        constexpr int GROUP = 16;
        if (i >= pairs * columns)
            return false;
        i = pairs * columns - 1 - i;
        const int group = i / (GROUP * columns), first = group * GROUP;
        const int size = min(GROUP, pairs - first);
        i -= first * columns;
        pair = first + i % size;
        column = i / size;
        return true;
    }
};

// Return the descriptor of the i-th 16 steps of the sums in the tile of b: of its columns, or, with B_ROWS, of its
// rows, of which a panel of 64 columns follows the other.
template <int B_ROWS> static __device__ __forceinline__ uint32_t part_of_b(uint32_t b, int i)
{
    // an address in a cluster has the block's number above these bits
    constexpr uint32_t SHARED = 0x3ffff, APART = TILE_K * 128;
    return (b + i * (B_ROWS ? 16 * 128 : 32) & SHARED) >> 4 | (B_ROWS ? APART >> 4 << 16 : 0);
}

// Compute d = a b^T, or a b with B_ROWS, over `steps` stages.
template <int BLOCKS = 2, int B_ROWS = 0>
static __device__ __forceinline__ void product(float (&d)[TILE_N / 8][4], ring &r, int steps)
{
    constexpr uint32_t SHARED = 0x3ffff;
    const int rows64 = (warpgroup_id() - 1) * (A_BYTES / 2);
    uint32_t before = 0;
    for (int k = 0; k < steps; k++) {
        barrier_wait(r.full(), r.phase);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < TILE_K / 16; i++) {
            const uint32_t a = (r.a() + rows64 + i * 32 & SHARED) >> 4;
            wgmma<B_ROWS>(d, a, part_of_b<B_ROWS>(r.b(), i), k + i > 0);
        }
        wgmma_commit();
        wgmma_wait<1>();
        if (k > 0)
            stage_release<BLOCKS>(before);
        before = r.empty();
        r.next();
    }
    wgmma_wait<0>();
    keep(d);
    stage_release<BLOCKS>(before);
}

// Store columns [32 q, 32 q + 32) of a tile of a 16-bit array, for rows g and g + 8 of each warp.
template <typename Value>
static __device__ __forceinline__ void store32(lp *row0, int64_t ld, int q, int rows, int columns,
                                               const Value &value)
{
    const int g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint32_t w[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            w[j] = value(4 * q + j, 2 * h);
        quad_transpose(w);
        if (g + 8 * h < rows && 32 * q + 8 * t < columns)
            global_store16(row0 + (g + 8 * h) * ld + 32 * q + 8 * t, w);
    }
}

static __device__ __forceinline__ void registers_fewer()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
}

static __device__ __forceinline__ void registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
}

#endif
