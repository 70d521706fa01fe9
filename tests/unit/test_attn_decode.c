/* SPDX-License-Identifier: Apache-2.0
 *
 * test_attn_decode.c: the references of the batched decoder, which are the oracles of its kernels: what a row gives
 * equals the last row of attention over its sequence, whatever the other rows are and however its keys are cut.
 */
#include "gradients.h"

#include "decode.h"

void nj_ref_attn_fwd_f64(int D, double *o, double *lse, const double *qkv, const int32_t *doc_start,
                         int32_t B, int32_t S, int32_t H, int32_t K, float scale);
void nj_ref_kv_store_f64(int D, double *k, double *v, const double *qkv, const int32_t *slot,
                         const int32_t *pos, int32_t N, int32_t H, int32_t K, int32_t P, int32_t G);
void nj_ref_attn_decode_f64(int D, double *o, double *part, double *k, double *v, const double *qkv,
                            const int32_t *slot, const int32_t *pos, int32_t R, int32_t H,
                            int32_t K, int32_t P, int32_t G, int32_t C, float scale);
void nj_ref_attn_decode_merge_f64(int D, double *o, const double *part, const int32_t *slot,
                                  const int32_t *pos, int32_t R, int32_t H, int32_t C);
void nj_ref_kv_store_q8_f64(int D, int32_t *k, int32_t *v, double *kv_scale, const double *qkv,
                            const int32_t *slot, const int32_t *pos, int32_t N, int32_t H,
                            int32_t K, int32_t P, int32_t G);
void nj_ref_attn_decode_q8_f64(int D, double *o, double *part, int32_t *k, int32_t *v,
                               double *kv_scale, const double *qkv, const int32_t *slot,
                               const int32_t *pos, int32_t R, int32_t H, int32_t K, int32_t P,
                               int32_t G, int32_t C, float scale);

enum { D = 8, P = 1024, G = 6, R = 6, C = 4, TOKENS = 2000 };
static const float SCALE = 0.3f;
static const double UNTOUCHED = 12345;

/* Rows, their slots and how many keys they see; the fourth has none. */
static const int32_t slots[R] = {3, 0, 5, -1, 1, 4}, lengths[R] = {257, 1, 256, 30, 1000, 255};

struct sequences {
    int32_t H, K, width;
    double *qkv[R]; /* of each row's sequence */
    double *newest; /* their last rows */
    double *k, *v;  /* the cache, with a slot more before the first */
    size_t slot_size;
};

static double *filled(size_t n, double x)
{
    double *values = zeros(n);
    for (size_t i = 0; i < n; i++)
        values[i] = x;
    return values;
}

/* Sequences with all keys but the newest in the cache, stored in an order of its own. */
static struct sequences begin(int32_t H, int32_t K)
{
    struct sequences s = {.H = H, .K = K, .width = (H + 2 * K) * D};
    s.slot_size = (size_t)K * P * D;
    s.k = filled((G + 1) * s.slot_size, UNTOUCHED) + s.slot_size;
    s.v = filled((G + 1) * s.slot_size, UNTOUCHED) + s.slot_size;
    s.newest = zeros((size_t)(R * s.width));
    for (int r = 0; r < R; r++) {
        static int32_t slot[TOKENS], pos[TOKENS];
        const int32_t n = lengths[r] - 1;
        s.qkv[r] = random_values((size_t)(lengths[r] * s.width));
        memcpy(s.newest + r * s.width, s.qkv[r] + n * s.width, (size_t)s.width * sizeof(double));
        const size_t mark = pool_used;
        double *rows = zeros((size_t)((n + 1) * s.width));
        for (int32_t i = 0; i < n; i++) {
            pos[i] = (i * 7 + 3) % n; /* no length less one is a multiple of 7 */
            slot[i] = slots[r];
            memcpy(rows + i * s.width, s.qkv[r] + pos[i] * s.width,
                   (size_t)s.width * sizeof(double));
        }
        if (n > 0)
            nj_ref_kv_store_f64(D, s.k, s.v, rows, slot, pos, n, H, K, P, G);
        pool_used = mark;
    }
    return s;
}

/* Whether the newest keys and values lie in the cache, and nothing lies behind them or in slots that no row has. */
static void check_cache(const struct sequences *s)
{
    int32_t seen[G + 1] = {0}; /* by slot + 1: keys in it */
    for (int r = 0; r < R; r++)
        seen[slots[r] + 1] = slots[r] < 0 ? 0 : lengths[r];
    for (int32_t slot = -1; slot < G; slot++) {
        for (int32_t i = 0; i < s->K * P * D; i++) {
            const double *k = s->k + slot * (ptrdiff_t)s->slot_size, *v = k - s->k + s->v;
            assert_int_equal(k[i] != UNTOUCHED, i / D % P < seen[slot + 1]);
            assert_int_equal(v[i] != UNTOUCHED, i % P < seen[slot + 1]);
        }
    }
    for (int r = 0; r < R; r++) {
        for (int32_t i = 0; i < s->K * D && slots[r] >= 0; i++) {
            const double *row = s->newest + r * s->width + s->H * D;
            const size_t head = ((size_t)(slots[r] * s->K + i / D)) * P * D;
            const size_t last = (size_t)lengths[r] - 1;
            assert_true(s->k[head + last * D + (size_t)(i % D)] == row[i]);
            assert_true(s->v[head + (size_t)(i % D) * P + last] == row[s->K * D + i]);
        }
    }
}

static void check_rows(const struct sequences *s, const double *o)
{
    const int32_t out = s->H * D;
    for (int r = 0; r < R; r++) {
        const size_t mark = pool_used;
        const int32_t n = lengths[r];
        double *all = zeros((size_t)(n * out)), *lse = zeros((size_t)(n * s->H));
        nj_ref_attn_fwd_f64(D, all, lse, s->qkv[r], NULL, 1, n, s->H, s->K, SCALE);
        if (slots[r] >= 0)
            assert_all_close(o + r * out, all + (n - 1) * out, (size_t)out, 1e-13);
        else
            assert_true(o[r * out] == UNTOUCHED);
        pool_used = mark;
    }
}

static void check_decode(int32_t H, int32_t K)
{
    reset(NULL);
    struct sequences s = begin(H, K);
    int32_t pos[R];
    for (int r = 0; r < R; r++)
        pos[r] = lengths[r] - 1;
    double *o = filled((size_t)(R * H * D), UNTOUCHED);
    double *part = filled((size_t)(C * R * H * (D + DECODE_STATS)), UNTOUCHED);
    nj_ref_attn_decode_f64(D, o, part, s.k, s.v, s.newest, slots, pos, R, H, K, P, G, C, SCALE);
    assert_true(o[0] == UNTOUCHED);
    check_cache(&s);
    nj_ref_attn_decode_merge_f64(D, o, part, slots, pos, R, H, C);
    check_rows(&s, o);
}

static void decode_is_the_last_row(void **state)
{
    (void)state;
    check_decode(2, 2);
    check_decode(7, 1);
    check_decode(16, 1);
    check_decode(24, 1);
    check_decode(6, 2);
}

/* Of rows in one chunk, which C = 1 finishes by itself. */
static void one_chunk_needs_no_merge(void **state)
{
    (void)state;
    enum { H = 6, K = 2, ROWS = 3 };
    static const int32_t rows[ROWS] = {1, 2, 5};
    struct sequences s = begin(H, K);
    for (int i = 0; i < ROWS; i++) {
        const int r = rows[i];
        const int32_t pos = lengths[r] - 1;
        double one[H * D], two[H * D], part[2 * H * (D + DECODE_STATS)];
        const double *row = s.newest + r * s.width;
        nj_ref_attn_decode_f64(D, one, NULL, s.k, s.v, row, slots + r, &pos, 1, H, K, P, G, 1,
                               SCALE);
        nj_ref_attn_decode_f64(D, two, part, s.k, s.v, row, slots + r, &pos, 1, H, K, P, G, 2,
                               SCALE);
        nj_ref_attn_decode_merge_f64(D, two, part, slots + r, &pos, 1, H, 2);
        assert_memory_equal(one, two, sizeof one);
    }
}

/* ---- a cache of bytes ---- */

enum {
    BYTES_H = 6,
    BYTES_K = 2,
    WIDTH = (BYTES_H + 2 * BYTES_K) * D,
    ELEMENTS = G * BYTES_K * P * D
};
static int32_t k8[ELEMENTS / 4], v8[ELEMENTS / 4];
static double scales[G * BYTES_K * P * 2];

/* Key (which 0) or value (1), element i of position j, as its byte and as what that stands for. */
static int8_t byte_at(int which, int32_t slot, int32_t kv, int32_t j, int i)
{
    const int8_t *bytes = (const int8_t *)(which ? v8 : k8) + (slot * BYTES_K + kv) * P * D;
    return which ? bytes[i * P + j] : bytes[j * D + i];
}

static double element_at(int which, int32_t slot, int32_t kv, int32_t j, int i)
{
    return byte_at(which, slot, kv, j, i) * scales[((slot * BYTES_K + kv) * P + j) * 2 + which];
}

static void bytes_are_half_a_scale_away(void **state)
{
    (void)state;
    enum { ROWS = 3 };
    static const int32_t slot[ROWS] = {2, -1, 2}, pos[ROWS] = {7, 8, 9};
    double *qkv = random_values(ROWS * WIDTH);
    memset(qkv + 2 * WIDTH + BYTES_H * D, 0, D * sizeof(double)); /* a key of the last row */
    memset(k8, 1, sizeof k8);
    memset(v8, 1, sizeof v8);
    nj_ref_kv_store_q8_f64(D, k8, v8, scales, qkv, slot, pos, ROWS, BYTES_H, BYTES_K, P, G);
    for (int i = 0; i < 2 * ROWS * BYTES_K * D; i++) {
        const int which = i % 2, r = i / 2 / D / BYTES_K, kv = i / 2 / D % BYTES_K, d = i / 2 % D;
        const double *x = qkv + r * WIDTH + (BYTES_H + which * BYTES_K + kv) * D;
        double most = 0;
        for (int e = 0; e < D; e++)
            most = fmax(most, fabs(x[e]));
        if (slot[r] < 0) {
            assert_int_equal(byte_at(which, 2, kv, pos[r], d), 1);
            continue;
        }
        if (fabs(x[d]) == most)
            assert_int_equal(byte_at(which, 2, kv, pos[r], d), most > 0 ? copysign(127, x[d]) : 0);
        const double error = fabs(element_at(which, 2, kv, pos[r], d) - x[d]);
        assert_true(error <= most / 254 * 1.00001);
    }
}

/* Attention over the elements themselves gives the same. */
static void bytes_stand_for_elements(void **state)
{
    (void)state;
    enum { LENGTH = 300, SLOT = 4 };
    static int32_t slot[LENGTH], pos[LENGTH];
    double *qkv = random_values(LENGTH * WIDTH), *newest = qkv + (LENGTH - 1) * WIDTH;
    for (int32_t i = 0; i < LENGTH; i++)
        slot[i] = SLOT, pos[i] = i;
    const size_t part_size = 2 * BYTES_H * (D + DECODE_STATS);
    double *one = zeros(part_size), *two = zeros(part_size), *o = zeros(BYTES_H * D);
    nj_ref_kv_store_q8_f64(D, k8, v8, scales, qkv, slot, pos, LENGTH - 1, BYTES_H, BYTES_K, P, G);
    nj_ref_attn_decode_q8_f64(D, o, one, k8, v8, scales, newest, slot, pos + LENGTH - 1, 1, BYTES_H,
                              BYTES_K, P, G, 2, SCALE);
    for (int i = 0; i < 2 * LENGTH * BYTES_K * D; i++) {
        const int which = i % 2, j = i / 2 / D / BYTES_K, kv = i / 2 / D % BYTES_K, d = i / 2 % D;
        qkv[j * WIDTH + (BYTES_H + which * BYTES_K + kv) * D + d] =
            element_at(which, SLOT, kv, j, d);
    }
    double *k = zeros(ELEMENTS), *v = zeros(ELEMENTS);
    nj_ref_kv_store_f64(D, k, v, qkv, slot, pos, LENGTH - 1, BYTES_H, BYTES_K, P, G);
    nj_ref_attn_decode_f64(D, o, two, k, v, newest, slot, pos + LENGTH - 1, 1, BYTES_H, BYTES_K, P,
                           G, 2, SCALE);
    assert_all_close(one, two, part_size, 1e-13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(decode_is_the_last_row, reset),
        cmocka_unit_test_setup(one_chunk_needs_no_merge, reset),
        cmocka_unit_test_setup(bytes_are_half_a_scale_away, reset),
        cmocka_unit_test_setup(bytes_stand_for_elements, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
