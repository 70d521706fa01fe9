/* SPDX-License-Identifier: Apache-2.0
 *
 * test_decode.c: prompts continued by the decoder: its logits equal those of a forward pass, texts do not depend on
 * those written beside them, and all ways in which texts end.
 */
#include "engine/engine.h"
#include "net/forward.h"

enum { PROMPTS = 7, BOOK_TEXTS = PROMPTS, BOOK_TOKENS = 40 };
#include "book.h"
#include "recurrent_model.h"

static int decode_as(struct engine *e, struct book *b, const struct decode_prompt *prompts,
                     int count, struct decode_sampling how, const int32_t *stop, int stops)
{
    const struct decode_io io = {
        .next = book_next,
        .generated = book_generated,
        .user = b,
        .how = how,
        .stop = stop,
        .stops = stops,
    };
    book_open(b, prompts, count);
    return engine_decode(e, &io);
}

static int decode(struct engine *e, struct book *b, const struct decode_prompt *prompts, int count,
                  float temperature, const int32_t *stop, int stops)
{
    const struct decode_sampling how = {.temperature = temperature, .seed = 3};
    return decode_as(e, b, prompts, count, how, stop, stops);
}

static struct train_options options_of(int rows, int positions)
{
    struct train_options o = small_options;
    o.steps = 0;
    o.batch_size = 1;
    o.seq_len = 96;
    o.decode_rows = rows;
    o.decode_positions = positions;
    return o;
}

/* Compute the logits of the last of `count` ids by a forward pass over all of them. */
static void forward_logits(struct engine *e, const int32_t *ids, int count, double *out)
{
    struct work w = engine_work(e);
    for (int i = 0; i < e->o.seq_len; i++) {
        e->mem.rows.ids[i] = i < count ? ids[i] : 0;
        e->mem.rows.pos[i] = i;
        e->mem.rows.doc_start[i] = 0;
    }
    net_forward(&w, &e->student, &e->mem.student, &e->mem.rows);
    ok(w.rc);
    const int C = e->student.c.hidden_size;
    const float *y = (float *)(void *)e->mem.student.y + (count - 1) * C;
    const float *head = (float *)net_weight(&e->student, e->student.p.head);
    for (int v = 0; v < VOCAB; v++) {
        out[v] = 0;
        for (int c = 0; c < C; c++)
            out[v] += (double)y[c] * (double)head[v * C + c];
    }
}

static void logits_are_those_of_a_forward_pass(void **state)
{
    (void)state;
    const char *const models[] = {"qwen2", "qwen3", "gelu", "mistral", "lfm2", "qwen3.5"};
    const struct train_options o = options_of(1, 96);
    for (size_t k = 0; k < sizeof models / sizeof *models; k++)
        for (int length = 1; length < 40; length += 19) {
            struct engine *e = open_engine(models[k], NULL, &o);
            int32_t ids[96];
            double want[VOCAB], largest = 0;
            for (int i = 0; i < length; i++)
                ids[i] = (5 * i + 2) % VOCAB;
            const struct decode_prompt p = {.ids = ids, .count = length, .most = 30};
            struct book b;
            ok(decode(e, &b, &p, 1, 1, NULL, 0));
            assert_int_equal(b.length[0], 30);
            float logits[VOCAB];
            memcpy(logits, e->mem.decoder.logits, sizeof logits);
            /* the last one was not an input */
            memcpy(&ids[length], b.text[0], sizeof(int32_t) * 29);
            forward_logits(e, ids, length + 29, want);
            for (int v = 0; v < VOCAB; v++)
                largest = fmax(largest, fabs(want[v]));
            for (int v = 0; v < VOCAB; v++)
                assert_true(fabs(want[v] - (double)logits[v]) < 1e-5 * largest);
            engine_destroy(e);
        }
}

/* Compare the last logits of long texts with those of a forward pass, up to a part of the largest. */
static void check_long_contexts(const char *name, struct model_config c, int bytes, double part)
{
    enum { LONG = 640, SAID = 30 };
    struct train_options o = options_of(2, LONG);
    static int32_t ids[LONG];
    double want[VOCAB], largest = 0;
    c.max_positions = LONG;
    ok(init_model(path_of(name), &c, 2, NJ_TYPE_F32, 1 << 30, NULL));
    o.seq_len = LONG;
    o.decode_bytes = bytes;
    for (int length = 240; length < 560; length += 270) {
        struct engine *e = open_engine(name, NULL, &o);
        for (int i = 0; i < length; i++)
            ids[i] = (5 * i + i / 7) % VOCAB;
        const struct decode_prompt p = {.ids = ids, .count = length, .most = SAID};
        struct book b;
        ok(decode(e, &b, &p, 1, 1, NULL, 0));
        float logits[VOCAB];
        memcpy(logits, e->mem.decoder.logits, sizeof logits);
        memcpy(&ids[length], b.text[0], sizeof(int32_t) * (SAID - 1));
        forward_logits(e, ids, length + SAID - 1, want);
        for (int v = 0; v < VOCAB; v++)
            largest = fmax(largest, fabs(want[v]));
        for (int v = 0; v < VOCAB; v++)
            assert_true(fabs(want[v] - (double)logits[v]) < part * largest);
        engine_destroy(e);
    }
}

/* Keys after the first 256 are in separate chunks, whose sums are merged. A window may begin in any of them. */
static void contexts_of_several_chunks_are_those_of_a_forward_pass(void **state)
{
    (void)state;
    check_long_contexts("long", qwen3, 0, 1e-5);
    check_long_contexts("long-20", mistral_config(20), 0, 1e-5);
    check_long_contexts("long-300", mistral_config(300), 0, 1e-5);
}

/* Return a model of which the second layer has a window. */
static struct model_config mixed_config(int window)
{
    struct model_config c = qwen3;
    c.arch.kind[1] = c.arch.kind[0];
    c.arch.kind[1].block[PLAIN_ATTENTION].window = window;
    c.arch.kind_of[1] = 1;
    return c;
}

static void layers_with_and_without_a_window_share_a_cache(void **state)
{
    (void)state;
    check_long_contexts("mixed", mixed_config(20), 0, 1e-5);
    check_long_contexts("mixed-bytes", mixed_config(20), 1, 2e-2);
}

/* Prompts and texts are longer than a ring, or not, and more than the slots, so that each follows others there. */
static void texts_follow_others_in_a_ring(void **state)
{
    (void)state;
    enum { LONG = 320, MOST = 220 };
    static int32_t ids[PROMPTS][MOST];
    struct decode_prompt prompts[PROMPTS];
    struct train_options o = options_of(1, LONG);
    struct model_config c = mixed_config(20);
    struct book alone, b;
    c.max_positions = o.seq_len = LONG;
    ok(init_model(path_of("turns"), &c, 2, NJ_TYPE_F32, 1 << 30, NULL));
    for (int i = 0; i < PROMPTS; i++) {
        prompts[i] = (struct decode_prompt){
            .ids = ids[i], .count = 1 + i * 97 % MOST, .most = 9 + 5 * i, .number = i};
        for (int k = 0; k < prompts[i].count; k++)
            ids[i][k] = (7 * i + 3 * k + k / 5) % VOCAB;
    }
    for (int i = 0; i < PROMPTS; i++) {
        struct engine *e = open_engine("turns", NULL, &o);
        ok(decode(e, &b, &prompts[i], 1, 0.9f, NULL, 0));
        memcpy(alone.text[i], b.text[0], sizeof b.text[0]);
        engine_destroy(e);
    }
    for (o.decode_rows = 1; o.decode_rows <= 3; o.decode_rows++) {
        struct engine *e = open_engine("turns", NULL, &o);
        ok(decode(e, &b, prompts, PROMPTS, 0.9f, NULL, 0));
        assert_memory_equal(b.text, alone.text, sizeof b.text);
        engine_destroy(e);
    }
}

/* Return the bytes that a run's plan has for two slots of 640 positions. */
static size_t planned(struct model_config c, int bytes)
{
    static int models;
    char name[32];
    struct train_options o = options_of(2, 640);
    snprintf(name, sizeof name, "planned-%d", models++);
    c.max_positions = 640;
    o.decode_bytes = bytes;
    ok(init_model(path_of(name), &c, 2, NJ_TYPE_F32, 1 << 30, NULL));
    struct engine *e = open_engine(name, NULL, &o);
    const size_t out = region_bytes(&e->plan, "activations");
    engine_destroy(e);
    return out;
}

/* A window of 33 needs 64 places, one of 34 another 64, and one above 545 all 640. Either model
 * has two key heads with a window. */
static void a_window_bounds_the_cache(void **state)
{
    (void)state;
    static const struct {
        int window, places;
    } rows[] = {{1, 64}, {33, 64}, {34, 128}, {300, 384}, {545, 576}, {546, 640}, {639, 640}};
    for (int bytes = 0; bytes < 2; bytes++) {
        const size_t of_place = 2 * (bytes ? 64 + sizeof(float) : 64 * sizeof(float));
        const size_t all = planned(mistral_config(0), bytes), mixed = planned(qwen3, bytes);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const size_t saved = 2 * 2 * (size_t)(640 - rows[i].places) * of_place;
            assert_int_equal(all - planned(mistral_config(rows[i].window), bytes), saved);
            assert_int_equal(mixed - planned(mixed_config(rows[i].window), bytes), saved);
        }
    }
}

/* Rounded to 1/254 of the largest element of a head, keys and values move the logits by a few thousandths of their
 * size, and take a quarter of float32's memory. */
static void check_cache_of_bytes(const char *model)
{
    struct train_options o = options_of(1, 96);
    int32_t text[45];
    const struct decode_prompt same = {.ids = text, .count = 45, .most = 1};
    float logits[2][VOCAB];
    size_t memory[2];
    double largest = 0, apart = 0;
    for (int i = 0; i < 45; i++)
        text[i] = 7 * i % VOCAB;
    for (int bytes = 0; bytes < 2; bytes++) {
        o.decode_bytes = bytes;
        struct engine *e = open_engine(model, NULL, &o);
        struct book b;
        ok(decode(e, &b, &same, 1, 0, NULL, 0));
        memcpy(logits[bytes], e->mem.decoder.logits, sizeof logits[bytes]);
        memory[bytes] = e->mem.decoder.cache.element;
        engine_destroy(e);
    }
    for (int v = 0; v < VOCAB; v++) {
        largest = fmax(largest, fabs((double)logits[0][v]));
        apart = fmax(apart, fabs((double)logits[0][v] - (double)logits[1][v]));
    }
    assert_true(apart > 0);
    assert_true(apart < 2e-2 * largest);
    assert_int_equal(memory[0], 4 * memory[1]);
}

static void a_cache_of_bytes_is_close(void **state)
{
    (void)state;
    check_cache_of_bytes("qwen3");
    check_cache_of_bytes("mistral");
}

/* Temperature 0 takes the most likely token of the last logits. */
static void greedy_takes_the_likeliest(void **state)
{
    (void)state;
    const struct train_options o = options_of(1, 64);
    struct engine *e = open_engine("qwen3", NULL, &o);
    const int32_t ids[] = {4, 9, 2};
    const struct decode_prompt p = {.ids = ids, .count = 3, .most = 5};
    struct book b;
    ok(decode(e, &b, &p, 1, 0, NULL, 0));
    const float *logits = (float *)(void *)e->mem.decoder.logits;
    for (int v = 0; v < VOCAB; v++)
        assert_true(logits[v] <= logits[b.text[0][4]]);
    engine_destroy(e);
}

/* Compute the logits after these tokens with the penalty of transformers: once per distinct token, however often it
 * occurs. */
static void penalized_logits(struct engine *e, const int32_t *ids, int count, double factor,
                             double *out)
{
    bool had[VOCAB] = {false};
    forward_logits(e, ids, count, out);
    for (int i = 0; i < count; i++)
        had[ids[i]] = true;
    for (int v = 0; v < VOCAB; v++)
        if (had[v])
            out[v] = out[v] < 0 ? out[v] * factor : out[v] / factor;
}

/* Logits above and below 0 change in different ways; the slot was used before by a text with the same tokens. */
static void a_penalty_lowers_what_was_there(void **state)
{
    (void)state;
    enum { COUNT = 30 };
    const struct train_options o = options_of(1, 64);
    const struct decode_sampling how = {.repetition = 1.5f};
    struct engine *e = open_engine("qwen3", NULL, &o);
    int32_t ids[COUNT];
    double plain[VOCAB], want[VOCAB];
    int below = 0, above = 0;
    struct book b;
    for (int i = 0; i < COUNT; i++)
        ids[i] = 5 * i % VOCAB;
    const struct decode_prompt one = {.ids = ids, .count = COUNT, .most = 1}, p[] = {one, one};
    ok(decode_as(e, &b, p, 2, how, NULL, 0));
    float got[VOCAB];
    memcpy(got, e->mem.decoder.logits, sizeof got);
    forward_logits(e, ids, COUNT, plain);
    penalized_logits(e, ids, COUNT, 1.5, want);
    for (int v = 0; v < VOCAB; v++) {
        below += want[v] < plain[v] && plain[v] < 0;
        above += want[v] < plain[v] && plain[v] > 0;
        assert_true(fabs((double)got[v] - want[v]) <= 1e-4 * fmax(1, fabs(want[v])));
    }
    assert_true(below > 0 && above > 0);
    engine_destroy(e);
}

static void check_penalized(struct engine *e, const int32_t *ids, int count, double factor,
                            int32_t generated)
{
    double logits[VOCAB], largest = -INFINITY;
    penalized_logits(e, ids, count, factor, logits);
    for (int v = 0; v < VOCAB; v++)
        largest = fmax(largest, logits[v]);
    if (!(logits[generated] >= largest - 1e-4 * fabs(largest)))
        fail_msg("token %d of logit %g after %d, where the largest is %g", generated,
                 logits[generated], count, largest);
}

/* There are more prompts than slots; a text must not inherit the tokens of the one before it in its slot. */
static void repeated_tokens_are_penalized(void **state)
{
    (void)state;
    static const float factors[] = {1.5f, 0.7f};
    const struct train_options o = options_of(3, 80);
    struct engine *e = open_engine("qwen3", NULL, &o);
    struct decode_prompt prompts[PROMPTS];
    int32_t ids[PROMPTS][BOOK_TOKENS], all[2 * BOOK_TOKENS];
    struct book plain, b;
    make_prompts(prompts, ids, PROMPTS);
    ok(decode(e, &plain, prompts, PROMPTS, 0, NULL, 0));
    for (int k = 0; k < 2; k++) {
        const struct decode_sampling how = {.repetition = factors[k]};
        ok(decode_as(e, &b, prompts, PROMPTS, how, NULL, 0));
        assert_true(memcmp(b.text, plain.text, sizeof b.text) != 0);
        for (int i = 0; i < PROMPTS; i++) {
            memcpy(all, prompts[i].ids, (size_t)prompts[i].count * sizeof *all);
            memcpy(all + prompts[i].count, b.text[i], sizeof b.text[i]);
            assert_int_equal(b.length[i], prompts[i].most);
            for (int n = 0; n < b.length[i]; n++)
                check_penalized(e, all, prompts[i].count + n, (double)factors[k], b.text[i][n]);
        }
    }
    ok(decode_as(e, &b, prompts, PROMPTS, (struct decode_sampling){.repetition = 1}, NULL, 0));
    assert_memory_equal(b.text, plain.text, sizeof b.text);
    engine_destroy(e);
}

static void check_neighbours(const char *model)
{
    static const int rows[] = {1, 2, 3, 5, PROMPTS};
    struct decode_prompt prompts[PROMPTS];
    int32_t ids[PROMPTS][BOOK_TOKENS];
    struct book alone, b;
    make_prompts(prompts, ids, PROMPTS);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const struct train_options o = options_of(rows[r], 80);
        struct engine *e = open_engine(model, NULL, &o);
        amplify(&e->student);
        ok(decode(e, r == 0 ? &alone : &b, prompts, PROMPTS, 0.9f, NULL, 0));
        for (int i = 0; i < PROMPTS && r > 0; i++) {
            assert_int_equal(b.end[i], DECODE_LENGTH);
            assert_int_equal(b.length[i], prompts[i].most);
            assert_memory_equal(b.text[i], alone.text[i], sizeof b.text[i]);
        }
        engine_destroy(e);
    }
}

static void texts_do_not_depend_on_their_neighbours(void **state)
{
    (void)state;
    check_neighbours("qwen3");
    check_neighbours("lfm2");
    check_neighbours("qwen3.5");
}

/* A prompt with another number leads to another text. */
static void numbers_make_texts_differ(void **state)
{
    (void)state;
    const struct train_options o = options_of(2, 64);
    struct engine *e = open_engine("qwen2", NULL, &o);
    const int32_t ids[] = {4};
    const struct decode_prompt p[] = {{.ids = ids, .count = 1, .most = 30, .number = 1},
                                      {.ids = ids, .count = 1, .most = 30, .number = 2}};
    struct book b, again;
    ok(decode(e, &b, p, 2, 1, NULL, 0));
    assert_true(memcmp(b.text[0], b.text[1], 30 * sizeof(int32_t)) != 0);
    ok(decode(e, &again, p, 2, 1, NULL, 0));
    assert_memory_equal(&b.text, &again.text, sizeof b.text);
    engine_destroy(e);
}

static void a_stop_token_ends_a_text(void **state)
{
    (void)state;
    const struct train_options o = options_of(2, 80);
    struct engine *e = open_engine("qwen2", NULL, &o);
    struct decode_prompt prompts[PROMPTS];
    int32_t ids[PROMPTS][BOOK_TOKENS];
    struct book free, b;
    make_prompts(prompts, ids, PROMPTS);
    ok(decode(e, &free, prompts, PROMPTS, 1, NULL, 0));
    const int32_t stop[] = {free.text[0][3], free.text[4][0]};
    ok(decode(e, &b, prompts, PROMPTS, 1, stop, 2));
    for (int i = 0; i < PROMPTS; i++) {
        int length = 0;
        while (length < prompts[i].most && free.text[i][length] != stop[0] &&
               free.text[i][length] != stop[1])
            length++;
        const bool stopped = length < prompts[i].most;
        assert_int_equal(b.end[i], stopped ? DECODE_STOPPED : DECODE_LENGTH);
        assert_int_equal(b.length[i], length + stopped);
        assert_memory_equal(b.text[i], free.text[i], (size_t)b.length[i] * sizeof(int32_t));
    }
    engine_destroy(e);
}

static void prompts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    const struct train_options o = options_of(1, 64), none = options_of(0, 0);
    const int32_t ids[64] = {0}, beyond[] = {VOCAB};
    const struct decode_prompt bad[] = {
        {.ids = ids, .count = 0, .most = 1},    {.ids = ids, .count = 1, .most = 0},
        {.ids = ids, .count = 64, .most = 1},   {.ids = ids, .count = 1, .most = 64},
        {.ids = beyond, .count = 1, .most = 1},
    };
    struct engine *e = open_engine("qwen2", NULL, &o), *f = open_engine("qwen2", NULL, &none);
    struct book b;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(decode(e, &b, &bad[i], 1, 1, NULL, 0), NJ_E_ARG);
    const struct decode_prompt good = {.ids = ids, .count = 63, .most = 1};
    ok(decode(e, &b, &good, 1, 1, NULL, 0));
    assert_int_equal(decode(f, &b, &good, 1, 1, NULL, 0), NJ_E_ARG);
    assert_non_null(strstr(fail_text(), "without a decoder"));
    engine_destroy(e);
    engine_destroy(f);
}

static void logits_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    const struct train_options o = options_of(1, 64);
    struct engine *e = open_engine("qwen2", NULL, &o);
    const int32_t ids[] = {4};
    const struct decode_prompt p = {.ids = ids, .count = 1, .most = 5};
    struct book b;
    float *norm = (float *)net_weight(&e->student, e->student.p.norm);
    for (int c = 0; c < e->student.c.hidden_size; c++)
        norm[c] = NAN;
    assert_int_equal(decode(e, &b, &p, 1, 1, NULL, 0), NJ_E_FORMAT);
    engine_destroy(e);
}

/* A training step and the decoder share memory, and neither affects the other. */
static void check_turns(const char *model)
{
    struct train_options o = small_options;
    const int32_t ids[] = {4, 5, 6};
    const struct decode_prompt p = {.ids = ids, .count = 3, .most = 13};
    struct step_result a, b;
    struct book first, second;
    struct engine *plain = open_engine(model, "teacher", &o);
    o.decode_rows = 2;
    struct engine *e = open_engine(model, "teacher", &o);
    struct batch_source *d = open_tokens("tokens.bin", &o, false),
                        *f = open_tokens("tokens.bin", &o, false);
    for (int step = 0; step < 3; step++) {
        ok(decode(e, &first, &p, 1, 1, NULL, 0));
        ok(decode(e, &second, &p, 1, 1, NULL, 0));
        assert_memory_equal(first.text, second.text, sizeof first.text);
        ok(engine_step(plain, d, &a));
        ok(engine_step(e, f, &b));
        assert_true(a.loss == b.loss && a.grad_norm == b.grad_norm);
    }
    batches_close(d);
    batches_close(f);
    engine_destroy(e);
    engine_destroy(plain);
}

static void training_and_texts_take_turns(void **state)
{
    (void)state;
    check_turns("qwen2");
    check_turns("lfm2");
    check_turns("qwen3.5");
}

static int write_models(void **state)
{
    const int rc = fixture_open(state);
    write_recurrent("nojit-tiny-lfm2", "lfm2", 0);
    write_recurrent("nojit-tiny-qwen3.5", "qwen3.5", 2);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_a_forward_pass),
        cmocka_unit_test(contexts_of_several_chunks_are_those_of_a_forward_pass),
        cmocka_unit_test(layers_with_and_without_a_window_share_a_cache),
        cmocka_unit_test(texts_follow_others_in_a_ring),
        cmocka_unit_test(a_window_bounds_the_cache),
        cmocka_unit_test(a_cache_of_bytes_is_close),
        cmocka_unit_test(greedy_takes_the_likeliest),
        cmocka_unit_test(a_penalty_lowers_what_was_there),
        cmocka_unit_test(repeated_tokens_are_penalized),
        cmocka_unit_test(texts_do_not_depend_on_their_neighbours),
        cmocka_unit_test(numbers_make_texts_differ),
        cmocka_unit_test(a_stop_token_ends_a_text),
        cmocka_unit_test(prompts_that_do_not_fit_are_refused),
        cmocka_unit_test(logits_that_are_not_finite_are_refused),
        cmocka_unit_test(training_and_texts_take_turns),
    };
    return cmocka_run_group_tests(tests, write_models, fixture_close);
}
