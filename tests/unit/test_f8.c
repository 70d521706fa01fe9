/* SPDX-License-Identifier: Apache-2.0
 *
 * test_f8.c: rows as e4m3, and their products, on the CPU and on a GPU if there is one that has
 * them. What e4m3 holds is decoded here on its own: 4 bits of exponent (bias 7), 3 of fraction, no
 * infinity, NaN where all of them are set. e5m2: 5 of exponent (bias 15), 2 of fraction.
 *
 * Products are of whole numbers from -2 to 2, K of them at most 512: no sum exceeds 2^11, so that
 * even an accumulator of 14 bits holds each sum exactly in any order. What is left is the product
 * with two scales and the rounding of the result.
 */
#include "device_fixture.h"
#include "e5m2_value.h"
#include "io/safetensors.h"
#include "nojit_ops.h"

#include <math.h>

/* Of rows and results. */
static enum nj_dtype dtype_of(const struct device *d)
{
    return d->is_cpu ? NJ_F32 : NJ_LP;
}

static double decode(uint8_t bits)
{
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    if ((bits & 127) == 127)
        return (double)NAN;
    const double size =
        exponent ? (1 + fraction / 8.0) * pow(2, exponent - 7) : fraction / 8.0 * pow(2, -6);
    return bits & 128 ? -size : size;
}

/* The nearest e4m3 number; of two as near, the one whose last bit is 0. */
static double nearest(double x)
{
    double best = 0;
    for (int bits = 0; bits < 127; bits++) {
        const double v = decode((uint8_t)bits), apart = fabs(fabs(x) - v);
        if (apart < fabs(fabs(x) - best) || (apart == fabs(fabs(x) - best) && bits % 2 == 0))
            best = v;
    }
    return copysign(best, x);
}

static size_t bytes_of(enum nj_dtype T)
{
    return T == NJ_F32 ? 4 : T == NJ_LP ? 2 : 1;
}

static void *on_device(struct device *d, size_t bytes)
{
    void *p;
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, bytes, &p), 0);
    return p;
}

/* Values as the device's type; x keeps what that holds. */
static void *send(struct device *d, enum nj_dtype T, float *x, size_t count)
{
    void *p = on_device(d, count * bytes_of(T));
    uint16_t *narrow = calloc(count, sizeof *narrow);
    assert_non_null(narrow);
    for (size_t i = 0; i < count && T == NJ_LP; i++) {
        narrow[i] = d->lp_is_f16 ? f16_from_f32(x[i]) : bf16_from_f32(x[i]);
        x[i] = d->lp_is_f16 ? f32_from_f16(narrow[i]) : f32_from_bf16(narrow[i]);
    }
    assert_int_equal(nj_copy(d->s, p, T == NJ_LP ? (void *)narrow : x, count * bytes_of(T)), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    free(narrow);
    return p;
}

static void receive(struct device *d, void *to, void *p, size_t bytes)
{
    assert_int_equal(nj_copy(d->s, to, p, bytes), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    nj_free(d->ctx, NJ_MEM_DEVICE, p);
}

/* top: in and out, or NULL. */
static void quantize_below(struct device *d, float *x, int rows, int columns, uint8_t *q,
                           float *scale, float *top)
{
    const size_t count = (size_t)rows * (size_t)columns;
    void *dx = send(d, dtype_of(d), x, count), *dq = on_device(d, count);
    void *ds = on_device(d, (size_t)rows * sizeof *scale);
    void *dtop = top ? send(d, NJ_F32, top, 1) : NULL;
    if (nj_quantize_rows(d->s, dtype_of(d), dq, ds, dtop, dx, rows, columns) != 0)
        fail_msg("%s", nj_context_error(d->ctx));
    receive(d, q, dq, count);
    receive(d, scale, ds, (size_t)rows * sizeof *scale);
    if (top)
        receive(d, top, dtop, sizeof *top);
    nj_free(d->ctx, NJ_MEM_DEVICE, dx);
}

static void quantize(struct device *d, float *x, int rows, int columns, uint8_t *q, float *scale)
{
    quantize_below(d, x, rows, columns, q, scale, NULL);
}

/* ---- rows ---- */

/* The largest is 448, so the scale is 1 and the numbers themselves are rounded. */
static void test_rounding_is_to_nearest_even(void **state)
{
    enum { ROWS = 4, COLUMNS = 512 };
    struct device *d = need(state);
    static float x[ROWS * COLUMNS];
    static uint8_t q[ROWS * COLUMNS];
    float scale[ROWS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        /* Every e4m3 number, then what lies between it and the next: the middle, and beside it. */
        const int bits = i % COLUMNS / 4 < 126 ? i % COLUMNS / 4 : 125;
        const double low = decode((uint8_t)bits), high = decode((uint8_t)(bits + 1));
        const double part[] = {0, 0.5, 0.40625, 0.59375};
        x[i] = (float)((i / COLUMNS % 2 ? -1 : 1) * (low + part[i % 4] * (high - low)));
        if (i % COLUMNS == COLUMNS - 1)
            x[i] = 448;
    }
    quantize(d, x, ROWS, COLUMNS, q, scale);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        assert_true(scale[i / COLUMNS] == 1.0f);
        if (decode(q[i]) != nearest((double)x[i]))
            fail_msg("%.9g became %.9g, the nearest is %.9g", (double)x[i], decode(q[i]),
                     nearest((double)x[i]));
    }
}

static void test_each_row_has_its_scale(void **state)
{
    enum { ROWS = 40, COLUMNS = 272 };
    struct device *d = need(state);
    static float x[ROWS * COLUMNS];
    static uint8_t q[ROWS * COLUMNS];
    float scale[ROWS];
    for (int i = 0; i < ROWS * COLUMNS; i++) /* rows from 2^-10 to 2^9.5 */
        x[i] = (float)sin(i * 1.7) * powf(2, (float)(i / COLUMNS) / 2 - 10);
    quantize(d, x, ROWS, COLUMNS, q, scale);
    for (int r = 0; r < ROWS; r++) {
        double top = 0;
        for (int c = 0; c < COLUMNS; c++)
            top = fmax(top, fabs((double)x[r * COLUMNS + c]));
        int exponent;
        assert_true(frexp((double)scale[r], &exponent) == 0.5);
        assert_true(top <= 448 * (double)scale[r] * (1 + 0x1p-23));
        assert_true(top > 224 * (double)scale[r]);
        for (int c = 0; c < COLUMNS; c++) {
            /* Half a unit of e4m3, 2^-4 of what is normal and 2^-10 below, after an inverse and a
             * product in float32. */
            const double want = (double)x[r * COLUMNS + c] / (double)scale[r];
            const double bound = fmax(0x1p-4 * fabs(want), 0x1p-10) * (1 + 0x1p-20);
            if (!(fabs(decode(q[r * COLUMNS + c]) - want) <= bound))
                fail_msg("row %d: %.9g became %.9g", r, want, decode(q[r * COLUMNS + c]));
        }
    }
}

/* Rows of zeros, of the smallest and the largest numbers, and rows that are broken. */
static void test_unusual_rows(void **state)
{
    enum { ZERO, TINY, SMALL, HUGE_ONE, NOT_A_NUMBER, INFINITE, ROWS, COLUMNS = 64 };
    struct device *d = need(state);
    static float x[ROWS * COLUMNS];
    uint8_t q[ROWS * COLUMNS];
    float scale[ROWS];
    const float tiny = d->lp_is_f16 ? 0x1p-24f : 0x1p-130f;
    const float small = d->lp_is_f16 ? 0x1p-20f : 0x1p-90f,
                huge = d->lp_is_f16 ? 0x1p15f : 0x1p127f;
    for (int c = 0; c < COLUMNS; c++) {
        x[TINY * COLUMNS + c] = tiny;
        x[SMALL * COLUMNS + c] = small;
        x[HUGE_ONE * COLUMNS + c] = c % 2 ? -huge : huge;
        x[NOT_A_NUMBER * COLUMNS + c] = c == 33 ? NAN : (float)(100 - c);
        x[INFINITE * COLUMNS + c] = c == 50 ? -INFINITY : 1;
    }
    quantize(d, x, ROWS, COLUMNS, q, scale);
    for (int r = 0; r < NOT_A_NUMBER; r++)
        assert_true(scale[r] > 0 && isfinite(scale[r]));
    for (int c = 0; c < COLUMNS; c++) {
        assert_int_equal(q[ZERO * COLUMNS + c], 0);
        /* Below 2^-100 a row may become zeros, but nothing else. */
        const double back = decode(q[TINY * COLUMNS + c]) * (double)scale[TINY];
        assert_true(back == 0 || fabs(back - (double)tiny) <= 0x1p-20 * (double)tiny);
        /* Powers of two, and so their scales: the largest that is not above 448 stands for them. */
        assert_true(decode(q[SMALL * COLUMNS + c]) == 256);
        assert_true(decode(q[HUGE_ONE * COLUMNS + c]) == (c % 2 ? -256 : 256));
    }
    assert_true(isnan(scale[NOT_A_NUMBER]));
    assert_false(isfinite(scale[INFINITE]));
    assert_true(isnan(decode(q[INFINITE * COLUMNS + 50])));
}

/* Of rows with scales 2^-5 to 2^4 in turn, of which one may be broken, after a scale before them. */
static void test_largest_scale_is_kept(void **state)
{
    enum { ROWS = 300, COLUMNS = 32, BROKEN = 77 };
    struct device *d = need(state);
    static float x[ROWS * COLUMNS];
    static uint8_t q[ROWS * COLUMNS];
    float scale[ROWS];
    const struct {
        float before, row, after;
    } cases[] = {{0, 1, 16}, {8, 1, 16}, {64, 1, 64}, {0, INFINITY, INFINITY}, {64, NAN, NAN}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        float top = cases[k].before;
        for (int i = 0; i < ROWS * COLUMNS; i++)
            x[i] = 448 * powf(2, (float)(i / COLUMNS % 10 - 5));
        x[BROKEN * COLUMNS] *= cases[k].row;
        quantize_below(d, x, ROWS, COLUMNS, q, scale, &top);
        assert_true(isnan(cases[k].after) ? isnan(top) : top == cases[k].after);
    }
}

/* Rows, and the same rows to which zeros are added. */
static void test_norm_without_a_sum(void **state)
{
    enum { ROWS = 3, COLUMNS = 64, COUNT = ROWS * COLUMNS };
    struct device *d = need(state);
    const enum nj_dtype T = dtype_of(d);
    static float x[COUNT], none[COUNT], gain[COLUMNS];
    uint8_t q[2][COUNT];
    float scale[2][ROWS], rstd[2][ROWS];
    for (int i = 0; i < COUNT; i++) /* so small that eps counts */
        x[i] = (float)sin(i * 1.7) * 0x1p-10f;
    for (int c = 0; c < COLUMNS; c++)
        gain[c] = (float)(1 + c % 3);
    void *dx = send(d, T, x, COUNT), *dn = send(d, T, none, COUNT), *w = send(d, T, gain, COLUMNS);
    for (int add = 0; add < 2; add++) {
        void *dq = on_device(d, COUNT), *ds = on_device(d, sizeof scale[0]);
        void *dr = on_device(d, sizeof rstd[0]);
        const int rc =
            add ? nj_add_rmsnorm_quantize(d->s, T, dq, ds, dx, dr, dx, dn, w, ROWS, COLUMNS, 1e-6f)
                : nj_rmsnorm_quantize(d->s, T, dq, ds, NULL, dr, dx, w, ROWS, COLUMNS, 1e-6f);
        if (rc != 0)
            fail_msg("%s", nj_context_error(d->ctx));
        receive(d, q[add], dq, COUNT);
        receive(d, scale[add], ds, sizeof scale[0]);
        receive(d, rstd[add], dr, sizeof rstd[0]);
    }
    assert_memory_equal(q[0], q[1], COUNT);
    assert_memory_equal(scale[0], scale[1], sizeof scale[0]);
    assert_memory_equal(rstd[0], rstd[1], sizeof rstd[0]);
    nj_free(d->ctx, NJ_MEM_DEVICE, dx);
    nj_free(d->ctx, NJ_MEM_DEVICE, dn);
    nj_free(d->ctx, NJ_MEM_DEVICE, w);
}

/* Rows of some numbers as columns; q is [columns, rows]. */
static void columns_of(struct device *d, const uint8_t *rows_q, const float *rows_scale, int rows,
                       int columns, uint8_t *q, float *scale)
{
    const size_t count = (size_t)rows * (size_t)columns, n = (size_t)rows * sizeof *scale;
    void *dq = on_device(d, count), *dscale = on_device(d, n), *top = on_device(d, sizeof *scale);
    void *out = on_device(d, count), *out_scale = on_device(d, (size_t)columns * sizeof *scale);
    assert_int_equal(nj_copy(d->s, dq, rows_q, count), 0);
    assert_int_equal(nj_copy(d->s, dscale, rows_scale, n), 0);
    if (nj_e4m3_top(d->s, NJ_F32, top, dscale, rows) != 0 ||
        nj_e4m3_transpose(d->s, NJ_F32, out, out_scale, dq, dscale, top, rows, columns) != 0)
        fail_msg("%s", nj_context_error(d->ctx));
    receive(d, q, out, count);
    receive(d, scale, out_scale, (size_t)columns * sizeof *scale);
    nj_free(d->ctx, NJ_MEM_DEVICE, dq);
    nj_free(d->ctx, NJ_MEM_DEVICE, dscale);
    nj_free(d->ctx, NJ_MEM_DEVICE, top);
}

static void test_columns_have_one_scale(void **state)
{
    enum { ROWS = 48, COLUMNS = 272 };
    struct device *d = need(state);
    static float x[ROWS * COLUMNS];
    static uint8_t q[ROWS * COLUMNS], turned[ROWS * COLUMNS];
    float scale[ROWS], one[COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) /* rows from 2^-8 to 2^3.75 */
        x[i] = (float)sin(i * 1.7) * powf(2, (float)(i / COLUMNS) / 4 - 8);
    quantize(d, x, ROWS, COLUMNS, q, scale);
    columns_of(d, q, scale, ROWS, COLUMNS, turned, one);
    for (int c = 0; c < COLUMNS; c++)
        assert_true(one[c] == scale[ROWS - 1]);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int r = i / COLUMNS, c = i % COLUMNS;
        const double want = decode(q[i]) * (double)scale[r] / (double)one[c];
        const double got = decode(turned[c * ROWS + r]);
        if (fabs(got - want) > (fabs(want) < 0x1p-6 ? 0x1p-10 : 0))
            fail_msg("row %d, column %d: %.9g became %.9g", r, c, want, got);
    }
    for (int broken = 0; broken < 2; broken++) {
        scale[5] = broken ? (float)INFINITY : NAN;
        scale[6] = (float)INFINITY;
        columns_of(d, q, scale, ROWS, COLUMNS, turned, one);
        for (int c = 0; c < COLUMNS; c++)
            assert_true(broken ? isinf(one[c]) : isnan(one[c]));
    }
}

/* ---- products ---- */

/* A factor of rows that the types of results hold: the scales differ by 2^10. */
static float row_scale(int row)
{
    return (float)(1 + row % 7) * powf(2, (float)(row % 11) - 12);
}

static int small_number(int i)
{
    return (int)((uint32_t)i * 2654435761u >> 16) % 5 - 2;
}

/* 0, 1, 2 as e4m3 and as e5m2; the sign is the highest bit. */
static uint8_t encode(int x, bool e5m2)
{
    static const uint8_t bits[][3] = {{0x00, 0x38, 0x40}, {0x00, 0x3c, 0x40}};
    return (uint8_t)(bits[e5m2][abs(x)] | (x < 0 ? 0x80 : 0));
}

struct f8_matrix {
    int rows, columns, ld, first; /* first: which numbers */
    uint8_t *q;
    float *scale;
    void *dq, *dscale;
};

static void send_again(struct device *d, const struct f8_matrix *m)
{
    const size_t rows = (size_t)m->rows;
    assert_int_equal(nj_copy(d->s, m->dq, m->q, rows * (size_t)m->ld), 0);
    assert_int_equal(nj_copy(d->s, m->dscale, m->scale, rows * sizeof *m->scale), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
}

static struct f8_matrix matrix_of(struct device *d, bool e5m2, int rows, int columns, int pad,
                                  int first)
{
    struct f8_matrix m = {rows, columns, columns + pad, first, NULL, NULL, NULL, NULL};
    const size_t bytes = (size_t)rows * (size_t)m.ld;
    m.q = malloc(bytes);
    m.scale = malloc((size_t)rows * sizeof *m.scale);
    assert_true(m.q && m.scale);
    memset(m.q, 0x7f, bytes); /* what lies between rows is NaN */
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

static struct f8_matrix matrix(struct device *d, int rows, int columns, int pad, int first)
{
    return matrix_of(d, false, rows, columns, pad, first);
}

static void matrix_free(struct device *d, struct f8_matrix *m)
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

static struct nj_gemm shape_of(const struct f8_matrix *a, const struct f8_matrix *b,
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

static void check_result(const struct device *d, const struct nj_gemm *g, const struct f8_matrix *a,
                         const struct f8_matrix *b, const void *c)
{
    const double unit = g->c_dtype == NJ_F32 ? 0 : d->lp_is_f16 ? 0x1p-11 : 0x1p-8;
    for (int m = 0; m < g->M; m++) {
        for (int n = 0; n < g->N; n++) {
            int sum = 0;
            for (int k = 0; k < g->K; k++)
                sum +=
                    small_number(a->first + m * g->K + k) * small_number(b->first + n * g->K + k);
            /* Exact sums; two scales and a copy of each operand may be rounded to float32 on the
             * way, over K terms on the CPU. */
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

/* Twice with the same plan and other matrices: scales belong to a run, not to the plan. */
static void check_product(struct device *d, int M, int N, int K, int pad, enum nj_dtype T)
{
    struct f8_matrix a = matrix(d, M, K, pad, 0), b = matrix(d, N, K, pad, 5);
    struct f8_matrix other = matrix(d, N, K, pad, 9);
    const struct nj_gemm g = shape_of(&a, &b, T, pad);
    const size_t bytes = (size_t)g.M * (size_t)g.ldc * bytes_of(T);
    void *c = malloc(bytes), *dc = on_device(d, bytes), *dother = on_device(d, bytes);
    assert_non_null(c);
    if (nj_gemm_prepare(d->ctx, &g) != 0 ||
        nj_gemm_run_scaled(d->s, &g, dc, a.dq, a.dscale, b.dq, b.dscale) != 0 ||
        nj_gemm_run_scaled(d->s, &g, dother, a.dq, a.dscale, other.dq, other.dscale) != 0)
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

/* Whose GEMMs take a scale per row; test_f8_scales.c has the others. */
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

static void test_products(void **state)
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

/* Of each operand one scale, that of its first row, into sums that are added to where they are float32. */
static void check_one_scale(struct device *d, bool e5m2, int K, int pad, enum nj_dtype T)
{
    enum { M = 48, N = 32 };
    struct f8_matrix a = matrix_of(d, e5m2, M, K, pad, 0), b = matrix(d, N, K, pad, 5);
    struct nj_gemm g = shape_of(&a, &b, T, 0);
    const size_t bytes = (size_t)g.M * (size_t)g.ldc * bytes_of(T);
    const int runs = T == NJ_F32 ? 2 : 1;
    void *c = malloc(bytes), *dc = on_device(d, bytes);
    g.one_scale = 1;
    g.a_e5m2 = e5m2;
    assert_non_null(c);
    for (int beta = 0; beta < runs; beta++) {
        g.beta = (float)beta;
        if (nj_gemm_prepare(d->ctx, &g) != 0 ||
            nj_gemm_run_scaled(d->s, &g, dc, a.dq, a.dscale, b.dq, b.dscale) != 0)
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

static void test_products_of_one_scale(void **state)
{
    check_one_scale(need_one_scale(state), false, 128, 0, NJ_F32);
}

static void test_products_of_e5m2(void **state)
{
    struct device *d = need_one_scale(state);
    check_one_scale(d, true, 128, 0, NJ_F32);
    check_one_scale(d, true, 80, 16, NJ_F32);
    if (dtype_of(d) == NJ_LP)
        check_one_scale(d, true, 512, 512, NJ_LP);
}

/* Each of them times 1, the first of each row. */
static void test_all_e5m2_numbers(void **state)
{
    enum { M = 256, N = 16, K = 16 };
    struct device *d = need_one_scale(state);
    struct f8_matrix a = matrix_of(d, true, M, K, 0, 0), b = matrix(d, N, K, 0, 0);
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
    if (nj_gemm_prepare(d->ctx, &g) != 0 ||
        nj_gemm_run_scaled(d->s, &g, dc, a.dq, a.dscale, b.dq, b.dscale) != 0)
        fail_msg("%s", nj_context_error(d->ctx));
    receive(d, c, dc, sizeof c);
    for (int i = 0; i < M * N; i++) {
        const double want = decode_e5m2((uint8_t)(i / N));
        assert_true(isnan(want) ? isnan(c[i]) : (double)c[i] == want);
    }
    matrix_free(d, &a);
    matrix_free(d, &b);
}

/* A plan captured twice with other scales keeps both. */
static void test_a_graph_keeps_its_scales(void **state)
{
    struct device *d = need_f8(state);
    struct f8_matrix a = matrix(d, 64, 64, 0, 0), b = matrix(d, 32, 64, 0, 5);
    struct f8_matrix other = matrix(d, 32, 64, 0, 9);
    const struct nj_gemm g = shape_of(&a, &b, NJ_F32, 0);
    const size_t bytes = (size_t)g.M * (size_t)g.ldc * sizeof(float);
    void *c = malloc(bytes), *dc = on_device(d, bytes), *dother = on_device(d, bytes);
    nj_graph *graph = NULL;
    assert_non_null(c);
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    if (nj_graph_begin(d->s) == 0) {
        assert_int_equal(nj_gemm_run_scaled(d->s, &g, dc, a.dq, a.dscale, b.dq, b.dscale), 0);
        assert_int_equal(
            nj_gemm_run_scaled(d->s, &g, dother, a.dq, a.dscale, other.dq, other.dscale), 0);
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

/* A scale that is no number makes its row, and only its row, none. */
static void test_a_broken_row_is_seen(void **state)
{
    struct device *d = need_f8(state);
    struct f8_matrix a = matrix(d, 24, 64, 0, 0), b = matrix(d, 32, 64, 0, 5);
    const struct nj_gemm g = shape_of(&a, &b, NJ_F32, 0);
    float c[24 * 32];
    void *dc = on_device(d, sizeof c);
    a.scale[7] = NAN;
    assert_int_equal(nj_copy(d->s, a.dscale, a.scale, 24 * sizeof *a.scale), 0);
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    assert_int_equal(nj_gemm_run_scaled(d->s, &g, dc, a.dq, a.dscale, b.dq, b.dscale), 0);
    receive(d, c, dc, sizeof c);
    for (int i = 0; i < 24 * 32; i++)
        assert_int_equal(!!isnan(c[i]), i / 32 == 7);
    matrix_free(d, &a);
    matrix_free(d, &b);
}

static void test_what_cannot_be_is_refused(void **state)
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
    assert_int_equal(nj_gemm_prepare(d->ctx, &good), 0);
    assert_int_equal(nj_gemm_run(d->s, &good, p, p, p), NJ_E_ARG);
    assert_int_equal(nj_gemm_run_scaled(d->s, &good, p, p, scale + 1, p, scale), NJ_E_ARG);
    g = good;
    g.ab_dtype = NJ_F32;
    assert_int_equal(nj_gemm_prepare(d->ctx, &g), 0);
    assert_int_equal(nj_gemm_run_scaled(d->s, &g, p, p, scale, p, scale), NJ_E_ARG);
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
        cmocka_unit_test(test_rounding_is_to_nearest_even),
        cmocka_unit_test(test_each_row_has_its_scale),
        cmocka_unit_test(test_unusual_rows),
        cmocka_unit_test(test_largest_scale_is_kept),
        cmocka_unit_test(test_norm_without_a_sum),
        cmocka_unit_test(test_columns_have_one_scale),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_products_of_one_scale),
        cmocka_unit_test(test_products_of_e5m2),
        cmocka_unit_test(test_all_e5m2_numbers),
        cmocka_unit_test(test_a_graph_keeps_its_scales),
        cmocka_unit_test(test_a_broken_row_is_seen),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return RUN_ON_DEVICES(tests);
}
