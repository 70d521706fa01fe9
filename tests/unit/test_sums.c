/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sums.c: the references of ops that copy or add: in double against their definitions (sizes are odd, and outputs
 * start with values that must be kept or overwritten), in float with identical bits for any number of threads.
 */
#include <omp.h>

#include "gradients.h"

void nj_ref_accumulate_f64(double *dst, const double *src, int64_t n);
void nj_ref_add_f64(double *y, const double *a, const double *b, int64_t n);
void nj_ref_cast_to_f32_f64(double *dst, const double *src, int64_t n);
void nj_ref_cast_to_lp_f64(double *dst, const double *src, int64_t n);
void nj_ref_rope_bwd_f64(double *dqkv, double *dbias_part, const double *inv_freq,
                         const int32_t *pos, int32_t N, int32_t H, int32_t K, int32_t D, int32_t P,
                         float amplitude);
void nj_ref_colsum_f64(double *dst, const double *part, int32_t P, int32_t C);
void nj_ref_grad_sumsq_f64(double *part, const double *g, int64_t n, int32_t P);
void nj_ref_loss_reduce_f64(double *sums, const double *kd, const double *ce, const double *entropy,
                            const double *agree, int32_t M);
void nj_ref_rope_bwd_f32(float *dqkv, float *dbias_part, const float *inv_freq, const int32_t *pos,
                         int32_t N, int32_t H, int32_t K, int32_t D, int32_t P, float amplitude);
void nj_ref_colsum_f32(float *dst, const float *part, int32_t P, int32_t C);
void nj_ref_grad_sumsq_f32(float *part, const float *g, int64_t n, int32_t P);
void nj_ref_loss_reduce_f32(float *sums, const float *kd, const float *ce, const float *entropy,
                            const float *agree, int32_t M);
void nj_ref_rmsnorm_bwd_f32(float *dx, float *dw_part, const float *dy, const float *x,
                            const float *w, const float *rstd, const float *dres, int32_t N,
                            int32_t C, int32_t P, float offset);

void nj_ref_swiglu_fwd_f32(float *y, const float *gu, int32_t N, int32_t I);

enum { N = 131 };

static void elements_are_added(void **state)
{
    (void)state;
    double *a = random_values(N), *b = random_values(N), *y = random_values(N), *sum = copy(a, N);
    nj_ref_add_f64(y, a, b, N);
    nj_ref_accumulate_f64(sum, b, N);
    for (int i = 0; i < N; i++) {
        assert_true(y[i] == a[i] + b[i]);
        assert_true(sum[i] == a[i] + b[i]);
    }
}

static void casts_keep_the_values(void **state)
{
    (void)state;
    double *x = random_values(N), *y = random_values(N), *z = random_values(N);
    nj_ref_cast_to_f32_f64(y, x, N);
    nj_ref_cast_to_lp_f64(z, x, N);
    assert_memory_equal(y, x, N * sizeof *x);
    assert_memory_equal(z, x, N * sizeof *x);
}

static void losses_are_added_to_the_sums(void **state)
{
    (void)state;
    double *rows[4], sums[4] = {1, 2, 3, 4};
    for (int k = 0; k < 4; k++)
        rows[k] = random_values(N);
    nj_ref_loss_reduce_f64(sums, rows[0], rows[1], rows[2], rows[3], N);
    for (int k = 0; k < 4; k++) {
        double want = k + 1;
        for (int i = 0; i < N; i++)
            want += rows[k][i];
        assert_close(sums[k], want, 1e-14);
    }
}

/* Rows are added to partial sums, and these to the columns of dst: in total each column is added once. */
static void columns_are_added_once(void **state)
{
    (void)state;
    enum { ROWS = 11, H = 3, K = 1, D = 14, C = (H + 2 * K) * D, P = 4 };
    static const int32_t unturned[ROWS];
    double *dy = random_values(ROWS * C), *part = random_values(P * C), *dst = random_values(C);
    double *before = copy(dst, C);
    nj_ref_rope_bwd_f64(dy, part, random_values(D / 2), unturned, ROWS, H, K, D, P, 1);
    nj_ref_colsum_f64(dst, part, P, C);
    for (int c = 0; c < C; c++) {
        double want = before[c];
        for (int n = 0; n < ROWS; n++)
            want += dy[n * C + c];
        assert_close(dst[c], want, 1e-14);
    }
}

/* Also if the parts do not divide the elements, and if there are more parts than elements. */
static void every_square_is_in_one_part(void **state)
{
    (void)state;
    double *g = random_values(N), *part = random_values(2 * N);
    const double want = dot(g, g, N);
    static const int32_t parts[] = {1, 7, N, 2 * N};
    for (int k = 0; k < 4; k++) {
        double sum = 0;
        nj_ref_grad_sumsq_f64(part, g, N, parts[k]);
        for (int p = 0; p < parts[k]; p++)
            sum += part[p];
        assert_close(sum, want, 1e-14);
    }
}

/* Sums of all ops in out[COUNT], over values whose order matters in float32. */
enum { LONG = 4096, WIDE = 64, PARTS = 8, COUNT = 4 + PARTS + 3 * PARTS * WIDE };
enum { QUERIES = 2, KEYS = 1, HEAD = WIDE / (QUERIES + 2 * KEYS) };

static void float_sums(const float *x, float *out)
{
    static float dx[LONG];
    static const int32_t pos[LONG / WIDE] = {0, 7, 1000};
    float *part = out + 4, *bias = part + PARTS, *gain = bias + PARTS * WIDE;
    memset(out, 0, COUNT * sizeof *out);
    nj_ref_loss_reduce_f32(out, x, x + 1, x + 2, x + 3, LONG - 3);
    nj_ref_grad_sumsq_f32(part, x, LONG, PARTS);
    memcpy(dx, x, sizeof dx);
    nj_ref_rope_bwd_f32(dx, bias, x, pos, LONG / WIDE, QUERIES, KEYS, HEAD, PARTS, 1);
    nj_ref_rmsnorm_bwd_f32(dx, gain, x, x, x, x, NULL, LONG / WIDE, WIDE, PARTS, 0);
    nj_ref_colsum_f32(gain + PARTS * WIDE, x, LONG / WIDE, WIDE);
}

static void sums_do_not_depend_on_the_threads(void **state)
{
    (void)state;
    static float x[LONG], want[COUNT], got[COUNT];
    for (int i = 0; i < LONG; i++)
        x[i] = (float)(uniform() - 0.5);
    omp_set_num_threads(1);
    float_sums(x, want);
    for (int threads = 2; threads <= 5; threads++) {
        omp_set_num_threads(threads);
        float_sums(x, got);
        assert_memory_equal(got, want, sizeof got);
    }
}

/* gate, up and the result; sanitizers see that NaN is not converted to an integer. */
static void gates_keep_what_is_not_finite(void **state)
{
    (void)state;
    const float gates[] = {NAN, -NAN, INFINITY, -INFINITY, 200, -200, 0};
    enum { I = sizeof gates / sizeof *gates };
    float gu[2 * I], y[I];
    for (int i = 0; i < I; i++) {
        gu[i] = gates[i];
        gu[I + i] = 2;
    }
    nj_ref_swiglu_fwd_f32(y, gu, 1, I);
    for (int i = 0; i < 2; i++)
        assert_true(isnan(y[i]));
    assert_true(y[2] == INFINITY && y[4] == 400 && y[6] == 0);
    assert_true(fabsf(y[5]) < 1e-30f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(elements_are_added, reset),
        cmocka_unit_test_setup(casts_keep_the_values, reset),
        cmocka_unit_test_setup(losses_are_added_to_the_sums, reset),
        cmocka_unit_test_setup(columns_are_added_once, reset),
        cmocka_unit_test_setup(every_square_is_in_one_part, reset),
        cmocka_unit_test_setup(sums_do_not_depend_on_the_threads, reset),
        cmocka_unit_test_setup(gates_keep_what_is_not_finite, reset),
    };
    return cmocka_run_group_tests_name("sums", tests, NULL, NULL);
}
