/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.c: the backend without a GPU: references built in float32 (OpenMP) and OpenBLAS. Everything
 * is done when the call returns, so streams only carry their context and graphs do not exist.
 * Products of e4m3 are there for tests, and to say what they would cost a model: operands are
 * widened.
 */
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>

#include "cpu.h"

#include "base/clock.h"
#include "base/float8.h"

enum {
    ALIGN = 256,
    WIDENED_ROWS = 256,
    TILE_ROWS = 256, /* rows of a product's tile, for one thread */
    TILE_COLUMNS = 256,
    /* Limit on concurrent calls: OpenBLAS ends the program if many more call it at a time. */
    CALLERS = 64,
    BUFFER_MIB = 128 /* size of OpenBLAS's buffer for each of them */
};

/* Read the processor's name. x86 kernels give it; others often do not, and then the architecture is used. */
static void read_name(char *out, size_t bytes)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    struct utsname machine;
    char line[256];

    if (uname(&machine) == 0)
        snprintf(out, bytes, "%s CPU", machine.machine);
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

/* Limit OpenMP's threads to OMP_THREAD_LIMIT. OpenBLAS waits for as many threads as OpenMP would start, forever if
 * the limit allows fewer. The number that OpenMP would start is a setting of the calling thread. */
static void keep_to_thread_limit(void)
{
    if (omp_get_max_threads() > omp_get_thread_limit())
        omp_set_num_threads(omp_get_thread_limit());
}

static int product_threads(void)
{
    return omp_get_max_threads() < CALLERS ? omp_get_max_threads() : CALLERS;
}

/* Make each thread's first product a wide one, once in the process. OpenBLAS's kernels read ahead of
 * the panel that it packs into a buffer. Where the pages there have never been written, these reads
 * are slow under some virtual machines (tiles of TILE_COLUMNS take three times as long), and a panel
 * of twice the columns writes them. All threads begin at once, so that each has a buffer of its own.
 * Not done when a device is opened: a process that has used threads cannot use them in its children,
 * and the harness runs its cases there. */
static void touch_buffers(void)
{
    static atomic_flag touched = ATOMIC_FLAG_INIT;
    enum { M = TILE_ROWS, N = 2 * TILE_COLUMNS, K = 512 };

    if (atomic_flag_test_and_set(&touched))
        return;
#pragma omp parallel num_threads(product_threads())
    {
        float *a = calloc((size_t)(M + N) * K + (size_t)M * N, sizeof *a);
#pragma omp barrier
        if (a)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, M, N, K, 1, a, K, a + M * K, K, 0,
                        a + (M + N) * K, N);
#pragma omp barrier
        free(a);
    }
}

/* Refuse an address space that is too small for a buffer of OpenBLAS per calling thread: OpenBLAS would retry the
 * allocation forever. */
static int check_room(nj_context *ctx)
{
    const size_t bytes = (size_t)product_threads() * BUFFER_MIB << 20;
    void *room = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED)
        return nj_fail(
            ctx, NJ_E_NOMEM,
            "address space (ulimit -v) has no room for the %zu MiB that OpenBLAS takes, "
            "%d for each thread; raise the limit, or set OMP_NUM_THREADS to fewer threads",
            bytes >> 20, BUFFER_MIB);
    munmap(room, bytes);
    return 0;
}

static int cpu_open(nj_context *ctx, const struct nj_options *options)
{
    (void)options;
    keep_to_thread_limit();
    TRY(check_room(ctx));
    read_name(ctx->info.name, sizeof ctx->info.name);
    ctx->info.f8 = NJ_F8_ROWS;
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
        return nj_fail(ctx, NJ_E_NOMEM,
                       "%zu bytes wanted, %zu are available now; the system refused", bytes,
                       nj_meminfo("MemAvailable"));
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
    (void)s;
    e->ns = clock_ns();
    return 0;
}

/* Return 0: all earlier work is done already. */
static int cpu_stream_wait(nj_stream *s, nj_event *e)
{
    (void)s;
    (void)e;
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

static int cpu_has_kernel(const nj_context *ctx, uint32_t id)
{
    (void)ctx;
    return nj_kernels[id].cpu != NULL;
}

static int cpu_launch(nj_stream *s, uint32_t id, const uint32_t grid[3], uint32_t shared_bytes,
                      const void *params)
{
    const struct nj_kernel *kernel = &nj_kernels[id];

    (void)grid;
    (void)shared_bytes;
    if (!kernel->cpu)
        return nj_fail(s->ctx, NJ_E_UNSUPPORTED,
                       "%s: the CPU runs float32 kernels only; choose dtype f32 if the op has it",
                       kernel->key);
    kernel->cpu(params);
    return 0;
}

/* Return how many rows of B are widened at a time (NJ_F8); A is widened whole. */
static int32_t piece_rows(const struct nj_gemm *g)
{
    return g->N < WIDENED_ROWS ? g->N : WIDENED_ROWS;
}

static int cpu_gemm_prepare(nj_context *ctx, struct nj_gemm_plan *plan)
{
    const struct nj_gemm *g = &plan->shape;

    if (g->ab_dtype == NJ_LP || g->c_dtype == NJ_LP)
        return nj_fail(ctx, NJ_E_UNSUPPORTED, "the CPU has no 16-bit GEMMs; choose dtype f32");
    if (g->lda > INT32_MAX || g->ldb > INT32_MAX || g->ldc > INT32_MAX)
        return nj_fail(ctx, NJ_E_GEMM, "a row of more than 2^31-1 elements");
    if (g->ab_dtype == NJ_F32)
        return 0;
    plan->state = calloc((size_t)g->M + (size_t)piece_rows(g), (size_t)g->K * sizeof(float));
    return plan->state ? 0 : nj_fail(ctx, NJ_E_NOMEM, "out of host memory");
}

/* Widen rows of e4m3 or e5m2. step: floats from the scale of a row to the next */
static void widen(float *out, const uint8_t *x, float (*value_of)(uint8_t), const float *scale,
                  int step, int32_t rows, int32_t columns, int64_t ld)
{
    float value[256];

    for (unsigned i = 0; i < 256; i++)
        value[i] = value_of((uint8_t)i);
#pragma omp parallel for
    for (int32_t r = 0; r < rows; r++)
        for (int32_t c = 0; c < columns; c++)
            out[(int64_t)r * columns + c] = scale[r * step] * value[x[r * ld + c]];
}

/* Compute one tile of a product; `left` is the number of rows and columns that remain from its origin. */
static void run_tile(const struct nj_gemm *g, float *c, const float *a, const float *b,
                     const int64_t left[2])
{
    const int rows = left[0] < TILE_ROWS ? (int)left[0] : TILE_ROWS;
    const int columns = left[1] < TILE_COLUMNS ? (int)left[1] : TILE_COLUMNS;

    cblas_sgemm(CblasRowMajor, g->kind == NJ_GEMM_TN ? CblasTrans : CblasNoTrans,
                g->kind == NJ_GEMM_NT ? CblasTrans : CblasNoTrans, rows, columns, g->K,
                nj_gemm_scale(g), a, (int)g->lda, b, (int)g->ldb, g->beta, c, (int)g->ldc);
}

/* Compute a product in tiles of one size, each by one thread. Left alone, OpenBLAS divides by the number of threads,
 * and for some processors the bits of its sums depend on where. The process computes one product at a time. */
static void run_f32(const struct nj_gemm *g, float *c, const float *a, const float *b)
{
    const int64_t a_step = g->kind == NJ_GEMM_TN ? 1 : g->lda;
    const int64_t b_step = g->kind == NJ_GEMM_NT ? g->ldb : 1;
    const int threads = product_threads();

    touch_buffers();
#pragma omp critical(nj_product)
#pragma omp parallel for collapse(2) num_threads(threads)
    for (int64_t m = 0; m < g->M; m += TILE_ROWS)
        for (int64_t n = 0; n < g->N; n += TILE_COLUMNS)
            run_tile(g, c + m * g->ldc + n, a + m * a_step, b + n * b_step,
                     (const int64_t[]){g->M - m, g->N - n});
}

static void run_f8(const struct nj_gemm_plan *plan, const struct nj_gemm_operands *x)
{
    const struct nj_gemm *g = &plan->shape;
    const int32_t most = piece_rows(g);
    const int step = !g->one_scale;
    float *a = plan->state, *b = a + (size_t)g->M * (size_t)g->K, *c = x->c;
    struct nj_gemm piece = *g;

    piece.lda = piece.ldb = g->K;
    widen(a, x->a, g->a_e5m2 ? f32_from_e5m2 : f32_from_e4m3, x->a_scale, step, g->M, g->K, g->lda);
    for (int32_t n = 0; n < g->N; n += most) {
        piece.N = g->N - n < most ? g->N - n : most;
        widen(b, (const uint8_t *)x->b + n * g->ldb, f32_from_e4m3,
              (const float *)x->b_scale + n * step, step, piece.N, g->K, g->ldb);
        run_f32(&piece, c + n, a, b);
    }
}

static int cpu_gemm_run(nj_stream *s, const struct nj_gemm_plan *plan,
                        const struct nj_gemm_operands *x)
{
    (void)s;
    keep_to_thread_limit();
    if (plan->shape.ab_dtype == NJ_F8)
        run_f8(plan, x);
    else
        run_f32(&plan->shape, x->c, x->a, x->b);
    return 0;
}

static void cpu_gemm_release(nj_context *ctx, struct nj_gemm_plan *plan)
{
    (void)ctx;
    free(plan->state);
    plan->state = NULL;
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
    .stream_wait = cpu_stream_wait,
    .event_sync = cpu_event_sync,
    .event_elapsed_ms = cpu_event_elapsed_ms,
    .graph_begin = cpu_graph_begin,
    .graph_end = cpu_graph_end,
    .graph_launch = cpu_graph_launch,
    .graph_destroy = cpu_graph_destroy,
    .has_kernel = cpu_has_kernel,
    .launch = cpu_launch,
    .gemm_prepare = cpu_gemm_prepare,
    .gemm_run = cpu_gemm_run,
    .gemm_release = cpu_gemm_release,
    .comm_id = nj_cpu_comm_id,
    .comm_create = nj_cpu_comm_create,
    .comm_destroy = nj_cpu_comm_destroy,
    .transfer = nj_cpu_transfer,
};
