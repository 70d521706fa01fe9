/* SPDX-License-Identifier: Apache-2.0
 *
 * selftest_gemm.c: GEMMs against sums in double: each kind and type that the device has, with few tiles, and with as
 * many as large GPUs get.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

/* What A and B, and what C is stored as. */
static const struct types {
    enum nj_dtype ab, c;
    const char *name;
} all_types[] = {
    {NJ_F32, NJ_F32, "float32"},
    {NJ_LP, NJ_LP, "bfloat16"},
    {NJ_LP, NJ_F32, "bfloat16 to float32"},
};
static const char *const kinds[] = {"NT", "NN", "TN"};

struct matrix {
    size_t rows, columns;
    enum case_type type;
    double *values;        /* that were sent, as the type holds them */
    unsigned char *stored; /* C: what came back */
    void *device;
};

struct trial {
    struct nj_gemm g;
    struct matrix matrix[3]; /* A, B and C as stored */
    char name[80];
};

static size_t count_of(const struct matrix *m)
{
    return m->rows * m->columns;
}

static size_t bytes_of(const struct matrix *m)
{
    return count_of(m) * nj_case_type_bytes(m->type);
}

/* No row ends where the next begins: a ld is a column more than it need be. */
static void shape(enum nj_gemm_kind kind, const struct types *types, const int *mnk,
                  struct trial *t)
{
    const int M = mnk[0], N = mnk[1], K = mnk[2];
    const enum case_type ab = types->ab == NJ_LP ? CASE_BF16 : CASE_F32;
    const enum case_type c = types->c == NJ_LP ? CASE_BF16 : CASE_F32;
    struct nj_gemm *g = &t->g;

    *g = (struct nj_gemm){.kind = kind,
                          .ab_dtype = types->ab,
                          .c_dtype = types->c,
                          .M = M,
                          .N = N,
                          .K = K,
                          .lda = (kind == NJ_GEMM_TN ? M : K) + 1,
                          .ldb = (kind == NJ_GEMM_NT ? K : N) + 1,
                          .ldc = N + 1,
                          .beta = 0.5f,
                          .scale = 0.75f};
    t->matrix[0] =
        (struct matrix){(size_t)(kind == NJ_GEMM_TN ? K : M), (size_t)g->lda, ab, NULL, NULL, NULL};
    t->matrix[1] =
        (struct matrix){(size_t)(kind == NJ_GEMM_NT ? N : K), (size_t)g->ldb, ab, NULL, NULL, NULL};
    t->matrix[2] = (struct matrix){(size_t)M, (size_t)g->ldc, c, NULL, NULL, NULL};
    snprintf(t->name, sizeof t->name, "GEMM %s %s %d x %d x %d", kinds[kind], types->name, M, N, K);
}

/* Normal values, rounded to the type, so that what is multiplied is known to the last bit. */
static int make(nj_context *ctx, nj_stream *s, const char *name, struct matrix *m)
{
    const struct case_arg a = {.type = m->type, .fill = CASE_FILL_NORMAL, .scale = 1};
    const size_t n = count_of(m);
    int rc;

    m->values = nj_case_allocate(n, sizeof *m->values);
    m->stored = nj_case_allocate(bytes_of(m), 1);
    if (!m->values || !m->stored)
        return NJ_E_NOMEM;
    nj_case_fill_plain(&a, nj_case_stream_of(1, "gemm", "selftest", name), (int64_t)n, m->values);
    for (size_t i = 0; i < n; i++)
        m->values[i] = nj_case_round_to_type(m->values[i], m->type, 0);
    nj_case_encode(m->stored, m->values, (int64_t)n, m->type, 0);
    rc = nj_alloc(ctx, NJ_MEM_DEVICE, bytes_of(m), &m->device);
    return rc ? rc : nj_copy(s, m->device, m->stored, bytes_of(m));
}

static void end(nj_context *ctx, struct trial *t)
{
    for (int i = 0; i < 3; i++) {
        nj_free(ctx, NJ_MEM_DEVICE, t->matrix[i].device);
        free(t->matrix[i].values);
        free(t->matrix[i].stored);
    }
}

static double at(const struct matrix *m, size_t row, size_t column, int turned)
{
    return m->values[turned ? column * m->columns + row : row * m->columns + column];
}

/* A sum of K products in float32 is off by K + 2 roundings of the sum of their sizes at most. What is then rounded to
 * bfloat16, with its 8 digits, is off by half a unit of the last one more. */
static double bound_of(const struct trial *t, double sum, double size)
{
    const double off = (t->g.K + 2) * 0x1p-23 * size;

    return t->matrix[2].type == CASE_BF16 ? off + 0x1p-8 * (fabs(sum) + off) : off;
}

static int compare_one(const struct trial *t, size_t r, size_t c, char *why, size_t bytes)
{
    const struct nj_gemm *g = &t->g;
    const struct matrix *a = &t->matrix[0], *b = &t->matrix[1], *out = &t->matrix[2];
    const double old = at(out, r, c, 0) * (double)g->beta;
    const double got = nj_case_decode(out->stored, (int64_t)(r * out->columns + c), out->type, 0);
    double sum = old, size = fabs(old);

    for (size_t k = 0; k < (size_t)g->K; k++) {
        const double p = at(a, r, k, g->kind == NJ_GEMM_TN) * at(b, k, c, g->kind == NJ_GEMM_NT) *
                         (double)g->scale;
        sum += p;
        size += fabs(p);
    }
    if (fabs(got - sum) <= bound_of(t, sum, size))
        return 0;
    snprintf(why, bytes, "%s: [%zu, %zu] is %.9g, not %.9g", t->name, r, c, got, sum);
    return NJ_E_DEVICE;
}

static int compare(const struct trial *t, char *why, size_t bytes)
{
    const struct matrix *out = &t->matrix[2];
    int rc = 0;

    for (size_t r = 0; r < out->rows && rc == 0; r++) {
        const size_t past = r * out->columns + (size_t)t->g.N;

        for (size_t c = 0; c < (size_t)t->g.N && rc == 0; c++)
            rc = compare_one(t, r, c, why, bytes);
        if (rc || nj_case_decode(out->stored, (int64_t)past, out->type, 0) == out->values[past])
            continue;
        snprintf(why, bytes, "%s: wrote past the end of row %zu", t->name, r);
        rc = NJ_E_DEVICE;
    }
    return rc;
}

static int run(nj_context *ctx, nj_stream *s, struct trial *t)
{
    struct matrix *m = t->matrix;
    int sync, rc = nj_gemm_prepare(ctx, &t->g);

    for (int i = 0; i < 3 && rc == 0; i++)
        rc = make(ctx, s, (const char *const[]){"a", "b", "c"}[i], &m[i]);
    if (rc == 0)
        rc = nj_gemm_run(s, &t->g, m[2].device, m[0].device, m[1].device);
    if (rc == 0)
        rc = nj_copy(s, m[2].stored, m[2].device, bytes_of(&m[2]));
    sync = nj_stream_sync(s);
    return rc ? rc : sync;
}

static int try_shape(nj_context *ctx, nj_stream *s, struct trial *t, char *why, size_t bytes)
{
    int rc = run(ctx, s, t);

    if (rc)
        snprintf(why, bytes, "%s: %.600s", t->name,
                 rc == NJ_E_NOMEM ? "out of memory" : nj_context_error(ctx));
    else
        rc = compare(t, why, bytes);
    end(ctx, t);
    return rc;
}

static int try_types(nj_context *ctx, nj_stream *s, const struct types *types, char *why,
                     size_t bytes)
{
    /* The second has tiles enough for the large ones of the Vulkan backend. */
    static const int shapes[][3] = {{67, 130, 37}, {5, 128 * 128, 19}};
    int rc = 0;

    for (int kind = NJ_GEMM_NT; kind <= NJ_GEMM_TN && rc == 0; kind++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes && rc == 0; i++) {
            struct trial t;

            shape((enum nj_gemm_kind)kind, types, shapes[i], &t);
            rc = try_shape(ctx, s, &t, why, bytes);
        }
    return rc;
}

int nj_selftest_gemms(nj_context *ctx, nj_stream *s, char *why, size_t bytes)
{
    const struct nj_device_info *info = nj_context_device(ctx);
    int rc = 0;

    for (size_t i = 0; i < sizeof all_types / sizeof *all_types && rc == 0; i++)
        if (all_types[i].ab == NJ_F32 || (info->lp && !info->lp_is_f16))
            rc = try_types(ctx, s, &all_types[i], why, bytes);
    return rc;
}
