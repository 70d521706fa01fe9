/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tasks.c: items of benchmarks: scores, choices and standard errors of lm-evaluation-harness (tests/golden/tasks,
 * written by tests/golden/make_tasks.py), the fields of a line, rows to score, and what is refused.
 */
#include "batch/task_rows.h"
#include "batch/tasks.h"
#include "engine/engine.h"
#include "eval/task_report.h"
#include "template/spaces.h"
#include "tokenizer_fixture.h"

#include <jansson.h>
#include <math.h>

#define GOLDEN "tests/golden/tasks/"

enum { POSITIONS = 64 };

static nj_context *ctx;

static struct tasks *open_file(const char *path, const struct tokenizer *t)
{
    const struct tasks_options o = {.paths = &path, .path_count = 1, .vocab_size = t->vocab_size};
    struct tasks *tasks;
    check_ok(tasks_open(&o, t, &tasks), path);
    return tasks;
}

static struct tasks *open_lines(const char *lines, const struct tokenizer *t)
{
    write_text(at("quiz.jsonl"), lines);
    return open_file(at("quiz.jsonl"), t);
}

/* ---- the numbers of lm-evaluation-harness ---- */

static const struct {
    const char *name, *config;
} tokenizers[] = {
    {"llama3",
     "{\"bos_token\": \"<|begin_of_text|>\", \"eos_token\": {\"content\": \"<|end_of_text|>\"}}"},
    {"qwen2", "{\"bos_token\": null, \"eos_token\": \"<|endoftext|>\"}"},
};

static void copy_file(const char *from, const char *to)
{
    FILE *f = fopen(from, "rb"), *out = fopen(to, "wb");
    char buffer[4096];
    size_t n;
    assert_true(f && out);
    while ((n = fread(buffer, 1, sizeof buffer, f)) > 0)
        assert_int_equal(fwrite(buffer, 1, n, out), n);
    fclose(f);
    assert_int_equal(fclose(out), 0);
}

/* Open the golden model with a tokenizer. */
static struct tokenizer open_model(int number)
{
    struct tokenizer t = open_golden(tokenizers[number].name, NULL, NULL);
    copy_file(GOLDEN "model/config.json", at("model/config.json"));
    copy_file(GOLDEN "model/model.safetensors", at("model/model.safetensors"));
    write_text(at("model/tokenizer_config.json"), tokenizers[number].config);
    return t;
}

/* Return the score of each choice, computed in batches of B rows. */
static double *score(const struct tasks *tasks, int length, int B)
{
    const struct train_options o = {
        .batch_size = B, .seq_len = length, .grad_accum = 1, .dtype = NJ_F32, .temperature = 1};
    double *out = calloc((size_t)tasks_choices(tasks), sizeof *out);
    struct train_options sized = o;
    struct task_rows *rows;
    struct task_batch b;
    struct engine *e;
    float *ce;
    check_ok(task_rows_make(tasks, POSITIONS, length, &rows), "rows");
    sized.seq_len = task_rows_length(rows);
    check_ok(engine_create(ctx, at("model"), NULL, &sized, NULL, NULL, &e), "engine");
    check_ok(task_batch_open(rows, B, &b), "batch");
    ce = malloc((size_t)B * (size_t)sized.seq_len * sizeof *ce);
    assert_true(out && ce);
    for (int64_t row = 0; row < task_rows_count(rows); row += B) {
        task_batch_fill(rows, row, &b);
        const struct score_batch batch = {b.text.ids, b.text.pos, b.text.doc_start,
                                          b.at,       b.next,     b.count};
        check_ok(engine_score(e, &batch, ce), "score");
        for (int i = 0; i < b.count; i++)
            out[b.owner[i]] -= (double)ce[i];
    }
    free(ce);
    task_batch_close(&b);
    task_rows_free(rows);
    engine_destroy(e);
    return out;
}

/* Both sides are float32 over a few dozen tokens: rounding is far below the bound. */
static void check_near(double got, const json_t *want, const char *what, int64_t item)
{
    const double value = json_number_value(want);
    if (!(fabs(got - value) <= 2e-5 * fabs(value) + 1e-6))
        fail_msg("%s of item %lld: %.9g, expected %.9g", what, (long long)item, got, value);
}

static void check_items(const struct tasks *tasks, const double *scores, const json_t *items)
{
    assert_int_equal(tasks_count(tasks), json_array_size(items));
    for (int64_t i = 0; i < tasks_count(tasks); i++) {
        const json_t *want = json_array_get(items, (size_t)i);
        struct task_item it;
        tasks_get(tasks, i, &it);
        for (int k = 0; k < it.choices; k++) {
            struct task_choice c;
            tasks_choice(tasks, it.choice + k, &c);
            const json_t *tokens = json_array_get(json_object_get(want, "tokens"), (size_t)k);
            assert_int_equal(c.count, json_integer_value(tokens));
            check_near(scores[it.choice + k],
                       json_array_get(json_object_get(want, "loglikelihoods"), (size_t)k),
                       "log-likelihood", i);
        }
    }
}

/* Check the metrics; the texts of the model come from the golden file. */
static void check_metrics(const struct tasks *tasks, const double *scores, const json_t *golden)
{
    const json_t *items = json_object_get(golden, "items"), *metrics, *want;
    struct pool *text = calloc((size_t)tasks_count(tasks), sizeof *text);
    struct task_metric m[4 * TASK_METRICS];
    const struct task_answers a = {tasks, scores, text};
    size_t i;
    metrics = json_object_get(golden, "metrics");
    json_array_foreach(items, i, want)
    {
        const json_t *said = json_object_get(want, "text");
        if (said)
            assert_true(pool_add(&text[i], json_string_value(said), json_string_length(said), 1));
    }
    assert_int_equal(tasks_names(tasks), 4);
    assert_int_equal(task_metrics(&a, m), json_array_size(metrics));
    json_array_foreach(metrics, i, want)
    {
        assert_string_equal(m[i].task, json_string_value(json_object_get(want, "task")));
        assert_string_equal(m[i].metric, json_string_value(json_object_get(want, "metric")));
        assert_int_equal(m[i].items, json_integer_value(json_object_get(want, "items")));
        check_near(m[i].value, json_object_get(want, "value"), m[i].metric, -1);
        if (json_is_null(json_object_get(want, "stderr")))
            assert_true(isnan(m[i].stderr_of));
        else
            check_near(m[i].stderr_of, json_object_get(want, "stderr"), "standard error", -1);
    }
    for (int64_t k = 0; k < tasks_count(tasks); k++)
        free(text[k].at);
    free(text);
}

static void scores_are_those_of_the_harness(void **state)
{
    (void)state;
    json_t *golden = json_load_file(GOLDEN "golden.json", 0, NULL);
    assert_non_null(golden);
    for (int i = 0; i < 2; i++) {
        const json_t *want = json_object_get(golden, tokenizers[i].name);
        struct tokenizer t = open_model(i);
        struct tasks *tasks = open_file(GOLDEN "items.jsonl", &t);
        double *scores = score(tasks, POSITIONS, 3);
        check_items(tasks, scores, json_object_get(want, "items"));
        check_metrics(tasks, scores, want);
        free(scores);
        tasks_close(tasks);
        tokenizer_close(&t);
    }
    json_decref(golden);
}

/* ---- where a choice begins ---- */

/* Texts of all kinds, so that tokens cross the end of the context and places where it might be cut. */
static const char *const scraps[] = {
    "word", " two",   "\\n",        "\\n\\n", " ", "  ", "7",   "42 ", "\u00e9", "e\u0301",
    "'s",   "\u8001", "<|im_end|>", "a",      ".", "?!", " th", "e",   "\\t",    "-"};
enum { SCRAPS = sizeof scraps / sizeof *scraps };

static void draw_text(uint32_t *seed, int pieces, char *out, size_t bytes)
{
    size_t used = 0;
    *out = '\0';
    for (int i = 0; i < pieces; i++) {
        *seed = *seed * 1664525 + 1013904223;
        used += (size_t)snprintf(out + used, bytes - used, "%s", scraps[(*seed >> 16) % SCRAPS]);
    }
}

/* Encode the text of a JSON string after the token that begins texts. */
static size_t encode_text(const struct tokenizer *t, const char *text, bool strip, int32_t *ids)
{
    char quoted[1024];
    size_t count = 0, capacity = 0;
    snprintf(quoted, sizeof quoted, "\"%s\"", text);
    json_t *value = json_loads(quoted, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    const char *bytes = json_string_value(value);
    const size_t length = json_string_length(value);
    int32_t *got = NULL;
    check_ok(tokenizer_encode(t, bytes, strip ? text_rstrip(bytes, length) : length, &got, &count,
                              &capacity),
             text);
    const int32_t begin = tokenizer_begin_of_text(t);
    size_t n = 0;
    if (begin >= 0)
        ids[n++] = begin;
    if (count > 0)
        memcpy(ids + n, got, count * sizeof *ids);
    free(got);
    json_decref(value);
    return n + count;
}

/* Compare with _encode_pair(): the ids of both as one text, after as many as the context has alone. */
static void check_pair(const struct tokenizer *t, const char *context, const char *choice)
{
    int32_t alone[512], both[512];
    char line[2048], whole[1024];
    const char *path = at("quiz.jsonl");
    const struct tasks_options o = {.paths = &path, .path_count = 1, .vocab_size = t->vocab_size};
    struct tasks *tasks;
    struct task_item it;
    struct task_choice c;
    snprintf(whole, sizeof whole, "%s%s", context, choice);
    const size_t before = encode_text(t, context, true, alone);
    const size_t all = encode_text(t, whole, false, both);
    snprintf(line, sizeof line,
             "{\"context\": \"%s\", \"choices\": [\"%s\", \"%s\"], \"answer\": 0}", context, choice,
             choice);
    write_text(path, line);
    const int rc = tasks_open(&o, t, &tasks);
    if (all <= before) {
        assert_int_equal(rc, NJ_E_FORMAT);
        return;
    }
    check_ok(rc, line);
    for (int k = 0; k < 2; k++) {
        tasks_get(tasks, 0, &it);
        tasks_choice(tasks, it.choice + k, &c);
        if ((size_t)it.count != before || memcmp(it.ids, alone, before * sizeof *alone) != 0 ||
            (size_t)c.count != all - before ||
            memcmp(c.ids, both + before, (all - before) * sizeof *both) != 0)
            fail_msg("%s: other ids than those of context and choice as one text", line);
    }
    tasks_close(tasks);
}

static void choices_are_encoded_with_their_context(void **state)
{
    (void)state;
    uint32_t seed = 20261127;
    for (int i = 0; i < 2; i++) {
        struct tokenizer t = open_model(i);
        for (int n = 0; n < 400; n++) {
            char context[256] = "The", choice[128];
            draw_text(&seed, n % 12, context + 3, sizeof context - 3);
            draw_text(&seed, 1 + n % 3, choice, sizeof choice);
            check_pair(&t, context, choice);
        }
        tokenizer_close(&t);
    }
}

/* ---- what is right ---- */

/* Compute the metrics of items whose choices have these scores and whose prompts have these texts. */
static int metrics_of(const char *lines, const double *scores, const char *const *texts,
                      struct task_metric *out, struct tasks **tasks)
{
    struct tokenizer t = open_model(1);
    struct pool text[4] = {{NULL, 0, 0}};
    *tasks = open_lines(lines, &t);
    const struct task_answers a = {*tasks, scores, text};
    for (int64_t i = 0; texts && i < tasks_count(*tasks); i++)
        assert_true(pool_add(&text[i], texts[i], strlen(texts[i]), 1));
    const int count = task_metrics(&a, out);
    for (int i = 0; i < 4; i++)
        free(text[i].at);
    tokenizer_close(&t);
    return count;
}

static void the_first_of_equal_scores_counts(void **state)
{
    (void)state;
    const double scores[] = {-2, -1, -1, -4, -4, -4};
    struct task_metric m[TASK_METRICS];
    struct tasks *tasks;
    assert_int_equal(metrics_of("{\"context\": \"a\", \"choices\": [\" b\", \" c\", \" d\"], "
                                "\"answer\": 1}\n"
                                "{\"context\": \"a\", \"choices\": [\" b\", \" c\", \" defg\"], "
                                "\"answer\": 0}\n",
                                scores, NULL, m, &tasks),
                     2);
    assert_string_equal(m[0].metric, "acc");
    assert_true(m[0].value == 1 && m[0].stderr_of == 0 && m[0].items == 2);
    assert_string_equal(m[1].metric, "acc_norm"); /* -4 for five characters is the best */
    assert_true(m[1].value == 0.5 && fabs(m[1].stderr_of - 0.5) < 1e-15);
    tasks_close(tasks);
}

static void white_space_around_an_answer_is_left_aside(void **state)
{
    (void)state;
    const char *const texts[] = {" 42\n", "\u00a042", "4 2"};
    struct task_metric m[TASK_METRICS];
    struct tasks *tasks;
    assert_int_equal(metrics_of("{\"prompt\": \"a\", \"answer\": \"42\"}\n"
                                "{\"prompt\": \"a\", \"answer\": \"\\u300042\"}\n"
                                "{\"prompt\": \"a\", \"answer\": \"42\"}\n",
                                NULL, texts, m, &tasks),
                     1);
    assert_string_equal(m[0].metric, "exact_match");
    assert_true(fabs(m[0].value - 2 / 3.0) < 1e-15 && fabs(m[0].stderr_of - 1 / 3.0) < 1e-15);
    tasks_close(tasks);
}

/* ---- lines ---- */

static void fields_have_other_names(void **state)
{
    (void)state;
    struct tokenizer t = open_model(1);
    struct task_item it;
    struct task_choice c;
    size_t bytes;
    struct tasks *tasks = open_lines(
        "{\"context\": \"one\", \"choices\": [\" two\", \" t\u00e9\"], \"answer\": \" t\u00e9\", "
        "\"id\": 17}\n\n"
        "{\"query\": \"one\", \"choices\": [\"a\", \"b\", \"c\"], \"gold\": 2, \"answer\": null, "
        "\"task\": \"letters\", \"id\": \"x\"}\n"
        "{\"prompt\": \"one\", \"target\": \"two\", \"until\": \"\\n\", \"max_gen_toks\": 7}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"one\"}], \"answer\": \"two\", "
        "\"until\": [\"\", \"a\", \"bc\"], \"task\": \"letters\"}\n",
        &t);
    assert_int_equal(tasks_count(tasks), 4);
    assert_int_equal(tasks_choices(tasks), 5);
    assert_int_equal(tasks_names(tasks), 2);
    assert_string_equal(tasks_name(tasks, 0), "quiz");
    assert_string_equal(tasks_name(tasks, 1), "letters");
    tasks_get(tasks, 0, &it);
    assert_int_equal(it.kind, TASK_CHOICE);
    assert_int_equal(it.gold, 1);
    assert_string_equal(it.id, "17");
    assert_int_equal(it.line, 1);
    tasks_choice(tasks, it.choice + 1, &c);
    assert_int_equal(c.characters, 3);
    tasks_get(tasks, 1, &it);
    assert_int_equal(it.gold, 2);
    assert_int_equal(it.task, 1);
    assert_string_equal(it.id, "\"x\"");
    assert_int_equal(it.line, 3);
    tasks_get(tasks, 2, &it);
    assert_int_equal(it.kind, TASK_TEXT);
    assert_string_equal(it.answer, "two");
    assert_int_equal(it.most, 7);
    assert_int_equal(it.untils, 1);
    assert_string_equal(tasks_until(tasks, it.until, &bytes), "\n");
    tasks_get(tasks, 3, &it);
    assert_int_equal(it.task, 1);
    assert_int_equal(it.most, 0);
    assert_int_equal(it.untils, 2);
    assert_string_equal(tasks_until(tasks, it.until + 1, &bytes), "bc");
    assert_true(it.count > 8); /* the template surrounds it */
    tasks_close(tasks);
    tokenizer_close(&t);
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *line, *want;
    } cases[] = {
        {"[]", "quiz.jsonl:1: a line must be an object with context, choices and answer"},
        {"{\"text\": \"x\"}", "a line must be an object with"},
        {"{\"choices\": [\"a\", \"b\"], \"answer\": 0}", "choices need a context"},
        {"{\"context\": 1, \"choices\": [\"a\", \"b\"], \"answer\": 0}", "must be texts"},
        {"{\"context\": \"c\", \"target_delimiter\": 1, \"choices\": [\"a\", \"b\"], \"answer\": "
         "0}",
         "must be texts"},
        {"{\"context\": \"c\", \"choices\": \"ab\", \"answer\": 0}", "list of 2 to 1024 texts"},
        {"{\"context\": \"c\", \"choices\": [\"a\"], \"answer\": 0}", "list of 2 to 1024 texts"},
        {"{\"context\": \"c\", \"choices\": [\"a\", 2], \"answer\": 0}", "must be a text"},
        {"{\"context\": \"c\", \"choices\": [\"a\", \"\"], \"answer\": 0}", "none is empty"},
        {"{\"context\": \"c\", \"choices\": [\"a\", \"b\"], \"answer\": 2}", "from 0 to 1"},
        {"{\"context\": \"c\", \"choices\": [\"a\", \"b\"], \"answer\": -1}", "from 0 to 1"},
        {"{\"context\": \"c\", \"choices\": [\"a\", \"b\"], \"answer\": \"A\"}", "from 0 to 1"},
        {"{\"context\": \"c\", \"choices\": [\"a\", \"b\"]}", "from 0 to 1"},
        {"{\"prompt\": \"p\"}", "answer must be the text"},
        {"{\"prompt\": \"p\", \"answer\": 1}", "answer must be the text"},
        {"{\"prompt\": 1, \"answer\": \"a\"}", "prompt must be a text or a list"},
        {"{\"messages\": {}, \"answer\": \"a\"}", "messages must be a list"},
        {"{\"prompt\": \"p\", \"answer\": \"a\", \"until\": 1}", "until must be a text or a list"},
        {"{\"prompt\": \"p\", \"answer\": \"a\", \"until\": [1]}",
         "until must be a text or a list"},
        {"{\"prompt\": \"p\", \"answer\": \"a\", \"max_tokens\": 0}", "at least 1"},
        {"{\"prompt\": \"p\", \"answer\": \"a\", \"task\": \"\"}", "task must be a name"},
        {"{\"prompt\": \"p\", \"answer\": \"a\", \"task\": \"a\\u0000b\"}", "task must be a name"},
        {"{\"prompt\": \"p\", \"answer\": \"a\", \"id\": []}", "id must be a string, or a number"},
        {"\n", "there is no item in it"},
    };
    (void)state;
    struct tokenizer t = open_model(1);
    const char *path = at("quiz.jsonl");
    const struct tasks_options o = {.paths = &path, .path_count = 1, .vocab_size = t.vocab_size};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tasks *tasks;
        write_text(path, cases[i].line);
        assert_int_equal(tasks_open(&o, &t, &tasks), NJ_E_FORMAT);
        assert_null(tasks);
        if (!strstr(fail_text(), cases[i].want))
            fail_msg("%s: %s, expected %s", cases[i].line, fail_text(), cases[i].want);
    }
    tokenizer_close(&t);
}

/* Each choice is encoded after its context: a line must not expand into far more text than it has. */
static void long_contexts_of_many_choices_are_refused(void **state)
{
    enum { CONTEXT = 1 << 18 };
    (void)state;
    struct tokenizer t = open_model(1);
    const char *path = at("quiz.jsonl");
    const struct tasks_options o = {.paths = &path, .path_count = 1, .vocab_size = t.vocab_size};
    struct tasks *tasks;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "{\"answer\": 0, \"context\": \"%*s\", \"choices\": [\"a\"", CONTEXT, "a");
    for (int i = 1; i < 1024; i++)
        fputs(", \"a\"", f);
    fputs("]}", f);
    fclose(f);
    assert_int_equal(tasks_open(&o, &t, &tasks), NJ_E_FORMAT);
    assert_non_null(strstr(fail_text(), "makes more than 256 MiB"));
    tokenizer_close(&t);
}

static void ids_beyond_the_vocabulary_are_refused(void **state)
{
    (void)state;
    struct tokenizer t = open_model(1);
    const char *path = at("quiz.jsonl");
    const struct tasks_options o = {.paths = &path, .path_count = 1, .vocab_size = 1256};
    struct tasks *tasks;
    write_text(path, "{\"prompt\": \"a<|im_start|>\", \"answer\": \"a\"}");
    assert_int_equal(tasks_open(&o, &t, &tasks), NJ_E_FORMAT);
    assert_non_null(strstr(fail_text(), "token 1257 lies beyond the vocabulary"));
    tokenizer_close(&t);
}

/* ---- rows ---- */

static void choices_share_a_text(void **state)
{
    (void)state;
    struct tokenizer t = open_model(1);
    struct tasks *tasks =
        open_lines("{\"context\": \"x y z =\", \"choices\": [\"a\", \"b\", \"c\"], "
                   "\"answer\": 0}\n"
                   "{\"context\": \"\", \"choices\": [\"d\", \"e\"], "
                   "\"answer\": 0}\n",
                   &t);
    struct task_rows *rows;
    struct task_batch b;
    struct task_item it;
    tasks_get(tasks, 0, &it);
    check_ok(task_rows_make(tasks, POSITIONS, POSITIONS, &rows), "rows");
    /* The contexts are scored once; that of the second has one position, and so room for one target. */
    assert_int_equal(task_rows_length(rows), it.count + 2);
    check_ok(task_batch_open(rows, 2, &b), "batch");
    task_batch_fill(rows, 0, &b);
    assert_int_equal(b.count, 5);
    assert_int_equal(b.choices, 5);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(b.at[i], it.count - 1);
        assert_int_equal(b.owner[i], i);
    }
    assert_int_equal(b.text.pos[it.count], 0);
    assert_int_equal(b.text.doc_start[it.count + 1], it.count + 1);
    task_batch_close(&b);
    task_rows_free(rows);
    tasks_close(tasks);
    tokenizer_close(&t);
}

static void scores_do_not_depend_on_rows(void **state)
{
    (void)state;
    struct tokenizer t = open_model(0);
    struct tasks *tasks = open_file(GOLDEN "items.jsonl", &t);
    double *want = score(tasks, POSITIONS, 4);
    const struct {
        int length, B;
    } shape[] = {{1, 2}, {40, 1}};
    for (int k = 0; k < 2; k++) {
        double *got = score(tasks, shape[k].length, shape[k].B);
        for (int64_t i = 0; i < tasks_choices(tasks); i++)
            if (!(fabs(got[i] - want[i]) <= 1e-5 * fabs(want[i])))
                fail_msg("choice %lld: %.9g, expected %.9g", (long long)i, got[i], want[i]);
        free(got);
    }
    free(want);
    tasks_close(tasks);
    tokenizer_close(&t);
}

static void long_texts_lose_their_beginning(void **state)
{
    (void)state;
    struct tokenizer t = open_model(1);
    struct tasks *tasks = open_lines("{\"context\": \"1 2 3 4 5 6 7 8\", \"choices\": [\" 9 1\", "
                                     "\" 9 2 3\"], \"answer\": 0}\n",
                                     &t);
    struct task_rows *rows;
    struct task_item it;
    struct task_choice c;
    struct task_batch b;
    tasks_get(tasks, 0, &it);
    tasks_choice(tasks, 1, &c);
    const int limit = c.count + 2;
    check_ok(task_rows_make(tasks, limit, POSITIONS, &rows), "rows");
    assert_int_equal(task_rows_cut(rows), 2);
    check_ok(task_batch_open(rows, (int)task_rows_count(rows), &b), "batch");
    task_batch_fill(rows, 0, &b);
    assert_int_equal(b.text.S, limit * 2);
    int first = 0; /* target of the second choice */
    while (b.owner[first] != 1)
        first++;
    const int32_t *text = &b.text.ids[b.at[first] - 2];
    assert_memory_equal(text, &it.ids[it.count - 3], 3 * sizeof *text);
    assert_memory_equal(text + 3, c.ids, (size_t)(c.count - 1) * sizeof *text);
    task_batch_close(&b);
    task_rows_free(rows);
    assert_int_equal(task_rows_make(tasks, c.count - 1, POSITIONS, &rows), NJ_E_FORMAT);
    assert_non_null(strstr(fail_text(), "raise --seq-len"));
    tasks_close(tasks);
    tokenizer_close(&t);
}

static int begin(void **state)
{
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    return scratch_begin(state) || nj_context_create(&ctx, &options);
}

static int end(void **state)
{
    nj_context_destroy(ctx);
    return scratch_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_the_harness),
        cmocka_unit_test(choices_are_encoded_with_their_context),
        cmocka_unit_test(the_first_of_equal_scores_counts),
        cmocka_unit_test(white_space_around_an_answer_is_left_aside),
        cmocka_unit_test(fields_have_other_names),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(long_contexts_of_many_choices_are_refused),
        cmocka_unit_test(ids_beyond_the_vocabulary_are_refused),
        cmocka_unit_test(choices_share_a_text),
        cmocka_unit_test(scores_do_not_depend_on_rows),
        cmocka_unit_test(long_texts_lose_their_beginning),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
