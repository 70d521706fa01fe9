/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gemv.c: the references of the fused ops of decoding, the oracles of their kernels, equal the ops that they fuse.
 */
#include "gradients.h"

void nj_ref_rmsnorm_fwd_f64(double *y, double *rstd, const double *x, const double *w, int32_t N,
                            int32_t C, float eps, float offset);
void nj_ref_swiglu_fwd_f64(double *y, const double *gu, int32_t N, int32_t I);
void nj_ref_gemv_norm_f64(int M, double *y, const double *x, const double *g, const double *w,
                          const double *b, int32_t N, int32_t C, int32_t ld, float eps,
                          float offset);
void nj_ref_gemv_add_f64(int M, double *s, const double *x, const double *w, int32_t N, int32_t K,
                         float scale);
void nj_ref_gemv_norm_swiglu_f64(int M, double *a, const double *x, const double *g,
                                 const double *w, int32_t I, int32_t C, float eps, float offset);

enum { N = 11, C = 24, LD = 14, I = 7 };
static const float EPS = 0.3f, OFFSET = 0.75f, SCALE = 0.25f;
static const double UNTOUCHED = 12345;

/* Return x w^T. */
static double *product(const double *x, const double *w, int M, int rows, int columns)
{
    double *y = zeros((size_t)(M * rows));
    for (int m = 0; m < M; m++)
        for (int n = 0; n < rows; n++)
            y[m * rows + n] = dot(x + m * columns, w + n * columns, (size_t)columns);
    return y;
}

/* Return rows of different sizes, so that a norm matters. */
static double *rows_of_sizes(int M)
{
    double *x = random_values((size_t)(M * C));
    for (int i = 0; i < M * C; i++)
        x[i] *= 1 + i / C;
    return x;
}

static double *normed(const double *x, const double *g, int M)
{
    double *h = zeros((size_t)(M * C)), *rstd = zeros((size_t)M);
    nj_ref_rmsnorm_fwd_f64(h, rstd, x, g, M, C, EPS, OFFSET);
    return h;
}

static void gemv_norm_is_rmsnorm_then_product(void **state)
{
    (void)state;
    for (int M = 1; M <= 16; M *= 2) {
        const double *x = rows_of_sizes(M), *g = random_values(C), *w = random_values(N * C);
        const double *b = random_values(N), *want = product(normed(x, g, M), w, M, N, C);
        double *with = zeros((size_t)(M * LD)), *without = zeros((size_t)(M * LD));
        nj_ref_gemv_norm_f64(M, with, x, g, w, b, N, C, LD, EPS, OFFSET);
        nj_ref_gemv_norm_f64(M, without, x, g, w, NULL, N, C, LD, EPS, OFFSET);
        for (int m = 0; m < M; m++) {
            assert_all_close(without + m * LD, want + m * N, N, 1e-13);
            for (int n = 0; n < N; n++)
                assert_close(with[m * LD + n], want[m * N + n] + b[n], 1e-13);
        }
    }
}

static void gemv_norm_leaves_columns_behind_the_last(void **state)
{
    (void)state;
    enum { M = 4 };
    const double *x = random_values(M * C), *g = random_values(C), *w = random_values(LD * C);
    double y[M * LD];
    for (int i = 0; i < M * LD; i++)
        y[i] = UNTOUCHED;
    nj_ref_gemv_norm_f64(M, y, x, g, w, NULL, N, C, LD, EPS, OFFSET);
    for (int i = 0; i < M * LD; i++)
        assert_int_equal(y[i] == UNTOUCHED, i % LD >= N);
}

static void gemv_add_adds_the_product(void **state)
{
    (void)state;
    for (int M = 1; M <= 16; M *= 2) {
        const double *x = random_values((size_t)(M * C)), *w = random_values(N * C);
        const double *before = random_values((size_t)(M * N)), *want = product(x, w, M, N, C);
        double *s = copy(before, (size_t)(M * N));
        nj_ref_gemv_add_f64(M, s, x, w, N, C, SCALE);
        for (int i = 0; i < M * N; i++)
            assert_close(s[i], before[i] + (double)SCALE * want[i], 1e-13);
    }
}

static void gemv_norm_swiglu_is_its_three_parts(void **state)
{
    (void)state;
    for (int M = 1; M <= 16; M *= 2) {
        const double *x = rows_of_sizes(M), *g = random_values(C), *w = random_values(2 * I * C);
        double *want = zeros((size_t)(M * I)), *a = zeros((size_t)(M * I));
        nj_ref_swiglu_fwd_f64(want, product(normed(x, g, M), w, M, 2 * I, C), M, I);
        nj_ref_gemv_norm_swiglu_f64(M, a, x, g, w, I, C, EPS, OFFSET);
        assert_all_close(a, want, (size_t)(M * I), 1e-13);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gemv_norm_is_rmsnorm_then_product, reset),
        cmocka_unit_test_setup(gemv_norm_leaves_columns_behind_the_last, reset),
        cmocka_unit_test_setup(gemv_add_adds_the_product, reset),
        cmocka_unit_test_setup(gemv_norm_swiglu_is_its_three_parts, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
