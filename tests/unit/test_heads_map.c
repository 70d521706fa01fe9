/* SPDX-License-Identifier: Apache-2.0
 *
 * test_heads_map.c: checks of the double reference of heads_map. Heads of 96 elements, padded to 128, attend as written
 * in plain C without padding; heads whose first elements rotate as neighbours become those that rope_fwd rotates; the
 * inverse maps give gradients.
 */
#include "gradients.h"

void nj_ref_heads_map_f64(double *y, double *part, const double *x, const double *bias,
                          const int32_t *map, const int32_t *map_v, int32_t N, int32_t H, int32_t K,
                          int32_t D_in, int32_t D_out, int32_t P);
void nj_ref_colsum_f64(double *dst, const double *part, int32_t P, int32_t C);
void nj_ref_rope_fwd_f64(double *qkv, const double *bias, const double *inv_freq,
                         const int32_t *pos, int32_t N, int32_t H, int32_t K, int32_t D,
                         float amplitude);
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

enum {
    N = 21,
    P = 4,
    H = 4,
    K = 2,
    HEADS = H + 2 * K,
    SMALL = 96,
    LARGE = 128,
    NARROW = HEADS * SMALL,
    WIDE = HEADS * LARGE
};
static const float SCALE = 0.1f;

/* Pad the halves of a head apart, so that its pairs stay half a head from each other. */
static void pad_halves(int32_t *map)
{
    for (int j = 0; j < LARGE; j++) {
        const int i = j % (LARGE / 2);
        map[j] = i < SMALL / 2 ? i + j / (LARGE / 2) * (SMALL / 2) : -1;
    }
}

static void pad_end(int32_t *map)
{
    for (int j = 0; j < LARGE; j++)
        map[j] = j < SMALL ? j : -1;
}

static void invert(int32_t *inverse, const int32_t *map)
{
    for (int j = 0; j < LARGE; j++)
        if (map[j] >= 0)
            inverse[map[j]] = j;
}

struct padding {
    int32_t map[LARGE], map_v[LARGE], back[SMALL], back_v[SMALL];
};

static struct padding padding(void)
{
    struct padding p;
    pad_halves(p.map);
    pad_end(p.map_v);
    invert(p.back, p.map);
    invert(p.back_v, p.map_v);
    return p;
}

/* Return the output of causal attention of one head of one row, by its formula, without padding. */
static void naive_row(const double *qkv, int h, int i, double *o)
{
    const double *q = qkv + i * NARROW + h * SMALL;
    const int kv = h / (H / K);
    double sum = 0;
    memset(o, 0, SMALL * sizeof *o);
    for (int j = 0; j <= i; j++) {
        const double *k = qkv + j * NARROW + (H + kv) * SMALL, *v = k + K * SMALL;
        const double e = exp((double)SCALE * dot(q, k, SMALL));
        sum += e;
        for (int d = 0; d < SMALL; d++)
            o[d] += e * v[d];
    }
    for (int d = 0; d < SMALL; d++)
        o[d] /= sum;
}

struct attended {
    double *padded, *o, *lse; /* rows of LARGE elements a head */
};

static struct attended attend(const struct padding *p, const double *x, const double *bias)
{
    struct attended a = {zeros(N * WIDE), zeros(N * H * LARGE), zeros(N * H)};
    nj_ref_heads_map_f64(a.padded, NULL, x, bias, p->map, p->map_v, N, H, K, SMALL, LARGE, P);
    nj_ref_attn_fwd_f64(LARGE, a.o, a.lse, a.padded, NULL, 1, N, H, K, 0, SCALE);
    return a;
}

static void padded_heads_attend_as_their_own_size(void **state)
{
    (void)state;
    const struct padding p = padding();
    double *x = random_values(N * NARROW), *bias = random_values(NARROW), row[SMALL];
    double *o = zeros(N * H * SMALL);
    const struct attended a = attend(&p, x, bias);
    nj_ref_heads_map_f64(o, NULL, a.o, NULL, p.back_v, p.back_v, N, H, 0, LARGE, SMALL, P);
    for (int i = 0; i < N * NARROW; i++)
        x[i] += bias[i % NARROW];
    for (int i = 0; i < N; i++)
        for (int h = 0; h < H; h++) {
            naive_row(x, h, i, row);
            assert_all_close(o + (i * H + h) * SMALL, row, SMALL, 1e-13);
        }
    for (int i = 0; i < N * WIDE; i++) {
        const int is_value = i % WIDE / LARGE >= H + K,
                  from = (is_value ? p.map_v : p.map)[i % LARGE];
        const double *head = x + i / LARGE * SMALL;
        assert_true(a.padded[i] == (from < 0 ? 0 : head[from]));
    }
    for (int i = 0; i < N * H * LARGE; i++)
        assert_true(i % LARGE < SMALL || a.o[i] == 0);
}

static void value_heads_have_their_own_map(void **state)
{
    (void)state;
    enum { D = 8 };
    static const int32_t same[D] = {0, 1, 2, 3, 4, 5, 6, 7}, turned[D] = {7, 6, 5, 4, 3, 2, 1, 0};
    double *x = random_values(HEADS * D), *y = zeros(HEADS * D);
    nj_ref_heads_map_f64(y, NULL, x, NULL, same, turned, 1, H, K, D, D, 1);
    for (int h = 0; h < HEADS; h++)
        for (int j = 0; j < D; j++)
            assert_true(y[h * D + j] == x[h * D + (h < H + K ? j : D - 1 - j)]);
}

/* Rotate the first TURNED elements of each head in pairs of neighbours, and compare with rope_fwd between two maps. */
static void neighbours_rotate_as_halves(void **state)
{
    (void)state;
    enum { D = 64, TURNED = 48, WIDTH = HEADS * D };
    int32_t map[D], same[D], back[D], pos[N];
    double *inv_freq = zeros(D / 2), *x = random_values(N * WIDTH), *want = copy(x, N * WIDTH);
    double *y = zeros(N * WIDTH), *got = zeros(N * WIDTH);
    for (int i = 0; i < D / 2; i++) {
        if (i < TURNED / 2)
            inv_freq[i] = pow(100, -2.0 * i / TURNED);
        map[i] = 2 * i;
        map[i + D / 2] = 2 * i + 1;
    }
    for (int j = 0; j < D; j++) {
        same[j] = j;
        back[map[j]] = j;
    }
    for (int n = 0; n < N; n++) {
        pos[n] = 3 * n;
        for (int i = 0; i < (H + K) * D; i += 2) {
            const double angle = (double)((float)pos[n] * (float)inv_freq[i % D / 2]);
            double *pair = want + n * WIDTH + i;
            const double a = pair[0], b = pair[1];
            pair[0] = a * cos(angle) - b * sin(angle);
            pair[1] = b * cos(angle) + a * sin(angle);
        }
    }
    nj_ref_heads_map_f64(y, NULL, x, NULL, map, same, N, H, K, D, D, P);
    nj_ref_rope_fwd_f64(y, NULL, inv_freq, pos, N, H, K, D, 1);
    nj_ref_heads_map_f64(got, NULL, y, NULL, back, same, N, H, K, D, D, P);
    assert_all_close(got, want, N * WIDTH, 1e-14);
}

struct args {
    struct padding p;
    double *x, *bias, *dout;
};

static double loss(void *of)
{
    const struct args *a = of;
    return dot(attend(&a->p, a->x, a->bias).o, a->dout, N * H * LARGE);
}

static void inverse_maps_give_the_gradients(void **state)
{
    (void)state;
    struct args a = {padding(), random_values(N * NARROW), random_values(NARROW),
                     random_values(N * H * LARGE)};
    const struct attended f = attend(&a.p, a.x, a.bias);
    double *dqkv = zeros(N * WIDE), *delta = zeros(N * H), *dx = zeros(N * NARROW);
    double *part = random_values(P * NARROW), *dbias = zeros(NARROW);
    nj_ref_attn_bwd_dq_f64(LARGE, dqkv, delta, a.dout, f.padded, f.o, f.lse, NULL, 1, N, H, K, 0,
                           SCALE);
    nj_ref_attn_bwd_dkv_f64(LARGE, dqkv, a.dout, f.padded, f.lse, delta, NULL, 1, N, H, K, 0,
                            SCALE);
    nj_ref_heads_map_f64(dx, part, dqkv, NULL, a.p.back, a.p.back_v, N, H, K, LARGE, SMALL, P);
    nj_ref_colsum_f64(dbias, part, P, NARROW);
    check_gradient(loss, &a, a.x, dx, N * NARROW);
    check_gradient(loss, &a, a.bias, dbias, NARROW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(padded_heads_attend_as_their_own_size, reset),
        cmocka_unit_test_setup(value_heads_have_their_own_map, reset),
        cmocka_unit_test_setup(neighbours_rotate_as_halves, reset),
        cmocka_unit_test_setup(inverse_maps_give_the_gradients, reset),
    };
    return cmocka_run_group_tests_name("heads_map", tests, NULL, NULL);
}
