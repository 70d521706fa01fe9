/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fp8.c: GEMMs of E4M3 rows (test_fp8_rows.c), on the CPU and on a GPU if one has them. E5M2 has 5 bits of
 * exponent (bias 15), 2 of fraction.
 *
 * Elements are integers from -2 to 2, at most 512 per sum: no sum exceeds 2^11, so that even an accumulator of 14 bits
 * holds each sum exactly in any order. Only the multiplication by two scales and the rounding of the result remain.
 */
#include "base/float16.h"
#include "e5m2_value.h"
#include "fp8_fixture.h"

/* Return the scale of a row; results hold scales that differ by up to 2^10. */
static float row_scale(int row)
{
    return (float)(1 + row % 7) * powf(2, (float)(row % 11) - 12);
}

static int small_number(int i)
{
    return (int)((uint32_t)i * 2654435761u >> 16) % 5 - 2;
}

/* Return 0, 1 or 2 with a sign, as E4M3 or E5M2; the sign is the highest bit. */
static uint8_t encode(int x, bool e5m2)
{
    static const uint8_t bits[][3] = {{0x00, 0x38, 0x40}, {0x00, 0x3c, 0x40}};
    return (uint8_t)(bits[e5m2][abs(x)] | (x < 0 ? 0x80 : 0));
}

struct fp8_matrix {
    int rows, columns, ld, first; /* first: selects the numbers */
    uint8_t *q;
    float *scale;
    void *dq, *dscale;
};

static void send_again(struct device *d, const struct fp8_matrix *m)
{
    const size_t rows = (size_t)m->rows;
    assert_int_equal(nj_copy(d->s, m->dq, m->q, rows * (size_t)m->ld), 0);
    assert_int_equal(nj_copy(d->s, m->dscale, m->scale, rows * sizeof *m->scale), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
}

static struct fp8_matrix matrix_of(struct device *d, bool e5m2, int rows, int columns, int pad,
                                   int first)
{
    struct fp8_matrix m = {rows, columns, columns + pad, first, NULL, NULL, NULL, NULL};
    const size_t bytes = (size_t)rows * (size_t)m.ld;
    m.q = malloc(bytes);
    m.scale = malloc((size_t)rows * sizeof *m.scale);
    assert_true(m.q && m.scale);
    memset(m.q, 0x7f, bytes); /* the gap between rows is NaN */
    for (int r = 0; r < rows; r++) {
        m.scale[r] = row_scale(r + first);
        for (int c = 0; c < columns; c++)
            m.q[r * m.ld + c] = encode(small_number(first + r * columns + c), e5m2);
    }
    m.dq = on_device(d, bytes);
    m.dscale = on_device(d, (size_t)rows * sizeof *m.scale);
    send_again(d, &m);
    return m;
}

static struct fp8_matrix matrix(struct device *d, int rows, int columns, int pad, int first)
{
    return matrix_of(d, false, rows, columns, pad, first);
}

static void matrix_free(struct device *d, struct fp8_matrix *m)
{
    nj_free(d->ctx, NJ_MEM_DEVICE, m->dq);
    nj_free(d->ctx, NJ_MEM_DEVICE, m->dscale);
    free(m->q);
    free(m->scale);
}

static float value_of(const struct device *d, enum nj_dtype T, const void *c, size_t i)
{
    const uint16_t *narrow = c;
    if (T == NJ_F32)
        return ((const float *)c)[i];
    return d->lp_is_f16 ? f32_from_f16(narrow[i]) : f32_from_bf16(narrow[i]);
}

static struct nj_gemm shape_of(const struct fp8_matrix *a, const struct fp8_matrix *b,
                               enum nj_dtype T, int pad)
{
    return (struct nj_gemm){.kind = NJ_GEMM_NT,
                            .ab_dtype = NJ_F8,
                            .c_dtype = T,
                            .M = a->rows,
                            .N = b->rows,
                            .K = a->columns,
                            .lda = a->ld,
                            .ldb = b->ld,
                            .ldc = b->rows + pad};
}

static int multiply(struct device *d, const struct nj_gemm *g, void *c, const struct fp8_matrix *a,
                    const struct fp8_matrix *b)
{
    return nj_gemm_run_scaled(
        d->s, g,
        &(struct nj_gemm_operands){
            .c = c, .a = a->dq, .b = b->dq, .a_scale = a->dscale, .b_scale = b->dscale});
}

static void check_result(const struct device *d, const struct nj_gemm *g,
                         const struct fp8_matrix *a, const struct fp8_matrix *b, const void *c)
{
    const double unit = g->c_dtype == NJ_F32 ? 0 : d->lp_is_f16 ? 0x1p-11 : 0x1p-8;
    for (int m = 0; m < g->M; m++) {
        for (int n = 0; n < g->N; n++) {
            int sum = 0;
            for (int k = 0; k < g->K; k++)
                sum +=
                    small_number(a->first + m * g->K + k) * small_number(b->first + n * g->K + k);
            /* Sums are exact; two scales and a copy of each operand may be rounded to float32 on the way, over K terms
             * on the CPU. */
            const double scale = (double)a->scale[m] * (double)b->scale[n], want = sum * scale;
            const double size = 4.0 * g->K * scale * (g->K + 4) * 0x1p-24;
            const double bound = size + unit * (fabs(want) + size) + (d->lp_is_f16 ? 0x1p-24 : 0);
            const double got = (double)value_of(d, g->c_dtype, c, (size_t)(m * g->ldc + n));
            if (!(fabs(got - want) <= bound))
                fail_msg("M=%d N=%d K=%d: C[%d,%d] = %.9g, expected %.9g within %.3g (%d, scales "
                         "%.6g and %.6g)",
                         g->M, g->N, g->K, m, n, got, want, bound, sum, (double)a->scale[m],
                         (double)b->scale[n]);
        }
    }
}

/* Run the same plan twice with different matrices: scales belong to a run, not to the plan. */
static void check_product(struct device *d, int M, int N, int K, int pad, enum nj_dtype T)
{
    struct fp8_matrix a = matrix(d, M, K, pad, 0), b = matrix(d, N, K, pad, 5);
    struct fp8_matrix other = matrix(d, N, K, pad, 9);
    const struct nj_gemm g = shape_of(&a, &b, T, pad);
    const size_t bytes = (size_t)g.M * (size_t)g.ldc * bytes_of(T);
    void *c = malloc(bytes), *dc = on_device(d, bytes), *dother = on_device(d, bytes);
    assert_non_null(c);
    if (nj_gemm_prepare(d->ctx, &g) != 0 || multiply(d, &g, dc, &a, &b) != 0 ||
        multiply(d, &g, dother, &a, &other) != 0)
        fail_msg("%s", nj_context_error(d->ctx));
    receive(d, c, dc, bytes);
    check_result(d, &g, &a, &b, c);
    receive(d, c, dother, bytes);
    check_result(d, &g, &a, &other, c);
    free(c);
    matrix_free(d, &a);
    matrix_free(d, &b);
    matrix_free(d, &other);
}

/* Skip unless the device's GEMMs take a scale per row; test_fp8_scales.c tests the others. */
static struct device *need_f8(void **state)
{
    struct device *d = need(state);
    if (nj_context_device(d->ctx)->f8 != NJ_F8_ROWS)
        skip();
    return d;
}

static struct device *need_one_scale(void **state)
{
    struct device *d = need(state);
    const enum nj_f8_scales f8 = nj_context_device(d->ctx)->f8;
    if (f8 != NJ_F8_ROWS && f8 != NJ_F8_ONE)
        skip();
    return d;
}

static void f8_gemms_agree_with_their_references(void **state)
{
    static const struct {
        int M, N, K, pad;
    } shapes[] = {{1, 16, 16, 0}, {16, 64, 128, 0}, {37, 272, 80, 16}, {128, 528, 512, 0}};
    struct device *d = need_f8(state);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_product(d, shapes[i].M, shapes[i].N, shapes[i].K, shapes[i].pad, NJ_F32);
        if (dtype_of(d) == NJ_LP)
            check_product(d, shapes[i].M, shapes[i].N, shapes[i].K, shapes[i].pad, NJ_LP);
    }
}

/* Check a GEMM with one scale per operand, that of its first row, added to float32 sums where results are float32. */
static void check_one_scale(struct device *d, bool e5m2, int K, int pad, enum nj_dtype T)
{
    enum { M = 48, N = 32 };
    struct fp8_matrix a = matrix_of(d, e5m2, M, K, pad, 0), b = matrix(d, N, K, pad, 5);
    struct nj_gemm g = shape_of(&a, &b, T, 0);
    const size_t bytes = (size_t)g.M * (size_t)g.ldc * bytes_of(T);
    const int runs = T == NJ_F32 ? 2 : 1;
    void *c = malloc(bytes), *dc = on_device(d, bytes);
    g.one_scale = 1;
    g.a_e5m2 = e5m2;
    assert_non_null(c);
    for (int beta = 0; beta < runs; beta++) {
        g.beta = (float)beta;
        if (nj_gemm_prepare(d->ctx, &g) != 0 || multiply(d, &g, dc, &a, &b) != 0)
            fail_msg("%s", nj_context_error(d->ctx));
    }
    for (int i = 0; i < M; i++)
        a.scale[i] = (float)runs * row_scale(0); /* both sums are the same */
    for (int i = 0; i < N; i++)
        b.scale[i] = row_scale(5);
    receive(d, c, dc, bytes);
    check_result(d, &g, &a, &b, c);
    free(c);
    matrix_free(d, &a);
    matrix_free(d, &b);
}

static void f8_gemms_of_one_scale_agree_with_their_references(void **state)
{
    check_one_scale(need_one_scale(state), false, 128, 0, NJ_F32);
}

static void e5m2_gemms_agree_with_their_references(void **state)
{
    struct device *d = need_one_scale(state);
    check_one_scale(d, true, 128, 0, NJ_F32);
    check_one_scale(d, true, 80, 16, NJ_F32);
    if (dtype_of(d) == NJ_LP)
        check_one_scale(d, true, 512, 512, NJ_LP);
}

/* Each E5M2 number is multiplied by 1; it is the first of its row. */
static void all_e5m2_numbers_are_multiplied(void **state)
{
    enum { M = 256, N = 16, K = 16 };
    struct device *d = need_one_scale(state);
    struct fp8_matrix a = matrix_of(d, true, M, K, 0, 0), b = matrix(d, N, K, 0, 0);
    struct nj_gemm g = shape_of(&a, &b, NJ_F32, 0);
    float c[M * N];
    void *dc = on_device(d, sizeof c);
    g.one_scale = g.a_e5m2 = 1;
    for (int i = 0; i < M * K; i++)
        a.q[i] = i % K == 0 ? (uint8_t)(i / K) : 0;
    for (int i = 0; i < N * K; i++)
        b.q[i] = encode(i % K == 0, false);
    *a.scale = *b.scale = 1;
    send_again(d, &a);
    send_again(d, &b);
    if (nj_gemm_prepare(d->ctx, &g) != 0 || multiply(d, &g, dc, &a, &b) != 0)
        fail_msg("%s", nj_context_error(d->ctx));
    receive(d, c, dc, sizeof c);
    for (int i = 0; i < M * N; i++) {
        const double want = decode_e5m2((uint8_t)(i / N));
        assert_true(isnan(want) ? isnan(c[i]) : (double)c[i] == want);
    }
    matrix_free(d, &a);
    matrix_free(d, &b);
}

/* A plan captured twice with different scales keeps both. */
static void a_graph_keeps_its_f8_scales(void **state)
{
    struct device *d = need_f8(state);
    struct fp8_matrix a = matrix(d, 64, 64, 0, 0), b = matrix(d, 32, 64, 0, 5);
    struct fp8_matrix other = matrix(d, 32, 64, 0, 9);
    const struct nj_gemm g = shape_of(&a, &b, NJ_F32, 0);
    const size_t bytes = (size_t)g.M * (size_t)g.ldc * sizeof(float);
    void *c = malloc(bytes), *dc = on_device(d, bytes), *dother = on_device(d, bytes);
    nj_graph *graph = NULL;
    assert_non_null(c);
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    if (nj_graph_begin(d->s) == 0) {
        assert_int_equal(multiply(d, &g, dc, &a, &b), 0);
        assert_int_equal(multiply(d, &g, dother, &a, &other), 0);
        assert_int_equal(nj_graph_end(d->s, &graph), 0);
        assert_int_equal(nj_graph_launch(graph, d->s), 0);
        receive(d, c, dc, bytes);
        check_result(d, &g, &a, &b, c);
        receive(d, c, dother, bytes);
        check_result(d, &g, &a, &other, c);
        nj_graph_destroy(graph);
    } else {
        nj_free(d->ctx, NJ_MEM_DEVICE, dc);
        nj_free(d->ctx, NJ_MEM_DEVICE, dother);
    }
    free(c);
    matrix_free(d, &a);
    matrix_free(d, &b);
    matrix_free(d, &other);
    if (!graph)
        skip();
}

/* A scale that is NaN or infinite spoils its own row and no other. */
static void a_broken_f8_row_is_seen(void **state)
{
    struct device *d = need_f8(state);
    struct fp8_matrix a = matrix(d, 24, 64, 0, 0), b = matrix(d, 32, 64, 0, 5);
    const struct nj_gemm g = shape_of(&a, &b, NJ_F32, 0);
    float c[24 * 32];
    void *dc = on_device(d, sizeof c);
    a.scale[7] = NAN;
    assert_int_equal(nj_copy(d->s, a.dscale, a.scale, 24 * sizeof *a.scale), 0);
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    assert_int_equal(multiply(d, &g, dc, &a, &b), 0);
    receive(d, c, dc, sizeof c);
    for (int i = 0; i < 24 * 32; i++)
        assert_int_equal(!!isnan(c[i]), i / 32 == 7);
    matrix_free(d, &a);
    matrix_free(d, &b);
}

static void f8_gemms_that_cannot_be_are_refused(void **state)
{
    struct device *d = need(state);
    const struct nj_gemm good = {.kind = NJ_GEMM_NT,
                                 .ab_dtype = NJ_F8,
                                 .M = 5,
                                 .N = 32,
                                 .K = 48,
                                 .lda = 48,
                                 .ldb = 48,
                                 .ldc = 32};
    struct nj_gemm g = good;
    char *p = on_device(d, 8192);
    if (nj_context_device(d->ctx)->f8 != NJ_F8_ROWS) {
        assert_int_equal(nj_gemm_prepare(d->ctx, &g), NJ_E_UNSUPPORTED);
        nj_free(d->ctx, NJ_MEM_DEVICE, p);
        skip();
    }
    const struct {
        int64_t K, N, ldc;
        enum nj_dtype c_dtype;
        float beta;
    } bad[] = {{40, 32, 32, NJ_F32, 0},
               {48, 24, 32, NJ_F32, 0},
               {48, 32, 40, NJ_F32, 0},
               {48, 32, 32, NJ_LP, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        g = good;
        g.K = (int32_t)bad[i].K;
        g.N = (int32_t)bad[i].N;
        g.ldc = bad[i].ldc;
        g.c_dtype = bad[i].c_dtype;
        g.beta = bad[i].beta;
        assert_int_equal(nj_gemm_prepare(d->ctx, &g), NJ_E_ARG);
        assert_non_null(strstr(nj_context_error(d->ctx), "NT f8->"));
    }
    g = good;
    g.a_e5m2 = 1;
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), NJ_E_ARG);
    assert_non_null(strstr(nj_context_error(d->ctx), "one scale"));
    const float *scale = (const float *)(void *)(p + 4096);
    struct nj_gemm_operands x = {.c = p, .a = p, .b = p, .a_scale = scale + 1, .b_scale = scale};
    assert_int_equal(nj_gemm_prepare(d->ctx, &good), 0);
    assert_int_equal(nj_gemm_run(d->s, &good, p, p, p), NJ_E_ARG);
    assert_int_equal(nj_gemm_run_scaled(d->s, &good, &x), NJ_E_ARG);
    assert_int_equal(nj_gemm_run_scaled(d->s, &good, NULL), NJ_E_ARG);
    x.a_scale = scale;
    g = good;
    g.ab_dtype = NJ_F32;
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    assert_int_equal(nj_gemm_run_scaled(d->s, &g, &x), NJ_E_ARG);
    g.one_scale = 1;
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), NJ_E_ARG);
    g.one_scale = 0;
    g.a_e5m2 = 1;
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), NJ_E_ARG);
    nj_free(d->ctx, NJ_MEM_DEVICE, p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f8_gemms_agree_with_their_references),
        cmocka_unit_test(f8_gemms_of_one_scale_agree_with_their_references),
        cmocka_unit_test(e5m2_gemms_agree_with_their_references),
        cmocka_unit_test(all_e5m2_numbers_are_multiplied),
        cmocka_unit_test(a_graph_keeps_its_f8_scales),
        cmocka_unit_test(a_broken_f8_row_is_seen),
        cmocka_unit_test(f8_gemms_that_cannot_be_are_refused),
    };
    return RUN_ON_DEVICES(tests);
}
