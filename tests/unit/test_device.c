/* SPDX-License-Identifier: Apache-2.0
 *
 * test_device.c: memory, copies, events, graphs, GEMMs and heads normalized in place, on every device of this machine:
 * the CPU, and a GPU if there is one. It is linked as a program is: generated objects, blobs.o, libnojit.a.
 *
 * A GEMM is compared with a loop in double, with a bound that holds for any order of summation: |got - want| <= (K + 2)
 * u sum |a b| + rounding of the result.
 */
#include "device_arrays.h"

#include "nojit_ops.h"

#include <math.h>

/* ---- memory ---- */

static void memory_is_zeroed_and_aligned(void **state)
{
    static const size_t sizes[] = {0, 1, 255, 257, 100003};
    struct device *d = need(state);
    unsigned char *host = malloc(100003);

    assert_non_null(host);
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            void *ptr;

            assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, sizes[i], &ptr), 0);
            assert_non_null(ptr);
            assert_int_equal((uintptr_t)ptr % 256, 0);
            memset(host, 0xff, 100003);
            assert_int_equal(nj_copy(d->s, host, ptr, sizes[i]), 0);
            assert_int_equal(nj_stream_sync(d->s), 0);
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(host[k], 0);
            memset(host, 0xff, 100003); /* make it dirty for the next round */
            assert_int_equal(nj_copy(d->s, ptr, host, sizes[i]), 0);
            assert_int_equal(nj_stream_sync(d->s), 0);
            nj_free(d->ctx, NJ_MEM_DEVICE, ptr);
        }
    }
    free(host);
}

static void copies_go_in_every_direction(void **state)
{
    enum { BYTES = 5000 };
    struct device *d = need(state);
    unsigned char from[BYTES], to[BYTES];
    void *pinned, *a, *b;

    for (size_t i = 0; i < BYTES; i++)
        from[i] = (unsigned char)(i * 31 + 7);
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_HOST, BYTES, &pinned), 0);
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, BYTES, &a), 0);
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, BYTES, &b), 0);
    assert_int_equal((uintptr_t)pinned % 256, 0);
    assert_int_equal(nj_copy(d->s, a, from, BYTES), 0);
    assert_int_equal(nj_copy(d->s, b, a, BYTES), 0);
    assert_int_equal(nj_zero(d->s, a, BYTES), 0);
    assert_int_equal(nj_zero(d->s, (char *)b + 100, 50), 0);
    assert_int_equal(nj_copy(d->s, pinned, b, BYTES), 0);
    assert_int_equal(nj_copy(d->s, to, a, BYTES), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    for (size_t i = 0; i < BYTES; i++) {
        assert_int_equal(to[i], 0);
        assert_int_equal(((unsigned char *)pinned)[i], i >= 100 && i < 150 ? 0 : from[i]);
    }
    assert_int_equal(nj_copy(d->s, NULL, a, 0), 0);
    assert_int_equal(nj_copy(d->s, NULL, a, 4), NJ_E_ARG);
    assert_int_equal(nj_zero(d->s, NULL, 4), NJ_E_ARG);
    nj_free(d->ctx, NJ_MEM_HOST, pinned);
    nj_free(d->ctx, NJ_MEM_DEVICE, a);
    nj_free(d->ctx, NJ_MEM_DEVICE, b);
    nj_free(d->ctx, NJ_MEM_DEVICE, NULL);
}

/* Copies are larger than what a backend can have in flight, to and from memory that is not pinned. */
static void large_copies_are_whole(void **state)
{
    enum { BYTES = (20 << 20) + 3, AT = 5 };
    struct device *d = need(state);
    unsigned char *from = malloc(BYTES), *to = malloc(BYTES), *a;
    void *memory;

    assert_non_null(from);
    assert_non_null(to);
    for (size_t i = 0; i < BYTES; i++)
        from[i] = (unsigned char)(i * 31 + i / 251);
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, BYTES + AT, &memory), 0);
    a = (unsigned char *)memory + AT;
    assert_int_equal(nj_copy(d->s, a, from, BYTES), 0);
    assert_int_equal(nj_copy(d->s, to, a, BYTES), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    assert_memory_equal(to, from, BYTES);
    nj_free(d->ctx, NJ_MEM_DEVICE, memory);
    free(from);
    free(to);
}

static void too_much_memory_is_refused(void **state)
{
    struct device *d = need(state);
    size_t budget = nj_context_budget(d->ctx);
    char text[32];
    void *ptr = &ptr;

    assert_true(budget > 0);
    assert_true(nj_context_device(d->ctx)->memory_bytes >= budget);
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, SIZE_MAX / 2, &ptr), NJ_E_NOMEM);
    assert_null(ptr);
    snprintf(text, sizeof text, "%zu bytes", SIZE_MAX / 2);
    assert_non_null(strstr(nj_context_error(d->ctx), text));
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_HOST, SIZE_MAX - 3, &ptr), NJ_E_NOMEM);
    assert_int_equal(nj_alloc(d->ctx, (enum nj_memory)7, 4, &ptr), NJ_E_ARG);
}

static void events_time_the_work_between_them(void **state)
{
    struct device *d = need(state);
    nj_event *from, *to;
    float ms = -1;

    assert_int_equal(nj_event_create(d->ctx, &from), 0);
    assert_int_equal(nj_event_create(d->ctx, &to), 0);
    if (d->kind != NJ_DEVICE_CUDA)
        assert_int_equal(nj_event_elapsed_ms(from, to, &ms), NJ_E_ARG);
    if (d->kind != NJ_DEVICE_CUDA)
        assert_int_equal(nj_event_sync(from), NJ_E_ARG);
    assert_int_equal(nj_event_record(from, d->s), 0);
    assert_int_equal(nj_event_record(to, d->s), 0);
    assert_int_equal(nj_event_elapsed_ms(from, to, &ms), 0);
    assert_true(ms >= 0 && ms < 10000);
    assert_int_equal(nj_event_sync(to), 0);
    nj_event_destroy(from);
    nj_event_destroy(to);
}

/* Far more work is enqueued on one stream than the other could wait for by chance. */
static void a_stream_waits_for_another(void **state)
{
    enum { BYTES = 1 << 20, TIMES = 50 };
    struct device *d = need(state);
    unsigned char *host = malloc(BYTES);
    nj_stream *first, *second;
    nj_event *e;
    void *a, *b;

    assert_non_null(host);
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, BYTES, &a), 0);
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, BYTES, &b), 0);
    assert_int_equal(nj_stream_create(d->ctx, &first), 0);
    assert_int_equal(nj_stream_create(d->ctx, &second), 0);
    assert_int_equal(nj_event_create(d->ctx, &e), 0);
    assert_int_equal(nj_stream_wait(NULL, e), NJ_E_ARG);
    assert_int_equal(nj_stream_wait(second, NULL), NJ_E_ARG);
    /* no event was recorded: nothing to wait for */
    assert_int_equal(nj_stream_wait(second, e), 0);
    memset(host, 1, BYTES);
    assert_int_equal(nj_copy(first, b, host, BYTES), 0);
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(nj_zero(first, a, BYTES), 0);
        assert_int_equal(nj_copy(first, a, b, BYTES), 0);
    }
    assert_int_equal(nj_event_record(e, first), 0);
    assert_int_equal(nj_stream_wait(second, e), 0);
    memset(host, 0, BYTES);
    assert_int_equal(nj_copy(second, host, a, BYTES), 0);
    assert_int_equal(nj_stream_sync(second), 0);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(host[i], 1);
    if (nj_graph_begin(second) == 0) {
        nj_graph *g;

        assert_int_equal(nj_stream_wait(second, e), NJ_E_ARG);
        assert_int_equal(nj_graph_end(second, &g), 0);
        nj_graph_destroy(g);
    }
    nj_event_destroy(e);
    nj_stream_destroy(first);
    nj_stream_destroy(second);
    nj_free(d->ctx, NJ_MEM_DEVICE, a);
    nj_free(d->ctx, NJ_MEM_DEVICE, b);
    free(host);
}

/* ---- matrix products ---- */

static void check_element(const struct nj_gemm *g, const struct array *a, const struct array *b,
                          float before, float got, int64_t m, int64_t n, int lp_is_f16)
{
    double want = 0, product, size = 0, bound;

    for (int64_t k = 0; k < g->K; k++) {
        double x = a->value[g->kind == NJ_GEMM_TN ? k * g->lda + m : m * g->lda + k];
        double y = b->value[g->kind == NJ_GEMM_NT ? n * g->ldb + k : k * g->ldb + n];

        want += x * y;
        size += fabs(x * y);
    }
    if (g->scale != 0) {
        want *= (double)g->scale;
        size *= fabs((double)g->scale);
    }
    product = want;
    if (g->beta != 0) {
        want += (double)g->beta * (double)before;
        size += fabs((double)g->beta * (double)before);
    }
    bound = (g->K + 2) * 0x1p-23 * size;
    /* The library may round the product before it adds C, and then round the sum. */
    if (g->c_dtype == NJ_LP)
        bound += (lp_is_f16 ? 0x1p-11 : 0x1p-8) * (fabs(want) + fabs(product) + bound);
    if (!(fabs((double)got - want) <= bound))
        fail_msg("kind %d M=%d N=%d K=%d beta %g: C[%d,%d] = %.9g, expected %.9g within %.3g",
                 (int)g->kind, g->M, g->N, g->K, (double)g->beta, (int)m, (int)n, (double)got, want,
                 bound);
}

static void check_product(struct device *d, const struct nj_gemm *g)
{
    size_t a_rows = (size_t)(g->kind == NJ_GEMM_TN ? g->K : g->M);
    size_t b_rows = (size_t)(g->kind == NJ_GEMM_NT ? g->N : g->K);
    struct array a = array_make(d, g->ab_dtype, a_rows * (size_t)g->lda);
    struct array b = array_make(d, g->ab_dtype, b_rows * (size_t)g->ldb);
    struct array c = array_make(d, g->c_dtype, (size_t)g->M * (size_t)g->ldc);
    float *before = malloc(c.count * sizeof *before);

    assert_non_null(before);
    if (g->beta == 0) {
        for (size_t i = 0; i < c.count; i++)
            c.value[i] = (int64_t)i % g->ldc < g->N ? NAN : 1.0f; /* must not be read */
        array_upload(d, &c);
    }
    memcpy(before, c.value, c.count * sizeof *before);
    if (nj_gemm_prepare(d->ctx, g) != 0 || nj_gemm_run(d->s, g, c.device, a.device, b.device) != 0)
        fail_msg("%s", nj_context_error(d->ctx));
    array_download(d, &c);
    for (int64_t m = 0; m < g->M; m++) {
        for (int64_t n = 0; n < g->ldc; n++) {
            int64_t i = m * g->ldc + n;

            if (n < g->N)
                check_element(g, &a, &b, before[i], c.value[i], m, n, d->lp_is_f16);
            else
                assert_true(c.value[i] == before[i]); /* padding is unchanged */
        }
    }
    free(before);
    array_free(d, &a);
    array_free(d, &b);
    array_free(d, &c);
}

struct gemm_size {
    int32_t M, N, K, pad;
};

/* Check a GEMM of each size, kind and pair of types. */
static void each_product(struct device *d, const struct gemm_size *size, size_t count,
                         void (*check)(struct device *d, struct nj_gemm g))
{
    static const enum nj_dtype types[][2] = {{NJ_F32, NJ_F32}, {NJ_LP, NJ_LP}, {NJ_LP, NJ_F32}};

    for (const struct gemm_size *s = size; s < size + count; s++) {
        for (int kind = 0; kind < 3; kind++) {
            for (int t = 0; t < (d->lp ? 3 : 1); t++) {
                struct nj_gemm g = {.kind = (enum nj_gemm_kind)kind,
                                    .ab_dtype = types[t][0],
                                    .c_dtype = types[t][1],
                                    .M = s->M,
                                    .N = s->N,
                                    .K = s->K};

                g.lda = (kind == NJ_GEMM_TN ? g.M : g.K) + s->pad;
                g.ldb = (kind == NJ_GEMM_NT ? g.K : g.N) + s->pad;
                g.ldc = g.N + s->pad;
                check(d, g);
            }
        }
    }
}

/* Check the GEMM alone, added to C, and scaled. */
static void check_small_product(struct device *d, struct nj_gemm g)
{
    check_product(d, &g);
    g.beta = 1;
    check_product(d, &g);
    g.scale = -0.75f;
    check_product(d, &g);
}

static void gemms_agree_with_their_references(void **state)
{
    static const struct gemm_size sizes[] = {
        {1, 1, 1, 0}, {1, 64, 128, 0}, {37, 24, 40, 8}, {5, 7, 3, 2}, {96, 200, 264, 16}};

    each_product(need(state), sizes, sizeof sizes / sizeof *sizes, check_small_product);
}

/* Check some of its rows, and on Vulkan a few rows multiplied separately: the tile does not affect the bits. */
static void check_large_product(struct device *d, struct nj_gemm g)
{
    enum { FEW = 5 };
    const bool across = g.kind == NJ_GEMM_TN;
    struct array a = array_make(d, g.ab_dtype, (size_t)(across ? g.K : g.M) * (size_t)g.lda);
    struct array b =
        array_make(d, g.ab_dtype, (size_t)(g.kind == NJ_GEMM_NT ? g.N : g.K) * (size_t)g.ldb);
    struct array c = array_make(d, g.c_dtype, (size_t)g.M * (size_t)g.ldc);
    struct array few = array_make(d, g.c_dtype, FEW * (size_t)g.ldc);

    assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    assert_int_equal(nj_gemm_run(d->s, &g, c.device, a.device, b.device), 0);
    array_download(d, &c);
    for (int64_t m = 0; m < g.M; m += 89)
        for (int64_t n = 0; n < g.N; n++)
            check_element(&g, &a, &b, 0, c.value[m * g.ldc + n], m, n, d->lp_is_f16);
    g.M = FEW;
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    assert_int_equal(nj_gemm_run(d->s, &g, few.device, a.device, b.device), 0);
    array_download(d, &few);
    for (int64_t m = 0; m < FEW && d->kind == NJ_DEVICE_VULKAN; m++)
        assert_memory_equal(few.value + m * g.ldc, c.value + m * g.ldc,
                            (size_t)g.N * sizeof *c.value);
    array_free(d, &a);
    array_free(d, &b);
    array_free(d, &c);
    array_free(d, &few);
}

/* The GEMMs are large enough for another tile or another algorithm; some have rows that begin at quads and end within
 * one. */
static void a_large_gemm_agrees_with_its_reference(void **state)
{
    static const struct gemm_size sizes[] = {{2047, 1025, 37, 0}, {2046, 1022, 38, 2}};

    each_product(need(state), sizes, sizeof sizes / sizeof *sizes, check_large_product);
}

static void an_unprepared_gemm_is_refused(void **state)
{
    struct device *d = need(state);
    struct nj_gemm g = {
        .kind = NJ_GEMM_NT, .M = 8, .N = 16, .K = 24, .lda = 24, .ldb = 24, .ldc = 16};
    char *p;

    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, 8192, (void **)&p), 0);
    assert_int_equal(nj_gemm_run(d->s, &g, p, p, p), NJ_E_GEMM);
    assert_non_null(strstr(nj_context_error(d->ctx), "NT f32->f32 M=8 N=16 K=24"));
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    assert_int_equal(nj_gemm_run(d->s, &g, p, p + 2048, p + 4096), 0);
    assert_int_equal(nj_gemm_run(d->s, &g, p + 4, p + 2048, p + 4096), NJ_E_ARG);
    assert_int_equal(nj_gemm_run(d->s, &g, NULL, p, p), NJ_E_ARG);
    g.beta = 1;
    assert_int_equal(nj_gemm_run(d->s, &g, p, p + 2048, p + 4096), NJ_E_GEMM);
    assert_int_equal(nj_stream_sync(d->s), 0);
    nj_free(d->ctx, NJ_MEM_DEVICE, p);
}

static void impossible_gemms_are_refused(void **state)
{
    struct device *d = need(state);
    const struct nj_gemm good = {
        .kind = NJ_GEMM_TN, .M = 8, .N = 16, .K = 24, .lda = 8, .ldb = 16, .ldc = 16};
    struct nj_gemm g;

#define REFUSED(field, wrong)                                                                      \
    g = good;                                                                                      \
    g.field = wrong;                                                                               \
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), NJ_E_ARG)
    REFUSED(M, 0);
    REFUSED(K, -1);
    REFUSED(lda, 7);
    REFUSED(ldb, 15);
    REFUSED(ldc, 15);
    REFUSED(kind, (enum nj_gemm_kind)3);
    REFUSED(c_dtype, NJ_LP);
    REFUSED(ab_dtype, (enum nj_dtype)3);
    REFUSED(ab_dtype, NJ_F8); /* the kind is TN */
    REFUSED(c_dtype, NJ_F8);
    REFUSED(beta, NAN);
    REFUSED(scale, NAN);
#undef REFUSED
    g = good;
    g.ab_dtype = NJ_LP;
    if (!d->lp) {
        assert_int_equal(nj_gemm_prepare(d->ctx, &g), NJ_E_UNSUPPORTED);
        assert_non_null(strstr(nj_context_error(d->ctx), "choose dtype f32"));
    }
}

/* More shapes are used than the table has room for at first. */
static void many_shapes_of_gemms_have_a_plan(void **state)
{
    struct device *d = need(state);
    struct nj_gemm g = {.kind = NJ_GEMM_NN, .N = 8, .K = 8, .lda = 8, .ldb = 8, .ldc = 8};
    char *p;

    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, 3 * 8192, (void **)&p), 0);
    for (g.M = 1; g.M <= 100; g.M++)
        assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    for (g.M = 1; g.M <= 100; g.M++)
        assert_int_equal(nj_gemm_run(d->s, &g, p, p + 8192, p + 16384), 0);
    assert_int_equal(nj_gemm_run(d->s, &g, p, p + 8192, p + 16384), NJ_E_GEMM);
    assert_int_equal(nj_stream_sync(d->s), 0);
    nj_free(d->ctx, NJ_MEM_DEVICE, p);
}

/* A graph gives the same bits as direct launches, each time it runs. */
static void a_graph_repeats_its_launches(void **state)
{
    struct device *d = need(state);
    struct nj_gemm g = {
        .kind = NJ_GEMM_NT, .M = 64, .N = 72, .K = 80, .lda = 80, .ldb = 80, .ldc = 72, .beta = 1};
    struct array a = array_make(d, NJ_F32, 64 * 80), b = array_make(d, NJ_F32, 72 * 80);
    struct array c = array_make(d, NJ_F32, 64 * 72), want = array_make(d, NJ_F32, 64 * 72);
    nj_graph *graph = NULL;

    assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    assert_int_equal(nj_zero(d->s, want.device, want.bytes), 0);
    assert_int_equal(nj_gemm_run(d->s, &g, want.device, a.device, b.device), 0);
    array_download(d, &want);
    if (d->kind != NJ_DEVICE_CUDA) {
        assert_int_equal(nj_graph_begin(d->s), NJ_E_UNSUPPORTED);
    } else {
        assert_int_equal(nj_graph_begin(d->s), 0);
        assert_int_equal(nj_zero(d->s, c.device, c.bytes), 0);
        assert_int_equal(nj_gemm_run(d->s, &g, c.device, a.device, b.device), 0);
        assert_int_equal(nj_graph_end(d->s, &graph), 0);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(nj_graph_launch(graph, d->s), 0);
            array_download(d, &c);
            assert_memory_equal(c.raw, want.raw, c.bytes);
        }
        nj_graph_destroy(graph);
    }
    array_free(d, &a);
    array_free(d, &b);
    array_free(d, &c);
    array_free(d, &want);
}

/* Check that heads normalized and rotated in place have the bits of those written elsewhere. */
static void check_heads_in_place(struct device *d, enum nj_dtype T)
{
    enum { N = 5, H = 4, K = 2, D = 128, WIDTH = (H + 2 * K) * D };
    static const int32_t pos[N] = {0, 1, 7, 1000, 32767};
    struct array x = array_make(d, T, N * WIDTH), y = array_make(d, T, N * WIDTH);
    struct array wq = array_make(d, T, D), wk = array_make(d, T, D);
    struct array rstd = array_make(d, NJ_F32, N * (H + K)),
                 again = array_make(d, NJ_F32, N * (H + K));
    struct array inv_freq = array_make(d, NJ_F32, D / 2);
    void *at;

    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, sizeof pos, &at), 0);
    assert_int_equal(nj_copy(d->s, at, pos, sizeof pos), 0);
    struct nj_qknorm_rope_fwd args = {.y = y.device, .rstd = rstd.device, .x = x.device, .pos = at};
    args.wq = wq.device, args.wk = wk.device, args.inv_freq = inv_freq.device;
    args.N = N, args.H = H, args.K = K, args.D = D, args.eps = 1e-6f, args.amplitude = 1;
    assert_int_equal(nj_qknorm_rope_fwd(d->s, T, &args), 0);
    args.y = x.device;
    args.rstd = again.device;
    assert_int_equal(nj_qknorm_rope_fwd(d->s, T, &args), 0);
    struct array *all[] = {&x, &y, &rstd, &again, &wq, &wk, &inv_freq};
    for (size_t i = 0; i < 4; i++)
        array_download(d, all[i]);
    assert_memory_equal(x.raw, y.raw, y.bytes);
    assert_memory_equal(again.raw, rstd.raw, rstd.bytes);
    nj_free(d->ctx, NJ_MEM_DEVICE, at);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        array_free(d, all[i]);
}

/* There are more blocks than Vulkan takes in one direction, and their last row is not full. */
static void a_launch_may_have_many_blocks(void **state)
{
    enum { N = 65535 + 66, I = 8 };
    struct device *d = need(state);
    struct array gu = array_make(d, NJ_F32, N * 2 * I), y = array_make(d, NJ_F32, N * I);

    assert_int_equal(
        nj_swiglu_fwd(d->s, NJ_F32,
                      &(struct nj_swiglu_fwd){.y = y.device, .gu = gu.device, .N = N, .I = I}),
        0);
    array_download(d, &y);
    for (int i = 0; i < N * I; i++) {
        const double gate = gu.value[i / I * 2 * I + i % I],
                     up = gu.value[i / I * 2 * I + I + i % I];
        const double want = gate * up / (1 + exp(-gate));

        assert_true(fabs(y.value[i] - want) <= 1e-6 * (1 + fabs(want)));
    }
    array_free(d, &gu);
    array_free(d, &y);
}

static void gemms_of_heads_work_in_place(void **state)
{
    struct device *d = need(state);

    check_heads_in_place(d, NJ_F32);
    if (d->lp)
        check_heads_in_place(d, NJ_LP);
}

static void graphs_can_be_switched_off(void **state)
{
    const struct nj_options options = {.device = need(state)->kind};
    nj_context *ctx;
    nj_stream *s;

    setenv("NOJIT_GRAPH", "0", 1);
    assert_int_equal(nj_context_create(&ctx, &options), 0);
    unsetenv("NOJIT_GRAPH");
    assert_int_equal(nj_stream_create(ctx, &s), 0);
    assert_int_equal(nj_graph_begin(s), NJ_E_UNSUPPORTED);
    assert_non_null(strstr(nj_context_error(ctx), "NOJIT_GRAPH=0"));
    nj_stream_destroy(s);
    nj_context_destroy(ctx);
}

static void every_kernel_is_loaded(void **state)
{
    struct device *d = need(state);
    const struct nj_device_info *info = nj_context_device(d->ctx);
    uint32_t wanted = 0;

    if (d->kind == NJ_DEVICE_VULKAN) { /* pack-shaders lists the existing shaders */
        assert_true(info->kernels_loaded > 0 && info->kernels_loaded == info->modules_loaded);
        return;
    }
    for (uint32_t i = 0; i < nj_kernel_count; i++)
        wanted += !d->is_cpu &&
                  (nj_kernels[i].only == NULL || strcmp(nj_kernels[i].only, info->arch) == 0);
    assert_int_equal(info->kernels_loaded, wanted);
    assert_int_equal(info->modules_loaded, wanted);
    assert_true(info->gemm_library[0] && info->name[0] && info->multiprocessors > 0);
}

/* Look for an op without a shader, among those that every CUDA GPU has. */
static void a_missing_shader_is_named(void **state)
{
    struct device *d = need(state);
    const uint32_t grid[3] = {1, 1, 1};
    unsigned char params[NJ_TILE_MAP_BYTES * 8] = {0};
    uint32_t id = 0;
    if (d->kind != NJ_DEVICE_VULKAN)
        skip();
    while (id < nj_kernel_count && (nj_kernels[id].only || nj_kernel_available(d->ctx, (int)id) ||
                                    nj_kernels[id].param_bytes > sizeof params))
        id++;
    if (id == nj_kernel_count)
        skip();
    assert_int_equal(nj_launch(d->s, id, grid, 0, params), NJ_E_UNSUPPORTED);
    assert_non_null(strstr(nj_context_error(d->ctx), nj_kernels[id].key));
    assert_non_null(strstr(nj_context_error(d->ctx), "use --device cuda or cpu"));
}

static void the_binary_holds_every_kernel(void **state)
{
    struct nj_embedded embedded;

    (void)state;
    assert_int_equal(nj_embedded_read(&embedded), 0);
    assert_int_equal(embedded.keys, nj_kernel_count);
    assert_true(embedded.archs > 0 && embedded.code_bytes > 0 && embedded.toolkit[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(copies_go_in_every_direction),
        cmocka_unit_test(large_copies_are_whole),
        cmocka_unit_test(too_much_memory_is_refused),
        cmocka_unit_test(events_time_the_work_between_them),
        cmocka_unit_test(a_stream_waits_for_another),
        cmocka_unit_test(gemms_agree_with_their_references),
        cmocka_unit_test(a_large_gemm_agrees_with_its_reference),
        cmocka_unit_test(an_unprepared_gemm_is_refused),
        cmocka_unit_test(impossible_gemms_are_refused),
        cmocka_unit_test(many_shapes_of_gemms_have_a_plan),
        cmocka_unit_test(a_graph_repeats_its_launches),
        cmocka_unit_test(a_launch_may_have_many_blocks),
        cmocka_unit_test(gemms_of_heads_work_in_place),
        cmocka_unit_test(graphs_can_be_switched_off),
        cmocka_unit_test(every_kernel_is_loaded),
        cmocka_unit_test(a_missing_shader_is_named),
        cmocka_unit_test(the_binary_holds_every_kernel),
    };
    return RUN_ON_DEVICES(tests) +
           cmocka_run_group_tests_name("Vulkan", tests, open_vulkan, close_device);
}
