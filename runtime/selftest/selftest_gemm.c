/* SPDX-License-Identifier: Apache-2.0
 *
 * selftest_gemm.c: GEMMs against sums in double: each kind with few tiles, and with as many as large GPUs get.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

struct matrices {
    size_t rows[3], columns[3]; /* of A, B and C as stored */
    float *host[3];             /* C: before, then after */
    float *before;              /* of C */
    void *device[3];
};

static const char *const kinds[] = {"NT", "NN", "TN"};

static size_t count_of(const struct matrices *m, int i)
{
    return m->rows[i] * m->columns[i];
}

/* No row ends where the next begins: a ld is a column more than it need be. */
static struct nj_gemm shape_of(enum nj_gemm_kind kind, int M, int N, int K, struct matrices *m)
{
    struct nj_gemm g = {.kind = kind, .M = M, .N = N, .K = K, .beta = 0.5f, .scale = 0.75f};

    g.lda = (kind == NJ_GEMM_TN ? M : K) + 1;
    g.ldb = (kind == NJ_GEMM_NT ? K : N) + 1;
    g.ldc = N + 1;
    *m = (struct matrices){.rows = {(size_t)(kind == NJ_GEMM_TN ? K : M),
                                    (size_t)(kind == NJ_GEMM_NT ? N : K), (size_t)M},
                           .columns = {(size_t)g.lda, (size_t)g.ldb, (size_t)g.ldc}};
    return g;
}

static int make(nj_context *ctx, nj_stream *s, struct matrices *m)
{
    int rc = 0;

    for (int i = 0; i < 3 && rc == 0; i++) {
        const struct case_arg a = {.type = CASE_F32, .fill = CASE_FILL_NORMAL, .scale = 1};
        const size_t n = count_of(m, i);
        double *values = nj_case_allocate(n, sizeof *values);

        m->host[i] = nj_case_allocate(n, sizeof(float));
        if (i == 2)
            m->before = nj_case_allocate(n, sizeof(float));
        if (!values || !m->host[i] || (i == 2 && !m->before)) {
            free(values);
            return NJ_E_NOMEM;
        }
        nj_case_fill_plain(&a, nj_case_stream_of(1, "gemm", "selftest", &"abc"[i]), (int64_t)n,
                           values);
        for (size_t k = 0; k < n; k++)
            m->host[i][k] = (float)values[k];
        free(values);
        rc = nj_alloc(ctx, NJ_MEM_DEVICE, n * sizeof(float), &m->device[i]);
        if (rc == 0)
            rc = nj_copy(s, m->device[i], m->host[i], n * sizeof(float));
    }
    if (rc == 0)
        memcpy(m->before, m->host[2], count_of(m, 2) * sizeof(float));
    return rc;
}

static void end(nj_context *ctx, struct matrices *m)
{
    for (int i = 0; i < 3; i++) {
        nj_free(ctx, NJ_MEM_DEVICE, m->device[i]);
        free(m->host[i]);
    }
    free(m->before);
}

static float at(const struct matrices *m, int i, size_t row, size_t column, int turned)
{
    return m->host[i][turned ? column * m->columns[i] + row : row * m->columns[i] + column];
}

/* A sum of K products in float32 is off by K + 2 roundings of the sum of their sizes at most. */
static int compare(const struct nj_gemm *g, const struct matrices *m, char *why, size_t bytes)
{
    for (size_t r = 0; r < (size_t)g->M; r++) {
        for (size_t c = 0; c < (size_t)g->N; c++) {
            const double old = (double)m->before[r * m->columns[2] + c] * (double)g->beta;
            const double got = (double)m->host[2][r * m->columns[2] + c];
            double sum = old, size = fabs(old);

            for (size_t k = 0; k < (size_t)g->K; k++) {
                const double p = (double)at(m, 0, r, k, g->kind == NJ_GEMM_TN) *
                                 (double)at(m, 1, k, c, g->kind == NJ_GEMM_NT) * (double)g->scale;
                sum += p;
                size += fabs(p);
            }
            if (fabs(got - sum) <= (g->K + 2) * 0x1p-23 * size)
                continue;
            snprintf(why, bytes, "GEMM %s %d x %d x %d: [%zu, %zu] is %.9g, not %.9g",
                     kinds[g->kind], g->M, g->N, g->K, r, c, got, sum);
            return NJ_E_DEVICE;
        }
        const size_t past = r * m->columns[2] + (size_t)g->N;

        if (m->host[2][past] != m->before[past]) {
            snprintf(why, bytes, "GEMM %s %d x %d x %d: wrote past the end of row %zu",
                     kinds[g->kind], g->M, g->N, g->K, r);
            return NJ_E_DEVICE;
        }
    }
    return 0;
}

static int try_shape(nj_context *ctx, nj_stream *s, enum nj_gemm_kind kind, const int *mnk,
                     char *why, size_t bytes)
{
    struct matrices m;
    const struct nj_gemm g = shape_of(kind, mnk[0], mnk[1], mnk[2], &m);
    int sync, rc = nj_gemm_prepare(ctx, &g);

    if (rc == 0)
        rc = make(ctx, s, &m);
    if (rc == 0)
        rc = nj_gemm_run(s, &g, m.device[2], m.device[0], m.device[1]);
    if (rc == 0)
        rc = nj_copy(s, m.host[2], m.device[2], count_of(&m, 2) * sizeof(float));
    sync = nj_stream_sync(s);
    rc = rc ? rc : sync;
    if (rc)
        snprintf(why, bytes, "GEMM %s: %.600s", kinds[kind],
                 rc == NJ_E_NOMEM ? "out of memory" : nj_context_error(ctx));
    else
        rc = compare(&g, &m, why, bytes);
    end(ctx, &m);
    return rc;
}

int nj_selftest_gemms(nj_context *ctx, nj_stream *s, char *why, size_t bytes)
{
    /* The second has tiles enough for the large ones of the Vulkan backend. */
    static const int shapes[][3] = {{67, 130, 37}, {5, 128 * 128, 19}};
    int rc = 0;

    for (int kind = NJ_GEMM_NT; kind <= NJ_GEMM_TN && rc == 0; kind++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes && rc == 0; i++)
            rc = try_shape(ctx, s, (enum nj_gemm_kind)kind, shapes[i], why, bytes);
    return rc;
}
