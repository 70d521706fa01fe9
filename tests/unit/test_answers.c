/* SPDX-License-Identifier: Apache-2.0
 *
 * test_answers.c: answers to prompts as rows: a loss on each token of an answer and on no other, the teacher's own
 * prompts, the mixing of rows of answers and of files, and answers in a file.
 */
#include "batch/answers.h"
#include "batch/answers_source.h"

#include "engine_fixture.h"

#include <unistd.h>

enum { ANSWERS = 40, LONGEST = 12 };

/* Prompts, the teacher's prompts, answers: no two answers have the same first token and length. */
static int32_t words[ANSWERS][3][LONGEST];

static void make_answers(struct answer *out, bool apart)
{
    for (int i = 0; i < ANSWERS; i++) {
        const int count[3] = {1 + i % 5, apart ? 1 + i % 11 : 1 + i % 5, 1 + i * 7 % 12};
        for (int part = 0; part < 3; part++)
            for (int k = 0; k < count[part]; k++)
                words[i][part][k] = part == 1 && !apart ? words[i][0][k]
                                                        : (i + 13 * part + 5 * k * (part + 1)) % 59;
        out[i] = (struct answer){
            .prompt = words[i][0],
            .teacher = words[i][1],
            .generated = words[i][2],
            .prompt_count = count[0],
            .teacher_count = count[1],
            .generated_count = count[2],
        };
    }
}

/* The tokens that a model has read when it predicts the token after position i. */
struct context {
    const int32_t *ids;
    int count;
};

static struct context context_of(const int32_t *ids, const int32_t *pos, const int32_t *doc_start,
                                 int i)
{
    assert_in_range(doc_start[i], 0, i);
    for (int k = doc_start[i]; k <= i; k++) {
        assert_int_equal(doc_start[k], doc_start[i]);
        assert_int_equal(pos[k], k - doc_start[i]);
    }
    return (struct context){ids + doc_start[i], i - doc_start[i] + 1};
}

/* Return whether the context is a prompt and the first `generated` tokens of its answer. */
static bool is_context(const struct context *c, const int32_t *prompt, int count,
                       const struct answer *a, int generated)
{
    return c->count == count + generated &&
           memcmp(c->ids, prompt, (size_t)count * sizeof *prompt) == 0 &&
           memcmp(c->ids + count, a->generated, (size_t)generated * sizeof *prompt) == 0;
}

/* Find, from what both models have read, the answer and the token that position i of a row predicts, and count it. */
static void mark(const struct answer *answers, int (*seen)[LONGEST], const struct batch *b, int row,
                 int i)
{
    const size_t first = (size_t)row * (size_t)b->S;
    const int32_t target = b->target[first + (size_t)i], at = b->teacher_at[first + (size_t)i];
    const struct context student =
        context_of(b->ids + first, b->pos + first, b->doc_start + first, i);
    const struct context teacher = context_of(b->teacher_ids + first, b->teacher_pos + first,
                                              b->teacher_doc_start + first, at);
    for (int k = 0; k < ANSWERS; k++) {
        const struct answer *a = &answers[k];
        const int generated = student.count - a->prompt_count;
        if (generated < 0 || generated >= a->generated_count || a->generated[generated] != target ||
            !is_context(&student, a->prompt, a->prompt_count, a, generated) ||
            !is_context(&teacher, a->teacher, a->teacher_count, a, generated) || seen[k][generated])
            continue;
        seen[k][generated] = 1;
        return;
    }
    fail_msg("position %d: no answer has token %d there", i, target);
}

static void check_rows(const struct answer *answers, const struct batch *rows)
{
    int seen[ANSWERS][LONGEST] = {{0}};
    int64_t losses = 0;
    for (int row = 0; row < rows->B; row++)
        for (int i = 0; i < rows->S; i++) {
            if (rows->target[row * rows->S + i] == IGNORED)
                continue;
            mark(answers, seen, rows, row, i);
            losses++;
        }
    assert_int_equal(losses, rows->valid);
    for (int k = 0; k < ANSWERS; k++)
        for (int i = 0; i < answers[k].generated_count; i++)
            losses -= seen[k][i];
    /* each token of each answer once, including the first and the last */
    assert_int_equal(losses, 0);
}

static void every_token_of_an_answer_has_a_loss(void **state)
{
    (void)state;
    struct answer answers[ANSWERS];
    int64_t tokens = 0;
    for (int apart = 0; apart < 2; apart++) {
        make_answers(answers, apart);
        for (int S = 23; S < 70; S += 23) {
            struct batch rows;
            ok(answer_rows_make(answers, ANSWERS, S, &rows));
            tokens = 0;
            for (int i = 0; i < ANSWERS; i++)
                tokens += answers[i].generated_count;
            assert_int_equal(rows.valid, tokens);
            check_rows(answers, &rows);
            batch_free(&rows);
        }
    }
}

/* A row has room for as many of the longest answers as fit side by side; shorter ones do not need more rows. */
static void rows_are_packed(void **state)
{
    (void)state;
    struct answer answers[ANSWERS];
    struct batch rows;
    make_answers(answers, true);
    for (int each = 1; each < 5; each++) {
        ok(answer_rows_make(answers, ANSWERS, each * (11 + 12 - 1), &rows));
        assert_true(rows.B <= (ANSWERS + each - 1) / each);
        batch_free(&rows);
    }
    ok(answer_rows_make(answers, 0, 8, &rows));
    assert_int_equal(rows.B, 0);
    batch_free(&rows);
}

static void answers_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    const int32_t ids[10] = {0};
    struct answer a = {ids, ids, ids, 4, 2, 6};
    struct batch rows;
    ok(answer_rows_make(&a, 1, 9, &rows)); /* the last token is a target only */
    batch_free(&rows);
    assert_int_equal(answer_rows_make(&a, 1, 8, &rows), NJ_E_ARG);
    assert_string_equal(fail_text(),
                        "a prompt and its answer have 10 tokens, more than --seq-len 8");
    batch_free(&rows);
    a.teacher_count = 5;
    assert_int_equal(answer_rows_make(&a, 1, 9, &rows), NJ_E_ARG);
    batch_free(&rows);
}

/* ---- beside rows of files ---- */

static void check_plain(const struct batch *b, int row, const struct batch *want)
{
    const size_t at = (size_t)row * (size_t)b->S, bytes = (size_t)b->S * sizeof(int32_t);
    const int32_t *const got[] = {
        b->ids,         b->target,           b->pos, b->doc_start, b->teacher_ids,
        b->teacher_pos, b->teacher_doc_start};
    const int32_t *const wanted[] = {want->ids, want->target, want->pos,      want->doc_start,
                                     want->ids, want->pos,    want->doc_start};
    for (size_t i = 0; i < sizeof got / sizeof *got; i++)
        assert_memory_equal(got[i] + at, wanted[i], bytes);
    for (int i = 0; i < b->S; i++)
        assert_int_equal(b->teacher_at[at + (size_t)i], i);
}

static void check_empty(const struct batch *b, int row)
{
    for (int i = row * b->S; i < (row + 1) * b->S; i++)
        assert_true(b->target[i] == IGNORED && b->ids[i] == 0 && b->teacher_ids[i] == 0);
}

/* Open a file's rows, one at a time. */
static struct batch_source *open_plain(void)
{
    const struct train_options o = {.seq_len = 24, .batch_size = 1};
    return open_tokens("tokens.bin", &o, false);
}

/* Rows 1, 2 and 5 of two batches of three rows are taken for answers, but there are only two rows of answers. */
static void answers_take_the_place_of_rows(void **state)
{
    (void)state;
    static const unsigned char own[] = {0, 1, 1, 0, 0, 1};
    struct answer answers[3] = {{0}};
    struct batch rows;
    struct batch b, want;
    struct batch_source *d = open_plain(), *plain = open_plain();
    struct answers_source *source;
    for (int i = 0; i < 3; i++) {
        const int count = i < 2 ? 12 : 1;
        for (int k = 0; k < 12; k++)
            words[i][0][k] = words[i][2][k] = 1 + i + k;
        answers[i] = (struct answer){words[i][0], words[i][0], words[i][2], count, count, count};
    }
    ok(answer_rows_make(answers, 3, 24, &rows));
    assert_int_equal(rows.B, 2);
    ok(answers_source_open(&d, 3, 24, true, &source));
    answers_source_put(source, &rows, own, 6);
    for (int batch = 0; batch < 3; batch++) {
        int64_t valid = 0;
        ok(batches_next(d, &b));
        for (int row = 0; row < 3; row++) {
            const int at = 3 * batch + row;
            assert_int_equal(b.own[row], at < 6 && own[at]);
            if (at < 6 && own[at] && at == 5) {
                check_empty(&b, row);
            } else if (at < 6 && own[at]) {
                const int from = (at - 1) * 24;
                assert_memory_equal(b.ids + row * 24, rows.ids + from, 24 * sizeof(int32_t));
                assert_memory_equal(b.teacher_at + row * 24, rows.teacher_at + from,
                                    24 * sizeof(int32_t));
            } else {
                ok(batches_next(plain, &want));
                check_plain(&b, row, &want);
            }
            for (int i = row * 24; i < (row + 1) * 24; i++)
                valid += b.target[i] != IGNORED;
        }
        assert_int_equal(b.valid, valid);
    }
    batch_free(&rows);
    batches_close(d);
    batches_close(plain);
}

/* A teacher that reads the same as the student gives the same step, whether it has rows of its own or not. */
static void a_teacher_with_a_context_that_is_the_same_changes_nothing(void **state)
{
    (void)state;
    static const unsigned char own[] = {1, 1};
    struct train_options o = small_options;
    struct answer answers[ANSWERS];
    struct batch rows;
    struct step_result a, b;
    o.seq_len = 96;
    o.grad_accum = 2;
    o.batch_size = 1;
    make_answers(answers, false);
    ok(answer_rows_make(answers, 12, o.seq_len, &rows));
    assert_true(rows.B == 2);
    for (int has_context = 0; has_context < 2; has_context++) {
        struct answers_source *source;
        struct data *none;
        o.teacher_has_context = has_context;
        struct engine *e = open_engine("qwen2", "teacher", &o);
        ok(data_none(o.seq_len, &none));
        struct batch_source *d = data_batches(none);
        ok(answers_source_open(&d, o.batch_size, o.seq_len, has_context, &source));
        answers_source_put(source, &rows, own, 2);
        ok(engine_step(e, d, has_context ? &b : &a));
        batches_close(d);
        engine_destroy(e);
    }
    assert_true(a.loss == b.loss && a.grad_norm == b.grad_norm && a.kd_loss == b.kd_loss);
    assert_int_equal(a.valid_tokens, rows.valid);
    batch_free(&rows);
}

/* ---- files ---- */

static void write_bytes(const char *path, const unsigned char *bytes, size_t count)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
}

static void refused(const char *path, int most)
{
    struct batch rows;
    assert_int_equal(answer_rows_read(path, 46, most, 59, &rows), NJ_E_FORMAT);
    assert_non_null(strstr(fail_text(), "answers.bin: "));
    assert_non_null(strstr(fail_text(), "take another checkpoint"));
    assert_null(rows.memory);
}

static void files_come_back_whole_or_not_at_all(void **state)
{
    (void)state;
    struct answer answers[ANSWERS];
    struct batch rows, again;
    const char *path = path_of("answers.bin");
    make_answers(answers, true);
    ok(answer_rows_make(answers, 8, 46, &rows));
    ok(answer_rows_write(&rows, path));
    ok(answer_rows_read(path, 46, rows.B, 59, &again));
    assert_true(again.S == rows.S && again.B == rows.B && again.valid == rows.valid);
    const size_t bytes = 8 * (size_t)rows.B * 46 * sizeof(int32_t);
    assert_int_equal(rows.bytes, bytes);
    assert_memory_equal(rows.memory, again.memory, bytes);
    batch_free(&again);
    refused(path, rows.B - 1);

    const size_t all = bytes + 48;
    unsigned char *file = malloc(all + 1);
    FILE *f = fopen(path, "rb");
    assert_true(file && f && fread(file, 1, all + 1, f) == all);
    fclose(f);
    for (size_t i = 0; i < all; i += i < 64 ? 1 : 97) {
        file[i] ^= 1;
        write_bytes(path, file, all);
        refused(path, rows.B);
        file[i] ^= 1;
        write_bytes(path, file, i);
        refused(path, rows.B);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(answer_rows_read(path, 46, 9, 59, &again), NJ_E_IO);
    free(file);
    batch_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_of_an_answer_has_a_loss),
        cmocka_unit_test(rows_are_packed),
        cmocka_unit_test(answers_that_do_not_fit_are_refused),
        cmocka_unit_test(answers_take_the_place_of_rows),
        cmocka_unit_test(a_teacher_with_a_context_that_is_the_same_changes_nothing),
        cmocka_unit_test(files_come_back_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
