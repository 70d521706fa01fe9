/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_gemm_choose.c: which algorithm of cuBLASLt a shape takes. Candidates are those that the library lists and that
 * sum in one fixed order: no split of K, or one whose parts are combined in float32 by a second pass. Each is run once,
 * which loads what it needs; one that the library refuses to run after all, or whose result is wrong
 * (cuda_gemm_check.c), is left out and said. The fastest of the others is looked at more thoroughly before it is taken.
 *
 * Timing sees the operands of that check, -1, 0 and 1: more bits change than in memory of zeros and fewer than in
 * training, so a GPU at its power limit may run somewhat faster here. A result that is added to grows, which changes
 * nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cuda_gemm.h"
#include "library.h"

/* Number of the library's guesses among all algorithms, and among those that need no workspace. */
enum { GUESSES = 16, GUESSES_WITHOUT = 8, CANDIDATES = GUESSES + GUESSES_WITHOUT };
enum { TIMED_RUNS = 5, POINTER_ALIGN = 16 };
/* Factor to the best time from which on an algorithm is not timed further after its first run. */
#define HOPELESS 1.25f
#define LEFT_OUT (-1.0f)

enum fault { WRONG, REFUSED, FAULTS };

struct trial {
    const struct nj_gemm *g;
    struct nj_lt_product *p;
    struct nj_lt_choice list[CANDIDATES];
    float ms[CANDIDATES]; /* time of a run; 0: not timed, or LEFT_OUT */
    int count;
    char *memory;
    struct nj_lt_place at;
    void *event[2];
    int apart; /* 1: arrays do not overlap, so there is a result to compare */
    struct nj_lt_known known;
    struct {
        int count;
        char first[200]; /* description of the first wrong result */
    } fault[FAULTS];
};

/* ---- candidates ---- */

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

/* Return the place of a choice in the list, or -1. */
static int find_choice(const void *c, const struct nj_lt_choice *list, int count)
{
    for (int i = 0; i < count; i++)
        if (memcmp(&list[i], c, sizeof list[i]) == 0)
            return i;
    return -1;
}

/* Append the allowed algorithms among a number of the library's guesses, none if it has none. Returns a status of
 * the library. */
static int add_algorithms(nj_context *ctx, const struct nj_lt_product *p, uint64_t workspace,
                          int guesses, struct nj_lt_choice *list, int *count)
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
        const struct nj_lt_choice c = {guess[i].algo, guess[i].workspace_bytes};
        if (is_allowed(lt, &guess[i]) && find_choice(&c, list, *count) < 0)
            list[(*count)++] = c;
    }
    return status;
}

/* List the allowed algorithms, the library's best guess first. */
static int list_algorithms(nj_context *ctx, struct trial *t)
{
    int status = add_algorithms(ctx, t->p, NJ_CUDA_WORKSPACE_BYTES, GUESSES, t->list, &t->count);

    if (status == 0)
        status = add_algorithms(ctx, t->p, 0, GUESSES_WITHOUT, t->list, &t->count);
    if (status)
        return nj_lt_check(ctx, status, "listing algorithms of a GEMM");
    if (t->count == 0)
        return nj_fail(ctx, NJ_E_GEMM, "cuBLASLt has no algorithm with a fixed order of summation");
    return 0;
}

/* ---- memory ---- */

static size_t array_bytes(int64_t rows, int64_t ld, enum nj_dtype dtype)
{
    return size_up(size_product((size_t)rows, (size_t)ld, nj_dtype_bytes(dtype)), 256);
}

/* Return the bytes of scales for the larger operand, used for both. */
static size_t scale_bytes(const nj_context *ctx, const struct nj_gemm *g)
{
    const size_t rows = size_up((size_t)(g->M > g->N ? g->M : g->N), 128);

    if (g->ab_dtype != NJ_F8)
        return 0;
    return ctx->info.f8 == NJ_F8_BLOCKS ? size_product(rows, size_up((size_t)g->K, 128), 1) / 32
                                        : size_mul(rows, sizeof(float));
}

/* Allocate the arrays. They do not overlap, as in a run, so that timing is realistic and results can be compared; if
 * memory is short, they overlap. operand_bytes: in the library's order. */
static int take_scratch(nj_context *ctx, struct trial *t, size_t operand_bytes[2])
{
    const struct nj_gemm *g = t->g;
    const size_t scales = scale_bytes(ctx, g);
    const size_t before = size_add(NJ_CUDA_WORKSPACE_BYTES, scales);
    size_t a = array_bytes(g->kind == NJ_GEMM_TN ? g->K : g->M, g->lda, g->ab_dtype);
    size_t b = array_bytes(g->kind == NJ_GEMM_NT ? g->N : g->K, g->ldb, g->ab_dtype);
    const size_t c = array_bytes(g->M, g->ldc, g->c_dtype), most = a > b ? a : b;
    const size_t apart = size_add(before, size_add(a, size_add(b, c)));
    int rc = nj_alloc(ctx, NJ_MEM_DEVICE, apart, (void **)&t->memory);

    t->apart = rc == 0;
    if (rc == NJ_E_NOMEM) {
        rc = nj_alloc(ctx, NJ_MEM_DEVICE, size_add(before, most > c ? most : c),
                      (void **)&t->memory);
        a = b = 0;
    }
    if (rc != 0)
        return rc;
    t->at = (struct nj_lt_place){
        .workspace = t->memory,
        .a_scale = t->memory + NJ_CUDA_WORKSPACE_BYTES,
        .b_scale = t->memory + NJ_CUDA_WORKSPACE_BYTES,
        .b = t->memory + before,
        .a = t->memory + before + a,
        .c = t->memory + before + a + b,
    };
    operand_bytes[0] = b;
    operand_bytes[1] = a;
    if (scales == 0)
        return 0;
    rc = nj_lt_fill_scales(ctx, g, &t->at, scales);
    if (rc != 0)
        nj_free(ctx, NJ_MEM_DEVICE, t->memory);
    return rc;
}

/* ---- running ---- */

static int wait_for(nj_context *ctx, const struct trial *t)
{
    return nj_cuda_check(ctx, nj_cuda_of(ctx)->driver.cuStreamSynchronize(t->at.stream),
                         "first run of a GEMM");
}

/* Run the product once and wait, since a fault of the GPU that a refusal hides shows in the wait. */
static int run_once(nj_context *ctx, const struct trial *t)
{
    struct nj_lt_product plain = *t->p;
    int rc, waited;

    if (t->apart) {
        plain.alpha = 1;
        plain.beta = plain.beta != 0;
    }
    rc = nj_lt_enqueue(ctx, &plain, &t->at);
    waited = wait_for(ctx, t);
    return waited ? waited : rc;
}

static int algorithm_number(nj_context *ctx, const struct nj_lt_choice *c)
{
    int32_t number = -1;
    size_t written;

    (void)nj_cuda_of(ctx)->lt.cublasLtMatmulAlgoConfigGetAttribute(
        &c->algo, NJ_CUBLASLT_ALGO_CONFIG_ID, &number, sizeof number, &written);
    return number;
}

static void leave_out(nj_context *ctx, struct trial *t, int i, enum fault fault, const char *why)
{
    t->ms[i] = LEFT_OUT;
    ctx->info.gemms_wrong += fault == WRONG;
    ctx->info.gemms_refused += fault == REFUSED;
    if (t->fault[fault].count++ == 0)
        snprintf(t->fault[fault].first, sizeof t->fault[fault].first, "algorithm %d: %.160s",
                 algorithm_number(ctx, &t->list[i]), why);
}

static int compare(nj_context *ctx, struct trial *t, int i, enum nj_lt_depth depth)
{
    int wrong = 0, rc = nj_lt_known_compare(ctx, &t->known, depth, &wrong);

    ctx->info.gemms_checked += rc == 0 && t->ms[i] == 0;
    if (wrong)
        leave_out(ctx, t, i, WRONG, t->known.where);
    return rc;
}

/* Run candidate i once and compare its result. Returns 0 even if it is left out. */
static int try_choice(nj_context *ctx, struct trial *t, int i, enum nj_lt_depth depth)
{
    const double began = clock_ms();
    double cleared, ran;
    int rc = t->apart ? nj_lt_known_clear(ctx, &t->known) : 0;

    cleared = clock_ms();
    t->p->choice = t->list[i];
    if (rc == 0)
        rc = run_once(ctx, t);
    ran = clock_ms();
    if (rc == 0 && t->apart)
        rc = compare(ctx, t, i, depth);
    /* A candidate that has been timed already runs only for this comparison. */
    ctx->info.gemm_check_ms +=
        cleared - began + clock_ms() - ran + (t->ms[i] > 0 ? ran - cleared : 0);
    if (rc == NJ_E_GEMM) {
        leave_out(ctx, t, i, REFUSED, ctx->error);
        rc = 0;
    }
    return rc;
}

/* ---- timing ---- */

/* Capture `runs` runs as a graph, as a step has them, so that the time between two kernels counts, too. */
static int capture_runs(nj_context *ctx, const struct trial *t, int runs, void **out)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    void *graph = NULL, *stream = t->at.stream;
    int rc = 0,
        result = driver->cuStreamBeginCapture(stream, NJ_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

    if (result)
        return nj_cuda_check(ctx, result, "timing a GEMM");
    for (int i = 0; i < runs && rc == 0; i++)
        rc = nj_lt_enqueue(ctx, t->p, &t->at);
    result = driver->cuStreamEndCapture(stream, &graph);
    if (rc == 0 && result == 0)
        result = driver->cuGraphInstantiateWithFlags(out, graph, 0);
    if (graph)
        driver->cuGraphDestroy(graph);
    return rc != 0 ? rc : nj_cuda_check(ctx, result, "timing a GEMM");
}

/* Measure the milliseconds per run, over `runs` runs. */
static int time_runs(nj_context *ctx, const struct trial *t, int runs, float *ms)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    void *graph = NULL;
    int rc = capture_runs(ctx, t, runs, &graph), result;

    if (rc != 0)
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

/* Open what timing needs: a stream of its own, since the default one cannot be captured. */
static int open_timer(nj_context *ctx, struct trial *t)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;
    int result = driver->cuStreamCreate(&t->at.stream, NJ_CU_STREAM_NON_BLOCKING);

    result = result ? result : driver->cuEventCreate(&t->event[0], NJ_CU_EVENT_DEFAULT);
    result = result ? result : driver->cuEventCreate(&t->event[1], NJ_CU_EVENT_DEFAULT);
    return nj_cuda_check(ctx, result, "timing a GEMM");
}

static void close_timer(nj_context *ctx, struct trial *t)
{
    struct nj_driver *driver = &nj_cuda_of(ctx)->driver;

    for (int i = 0; i < 2; i++)
        if (t->event[i])
            driver->cuEventDestroy(t->event[i]);
    if (t->at.stream)
        driver->cuStreamDestroy(t->at.stream);
}

struct best {
    int at; /* index of the candidate; -1: none */
    float first;
};

static int time_choice(nj_context *ctx, struct trial *t, int i, struct best *best)
{
    float first = 0, ms = 0;
    TRY(time_runs(ctx, t, 1, &first));
    t->ms[i] = ms = first;
    if (best->at >= 0 && first > HOPELESS * best->first)
        return 0;
    const int rc = time_runs(ctx, t, TIMED_RUNS, &ms);
    t->ms[i] = ms;
    if (rc == 0 && (best->at < 0 || ms < t->ms[best->at]))
        *best = (struct best){i, first};
    return rc;
}

static int time_all(nj_context *ctx, struct trial *t)
{
    struct best best = {.at = -1};
    int rc = 0;

    for (int i = 0; i < t->count && rc == 0; i++) {
        if (t->ms[i] == LEFT_OUT)
            continue;
        rc = try_choice(ctx, t, i, NJ_LT_QUICK);
        if (rc != 0 || t->ms[i] == LEFT_OUT)
            continue;
        rc = time_choice(ctx, t, i, &best);
        if (rc == NJ_E_GEMM) { /* it fails only in a graph */
            leave_out(ctx, t, i, REFUSED, ctx->error);
            rc = 0;
        }
    }
    return rc;
}

/* ---- taking one ---- */

/* Return the fastest candidate that is left, or the first if none is timed; -1: none. */
static int next_choice(const struct trial *t)
{
    int best = -1;

    for (int i = 0; i < t->count; i++)
        if (t->ms[i] != LEFT_OUT && (best < 0 || t->ms[i] < t->ms[best]))
            best = i;
    return best;
}

static int fail_all(nj_context *ctx, const struct trial *t)
{
    const char *wrong = t->fault[WRONG].first, *refused = t->fault[REFUSED].first;
    char version[64];

    return nj_fail(ctx, NJ_E_GEMM,
                   "cuBLASLt %s lists %d algorithms, of which %d give wrong results%s%s%s and %d "
                   "are refused%s%s%s; use another version (NOJIT_CUBLASLT) and report this",
                   nj_version_text(ctx->info.gemm_version, version), t->count,
                   t->fault[WRONG].count, *wrong ? " (" : "", wrong, *wrong ? ")" : "",
                   t->fault[REFUSED].count, *refused ? " (" : "", refused, *refused ? ")" : "");
}

static void say_left_out(nj_context *ctx, const struct trial *t)
{
    static const char *const words[FAULTS] = {
        [WRONG] = "gave a wrong result, please report it", [REFUSED] = "refused to run"};
    const struct nj_cuda *cu = nj_cuda_of(ctx);
    char text[NJ_GEMM_TEXT_BYTES], version[64], line[NJ_SENTENCE_BYTES];
    size_t used;

    if (!cu->log || t->fault[WRONG].count + t->fault[REFUSED].count == 0)
        return;
    nj_gemm_describe(t->g, text, sizeof text);
    used = (size_t)snprintf(line, sizeof line, "GEMM %s: cuBLASLt %s on %.100s:", text,
                            nj_version_text(ctx->info.gemm_version, version), ctx->info.name);
    for (int i = 0; i < FAULTS; i++)
        if (t->fault[i].count > 0)
            used +=
                (size_t)snprintf(line + used, sizeof line - used, " %d of %d algorithms %s (%s)",
                                 t->fault[i].count, t->count, words[i], t->fault[i].first);
    snprintf(line + used, sizeof line - used, "; left out");
    cu->log(cu->log_user, line);
}

/* Take the next remaining candidate that passes a thorough comparison, if that covers more than the quick one did. */
static int take_next(nj_context *ctx, struct trial *t)
{
    int rc = 0;

    for (int i = next_choice(t); i >= 0 && rc == 0; i = next_choice(t)) {
        t->p->choice = t->list[i];
        if (t->ms[i] > 0 && !nj_lt_known_has_more(&t->known))
            return 0;
        rc = try_choice(ctx, t, i, NJ_LT_THOROUGH);
        if (rc == 0 && t->ms[i] != LEFT_OUT)
            return 0;
    }
    return rc != 0 ? rc : fail_all(ctx, t);
}

/* Take the stored choice if the library lists it for this shape: bytes from a file only select, and never reach the
 * library, which need not survive foreign ones. *taken: it still works. */
static int take_stored(nj_context *ctx, const struct nj_gemm_plan *plan, struct trial *t,
                       int *taken)
{
    const int i = plan->chosen ? find_choice(plan->choice, t->list, t->count) : -1;
    int rc;

    *taken = 0;
    if (i < 0)
        return 0;
    rc = try_choice(ctx, t, i, NJ_LT_QUICK);
    *taken = rc == 0 && t->ms[i] != LEFT_OUT;
    return rc;
}

static int choose(nj_context *ctx, struct nj_gemm_plan *plan, struct trial *t)
{
    const int tune = ctx->gemm_tune;
    int stored, rc = take_stored(ctx, plan, t, &stored);

    plan->chosen = stored || tune;
    if (rc != 0 || stored)
        return rc;
    if (tune) {
        rc = open_timer(ctx, t);
        if (rc == 0)
            rc = time_all(ctx, t);
        ctx->info.gemms_timed++;
    }
    if (rc == 0)
        rc = take_next(ctx, t);
    close_timer(ctx, t);
    return rc;
}

static int begin_known(nj_context *ctx, struct trial *t, const size_t operand_bytes[2])
{
    const double began = clock_ms();
    int rc = t->apart ? nj_lt_known_begin(ctx, t->g, &t->at, operand_bytes, &t->known) : 0;

    ctx->info.gemm_check_ms += clock_ms() - began;
    ctx->info.gemms_unchecked += !t->apart;
    return rc;
}

int nj_lt_choose(nj_context *ctx, struct nj_gemm_plan *plan, struct nj_lt_product *p)
{
    const double from = clock_ms();
    struct trial t = {.g = &plan->shape, .p = p};
    size_t operand_bytes[2];
    TRY(take_scratch(ctx, &t, operand_bytes));
    int rc = begin_known(ctx, &t, operand_bytes);
    if (rc == 0)
        rc = nj_lt_set_scales(ctx, p, &t.at);
    if (rc == 0)
        rc = list_algorithms(ctx, &t);
    if (rc == 0)
        rc = choose(ctx, plan, &t);
    memcpy(plan->choice, &p->choice, sizeof plan->choice);
    say_left_out(ctx, &t);
    nj_lt_known_end(&t.known);
    nj_free(ctx, NJ_MEM_DEVICE, t.memory);
    ctx->info.gemm_ms += clock_ms() - from;
    return rc;
}
