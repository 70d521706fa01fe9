/* SPDX-License-Identifier: Apache-2.0
 *
 * test_score.c: log-probabilities of given tokens: they equal those of an evaluation, sum to a distribution, and texts
 * do not affect each other.
 */
#include "engine_fixture.h"

enum { B = 2, S = 16, ROWS = B * S };

static struct train_options options_of(void)
{
    struct train_options o = small_options;
    o.steps = 0;
    return o;
}

/* Return a batch that asks for all targets of b. */
static struct score_batch batch_of(const struct batch *b, int32_t *at, int32_t *target)
{
    struct score_batch s = {b->ids, b->pos, b->doc_start, at, target, 0};
    for (int i = 0; i < b->B * b->S; i++)
        if (b->target[i] != IGNORED) {
            at[s.count] = i;
            target[s.count++] = b->target[i];
        }
    return s;
}

/* Return the sum over all data, in batches. */
static double sum_of(struct engine *e, struct batch_source *d, int64_t *count)
{
    double sum = 0;
    struct batch b;
    *count = 0;
    while (batches_next(d, &b) == 0) {
        int32_t at[ROWS], target[ROWS];
        float ce[ROWS];
        const struct score_batch s = batch_of(&b, at, target);
        ok(engine_score(e, &s, ce));
        for (int i = 0; i < s.count; i++)
            sum += (double)ce[i];
        *count += s.count;
    }
    return sum;
}

static void scores_are_the_losses_of_an_evaluation(void **state)
{
    (void)state;
    const struct train_options o = options_of();
    const char *const teachers[] = {NULL, "teacher"};
    for (int i = 0; i < 2; i++) {
        struct engine *e = open_engine("qwen2", teachers[i], &o);
        struct batch_source *d = open_tokens("masked.bin", &o, true);
        struct eval_result r;
        int64_t count;
        ok(engine_eval(e, d, &r));
        batches_seek(d, &(struct data_state){0});
        const double sum = sum_of(e, d, &count);
        assert_int_equal(count, r.valid_tokens);
        const double want = r.ce_loss * (double)count;
        if (!(fabs(sum - want) <= 1e-5 * want))
            fail_msg("%.9g, expected %.9g", sum, want);
        batches_close(d);
        engine_destroy(e);
    }
}

/* A batch of padding after a text. */
struct rows_of_text {
    int32_t ids[ROWS], pos[ROWS], doc_start[ROWS];
};

static void put(struct rows_of_text *r, int row, int at, const int32_t *ids, int count)
{
    for (int i = 0; i < count; i++) {
        r->ids[row * S + at + i] = ids[i];
        r->pos[row * S + at + i] = i;
        r->doc_start[row * S + at + i] = at;
    }
}

static void probabilities_of_a_position_sum_to_one(void **state)
{
    (void)state;
    struct train_options o = options_of();
    o.seq_len = 32; /* at least as many positions as there are tokens */
    struct engine *e = open_engine("qwen3", NULL, &o);
    int32_t ids[64] = {5, 9, 2}, pos[64], doc_start[64], at[VOCAB], target[VOCAB];
    float ce[VOCAB];
    double sum = 0;
    for (int i = 0; i < 64; i++) {
        pos[i] = i % 32;
        doc_start[i] = 0;
    }
    for (int v = 0; v < VOCAB; v++) {
        at[v] = 2;
        target[v] = v;
    }
    const struct score_batch s = {ids, pos, doc_start, at, target, VOCAB};
    ok(engine_score(e, &s, ce));
    for (int v = 0; v < VOCAB; v++)
        sum += exp(-(double)ce[v]);
    if (!(fabs(sum - 1) <= 1e-5))
        fail_msg("%.9g", sum);
    engine_destroy(e);
}

static void packed_texts_do_not_see_each_other(void **state)
{
    (void)state;
    const struct train_options o = options_of();
    const int32_t a[] = {3, 7, 11, 2}, b[] = {40, 1, 30, 8, 22};
    struct engine *e = open_engine("qwen2", NULL, &o);
    struct rows_of_text alone = {{0}, {0}, {0}}, packed = alone;
    const int32_t alone_at[] = {4}, packed_at[] = {S + 4 + 4}, target[] = {17};
    float want, got;
    put(&alone, 0, 0, b, 5);
    put(&packed, 1, 0, a, 4);
    put(&packed, 1, 4, b, 5);
    const struct score_batch first = {alone.ids, alone.pos, alone.doc_start, alone_at, target, 1};
    const struct score_batch then = {packed.ids, packed.pos, packed.doc_start,
                                     packed_at,  target,     1};
    ok(engine_score(e, &first, &want));
    ok(engine_score(e, &then, &got));
    if (!(fabsf(got - want) <= 1e-5f * want))
        fail_msg("%.9g, alone %.9g", (double)got, (double)want);
    engine_destroy(e);
}

static void targets_outside_of_a_row_are_refused(void **state)
{
    (void)state;
    const struct train_options o = options_of();
    struct engine *e = open_engine("qwen2", NULL, &o);
    struct rows_of_text r = {{0}, {0}, {0}};
    int32_t at[ROWS + 1] = {0}, target[ROWS + 1] = {0};
    float ce[ROWS + 1];
    struct score_batch s = {r.ids, r.pos, r.doc_start, at, target, ROWS};
    ok(engine_score(e, &s, ce));
    s.count = ROWS + 1;
    assert_int_equal(engine_score(e, &s, ce), NJ_E_ARG);
    s.count = 1;
    at[0] = ROWS;
    assert_int_equal(engine_score(e, &s, ce), NJ_E_ARG);
    at[0] = -1;
    assert_int_equal(engine_score(e, &s, ce), NJ_E_ARG);
    at[0] = 0;
    target[0] = VOCAB;
    assert_int_equal(engine_score(e, &s, ce), NJ_E_FORMAT);
    target[0] = 0;
    r.ids[3] = -1;
    assert_int_equal(engine_score(e, &s, ce), NJ_E_FORMAT);
    engine_destroy(e);
}

/* ---- a reader that has enough ---- */

struct reader {
    int next, generated[3]; /* tokens of each prompt */
};
static const int32_t word[] = {4};

static int next(void *user, struct decode_prompt *out)
{
    struct reader *r = user;
    if (r->next == 3)
        return 0;
    *out = (struct decode_prompt){
        .ids = word, .count = 1, .most = 30, .user = &r->generated[r->next++]};
    return 1;
}

static int generated(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                     enum decode_end end)
{
    const struct reader *r = user;
    int *tokens = p->user;
    (void)ids;
    (void)end;
    *tokens += count;
    return tokens == &r->generated[1] && *tokens >= 5;
}

static void a_reader_may_end_a_text(void **state)
{
    (void)state;
    struct train_options o = options_of();
    o.decode_rows = 2;
    o.decode_positions = 32;
    struct engine *e = open_engine("qwen2", NULL, &o);
    struct reader r = {0};
    const struct decode_io io = {.next = next, .generated = generated, .user = &r};
    ok(engine_decode(e, &io));
    assert_int_equal(r.generated[0], 30);
    assert_in_range(r.generated[1], 5, 12); /* the window in which it came */
    assert_int_equal(r.generated[2], 30);
    engine_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_the_losses_of_an_evaluation),
        cmocka_unit_test(probabilities_of_a_position_sum_to_one),
        cmocka_unit_test(packed_texts_do_not_see_each_other),
        cmocka_unit_test(targets_outside_of_a_row_are_refused),
        cmocka_unit_test(a_reader_may_end_a_text),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
