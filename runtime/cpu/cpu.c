/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.c: the backend without a GPU: references built in float32 (OpenMP) and OpenBLAS. Everything
 * is done when the call returns, so streams only carry their context and graphs do not exist.
 */
#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../internal.h"

enum { ALIGN = 256 };

/* x86 kernels name the processor; others often do not. */
static void read_name(char *out, size_t bytes)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(out, bytes, "CPU");
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        char *value = strchr(line, ':');

        if (value && strncmp(line, "model name", 10) == 0) {
            value += 1 + strspn(value + 1, " \t");
            value[strcspn(value, "\n")] = '\0';
            snprintf(out, bytes, "%s", value);
            break;
        }
    }
    fclose(f);
}

static int cpu_open(nj_context *ctx, const struct nj_options *options)
{
    (void)options;
    read_name(ctx->info.name, sizeof ctx->info.name);
    ctx->info.multiprocessors = omp_get_max_threads();
    ctx->info.memory_bytes = nj_meminfo("MemTotal");
    snprintf(ctx->info.gemm_library, sizeof ctx->info.gemm_library, "%s", openblas_get_config());
    return 0;
}

static void cpu_close(nj_context *ctx)
{
    (void)ctx;
}

static size_t cpu_budget(nj_context *ctx, enum nj_memory kind)
{
    (void)ctx;
    (void)kind;
    return nj_meminfo("MemAvailable");
}

static size_t cpu_gemm_workspace_bytes(const nj_context *ctx)
{
    (void)ctx;
    return 0;
}

static int cpu_alloc(nj_context *ctx, enum nj_memory kind, size_t bytes, void **out)
{
    (void)kind;
    if (bytes > SIZE_MAX - ALIGN)
        return nj_fail(ctx, NJ_E_NOMEM, "%zu bytes cannot be addressed", bytes);
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    *out = aligned_alloc(ALIGN, bytes);
    if (!*out)
        return nj_fail(ctx, NJ_E_NOMEM, "%zu bytes wanted, %zu can be had now; the system refused",
                       bytes, nj_meminfo("MemAvailable"));
    memset(*out, 0, bytes);
    return 0;
}

static void cpu_free(nj_context *ctx, enum nj_memory kind, void *ptr)
{
    (void)ctx;
    (void)kind;
    free(ptr);
}

static int cpu_copy(nj_stream *s, void *dst, const void *src, size_t bytes)
{
    (void)s;
    memmove(dst, src, bytes);
    return 0;
}

static int cpu_zero(nj_stream *s, void *dst, size_t bytes)
{
    (void)s;
    memset(dst, 0, bytes);
    return 0;
}

static int cpu_stream_create(nj_stream *s)
{
    (void)s;
    return 0;
}

static void cpu_stream_destroy(nj_stream *s)
{
    (void)s;
}

static int cpu_stream_sync(nj_stream *s)
{
    (void)s;
    return 0;
}

static int cpu_event_create(nj_event *e)
{
    (void)e;
    return 0;
}

static void cpu_event_destroy(nj_event *e)
{
    (void)e;
}

static int cpu_event_record(nj_event *e, nj_stream *s)
{
    struct timespec now;

    (void)s;
    clock_gettime(CLOCK_MONOTONIC, &now);
    e->ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    return 0;
}

static int cpu_event_sync(nj_event *e)
{
    if (e->ns == 0)
        return nj_fail(e->ctx, NJ_E_ARG, "nj_event_sync: the event was not recorded");
    return 0;
}

static int cpu_event_elapsed_ms(nj_event *from, nj_event *to, float *ms)
{
    if (from->ns == 0 || to->ns == 0)
        return nj_fail(to->ctx, NJ_E_ARG, "nj_event_elapsed_ms: an event was not recorded");
    *ms = (float)((double)(to->ns - from->ns) * 1e-6);
    return 0;
}

static int cpu_graph_begin(nj_stream *s)
{
    return nj_fail(s->ctx, NJ_E_UNSUPPORTED, "the CPU has no graphs; run the work directly");
}

static int cpu_graph_end(nj_stream *s, nj_graph *g)
{
    (void)g;
    return cpu_graph_begin(s);
}

static int cpu_graph_launch(nj_graph *g, nj_stream *s)
{
    (void)g;
    return cpu_graph_begin(s);
}

static void cpu_graph_destroy(nj_graph *g)
{
    (void)g;
}

static int cpu_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
                      const void *params)
{
    const struct nj_kernel *kernel = &nj_kernels[id];

    (void)grid;
    (void)shared_bytes;
    if (!kernel->cpu)
        return nj_fail(s->ctx, NJ_E_UNSUPPORTED,
                       "%s: the CPU runs float32 kernels only; choose dtype f32", kernel->key);
    kernel->cpu(params);
    return 0;
}

static int cpu_gemm_prepare(nj_context *ctx, struct nj_gemm_plan *plan)
{
    const struct nj_gemm *g = &plan->shape;

    if (g->ab_dtype != NJ_F32)
        return nj_fail(ctx, NJ_E_UNSUPPORTED, "the CPU multiplies float32 only; choose dtype f32");
    if (g->lda > INT32_MAX || g->ldb > INT32_MAX || g->ldc > INT32_MAX)
        return nj_fail(ctx, NJ_E_GEMM, "a row of more than 2^31-1 elements");
    return 0;
}

static int cpu_gemm_run(nj_stream *s, const struct nj_gemm_plan *plan, void *c, const void *a,
                        const void *b)
{
    const struct nj_gemm *g = &plan->shape;

    (void)s;
    cblas_sgemm(CblasRowMajor, g->kind == NJ_GEMM_TN ? CblasTrans : CblasNoTrans,
                g->kind == NJ_GEMM_NT ? CblasTrans : CblasNoTrans, g->M, g->N, g->K,
                nj_gemm_scale(g), a, (int)g->lda, b, (int)g->ldb, g->beta, c, (int)g->ldc);
    return 0;
}

static void cpu_gemm_release(nj_context *ctx, struct nj_gemm_plan *plan)
{
    (void)ctx;
    (void)plan;
}

const struct nj_backend nj_backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .budget = cpu_budget,
    .gemm_workspace_bytes = cpu_gemm_workspace_bytes,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .stream_sync = cpu_stream_sync,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .event_record = cpu_event_record,
    .event_sync = cpu_event_sync,
    .event_elapsed_ms = cpu_event_elapsed_ms,
    .graph_begin = cpu_graph_begin,
    .graph_end = cpu_graph_end,
    .graph_launch = cpu_graph_launch,
    .graph_destroy = cpu_graph_destroy,
    .launch = cpu_launch,
    .gemm_prepare = cpu_gemm_prepare,
    .gemm_run = cpu_gemm_run,
    .gemm_release = cpu_gemm_release,
};
