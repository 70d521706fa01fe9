/* SPDX-License-Identifier: Apache-2.0
 *
 * test_conv.c: the double references of causal convolutions: they equal their formula within documents, all gradients
 * are derivatives, and steps continue what a pass over prompts leaves.
 */
#include "gradients.h"

void nj_ref_conv_fwd_f64(double *y, const double *x, const double *w, const double *bias,
                         const double *gate_in, const double *gate_out, const int32_t *doc_start,
                         int32_t B, int32_t S, int32_t X, int32_t L, int32_t ld, int32_t act);
void nj_ref_conv_bwd_f64(double *dx, double *dgate_in, double *dgate_out, double *dw_part,
                         double *dbias_part, const double *dy, const double *x, const double *w,
                         const double *bias, const double *gate_in, const double *gate_out,
                         const int32_t *doc_start, int32_t B, int32_t S, int32_t X, int32_t L,
                         int32_t ld, int32_t P, int32_t act);
void nj_ref_conv_step_f64(double *y, double *state, const double *x, const double *w,
                          const double *bias, const double *gate_in, const double *gate_out,
                          const int32_t *slot, const int32_t *pos, int32_t R, int32_t X, int32_t L,
                          int32_t ld, int32_t G, int32_t act);
void nj_ref_conv_store_f64(double *state, const double *x, const double *gate_in,
                           const int32_t *doc_start, const int32_t *slot, int32_t B, int32_t S,
                           int32_t X, int32_t L, int32_t ld, int32_t G);
void nj_ref_colsum_f64(double *dst, const double *part, int32_t P, int32_t C);

enum { B = 2, S = 13, X = 8, LD = 24, ROWS = B * S };
/* Documents of 1, 2, 3 and more rows. */
static const int32_t starts[ROWS] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 6,  6,  6,
                                     0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 10, 10, 10};

struct conv_args {
    double *x, *w, *bias, *gate_in, *gate_out, *dy;
    const int32_t *doc_start;
    int L, act;
};

/* Return inputs; bit 0 of `with` stands for a bias, bit 1 for gates, bit 2 for documents. */
static struct conv_args inputs(int L, int act, int with)
{
    return (struct conv_args){random_values(ROWS * LD),
                              random_values((size_t)(X * L)),
                              with & 1 ? random_values(X) : NULL,
                              with & 2 ? random_values(ROWS * LD) : NULL,
                              with & 2 ? random_values(ROWS * LD) : NULL,
                              random_values(ROWS * X),
                              with & 4 ? starts : NULL,
                              L,
                              act};
}

static double *convolved(const struct conv_args *a)
{
    double *y = zeros(ROWS * X);
    nj_ref_conv_fwd_f64(y, a->x, a->w, a->bias, a->gate_in, a->gate_out, a->doc_start, B, S, X,
                        a->L, LD, a->act);
    return y;
}

static double silu(double x)
{
    return x * (1 + tanh(x / 2)) / 2;
}

static void conv_equals_the_formula(void **state)
{
    (void)state;
    for (int with = 0; with < 8; with++)
        for (int L = 2; L <= 8; L++) {
            const struct conv_args a = inputs(L, L % 2, with);
            const double *y = convolved(&a);
            for (int n = 0; n < ROWS; n++)
                for (int c = 0; c < X; c++) {
                    const int first = n / S * S + (a.doc_start ? starts[n] : 0);
                    double h = a.bias ? a.bias[c] : 0;
                    for (int back = 0; back < L && n - back >= first; back++) {
                        const int at = (n - back) * LD + c;
                        h += a.w[c * L + L - 1 - back] * a.x[at] * (a.gate_in ? a.gate_in[at] : 1);
                    }
                    const double want =
                        (a.act ? silu(h) : h) * (a.gate_out ? a.gate_out[n * LD + c] : 1);
                    assert_close(y[n * X + c], want, 1e-14);
                }
            reset(NULL);
        }
}

static double conv_loss(void *args)
{
    const struct conv_args *a = args;
    return dot(convolved(a), a->dy, ROWS * X);
}

static void check_conv_gradient(int L, int act, int with, int P)
{
    struct conv_args a = inputs(L, act, with);
    double *dx = zeros(ROWS * LD), *dgate_in = zeros(ROWS * LD), *dgate_out = zeros(ROWS * LD);
    double *dw_part = random_values((size_t)(P * X * L)),
           *dbias_part = random_values((size_t)(P * X));
    double *dw = zeros((size_t)(X * L)), *dbias = zeros(X);
    nj_ref_conv_bwd_f64(dx, a.gate_in ? dgate_in : NULL, a.gate_out ? dgate_out : NULL, dw_part,
                        a.bias ? dbias_part : NULL, a.dy, a.x, a.w, a.bias, a.gate_in, a.gate_out,
                        a.doc_start, B, S, X, L, LD, P, act);
    nj_ref_colsum_f64(dw, dw_part, P, X * L);
    nj_ref_colsum_f64(dbias, dbias_part, P, X);
    check_gradient(conv_loss, &a, a.x, dx, ROWS * LD);
    check_gradient(conv_loss, &a, a.w, dw, (size_t)(X * L));
    if (a.bias)
        check_gradient(conv_loss, &a, a.bias, dbias, X);
    if (a.gate_in) {
        check_gradient(conv_loss, &a, a.gate_in, dgate_in, ROWS * LD);
        check_gradient(conv_loss, &a, a.gate_out, dgate_out, ROWS * LD);
    }
}

static void conv_gradient_is_the_derivative(void **state)
{
    (void)state;
    for (int with = 0; with < 8; with++)
        for (int L = 2; L <= 8; L++) {
            check_conv_gradient(L, L % 2, with, 1 + (L + with) % 5);
            reset(NULL);
        }
    check_conv_gradient(4, 1, 7, ROWS + 3);
}

/* Documents are cut behind each of their rows: a pass has the rows before the cut, and steps the others. */
static void check_steps(int L, int with, int cut)
{
    enum { N = 11, SLOTS = 3 };
    const struct conv_args all = inputs(L, with & 1, with);
    static const int32_t firsts[] = {0, N}; /* two documents */
    int32_t doc_start[2 * N], slot[2 * N];
    double *y = zeros(2 * N * X), *x = zeros(2 * N * LD), *gate_in = zeros(2 * N * LD);
    double *memory = random_values((size_t)(SLOTS * (L - 1) * X)), *pass = zeros(2 * N * X);
    for (int n = 0; n < 2 * N; n++)
        doc_start[n] = firsts[n / N];
    nj_ref_conv_fwd_f64(y, all.x, all.w, all.bias, all.gate_in, all.gate_out, doc_start, 1, 2 * N,
                        X, L, LD, all.act);
    for (int n = 0; n < 2 * cut; n++) {
        const size_t from = (size_t)((n / cut) * N + n % cut) * LD;
        memcpy(x + (size_t)n * LD, all.x + from, LD * sizeof *x);
        if (all.gate_in)
            memcpy(gate_in + (size_t)n * LD, all.gate_in + from, LD * sizeof *x);
        doc_start[n] = n / cut * cut;
        slot[n] = n / cut == 0 ? 2 : 0;
    }
    if (cut > 0)
        nj_ref_conv_store_f64(memory, x, all.gate_in ? gate_in : NULL, doc_start, slot, 1, 2 * cut,
                              X, L, LD, SLOTS);
    for (int n = cut; n < N; n++) {
        static const int32_t slots[] = {0, -1, 2};
        const int32_t pos[] = {n, n, n};
        const int rows[] = {N + n, 0, n};
        double *step_x = zeros(3 * LD), *step_in = zeros(3 * LD), *step_out = zeros(3 * LD);
        for (int r = 0; r < 3; r++) {
            const size_t from = (size_t)rows[r] * LD;
            memcpy(step_x + r * LD, all.x + from, LD * sizeof *x);
            if (all.gate_in) {
                memcpy(step_in + r * LD, all.gate_in + from, LD * sizeof *x);
                memcpy(step_out + r * LD, all.gate_out + from, LD * sizeof *x);
            }
        }
        nj_ref_conv_step_f64(pass, memory, step_x, all.w, all.bias, all.gate_in ? step_in : NULL,
                             all.gate_in ? step_out : NULL, slots, pos, 3, X, L, LD, SLOTS,
                             all.act);
        assert_all_close(pass, y + (size_t)(N + n) * X, X, 1e-14);
        assert_all_close(pass + 2 * X, y + (size_t)n * X, X, 1e-14);
    }
}

static void steps_continue_a_pass(void **state)
{
    (void)state;
    for (int with = 0; with < 4; with++)
        for (int L = 2; L <= 8; L += 2)
            for (int cut = 0; cut < 11; cut++) {
                check_steps(L, with, cut);
                reset(NULL);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(conv_equals_the_formula, reset),
        cmocka_unit_test_setup(conv_gradient_is_the_derivative, reset),
        cmocka_unit_test_setup(steps_continue_a_pass, reset),
    };
    return cmocka_run_group_tests_name("conv", tests, NULL, NULL);
}
