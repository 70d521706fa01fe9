/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sinks.c: the double references of attention sinks: attention with them equals its formula, all gradients are
 * derivatives, and a decoder gives the last row.
 */
#include "gradients.h"

#include "base/decode.h"

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
void nj_ref_sink_fwd_f64(double *o, double *lse, const double *sink, int32_t B, int32_t S,
                         int32_t H, int32_t D);
void nj_ref_sink_bwd_f64(double *dsink_part, const double *sink, const double *lse,
                         const double *delta, int32_t B, int32_t S, int32_t H, int32_t P);
void nj_ref_colsum_f64(double *dst, const double *part, int32_t P, int32_t C);
void nj_ref_kv_store_f64(int D, double *k, double *v, const double *qkv, const int32_t *slot,
                         const int32_t *pos, int32_t N, int32_t H, int32_t K, int32_t P, int32_t G);
void nj_ref_kv_store_q8_f64(int D, int32_t *k, int32_t *v, double *kv_scale, const double *qkv,
                            const int32_t *slot, const int32_t *pos, int32_t N, int32_t H,
                            int32_t K, int32_t P, int32_t G);
void nj_ref_attn_decode_f64(int D, double *o, double *part, double *k, double *v, const double *qkv,
                            const double *bias, const double *inv_freq, const double *sink,
                            const int32_t *slot, const int32_t *pos, int32_t R, int32_t H,
                            int32_t K, int32_t P, int32_t G, int32_t C, int32_t window, float scale,
                            float amplitude);
void nj_ref_attn_decode_q8_f64(int D, double *o, double *part, int32_t *k, int32_t *v,
                               double *kv_scale, const double *qkv, const double *bias,
                               const double *inv_freq, const double *sink, const int32_t *slot,
                               const int32_t *pos, int32_t R, int32_t H, int32_t K, int32_t P,
                               int32_t G, int32_t C, int32_t window, float scale, float amplitude);
void nj_ref_attn_decode_merge_f64(int D, double *o, const double *part, const double *sink,
                                  const int32_t *slot, const int32_t *pos, int32_t R, int32_t H,
                                  int32_t C, int32_t window);

enum { B = 2, S = 37, H = 4, K = 2, D = 16, WIDTH = (H + 2 * K) * D, OUT = H * D };
static const float SCALE = 0.25f;

struct sink_args {
    double *qkv, *sink, *dout;
    int32_t window;
};

/* Compute attention with sinks. */
static void attend(const struct sink_args *a, double *o, double *lse)
{
    nj_ref_attn_fwd_f64(D, o, lse, a->qkv, NULL, B, S, H, K, a->window, SCALE);
    nj_ref_sink_fwd_f64(o, lse, a->sink, B, S, H, D);
}

static void check_formula(int32_t window)
{
    const struct sink_args a = {random_values(B * S * WIDTH), random_values(H), NULL, window};
    double *o = zeros(B * S * OUT), *lse = zeros(B * H * S);
    attend(&a, o, lse);
    for (int n = 0; n < B * S * H; n++) {
        const int h = n % H, b = n / H / S, i = n / H % S, kv = h / (H / K);
        const double *seq = a.qkv + b * S * WIDTH, *q = seq + i * WIDTH + h * D;
        double sum = exp(a.sink[h]), want[D] = {0};
        for (int j = window > 0 && i >= window ? i - window + 1 : 0; j <= i; j++) {
            const double *k = seq + j * WIDTH + (H + kv) * D;
            const double e = exp((double)SCALE * dot(q, k, D));
            sum += e;
            for (int d = 0; d < D; d++)
                want[d] += e * k[K * D + d];
        }
        for (int d = 0; d < D; d++)
            assert_close(o[n * D + d], want[d] / sum, 1e-13);
        assert_close(lse[(b * H + h) * S + i], log(sum), 1e-13);
    }
}

static void attention_with_sinks_equals_the_formula(void **state)
{
    (void)state;
    check_formula(0);
    check_formula(5);
}

/* A score far above all others takes all weight, one far below none, to the bit. */
static void sinks_have_limits(void **state)
{
    (void)state;
    struct sink_args a = {random_values(B * S * WIDTH), zeros(H), NULL, 0};
    double *o = zeros(B * S * OUT), *lse = zeros(B * H * S);
    double *want = zeros(B * S * OUT), *want_lse = zeros(B * H * S);
    nj_ref_attn_fwd_f64(D, want, want_lse, a.qkv, NULL, B, S, H, K, 0, SCALE);
    a.sink[0] = 2000;
    for (int h = 1; h < H; h++)
        a.sink[h] = h > 1 ? -2000 : -INFINITY;
    attend(&a, o, lse);
    for (int i = 0; i < B * S * OUT; i++)
        assert_true(o[i] == (i / D % H == 0 ? 0 : want[i]));
    for (int i = 0; i < B * H * S; i++)
        assert_true(lse[i] == (i / S % H == 0 ? 2000 : want_lse[i]));
}

static double sink_loss(void *args)
{
    const struct sink_args *a = args;
    double *o = zeros(B * S * OUT), *lse = zeros(B * H * S);
    attend(a, o, lse);
    return dot(o, a->dout, B * S * OUT);
}

/* Partial sums may be more than rows. */
static void gradient_with_sinks_is_the_derivative(void **state)
{
    (void)state;
    enum { MOST = 100 };
    static const int parts[] = {1, 3, MOST};
    struct sink_args a = {random_values(B * S * WIDTH), random_values(H),
                          random_values(B * S * OUT), 0};
    double *o = zeros(B * S * OUT), *lse = zeros(B * H * S), *delta = zeros(B * H * S);
    double *grad = random_values(B * S * WIDTH), *part = random_values(MOST * H);
    for (int k = 0; k < 3; k++) {
        double dsink[H] = {0};
        a.window = k * 4;
        attend(&a, o, lse);
        nj_ref_attn_bwd_dq_f64(D, grad, delta, a.dout, a.qkv, o, lse, NULL, B, S, H, K, a.window,
                               SCALE);
        nj_ref_attn_bwd_dkv_f64(D, grad, a.dout, a.qkv, lse, delta, NULL, B, S, H, K, a.window,
                                SCALE);
        nj_ref_sink_bwd_f64(part, a.sink, lse, delta, B, S, H, parts[k]);
        nj_ref_colsum_f64(dsink, part, parts[k], H);
        check_gradient(sink_loss, &a, a.qkv, grad, B * S * WIDTH);
        check_gradient(sink_loss, &a, a.sink, dsink, H);
    }
}

/* ---- decoding ---- */

/* A sequence of two chunks in the only slot of a cache. */
enum { LENGTH = 300, P = 320, ELEMENTS = K * P * D, PART = 2 * H * (D + DECODE_STATS) };
static int32_t slots[LENGTH], places[LENGTH];

static double *sequence(void)
{
    for (int32_t i = 0; i < LENGTH; i++)
        places[i] = i;
    return random_values(LENGTH * WIDTH);
}

/* One block goes through all chunks, or each has its own; both give the same bits. */
static void check_decode(int32_t window)
{
    double *qkv = sequence(), *sink = random_values(H), *newest = qkv + (LENGTH - 1) * WIDTH;
    double *k = zeros(ELEMENTS), *v = zeros(ELEMENTS), *part = zeros(PART);
    double *all = zeros(LENGTH * OUT), *lse = zeros(H * LENGTH), *one = zeros(OUT);
    double *two = zeros(OUT);
    const int32_t *pos = places + LENGTH - 1;
    nj_ref_attn_fwd_f64(D, all, lse, qkv, NULL, 1, LENGTH, H, K, window, SCALE);
    nj_ref_sink_fwd_f64(all, lse, sink, 1, LENGTH, H, D);
    nj_ref_kv_store_f64(D, k, v, qkv, slots, places, LENGTH - 1, H, K, P, 1);
    nj_ref_attn_decode_f64(D, one, NULL, k, v, newest, NULL, NULL, sink, slots, pos, 1, H, K, P, 1,
                           1, window, SCALE, 1);
    assert_all_close(one, all + (LENGTH - 1) * OUT, OUT, 1e-13);
    nj_ref_attn_decode_f64(D, two, part, k, v, newest, NULL, NULL, sink, slots, pos, 1, H, K, P, 1,
                           2, window, SCALE, 1);
    nj_ref_attn_decode_merge_f64(D, two, part, sink, slots, pos, 1, H, 2, window);
    assert_memory_equal(one, two, OUT * sizeof *one);
}

static void decode_with_sinks_is_the_last_row(void **state)
{
    (void)state;
    check_decode(0);
    check_decode(40);
    check_decode(270);
}

/* Sinks of a cache of bytes change a head by the same factor as the merge of its chunks. */
static void decode_of_bytes_with_sinks_equals_its_merge(void **state)
{
    (void)state;
    static int32_t k[ELEMENTS / 4], v[ELEMENTS / 4];
    double *qkv = sequence(), *sink = random_values(H), *newest = qkv + (LENGTH - 1) * WIDTH;
    double *scales = zeros(2 * K * P), *part = zeros(PART), *one = zeros(OUT), *two = zeros(OUT);
    const int32_t *pos = places + LENGTH - 1;
    nj_ref_kv_store_q8_f64(D, k, v, scales, qkv, slots, places, LENGTH - 1, H, K, P, 1);
    nj_ref_attn_decode_q8_f64(D, one, NULL, k, v, scales, newest, NULL, NULL, sink, slots, pos, 1,
                              H, K, P, 1, 1, 0, SCALE, 1);
    nj_ref_attn_decode_q8_f64(D, two, part, k, v, scales, newest, NULL, NULL, sink, slots, pos, 1,
                              H, K, P, 1, 2, 0, SCALE, 1);
    nj_ref_attn_decode_merge_f64(D, two, part, sink, slots, pos, 1, H, 2, 0);
    assert_memory_equal(one, two, OUT * sizeof *one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(attention_with_sinks_equals_the_formula, reset),
        cmocka_unit_test_setup(sinks_have_limits, reset),
        cmocka_unit_test_setup(gradient_with_sinks_is_the_derivative, reset),
        cmocka_unit_test_setup(decode_with_sinks_is_the_last_row, reset),
        cmocka_unit_test_setup(decode_of_bytes_with_sinks_equals_its_merge, reset),
    };
    return cmocka_run_group_tests_name("sinks", tests, NULL, NULL);
}
