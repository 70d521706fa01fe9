/* SPDX-License-Identifier: Apache-2.0
 *
 * test_head_e5m2.c: the gradient of logits as E5M2, on the CPU and on a GPU if there is one: rounding is unbiased,
 * depends on key, row and column only, and the result may lie in the logits. E5M2 is decoded here independently.
 */
#include "base/float16.h"
#include "base/step_state.h"
#include "device_fixture.h"
#include "e5m2_value.h"
#include "formats/safetensors.h"
#include "nojit_ops.h"

#include <math.h>

enum { ROWS = 16, V = 3001, VS = 3008 };

/* A launch of the op; rows of the gradient are G bytes apart. */
struct head {
    int rows, V, Vs;
    int32_t target, first, key[2];
    float tau, ratio, beta, inv_valid;
    const float *s, *t; /* [rows, Vs]; t NULL: there is no teacher */
    bool in_place;
    uint8_t *g; /* [rows, Vs] */
    float scale;
};

static const struct head plain = {.rows = ROWS,
                                  .V = V,
                                  .Vs = VS,
                                  .target = 7,
                                  .key = {11, -3},
                                  .tau = 2,
                                  .ratio = 0.5f,
                                  .inv_valid = 1.0f / 8192};

static enum nj_dtype dtype_of(const struct device *d)
{
    return d->is_cpu ? NJ_F32 : NJ_LP;
}

static void *on_device(struct device *d, const void *from, size_t bytes)
{
    void *p;
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, bytes, &p), 0);
    if (from) {
        assert_int_equal(nj_copy(d->s, p, from, bytes), 0);
        assert_int_equal(nj_stream_sync(d->s), 0);
    }
    return p;
}

/* Copy logits to the device in its type. */
static char *logits(struct device *d, const float *x, size_t count)
{
    uint16_t *narrow = calloc(count, sizeof *narrow);
    assert_non_null(narrow);
    for (size_t i = 0; i < count && !d->is_cpu; i++)
        narrow[i] = d->lp_is_f16 ? f16_from_f32(x[i]) : bf16_from_f32(x[i]);
    char *p = d->is_cpu ? on_device(d, x, count * sizeof *x)
                        : on_device(d, narrow, count * sizeof *narrow);
    free(narrow);
    return p;
}

static void run(struct device *d, struct head *h)
{
    const size_t e = d->is_cpu ? 4 : 2, row = (size_t)h->Vs, count = (size_t)h->rows * row;
    const size_t G = h->in_place ? e * row : row, each = (size_t)h->rows * sizeof(float);
    const float state[NJ_STEP_SLOTS] = {
        [NJ_STEP_INV_VALID] = h->inv_valid, [NJ_STEP_LOSS_SCALE] = 1};
    int32_t *target = calloc((size_t)h->rows, sizeof *target);
    char *host = malloc(h->rows * G);
    assert_true(target && host);
    for (int m = 0; m < h->rows; m++)
        target[m] = h->target;
    char *s = logits(d, h->s, count), *t = h->t ? logits(d, h->t, count) : NULL;
    char *g = h->in_place ? s + (e - 1) * row : on_device(d, NULL, count);
    float *losses[4], *scale = on_device(d, NULL, sizeof *scale);
    void *dtarget = on_device(d, target, each), *dstate = on_device(d, state, sizeof state);
    void *key = on_device(d, h->key, sizeof h->key);
    for (int i = 0; i < 4; i++)
        losses[i] = on_device(d, NULL, each);
    if (nj_kd_head_e5m2(d->s, dtype_of(d),
                        &(struct nj_kd_head_e5m2){.g = g,
                                                  .g_scale = scale,
                                                  .kd = losses[0],
                                                  .ce = losses[1],
                                                  .entropy = losses[2],
                                                  .agree = losses[3],
                                                  .s = s,
                                                  .t = t,
                                                  .target = dtarget,
                                                  .state = dstate,
                                                  .key = key,
                                                  .M = h->rows,
                                                  .V = h->V,
                                                  .Vs = h->Vs,
                                                  .Vt = h->Vs,
                                                  .G = (int32_t)G,
                                                  .first = h->first,
                                                  .tau = h->tau,
                                                  .ratio = h->ratio,
                                                  .beta = h->beta}) != 0)
        fail_msg("%s", nj_context_error(d->ctx));
    /* The bytes after the last row are not copied. */
    assert_int_equal(nj_copy(d->s, host, g, (size_t)(h->rows - 1) * G + row), 0);
    assert_int_equal(nj_copy(d->s, &h->scale, scale, sizeof h->scale), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    h->g = malloc(count);
    assert_non_null(h->g);
    for (int m = 0; m < h->rows; m++)
        memcpy(h->g + (size_t)m * row, host + (size_t)m * G, row);
    void *taken[] = {s,         t,         h->in_place ? NULL : g,
                     scale,     dtarget,   dstate,
                     key,       losses[0], losses[1],
                     losses[2], losses[3]};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        nj_free(d->ctx, NJ_MEM_DEVICE, taken[i]);
    free(target);
    free(host);
}

static float *random_logits(size_t count, unsigned seed)
{
    float *x = malloc(count * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (float)(seed >> 8) / (1 << 22) - 2;
    }
    return x;
}

/* Logits are equal: each token but the target has the same probability, 1.36 2^-12, between 1.25 and 1.5. */
static void rounding_to_e5m2_is_unbiased(void **state)
{
    struct device *d = need(state);
    float *s = calloc(ROWS * VS, sizeof *s);
    struct head h = plain;
    double sum = 0;
    h.s = s;
    run(d, &h);
    assert_true(h.scale == 0x1p-21f);
    for (int i = 0; i < ROWS * VS; i++)
        if (i % VS != h.target && i % VS < V)
            sum += decode_e5m2(h.g[i]);
    const double n = ROWS * (V - 1.0), mean = sum / n * (double)h.scale * 8192;
    /* The bound is five standard deviations of a mean of draws between neighbours a quarter of 2^-12 apart. */
    if (fabs(mean - 1.0 / V) > 5 * 0.5 * 0x1p-14 / sqrt(n))
        fail_msg("the mean is %.6g, not %.6g", mean, 1.0 / V);
    for (int m = 0; m < ROWS; m++)
        for (int v = V; v < VS; v++)
            assert_int_equal(h.g[m * VS + v], 0);
    free(h.g);
    free(s);
}

/* Return how many bytes of the first row equal those of another row, `moved` columns further. */
static double same(const uint8_t *a, const uint8_t *b, int moved)
{
    int n = 0;
    for (int v = 8; v + moved < V; v++)
        n += a[v] == b[v + moved];
    return n / (V - 8.0 - moved);
}

static void e5m2_draws_follow_row_and_column(void **state)
{
    struct device *d = need(state);
    float *s = calloc(ROWS * VS, sizeof *s);
    struct head h = plain, later = plain, other = plain;
    h.s = later.s = other.s = s;
    later.rows = later.first = ROWS / 2;
    other.key[1]++;
    run(d, &h);
    run(d, &later);
    run(d, &other);
    assert_memory_equal(h.g + ROWS / 2 * VS, later.g, ROWS / 2 * VS);
    for (int moved = 1; moved <= 32; moved++) /* half of two draws agree */
        assert_true(fabs(same(h.g, h.g, moved) - 0.5) < 0.06);
    assert_true(fabs(same(h.g, h.g + VS, 0) - 0.5) < 0.06);
    assert_true(fabs(same(h.g, other.g, 0) - 0.5) < 0.06);
    free(h.g);
    free(later.g);
    free(other.g);
    free(s);
}

static void e5m2_gradients_in_place_are_the_same(void **state)
{
    enum { WIDE = 40001, STRIDE = 40016 };
    static const float betas[] = {0, 0.5f, 1, 0};
    struct device *d = need(state);
    float *s = random_logits(ROWS * STRIDE, 1), *t = random_logits(ROWS * STRIDE, 2);
    for (int i = 0; i < 4; i++) {
        struct head h = plain;
        h.V = WIDE;
        h.Vs = STRIDE;
        h.s = s;
        h.t = i < 3 ? t : NULL;
        h.beta = betas[i];
        struct head in_place = h;
        in_place.in_place = true;
        run(d, &h);
        run(d, &in_place);
        assert_memory_equal(h.g, in_place.g, ROWS * STRIDE);
        free(h.g);
        free(in_place.g);
    }
    free(s);
    free(t);
}

/* One gradient is 1,000 times that of a difference of one, while the scale leaves room for 224; one logit is NaN. */
static void e5m2_gradients_that_are_no_numbers_are_seen(void **state)
{
    struct device *d = need(state);
    float *s = calloc(2 * VS, sizeof *s), *t = calloc(2 * VS, sizeof *t);
    struct head h = plain;
    h.rows = 2;
    h.s = s;
    h.t = t;
    h.tau = 1000;
    h.ratio = 1;
    s[1] = t[2] = 30000;
    s[VS + V - 1] = NAN;
    run(d, &h);
    assert_int_equal(h.g[1], 0x7c);
    assert_int_equal(h.g[2], 0xfc);
    for (int v = 0; v < V; v++)
        assert_true(isnan(decode_e5m2(h.g[VS + v])));
    free(h.g);
    free(s);
    free(t);
}

static void e5m2_columns_of_rows_that_lie_apart_are_transposed(void **state)
{
    enum { R = 48, C = 272, X = 560 };
    struct device *d = need(state);
    static uint8_t x[R * X], q[C * R];
    for (int i = 0; i < R * X; i++)
        x[i] = (uint8_t)((uint32_t)i * 2654435761u >> 24);
    void *dx = on_device(d, x, sizeof x), *dq = on_device(d, NULL, sizeof q);
    if (nj_e5m2_transpose(d->s, NJ_F32,
                          &(struct nj_e5m2_transpose){.q = dq, .x = dx, .R = R, .C = C, .X = X}) !=
        0)
        fail_msg("%s", nj_context_error(d->ctx));
    assert_int_equal(nj_copy(d->s, q, dq, sizeof q), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    for (int c = 0; c < C; c++)
        for (int r = 0; r < R; r++)
            assert_int_equal(q[c * R + r], x[r * X + c]);
    nj_free(d->ctx, NJ_MEM_DEVICE, dx);
    nj_free(d->ctx, NJ_MEM_DEVICE, dq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_to_e5m2_is_unbiased),
        cmocka_unit_test(e5m2_draws_follow_row_and_column),
        cmocka_unit_test(e5m2_gradients_in_place_are_the_same),
        cmocka_unit_test(e5m2_gradients_that_are_no_numbers_are_seen),
        cmocka_unit_test(e5m2_columns_of_rows_that_lie_apart_are_transposed),
    };
    return RUN_ON_DEVICES(tests);
}
