/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_launch.c: enqueues a kernel. The parameter block goes to the driver as it is: launchers lay it
 * out as the kernel sees it.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"

int nj_cuda_has_kernel(const nj_context *ctx, uint32_t id)
{
    return nj_cuda_of(ctx)->functions[id] != NULL;
}

int nj_cuda_tile_map(nj_stream *s, uint32_t id, void *map, const struct nj_tiling *of)
{
    const uint64_t sizes[2] = {(uint64_t)of->columns, (uint64_t)of->rows};
    const uint64_t row_bytes[1] = {2 * (uint64_t)of->columns};
    const uint32_t box[2] = {NJ_TILE_COLUMNS, (uint32_t)of->tile_rows};
    const uint32_t steps[2] = {1, 1};
    /* The map is aligned as the driver requires; in the block it lies where the kernel expects it. */
    _Alignas(128) unsigned char made[NJ_TILE_MAP_BYTES];
    nj_context *ctx = s->ctx;
    char what[200];
    int rc = nj_cuda_of(ctx)->driver.cuTensorMapEncodeTiled(
        made,
        ctx->info.lp_is_f16 ? NJ_CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                            : NJ_CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        2, (void *)(uintptr_t)of->array, sizes, row_bytes, box, steps,
        NJ_CU_TENSOR_MAP_INTERLEAVE_NONE, NJ_CU_TENSOR_MAP_SWIZZLE_128B,
        NJ_CU_TENSOR_MAP_L2_PROMOTION_L2_256B, NJ_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);

    if (rc == 0) {
        memcpy(map, made, sizeof made);
        return 0;
    }
    snprintf(what, sizeof what, "%.60s: tensor map of %.40s, %lld rows of %lld elements",
             nj_kernels[id].key, of->name, (long long)of->rows, (long long)of->columns);
    return nj_cuda_check(ctx, rc, what);
}

/* First SM whose kernels themselves wait for the kernel ahead of them (kernels/begin.cuh). */
enum { SM_OF_DEPENDENT_LAUNCH = 90 };

int nj_cuda_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
                   const void *params)
{
    struct nj_cuda *cu = nj_cuda_of(s->ctx);
    const struct nj_kernel *kernel = &nj_kernels[id];
    size_t bytes = kernel->param_bytes;
    void *extra[] = {NJ_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)params,
                     NJ_LAUNCH_PARAM_BUFFER_SIZE, &bytes, NJ_LAUNCH_PARAM_END};
    struct nj_launch_attribute early = {
        .id = NJ_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.value = 1};
    struct nj_launch_config config = {grid[0],
                                      grid[1],
                                      grid[2],
                                      kernel->threads,
                                      1,
                                      1,
                                      shared_bytes,
                                      s->handle,
                                      &early,
                                      s->dependent_launches &&
                                          s->ctx->info.sm >= SM_OF_DEPENDENT_LAUNCH};

    if (!cu->functions[id])
        return nj_fail(s->ctx, NJ_E_NO_KERNEL, "%s is for %s alone; %s runs code of %s",
                       kernel->key, kernel->only, s->ctx->info.name, s->ctx->info.arch);
    TRY(nj_cuda_enter(s->ctx));
    if (config.shared_bytes < cu->least_shared[id])
        config.shared_bytes = cu->least_shared[id];
    const int rc = cu->driver.cuLaunchKernelEx(&config, cu->functions[id], NULL, extra);
    return rc != 0 ? nj_cuda_check(s->ctx, rc, kernel->key) : 0;
}
