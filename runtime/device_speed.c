/* SPDX-License-Identifier: Apache-2.0
 *
 * device_speed.c: how fast a device multiplies and copies, by the time of one GEMM and of one copy: what AUTO weighs a
 * GPU by Vulkan against the CPU with, and what says how much work a GPU by Vulkan gets at a time.
 */
#include "internal.h"

enum { SIDE = NJ_SPEED_SIDE, TIMED = 3, LONG_MS = 100 };
/* Size of a copy: more than caches hold. */
enum { GEMM_BYTES = SIDE * SIDE * 4, COPY_BYTES = 64 << 20 };

struct trial {
    nj_stream *s;
    nj_event *from, *to;
    const struct nj_gemm *gemm; /* GEMM to time; NULL: a copy is timed */
    void *a, *b, *c;
};

static int begin(nj_context *ctx, size_t bytes, struct trial *t)
{
    int rc = nj_stream_create(ctx, &t->s);

    if (rc == 0)
        rc = nj_event_create(ctx, &t->from);
    if (rc == 0)
        rc = nj_event_create(ctx, &t->to);
    if (rc == 0)
        rc = nj_alloc(ctx, NJ_MEM_DEVICE, bytes, &t->a);
    if (rc == 0 && t->gemm)
        rc = nj_alloc(ctx, NJ_MEM_DEVICE, bytes, &t->b);
    if (rc == 0)
        rc = nj_alloc(ctx, NJ_MEM_DEVICE, bytes, &t->c);
    return rc != 0 || !t->gemm ? rc : nj_gemm_prepare(ctx, t->gemm);
}

static void end(nj_context *ctx, struct trial *t)
{
    nj_free(ctx, NJ_MEM_DEVICE, t->c);
    nj_free(ctx, NJ_MEM_DEVICE, t->b);
    nj_free(ctx, NJ_MEM_DEVICE, t->a);
    nj_event_destroy(t->to);
    nj_event_destroy(t->from);
    nj_stream_destroy(t->s);
}

static int run(struct trial *t, float *ms)
{
    TRY(nj_event_record(t->from, t->s));

    TRY(t->gemm ? nj_gemm_run(t->s, t->gemm, t->c, t->a, t->b)
                : nj_copy(t->s, t->c, t->a, COPY_BYTES));
    TRY(nj_event_record(t->to, t->s));
    return nj_event_elapsed_ms(t->from, t->to, ms);
}

/* Measure the work per second of a GEMM, or of a copy if gemm is NULL. */
static int measure(nj_context *ctx, const struct nj_gemm *gemm, double work, double *out)
{
    struct trial t = {.gemm = gemm};
    float ms, best = 0;
    int rc = begin(ctx, gemm ? GEMM_BYTES : COPY_BYTES, &t);

    /* Clocks rise and caches fill in the first runs; a run that takes long is accurate enough alone. */
    for (int i = 0; i < TIMED && best < LONG_MS && rc == 0; i++) {
        ms = 0;
        rc = run(&t, &ms);
        best = i < 2 || ms < best ? ms : best;
    }
    end(ctx, &t);
    *out = best > 0 ? work * 1e3 / (double)best : 0;
    return rc;
}

static int time_gemm(nj_context *ctx, double *flops)
{
    const struct nj_gemm g = {.kind = NJ_GEMM_NT,
                              .ab_dtype = NJ_F32,
                              .c_dtype = NJ_F32,
                              .M = SIDE,
                              .N = SIDE,
                              .K = SIDE,
                              .lda = SIDE,
                              .ldb = SIDE,
                              .ldc = SIDE};

    return measure(ctx, &g, 2.0 * SIDE * SIDE * SIDE, flops);
}

int nj_gemm_speed(nj_context *ctx, double *gflops)
{
    const int rc = time_gemm(ctx, gflops);

    *gflops *= 1e-9;
    return rc;
}

int nj_speed(nj_context *ctx, struct nj_speed *out)
{
    TRY(time_gemm(ctx, &out->gemm_flops));

    return measure(ctx, NULL, 2.0 * COPY_BYTES, &out->copy_bytes);
}
