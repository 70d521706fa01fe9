/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm.c: the table of prepared GEMMs. A backend resolves a shape once, in
 * nj_gemm_prepare(); after that nj_gemm_run() is a look-up and an enqueue, and a shape that nobody
 * prepared is an error, not a slow first call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "internal.h"

static const char *const kind_name[] = {"NT", "NN", "TN"};
static const char *const dtype_name[] = {"f32", "lp", "f8"};
static const size_t dtype_bytes[] = {4, 2, 1};

size_t nj_dtype_bytes(enum nj_dtype dtype)
{
    return dtype_bytes[dtype];
}

float nj_gemm_scale(const struct nj_gemm *g)
{
    return g->scale == 0.0f ? 1.0f : g->scale;
}

void nj_gemm_describe(const struct nj_gemm *g, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s %s->%s M=%d N=%d K=%d ld %lld,%lld,%lld beta %g scale %g%s%s",
             (unsigned)g->kind < 3 ? kind_name[g->kind] : "?",
             (unsigned)g->ab_dtype < 3 ? dtype_name[g->ab_dtype] : "?",
             (unsigned)g->c_dtype < 3 ? dtype_name[g->c_dtype] : "?", g->M, g->N, g->K,
             (long long)g->lda, (long long)g->ldb, (long long)g->ldc, (double)g->beta,
             (double)nj_gemm_scale(g), g->one_scale ? " one" : "", g->a_e5m2 ? " e5m2" : "");
}

/* Hash the fields one after another, since the struct itself may hold padding. */
static uint64_t hash_shape(const struct nj_gemm *g)
{
    int64_t field[13] = {g->kind, g->ab_dtype, g->c_dtype, g->M,         g->N,     g->K,
                         g->lda,  g->ldb,      g->ldc,     g->one_scale, g->a_e5m2};
    float beta = g->beta + 0.0f; /* -0 is 0 */
    float scale = nj_gemm_scale(g);

    memcpy(&field[11], &beta, sizeof beta);
    memcpy(&field[12], &scale, sizeof scale);
    return XXH3_64bits(field, sizeof field);
}

static int same_shape(const struct nj_gemm *a, const struct nj_gemm *b)
{
    return a->kind == b->kind && a->ab_dtype == b->ab_dtype && a->c_dtype == b->c_dtype &&
           a->M == b->M && a->N == b->N && a->K == b->K && a->lda == b->lda && a->ldb == b->ldb &&
           a->ldc == b->ldc && a->beta == b->beta && nj_gemm_scale(a) == nj_gemm_scale(b) &&
           a->one_scale == b->one_scale && a->a_e5m2 == b->a_e5m2;
}

/* Return the slot that holds the shape, or the empty slot where it belongs. The table is never full. */
static struct nj_gemm_plan **find_slot(const struct nj_gemm_table *t, const struct nj_gemm *shape)
{
    size_t i = hash_shape(shape) & (t->slots - 1);

    while (t->slot[i] && !same_shape(&t->slot[i]->shape, shape))
        i = (i + 1) & (t->slots - 1);
    return &t->slot[i];
}

static int grow(struct nj_gemm_table *t)
{
    struct nj_gemm_table bigger = {.slots = t->slots ? 2 * t->slots : 64, .count = t->count};

    if (2 * (t->count + 1) <= t->slots)
        return 0;
    bigger.slot = calloc(bigger.slots, sizeof *bigger.slot);
    if (!bigger.slot)
        return NJ_E_NOMEM;
    for (size_t i = 0; i < t->slots; i++)
        if (t->slot[i])
            *find_slot(&bigger, &t->slot[i]->shape) = t->slot[i];
    free(t->slot);
    *t = bigger;
    return 0;
}

void nj_gemm_table_free(nj_context *ctx)
{
    struct nj_gemm_table *t = &ctx->gemms;

    for (size_t i = 0; i < t->slots; i++) {
        if (t->slot[i]) {
            ctx->backend->gemm_release(ctx, t->slot[i]);
            free(t->slot[i]);
        }
    }
    free(t->slot);
    memset(t, 0, sizeof *t);
}

static const char *why_not_f8(const struct nj_gemm *g)
{
    if (g->kind != NJ_GEMM_NT)
        return "tensor cores multiply rows of e4m3 operands, so the kind must be NT";
    if ((g->N | g->K | g->lda | g->ldb | g->ldc) % 16 != 0)
        return "with e4m3 operands N, K and every ld must be multiples of 16";
    if (g->beta != 0 && g->c_dtype != NJ_F32)
        return "with e4m3 operands and a 16-bit result beta must be 0";
    if (g->a_e5m2 && !g->one_scale)
        return "an e5m2 operand has one scale";
    return NULL;
}

static const char *why_not(const struct nj_gemm *g)
{
    /* Columns of A and B as stored. */
    int32_t a_columns = g->kind == NJ_GEMM_TN ? g->M : g->K;
    int32_t b_columns = g->kind == NJ_GEMM_NT ? g->K : g->N;

    if ((unsigned)g->kind > NJ_GEMM_TN)
        return "the kind is not one of NT, NN, TN";
    if ((unsigned)g->ab_dtype > NJ_F8)
        return "the dtype of the operands is not one of f32, lp, f8";
    if ((unsigned)g->c_dtype > NJ_LP)
        return "the dtype of the result is not one of f32, lp";
    if (g->ab_dtype == NJ_F32 && g->c_dtype != NJ_F32)
        return "float32 operands give a float32 result only";
    if (g->M < 1 || g->N < 1 || g->K < 1)
        return "M, N and K must be at least 1";
    if (g->lda < a_columns || g->ldb < b_columns || g->ldc < g->N)
        return "a row does not fit its ld";
    if (!(g->beta == g->beta) || !(g->scale == g->scale))
        return "beta or scale is not a number";
    if (g->ab_dtype != NJ_F8)
        return g->one_scale || g->a_e5m2 ? "only e4m3 operands have scales" : NULL;
    return why_not_f8(g);
}

int nj_gemm_prepare(nj_context *ctx, const struct nj_gemm *shape)
{
    struct nj_gemm_plan *plan, **slot;
    const unsigned char *known;
    const char *reason;
    char text[NJ_GEMM_TEXT_BYTES];
    int rc;

    if (!ctx || !shape)
        return NJ_E_ARG;
    if (!ctx->backend)
        return nj_fail(ctx, NJ_E_ARG, "nj_gemm_prepare: the context is not open");
    nj_gemm_describe(shape, text, sizeof text);
    reason = why_not(shape);
    if (reason)
        return nj_fail(ctx, NJ_E_ARG, "GEMM %s: %s", text, reason);
    if (grow(&ctx->gemms))
        return nj_fail(ctx, NJ_E_NOMEM, "GEMM %s: out of host memory", text);
    slot = find_slot(&ctx->gemms, shape);
    if (*slot)
        return 0;
    plan = calloc(1, sizeof *plan);
    if (!plan)
        return nj_fail(ctx, NJ_E_NOMEM, "GEMM %s: out of host memory", text);
    plan->shape = *shape;
    known = nj_gemm_choice(ctx, text);
    if (known)
        memcpy(plan->choice, known, sizeof plan->choice);
    plan->chosen = known != NULL;
    rc = ctx->backend->gemm_prepare(ctx, plan);
    if (rc == 0 && plan->chosen)
        rc = nj_gemm_choose(ctx, text, plan->choice);
    if (rc != 0) {
        char why[NJ_SENTENCE_BYTES];

        snprintf(why, sizeof why, "%s", ctx->error);
        ctx->backend->gemm_release(ctx, plan);
        free(plan);
        return nj_fail(ctx, rc, "GEMM %s: %.800s", text, why);
    }
    *slot = plan;
    ctx->gemms.count++;
    return 0;
}

int nj_gemm_run_scaled(nj_stream *s, const struct nj_gemm *shape, const struct nj_gemm_operands *x)
{
    const struct nj_gemm_plan *plan;
    uintptr_t bits;
    char text[NJ_GEMM_TEXT_BYTES];

    if (!s || !shape || !x)
        return NJ_E_ARG;
    plan = s->ctx->gemms.count ? *find_slot(&s->ctx->gemms, shape) : NULL;
    if (!plan) {
        nj_gemm_describe(shape, text, sizeof text);
        return nj_fail(s->ctx, NJ_E_GEMM,
                       "GEMM %s was not prepared; call nj_gemm_prepare() before step 1", text);
    }
    bits = (uintptr_t)x->c | (uintptr_t)x->a | (uintptr_t)x->b | (uintptr_t)x->a_scale |
           (uintptr_t)x->b_scale;
    if (!x->c || !x->a || !x->b || (bits & 15)) {
        nj_gemm_describe(shape, text, sizeof text);
        return nj_fail(s->ctx, NJ_E_ARG,
                       "GEMM %s: C=%p A=%p B=%p must be set and, like scales, 16-byte "
                       "aligned",
                       text, x->c, x->a, x->b);
    }
    if ((x->a_scale && x->b_scale) != (shape->ab_dtype == NJ_F8)) {
        nj_gemm_describe(shape, text, sizeof text);
        return nj_fail(s->ctx, NJ_E_ARG, "GEMM %s: scales of rows go with f8 operands", text);
    }
    return s->ctx->backend->gemm_run(s, plan, x);
}

int nj_gemm_run(nj_stream *s, const struct nj_gemm *shape, void *c, const void *a, const void *b)
{
    return nj_gemm_run_scaled(s, shape, &(struct nj_gemm_operands){.c = c, .a = a, .b = b});
}

size_t nj_gemm_workspace_bytes(const nj_context *ctx)
{
    return ctx->backend ? ctx->backend->gemm_workspace_bytes(ctx) : 0;
}
