/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gates.c: the double references of output gates: they equal their formula, by element, by head and by row, and
 * all gradients are derivatives.
 */
#include "gradients.h"

void nj_ref_gate_fwd_f64(double *y, const double *o, const double *g, int32_t N, int32_t C,
                         int32_t D);
void nj_ref_row_gate_f64(double *y, const double *d, const double *x, const double *w, int32_t N,
                         int32_t I, int32_t C);
void nj_ref_gate_bwd_f64(double *dout, double *dg, double *y, const double *dy, const double *o,
                         const double *g, int32_t N, int32_t C, int32_t D);

enum { N = 5, C = 48 };
static const int sizes[] = {1, 8, 24, C}; /* channels to a gate */
enum { SIZES = sizeof sizes / sizeof *sizes };

struct gate_args {
    double *o, *g, *dy;
    int D;
};

static struct gate_args inputs(int D)
{
    return (struct gate_args){random_values(N * C), random_values((size_t)(N * C / D)),
                              random_values(N * C), D};
}

static void gates_equal_the_formula(void **state)
{
    (void)state;
    for (int k = 0; k < SIZES; k++) {
        const struct gate_args a = inputs(sizes[k]);
        double *y = zeros(N * C), *in_place = copy(a.o, N * C);
        nj_ref_gate_fwd_f64(y, a.o, a.g, N, C, a.D);
        nj_ref_gate_fwd_f64(in_place, in_place, a.g, N, C, a.D);
        for (int n = 0; n < N; n++)
            for (int c = 0; c < C; c++) {
                const double gate = a.g[n * (C / a.D) + c / a.D];
                assert_close(y[n * C + c], a.o[n * C + c] * (1 + tanh(gate / 2)) / 2, 1e-15);
            }
        assert_memory_equal(in_place, y, N * C * sizeof *y);
    }
}

static void a_row_has_one_gate(void **state)
{
    (void)state;
    enum { I = 16 };
    const double *d = random_values(N * I), *x = random_values(N * C), *w = random_values(C);
    double *y = zeros(N * I), *in_place = copy(d, N * I);
    nj_ref_row_gate_f64(y, d, x, w, N, I, C);
    nj_ref_row_gate_f64(in_place, in_place, x, w, N, I, C);
    for (int n = 0; n < N; n++) {
        const double gate = (1 + tanh(dot(x + n * C, w, C) / 2)) / 2;
        for (int i = 0; i < I; i++)
            assert_close(y[n * I + i], d[n * I + i] * gate, 1e-14);
    }
    assert_memory_equal(in_place, y, N * I * sizeof *y);
}

static double gate_loss(void *args)
{
    const struct gate_args *a = args;
    double *y = zeros(N * C);
    nj_ref_gate_fwd_f64(y, a->o, a->g, N, C, a->D);
    return dot(y, a->dy, N * C);
}

/* The gradient may lie in that of the output, and the output, if it is wanted, in its input. */
static void gate_gradient_is_the_derivative(void **state)
{
    (void)state;
    for (int k = 0; k < SIZES; k++) {
        struct gate_args a = inputs(sizes[k]);
        const size_t gates = (size_t)(N * C / a.D);
        double *dg = zeros(gates), *again = zeros(gates), *y = copy(a.o, N * C);
        double *grad = copy(a.dy, N * C), *alone = zeros(N * C), *want = zeros(N * C);
        nj_ref_gate_fwd_f64(want, a.o, a.g, N, C, a.D);
        nj_ref_gate_bwd_f64(grad, dg, y, grad, y, a.g, N, C, a.D);
        nj_ref_gate_bwd_f64(alone, again, NULL, a.dy, a.o, a.g, N, C, a.D);
        check_gradient(gate_loss, &a, a.o, grad, N * C);
        check_gradient(gate_loss, &a, a.g, dg, gates);
        assert_all_close(y, want, N * C, 1e-15);
        assert_memory_equal(alone, grad, N * C * sizeof *grad);
        assert_memory_equal(again, dg, gates * sizeof *dg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gates_equal_the_formula, reset),
        cmocka_unit_test_setup(a_row_has_one_gate, reset),
        cmocka_unit_test_setup(gate_gradient_is_the_derivative, reset),
    };
    return cmocka_run_group_tests_name("gates", tests, NULL, NULL);
}
