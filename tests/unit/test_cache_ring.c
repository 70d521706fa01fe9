/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cache_ring.c: a slot of the KV cache with fewer places than its sequence has positions: with a window, decoding
 * is attention over the whole sequence, on every device with the bits of a slot that keeps all positions.
 */
#include "decoder_fixture.h"
#include "gradients.h"

#include "base/decode.h"

void nj_ref_attn_fwd_f64(int D, double *o, double *lse, const double *qkv, const int32_t *doc_start,
                         int32_t B, int32_t S, int32_t H, int32_t K, int32_t window, float scale);
void nj_ref_kv_store_f64(int D, double *k, double *v, const double *qkv, const int32_t *slot,
                         const int32_t *pos, int32_t N, int32_t H, int32_t K, int32_t P, int32_t G);
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

/* Windows with the fewest places that they need, and with more. */
static const struct ring {
    int32_t window, places;
} rings[] = {{1, 64}, {33, 64}, {64, 128}, {97, 128}, {128, 192}, {161, 192}, {225, 256}};
enum { RINGS = sizeof rings / sizeof *rings };

/* ---- references ---- */

enum {
    D = 8,
    H = 6,
    K = 2,
    G = 3,
    WHOLE = 448, /* places for all positions */
    WIDTH = (H + 2 * K) * D,
    OUT = H * D,
    R = 2,
    STEPS = 24,
    PASS = 430, /* rows of the pass over prompts, the last of which have no slot */
    CHUNKS = 2,
    ELEMENTS = G * K * WHOLE * D
};
static const float SCALE = 0.3f;
static const int32_t slots[R] = {2, 0}, prompts[R] = {370, 50};

/* Two sequences, and the pass over their prompts. */
struct sequences {
    double *rows[R], *pass;
    int32_t slot[PASS], pos[PASS];
};

static void begin(struct sequences *s)
{
    int32_t n = 0;
    reset(NULL);
    s->pass = zeros(PASS * WIDTH);
    for (int r = 0; r < R; r++) {
        s->rows[r] = random_values((size_t)((prompts[r] + STEPS) * WIDTH));
        memcpy(s->pass + n * WIDTH, s->rows[r], (size_t)(prompts[r] * WIDTH) * sizeof(double));
        for (int32_t i = 0; i < prompts[r]; i++, n++)
            s->slot[n] = slots[r], s->pos[n] = i;
    }
    for (; n < PASS; n++)
        s->slot[n] = -1, s->pos[n] = 0;
}

/* Gather the rows of a step. */
static void gather(const struct sequences *s, int step, double *newest, int32_t *pos)
{
    for (int r = 0; r < R; r++) {
        pos[r] = prompts[r] + step;
        memcpy(newest + r * WIDTH, s->rows[r] + pos[r] * WIDTH, WIDTH * sizeof(double));
    }
}

/* Attention over the whole sequences gives the same; odd steps have two chunks. */
static void check_ring(struct ring ring)
{
    static struct sequences s;
    begin(&s);
    const size_t size = (size_t)(K * ring.places * D);
    double *k = zeros(G * size), *v = zeros(G * size), *want[R];
    double *part = zeros(CHUNKS * R * H * (D + DECODE_STATS)), *o = zeros(R * OUT);
    double newest[R * WIDTH];
    for (int r = 0; r < R; r++) {
        const int32_t n = prompts[r] + STEPS;
        want[r] = zeros((size_t)(n * OUT));
        nj_ref_attn_fwd_f64(D, want[r], zeros((size_t)(n * H)), s.rows[r], NULL, 1, n, H, K,
                            ring.window, SCALE);
    }
    for (size_t i = 0; i < G * size; i++)
        k[i] = v[i] = NAN;
    nj_ref_kv_store_f64(D, k, v, s.pass, s.slot, s.pos, PASS, H, K, ring.places, G);
    for (int step = 0; step < STEPS; step++) {
        const int32_t C = 1 + step % CHUNKS;
        int32_t pos[R];
        gather(&s, step, newest, pos);
        nj_ref_attn_decode_f64(D, o, part, k, v, newest, NULL, NULL, NULL, slots, pos, R, H, K,
                               ring.places, G, C, ring.window, SCALE, 1);
        if (C > 1)
            nj_ref_attn_decode_merge_f64(D, o, part, NULL, slots, pos, R, H, C, ring.window);
        for (int r = 0; r < R; r++)
            assert_all_close(o + r * OUT, want[r] + pos[r] * OUT, OUT, 1e-13);
    }
    for (size_t i = size; i < 2 * size; i++)
        assert_true(isnan(k[i]) && isnan(v[i]));
}

static void a_ring_holds_what_a_window_sees(void **state)
{
    (void)state;
    for (int i = 0; i < RINGS; i++)
        check_ring(rings[i]);
}

/* A cache of bytes. */
struct bytes {
    int32_t places, k[ELEMENTS / 4], v[ELEMENTS / 4];
    double scales[G * K * WHOLE * 2], o[R * OUT];
};

static void store_bytes(struct bytes *c, const struct sequences *s, int32_t places)
{
    c->places = places;
    memset(c->k, 1, sizeof c->k);
    memset(c->v, 1, sizeof c->v);
    for (size_t i = 0; i < sizeof c->scales / sizeof *c->scales; i++)
        c->scales[i] = NAN;
    nj_ref_kv_store_q8_f64(D, c->k, c->v, c->scales, s->pass, s->slot, s->pos, PASS, H, K, places,
                           G);
}

static void decode_bytes(struct bytes *c, const double *newest, const int32_t *pos, int32_t window)
{
    nj_ref_attn_decode_q8_f64(D, c->o, NULL, c->k, c->v, c->scales, newest, NULL, NULL, NULL, slots,
                              pos, R, H, K, c->places, G, 1, window, SCALE, 1);
}

static void a_ring_of_bytes_holds_what_a_window_sees(void **state)
{
    (void)state;
    static struct sequences s;
    static struct bytes whole, ring;
    double newest[R * WIDTH];
    int32_t pos[R];
    for (int i = 0; i < RINGS; i++) {
        begin(&s);
        store_bytes(&whole, &s, WHOLE);
        store_bytes(&ring, &s, rings[i].places);
        for (int step = 0; step < STEPS; step++) {
            gather(&s, step, newest, pos);
            decode_bytes(&whole, newest, pos, rings[i].window);
            decode_bytes(&ring, newest, pos, rings[i].window);
            assert_true(isfinite(whole.o[0]));
            assert_memory_equal(ring.o, whole.o, sizeof whole.o);
        }
    }
}

/* ---- on devices ---- */

enum { MORE = POSITIONS - LONGEST, LONG = LONGEST + MORE };
static float values[ROWS][LONG * ROW];
struct outputs {
    unsigned char step[MORE][ROWS * HEADS * SIZE * sizeof(float)];
};

/* Store prompts and decode a few steps, with one chunk and two in turn. */
static void write_texts(struct decoder *c, struct outputs *out)
{
    float newest[ROWS * ROW];
    int32_t pos[ROWS];
    memset(out, 0, sizeof *out);
    decoder_forget(c);
    for (int r = 0; r < ROWS; r++)
        store(c, r, values[r]);
    transfer(c, c->slot, row_slots, sizeof row_slots);
    for (int i = 0; i < MORE; i++) {
        for (int r = 0; r < ROWS; r++) {
            pos[r] = row_lengths[r] - 1 + i;
            memcpy(newest + r * ROW, values[r] + pos[r] * ROW, ROW * sizeof *newest);
        }
        transfer(c, c->pos, pos, sizeof pos);
        put_rows(c, newest, ROWS);
        decode(c, ROWS, 1 + i % 2);
        transfer(c, out->step[i], c->o, ROWS * HEADS * SIZE * (c->T == NJ_F32 ? sizeof(float) : 2));
    }
}

/* The products of the CPU's reference round as their number of columns has it. */
static void check_outputs(const struct decoder *c, const struct outputs *got,
                          const struct outputs *want)
{
    const float *a = (const float *)(const void *)got, *b = (const float *)(const void *)want;
    if (!c->d->is_cpu)
        assert_memory_equal(got, want, sizeof *want);
    for (size_t i = 0; c->d->is_cpu && i < sizeof *want / sizeof *b; i++)
        assert_close((double)a[i], (double)b[i], 1e-5);
}

static void check_rings(struct device *d, int size)
{
    static struct outputs want, got;
    struct decoder c = decoder_open(d, size);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < LONG * ROW; i++)
            values[r][i] = (float)(sqrt(12.0) * (uniform() - 0.5));
    for (int kind = d->is_cpu ? 2 : 0; kind < 4; kind++) {
        c.T = kind < 2 ? NJ_LP : NJ_F32;
        c.bytes = kind % 2;
        for (int i = 0; i < RINGS; i += d->is_cpu ? 3 : 1) {
            c.window = rings[i].window;
            c.places = POSITIONS;
            write_texts(&c, &want);
            c.places = rings[i].places;
            write_texts(&c, &got);
            check_outputs(&c, &got, &want);
        }
    }
    decoder_close(&c);
}

static void a_ring_gives_the_bits_of_a_whole_slot(void **state)
{
    struct device *d = need(state);
    check_rings(d, SIZE);
    if (!d->is_cpu)
        check_rings(d, 2 * SIZE);
}

int main(void)
{
    const struct CMUnitTest references[] = {
        cmocka_unit_test(a_ring_holds_what_a_window_sees),
        cmocka_unit_test(a_ring_of_bytes_holds_what_a_window_sees),
    };
    const struct CMUnitTest devices[] = {
        cmocka_unit_test(a_ring_gives_the_bits_of_a_whole_slot),
    };
    return cmocka_run_group_tests_name("references", references, NULL, NULL) +
           RUN_ON_DEVICES(devices);
}
