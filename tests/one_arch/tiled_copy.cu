// SPDX-License-Identifier: Apache-2.0
//
// tiled_copy.cu: a block copies 32 rows, 64 columns at a time. The tensor map fills shared memory, swizzled, with zeros
// for what lies outside of the array.
#include "common.cuh"

static __device__ __forceinline__ void load_tile(uint32_t tile, uint32_t barrier,
                                                 const nj_tiles &map, int column, int row)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(32 * 128)
                 : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(tile),
                 "l"(&map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

static __device__ __forceinline__ void wait_for(uint32_t barrier, uint32_t phase)
{
    asm volatile("{\n\t"
                 ".reg .pred done;\n\t"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
                 "@!done bra again;\n\t"
                 "}" ::"r"(barrier),
                 "r"(phase)
                 : "memory");
}

template <typename T>
__device__ void tiled_copy(T *y, const T *, const T *, int32_t N, int32_t C,
                           const nj_tiles &x_tiles, const nj_tiles &)
{
    __shared__ alignas(1024) T tile[32 * 64];
    __shared__ alignas(8) uint64_t full;
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(tile),
                   barrier = (uint32_t)__cvta_generic_to_shared(&full);
    const int first = blockIdx.x * 32;
    uint32_t phase = 0;
    if (threadIdx.x == 0)
        asm volatile(
            "mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(
                barrier)
            : "memory");
    __syncthreads();
    for (int c = 0; c < C; c += 64, phase ^= 1) {
        if (threadIdx.x == 0)
            load_tile(at, barrier, x_tiles, c, first);
        wait_for(barrier, phase);
        for (int i = threadIdx.x; i < 32 * 64; i += NJ_THREADS) {
            const int row = i / 64, column = i % 64;
            if (first + row < N && c + column < C)
                y[(int64_t)(first + row) * C + c + column] =
                    tile[row * 64 + (column ^ (row % 8 * 8))];
        }
        __syncthreads();
    }
}
