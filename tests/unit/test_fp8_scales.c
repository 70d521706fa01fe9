/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fp8_scales.c: E4M3 rows for GPUs whose GEMMs take no scale per row: with one scale for all rows, and with scales
 * of blocks; and GEMMs that report which of these they take. The value of an E4M3 byte and the place of a block's scale
 * are computed here independently.
 */
#include "device_fixture.h"
#include "nojit_ops.h"

#include <math.h>

static enum nj_f8_scales scales_of(const struct device *d)
{
    return nj_context_device(d->ctx)->f8;
}

static void *to_device(struct device *d, const void *from, size_t bytes)
{
    void *p;
    assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, bytes, &p), 0);
    if (from)
        assert_int_equal(nj_copy(d->s, p, from, bytes), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    return p;
}

static void from_device(struct device *d, void *to, void *p, size_t bytes)
{
    assert_int_equal(nj_copy(d->s, to, p, bytes), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    nj_free(d->ctx, NJ_MEM_DEVICE, p);
}

static double decode(uint8_t bits)
{
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const double size = exponent ? (8 + fraction) * pow(2, exponent - 10) : fraction * pow(2, -9);
    return bits & 128 ? -size : size;
}

/* Rows have scales from 2^-5 to 1; the last ones have the common scale already. */
static void rows_have_one_f8_scale(void **state)
{
    enum { ROWS = 40, COLUMNS = 272, LAST = 30 };
    struct device *d = need(state);
    static uint8_t before[ROWS * COLUMNS], after[ROWS * COLUMNS];
    float scale[ROWS], now[ROWS], top;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        before[i] = (uint8_t)((i * 37 + i / COLUMNS) % 255 % 127 | (i % 3 ? 128 : 0));
    for (int r = 0; r < ROWS; r++)
        scale[r] = r < LAST ? powf(2, (float)(r / 6 - 5)) : 1;
    void *q = to_device(d, before, sizeof before), *s = to_device(d, scale, sizeof scale);
    void *t = to_device(d, NULL, sizeof top);
    for (int turn = 0; turn < 2; turn++) /* the second turn changes nothing */
        if (nj_e4m3_top(d->s, NJ_F32, &(struct nj_e4m3_top){.top = t, .scale = s, .R = ROWS}) !=
                0 ||
            nj_e4m3_rescale(d->s, NJ_F32,
                            &(struct nj_e4m3_rescale){
                                .q = q, .scale = s, .top = t, .R = ROWS, .C = COLUMNS}) != 0)
            fail_msg("%s", nj_context_error(d->ctx));
    from_device(d, after, q, sizeof after);
    from_device(d, now, s, sizeof now);
    from_device(d, &top, t, sizeof top);
    assert_true(top == 1);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const double want = decode(before[i]) * (double)scale[i / COLUMNS], got = decode(after[i]);
        assert_true(now[i / COLUMNS] == 1);
        if (fabs(got - want) > (fabs(want) < 0x1p-6 ? 0x1p-10 : 0))
            fail_msg("row %d: %.9g became %.9g", i / COLUMNS, want, got);
    }
}

/* If a scale is NaN or infinite, all rows stay unchanged, so that the fault stays in its row. */
static void a_broken_f8_row_stays_alone(void **state)
{
    struct device *d = need(state);
    uint8_t before[2 * 16], after[2 * 16];
    const float scale[] = {0.5f, NAN};
    float now[2];
    memset(before, 0x38, sizeof before);
    void *q = to_device(d, before, sizeof before), *s = to_device(d, scale, sizeof scale);
    void *t = to_device(d, NULL, sizeof *now);
    assert_int_equal(nj_e4m3_top(d->s, NJ_F32, &(struct nj_e4m3_top){.top = t, .scale = s, .R = 2}),
                     0);
    assert_int_equal(
        nj_e4m3_rescale(d->s, NJ_F32,
                        &(struct nj_e4m3_rescale){.q = q, .scale = s, .top = t, .R = 2, .C = 16}),
        0);
    from_device(d, after, q, sizeof after);
    from_device(d, now, s, sizeof now);
    nj_free(d->ctx, NJ_MEM_DEVICE, t);
    assert_memory_equal(after, before, sizeof after);
    assert_true(now[0] == 0.5f && isnan(now[1]));
}

/* Return the place of the scale of a row and a block of 32 columns, in a matrix that is `tiles` tiles of 128 columns
 * wide. */
static size_t place_of(int row, int block, int tiles)
{
    const int tile = row / 128 * tiles + block / 4, within = row % 128;
    return (size_t)tile * 512 + (size_t)(within % 32 * 16 + within / 32 * 4 + block % 4);
}

static void blocks_have_the_f8_scale_of_their_row(void **state)
{
    enum { ROWS = 300, COLUMNS = 288, TILES = 3, BYTES = 3 * TILES * 512 };
    struct device *d = need(state);
    float scale[ROWS];
    uint8_t bytes[BYTES];
    for (int r = 0; r < ROWS; r++)
        scale[r] = powf(2, (float)(r % 200 - 100));
    scale[7] = NAN;
    scale[8] = INFINITY;
    void *s = to_device(d, scale, sizeof scale), *b = to_device(d, NULL, sizeof bytes);
    if (nj_e4m3_blocks(d->s, NJ_F32,
                       &(struct nj_e4m3_blocks){.words = b, .scale = s, .R = ROWS, .C = COLUMNS}) !=
        0)
        fail_msg("%s", nj_context_error(d->ctx));
    from_device(d, bytes, b, sizeof bytes);
    nj_free(d->ctx, NJ_MEM_DEVICE, s);
    for (int r = 0; r < 384; r++)
        for (int block = 0; block < COLUMNS / 32; block++) {
            const int got = bytes[place_of(r, block, TILES)];
            assert_int_equal(got, r == 7 || r == 8 ? 255 : r < ROWS ? 127 + r % 200 - 100 : 0);
        }
}

/* ---- GEMMs ---- */

enum { M = 144, N = 272, K = 160 };
static const struct nj_gemm shape = {
    .kind = NJ_GEMM_NT, .ab_dtype = NJ_F8, .M = M, .N = N, .K = K, .lda = K, .ldb = K, .ldc = N};

static int number_at(int row, int column)
{
    return (row * 31 + column * 17) % 5 - 2;
}

static float scale_at(int row)
{
    return powf(2, (float)(row % 9 - 4));
}

/* Make a matrix of numbers from -2 to 2, whose rows have scales; *blocks gets these as bytes of blocks. */
static void *matrix(struct device *d, int rows, void **blocks)
{
    static const uint8_t bits[] = {0x00, 0x38, 0x40};
    uint8_t *q = malloc((size_t)rows * K);
    float *scale = malloc((size_t)rows * sizeof *scale);
    assert_true(q && scale);
    for (int r = 0; r < rows; r++) {
        scale[r] = scale_at(r);
        for (int k = 0; k < K; k++) {
            const int x = number_at(r, k);
            q[r * K + k] = (uint8_t)(bits[abs(x)] | (x < 0 ? 128 : 0));
        }
    }
    void *s = to_device(d, scale, (size_t)rows * sizeof *scale);
    *blocks = to_device(d, NULL, (size_t)(rows + 127) / 128 * 2 * 512);
    assert_int_equal(
        nj_e4m3_blocks(d->s, NJ_F32,
                       &(struct nj_e4m3_blocks){.words = *blocks, .scale = s, .R = rows, .C = K}),
        0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    nj_free(d->ctx, NJ_MEM_DEVICE, s);
    void *out = to_device(d, q, (size_t)rows * K);
    free(q);
    free(scale);
    return out;
}

/* Each sum is exact, and so is its product with powers of two. Where C is kept, it is added. */
static void gemms_with_f8_scales_of_blocks_agree_with_their_references(void **state)
{
    struct device *d = need(state);
    static float c[M * N];
    void *a_scale, *b_scale;
    if (scales_of(d) != NJ_F8_BLOCKS)
        skip();
    void *a = matrix(d, M, &a_scale), *b = matrix(d, N, &b_scale);
    void *out = to_device(d, NULL, sizeof c);
    const struct nj_gemm_operands x = {
        .c = out, .a = a, .b = b, .a_scale = a_scale, .b_scale = b_scale};
    struct nj_gemm g = shape;
    for (int turn = 0; turn < 2; turn++) {
        g.beta = (float)turn;
        if (nj_gemm_prepare(d->ctx, &g) != 0 || nj_gemm_run_scaled(d->s, &g, &x) != 0)
            fail_msg("%s", nj_context_error(d->ctx));
    }
    from_device(d, c, out, sizeof c);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            int sum = 0;
            for (int k = 0; k < K; k++)
                sum += number_at(m, k) * number_at(n, k);
            assert_true(c[m * N + n] == 2 * (float)sum * scale_at(m) * scale_at(n));
        }
    void *const memory[] = {a, b, a_scale, b_scale};
    for (int i = 0; i < 4; i++)
        nj_free(d->ctx, NJ_MEM_DEVICE, memory[i]);
}

/* Scales that the device's GEMMs do not take are refused when a GEMM is prepared. */
static void other_f8_scales_are_refused(void **state)
{
    struct device *d = need(state);
    static const struct {
        int one, K;
        bool fits[4]; /* by nj_f8_scales */
    } shapes[] = {{0, 160, {false, true, true, false}},
                  {1, 160, {false, true, false, true}},
                  {0, 144, {false, true, false, false}}};
    if (strcmp(nj_context_device(d->ctx)->backend, "vulkan") == 0)
        skip();
    for (int i = 0; i < 3; i++) {
        struct nj_gemm g = shape;
        g.one_scale = shapes[i].one;
        g.K = shapes[i].K;
        assert_int_equal(nj_gemm_prepare(d->ctx, &g),
                         shapes[i].fits[scales_of(d)] ? 0 : NJ_E_UNSUPPORTED);
        if (!shapes[i].fits[scales_of(d)])
            assert_non_null(strstr(nj_context_error(d->ctx), "sm_90 only"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_one_f8_scale),
        cmocka_unit_test(a_broken_f8_row_stays_alone),
        cmocka_unit_test(blocks_have_the_f8_scale_of_their_row),
        cmocka_unit_test(gemms_with_f8_scales_of_blocks_agree_with_their_references),
        cmocka_unit_test(other_f8_scales_are_refused),
    };
    return RUN_ON_DEVICES(tests);
}
