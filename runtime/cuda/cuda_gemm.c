/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_gemm.c: GEMMs by cuBLASLt, as the backend offers them.
 *
 * Determinism: only algorithms that sum in one fixed order are taken, each stream has a workspace of its own, and an
 * algorithm once taken is kept: in the plan, and by gemm_table.c from run to run.
 */
#include <stdlib.h>

#include "cuda_gemm.h"

/* Refuse FP8 GEMMs that cuBLASLt does not have on this device, by nj_f8_scales. */
static int check_f8(nj_context *ctx, const struct nj_gemm *g)
{
    static const char *const has[] = {
        [NJ_F8_NONE] = "none", [NJ_F8_BLOCKS] = "blocks of 32 columns", [NJ_F8_ONE] = "one scale"};
    const enum nj_f8_scales f8 = ctx->info.f8;
    const int fits = f8 == NJ_F8_ROWS || (f8 == NJ_F8_ONE && g->one_scale) ||
                     (f8 == NJ_F8_BLOCKS && !g->one_scale && g->K % 32 == 0);

    if (fits)
        return 0;
    return nj_fail(ctx, NJ_E_UNSUPPORTED,
                   "of FP8 (E4M3) GEMMs cuBLASLt has on sm_%d (%s): %s; with a scale per row on "
                   "sm_90 only",
                   ctx->info.sm, ctx->info.name, has[f8]);
}

int nj_cuda_gemm_prepare(nj_context *ctx, struct nj_gemm_plan *plan)
{
    struct nj_lt_product *p;
    int rc = nj_cuda_enter(ctx);

    if (rc == 0 && plan->shape.ab_dtype == NJ_F8)
        rc = check_f8(ctx, &plan->shape);
    if (rc != 0)
        return rc;
    plan->state = p = calloc(1, sizeof *p);
    if (!p)
        return nj_fail(ctx, NJ_E_NOMEM, "out of host memory");
    rc = nj_lt_product_make(ctx, &plan->shape, p);
    if (rc == 0)
        rc = nj_lt_choose(ctx, plan, p);
    if (rc != 0)
        nj_cuda_gemm_release(ctx, plan);
    return rc;
}

int nj_cuda_gemm_run(nj_stream *s, const struct nj_gemm_plan *plan,
                     const struct nj_gemm_operands *x)
{
    const struct nj_lt_place at = {.c = x->c,
                                   .a = x->b,
                                   .b = x->a,
                                   .a_scale = x->b_scale,
                                   .b_scale = x->a_scale,
                                   .workspace = s->workspace,
                                   .stream = s->handle};
    TRY(nj_cuda_enter(s->ctx));
    s->ctx->last_key = "a GEMM";
    return nj_lt_enqueue(s->ctx, plan->state, &at);
}

void nj_cuda_gemm_release(nj_context *ctx, struct nj_gemm_plan *plan)
{
    nj_lt_product_free(ctx, plan->state);
    free(plan->state);
    plan->state = NULL;
}
