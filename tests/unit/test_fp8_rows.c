/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fp8_rows.c: rows as E4M3, and their transposition, on the CPU and on a GPU if there is one.
 */
#include "fp8_fixture.h"

/* Return the nearest E4M3 number; of two equally near ones, the one whose last bit is 0. */
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

/* Quantize rows. `top` is read and written, or NULL. */
static void quantize_below(struct device *d, float *x, int rows, int columns, uint8_t *q,
                           float *scale, float *top)
{
    const size_t count = (size_t)rows * (size_t)columns;
    void *dx = send(d, dtype_of(d), x, count), *dq = on_device(d, count);
    void *ds = on_device(d, (size_t)rows * sizeof *scale);
    void *dtop = top ? send(d, NJ_F32, top, 1) : NULL;
    if (nj_quantize_rows(
            d->s, dtype_of(d),
            &(struct nj_quantize_rows){
                .q = dq, .scale = ds, .top = dtop, .x = dx, .N = rows, .C = columns}) != 0)
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

/* The largest element is 448, so the scale is 1 and the numbers themselves are rounded. */
static void rounding_to_f8_is_to_nearest_even(void **state)
{
    enum { ROWS = 4, COLUMNS = 512 };
    struct device *d = need(state);
    static float x[ROWS * COLUMNS];
    static uint8_t q[ROWS * COLUMNS];
    float scale[ROWS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        /* Each E4M3 number, then three numbers between it and the next: the middle, and its two neighbours. */
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

static void each_f8_row_has_its_scale(void **state)
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
            /* The bound is half a unit of E4M3, 2^-4 of a normal number and 2^-10 below, after an inverse and a
             * multiplication in float32. */
            const double want = (double)x[r * COLUMNS + c] / (double)scale[r];
            const double bound = fmax(0x1p-4 * fabs(want), 0x1p-10) * (1 + 0x1p-20);
            if (!(fabs(decode(q[r * COLUMNS + c]) - want) <= bound))
                fail_msg("row %d: %.9g became %.9g", r, want, decode(q[r * COLUMNS + c]));
        }
    }
}

/* Rows of zeros, of the smallest and largest numbers, and rows with NaN or infinity. */
static void unusual_f8_rows_have_a_scale(void **state)
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
        /* A row below 2^-100 may become zeros, but nothing else. */
        const double back = decode(q[TINY * COLUMNS + c]) * (double)scale[TINY];
        assert_true(back == 0 || fabs(back - (double)tiny) <= 0x1p-20 * (double)tiny);
        /* A power of two, whose scale is one, too, is stored as the largest one that is not above 448. */
        assert_true(decode(q[SMALL * COLUMNS + c]) == 256);
        assert_true(decode(q[HUGE_ONE * COLUMNS + c]) == (c % 2 ? -256 : 256));
    }
    assert_true(isnan(scale[NOT_A_NUMBER]));
    assert_false(isfinite(scale[INFINITE]));
    assert_true(isnan(decode(q[INFINITE * COLUMNS + 50])));
}

/* Rows have scales from 2^-5 to 2^4 in turn; one may be broken; there is an earlier scale. */
static void the_largest_f8_scale_is_kept(void **state)
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

/* ---- normed rows ---- */

enum { NORMED_ROWS = 3, NORMED_COLUMNS = 64, NORMED = NORMED_ROWS * NORMED_COLUMNS };
static const float OFFSET = 0.75f;

struct normed {
    uint8_t q[NORMED];
    float scale[NORMED_ROWS], rstd[NORMED_ROWS];
};

/* Normalize and quantize rows x, plus zeros if `add` is set. */
static struct normed norm_to_f8(struct device *d, bool add, float *x, float *gain)
{
    const enum nj_dtype T = dtype_of(d);
    static float none[NORMED];
    struct normed got;
    void *dx = send(d, T, x, NORMED), *dn = send(d, T, none, NORMED);
    void *w = send(d, T, gain, NORMED_COLUMNS), *dq = on_device(d, NORMED);
    void *ds = on_device(d, sizeof got.scale), *dr = on_device(d, sizeof got.rstd);
    const int rc =
        add ? nj_add_rmsnorm_quantize(d->s, T,
                                      &(struct nj_add_rmsnorm_quantize){.q = dq,
                                                                        .scale = ds,
                                                                        .s = dx,
                                                                        .rstd = dr,
                                                                        .x = dx,
                                                                        .b = dn,
                                                                        .w = w,
                                                                        .N = NORMED_ROWS,
                                                                        .C = NORMED_COLUMNS,
                                                                        .eps = 1e-6f,
                                                                        .offset = OFFSET})
            : nj_rmsnorm_quantize(d->s, T,
                                  &(struct nj_rmsnorm_quantize){.q = dq,
                                                                .scale = ds,
                                                                .rstd = dr,
                                                                .x = dx,
                                                                .w = w,
                                                                .N = NORMED_ROWS,
                                                                .C = NORMED_COLUMNS,
                                                                .eps = 1e-6f,
                                                                .offset = OFFSET});
    if (rc != 0)
        fail_msg("%s", nj_context_error(d->ctx));
    receive(d, got.q, dq, sizeof got.q);
    receive(d, got.scale, ds, sizeof got.scale);
    receive(d, got.rstd, dr, sizeof got.rstd);
    nj_free(d->ctx, NJ_MEM_DEVICE, dx);
    nj_free(d->ctx, NJ_MEM_DEVICE, dn);
    nj_free(d->ctx, NJ_MEM_DEVICE, w);
    return got;
}

/* The rows are compared with the same rows plus zeros. */
static void a_norm_to_f8_rows_needs_no_sum(void **state)
{
    struct device *d = need(state);
    static float x[NORMED], gain[NORMED_COLUMNS];
    for (int i = 0; i < NORMED; i++) /* so small that eps matters */
        x[i] = (float)sin(i * 1.7) * 0x1p-10f;
    for (int c = 0; c < NORMED_COLUMNS; c++)
        gain[c] = (float)(1 + c % 3);
    const struct normed alone = norm_to_f8(d, false, x, gain), sum = norm_to_f8(d, true, x, gain);
    assert_memory_equal(alone.q, sum.q, sizeof sum.q);
    assert_memory_equal(alone.scale, sum.scale, sizeof sum.scale);
    assert_memory_equal(alone.rstd, sum.rstd, sizeof sum.rstd);
}

/* The mean of squares is 1, so that rows are their own norm. */
static void a_norm_to_f8_rows_adds_the_offset_to_the_gain(void **state)
{
    struct device *d = need(state);
    static float x[NORMED], gain[NORMED_COLUMNS];
    for (int i = 0; i < NORMED; i++)
        x[i] = i % 5 < 2 ? -1 : 1;
    for (int c = 0; c < NORMED_COLUMNS; c++)
        gain[c] = (float)(c % 7 - 3) / 4;
    for (int add = 0; add < 2; add++) {
        const struct normed got = norm_to_f8(d, add, x, gain);
        for (int i = 0; i < NORMED; i++) {
            /* Half a unit of E4M3 is 2^-4 of a number. */
            const double want = (double)(x[i] * (gain[i % NORMED_COLUMNS] + OFFSET));
            const double value = decode(got.q[i]) * (double)got.scale[i / NORMED_COLUMNS];
            if (!(fabs(value - want) <= 0x1p-4 * fabs(want) * (1 + 0x1p-10)))
                fail_msg("element %d is %.9g instead of %.9g", i, value, want);
        }
    }
}

/* ---- transposition ---- */

/* Transpose rows of numbers; q is [columns, rows]. */
static void columns_of(struct device *d, const uint8_t *rows_q, const float *rows_scale, int rows,
                       int columns, uint8_t *q, float *scale)
{
    const size_t count = (size_t)rows * (size_t)columns, n = (size_t)rows * sizeof *scale;
    void *dq = on_device(d, count), *dscale = on_device(d, n), *top = on_device(d, sizeof *scale);
    void *out = on_device(d, count), *out_scale = on_device(d, (size_t)columns * sizeof *scale);
    assert_int_equal(nj_copy(d->s, dq, rows_q, count), 0);
    assert_int_equal(nj_copy(d->s, dscale, rows_scale, n), 0);
    if (nj_e4m3_top(d->s, NJ_F32, &(struct nj_e4m3_top){.top = top, .scale = dscale, .R = rows}) !=
            0 ||
        nj_e4m3_transpose(d->s, NJ_F32,
                          &(struct nj_e4m3_transpose){.q = out,
                                                      .q_scale = out_scale,
                                                      .x = dq,
                                                      .scale = dscale,
                                                      .top = top,
                                                      .R = rows,
                                                      .C = columns}) != 0)
        fail_msg("%s", nj_context_error(d->ctx));
    receive(d, q, out, count);
    receive(d, scale, out_scale, (size_t)columns * sizeof *scale);
    nj_free(d->ctx, NJ_MEM_DEVICE, dq);
    nj_free(d->ctx, NJ_MEM_DEVICE, dscale);
    nj_free(d->ctx, NJ_MEM_DEVICE, top);
}

static void columns_of_f8_rows_have_one_scale(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_to_f8_is_to_nearest_even),
        cmocka_unit_test(each_f8_row_has_its_scale),
        cmocka_unit_test(unusual_f8_rows_have_a_scale),
        cmocka_unit_test(the_largest_f8_scale_is_kept),
        cmocka_unit_test(a_norm_to_f8_rows_needs_no_sum),
        cmocka_unit_test(a_norm_to_f8_rows_adds_the_offset_to_the_gain),
        cmocka_unit_test(columns_of_f8_rows_have_one_scale),
    };
    return RUN_ON_DEVICES(tests);
}
