/* SPDX-License-Identifier: Apache-2.0
 *
 * context.c: opens a device: which backend, and what to say when the GPU cannot be used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Return whether an error in opening a GPU means that there is none to use, so that NJ_DEVICE_AUTO takes the CPU; any
 * other error is a fault that must not be hidden. */
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
    if (rc != 0) {
        close_backend(ctx);
        return rc;
    }
    if (ctx->info.cache_key[0] || options->retest)
        rc = nj_tested(ctx, options);
    if (rc == 0) /* less if the self-test made a library load its code */
        ctx->info.budget_bytes = backend->budget(ctx, NJ_MEM_DEVICE);
    ctx->gemm_tune = options->gemm_tune;
    if (rc != 0)
        close_backend(ctx);
    return rc;
}

/* ---- AUTO: CUDA, else Vulkan if it multiplies faster than the CPU, else the CPU ---- */

static int cpu_speed(const struct nj_options *options, double *gflops)
{
    const struct nj_options plain = {.ordinal = options->ordinal, .verbose = options->verbose};
    nj_context *cpu = calloc(1, sizeof *cpu);
    int rc = cpu ? open_backend(cpu, &nj_backend_cpu, &plain) : NJ_E_NOMEM;

    if (rc == 0)
        rc = nj_gemm_speed(cpu, gflops);
    nj_context_destroy(cpu);
    return rc;
}

/* Return 1 if the GPU is to be taken. why: the measured speeds, or the failure. */
static int is_faster(nj_context *ctx, const struct nj_options *options, char *why, size_t bytes)
{
    double gpu = 0, cpu = 0;
    int rc = nj_gemm_speed(ctx, &gpu);

    if (rc != 0) {
        snprintf(why, bytes, "%s", ctx->error);
        return 0;
    }
    rc = cpu_speed(options, &cpu);
    snprintf(why, bytes,
             "%.100s runs a GEMM of %d x %d x %d at %.0f GFLOP/s, the CPU at %.0f GFLOP/s",
             ctx->info.name, NJ_SPEED_SIDE, NJ_SPEED_SIDE, NJ_SPEED_SIDE, gpu, cpu);
    return rc != 0 || gpu > cpu;
}

/* Try Vulkan; *taken: the context is open. A GPU name that does not exist is the caller's fault; any other failure
 * is a reason to take the CPU. */
static int try_vulkan(nj_context *ctx, const struct nj_options *options, char *why, size_t bytes,
                      int *taken)
{
    int rc = open_backend(ctx, &nj_backend_vulkan, options);

    *taken = rc == 0;
    if (rc != 0) {
        snprintf(why, bytes, "%s", ctx->error);
        return rc == NJ_E_ARG ? rc : 0;
    }
    *taken = is_faster(ctx, options, why, bytes);
    if (!*taken)
        close_backend(ctx);
    return 0;
}

static int open_auto(nj_context *ctx, const struct nj_options *options)
{
    char cuda[NJ_SENTENCE_BYTES], vulkan[NJ_SENTENCE_BYTES] = "";
    int taken = 0, rc = open_backend(ctx, &nj_backend_cuda, options);

    if (!may_fall_back(rc))
        return rc;
    snprintf(cuda, sizeof cuda, "%s", ctx->error);
    TRY(try_vulkan(ctx, options, vulkan, sizeof vulkan, &taken));
    if (!taken)
        TRY(open_backend(ctx, &nj_backend_cpu, options));
    snprintf(ctx->info.fallback, sizeof ctx->info.fallback, "%.500s; Vulkan: %.500s", cuda, vulkan);
    ctx->error[0] = '\0';
    return 0;
}

static int open_device(nj_context *ctx, const struct nj_options *options)
{
    switch (options->device) {
    case NJ_DEVICE_CPU:
        return open_backend(ctx, &nj_backend_cpu, options);
    case NJ_DEVICE_CUDA:
        return open_backend(ctx, &nj_backend_cuda, options);
    case NJ_DEVICE_VULKAN:
        return open_backend(ctx, &nj_backend_vulkan, options);
    case NJ_DEVICE_AUTO:
        return open_auto(ctx, options);
    }
    return nj_fail(ctx, NJ_E_ARG,
                   "nj_context_create: device kind %d is not one of AUTO, CPU, CUDA, VULKAN",
                   (int)options->device);
}

int nj_context_create_sized(nj_context **out, const struct nj_options *options, size_t bytes)
{
    struct nj_options known = {.device = NJ_DEVICE_AUTO};
    const char *graph = getenv("NOJIT_GRAPH"), *wrong = NULL;
    nj_context *ctx;

    if (!out)
        return NJ_E_ARG;
    *out = ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return NJ_E_NOMEM;
    if (options)
        wrong = nj_sized_read(&known, sizeof known, options, bytes);
    if (wrong)
        return nj_fail(
            ctx, NJ_E_ARG,
            "nj_context_create: nj_options %s (%zu bytes, here %zu); compile the program "
            "against the nojit.h of its libnojit.a",
            wrong, bytes, sizeof known);
    ctx->graphs_off = graph && strcmp(graph, "0") == 0;
    return open_device(ctx, &known);
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
