/* SPDX-License-Identifier: Apache-2.0
 *
 * vulkan.c: the backend for GPUs that CUDA cannot use: compute shaders in float32 arithmetic, compiled to
 * SPIR-V before the program starts. One process, and no graphs.
 */
#include <stdlib.h>

#include "backend.h"

static int vk_open(nj_context *ctx, const struct nj_options *options)
{
    struct nj_vk *vk = calloc(1, sizeof *vk);

    if (!vk)
        return nj_fail(ctx, NJ_E_NOMEM, "opening Vulkan: out of host memory");
    ctx->state = vk;
    vk->service.ctx = ctx;
    TRY(nj_vk_switched_off(ctx));
    TRY(nj_vk_open_library(ctx));
    TRY(nj_vk_choose_device(ctx, options));
    TRY(nj_vk_open_device(ctx));
    TRY(nj_vk_commands_create(&vk->service));
    return nj_vk_load_shaders(ctx, options);
}

static void vk_close(nj_context *ctx)
{
    struct nj_vk *vk = nj_vk_of(ctx);

    if (!vk)
        return;
    if (vk->device) {
        vk->api.DeviceWaitIdle(vk->device);
        nj_vk_unload_shaders(ctx);
        nj_vk_commands_destroy(&vk->service);
        nj_vk_free_all(ctx);
        vk->api.DestroySemaphore(vk->device, vk->done, NULL);
        vk->api.DestroyDevice(vk->device, NULL);
    }
    if (vk->instance && vk->api.DestroyInstance)
        vk->api.DestroyInstance(vk->instance, NULL);
    free(vk);
}

void nj_vulkan_search(void (*log)(void *user, const char *line), void *user)
{
    nj_context *ctx = calloc(1, sizeof *ctx);
    struct nj_vk *vk = calloc(1, sizeof *vk);

    if (ctx && vk) {
        ctx->state = vk;
        if (nj_vk_switched_off(ctx) || nj_vk_open_library(ctx))
            log(user, ctx->error);
        else
            nj_vk_list_devices(ctx, log, user);
        if (vk->instance && vk->api.DestroyInstance)
            vk->api.DestroyInstance(vk->instance, NULL);
    }
    free(vk);
    free(ctx);
}

static size_t vk_gemm_workspace_bytes(const nj_context *ctx)
{
    (void)ctx;
    return 0;
}

static void vk_gemm_release(nj_context *ctx, struct nj_gemm_plan *plan)
{
    (void)ctx;
    (void)plan;
}

static int vk_graph_begin(nj_stream *s)
{
    return nj_fail(s->ctx, NJ_E_UNSUPPORTED,
                   "the Vulkan backend has no graphs; run the work directly");
}

static int vk_graph_end(nj_stream *s, nj_graph *g)
{
    (void)g;
    return vk_graph_begin(s);
}

static int vk_graph_launch(nj_graph *g, nj_stream *s)
{
    (void)g;
    return vk_graph_begin(s);
}

static void vk_graph_destroy(nj_graph *g)
{
    (void)g;
}

static int refuse_ranks(nj_context *ctx)
{
    return nj_fail(ctx, NJ_E_UNSUPPORTED,
                   "the Vulkan backend uses one GPU; for several use --device cuda");
}

static int vk_comm_id(nj_context *ctx, unsigned char *id)
{
    (void)id;
    return refuse_ranks(ctx);
}

static int vk_comm_create(nj_comm *c, const unsigned char *id)
{
    (void)id;
    return refuse_ranks(c->ctx);
}

static void vk_comm_destroy(nj_comm *c)
{
    (void)c;
}

static int vk_transfer(nj_comm *c, nj_stream *s, const struct nj_transfer *t)
{
    (void)s;
    (void)t;
    return refuse_ranks(c->ctx);
}

const struct nj_backend nj_backend_vulkan = {
    .name = "vulkan",
    .open = vk_open,
    .close = vk_close,
    .budget = nj_vk_budget,
    .gemm_workspace_bytes = vk_gemm_workspace_bytes,
    .alloc = nj_vk_alloc,
    .free = nj_vk_free,
    .copy = nj_vk_copy,
    .zero = nj_vk_zero,
    .stream_create = nj_vk_stream_create,
    .stream_destroy = nj_vk_stream_destroy,
    .stream_sync = nj_vk_stream_sync,
    .event_create = nj_vk_event_create,
    .event_destroy = nj_vk_event_destroy,
    .event_record = nj_vk_event_record,
    .stream_wait = nj_vk_stream_wait,
    .event_sync = nj_vk_event_sync,
    .event_elapsed_ms = nj_vk_event_elapsed_ms,
    .graph_begin = vk_graph_begin,
    .graph_end = vk_graph_end,
    .graph_launch = vk_graph_launch,
    .graph_destroy = vk_graph_destroy,
    .has_kernel = nj_vk_has_kernel,
    .launch = nj_vk_launch,
    .gemm_prepare = nj_vk_gemm_prepare,
    .gemm_run = nj_vk_gemm_run,
    .gemm_release = vk_gemm_release,
    .pace = nj_vk_pace,
    .comm_id = vk_comm_id,
    .comm_create = vk_comm_create,
    .comm_destroy = vk_comm_destroy,
    .transfer = vk_transfer,
};
