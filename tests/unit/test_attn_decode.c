/* SPDX-License-Identifier: Apache-2.0
 *
 * test_attn_decode.c: the references of the batched decoder, the oracles of its kernels: a row's result equals the last
 * row of attention over its sequence, whatever the other rows are and however its keys are chunked. On every device, a
 * row's bits do not depend on those either.
 */
#include "decoder_fixture.h"
#include "gradients.h"

#include "base/decode.h"

void nj_ref_attn_fwd_f64(int D, double *o, double *lse, const double *qkv, const int32_t *doc_start,
                         int32_t B, int32_t S, int32_t H, int32_t K, int32_t window, float scale);
void nj_ref_kv_store_f64(int D, double *k, double *v, const double *qkv, const int32_t *slot,
                         const int32_t *pos, int32_t N, int32_t H, int32_t K, int32_t P, int32_t G);
void nj_ref_rope_fwd_f64(double *qkv, const double *bias, const double *inv_freq,
                         const int32_t *pos, int32_t N, int32_t H, int32_t K, int32_t D,
                         float amplitude);
void nj_ref_attn_decode_f64(int D, double *o, double *part, double *k, double *v, const double *qkv,
                            const double *bias, const double *inv_freq, const double *sink,
                            const int32_t *slot, const int32_t *pos, int32_t R, int32_t H,
                            int32_t K, int32_t P, int32_t G, int32_t C, int32_t window, float scale,
                            float amplitude);
void nj_ref_attn_decode_merge_f64(int D, double *o, const double *part, const double *sink,
                                  const int32_t *slot, const int32_t *pos, int32_t R, int32_t H,
                                  int32_t C, int32_t window);
void nj_ref_kv_store_q8_f64(int D, int32_t *k, int32_t *v, double *kv_scale, const double *qkv,
                            const int32_t *slot, const int32_t *pos, int32_t N, int32_t H,
                            int32_t K, int32_t P, int32_t G);
void nj_ref_attn_decode_q8_f64(int D, double *o, double *part, int32_t *k, int32_t *v,
                               double *kv_scale, const double *qkv, const double *bias,
                               const double *inv_freq, const double *sink, const int32_t *slot,
                               const int32_t *pos, int32_t R, int32_t H, int32_t K, int32_t P,
                               int32_t G, int32_t C, int32_t window, float scale, float amplitude);

enum { D = 8, P = 1024, G = 6, R = 6, C = 4, TOKENS = 2000 };
static const float SCALE = 0.3f;
static const double UNTOUCHED = 12345;

/* Windows inside a block of values, of a chunk, over two, and as long as a row. */
static const int32_t windows[] = {1, 20, 256, 300, 1000};

/* Slots of the rows, and the number of keys each sees; the fourth row has none. */
static const int32_t slots[R] = {3, 0, 5, -1, 1, 4}, lengths[R] = {257, 1, 256, 30, 1000, 255};

struct sequences {
    int32_t H, K, width;
    double *qkv[R]; /* all rows of each sequence */
    double *newest; /* the last row of each */
    double *k, *v;  /* the cache, with one more slot before the first */
    size_t slot_size;
};

static double *filled(size_t n, double x)
{
    double *values = zeros(n);
    for (size_t i = 0; i < n; i++)
        values[i] = x;
    return values;
}

/* Make sequences, and store all keys except the newest in the cache, in a shuffled order. */
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
            pos[i] = (i * 7 + 3) % n; /* no length minus one is a multiple of 7 */
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

/* Return the index of dim d of the value at position j, for a slot and head. */
static int32_t value_index(int32_t j, int32_t d)
{
    return (j / CACHE_BLOCK * D + d) * CACHE_BLOCK + j % CACHE_BLOCK;
}

/* Check that the cache holds all keys and values of the sequences, each at its position, and nothing else. */
static void check_cache(const struct sequences *s)
{
    int32_t seen[G + 1] = {0}; /* keys found, by slot + 1 */
    for (int r = 0; r < R; r++)
        seen[slots[r] + 1] = slots[r] < 0 ? 0 : lengths[r];
    for (int32_t slot = -1; slot < G; slot++) {
        for (int32_t i = 0; i < s->K * P * D; i++) {
            const double *k = s->k + slot * (ptrdiff_t)s->slot_size, *v = k - s->k + s->v;
            assert_int_equal(k[i] != UNTOUCHED, i / D % P < seen[slot + 1]);
            assert_int_equal(v[i] != UNTOUCHED,
                             i / (D * CACHE_BLOCK) * CACHE_BLOCK % P + i % CACHE_BLOCK <
                                 seen[slot + 1]);
        }
    }
    for (int r = 0; r < R; r++) {
        for (int32_t i = 0; i < lengths[r] * s->K * D && slots[r] >= 0; i++) {
            const int32_t j = i / (s->K * D), kv = i / D % s->K, d = i % D;
            const double *key = s->qkv[r] + j * s->width + (s->H + kv) * D + d;
            const int32_t head = (slots[r] * s->K + kv) * P * D;
            assert_true(s->k[head + j * D + d] == *key);
            assert_true(s->v[head + value_index(j, d)] == key[s->K * D]);
        }
    }
}

static void check_rows(const struct sequences *s, const double *o, int32_t window)
{
    const int32_t out = s->H * D;
    for (int r = 0; r < R; r++) {
        const size_t mark = pool_used;
        const int32_t n = lengths[r];
        double *all = zeros((size_t)(n * out)), *lse = zeros((size_t)(n * s->H));
        nj_ref_attn_fwd_f64(D, all, lse, s->qkv[r], NULL, 1, n, s->H, s->K, window, SCALE);
        if (slots[r] >= 0)
            assert_all_close(o + r * out, all + (n - 1) * out, (size_t)out, 1e-13);
        else
            assert_true(o[r * out] == UNTOUCHED);
        pool_used = mark;
    }
}

static void check_decode(int32_t H, int32_t K, int32_t window)
{
    reset(NULL);
    struct sequences s = begin(H, K);
    int32_t pos[R];
    for (int r = 0; r < R; r++)
        pos[r] = lengths[r] - 1;
    double *o = filled((size_t)(R * H * D), UNTOUCHED);
    double *part = filled((size_t)(C * R * H * (D + DECODE_STATS)), UNTOUCHED);
    nj_ref_attn_decode_f64(D, o, part, s.k, s.v, s.newest, NULL, NULL, NULL, slots, pos, R, H, K, P,
                           G, C, window, SCALE, AMPLITUDE);
    assert_true(o[0] == UNTOUCHED);
    check_cache(&s);
    nj_ref_attn_decode_merge_f64(D, o, part, NULL, slots, pos, R, H, C, window);
    check_rows(&s, o, window);
}

static void decode_is_the_last_row(void **state)
{
    (void)state;
    check_decode(2, 2, 0);
    check_decode(7, 1, 0);
    check_decode(16, 1, 0);
    check_decode(24, 1, 0);
    check_decode(6, 2, 0);
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        check_decode(6, 2, windows[i]);
}

/* Rows have one to four chunks. */
static void check_chunks(int32_t window)
{
    enum { H = 6, K = 2 };
    reset(NULL);
    struct sequences s = begin(H, K);
    double one[R * H * D], two[R * H * D], *part = zeros(C * R * H * (D + DECODE_STATS));
    int32_t pos[R];
    for (int r = 0; r < R; r++)
        pos[r] = lengths[r] - 1;
    memset(one, 0, sizeof one);
    memset(two, 0, sizeof two);
    nj_ref_attn_decode_f64(D, one, NULL, s.k, s.v, s.newest, NULL, NULL, NULL, slots, pos, R, H, K,
                           P, G, 1, window, SCALE, AMPLITUDE);
    nj_ref_attn_decode_f64(D, two, part, s.k, s.v, s.newest, NULL, NULL, NULL, slots, pos, R, H, K,
                           P, G, C, window, SCALE, AMPLITUDE);
    nj_ref_attn_decode_merge_f64(D, two, part, NULL, slots, pos, R, H, C, window);
    assert_memory_equal(one, two, sizeof one);
}

static void a_block_for_all_chunks_gives_the_same(void **state)
{
    (void)state;
    check_chunks(0);
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        check_chunks(windows[i]);
}

/* An angle of 0 and a bias of 0 stand for NULL: they change nothing. */
static void rows_are_rotated_as_by_rope_fwd(void **state)
{
    (void)state;
    enum { H = 6, K = 2 };
    struct sequences s = begin(H, K);
    const size_t cache = (size_t)G * s.slot_size * sizeof *s.k, out = R * H * D;
    double *bias = random_values((size_t)s.width), *none = zeros((size_t)s.width);
    double *rotated = zeros((size_t)(R * s.width)), inv_freq[D / 2] = {1, 0.1, 0.01, 0};
    double *k = zeros((size_t)G * s.slot_size), *v = zeros((size_t)G * s.slot_size);
    double *one = filled(out, UNTOUCHED), *two = filled(out, UNTOUCHED);
    int32_t pos[R];
    for (int r = 0; r < R; r++)
        pos[r] = lengths[r] - 1;
    for (int given = 0; given < 4; given++) {
        const double *b = given & 1 ? bias : NULL, *f = given & 2 ? inv_freq : NULL;
        memcpy(rotated, s.newest, (size_t)(R * s.width) * sizeof *rotated);
        nj_ref_rope_fwd_f64(rotated, b, f ? f : none, pos, R, H, K, D, AMPLITUDE);
        memcpy(k, s.k, cache);
        memcpy(v, s.v, cache);
        nj_ref_attn_decode_f64(D, one, NULL, k, v, rotated, NULL, NULL, NULL, slots, pos, R, H, K,
                               P, G, 1, 0, SCALE, AMPLITUDE);
        nj_ref_attn_decode_f64(D, two, NULL, s.k, s.v, s.newest, b, f, NULL, slots, pos, R, H, K, P,
                               G, 1, 0, SCALE, AMPLITUDE);
        assert_memory_equal(one, two, out * sizeof *one);
        assert_memory_equal(k, s.k, cache);
        assert_memory_equal(v, s.v, cache);
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

/* Return element i of a key (which 0) or value (1) at position j as its byte and as its value. */
static int8_t byte_at(int which, int32_t slot, int32_t kv, int32_t j, int i)
{
    const int8_t *bytes = (const int8_t *)(which ? v8 : k8) + (slot * BYTES_K + kv) * P * D;
    return which ? bytes[value_index(j, i)] : bytes[j * D + i];
}

static double element_at(int which, int32_t slot, int32_t kv, int32_t j, int i)
{
    return byte_at(which, slot, kv, j, i) * scales[((slot * BYTES_K + kv) * P + j) * 2 + which];
}

static void bytes_are_half_a_scale_away(void **state)
{
    (void)state;
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

/* Attention over the elements themselves gives the same result. */
static void check_bytes(int32_t window)
{
    reset(NULL);
    enum { LENGTH = 300, SLOT = 4 };
    static int32_t slot[LENGTH], pos[LENGTH];
    double *qkv = random_values(LENGTH * WIDTH), *newest = qkv + (LENGTH - 1) * WIDTH;
    for (int32_t i = 0; i < LENGTH; i++)
        slot[i] = SLOT, pos[i] = i;
    const size_t part_size = 2 * BYTES_H * (D + DECODE_STATS);
    double *one = zeros(part_size), *two = zeros(part_size), *o = zeros(BYTES_H * D);
    nj_ref_kv_store_q8_f64(D, k8, v8, scales, qkv, slot, pos, LENGTH - 1, BYTES_H, BYTES_K, P, G);
    nj_ref_attn_decode_q8_f64(D, o, one, k8, v8, scales, newest, NULL, NULL, NULL, slot,
                              pos + LENGTH - 1, 1, BYTES_H, BYTES_K, P, G, 2, window, SCALE,
                              AMPLITUDE);
    for (int i = 0; i < 2 * LENGTH * BYTES_K * D; i++) {
        const int which = i % 2, j = i / 2 / D / BYTES_K, kv = i / 2 / D % BYTES_K, d = i / 2 % D;
        qkv[j * WIDTH + (BYTES_H + which * BYTES_K + kv) * D + d] =
            element_at(which, SLOT, kv, j, d);
    }
    double *k = zeros(ELEMENTS), *v = zeros(ELEMENTS);
    nj_ref_kv_store_f64(D, k, v, qkv, slot, pos, LENGTH - 1, BYTES_H, BYTES_K, P, G);
    nj_ref_attn_decode_f64(D, o, two, k, v, newest, NULL, NULL, NULL, slot, pos + LENGTH - 1, 1,
                           BYTES_H, BYTES_K, P, G, 2, window, SCALE, AMPLITUDE);
    assert_all_close(one, two, part_size, 1e-13);
}

static void bytes_stand_for_elements(void **state)
{
    (void)state;
    check_bytes(0);
    check_bytes(40);
    check_bytes(270);
}

static void rows_of_bytes_are_rotated_as_by_rope_fwd(void **state)
{
    (void)state;
    static const int32_t slot[] = {3}, pos[] = {41};
    static int32_t k_was[ELEMENTS / 4], v_was[ELEMENTS / 4];
    static double scales_were[G * BYTES_K * P * 2];
    const double inv_freq[D / 2] = {1, 0.1, 0.01, 0};
    double *row = random_values(WIDTH), *bias = random_values(WIDTH), *rotated = zeros(WIDTH);
    double *one = zeros(BYTES_H * D), *two = zeros(BYTES_H * D);
    memset(k8, 1, sizeof k8);
    memset(v8, 2, sizeof v8);
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        scales[i] = 0.01;
    memcpy(rotated, row, WIDTH * sizeof *row);
    nj_ref_rope_fwd_f64(rotated, bias, inv_freq, pos, 1, BYTES_H, BYTES_K, D, AMPLITUDE);
    nj_ref_attn_decode_q8_f64(D, one, NULL, k8, v8, scales, rotated, NULL, NULL, NULL, slot, pos, 1,
                              BYTES_H, BYTES_K, P, G, 1, 0, SCALE, AMPLITUDE);
    memcpy(k_was, k8, sizeof k8);
    memcpy(v_was, v8, sizeof v8);
    memcpy(scales_were, scales, sizeof scales);
    nj_ref_attn_decode_q8_f64(D, two, NULL, k8, v8, scales, row, bias, inv_freq, NULL, slot, pos, 1,
                              BYTES_H, BYTES_K, P, G, 1, 0, SCALE, AMPLITUDE);
    assert_memory_equal(one, two, BYTES_H * D * sizeof *one);
    assert_memory_equal(k_was, k8, sizeof k8);
    assert_memory_equal(v_was, v8, sizeof v8);
    assert_memory_equal(scales_were, scales, sizeof scales);
}

/* ---- on devices ---- */

static bool is_finite(const struct decoder *c, const unsigned char *o, int i)
{
    uint32_t x = 0;
    const size_t size = c->T == NJ_F32 ? sizeof(float) : 2;
    const uint32_t exponent = c->T == NJ_F32 ? 0x7f800000 : c->d->lp_is_f16 ? 0x7c00 : 0x7f80;
    memcpy(&x, o + (size_t)i * size, size);
    return (x & exponent) != exponent;
}

static void check_alone(struct decoder *c, const float *newest)
{
    static unsigned char all[ROWS * HEADS * SIZE * sizeof(float)], one[sizeof all / ROWS];
    const size_t bytes = HEADS * SIZE * (c->T == NJ_F32 ? sizeof(float) : 2);
    int32_t pos[ROWS];
    for (int r = 0; r < ROWS; r++)
        pos[r] = row_lengths[r] - 1;
    transfer(c, c->slot, row_slots, sizeof row_slots);
    transfer(c, c->pos, pos, sizeof pos);
    put_rows(c, newest, ROWS);
    decode(c, ROWS, 2);
    transfer(c, all, c->o, ROWS * bytes);
    for (int i = 0; i < ROWS * HEADS * SIZE; i++)
        assert_true(is_finite(c, all, i));
    for (int r = 0; r < ROWS; r++) {
        transfer(c, c->slot, row_slots + r, sizeof *row_slots);
        transfer(c, c->pos, pos + r, sizeof *pos);
        put_rows(c, newest + r * ROW, 1);
        for (int chunks = 1; chunks <= 5; chunks += 4) {
            decode(c, 1, chunks);
            transfer(c, one, c->o, bytes);
            assert_memory_equal(one, all + (size_t)r * bytes, bytes);
        }
    }
}

/* Results to compare: both caches, their scales, and the outputs. */
struct kept {
    unsigned char k[CACHE * sizeof(float)], v[CACHE * sizeof(float)];
    unsigned char scales[CACHE / SIZE * 2 * sizeof(float)], o[ROWS * HEADS * SIZE * sizeof(float)];
};

static void keep(const struct decoder *c, struct kept *to)
{
    transfer(c, to->k, c->k, sizeof to->k);
    transfer(c, to->v, c->v, sizeof to->v);
    transfer(c, to->scales, c->scales, sizeof to->scales);
    transfer(c, to->o, c->o, sizeof to->o);
}

static void restore(const struct decoder *c, const struct kept *from)
{
    transfer(c, c->k, from->k, sizeof from->k);
    transfer(c, c->v, from->v, sizeof from->v);
    transfer(c, c->scales, from->scales, sizeof from->scales);
    transfer(c, c->o, from->o, sizeof from->o);
}

static void check_rotation(struct decoder *c, const float *newest, const float *bias, int chunks)
{
    static struct kept before, one, two;
    static float frequencies[SIZE];
    void *const addend = device_bytes(c->d, ROW * sizeof(float));
    float *const inv_freq = device_bytes(c->d, sizeof frequencies);
    int32_t pos[ROWS];
    for (int r = 0; r < ROWS; r++)
        pos[r] = row_lengths[r] - 1;
    for (int i = 0; i < SIZE; i++)
        frequencies[i] = i % 8 == 7 ? 0 : powf(10000.0f, -2.0f * (float)i / (float)c->size);
    transfer(c, inv_freq, frequencies, sizeof frequencies);
    transfer(c, c->slot, row_slots, sizeof row_slots);
    transfer(c, c->pos, pos, sizeof pos);
    if (bias)
        put(c, addend, bias, ROW);
    put_rows(c, newest, ROWS);
    keep(c, &before);
    assert_int_equal(nj_rope_fwd(c->d->s, c->T,
                                 &(struct nj_rope_fwd){.qkv = c->qkv,
                                                       .bias = bias ? addend : NULL,
                                                       .inv_freq = inv_freq,
                                                       .pos = c->pos,
                                                       .N = ROWS,
                                                       .H = c->heads,
                                                       .K = c->key_heads,
                                                       .D = c->size,
                                                       .amplitude = AMPLITUDE}),
                     0);
    decode(c, ROWS, chunks);
    keep(c, &one);
    restore(c, &before);
    put_rows(c, newest, ROWS);
    c->bias = bias ? addend : NULL;
    c->inv_freq = inv_freq;
    decode(c, ROWS, chunks);
    c->bias = NULL;
    c->inv_freq = NULL;
    keep(c, &two);
    assert_memory_not_equal(&before, &two, sizeof two);
    assert_memory_equal(&one, &two, sizeof two);
    nj_free(c->d->ctx, NJ_MEM_DEVICE, addend);
    nj_free(c->d->ctx, NJ_MEM_DEVICE, inv_freq);
}

static void check_rotations(struct decoder *c, const float *newest)
{
    static float bias[ROW];
    for (int i = 0; i < ROW; i++)
        bias[i] = (float)(uniform() - 0.5);
    for (int chunks = 1; chunks <= 2; chunks++) {
        check_rotation(c, newest, bias, chunks);
        check_rotation(c, newest, NULL, chunks);
    }
}

/* Run with every kind of cache: it holds all keys except the newest of each row; the rest is NaN. */
static void with_each_cache(struct device *d, int size,
                            void (*check)(struct decoder *c, const float *newest))
{
    static float rows[LONGEST * ROW], newest[ROWS * ROW];
    struct decoder c = decoder_open(d, size);
    for (int kind = d->is_cpu ? 2 : 0; kind < 4; kind++) {
        c.T = kind < 2 ? NJ_LP : NJ_F32;
        c.bytes = kind % 2;
        decoder_forget(&c);
        for (int r = 0; r < ROWS; r++) {
            for (int i = 0; i < row_lengths[r] * ROW; i++)
                rows[i] = (float)(sqrt(12.0) * (uniform() - 0.5));
            store(&c, r, rows);
            memcpy(newest + r * ROW, rows + (row_lengths[r] - 1) * ROW, ROW * sizeof *rows);
        }
        check(&c, newest);
    }
    decoder_close(&c);
}

static void a_row_is_bitwise_identical_in_any_batch(void **state)
{
    with_each_cache(need(state), SIZE, check_alone);
}

static void check_alone_in_windows(struct decoder *c, const float *newest)
{
    static const int32_t within[] = {1, 40, 256, 270};
    for (size_t i = 0; i < sizeof within / sizeof *within; i++) {
        c->window = within[i];
        check_alone(c, newest);
    }
    c->window = 0;
}

static void a_row_with_a_window_is_bitwise_identical_in_any_batch(void **state)
{
    with_each_cache(need(state), SIZE, check_alone_in_windows);
}

static void check_alone_with_sinks(struct decoder *c, const float *newest)
{
    void *const sink = device_bytes(c->d, HEADS * sizeof(float));
    float scores[HEADS];
    for (int h = 0; h < HEADS; h++)
        scores[h] = (float)(h % 3 - 1);
    put(c, sink, scores, HEADS);
    c->sink = sink;
    check_alone(c, newest);
    c->sink = NULL;
    nj_free(c->d->ctx, NJ_MEM_DEVICE, sink);
}

static void a_row_with_sinks_is_bitwise_identical_in_any_batch(void **state)
{
    with_each_cache(need(state), SIZE, check_alone_with_sinks);
}

static void check_wide_window(struct decoder *c, const float *newest)
{
    static struct kept none, wide;
    int32_t pos[ROWS];
    for (int r = 0; r < ROWS; r++)
        pos[r] = row_lengths[r] - 1;
    transfer(c, c->slot, row_slots, sizeof row_slots);
    transfer(c, c->pos, pos, sizeof pos);
    put_rows(c, newest, ROWS);
    for (int chunks = 1; chunks <= 2; chunks++) {
        decode(c, ROWS, chunks);
        keep(c, &none);
        c->window = LONGEST;
        decode(c, ROWS, chunks);
        keep(c, &wide);
        c->window = 0;
        assert_memory_equal(&none, &wide, sizeof wide);
    }
}

static void a_window_of_all_keys_is_none(void **state)
{
    with_each_cache(need(state), SIZE, check_wide_window);
}

/* The outputs and the cache are bitwise identical. */
static void a_row_is_rotated_as_by_rope_fwd(void **state)
{
    with_each_cache(need(state), SIZE, check_rotations);
    with_each_cache(need(state), 2 * SIZE, check_rotations);
}

int main(void)
{
    const struct CMUnitTest references[] = {
        cmocka_unit_test_setup(decode_is_the_last_row, reset),
        cmocka_unit_test_setup(a_block_for_all_chunks_gives_the_same, reset),
        cmocka_unit_test_setup(rows_are_rotated_as_by_rope_fwd, reset),
        cmocka_unit_test_setup(bytes_are_half_a_scale_away, reset),
        cmocka_unit_test_setup(bytes_stand_for_elements, reset),
        cmocka_unit_test_setup(rows_of_bytes_are_rotated_as_by_rope_fwd, reset),
    };
    const struct CMUnitTest devices[] = {
        cmocka_unit_test(a_row_is_bitwise_identical_in_any_batch),
        cmocka_unit_test(a_row_with_a_window_is_bitwise_identical_in_any_batch),
        cmocka_unit_test(a_row_with_sinks_is_bitwise_identical_in_any_batch),
        cmocka_unit_test(a_window_of_all_keys_is_none),
        cmocka_unit_test(a_row_is_rotated_as_by_rope_fwd),
    };
    return cmocka_run_group_tests_name("references", references, NULL, NULL) +
           RUN_ON_DEVICES(devices);
}
