/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_gemm.c: GEMMs by cuBLASLt. A row-major matrix is the transpose of a column-major one,
 * so the library is asked for C^T = op(B)^T op(A)^T: our B is its first operand, our A its second.
 *
 * Determinism: only algorithms that sum in one fixed order are taken (no split of K, or one whose
 * parts are combined in float32 by a second pass), each stream has a workspace of its own, and an
 * algorithm once taken is kept: in the plan, and by gemm_table.c from run to run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "checked.h"

/* Of the library, among all algorithms and among those that need no workspace. */
enum { GUESSES = 16, GUESSES_WITHOUT = 8, CANDIDATES = GUESSES + GUESSES_WITHOUT };
enum { TIMED_RUNS = 5, POINTER_ALIGN = 16 };
/* One whose first timed run takes this many times the best is not timed further. */
#define HOPELESS 1.25f

/* With a workspace some algorithms hand out tiles by a counter in it, which a kernel ahead of each run clears; they may
 * have none, and then each block has its own. So they are listed twice. */
struct choice {
    struct nj_lt_algo algo;
    uint64_t workspace_bytes;
};
_Static_assert(sizeof(struct choice) == NJ_GEMM_CHOICE_BYTES, "what a table holds");

struct product {
    void *desc, *a, *b, *c; /* a, b, c: layouts as the library counts operands */
    struct choice choice;
    float alpha, beta;
    int scaled; /* both operands have scales */
};

/* What one run needs besides the product. */
struct place {
    void *c;
    const void *a, *b; /* as the library counts operands */
    const void *a_scale, *b_scale;
    void *workspace;
    void *stream;
};

static int check(nj_context *ctx, int status, const char *what)
{
    if (status == NJ_CUBLAS_STATUS_SUCCESS)
        return 0;
    return nj_fail(ctx, NJ_E_GEMM, "%s: %s", what,
                   nj_cuda_of(ctx)->lt.cublasLtGetStatusName(status));
}

static int data_type(const nj_context *ctx, enum nj_dtype dtype)
{
    if (dtype == NJ_F32)
        return NJ_CUDA_R_32F;
    if (dtype == NJ_F8)
        return NJ_CUDA_R_8F_E4M3;
    return ctx->info.lp_is_f16 ? NJ_CUDA_R_16F : NJ_CUDA_R_16BF;
}

/* Layouts of the arrays as stored, seen column-major: rows and columns change places. */
static int make_layouts(nj_context *ctx, const struct nj_gemm *g, struct product *p)
{
    struct nj_cublaslt *lt = &nj_cuda_of(ctx)->lt;
    const int type = data_type(ctx, g->ab_dtype), a_type = g->a_e5m2 ? NJ_CUDA_R_8F_E5M2 : type;
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
        status = lt->cublasLtMatrixLayoutCreate(&p->c, data_type(ctx, g->c_dtype), n, m, g->ldc);
    return check(ctx, status, "cublasLtMatrixLayoutCreate");
}

/* A descriptor is read when work is enqueued, or captured: the next product may set it anew. */
static int set_scales(nj_context *ctx, const struct product *p, const struct place *at)
{
    struct nj_cublaslt *lt = &nj_cuda_of(ctx)->lt;
    int status = 0;

    if (p->scaled)
        status = lt->cublasLtMatmulDescSetAttribute(
            p->desc, NJ_CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &at->a_scale, sizeof at->a_scale);
    if (p->scaled && status == 0)
        status = lt->cublasLtMatmulDescSetAttribute(
            p->desc, NJ_CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &at->b_scale, sizeof at->b_scale);
    return status ? check(ctx, status, "cublasLtMatmulDescSetAttribute (scales)") : 0;
}

/* e4m3: a scale a row, and sums that stay in the tensor cores; or one scale, and sums that go to float32 on the way:
 * those of gradients of weights, over all tokens, which take no longer so (docs/performance.md). Where there are other
 * scales, all sums do. */
static int set_scaled(nj_context *ctx, const struct nj_gemm *g, const struct product *p)
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
    return check(ctx, status, "cublasLtMatmulDescSetAttribute (e4m3)");
}

static int make_desc(nj_context *ctx, const struct nj_gemm *g, struct product *p)
{
    struct nj_cublaslt *lt = &nj_cuda_of(ctx)->lt;
    int32_t op_a = g->kind == NJ_GEMM_NT ? NJ_CUBLAS_OP_T : NJ_CUBLAS_OP_N;
    int32_t op_b = g->kind == NJ_GEMM_TN ? NJ_CUBLAS_OP_T : NJ_CUBLAS_OP_N;
    /* Plain float32: TF32 would need another compute type. */
    int status = lt->cublasLtMatmulDescCreate(&p->desc, NJ_CUBLAS_COMPUTE_32F, NJ_CUDA_R_32F);

    if (status == 0)
        status = lt->cublasLtMatmulDescSetAttribute(p->desc, NJ_CUBLASLT_MATMUL_DESC_TRANSA, &op_a,
                                                    sizeof op_a);
    if (status == 0)
        status = lt->cublasLtMatmulDescSetAttribute(p->desc, NJ_CUBLASLT_MATMUL_DESC_TRANSB, &op_b,
                                                    sizeof op_b);
    if (status || !p->scaled)
        return check(ctx, status, "cublasLtMatmulDescCreate");
    return set_scaled(ctx, g, p);
}

static int is_allowed(struct nj_cublaslt *lt, const struct nj_lt_result *r)
{
    int32_t split = 0;
    uint32_t scheme = 0;
    size_t written;

    if (r->state != NJ_CUBLAS_STATUS_SUCCESS || r->workspace_bytes > NJ_CUDA_WORKSPACE_BYTES)
        return 0;
    if (lt->cublasLtMatmulAlgoConfigGetAttribute(&r->algo, NJ_CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                                                 &split, sizeof split, &written) ||
        lt->cublasLtMatmulAlgoConfigGetAttribute(&r->algo, NJ_CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                                 &scheme, sizeof scheme, &written))
        return 0;
    return split <= 1 || scheme == NJ_CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

/* Its place in the list, or -1. */
static int find_choice(const void *c, const struct choice *list, int count)
{
    for (int i = 0; i < count; i++)
        if (memcmp(&list[i], c, sizeof list[i]) == 0)
            return i;
    return -1;
}

/* Adds what is allowed of so many guesses of the library to the list, none where it has none; a status of
 * the library. */
static int add_algorithms(nj_context *ctx, const struct product *p, uint64_t workspace, int guesses,
                          struct choice *list, int *count)
{
    static const int aligned[] = {
        NJ_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        NJ_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        NJ_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        NJ_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
    };
    const uint32_t schemes = NJ_CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, align = POINTER_ALIGN;
    struct nj_cuda *cu = nj_cuda_of(ctx);
    struct nj_cublaslt *lt = &cu->lt;
    struct nj_lt_result guess[GUESSES];
    void *preference = NULL;
    int found = 0, status = lt->cublasLtMatmulPreferenceCreate(&preference);

    if (status)
        return status;
    status = lt->cublasLtMatmulPreferenceSetAttribute(
        preference, NJ_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    if (status == 0)
        status = lt->cublasLtMatmulPreferenceSetAttribute(
            preference, NJ_CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
    for (size_t i = 0; i < sizeof aligned / sizeof *aligned && status == 0; i++)
        status =
            lt->cublasLtMatmulPreferenceSetAttribute(preference, aligned[i], &align, sizeof align);
    if (status == 0)
        status = lt->cublasLtMatmulAlgoGetHeuristic(cu->lt_handle, p->desc, p->a, p->b, p->c, p->c,
                                                    preference, guesses, guess, &found);
    lt->cublasLtMatmulPreferenceDestroy(preference);
    if (status == NJ_CUBLAS_STATUS_NOT_SUPPORTED)
        return 0;
    for (int i = 0; status == 0 && i < found; i++) {
        const struct choice c = {guess[i].algo, guess[i].workspace_bytes};
        if (is_allowed(lt, &guess[i]) && find_choice(&c, list, *count) < 0)
            list[(*count)++] = c;
    }
    return status;
}

/* Allowed algorithms, the library's best guess first. */
static int list_algorithms(nj_context *ctx, const struct product *p, struct choice *list,
                           int *count)
{
    int status;

    *count = 0;
    status = add_algorithms(ctx, p, NJ_CUDA_WORKSPACE_BYTES, GUESSES, list, count);
    if (status == 0)
        status = add_algorithms(ctx, p, 0, GUESSES_WITHOUT, list, count);
    if (status)
        return check(ctx, status, "listing algorithms of a GEMM");
    if (*count == 0)
        return nj_fail(ctx, NJ_E_GEMM, "cuBLASLt has no algorithm with a fixed order of summation");
    return 0;
}

static int enqueue(nj_context *ctx, const struct product *p, const struct place *at)
{
    struct nj_cuda *cu = nj_cuda_of(ctx);
    int status, rc = set_scales(ctx, p, at);

    if (rc)
        return rc;
    status = cu->lt.cublasLtMatmul(cu->lt_handle, p->desc, &p->alpha, at->a, p->a, at->b, p->b,
                                   &p->beta, at->c, p->c, at->c, p->c, &p->choice.algo,
                                   p->choice.workspace_bytes ? at->workspace : NULL,
                                   p->choice.workspace_bytes, at->stream);
    return status ? check(ctx, status, "cublasLtMatmul") : 0;
}

static int run_and_wait(nj_context *ctx, const struct product *p, const struct place *at)
{
    int rc = enqueue(ctx, p, at);

    if (rc)
        return rc;
    return nj_cuda_check(ctx, nj_cuda_of(ctx)->driver.cuStreamSynchronize(at->stream),
                         "first run of a GEMM");
}

/* `runs` of them as a graph, as a step has them: what comes between two counts, too. */
static int capture_runs(nj_context *ctx, const struct product *p, const struct place *at, int runs,
                        void **out)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    void *graph = NULL;
    int rc = 0,
        result = driver->cuStreamBeginCapture(at->stream, NJ_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

    if (result)
        return nj_cuda_check(ctx, result, "timing a GEMM");
    for (int i = 0; i < runs && rc == 0; i++)
        rc = enqueue(ctx, p, at);
    result = driver->cuStreamEndCapture(at->stream, &graph);
    if (rc == 0 && result == 0)
        result = driver->cuGraphInstantiateWithFlags(out, graph, 0);
    if (graph)
        driver->cuGraphDestroy(graph);
    return rc ? rc : nj_cuda_check(ctx, result, "timing a GEMM");
}

/* Where GEMMs are timed: on a stream of its own, since the default one cannot be captured. */
struct timer {
    struct place at;
    void *event[2];
};

static int timer_open(nj_context *ctx, const struct place *at, struct timer *t)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    int result;

    *t = (struct timer){.at = *at};
    result = driver->cuStreamCreate(&t->at.stream, NJ_CU_STREAM_NON_BLOCKING);
    result = result ? result : driver->cuEventCreate(&t->event[0], NJ_CU_EVENT_DEFAULT);
    result = result ? result : driver->cuEventCreate(&t->event[1], NJ_CU_EVENT_DEFAULT);
    return nj_cuda_check(ctx, result, "timing a GEMM");
}

static void timer_close(nj_context *ctx, struct timer *t)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;

    for (int i = 0; i < 2; i++)
        if (t->event[i])
            driver->cuEventDestroy(t->event[i]);
    if (t->at.stream)
        driver->cuStreamDestroy(t->at.stream);
}

/* Milliseconds a run, of `runs`. */
static int time_runs(nj_context *ctx, const struct product *p, const struct timer *t, int runs,
                     float *ms)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    void *graph = NULL;
    int rc = capture_runs(ctx, p, &t->at, runs, &graph), result;

    if (rc)
        return rc;
    *ms = 0;
    result = driver->cuGraphUpload(graph, t->at.stream);
    result = result ? result : driver->cuEventRecord(t->event[0], t->at.stream);
    result = result ? result : driver->cuGraphLaunch(graph, t->at.stream);
    result = result ? result : driver->cuEventRecord(t->event[1], t->at.stream);
    result = result ? result : driver->cuEventSynchronize(t->event[1]);
    result = result ? result : driver->cuEventElapsedTime(ms, t->event[0], t->event[1]);
    *ms /= (float)runs;
    driver->cuGraphExecDestroy(graph);
    return nj_cuda_check(ctx, result, "timing a GEMM");
}

static int time_all(nj_context *ctx, struct product *p, const struct choice *list, int count,
                    const struct timer *t)
{
    float first, ms, best_first = 0, best_ms = 0;
    int best = -1, rc = 0;

    for (int i = 0; i < count && rc == 0; i++) {
        p->choice = list[i];
        rc = run_and_wait(ctx, p, &t->at); /* loads what the algorithm needs */
        rc = rc ? rc : time_runs(ctx, p, t, 1, &first);
        if (rc == 0 && best >= 0 && first > HOPELESS * best_first)
            continue;
        rc = rc ? rc : time_runs(ctx, p, t, TIMED_RUNS, &ms);
        if (rc == 0 && (best < 0 || ms < best_ms)) {
            best = i;
            best_first = first;
            best_ms = ms;
        }
    }
    if (rc == 0)
        p->choice = list[best];
    return rc;
}

static int choose_fastest(nj_context *ctx, struct product *p, const struct choice *list, int count,
                          const struct place *at)
{
    struct timer t;
    int rc = timer_open(ctx, at, &t);

    if (rc == 0)
        rc = time_all(ctx, p, list, count, &t);
    timer_close(ctx, &t);
    return rc;
}

/* Memory for runs whose result nobody reads. */
struct scratch {
    char *memory;
    struct place at;
};

static size_t array_bytes(int64_t rows, int64_t ld, enum nj_dtype dtype)
{
    return size_up(size_product((size_t)rows, (size_t)ld, nj_dtype_bytes(dtype)), 256);
}

/* Scales as long as blocks of the larger operand are, for both. */
static size_t scale_bytes(const nj_context *ctx, const struct nj_gemm *g)
{
    const size_t rows = size_up((size_t)(g->M > g->N ? g->M : g->N), 128);
    const int blocks = g->ab_dtype == NJ_F8 && ctx->info.f8 == NJ_F8_BLOCKS;

    return blocks ? size_product(rows, size_up((size_t)g->K, 128), 1) / 32 : 0;
}

/* The arrays lie apart, as they will, so that timing sees what they cost; where memory is short, one
 * on top of the other. */
static int take_scratch(nj_context *ctx, const struct nj_gemm *g, struct scratch *out)
{
    const size_t scales = scale_bytes(ctx, g),
                 workspace = size_add(NJ_CUDA_WORKSPACE_BYTES, scales);
    size_t a = array_bytes(g->kind == NJ_GEMM_TN ? g->K : g->M, g->lda, g->ab_dtype);
    size_t b = array_bytes(g->kind == NJ_GEMM_NT ? g->N : g->K, g->ldb, g->ab_dtype);
    const size_t c = array_bytes(g->M, g->ldc, g->c_dtype), most = a > b ? a : b;
    const size_t apart = size_add(workspace, size_add(a, size_add(b, c)));
    int rc = nj_alloc(ctx, NJ_MEM_DEVICE, apart, (void **)&out->memory);

    if (rc == NJ_E_NOMEM) {
        rc = nj_alloc(ctx, NJ_MEM_DEVICE, size_add(workspace, most > c ? most : c),
                      (void **)&out->memory);
        a = b = 0;
    }
    if (rc)
        return rc;
    out->at = (struct place){
        .workspace = out->memory,
        .b = out->memory + workspace,
        .a = out->memory + workspace + a,
        .c = out->memory + workspace + a + b,
    };
    /* A row of e4m3 is longer than its scale. */
    out->at.a_scale = scales ? out->memory + NJ_CUDA_WORKSPACE_BYTES : out->at.a;
    out->at.b_scale = scales ? out->at.a_scale : out->at.b;
    return 0;
}

/* The stored choice, if it is among those that the library lists for this shape: bytes of a file
 * select, and never reach the library, which does not promise to survive foreign ones. */
static int takes_choice(const struct nj_gemm_plan *plan, const struct choice *list, int count,
                        struct product *p)
{
    const int i = plan->chosen ? find_choice(plan->choice, list, count) : -1;

    if (i >= 0)
        p->choice = list[i];
    return i >= 0;
}

static int resolve(nj_context *ctx, struct nj_gemm_plan *plan, struct product *p)
{
    const int tune = ctx->gemm_tune;
    struct choice list[CANDIDATES];
    struct scratch scratch;
    int count = 0, known = 0, rc;

    rc = make_desc(ctx, &plan->shape, p);
    rc = rc ? rc : make_layouts(ctx, &plan->shape, p);
    rc = rc ? rc : take_scratch(ctx, &plan->shape, &scratch);
    if (rc)
        return rc;
    rc = set_scales(ctx, p, &scratch.at);
    rc = rc ? rc : list_algorithms(ctx, p, list, &count);
    if (rc == 0) {
        p->choice = list[0];
        known = takes_choice(plan, list, count, p);
        plan->chosen = known || tune;
        if (tune && !known)
            rc = choose_fastest(ctx, p, list, count, &scratch.at);
        else
            rc = run_and_wait(ctx, p, &scratch.at);
        ctx->info.gemms_timed += tune && !known;
    }
    memcpy(plan->choice, &p->choice, sizeof plan->choice);
    nj_free(ctx, NJ_MEM_DEVICE, scratch.memory);
    return rc;
}

/* What cuBLASLt has, by nj_f8_scales. */
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
    struct product *p;
    int rc = nj_cuda_enter(ctx);

    if (rc == 0 && plan->shape.ab_dtype == NJ_F8)
        rc = check_f8(ctx, &plan->shape);
    if (rc)
        return rc;
    plan->state = p = calloc(1, sizeof *p);
    if (!p)
        return nj_fail(ctx, NJ_E_NOMEM, "out of host memory");
    p->alpha = nj_gemm_scale(&plan->shape);
    p->beta = plan->shape.beta;
    p->scaled = plan->shape.ab_dtype == NJ_F8;
    rc = resolve(ctx, plan, p);
    if (rc)
        nj_cuda_gemm_release(ctx, plan);
    return rc;
}

int nj_cuda_gemm_run(nj_stream *s, const struct nj_gemm_plan *plan,
                     const struct nj_gemm_operands *x)
{
    const struct place at = {.c = x->c,
                             .a = x->b,
                             .b = x->a,
                             .a_scale = x->b_scale,
                             .b_scale = x->a_scale,
                             .workspace = s->workspace,
                             .stream = s->handle};
    int rc = nj_cuda_enter(s->ctx);

    if (rc)
        return rc;
    s->ctx->last_key = "a GEMM";
    return enqueue(s->ctx, plan->state, &at);
}

void nj_cuda_gemm_release(nj_context *ctx, struct nj_gemm_plan *plan)
{
    struct nj_cublaslt *lt = &nj_cuda_of(ctx)->lt;
    struct product *p = plan->state;

    if (!p)
        return;
    if (p->desc)
        lt->cublasLtMatmulDescDestroy(p->desc);
    for (int i = 0; i < 3; i++) {
        void *layout = i == 0 ? p->a : i == 1 ? p->b : p->c;

        if (layout)
            lt->cublasLtMatrixLayoutDestroy(layout);
    }
    free(p);
    plan->state = NULL;
}
