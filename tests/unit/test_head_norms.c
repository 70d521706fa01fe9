/* SPDX-License-Identifier: Apache-2.0
 *
 * test_head_norms.c: checks of the double references of norms of queries and keys: those of each head, with gains that
 * have an offset, are missing or go behind the rotation, and those of all heads of a row. Gradients agree with central
 * differences.
 */
#include "gradients.h"

void nj_ref_qknorm_rope_fwd_f64(double *y, double *rstd, const double *x, const double *wq,
                                const double *wk, const double *inv_freq, const int32_t *pos,
                                int32_t N, int32_t H, int32_t K, int32_t D, float eps,
                                float amplitude, float offset, int32_t gain_last);
void nj_ref_qknorm_rope_bwd_f64(double *dqkv, double *dwq_part, double *dwk_part, const double *x,
                                const double *rstd, const double *wq, const double *wk,
                                const double *inv_freq, const int32_t *pos, int32_t N, int32_t H,
                                int32_t K, int32_t D, int32_t P, float amplitude, float offset,
                                int32_t gain_last);
void nj_ref_rmsnorm_fwd_f64(double *y, double *rstd, const double *x, const double *w, int32_t N,
                            int32_t C, float eps, float offset);
void nj_ref_qknorm_row_fwd_f64(double *y, double *rstd, const double *x, const double *wq,
                               const double *wk, int32_t N, int32_t H, int32_t K, int32_t D,
                               float eps);
void nj_ref_qknorm_row_bwd_f64(double *dqkv, double *dwq_part, double *dwk_part, const double *x,
                               const double *rstd, const double *wq, const double *wk, int32_t N,
                               int32_t H, int32_t K, int32_t D, int32_t P);
void nj_ref_colsum_f64(double *dst, const double *part, int32_t P, int32_t C);

enum { N = 5, P = 3, H = 4, K = 2, D = 64, TURNED = 24, WIDTH = (H + 2 * K) * D };
static const float EPS = 1e-3f, AMPLITUDE = 1.25f;

struct heads {
    double *x, *wq, *wk, *dy, *inv_freq; /* wq and wk: NULL for none */
    int32_t pos[N], gain_last;
    float offset;
};

static struct heads inputs(void)
{
    struct heads a = {.x = random_values(N * WIDTH),
                      .wq = random_values(D),
                      .wk = random_values(D),
                      .dy = random_values(N * WIDTH),
                      .inv_freq = zeros(D / 2),
                      .pos = {0, 1, 2, 1000, 7}};
    for (int i = 0; i < TURNED; i++)
        a.inv_freq[i] = pow(10000, -2.0 * i / D);
    return a;
}

static double *forward(const struct heads *a, double *rstd)
{
    double *y = zeros(N * WIDTH);
    nj_ref_qknorm_rope_fwd_f64(y, rstd, a->x, a->wq, a->wk, a->inv_freq, a->pos, N, H, K, D, EPS,
                               AMPLITUDE, a->offset, a->gain_last);
    return y;
}

static void gains_are_offset_or_missing(void **state)
{
    (void)state;
    for (int last = 0; last < 2; last++) {
        struct heads a = inputs(), moved = a;
        double *rstd = zeros(N * (H + K));
        a.gain_last = moved.gain_last = last;
        a.offset = 0.5f;
        moved.wq = copy(a.wq, D);
        moved.wk = copy(a.wk, D);
        for (int i = 0; i < D; i++) {
            moved.wq[i] += 0.5;
            moved.wk[i] += 0.5;
        }
        assert_memory_equal(forward(&a, rstd), forward(&moved, rstd), N * WIDTH * sizeof(double));
        a.wq = zeros(D);
        moved = a;
        moved.wq = NULL;
        assert_memory_equal(forward(&a, rstd), forward(&moved, rstd), N * WIDTH * sizeof(double));
    }
}

static void a_last_gain_multiplies_rotated_heads(void **state)
{
    (void)state;
    struct heads a = inputs(), plain = a;
    double *rstd = zeros(N * (H + K));
    a.gain_last = 1;
    a.offset = plain.offset = 1;
    plain.wq = plain.wk = NULL;
    const double *y = forward(&a, rstd), *turned = forward(&plain, rstd);
    for (int i = 0; i < N * WIDTH; i++) {
        const int head = i % WIDTH / D;
        const double w = head < H ? a.wq[i % D] : head < H + K ? a.wk[i % D] : 0;
        assert_close(y[i], (1 + w) * turned[i], 1e-14);
    }
}

static double loss(void *args)
{
    const struct heads *a = args;
    return dot(forward(a, zeros(N * (H + K))), a->dy, N * WIDTH);
}

static void check_derivative(struct heads *a)
{
    double *rstd = zeros(N * (H + K)), *dx = copy(a->dy, N * WIDTH), *alone = copy(dx, N * WIDTH);
    double *dwq = random_values(P * D), *dwk = random_values(P * D);
    double *sum_q = zeros(D), *sum_k = zeros(D);
    forward(a, rstd);
    nj_ref_qknorm_rope_bwd_f64(dx, dwq, dwk, a->x, rstd, a->wq, a->wk, a->inv_freq, a->pos, N, H, K,
                               D, P, AMPLITUDE, a->offset, a->gain_last);
    check_gradient(loss, a, a->x, dx, N * WIDTH);
    nj_ref_colsum_f64(sum_q, dwq, P, D);
    nj_ref_colsum_f64(sum_k, dwk, P, D);
    if (a->wq)
        check_gradient(loss, a, a->wq, sum_q, D);
    check_gradient(loss, a, a->wk, sum_k, D);
    nj_ref_qknorm_rope_bwd_f64(alone, NULL, NULL, a->x, rstd, a->wq, a->wk, a->inv_freq, a->pos, N,
                               H, K, D, P, AMPLITUDE, a->offset, a->gain_last);
    assert_memory_equal(alone, dx, N * WIDTH * sizeof *dx);
}

static void gains_with_an_offset_have_the_derivative(void **state)
{
    (void)state;
    struct heads a = inputs();
    a.offset = 1;
    check_derivative(&a);
    a.wq = NULL;
    check_derivative(&a);
}

static void a_last_gain_has_the_derivative(void **state)
{
    (void)state;
    struct heads a = inputs();
    a.gain_last = 1;
    check_derivative(&a);
    a.offset = 1;
    a.wq = NULL;
    check_derivative(&a);
}

/* ---- norms of rows ---- */

enum { Q = H * D, KEYS = K * D };

static struct heads row_inputs(void)
{
    struct heads a = inputs();
    a.wq = random_values(Q);
    a.wk = random_values(KEYS);
    return a;
}

static void a_row_norm_is_two_rmsnorms(void **state)
{
    (void)state;
    struct heads a = row_inputs();
    double *y = zeros(N * WIDTH), *rstd = zeros(2 * N), *want = copy(a.x, N * WIDTH), r;
    double *in_place = copy(a.x, N * WIDTH);
    nj_ref_qknorm_row_fwd_f64(y, rstd, a.x, a.wq, a.wk, N, H, K, D, EPS);
    for (int n = 0; n < N; n++) {
        double *row = want + n * WIDTH;
        nj_ref_rmsnorm_fwd_f64(row, &r, row, a.wq, 1, Q, EPS, 0);
        assert_close(rstd[2 * n], r, 1e-14);
        nj_ref_rmsnorm_fwd_f64(row + Q, &r, row + Q, a.wk, 1, KEYS, EPS, 0);
        assert_close(rstd[2 * n + 1], r, 1e-14);
    }
    assert_all_close(y, want, N * WIDTH, 1e-14);
    nj_ref_qknorm_row_fwd_f64(in_place, rstd, in_place, a.wq, a.wk, N, H, K, D, EPS);
    assert_memory_equal(in_place, y, N * WIDTH * sizeof *y);
}

static double row_loss(void *args)
{
    const struct heads *a = args;
    double *y = zeros(N * WIDTH), *rstd = zeros(2 * N);
    nj_ref_qknorm_row_fwd_f64(y, rstd, a->x, a->wq, a->wk, N, H, K, D, EPS);
    return dot(y, a->dy, N * WIDTH);
}

static void a_row_norm_has_the_derivative(void **state)
{
    (void)state;
    struct heads a = row_inputs();
    double *y = zeros(N * WIDTH), *rstd = zeros(2 * N), *dx = copy(a.dy, N * WIDTH);
    double *dwq = random_values(P * Q), *dwk = random_values(P * KEYS);
    double *sum_q = zeros(Q), *sum_k = zeros(KEYS);
    nj_ref_qknorm_row_fwd_f64(y, rstd, a.x, a.wq, a.wk, N, H, K, D, EPS);
    nj_ref_qknorm_row_bwd_f64(dx, dwq, dwk, a.x, rstd, a.wq, a.wk, N, H, K, D, P);
    nj_ref_colsum_f64(sum_q, dwq, P, Q);
    nj_ref_colsum_f64(sum_k, dwk, P, KEYS);
    check_gradient(row_loss, &a, a.x, dx, N * WIDTH);
    check_gradient(row_loss, &a, a.wq, sum_q, Q);
    check_gradient(row_loss, &a, a.wk, sum_k, KEYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gains_are_offset_or_missing, reset),
        cmocka_unit_test_setup(a_last_gain_multiplies_rotated_heads, reset),
        cmocka_unit_test_setup(gains_with_an_offset_have_the_derivative, reset),
        cmocka_unit_test_setup(a_last_gain_has_the_derivative, reset),
        cmocka_unit_test_setup(a_row_norm_is_two_rmsnorms, reset),
        cmocka_unit_test_setup(a_row_norm_has_the_derivative, reset),
    };
    return cmocka_run_group_tests_name("head_norms", tests, NULL, NULL);
}
