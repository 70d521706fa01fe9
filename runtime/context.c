/* SPDX-License-Identifier: Apache-2.0
 *
 * context.c: opens a device: which backend, and what to say when the GPU cannot be used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* With AUTO these mean that there is no GPU to use here; anything else is a fault that must not be
 * hidden. */
static int may_fall_back(int code)
{
    return code == NJ_E_NO_DEVICE || code == NJ_E_DRIVER || code == NJ_E_LIBRARY ||
           code == NJ_E_NO_CODE;
}

static void close_backend(nj_context *ctx)
{
    if (!ctx->backend)
        return;
    nj_gemm_table_free(ctx);
    nj_gemm_choices_free(ctx);
    ctx->backend->close(ctx);
    ctx->backend = NULL;
    ctx->state = NULL;
}

static int open_backend(nj_context *ctx, const struct nj_backend *backend,
                        const struct nj_options *options)
{
    int rc;

    memset(&ctx->info, 0, sizeof ctx->info);
    ctx->backend = backend;
    ctx->info.backend = backend->name;
    rc = backend->open(ctx, options);
    if (rc) {
        close_backend(ctx);
        return rc;
    }
    ctx->info.budget_bytes = backend->budget(ctx, NJ_MEM_DEVICE);
    return 0;
}

int nj_context_create(nj_context **out, const struct nj_options *options)
{
    static const struct nj_options defaults;
    const char *graph = getenv("NOJIT_GRAPH");
    nj_context *ctx;
    int rc;

    if (!out)
        return NJ_E_ARG;
    *out = ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return NJ_E_NOMEM;
    if (!options)
        options = &defaults;
    ctx->graphs_off = graph && strcmp(graph, "0") == 0;
    switch (options->device) {
    case NJ_DEVICE_CPU:
        return open_backend(ctx, &nj_backend_cpu, options);
    case NJ_DEVICE_CUDA:
        return open_backend(ctx, &nj_backend_cuda, options);
    case NJ_DEVICE_VULKAN:
        return open_backend(ctx, &nj_backend_vulkan, options);
    case NJ_DEVICE_AUTO:
        rc = open_backend(ctx, &nj_backend_cuda, options);
        if (!may_fall_back(rc))
            return rc;
        rc = open_backend(ctx, &nj_backend_cpu, options);
        if (rc == 0)
            snprintf(ctx->info.fallback, sizeof ctx->info.fallback, "%s", ctx->error);
        ctx->error[0] = '\0';
        return rc;
    }
    return nj_fail(ctx, NJ_E_ARG,
                   "nj_context_create: device kind %d is not one of AUTO, CPU, CUDA, VULKAN",
                   (int)options->device);
}

void nj_context_destroy(nj_context *ctx)
{
    if (!ctx)
        return;
    close_backend(ctx);
    free(ctx);
}

const struct nj_device_info *nj_context_device(const nj_context *ctx)
{
    return &ctx->info;
}

size_t nj_context_budget(nj_context *ctx)
{
    return ctx->backend ? ctx->backend->budget(ctx, NJ_MEM_DEVICE) : 0;
}
