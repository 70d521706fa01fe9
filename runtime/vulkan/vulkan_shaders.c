/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan_shaders.c: the pipelines of all embedded shaders, made when a GPU is opened. The driver
 * gets each as SPIR-V then, and none later; those of an earlier run it need not compile. An op without a
 * shader has no pipeline.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "base/clock.h"
#include "gemm_block.h"

/* Names by enum nj_gemm_kind. */
static const char *const gemm_kinds[NJ_VK_GEMMS] = NJ_VK_GEMM_KINDS;
static const char *const gemm_types[NJ_VK_TYPES] = NJ_VK_GEMM_TYPES;
static const char *const gemm_sizes[NJ_VK_TILES] = NJ_VK_GEMM_SIZES;

/* Check that launcher and shader come from the same build; the shader's grid follows the launcher's block. */
static int check_entry(nj_context *ctx, const struct nj_index *index,
                       const struct nj_kernel *kernel, const struct nji_entry *entry)
{
    if (entry->threads == kernel->threads && entry->param_count == kernel->param_count + 1u &&
        entry->param_bytes == kernel->param_bytes + NJ_VK_GRID_BYTES &&
        memcmp(index->params + entry->first_param, kernel->params,
               kernel->param_count * sizeof(struct nj_param)) == 0)
        return 0;
    return nj_fail(ctx, NJ_E_INDEX, "%s: launcher and shader disagree; rebuild from clean",
                   kernel->key);
}

/* Create a pipeline from the cache if it is there; otherwise the driver compiles it. */
static VkResult create(nj_context *ctx, VkComputePipelineCreateInfo *info, VkPipeline *out)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    VkResult result = VK_PIPELINE_COMPILE_REQUIRED;

    if (vk->cached) {
        info->flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT |
                      VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT;
        result = vk->api.CreateComputePipelines(vk->device, vk->cache, 1, info, NULL, out);
    }
    if (result != VK_PIPELINE_COMPILE_REQUIRED)
        return result;
    info->flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;
    ctx->info.pipelines_compiled++;
    return vk->api.CreateComputePipelines(vk->device, vk->cache, 1, info, NULL, out);
}

static int load(nj_context *ctx, const struct nj_index *index, const struct nji_entry *entry,
                VkPipeline *out)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    const VkShaderModuleCreateInfo code = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = entry->blob_bytes,
        .pCode = (const uint32_t *)(const void *)(index->blobs + entry->blob_off)};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = index->strings + entry->entry_str},
        .layout = vk->layout};
    const char *key = index->strings + entry->key_str;
    VkShaderModule module = VK_NULL_HANDLE;
    TRY(nj_vk_check(ctx, vk->api.CreateShaderModule(vk->device, &code, NULL, &module), key));
    info.stage.module = module;
    const int rc = nj_vk_check(ctx, create(ctx, &info, out), key);
    if (rc != 0)
        *out = VK_NULL_HANDLE;
    vk->api.DestroyShaderModule(vk->device, module, NULL);
    ctx->info.kernels_loaded += rc == 0;
    ctx->info.modules_loaded += rc == 0;
    return rc;
}

/* Return whether a shader can be loaded: a GPU without 16-bit elements gets no shader that uses them. */
static int can_load(const nj_context *ctx, const struct nji_entry *entry, const char *key)
{
    return entry && entry->threads <= nj_vk_of(ctx)->threads_max &&
           (ctx->info.lp || !strstr(key, ".lp"));
}

static int load_gemm(nj_context *ctx, const struct nj_index *index, int kind, int type, int tile)
{
    char key[40];
    const struct nji_entry *entry;

    snprintf(key, sizeof key, "gemm.%s.%s%s", gemm_kinds[kind], gemm_types[type], gemm_sizes[tile]);
    entry = nj_index_find(index, key);
    if (entry && (entry->threads != NJ_VK_GEMM_THREADS || entry->param_bytes != NJ_VK_GEMM_BYTES))
        return nj_fail(ctx, NJ_E_INDEX, "%s: launcher and shader disagree; rebuild from clean",
                       key);
    return can_load(ctx, entry, key)
               ? load(ctx, index, entry, &nj_vk_of(ctx)->gemms[kind][type][tile])
               : 0;
}

static int load_all(nj_context *ctx, const struct nj_index *index, const struct nj_options *options)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    int rc = 0;

    for (uint32_t id = 0; id < nj_kernel_count && rc == 0; id++) {
        const struct nji_entry *entry = nj_index_find(index, nj_kernels[id].key);

        nj_doing(options, "the Vulkan driver of %.100s compiles shaders: %u of about %u",
                 ctx->info.name, ctx->info.kernels_loaded, nj_kernel_count);
        if (entry)
            rc = check_entry(ctx, index, &nj_kernels[id], entry);
        if (rc == 0 && can_load(ctx, entry, nj_kernels[id].key))
            rc = load(ctx, index, entry, &vk->pipelines[id]);
    }
    for (int kind = 0; kind < NJ_VK_GEMMS; kind++)
        for (int type = 0; type < NJ_VK_TYPES; type++)
            for (int tile = 0; tile < NJ_VK_TILES && rc == 0; tile++)
                rc = load_gemm(ctx, index, kind, type, tile);
    return rc;
}

static void say_count(const nj_context *ctx, const struct nj_options *options)
{
    const struct nj_device_info *d = &ctx->info;
    char line[200];

    snprintf(line, sizeof line,
             "the Vulkan driver has %u shaders, %u of them compiled now, in %.0f ms",
             d->kernels_loaded, d->pipelines_compiled, (double)d->pipelines_ms);
    options->log(options->log_user, line);
}

int nj_vk_load_shaders(nj_context *ctx, const struct nj_options *options)
{
    struct nj_vk *vk = nj_vk_of(ctx);
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, NJ_VK_PUSH_BYTES};
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &range};
    const double begun = clock_ms();
    char why[NJ_SENTENCE_BYTES];
    struct nj_index index;
    int rc = nj_shaders_embedded(&index, why);

    if (rc != 0)
        return nj_fail(ctx, rc, "%s", why);
    vk->pipelines = calloc(nj_kernel_count, sizeof *vk->pipelines);
    if (!vk->pipelines)
        return nj_fail(ctx, NJ_E_NOMEM, "loading shaders: out of host memory");
    rc = nj_vk_check(ctx, vk->api.CreatePipelineLayout(vk->device, &layout, NULL, &vk->layout),
                     "loading shaders");
    nj_vk_cache_key(ctx, &index);
    if (rc == 0)
        rc = nj_vk_cache_open(ctx, options->cache_folder);
    if (rc == 0)
        rc = load_all(ctx, &index, options);
    ctx->info.pipelines_ms = (float)(clock_ms() - begun);
    if (rc == 0 && ctx->info.pipelines_compiled > 0)
        rc = nj_vk_cache_write(ctx, options->cache_folder);
    if (rc == 0 && options->verbose && options->log)
        say_count(ctx, options);
    return rc;
}

void nj_vk_unload_shaders(nj_context *ctx)
{
    struct nj_vk *vk = nj_vk_of(ctx);

    for (uint32_t id = 0; vk->pipelines && id < nj_kernel_count; id++)
        vk->api.DestroyPipeline(vk->device, vk->pipelines[id], NULL);
    for (int kind = 0; kind < NJ_VK_GEMMS; kind++)
        for (int type = 0; type < NJ_VK_TYPES; type++)
            for (int tile = 0; tile < NJ_VK_TILES; tile++)
                vk->api.DestroyPipeline(vk->device, vk->gemms[kind][type][tile], NULL);
    vk->api.DestroyPipelineCache(vk->device, vk->cache, NULL);
    vk->api.DestroyPipelineLayout(vk->device, vk->layout, NULL);
    free(vk->pipelines);
}
