/* SPDX-License-Identifier: Apache-2.0
 *
 * test_speculate.c: speculative decoding: texts are the teacher's, whichever model drafts them, and the number of
 * accepted tokens follows from the two distributions.
 */
#include "decode/rejection.h"
#include "engine/engine.h"

enum { PROMPTS = 7, S = 48, MANY = 6000, BOOK_TEXTS = MANY, BOOK_TOKENS = 30 };
#include "book.h"
#include "recurrent_model.h"

static int speculate(struct engine *e, struct book *b, int draft, const int32_t *stop, int stops,
                     struct speculate_result *out)
{
    const struct decode_io io = {.next = book_next,
                                 .generated = book_generated,
                                 .user = b,
                                 .how = {.seed = 3},
                                 .stop = stop,
                                 .stops = stops};
    return engine_speculate(e, &io, draft, out);
}

static struct train_options options_of(int rows, int length)
{
    struct train_options o = small_options;
    o.steps = 0;
    o.batch_size = rows;
    o.seq_len = length;
    return o;
}

/* Sharpen the distributions: those of random weights are flat, and any draft is accepted. */
static void sharpen(struct net *n)
{
    float *norm = (float *)net_weight(n, n->p.norm);
    for (int c = 0; c < n->c.hidden_size; c++)
        norm[c] *= 4;
}

static struct engine *open_pair(const char *student, const char *teacher, int rows, int length)
{
    const struct train_options o = options_of(rows, length);
    struct engine *e = open_engine(student, teacher, &o);
    sharpen(&e->student);
    sharpen(&e->teacher.net);
    return e;
}

/* Compute the probabilities after the first `count` ids of each row of a batch, for VOCAB rows of S at most. */
static void probabilities(struct engine *e, bool teacher, const int32_t *ids, int count,
                          double (*out)[VOCAB])
{
    const int B = e->o.batch_size, length = e->o.seq_len;
    static const int32_t doc_start[VOCAB * S];
    static float logits[VOCAB][VOCAB];
    int32_t pos[VOCAB * S], at[VOCAB];
    float *to[VOCAB];
    assert_true(B <= VOCAB && length <= S);
    for (int i = 0; i < B * length; i++)
        pos[i] = i % length;
    for (int b = 0; b < B; b++) {
        at[b] = b * length + count - 1;
        to[b] = logits[b];
    }
    const struct logits_batch batch = {teacher, ids, pos, doc_start, at, to, B};
    ok(engine_logits(e, &batch));
    for (int b = 0; b < B; b++)
        assert_true(softmax_row(logits[b], VOCAB, out[b]));
}

/* The logits equal those of engine_score(); a teacher's equal those of the same model as a student. */
static void logits_are_those_of_the_models(void **state)
{
    (void)state;
    enum { B = 11, L = 5 };
    const struct train_options o = options_of(B, L);
    struct engine *e = open_engine("qwen2", "qwen3", &o), *f = open_engine("qwen3", NULL, &o);
    int32_t ids[B * L], pos[B * L], doc_start[B * L] = {0}, at[B], target[B];
    double p[B][VOCAB], of_teacher[B][VOCAB];
    float ce[B];
    for (int i = 0; i < B * L; i++) {
        ids[i] = (11 * i + i / 7) % VOCAB;
        pos[i] = i % L;
    }
    for (int b = 0; b < B; b++) {
        at[b] = b * L + 2;
        target[b] = 5 * b;
    }
    const struct score_batch scored = {ids, pos, doc_start, at, target, B};
    ok(engine_score(e, &scored, ce));
    probabilities(e, false, ids, 3, p);
    for (int b = 0; b < B; b++)
        assert_true(fabs(log(p[b][target[b]]) + (double)ce[b]) < 1e-5);
    probabilities(e, true, ids, 3, of_teacher);
    probabilities(f, false, ids, 3, p);
    assert_memory_equal(p, of_teacher, sizeof p);
    engine_destroy(e);
    engine_destroy(f);
}

static void drafts_are_accepted_as_often_as_expected(void **state)
{
    (void)state;
    enum { TEXTS = 80 };
    struct engine *e = open_pair("qwen2", "teacher", 8, S);
    int32_t ids[TEXTS][BOOK_TOKENS];
    struct decode_prompt prompts[TEXTS];
    for (int draft = 1; draft <= 4; draft += 3) {
        struct speculate_result r;
        struct book b;
        int64_t turns = 0, drafted = 0;
        make_prompts(prompts, ids, TEXTS);
        book_open(&b, prompts, TEXTS);
        ok(speculate(e, &b, draft, NULL, 0, &r));
        for (int k = 0; k <= SPECULATE_DRAFT_MOST; k++) {
            assert_true(k <= draft || r.turns[k] == 0);
            turns += r.turns[k];
            drafted += k * r.turns[k];
        }
        assert_true(r.texts == TEXTS && r.drafted == drafted && r.tokens == r.accepted + turns);
        assert_true(r.tested > 800 && r.tested <= r.drafted);
        const double n = (double)r.tested, accepted = (double)r.accepted;
        print_message("%g accepted, %g expected +- %g of %g\n", accepted, r.expected,
                      sqrt(r.variance), n);
        assert_true(accepted > 0.2 * n && accepted < 0.8 * n);
        assert_true(fabs(accepted - r.expected) < 3 * sqrt(r.variance));
        assert_true(r.variance < n / 4);
    }
    engine_destroy(e);
}

/* A text has two tokens, of which one is drafted, after the prompt. */
static void expected_is_the_sum_of_the_smaller_probabilities(void **state)
{
    (void)state;
    struct engine *e = open_pair("qwen2", "teacher", 1, S);
    int32_t ids[S] = {4, 9, 2};
    const struct decode_prompt prompt = {.ids = ids, .count = 3, .most = 2};
    struct speculate_result r;
    struct book b;
    double p[1][VOCAB], q[1][VOCAB], sum = 0;
    book_open(&b, &prompt, 1);
    ok(speculate(e, &b, 4, NULL, 0, &r));
    probabilities(e, true, ids, 3, p);
    probabilities(e, false, ids, 3, q);
    for (int v = 0; v < VOCAB; v++)
        sum += p[0][v] < q[0][v] ? p[0][v] : q[0][v];
    assert_int_equal(r.tested, 1);
    assert_true(fabs(r.expected - sum) < 1e-12 && sum > 0.1 && sum < 0.9);
    assert_true(fabs(r.variance - sum * (1 - sum)) < 1e-12);
    engine_destroy(e);
}

/* Return Pearson's statistic in standard deviations from its mean; cells of less than five are merged. */
static double deviations(const int *seen, const double *p, int total)
{
    double sum = 0, rest_seen = 0, rest = 0;
    int cells = 0;
    for (int v = 0; v < VOCAB; v++) {
        const double want = p[v] * total;
        if (want < 5) {
            rest += want;
            rest_seen += seen[v];
            continue;
        }
        sum += (seen[v] - want) * (seen[v] - want) / want;
        cells++;
    }
    sum += rest > 0 ? (rest_seen - rest) * (rest_seen - rest) / rest : 0;
    return (sum - cells) / sqrt(2.0 * cells);
}

/* Compute the teacher's distributions of the first and the second token after a prompt. */
static void first_tokens(struct engine *e, const int32_t *prompt, int count, double *first,
                         double *second)
{
    const int length = e->o.seq_len;
    int32_t ids[VOCAB * S] = {0};
    static double p[VOCAB][VOCAB];
    for (int v = 0; v < VOCAB; v++) {
        memcpy(&ids[v * length], prompt, (size_t)count * sizeof *ids);
        ids[v * length + count] = v;
    }
    probabilities(e, true, ids, count, p);
    memcpy(first, p[0], sizeof p[0]);
    probabilities(e, true, ids, count + 1, p);
    for (int w = 0; w < VOCAB; w++) {
        second[w] = 0;
        for (int v = 0; v < VOCAB; v++)
            second[w] += first[v] * p[v][w];
    }
}

static void texts_are_distributed_as_the_teachers(void **state)
{
    (void)state;
    struct engine *e = open_pair("qwen2", "teacher", VOCAB, 8);
    const int32_t ids[] = {4, 9, 2};
    static struct decode_prompt prompts[MANY];
    double p[2][VOCAB];
    first_tokens(e, ids, 3, p[0], p[1]);
    for (int draft = 1; draft <= 2; draft++) {
        struct speculate_result r;
        struct book b;
        int seen[2][VOCAB] = {{0}};
        for (int i = 0; i < MANY; i++)
            prompts[i] = (struct decode_prompt){
                .ids = ids, .count = 3, .most = 3, .number = draft * MANY + i};
        book_open(&b, prompts, MANY);
        ok(speculate(e, &b, draft, NULL, 0, &r));
        for (int i = 0; i < MANY; i++)
            for (int k = 0; k < 2; k++)
                seen[k][b.text[i][k]]++;
        for (int k = 0; k < 2; k++) {
            const double apart = deviations(seen[k], p[k], MANY);
            print_message("token %d, drafts of %d: %.2f\n", k + 1, draft, apart);
            assert_true(fabs(apart) < 3);
        }
    }
    engine_destroy(e);
}

/* Some texts are longer than the window, if there is one. */
static void check_own_drafts(const char *model)
{
    struct engine *e = open_pair(model, model, 2, S);
    int32_t ids[PROMPTS][BOOK_TOKENS];
    struct decode_prompt prompts[PROMPTS];
    struct speculate_result r;
    struct book b;
    make_prompts(prompts, ids, PROMPTS);
    book_open(&b, prompts, PROMPTS);
    ok(speculate(e, &b, 4, NULL, 0, &r));
    assert_true(r.drafted > 50 && r.tested == r.drafted && r.accepted == r.drafted);
    assert_true(fabs(r.expected - (double)r.tested) < 1e-9 && fabs(r.variance) < 1e-9);
    engine_destroy(e);
}

static void a_teacher_accepts_all_of_its_own(void **state)
{
    (void)state;
    check_own_drafts("qwen3");
    check_own_drafts("mistral");
}

/* Leave a token all of the probability: that of the largest logit. */
static void decide(struct net *n)
{
    float *norm = (float *)net_weight(n, n->p.norm);
    for (int c = 0; c < n->c.hidden_size; c++)
        norm[c] = 1e5f * (norm[c] + n->c.gain_offset);
}

/* Compare texts that a model drafts and a decided teacher verifies, in passes over all of a text, with those that the
 * teacher's decoder writes from its states. Return the share of accepted tokens. */
static double check_greedy(const char *draft, const char *teacher)
{
    struct train_options o = options_of(3, S);
    struct engine *e = open_pair(draft, teacher, 3, S), *f;
    int32_t ids[PROMPTS][BOOK_TOKENS];
    struct decode_prompt prompts[PROMPTS];
    struct speculate_result r;
    struct book drafted, decoded;
    const struct decode_io io = {.next = book_next,
                                 .generated = book_generated,
                                 .user = &decoded,
                                 .how = {.temperature = 0}};
    o.decode_rows = 2;
    f = open_engine(teacher, NULL, &o);
    amplify(&e->teacher.net);
    amplify(&f->student);
    decide(&e->teacher.net);
    make_prompts(prompts, ids, PROMPTS);
    book_open(&drafted, prompts, PROMPTS);
    book_open(&decoded, prompts, PROMPTS);
    ok(speculate(e, &drafted, 4, NULL, 0, &r));
    ok(engine_decode(f, &io));
    for (int i = 0; i < PROMPTS; i++) {
        assert_int_equal(drafted.length[i], prompts[i].most);
        assert_memory_equal(drafted.text[i], decoded.text[i], sizeof drafted.text[i]);
    }
    engine_destroy(e);
    engine_destroy(f);
    return (double)r.accepted / (double)r.tested;
}

static void rejected_drafts_leave_recurrent_models_as_they_were(void **state)
{
    (void)state;
    write_recurrent("nojit-tiny-lfm2", "lfm2", 0);
    write_recurrent("nojit-tiny-qwen3.5", "qwen3.5", 2);
    assert_true(check_greedy("qwen2", "qwen3.5") < 0.5);
    assert_true(check_greedy("lfm2", "qwen3.5") < 0.5);
    assert_true(check_greedy("qwen3.5", "lfm2") < 0.5);
    assert_true(check_greedy("lfm2", "lfm2") > 0);
    check_own_drafts("qwen3.5");
}

static void texts_do_not_depend_on_their_neighbours(void **state)
{
    (void)state;
    static const int rows[] = {1, 2, 3, PROMPTS};
    int32_t ids[PROMPTS][BOOK_TOKENS];
    struct decode_prompt prompts[PROMPTS];
    struct book alone, b;
    struct speculate_result first, r;
    make_prompts(prompts, ids, PROMPTS);
    book_open(&alone, prompts, PROMPTS);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct engine *e = open_pair("qwen2", "teacher", rows[k], S);
        if (k == 0)
            ok(speculate(e, &alone, 3, NULL, 0, &first));
        book_open(&b, prompts, PROMPTS);
        ok(speculate(e, &b, 3, NULL, 0, &r));
        for (int i = 0; i < PROMPTS; i++) {
            assert_int_equal(b.end[i], DECODE_LENGTH);
            assert_int_equal(b.length[i], prompts[i].most);
            assert_memory_equal(b.text[i], alone.text[i], sizeof b.text[i]);
        }
        assert_true(r.tested == first.tested && r.accepted == first.accepted);
        engine_destroy(e);
    }
}

/* Texts drafted by the student and texts of the teacher are cut at the same place. */
static void a_stop_token_ends_a_text(void **state)
{
    (void)state;
    struct engine *e = open_pair("qwen2", "teacher", 3, S);
    int32_t ids[PROMPTS][BOOK_TOKENS];
    struct decode_prompt prompts[PROMPTS];
    struct book whole, b;
    struct speculate_result r;
    make_prompts(prompts, ids, PROMPTS);
    book_open(&whole, prompts, PROMPTS);
    ok(speculate(e, &whole, 3, NULL, 0, &r));
    for (int i = 0; i < PROMPTS; i++) {
        const int32_t stop[] = {whole.text[i][3], whole.text[4][0]};
        book_open(&b, prompts, PROMPTS);
        ok(speculate(e, &b, 3, stop, 2, &r));
        for (int t = 0; t < PROMPTS; t++) {
            const int32_t *text = whole.text[t];
            int length = 0;
            while (length < prompts[t].most && text[length] != stop[0] && text[length] != stop[1])
                length++;
            const bool stopped = length < prompts[t].most;
            assert_int_equal(b.end[t], stopped ? DECODE_STOPPED : DECODE_LENGTH);
            assert_int_equal(b.length[t], length + stopped);
            assert_memory_equal(b.text[t], text, (size_t)b.length[t] * sizeof *text);
        }
    }
    engine_destroy(e);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    const struct train_options o = options_of(1, S);
    const int32_t ids[S] = {0}, beyond[] = {VOCAB};
    const struct decode_prompt bad[] = {
        {.ids = ids, .count = 0, .most = 1},    {.ids = ids, .count = 1, .most = 0},
        {.ids = ids, .count = S, .most = 1},    {.ids = ids, .count = 1, .most = S},
        {.ids = beyond, .count = 1, .most = 1},
    };
    const struct decode_prompt good = {.ids = ids, .count = S - 1, .most = 1};
    struct engine *e = open_engine("qwen2", "teacher", &o), *f = open_engine("qwen2", NULL, &o);
    struct speculate_result r;
    struct book b;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        book_open(&b, &bad[i], 1);
        assert_int_equal(speculate(e, &b, 2, NULL, 0, &r),
                         bad[i].ids == beyond ? NJ_E_FORMAT : NJ_E_ARG);
    }
    book_open(&b, &good, 1);
    assert_int_equal(speculate(e, &b, 0, NULL, 0, &r), NJ_E_ARG);
    assert_int_equal(speculate(e, &b, SPECULATE_DRAFT_MOST + 1, NULL, 0, &r), NJ_E_ARG);
    assert_int_equal(speculate(f, &b, 2, NULL, 0, &r), NJ_E_ARG);
    b.taken = 0;
    ok(speculate(e, &b, SPECULATE_DRAFT_MOST, NULL, 0, &r));
    assert_true(r.tokens == 1 && r.tested == 0 && r.turns[0] == 1);
    sharpen(&e->teacher.net);
    ((float *)net_weight(&e->teacher.net, e->teacher.net.p.norm))[0] = NAN;
    b.taken = 0;
    assert_int_equal(speculate(e, &b, 2, NULL, 0, &r), NJ_E_FORMAT);
    engine_destroy(e);
    engine_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_the_models),
        cmocka_unit_test(drafts_are_accepted_as_often_as_expected),
        cmocka_unit_test(expected_is_the_sum_of_the_smaller_probabilities),
        cmocka_unit_test(texts_are_distributed_as_the_teachers),
        cmocka_unit_test(a_teacher_accepts_all_of_its_own),
        cmocka_unit_test(rejected_drafts_leave_recurrent_models_as_they_were),
        cmocka_unit_test(texts_do_not_depend_on_their_neighbours),
        cmocka_unit_test(a_stop_token_ends_a_text),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
