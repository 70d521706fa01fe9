/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gated_norm.c: the double references of the gated norm: they equal their formula, and all gradients are
 * derivatives.
 */
#include "gradients.h"

void nj_ref_gated_norm_fwd_f64(int D, double *y, const double *o, const double *z, const double *w,
                               int32_t N, int32_t H, int32_t ld, float eps);
void nj_ref_gated_norm_bwd_f64(int D, double *dout, double *dz, double *dw_part, double *y,
                               const double *dy, const double *o, const double *z, const double *w,
                               int32_t N, int32_t H, int32_t ld, int32_t P, float eps);
void nj_ref_colsum_f64(double *dst, const double *part, int32_t P, int32_t C);

enum { N = 3, H = 2, D = 64, C = H * D, LD = C + 16 };
static const float EPS = 0.25f;

struct norm_args {
    double *o, *z, *w, *dy;
};

static struct norm_args inputs(void)
{
    return (struct norm_args){random_values(N * C), random_values(N * LD), random_values(D),
                              random_values(N * C)};
}

static void gated_norm_equals_the_formula(void **state)
{
    (void)state;
    const struct norm_args a = inputs();
    double *y = zeros(N * C), *in_place = copy(a.o, N * C);
    nj_ref_gated_norm_fwd_f64(D, y, a.o, a.z, a.w, N, H, LD, EPS);
    nj_ref_gated_norm_fwd_f64(D, in_place, in_place, a.z, a.w, N, H, LD, EPS);
    for (int i = 0; i < N * H; i++) {
        const double *o = a.o + (size_t)i * D, *z = a.z + i / H * LD + i % H * D;
        const double root = sqrt(dot(o, o, D) / D + 0.25);
        for (int d = 0; d < D; d++)
            assert_close(y[i * D + d], o[d] / root * a.w[d] * z[d] * (1 + tanh(z[d] / 2)) / 2,
                         1e-14);
    }
    assert_memory_equal(in_place, y, N * C * sizeof *y);
}

static double norm_loss(void *args)
{
    const struct norm_args *a = args;
    double *y = zeros(N * C);
    nj_ref_gated_norm_fwd_f64(D, y, a->o, a->z, a->w, N, H, LD, EPS);
    return dot(y, a->dy, N * C);
}

/* The gradient may lie in that of the output, and the output, if it is wanted, in its input. */
static void gated_norm_gradient_is_the_derivative(void **state)
{
    (void)state;
    struct norm_args a = inputs();
    for (int P = 1; P < 9; P += 3) {
        double *dz = zeros(N * LD), *part = random_values((size_t)(P * D)), *dw = zeros(D);
        double *grad = copy(a.dy, N * C), *y = copy(a.o, N * C), *want = zeros(N * C);
        double *alone = zeros(N * C);
        nj_ref_gated_norm_fwd_f64(D, want, a.o, a.z, a.w, N, H, LD, EPS);
        nj_ref_gated_norm_bwd_f64(D, alone, dz, part, NULL, a.dy, a.o, a.z, a.w, N, H, LD, P, EPS);
        nj_ref_gated_norm_bwd_f64(D, grad, dz, part, y, grad, y, a.z, a.w, N, H, LD, P, EPS);
        nj_ref_colsum_f64(dw, part, P, D);
        check_gradient(norm_loss, &a, a.o, grad, N * C);
        check_gradient(norm_loss, &a, a.z, dz, N * LD);
        check_gradient(norm_loss, &a, a.w, dw, D);
        assert_all_close(y, want, N * C, 1e-14);
        assert_memory_equal(alone, grad, N * C * sizeof *grad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gated_norm_equals_the_formula, reset),
        cmocka_unit_test_setup(gated_norm_gradient_is_the_derivative, reset),
    };
    return cmocka_run_group_tests_name("gated norm", tests, NULL, NULL);
}
