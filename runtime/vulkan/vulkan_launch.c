/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan_launch.c: enqueues kernels and GEMMs. The launcher's parameter block, followed by the grid, becomes the push
 * constants.
 */
#include <string.h>

#include "backend.h"
#include "gemm_block.h"

/* Sides of a workgroup's tile of a GEMM (kernels/vulkan/gemm.comp). The large tile reads each operand half as often,
 * which pays off if there are enough tiles for every core of a GPU; LARGE_TILES_LEAST is a guess at that number. */
static const uint32_t gemm_tiles[NJ_VK_TILES] = {64, 128};
enum { LARGE_TILES_LEAST = 128 };

int nj_vk_has_kernel(const nj_context *ctx, uint32_t id)
{
    return nj_vk_of(ctx)->pipelines[id] != VK_NULL_HANDLE;
}

/* A launch as rows of workgroups. Both sizes of a grid are within the driver's limits, which are 65,535 or more. A long
 * launch is divided into pieces of whole rows, and has at least as many rows as pieces. A block's work does not depend
 * on its row. */
struct rows {
    uint32_t width, count, each; /* workgroups per row, rows, rows per piece */
};

static struct rows rows_of(const nj_context *ctx, uint64_t groups, double operations)
{
    const struct nj_vk *vk = nj_vk_of(ctx);
    const double pieces = operations / ctx->info.submit_operations + 1;
    const uint64_t most = groups < vk->groups_max[1] ? groups : vk->groups_max[1];
    const uint64_t wanted = pieces < (double)most ? (uint64_t)pieces : most;
    const uint64_t least = (groups + vk->groups_max[0] - 1) / vk->groups_max[0];
    const uint64_t rows = wanted > least ? wanted : least;
    struct rows r;

    r.width = (uint32_t)((groups + rows - 1) / rows);
    r.count = (uint32_t)((groups + r.width - 1) / r.width);
    r.each = (uint32_t)((r.count + wanted - 1) / wanted);
    return r;
}

/* Dispatch a launch in pieces. Recorded pieces are submitted as soon as they are enough; a barrier follows the last. */
static int dispatch(nj_stream *s, VkPipeline pipeline, const uint32_t grid[3], const void *push,
                    uint32_t push_bytes, double operations)
{
    struct nj_vk *vk = nj_vk_of(s->ctx);
    const uint64_t plane = (uint64_t)grid[0] * grid[1];
    const uint64_t most = (uint64_t)vk->groups_max[0] * vk->groups_max[1];
    VkCommandBuffer commands;
    struct rows r;
    int rc = 0;

    if (plane > UINT32_MAX || plane * grid[2] > UINT32_MAX || plane * grid[2] > most)
        return nj_fail(s->ctx, NJ_E_ARG, "%s: a grid of %u x %u x %u is too large for Vulkan",
                       s->ctx->last_key, grid[0], grid[1], grid[2]);
    r = rows_of(s->ctx, plane * grid[2], operations);
    for (uint32_t row = 0; row < r.count && rc == 0; row += r.each) {
        const uint32_t rows = r.count - row < r.each ? r.count - row : r.each;
        const double share = operations * rows / r.count;

        rc = nj_vk_begin(s, &commands);
        if (rc != 0)
            return rc;
        vk->api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        vk->api.CmdPushConstants(commands, vk->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes,
                                 push);
        vk->api.CmdDispatchBase(commands, 0, row, 0, r.width, rows, 1);
        rc = row + rows < r.count ? nj_vk_piece(s, share) : nj_vk_recorded(s, share);
    }
    return rc;
}

static double work_of(const struct nj_kernel *kernel, const void *params)
{
    double flops = 0, bytes = 0;

    if (kernel->work)
        kernel->work(params, &flops, &bytes);
    return flops + NJ_VK_BYTE_OPERATIONS * bytes;
}

int nj_vk_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
                 const void *params)
{
    const struct nj_kernel *kernel = &nj_kernels[id];
    VkPipeline pipeline = nj_vk_of(s->ctx)->pipelines[id];
    unsigned char push[NJ_VK_PUSH_BYTES];

    (void)shared_bytes; /* a shader declares its shared memory itself */
    if (!pipeline)
        return nj_fail(
            s->ctx, NJ_E_UNSUPPORTED,
            "%s: the Vulkan backend has no shader for it, or this GPU's workgroups are too "
            "small; use --device cuda or cpu",
            kernel->key);
    memcpy(push, params, kernel->param_bytes);
    memcpy(push + kernel->param_bytes, grid, NJ_VK_GRID_BYTES);
    return dispatch(s, pipeline, grid, push, kernel->param_bytes + NJ_VK_GRID_BYTES,
                    work_of(kernel, params));
}

/* Return the index, among the keys' types, of the operand and result types. */
static int types_of(const struct nj_gemm *g)
{
    return g->ab_dtype == NJ_F32 ? 0 : g->c_dtype == NJ_LP ? 1 : 2;
}

int nj_vk_gemm_prepare(nj_context *ctx, struct nj_gemm_plan *plan)
{
    const struct nj_gemm *g = &plan->shape;
    const VkPipeline *tiles = nj_vk_of(ctx)->gemms[g->kind][types_of(g)];

    if (g->ab_dtype == NJ_F8)
        return nj_fail(ctx, NJ_E_UNSUPPORTED, "the Vulkan backend has no FP8 GEMMs");
    if (g->ab_dtype == NJ_LP && !ctx->info.lp)
        return nj_fail(ctx, NJ_E_UNSUPPORTED,
                       "%s has no 16-bit storage (storageBuffer16BitAccess); choose dtype f32",
                       ctx->info.name);
    if (!tiles[0] || !tiles[1])
        return nj_fail(ctx, NJ_E_UNSUPPORTED, "this program was built without shaders of GEMMs");
    return 0;
}

static uint32_t tiles_of(int32_t size, uint32_t tile)
{
    return ((uint32_t)size + tile - 1) / tile;
}

static int choose_tile(const struct nj_gemm *g)
{
    const uint32_t large = gemm_tiles[1];

    return (uint64_t)tiles_of(g->M, large) * tiles_of(g->N, large) >= LARGE_TILES_LEAST;
}

int nj_vk_gemm_run(nj_stream *s, const struct nj_gemm_plan *plan, const struct nj_gemm_operands *x)
{
    const struct nj_gemm *g = &plan->shape;
    const int tile = choose_tile(g);
    const uint32_t grid[3] = {tiles_of(g->N, gemm_tiles[tile]), tiles_of(g->M, gemm_tiles[tile]),
                              1};
    const struct nj_vk_gemm_block block = {.c = x->c,
                                           .a = x->a,
                                           .b = x->b,
                                           .lda = g->lda,
                                           .ldb = g->ldb,
                                           .ldc = g->ldc,
                                           .M = g->M,
                                           .N = g->N,
                                           .K = g->K,
                                           .scale = nj_gemm_scale(g),
                                           .beta = g->beta,
                                           .grid = {grid[0], grid[1], grid[2]}};

    s->ctx->last_key = "a GEMM";
    return dispatch(s, nj_vk_of(s->ctx)->gemms[g->kind][types_of(g)][tile], grid, &block,
                    sizeof block, 2.0 * g->M * g->N * g->K);
}
