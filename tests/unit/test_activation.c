/* SPDX-License-Identifier: Apache-2.0
 *
 * test_activation.c: the references of gated activations against their formulas and difference quotients, and every
 * device's kernels at extreme values.
 */
#include "device_fixture.h"

#include "base/activation.h"
#include "gradients.h"
#include "nojit_ops.h"

void nj_ref_glu_fwd_f64(int ACT, double *y, const double *gu, int32_t N, int32_t I);
void nj_ref_glu_bwd_f64(int ACT, double *dgu, double *y, const double *dy, const double *gu,
                        int32_t N, int32_t I);
void nj_ref_swiglu_bwd_f64(double *dgu, double *y, const double *dy, const double *gu, int32_t N,
                           int32_t I);
void nj_ref_glu_bwd_quantize_f64(int ACT, double *dq, double *dscale, double *q, double *scale,
                                 double *dtop, double *top, const double *dy, const double *gu,
                                 int32_t N, int32_t I);
void nj_ref_glu_quantize_f64(int ACT, double *q, double *scale, const double *gu, int32_t N,
                             int32_t I);

enum { N = 5, I = 24 };

/* ---- references ---- */

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static double gelu_tanh(double x)
{
    const double pi = 3.14159265358979323846;
    return 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
}

/* Check gates from -8 to 8, with up = 1. */
static void check_formula(int act, double (*formula)(double))
{
    enum { GATES = 321 };
    double *gu = zeros(2 * GATES), *y = zeros(GATES);
    for (int i = 0; i < GATES; i++) {
        gu[i] = (i - 160) / 20.0;
        gu[GATES + i] = 1;
    }
    nj_ref_glu_fwd_f64(act, y, gu, 1, GATES);
    for (int i = 0; i < GATES; i++)
        assert_close(y[i], formula(gu[i]), 1e-15);
}

static void gelu_is_x_times_the_normal_distribution(void **state)
{
    (void)state;
    check_formula(NJ_GELU, gelu);
}

static void gelu_of_tanh_has_its_constants(void **state)
{
    (void)state;
    check_formula(NJ_GELU_TANH, gelu_tanh);
}

struct glu_args {
    int act;
    double *gu, *dy;
};

static double glu_loss(void *args)
{
    const struct glu_args *a = args;
    double *y = zeros(N * I);
    nj_ref_glu_fwd_f64(a->act, y, a->gu, N, I);
    return dot(y, a->dy, N * I);
}

static void activation_gradients_are_derivatives(void **state)
{
    (void)state;
    for (int act = NJ_GELU; act <= NJ_GELU_TANH; act++) {
        struct glu_args a = {act, random_values(N * 2 * I), random_values(N * I)};
        double *grad = copy(a.gu, N * 2 * I), *y = copy(a.dy, N * I), *want = zeros(N * I);
        nj_ref_glu_fwd_f64(act, want, a.gu, N, I);
        nj_ref_glu_bwd_f64(act, grad, y, y, grad, N, I); /* in place, which the contract allows */
        check_gradient(glu_loss, &a, a.gu, grad, N * 2 * I);
        assert_all_close(y, want, N * I, 1e-15);
    }
}

/* Check count elements of y against nj_ref_quantize_rows. */
static void check_quantized(const double *q, double scale, const double *y, int count)
{
    double top = 0;
    for (int i = 0; i < count; i++)
        top = fmax(top, fabs(y[i]));
    assert_close(scale, exp2(ceil(log2(top / 448))), 0);
    for (int i = 0; i < count; i++)
        assert_close(q[i], y[i] / scale, 1e-12);
}

static void quantized_activation_gradients_are_near(void **state)
{
    (void)state;
    for (int act = NJ_SILU; act <= NJ_GELU_TANH; act++) {
        const double *gu = random_values(N * 2 * I), *dy = random_values(N * I);
        double *dgu = zeros(N * 2 * I), *y = zeros(N * I);
        double *dq = zeros(N * 2 * I), *q = zeros(N * I), *dscale = zeros(N), *scale = zeros(N);
        if (act == NJ_SILU)
            nj_ref_swiglu_bwd_f64(dgu, y, dy, gu, N, I);
        else
            nj_ref_glu_bwd_f64(act, dgu, y, dy, gu, N, I);
        double dtop = 0, top = 0, dmost = 0, most = 0;
        nj_ref_glu_bwd_quantize_f64(act, dq, dscale, q, scale, &dtop, &top, dy, gu, N, I);
        for (int n = 0; n < N; n++) {
            check_quantized(dq + n * 2 * I, dscale[n], dgu + n * 2 * I, 2 * I);
            check_quantized(q + n * I, scale[n], y + n * I, I);
            dmost = fmax(dmost, dscale[n]);
            most = fmax(most, scale[n]);
        }
        assert_close(dtop, dmost, 0);
        assert_close(top, most, 0);
    }
}

static void quantized_rows_are_gated_by_the_activation(void **state)
{
    (void)state;
    for (int act = NJ_GELU; act <= NJ_GELU_TANH; act++) {
        const double *gu = random_values(N * 2 * I);
        double *y = zeros(N * I), *q = zeros(N * I), *scale = zeros(N);
        nj_ref_glu_fwd_f64(act, y, gu, N, I);
        nj_ref_glu_quantize_f64(act, q, scale, gu, N, I);
        for (int n = 0; n < N; n++)
            check_quantized(q + n * I, scale[n], y + n * I, I);
    }
}

/* ---- on every device ---- */

static bool same(float got, float want)
{
    return isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want);
}

/* Gates, with the values of x f(x) and of its derivative there; NaN for gates that are not finite. An infinite gate is
 * multiplied by 0, as in PyTorch. */
static const struct {
    float gate, value, slope;
} ends[] = {
    {0, 0, 0.5f},      {-0.0f, -0.0f, 0.5f},      {40, 40, 1},           {-40, -0.0f, 0},
    {1e20f, 1e20f, 1}, {-1e20f, -0.0f, 0},        {3e38f, 3e38f, 1},     {-3e38f, -0.0f, 0},
    {NAN, NAN, NAN},   {INFINITY, INFINITY, NAN}, {-INFINITY, NAN, NAN}, {8, 8, 1},
};
enum { ENDS = 16 }; /* columns: a multiple of 8 */

static void check_ends(struct device *d, int act, float *gu, float *y, float *dy)
{
    float host[4 * ENDS] = {0};
    const int count = sizeof ends / sizeof *ends;
    for (int i = 0; i < count; i++) {
        host[i] = ends[i].gate;
        host[ENDS + i] = host[2 * ENDS + i] = 1; /* up and dy */
    }
    assert_int_equal(nj_copy(d->s, gu, host, 2 * ENDS * sizeof *host), 0);
    assert_int_equal(nj_copy(d->s, dy, host + 2 * ENDS, ENDS * sizeof *host), 0);
    assert_int_equal(
        nj_glu_fwd(d->s, NJ_F32, act, &(struct nj_glu_fwd){.y = y, .gu = gu, .N = 1, .I = ENDS}),
        0);
    assert_int_equal(nj_copy(d->s, host + 3 * ENDS, y, ENDS * sizeof *host), 0);
    assert_int_equal(
        nj_glu_bwd(d->s, NJ_F32, act,
                   &(struct nj_glu_bwd){.dgu = gu, .y = dy, .dy = dy, .gu = gu, .N = 1, .I = ENDS}),
        0);
    assert_int_equal(nj_copy(d->s, host, gu, 2 * ENDS * sizeof *host), 0);
    assert_int_equal(nj_copy(d->s, host + 2 * ENDS, dy, ENDS * sizeof *host), 0);
    assert_int_equal(nj_stream_sync(d->s), 0);
    for (int i = 0; i < count; i++) {
        const float *got = host + i;
        if (!same(got[3 * ENDS], ends[i].value) || !same(got[2 * ENDS], ends[i].value) ||
            !same(got[ENDS], ends[i].value) ||
            !(isnan(ends[i].slope) ? isnan(*got) : fabsf(*got - ends[i].slope) < 1e-6f))
            fail_msg("activation %d at %g: forward %g, backward %g, gradients %g and %g", act,
                     (double)ends[i].gate, (double)got[3 * ENDS], (double)got[2 * ENDS],
                     (double)*got, (double)got[ENDS]);
    }
}

static void activations_survive_extremes(void **state)
{
    struct device *d = need(state);
    void *at[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(nj_alloc(d->ctx, NJ_MEM_DEVICE, 2 * ENDS * sizeof(float), &at[i]), 0);
    for (int act = NJ_GELU; act <= NJ_GELU_TANH; act++)
        check_ends(d, act, at[0], at[1], at[2]);
    for (int i = 0; i < 3; i++)
        nj_free(d->ctx, NJ_MEM_DEVICE, at[i]);
}

int main(void)
{
    const struct CMUnitTest references[] = {
        cmocka_unit_test_setup(gelu_is_x_times_the_normal_distribution, reset),
        cmocka_unit_test_setup(gelu_of_tanh_has_its_constants, reset),
        cmocka_unit_test_setup(activation_gradients_are_derivatives, reset),
        cmocka_unit_test_setup(quantized_activation_gradients_are_near, reset),
        cmocka_unit_test_setup(quantized_rows_are_gated_by_the_activation, reset),
    };
    const struct CMUnitTest devices[] = {
        cmocka_unit_test(activations_survive_extremes),
    };
    return cmocka_run_group_tests_name("references", references, NULL, NULL) +
           RUN_ON_DEVICES(devices);
}
