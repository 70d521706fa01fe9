/* SPDX-License-Identifier: Apache-2.0
 *
 * test_glu.c: the references of gated activations: the gradient of SwiGLU, and the GEMM that ends with an activation.
 */
#include "base/activation.h"
#include "gradients.h"

void nj_ref_swiglu_fwd_f64(double *y, const double *gu, int32_t N, int32_t I);
void nj_ref_glu_fwd_f64(int ACT, double *y, const double *gu, int32_t N, int32_t I);
void nj_ref_gemm_glu_f64(int ACT, double *act, double *gu, const double *x, const double *w,
                         int32_t N, int32_t I, int32_t C, int32_t P);
void nj_ref_swiglu_bwd_f64(double *dgu, double *y, const double *dy, const double *gu, int32_t N,
                           int32_t I);

enum { N = 5, C = 8 };

struct glu_args {
    double *x, *dy;
};

static double swiglu_loss(void *args)
{
    const struct glu_args *a = args;
    double *y = zeros(N * C);
    nj_ref_swiglu_fwd_f64(y, a->x, N, C);
    return dot(y, a->dy, N * C);
}

static void swiglu_gradient_is_the_derivative(void **state)
{
    (void)state;
    struct glu_args a = {.x = random_values(N * 2 * C), .dy = random_values(N * C)};
    double *grad = copy(a.x, N * 2 * C), *y = copy(a.dy, N * C), *want = zeros(N * C);
    nj_ref_swiglu_fwd_f64(want, a.x, N, C);
    nj_ref_swiglu_bwd_f64(grad, y, y, grad, N, C); /* in place, which the contract allows */
    check_gradient(swiglu_loss, &a, a.x, grad, N * 2 * C);
    assert_all_close(y, want, N * C, 1e-15);
}

static void gemm_glu_is_product_then_glu(void **state)
{
    (void)state;
    enum { I = 7 };
    const double *x = random_values(N * C), *w = random_values(2 * I * C);
    double *gu = zeros(N * 2 * I), *act = zeros(N * I), *alone = zeros(N * I);
    double *product = zeros(N * 2 * I), *want = zeros(N * I);
    for (int n = 0; n < N; n++)
        for (int j = 0; j < 2 * I; j++)
            product[n * 2 * I + j] = dot(x + n * C, w + j * C, C);
    for (int gelu = 0; gelu < 2; gelu++) {
        const int ACT = gelu ? NJ_GELU_TANH : NJ_SILU;
        if (gelu)
            nj_ref_glu_fwd_f64(ACT, want, product, N, I);
        else
            nj_ref_swiglu_fwd_f64(want, product, N, I);
        nj_ref_gemm_glu_f64(ACT, act, gu, x, w, N, I, C, 2);
        nj_ref_gemm_glu_f64(ACT, alone, NULL, x, w, N, I, C, 2);
        assert_all_close(gu, product, N * 2 * I, 1e-14);
        assert_all_close(act, want, N * I, 1e-14);
        assert_memory_equal(alone, act, N * I * sizeof(*act));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(swiglu_gradient_is_the_derivative, reset),
        cmocka_unit_test_setup(gemm_glu_is_product_then_glu, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
