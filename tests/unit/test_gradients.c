/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gradients.c: checks of the double references, which are the oracles of every kernel test: each backward op
 * agrees with central differences of its forward op along random directions, and attention with its formula.
 */
#include "gradients.h"

void nj_ref_rmsnorm_fwd_f64(double *y, double *rstd, const double *x, const double *w, int32_t N,
                            int32_t C, float eps, float offset);
void nj_ref_rmsnorm_bwd_f64(double *dx, double *dw_part, const double *dy, const double *x,
                            const double *w, const double *rstd, const double *dres, int32_t N,
                            int32_t C, int32_t P, float offset);
void nj_ref_norm_add_norm_fwd_f64(double *y, double *s, double *rstd, double *b_rstd,
                                  const double *x, const double *b, const double *g,
                                  const double *w, int32_t N, int32_t C, float eps, float eps_b,
                                  float offset, float offset_b);
void nj_ref_add_rmsnorm_fwd_f64(double *y, double *s, double *rstd, const double *x,
                                const double *b, const double *w, int32_t N, int32_t C, float eps,
                                float offset);
void nj_ref_rope_fwd_f64(double *qkv, const double *bias, const double *inv_freq,
                         const int32_t *pos, int32_t N, int32_t H, int32_t K, int32_t D,
                         float amplitude);
void nj_ref_rope_bwd_f64(double *dqkv, double *dbias_part, const double *inv_freq,
                         const int32_t *pos, int32_t N, int32_t H, int32_t K, int32_t D, int32_t P,
                         float amplitude);
void nj_ref_colsum_f64(double *dst, const double *part, int32_t P, int32_t C);
void nj_ref_qknorm_rope_fwd_f64(double *y, double *rstd, const double *x, const double *wq,
                                const double *wk, const double *inv_freq, const int32_t *pos,
                                int32_t N, int32_t H, int32_t K, int32_t D, float eps,
                                float amplitude, float offset, int32_t gain_last);
void nj_ref_qknorm_rope_bwd_f64(double *dqkv, double *dwq_part, double *dwk_part, const double *x,
                                const double *rstd, const double *wq, const double *wk,
                                const double *inv_freq, const int32_t *pos, int32_t N, int32_t H,
                                int32_t K, int32_t D, int32_t P, float amplitude, float offset,
                                int32_t gain_last);
void nj_ref_attn_fwd_f64(int D, double *o, double *lse, const double *qkv, const int32_t *doc_start,
                         int32_t B, int32_t S, int32_t H, int32_t K, int32_t window, float scale);
void nj_ref_attn_bwd_dq_f64(int D, double *dqkv, double *delta, const double *dout,
                            const double *qkv, const double *o, const double *lse,
                            const int32_t *doc_start, int32_t B, int32_t S, int32_t H, int32_t K,
                            int32_t window, float scale);
void nj_ref_attn_bwd_dkv_f64(int D, double *dqkv, const double *dout, const double *qkv,
                             const double *lse, const double *delta, const int32_t *doc_start,
                             int32_t B, int32_t S, int32_t H, int32_t K, int32_t window,
                             float scale);
void nj_ref_row_gather_f64(double *dst, const double *src, const int32_t *index, int32_t M,
                           int32_t R, int32_t C, float scale);
void nj_ref_bias_add_f64(double *y, const double *b, int32_t N, int32_t C);
void nj_ref_bias_bwd_f64(double *part, const double *dy, int32_t N, int32_t C, int32_t P);
void nj_ref_embed_bwd_f64(double *dw, const double *dy, const int32_t *ids, const int32_t *order,
                          const int32_t *runs, int32_t N, int32_t C, int32_t V, float scale);

/* ---- norms, rotation, activation, embedding ------------------------------------------------- */

/* Return the sum of partial results, computed by colsum. */
static double *summed(const double *part, int P, int C)
{
    double *sum = zeros((size_t)C);
    nj_ref_colsum_f64(sum, part, P, C);
    return sum;
}

enum { N = 5, C = 24, P = 3 };
static const float EPS = 1e-3f, OFFSET = 0.75f;

struct norm_args {
    double *x, *w, *dy, *dres;
};

static double norm_loss(void *args)
{
    const struct norm_args *a = args;
    double *y = zeros(N * C), *rstd = zeros(N);
    nj_ref_rmsnorm_fwd_f64(y, rstd, a->x, a->w, N, C, EPS, OFFSET);
    return dot(y, a->dy, N * C) + (a->dres ? dot(a->x, a->dres, N * C) : 0);
}

static void check_rmsnorm(int with_gain, int with_residual)
{
    struct norm_args a = {random_values(N * C), with_gain ? random_values(C) : NULL,
                          random_values(N * C), with_residual ? random_values(N * C) : NULL};
    double *y = zeros(N * C), *rstd = zeros(N), *dx = zeros(N * C), *part = random_values(P * C);
    nj_ref_rmsnorm_fwd_f64(y, rstd, a.x, a.w, N, C, EPS, OFFSET);
    nj_ref_rmsnorm_bwd_f64(dx, part, a.dy, a.x, a.w, rstd, a.dres, N, C, P, OFFSET);
    check_gradient(norm_loss, &a, a.x, dx, N * C);
    if (a.w)
        check_gradient(norm_loss, &a, a.w, summed(part, P, C), C);

    double *in_place = copy(a.dy, N * C);
    nj_ref_rmsnorm_bwd_f64(in_place, NULL, in_place, a.x, a.w, rstd, a.dres, N, C, P, OFFSET);
    assert_memory_equal(in_place, dx, N * C * sizeof(*dx));
}

static void rmsnorm_gradient_is_the_derivative(void **state)
{
    (void)state;
    for (int with_gain = 0; with_gain < 2; with_gain++) {
        check_rmsnorm(with_gain, 0);
        check_rmsnorm(with_gain, 1);
    }
}

static void rmsnorm_adds_eps_to_the_mean(void **state)
{
    (void)state;
    double x[8], w[8], y[8], rstd;
    for (int c = 0; c < 8; c++) {
        x[c] = c % 2 ? 0.5 : -0.5;
        w[c] = c + 1;
    }
    nj_ref_rmsnorm_fwd_f64(y, &rstd, x, w, 1, 8, 0.75f, 0);
    assert_close(rstd, 1.0, 1e-15);
    for (int c = 0; c < 8; c++)
        assert_close(y[c], x[c] * (c + 1), 1e-15);
}

/* The root of the rows is 1. */
static void rmsnorm_adds_the_offset_to_the_gain(void **state)
{
    (void)state;
    double x[8], w[8], y[8], alone[8], rstd;
    for (int c = 0; c < 8; c++) {
        x[c] = c % 2 ? 1 : -1;
        w[c] = c - 4;
    }
    nj_ref_rmsnorm_fwd_f64(y, &rstd, x, w, 1, 8, 0, OFFSET);
    nj_ref_rmsnorm_fwd_f64(alone, &rstd, x, NULL, 1, 8, 0, OFFSET);
    for (int c = 0; c < 8; c++) {
        assert_close(y[c], x[c] * (w[c] + 0.75), 1e-15);
        assert_close(alone[c], x[c] * 0.75, 1e-15);
    }
}

static void add_rmsnorm_is_add_then_rmsnorm(void **state)
{
    (void)state;
    double *x = random_values(N * C), *b = random_values(N * C), *w = random_values(C);
    double *s = zeros(N * C), *y = zeros(N * C), *want = zeros(N * C), *rstd = zeros(2 * N);
    for (int with_gain = 0; with_gain < 2; with_gain++) {
        const double *gain = with_gain ? w : NULL;
        nj_ref_add_rmsnorm_fwd_f64(y, s, rstd, x, b, gain, N, C, EPS, OFFSET);
        for (int i = 0; i < N * C; i++)
            assert_close(s[i], x[i] + b[i], 0);
        nj_ref_rmsnorm_fwd_f64(want, rstd + N, s, gain, N, C, EPS, OFFSET);
        assert_all_close(y, want, N * C, 1e-14);
        assert_all_close(rstd, rstd + N, N, 1e-14);
    }
}

enum { H = 4, K = 2, HEAD = 64, TURNED = 24, WIDTH = (H + 2 * K) * HEAD };
static const float AMPLITUDE = 1.25f;

struct rope_args {
    double *x, *bias, *wq, *wk, *dy, *inv_freq;
    int32_t pos[N];
};

/* Make inputs of which the first TURNED pairs of a head are rotated. */
static struct rope_args rope_inputs(void)
{
    struct rope_args a = {random_values(N * WIDTH), random_values(WIDTH),     random_values(HEAD),
                          random_values(HEAD),      random_values(N * WIDTH), zeros(HEAD / 2),
                          {0, 1, 2, 1000, 7}};
    for (int i = 0; i < TURNED; i++)
        a.inv_freq[i] = pow(10000, -2.0 * i / HEAD);
    return a;
}

static double rope_loss(void *args)
{
    const struct rope_args *a = args;
    double *y = copy(a->x, N * WIDTH);
    nj_ref_rope_fwd_f64(y, a->bias, a->inv_freq, a->pos, N, H, K, HEAD, AMPLITUDE);
    return dot(y, a->dy, N * WIDTH);
}

static void rope_and_bias_gradient_is_the_derivative(void **state)
{
    (void)state;
    struct rope_args a = rope_inputs();
    double *dx = copy(a.dy, N * WIDTH), *part = random_values(P * WIDTH);
    nj_ref_rope_bwd_f64(dx, part, a.inv_freq, a.pos, N, H, K, HEAD, P, AMPLITUDE);
    check_gradient(rope_loss, &a, a.x, dx, N * WIDTH);
    check_gradient(rope_loss, &a, a.bias, summed(part, P, WIDTH), WIDTH);
    a.bias = NULL;
    check_gradient(rope_loss, &a, a.x, dx, N * WIDTH);

    double *alone = copy(a.dy, N * WIDTH);
    nj_ref_rope_bwd_f64(alone, NULL, a.inv_freq, a.pos, N, H, K, HEAD, P, AMPLITUDE);
    assert_memory_equal(alone, dx, N * WIDTH * sizeof(*dx));
}

/* Expected is (x[i], x[i + D/2]), as a complex number, times exp(i a), as the papers write it, and the amplitude. */
static void rope_turns_pairs_by_the_angle(void **state)
{
    (void)state;
    struct rope_args a = rope_inputs();
    double *y = copy(a.x, N * WIDTH);
    nj_ref_rope_fwd_f64(y, NULL, a.inv_freq, a.pos, N, H, K, HEAD, AMPLITUDE);
    for (int n = 0; n < N; n++) {
        for (int c = 0; c < WIDTH; c++) {
            const double *x = a.x + n * WIDTH + c;
            const int i = c % HEAD;
            double want = *x; /* values are unchanged */
            if (c < (H + K) * HEAD) {
                const int low = i < HEAD / 2, pair = low ? i : i - HEAD / 2;
                const double re = low ? x[0] : x[-HEAD / 2], im = low ? x[HEAD / 2] : x[0];
                const double angle = (double)((float)a.pos[n] * (float)a.inv_freq[pair]);
                const double turned = angle + atan2(im, re);
                const double length = hypot(re, im) * (pair < TURNED ? (double)AMPLITUDE : 1);
                want = length * (low ? cos(turned) : sin(turned));
            }
            assert_close(y[n * WIDTH + c], want, 1e-11);
        }
    }
}

static double qknorm_loss(void *args)
{
    const struct rope_args *a = args;
    double *y = zeros(N * WIDTH), *rstd = zeros(N * (H + K));
    nj_ref_qknorm_rope_fwd_f64(y, rstd, a->x, a->wq, a->wk, a->inv_freq, a->pos, N, H, K, HEAD, EPS,
                               AMPLITUDE, 0, 0);
    return dot(y, a->dy, N * WIDTH);
}

static void qknorm_rope_gradient_is_the_derivative(void **state)
{
    (void)state;
    struct rope_args a = rope_inputs();
    double *y = zeros(N * WIDTH), *rstd = zeros(N * (H + K)), *dx = copy(a.dy, N * WIDTH);
    double *dwq = random_values(P * HEAD), *dwk = random_values(P * HEAD);
    nj_ref_qknorm_rope_fwd_f64(y, rstd, a.x, a.wq, a.wk, a.inv_freq, a.pos, N, H, K, HEAD, EPS,
                               AMPLITUDE, 0, 0);
    nj_ref_qknorm_rope_bwd_f64(dx, dwq, dwk, a.x, rstd, a.wq, a.wk, a.inv_freq, a.pos, N, H, K,
                               HEAD, P, AMPLITUDE, 0, 0);
    check_gradient(qknorm_loss, &a, a.x, dx, N * WIDTH);
    check_gradient(qknorm_loss, &a, a.wq, summed(dwq, P, HEAD), HEAD);
    check_gradient(qknorm_loss, &a, a.wk, summed(dwk, P, HEAD), HEAD);
}

static void norm_add_norm_is_norm_then_add_rmsnorm(void **state)
{
    (void)state;
    const double *x = random_values(N * C), *b = random_values(N * C), *g = random_values(C);
    const double *w = random_values(C);
    double *y = zeros(N * C), *s = zeros(N * C), *rstd = zeros(N), *b_rstd = zeros(N);
    double *normed = zeros(N * C), *want_y = zeros(N * C), *want_s = zeros(N * C);
    double *want_rstd = zeros(N), *want_b_rstd = zeros(N), *alone = copy(x, N * C);
    const float eps_b = 0.25f, offset_b = 0.5f;
    nj_ref_rmsnorm_fwd_f64(normed, want_b_rstd, b, g, N, C, eps_b, offset_b);
    nj_ref_add_rmsnorm_fwd_f64(want_y, want_s, want_rstd, x, normed, w, N, C, EPS, OFFSET);
    nj_ref_norm_add_norm_fwd_f64(y, s, rstd, b_rstd, x, b, g, w, N, C, EPS, eps_b, OFFSET,
                                 offset_b);
    assert_all_close(y, want_y, N * C, 1e-14);
    assert_all_close(s, want_s, N * C, 1e-14);
    assert_all_close(rstd, want_rstd, N, 1e-14);
    assert_all_close(b_rstd, want_b_rstd, N, 1e-14);
    /* without the second norm, and in place */
    nj_ref_norm_add_norm_fwd_f64(NULL, alone, NULL, b_rstd, alone, b, g, NULL, N, C, EPS, eps_b, 0,
                                 offset_b);
    assert_memory_equal(alone, s, N * C * sizeof(*s));
}

/* Each head equals the result of rmsnorm followed by RoPE without a bias; values are unchanged. */
static void qknorm_rope_is_rmsnorm_then_rope(void **state)
{
    (void)state;
    struct rope_args a = rope_inputs();
    double *y = zeros(N * WIDTH), *rstd = zeros(N * (H + K)), *want = copy(a.x, N * WIDTH), r;
    nj_ref_qknorm_rope_fwd_f64(y, rstd, a.x, a.wq, a.wk, a.inv_freq, a.pos, N, H, K, HEAD, EPS,
                               AMPLITUDE, 0, 0);
    for (int n = 0; n < N; n++) {
        for (int h = 0; h < H + K; h++) {
            double *head = want + n * WIDTH + h * HEAD;
            nj_ref_rmsnorm_fwd_f64(head, &r, head, h < H ? a.wq : a.wk, 1, HEAD, EPS, 0);
            assert_close(rstd[n * (H + K) + h], r, 1e-14);
        }
    }
    nj_ref_rope_fwd_f64(want, NULL, a.inv_freq, a.pos, N, H, K, HEAD, AMPLITUDE);
    assert_all_close(y, want, N * WIDTH, 1e-13);
}

static void qknorm_rope_works_in_place(void **state)
{
    (void)state;
    struct rope_args a = rope_inputs();
    double *want = zeros(N * WIDTH), *rstd = zeros(N * (H + K)), *y = copy(a.x, N * WIDTH);
    double *in_place = zeros(N * (H + K));
    nj_ref_qknorm_rope_fwd_f64(want, rstd, a.x, a.wq, a.wk, a.inv_freq, a.pos, N, H, K, HEAD, EPS,
                               AMPLITUDE, 0, 0);
    nj_ref_qknorm_rope_fwd_f64(y, in_place, y, a.wq, a.wk, a.inv_freq, a.pos, N, H, K, HEAD, EPS,
                               AMPLITUDE, 0, 0);
    assert_memory_equal(y, want, N * WIDTH * sizeof(*y));
    assert_memory_equal(in_place, rstd, N * (H + K) * sizeof(*rstd));
}

enum { TABLE = 7 };
static const int32_t IDS[N] = {3, 6, 3, 0, 3};
static const float FACTOR = 2.5f;

static double embed_loss(void *args)
{
    const struct norm_args *a = args;
    double *y = zeros(N * C);
    nj_ref_row_gather_f64(y, a->x, IDS, N, TABLE, C, FACTOR);
    return dot(y, a->dy, N * C);
}

static void embedding_gradient_is_the_derivative(void **state)
{
    (void)state;
    const int32_t order[N] = {3, 0, 2, 4, 1}, runs[N + 1] = {0, 1, 4, N, N, N};
    struct norm_args a = {.x = random_values(TABLE * C), .dy = random_values(N * C)};
    double *dw = zeros(TABLE * C);
    nj_ref_embed_bwd_f64(dw, a.dy, IDS, order, runs, N, C, TABLE, FACTOR);
    check_gradient(embed_loss, &a, a.x, dw, TABLE * C);
    nj_ref_embed_bwd_f64(dw, a.dy, IDS, order, runs, N, C, TABLE, FACTOR);
    for (int c = 0; c < C; c++) /* a second call adds again */
        assert_close(dw[6 * C + c], 2 * 2.5 * a.dy[C + c], 1e-14);
}

static void row_gather_zeroes_rows_without_index(void **state)
{
    (void)state;
    const int32_t index[3] = {2, -1, 0};
    double *src = random_values(3 * C), *dst = random_values(3 * C), *none = zeros(C);
    nj_ref_row_gather_f64(dst, src, index, 3, 3, C, 1);
    assert_memory_equal(dst, src + 2 * C, C * sizeof(*dst));
    assert_memory_equal(dst + C, none, C * sizeof(*dst));
    assert_memory_equal(dst + 2 * C, src, C * sizeof(*dst));
}

static void row_gather_multiplies_rows(void **state)
{
    (void)state;
    static const int32_t index[2] = {2, 0};
    double *src = random_values(3 * C), *dst = zeros(2 * C), *in_place = copy(src, 3 * C);
    nj_ref_row_gather_f64(dst, src, index, 2, 3, C, FACTOR);
    nj_ref_row_gather_f64(in_place, in_place, NULL, 3, 3, C, FACTOR);
    for (int c = 0; c < C; c++) {
        assert_close(dst[c], 2.5 * src[2 * C + c], 1e-15);
        assert_close(dst[C + c], 2.5 * src[c], 1e-15);
    }
    for (int i = 0; i < 3 * C; i++)
        assert_close(in_place[i], 2.5 * src[i], 1e-15);
}

struct bias_args {
    double *x, *b, *dy;
};

static double bias_loss(void *args)
{
    const struct bias_args *a = args;
    double *y = copy(a->x, N * C);
    nj_ref_bias_add_f64(y, a->b, N, C);
    return dot(y, a->dy, N * C);
}

static void bias_gradient_is_the_derivative(void **state)
{
    (void)state;
    struct bias_args a = {random_values(N * C), random_values(C), random_values(N * C)};
    double *y = copy(a.x, N * C), *part = random_values(P * C);
    nj_ref_bias_add_f64(y, a.b, N, C);
    for (int i = 0; i < N * C; i++)
        assert_close(y[i], a.x[i] + a.b[i % C], 1e-15);
    nj_ref_bias_bwd_f64(part, a.dy, N, C, P);
    check_gradient(bias_loss, &a, a.b, summed(part, P, C), C);
}

/* ---- attention ------------------------------------------------------------------------------ */

enum { B = 2, S = 75 };
static const float SCALE = 0.25f;

struct attn_args {
    double *qkv, *dout;
    const int32_t *doc_start;
    int32_t window;
};

/* Windows of one key, less than a tile, several tiles, and one key less than a sequence; 0: none. */
static const int32_t windows[] = {0, 1, 7, 66, S - 1};
enum { WINDOWS = sizeof windows / sizeof *windows };

/* Make documents of uneven length: some end inside a tile, one spans tiles. */
static void document_starts(int32_t *start)
{
    static const int32_t lengths[] = {1, 3, 36, 2, 33, 75};
    int n = 0;
    for (int doc = 0; doc < 6; doc++) {
        const int32_t first = n % S;
        for (int32_t i = 0; i < lengths[doc]; i++)
            start[n++] = first;
    }
    assert_int_equal(n, B * S);
}

/* Return the first key that a row sees. */
static int first_key(const struct attn_args *a, int b, int i)
{
    int first = a->doc_start ? a->doc_start[b * S + i] : 0;
    while (a->window > 0 && i - first >= a->window)
        first++;
    return first;
}

/* Compute the formula, one row of scores at a time: softmax over all visible keys. */
static void naive_row(const struct attn_args *a, int b, int h, int i, double *o, double *lse)
{
    const double *seq = a->qkv + b * S * WIDTH, *q = seq + i * WIDTH + h * HEAD;
    const int kv = h / (H / K), first = first_key(a, b, i);
    double sum = 0;
    memset(o, 0, HEAD * sizeof(*o));
    for (int j = first; j <= i; j++) {
        const double *k = seq + j * WIDTH + (H + kv) * HEAD, *v = k + K * HEAD;
        const double e = exp((double)SCALE * dot(q, k, HEAD));
        sum += e;
        for (int d = 0; d < HEAD; d++)
            o[d] += e * v[d];
    }
    for (int d = 0; d < HEAD; d++)
        o[d] /= sum;
    *lse = log(sum);
}

static void check_attention(const int32_t *doc_start, int32_t window)
{
    reset(NULL);
    struct attn_args a = {random_values(B * S * WIDTH), NULL, doc_start, window};
    double *o = zeros(B * S * H * HEAD), *lse = zeros(B * H * S), row[HEAD], row_lse;
    nj_ref_attn_fwd_f64(HEAD, o, lse, a.qkv, doc_start, B, S, H, K, window, SCALE);
    for (int b = 0; b < B; b++) {
        for (int h = 0; h < H; h++) {
            for (int i = 0; i < S; i++) {
                naive_row(&a, b, h, i, row, &row_lse);
                assert_all_close(o + ((b * S + i) * H + h) * HEAD, row, HEAD, 1e-12);
                assert_close(lse[(b * H + h) * S + i], row_lse, 1e-12);
            }
        }
    }
}

static void attention_equals_the_formula(void **state)
{
    (void)state;
    int32_t start[B * S];
    document_starts(start);
    for (int i = 0; i < WINDOWS; i++) {
        check_attention(NULL, windows[i]);
        check_attention(start, windows[i]);
    }
}

static double attn_loss(void *args)
{
    const struct attn_args *a = args;
    double *o = zeros(B * S * H * HEAD), *lse = zeros(B * H * S);
    nj_ref_attn_fwd_f64(HEAD, o, lse, a->qkv, a->doc_start, B, S, H, K, a->window, SCALE);
    return dot(o, a->dout, B * S * H * HEAD);
}

/* Compute the gradient; every element of grad is written. */
static void backward_of_attention(const struct attn_args *a, double *grad)
{
    double *o = zeros(B * S * H * HEAD), *lse = zeros(B * H * S), *delta = zeros(B * H * S);
    nj_ref_attn_fwd_f64(HEAD, o, lse, a->qkv, a->doc_start, B, S, H, K, a->window, SCALE);
    nj_ref_attn_bwd_dq_f64(HEAD, grad, delta, a->dout, a->qkv, o, lse, a->doc_start, B, S, H, K,
                           a->window, SCALE);
    nj_ref_attn_bwd_dkv_f64(HEAD, grad, a->dout, a->qkv, lse, delta, a->doc_start, B, S, H, K,
                            a->window, SCALE);
}

static void attention_gradient_is_the_derivative(void **state)
{
    int32_t start[B * S];
    document_starts(start);
    for (int k = 0; k < 4; k++) {
        reset(state);
        struct attn_args a = {random_values(B * S * WIDTH), random_values(B * S * H * HEAD),
                              k % 2 ? start : NULL, k / 2 * 7};
        double *grad = random_values(B * S * WIDTH);
        backward_of_attention(&a, grad);
        check_gradient(attn_loss, &a, a.qkv, grad, B * S * WIDTH);
    }
}

/* Compute the gradient by the formula, with all scores of a head at once: P is the softmax of scale Q K^T; then dV =
 * P^T dO, dS = P (dO V^T - rowsum(dO O)), dQ = scale dS K, dK = scale dS^T Q. */
static void naive_backward(const struct attn_args *a, int b, int h, double *grad)
{
    const int kv = h / (H / K), q = h * HEAD, k = (H + kv) * HEAD, v = (H + K + kv) * HEAD;
    const double *x = a->qkv + b * S * WIDTH;
    double *dx = grad + b * S * WIDTH, o[HEAD], lse;
    for (int i = 0; i < S; i++) {
        const double *dout = a->dout + ((b * S + i) * H + h) * HEAD, *xi = x + i * WIDTH;
        naive_row(a, b, h, i, o, &lse);
        for (int j = first_key(a, b, i); j <= i; j++) {
            const double *xj = x + j * WIDTH;
            const double p = exp((double)SCALE * dot(xi + q, xj + k, HEAD) - lse);
            const double ds = p * (dot(dout, xj + v, HEAD) - dot(dout, o, HEAD));
            for (int d = 0; d < HEAD; d++) {
                dx[i * WIDTH + q + d] += (double)SCALE * ds * xj[k + d];
                dx[j * WIDTH + k + d] += (double)SCALE * ds * xi[q + d];
                dx[j * WIDTH + v + d] += p * dout[d];
            }
        }
    }
}

static void attention_gradient_equals_the_formula(void **state)
{
    int32_t start[B * S];
    document_starts(start);
    for (int k = 0; k < 2 * WINDOWS; k++) {
        reset(state);
        const struct attn_args a = {random_values(B * S * WIDTH), random_values(B * S * H * HEAD),
                                    k % 2 ? start : NULL, windows[k / 2]};
        double *grad = random_values(B * S * WIDTH), *want = zeros(B * S * WIDTH);
        backward_of_attention(&a, grad);
        for (int b = 0; b < B; b++)
            for (int h = 0; h < H; h++)
                naive_backward(&a, b, h, want);
        assert_all_close(grad, want, B * S * WIDTH, 1e-11);
    }
}

/* Compare bits, of the output and of all gradients. */
static void a_window_of_the_whole_sequence_is_none(void **state)
{
    (void)state;
    static const int32_t wide[] = {S, S + 1, 3 * S, INT32_MAX};
    int32_t start[B * S];
    document_starts(start);
    struct attn_args a = {random_values(B * S * WIDTH), random_values(B * S * H * HEAD), start, 0};
    double *want = zeros(B * S * WIDTH), *got = zeros(B * S * WIDTH);
    const double loss = attn_loss(&a);
    backward_of_attention(&a, want);
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        a.window = wide[i];
        assert_true(attn_loss(&a) == loss);
        backward_of_attention(&a, got);
        assert_memory_equal(got, want, B * S * WIDTH * sizeof *got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rmsnorm_gradient_is_the_derivative, reset),
        cmocka_unit_test_setup(rmsnorm_adds_eps_to_the_mean, reset),
        cmocka_unit_test_setup(rmsnorm_adds_the_offset_to_the_gain, reset),
        cmocka_unit_test_setup(add_rmsnorm_is_add_then_rmsnorm, reset),
        cmocka_unit_test_setup(rope_and_bias_gradient_is_the_derivative, reset),
        cmocka_unit_test_setup(rope_turns_pairs_by_the_angle, reset),
        cmocka_unit_test_setup(qknorm_rope_gradient_is_the_derivative, reset),
        cmocka_unit_test_setup(norm_add_norm_is_norm_then_add_rmsnorm, reset),
        cmocka_unit_test_setup(qknorm_rope_is_rmsnorm_then_rope, reset),
        cmocka_unit_test_setup(qknorm_rope_works_in_place, reset),
        cmocka_unit_test_setup(embedding_gradient_is_the_derivative, reset),
        cmocka_unit_test_setup(row_gather_zeroes_rows_without_index, reset),
        cmocka_unit_test_setup(row_gather_multiplies_rows, reset),
        cmocka_unit_test_setup(bias_gradient_is_the_derivative, reset),
        cmocka_unit_test_setup(attention_equals_the_formula, reset),
        cmocka_unit_test_setup(attention_gradient_is_the_derivative, reset),
        cmocka_unit_test_setup(attention_gradient_equals_the_formula, reset),
        cmocka_unit_test_setup(a_window_of_the_whole_sequence_is_none, reset),
    };
    return cmocka_run_group_tests_name("gradients", tests, NULL, NULL);
}
