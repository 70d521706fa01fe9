/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_product.c: descriptors of cuBLASLt GEMMs. A row-major matrix is the transpose of a column-major one, so the
 * library is asked for C^T = op(B)^T op(A)^T: our B is its first operand, our A its second.
 */
#include <string.h>

#include "cuda_gemm.h"

int nj_lt_check(nj_context *ctx, int status, const char *what)
{
    if (status == NJ_CUBLAS_STATUS_SUCCESS)
        return 0;
    return nj_fail(ctx, status == NJ_CUBLAS_STATUS_ALLOC_FAILED ? NJ_E_NOMEM : NJ_E_GEMM, "%s: %s",
                   what, nj_cuda_of(ctx)->lt.cublasLtGetStatusName(status));
}

int nj_lt_type(const nj_context *ctx, enum nj_dtype dtype)
{
    if (dtype == NJ_F32)
        return NJ_CUDA_R_32F;
    if (dtype == NJ_F8)
        return NJ_CUDA_R_8F_E4M3;
    return ctx->info.lp_is_f16 ? NJ_CUDA_R_16F : NJ_CUDA_R_16BF;
}

/* Make layouts of the arrays as stored, but column-major: rows and columns are exchanged. */
static int make_layouts(nj_context *ctx, const struct nj_gemm *g, struct nj_lt_product *p)
{
    struct nj_cublaslt *lt = &nj_cuda_of(ctx)->lt;
    const int type = nj_lt_type(ctx, g->ab_dtype), a_type = g->a_e5m2 ? NJ_CUDA_R_8F_E5M2 : type;
    uint64_t m = (uint64_t)g->M, n = (uint64_t)g->N, k = (uint64_t)g->K;
    int status;

    if (g->kind == NJ_GEMM_NT)
        status = lt->cublasLtMatrixLayoutCreate(&p->a, type, k, n, g->ldb);
    else
        status = lt->cublasLtMatrixLayoutCreate(&p->a, type, n, k, g->ldb);
    if (status == 0 && g->kind == NJ_GEMM_TN)
        status = lt->cublasLtMatrixLayoutCreate(&p->b, a_type, m, k, g->lda);
    else if (status == 0)
        status = lt->cublasLtMatrixLayoutCreate(&p->b, a_type, k, m, g->lda);
    if (status == 0)
        status = lt->cublasLtMatrixLayoutCreate(&p->c, nj_lt_type(ctx, g->c_dtype), n, m, g->ldc);
    return nj_lt_check(ctx, status, "cublasLtMatrixLayoutCreate");
}

/* Set the scales in the descriptor. It is read when work is enqueued or captured, so the next GEMM may change it. */
int nj_lt_set_scales(nj_context *ctx, const struct nj_lt_product *p, const struct nj_lt_place *at)
{
    struct nj_cublaslt *lt = &nj_cuda_of(ctx)->lt;
    int status = 0;

    if (p->scaled)
        status = lt->cublasLtMatmulDescSetAttribute(
            p->desc, NJ_CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &at->a_scale, sizeof at->a_scale);
    if (p->scaled && status == 0)
        status = lt->cublasLtMatmulDescSetAttribute(
            p->desc, NJ_CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &at->b_scale, sizeof at->b_scale);
    return status ? nj_lt_check(ctx, status, "cublasLtMatmulDescSetAttribute (scales)") : 0;
}

/* Set scale modes and the accumulation of an E4M3 GEMM. With a scale per row, tensor cores accumulate alone (fast
 * accumulation). With one scale for all rows, as for weight gradients, whose sums run over all tokens, and on GPUs that
 * take other scales, partial sums are added in float32 on the way, which made weight gradients no slower
 * (docs/performance.md). */
static int set_scaled(nj_context *ctx, const struct nj_gemm *g, const struct nj_lt_product *p)
{
    const int32_t mode = g->one_scale ? NJ_CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F
                         : ctx->info.f8 == NJ_F8_BLOCKS
                             ? NJ_CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0
                             : NJ_CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    const int8_t fast = ctx->info.f8 == NJ_F8_ROWS && !g->one_scale;
    const struct {
        int attribute;
        const void *value;
        size_t bytes;
    } set[] = {
        {NJ_CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &mode, sizeof mode},
        {NJ_CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &mode, sizeof mode},
        {NJ_CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast},
    };
    int status = 0;

    for (size_t i = 0; i < sizeof set / sizeof *set && status == 0; i++)
        status = nj_cuda_of(ctx)->lt.cublasLtMatmulDescSetAttribute(p->desc, set[i].attribute,
                                                                    set[i].value, set[i].bytes);
    return nj_lt_check(ctx, status, "cublasLtMatmulDescSetAttribute (e4m3)");
}

static int make_desc(nj_context *ctx, const struct nj_gemm *g, struct nj_lt_product *p)
{
    struct nj_cublaslt *lt = &nj_cuda_of(ctx)->lt;
    int32_t op_a = g->kind == NJ_GEMM_NT ? NJ_CUBLAS_OP_T : NJ_CUBLAS_OP_N;
    int32_t op_b = g->kind == NJ_GEMM_TN ? NJ_CUBLAS_OP_T : NJ_CUBLAS_OP_N;
    /* Plain float32; TF32 would be another compute type. */
    int status = lt->cublasLtMatmulDescCreate(&p->desc, NJ_CUBLAS_COMPUTE_32F, NJ_CUDA_R_32F);

    if (status == 0)
        status = lt->cublasLtMatmulDescSetAttribute(p->desc, NJ_CUBLASLT_MATMUL_DESC_TRANSA, &op_a,
                                                    sizeof op_a);
    if (status == 0)
        status = lt->cublasLtMatmulDescSetAttribute(p->desc, NJ_CUBLASLT_MATMUL_DESC_TRANSB, &op_b,
                                                    sizeof op_b);
    if (status || !p->scaled)
        return nj_lt_check(ctx, status, "cublasLtMatmulDescCreate");
    return set_scaled(ctx, g, p);
}

int nj_lt_product_make(nj_context *ctx, const struct nj_gemm *g, struct nj_lt_product *p)
{
    p->alpha = nj_gemm_scale(g);
    p->beta = g->beta;
    p->scaled = g->ab_dtype == NJ_F8;
    TRY(make_desc(ctx, g, p));
    return make_layouts(ctx, g, p);
}

void nj_lt_product_free(nj_context *ctx, struct nj_lt_product *p)
{
    struct nj_cublaslt *lt = &nj_cuda_of(ctx)->lt;

    if (!p)
        return;
    if (p->desc)
        lt->cublasLtMatmulDescDestroy(p->desc);
    for (int i = 0; i < 3; i++) {
        void *layout = i == 0 ? p->a : i == 1 ? p->b : p->c;

        if (layout)
            lt->cublasLtMatrixLayoutDestroy(layout);
    }
}

int nj_lt_enqueue(nj_context *ctx, const struct nj_lt_product *p, const struct nj_lt_place *at)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    int status;
    TRY(nj_lt_set_scales(ctx, p, at));
    status = cu->lt.cublasLtMatmul(cu->lt_handle, p->desc, &p->alpha, at->a, p->a, at->b, p->b,
                                   &p->beta, at->c, p->c, at->c, p->c, &p->choice.algo,
                                   p->choice.workspace_bytes ? at->workspace : NULL,
                                   p->choice.workspace_bytes, at->stream);
    return status ? nj_lt_check(ctx, status, "cublasLtMatmul") : 0;
}
