/* SPDX-License-Identifier: Apache-2.0
 *
 * test_prompts.c: prompts from JSON lines: their ids, which transformers makes from the same conversations, further
 * columns, order, dropped prompts and refusals.
 */
#include "batch/prompts.h"
#include "tokenizer_fixture.h"

#include <jansson.h>

static const struct tokenizer bytes_only = {
    .kind = "bytes", .vocab_size = 257, .end_of_text = 256, .end_of_turn = -1};

static int try_open(const char *path, const struct tokenizer *t, int longest, struct prompts **p)
{
    const struct prompts_options o = {.paths = &path,
                                      .path_count = 1,
                                      .longest = longest,
                                      .teacher_longest = longest,
                                      .vocab_size = t->vocab_size};
    return prompts_open(&o, t, p);
}

static struct prompts *open_lines(const char *lines, const struct tokenizer *t, int longest)
{
    struct prompts *p = NULL;
    write_text(at("p.jsonl"), lines);
    check_ok(try_open(at("p.jsonl"), t, longest, &p), lines);
    return p;
}

/* ---- conversations ---- */

static void check_ids(const json_t *want, const int32_t *ids, size_t count, const char *what)
{
    if (count != json_array_size(want))
        fail_msg("%s: %zu ids, expected %zu", what, count, json_array_size(want));
    for (size_t i = 0; i < count; i++)
        if (ids[i] != json_integer_value(json_array_get(want, i)))
            fail_msg("%s: id %zu is %d", what, i, ids[i]);
}

/* Write the template of a row. CHAT_TEMPLATES=FOLDER uses the published templates instead of equivalent ones. */
static void write_template(const json_t *row)
{
    const char *folder = getenv("CHAT_TEMPLATES");
    const char *stub = json_string_value(json_object_get(row, "stub"));
    char path[512];
    char *text = NULL;
    snprintf(path, sizeof path, "%s/%s.jinja", folder ? folder : "",
             json_string_value(json_object_get(row, "template")));
    if (folder)
        text = read_text(path);
    write_text(at("model/chat_template.jinja"), text ? text : stub);
    write_text(at("model/tokenizer_config.json"), "{\"bos_token\": \"<|begin_of_text|>\"}");
    free(text);
}

/* Check a golden row: as a line with messages, as one with a list as its prompt, and with an answer. */
static void check_row(const json_t *row, const struct tokenizer *t)
{
    const json_t *messages = json_object_get(row, "messages"), *want = json_object_get(row, "ids");
    char *turns = json_dumps(messages, JSON_COMPACT);
    char lines[4096];
    struct prompt one;
    snprintf(lines, sizeof lines,
             "{\"messages\": %s}\n{\"prompt\": %s, \"completion\": \"c\"}\n"
             "{\"messages\": %.*s, {\"role\": \"assistant\", \"content\": \"so\"}], "
             "\"teacher_prompt\": %s}\n",
             turns, turns, (int)strlen(turns) - 1, turns, turns);
    struct prompts *p = open_lines(lines, t, 0);
    assert_int_equal(prompts_count(p), 3);
    for (int i = 0; i < 3; i++) {
        prompts_get(p, 0, i, &one);
        check_ids(want, one.ids, one.count, turns);
        check_ids(want, one.teacher_ids, one.teacher_count, turns);
        assert_int_equal(one.teacher_ids == one.ids, i < 2);
    }
    prompts_close(p);
    free(turns);
}

/* Check the text that asks for an answer to a conversation of one turn, or of two with a system message. */
static void check_chat(const json_t *row, const struct tokenizer *t)
{
    const json_t *messages = json_object_get(row, "messages");
    const size_t turns = json_array_size(messages);
    const char *said[3], *role[3];
    int32_t *ids;
    size_t count;
    for (size_t i = 0; i < turns && i < 3; i++) {
        said[i] = json_string_value(json_object_get(json_array_get(messages, i), "content"));
        role[i] = json_string_value(json_object_get(json_array_get(messages, i), "role"));
    }
    if (turns > 2 || role[turns - 1][0] != 'u' || (turns == 2 && role[0][0] != 's'))
        return;
    check_ok(prompt_of_chat(t, turns == 2 ? said[0] : NULL, said[turns - 1], &ids, &count), "chat");
    check_ids(json_object_get(row, "ids"), ids, count, said[turns - 1]);
    free(ids);
}

static void conversations_are_asked_as_in_the_template(void **state)
{
    (void)state;
    json_t *rows = json_load_file("tests/golden/chat-prompts.json", 0, NULL), *row;
    size_t i;
    assert_true(json_array_size(rows) > 50);
    json_array_foreach(rows, i, row)
    {
        struct tokenizer t =
            open_golden(json_string_value(json_object_get(row, "golden")), NULL, NULL);
        write_template(row);
        check_row(row, &t);
        check_chat(row, &t);
        tokenizer_close(&t);
    }
    json_decref(rows);
}

/* Only the template decides whether the token that begins texts is present. */
static void a_template_may_write_no_begin_of_text(void **state)
{
    (void)state;
    struct tokenizer t = open_golden("llama3", NULL, NULL);
    struct prompt one;
    size_t bytes;
    bool special;
    write_text(at("model/chat_template.jinja"), "{{ messages[0].content }}");
    struct prompts *p =
        open_lines("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", &t, 0);
    prompts_get(p, 0, 0, &one);
    assert_int_equal(one.count, 1);
    assert_int_equal(tokenizer_token(&t, one.ids[0], &bytes, &special)[0], 'a');
    prompts_close(p);
    tokenizer_close(&t);
}

/* A model whose end of a turn is its only end can be prompted, though not trained on conversations. */
static void one_end_is_enough_to_ask(void **state)
{
    (void)state;
    struct tokenizer t =
        open_golden("qwen2", "\"content\":\"<|endoftext|>\"", "\"content\":\"<|other|>\"");
    int32_t *ids;
    size_t count;
    t.end_of_text = t.end_of_turn;
    prompts_close(open_lines("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", &t, 0));
    check_ok(prompt_of_chat(&t, NULL, "a", &ids, &count), "chat");
    free(ids);
    tokenizer_close(&t);
}

static void models_without_a_chat_are_refused(void **state)
{
    (void)state;
    struct tokenizer t = open_golden("gpt2", NULL, NULL);
    int32_t *ids;
    size_t count;
    check_refused(prompt_of_chat(&t, NULL, "a", &ids, &count), NJ_E_UNSUPPORTED,
                  "has neither the tokens of ChatML", "gpt2");
    assert_null(ids);
    tokenizer_close(&t);
    const struct tokenizer none = {.kind = "token files", .refusal = "field x is y"};
    check_refused(prompt_of_chat(&none, NULL, "a", &ids, &count), NJ_E_UNSUPPORTED, "field x is y",
                  "token files");
}

/* ---- texts, and what comes beside them ---- */

static void check_bytes(const int32_t *ids, size_t count, const char *want)
{
    assert_int_equal(count, strlen(want));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids[i], (unsigned char)want[i]);
}

static void lines_of_prompts_are_read(void **state)
{
    (void)state;
    struct prompts *p = open_lines(
        "\xef\xbb\xbf{\"prompt\": \"one\", \"completion\": \"a\\u0000b\", \"id\": \"x\\\"y\"}\r\n"
        "\n{\"id\": -17, \"prompt\": \"two\", \"teacher_prompt\": \"hint two\", \"text\": 1}\n"
        "{\"id\": null, \"prompt\": \"\\u00e9\", \"completion\": null, \"teacher_prompt\": null}\n"
        "{\"id\": 0.5, \"prompt\": \"t\", \"completion\": 1, \"x\": 1e999}\n"
        "{\"id\": \"\", \"prompt\": \"\", \"completion\": \"\"}",
        &bytes_only, 0);
    static const struct {
        const char *text, *teacher, *id;
    } want[] = {{"one", "one", "\"x\\\"y\""},
                {"two", "hint two", "-17"},
                {"\xc3\xa9", "\xc3\xa9", NULL},
                {"t", "t", "0.5"}};
    struct prompt one;
    assert_int_equal(prompts_count(p), 5);
    assert_int_equal(prompts_dropped(p), 0);
    assert_int_equal(prompts_longest(p), 3);
    assert_int_equal(prompts_teacher_longest(p), 8);
    for (int i = 0; i < 4; i++) {
        prompts_get(p, 7, i, &one);
        check_bytes(one.ids, one.count, want[i].text);
        check_bytes(one.teacher_ids, one.teacher_count, want[i].teacher);
        assert_int_equal(one.index, i);
        assert_string_equal(one.id ? one.id : "-", want[i].id ? want[i].id : "-");
    }
    prompts_get(p, 0, 4, &one); /* an empty text is the token that begins or ends texts */
    assert_int_equal(one.count, 1);
    assert_int_equal(one.ids[0], 256);
    assert_string_equal(one.id, "\"\"");
    prompts_close(p);
}

static void a_prompt_with_nul_is_whole_behind_the_teachers_context(void **state)
{
    (void)state;
    const char *const path = at("p.jsonl");
    const struct prompts_options o = {.paths = &path,
                                      .path_count = 1,
                                      .teacher_context = "hint: ",
                                      .vocab_size = bytes_only.vocab_size};
    static const char whole[] = "hint: a\0b";
    struct prompts *p = NULL;
    struct prompt one;
    write_text(path, "{\"prompt\": \"a\\u0000b\"}\n");
    check_ok(prompts_open(&o, &bytes_only, &p), "open");
    prompts_get(p, 0, 0, &one);
    assert_int_equal(one.teacher_count, sizeof whole - 1);
    for (size_t i = 0; i < sizeof whole - 1; i++)
        assert_int_equal(one.teacher_ids[i], whole[i]);
    prompts_close(p);
}

static void prompts_begin_as_the_model_has_it(void **state)
{
    (void)state;
    struct tokenizer t = open_golden("llama3", NULL, NULL);
    struct prompts *p = open_lines("{\"prompt\": \"\"}\n{\"prompt\": \"a\"}", &t, 0);
    const int32_t begin = tokenizer_begin_of_text(&t);
    struct prompt one;
    for (int i = 0; i < 2; i++) {
        prompts_get(p, 0, i, &one);
        assert_int_equal(one.count, 1 + i);
        assert_int_equal(one.ids[0], begin);
    }
    prompts_close(p);
    tokenizer_close(&t);
}

/* ---- which, and in which order ---- */

static void long_prompts_are_dropped(void **state)
{
    (void)state;
    static const char lines[] = "{\"prompt\": \"12345\", \"id\": 1}\n{\"prompt\": \"123456\"}\n"
                                "{\"prompt\": \"1\", \"teacher_prompt\": \"123456\"}\n"
                                "{\"prompt\": \"123456\", \"teacher_prompt\": \"1\"}\n"
                                "{\"prompt\": \"7\", \"teacher_prompt\": \"89\", \"id\": 5}\n";
    struct prompts *p = open_lines(lines, &bytes_only, 5), *again;
    struct prompt one;
    assert_int_equal(prompts_count(p), 2);
    assert_int_equal(prompts_dropped(p), 3);
    prompts_get(p, 0, 0, &one);
    check_bytes(one.ids, one.count, "12345");
    prompts_get(p, 0, 1, &one);
    check_bytes(one.ids, one.count, "7");
    check_bytes(one.teacher_ids, one.teacher_count, "89");
    assert_string_equal(one.id, "5");
    /* The remaining prompts are the same as without the others. */
    again = open_lines("{\"prompt\": \"12345\"}\n{\"prompt\": \"7\", \"teacher_prompt\": \"89\"}",
                       &bytes_only, 0);
    assert_true(prompts_hash(p) == prompts_hash(again));
    prompts_close(again);
    again = open_lines("{\"prompt\": \"1234\"}\n{\"prompt\": \"57\", \"teacher_prompt\": \"89\"}",
                       &bytes_only, 0);
    assert_true(prompts_hash(p) != prompts_hash(again));
    prompts_close(again);
    again = open_lines("{\"prompt\": \"12345\"}\n{\"prompt\": \"7\", \"teacher_prompt\": \"88\"}",
                       &bytes_only, 0);
    assert_true(prompts_hash(p) != prompts_hash(again));
    prompts_close(again);
    prompts_close(p);
    write_text(at("p.jsonl"), lines);
    check_refused(try_open(at("p.jsonl"), &bytes_only, 1, &p), NJ_E_FORMAT,
                  "5 prompts, and each is longer than this run allows (1 token)", "all");
    assert_null(p);
}

/* Each epoch has every prompt once, in an order of its own; seed 0 keeps the order of the files. */
static void epochs_of_prompts_are_shuffled(void **state)
{
    (void)state;
    enum { N = 40 };
    make_folder("set");
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(at(i ? "set/b.jsonl" : "set/a.jsonl"), "wb");
        assert_non_null(f);
        for (int k = 0; k < N / 2; k++)
            fprintf(f, "{\"prompt\": \"%c\"}\n", '0' + i * N / 2 + k);
        fclose(f);
    }
    write_text(at("set/notes.md"), "x");
    const char *paths[] = {at("set"), at("set/[a].jsonl")};
    struct prompts_options o = {.paths = paths, .path_count = 1, .vocab_size = 257, .seed = 3};
    struct prompts *p;
    struct prompt one;
    int64_t order[3][N] = {{0}};
    check_ok(prompts_open(&o, &bytes_only, &p), "shuffled");
    assert_int_equal(prompts_count(p), N);
    assert_int_equal(prompts_passed_over(p)->files, 1);
    for (int e = 0; e < 3; e++) {
        bool seen[N] = {false};
        for (int i = 0; i < N; i++) {
            prompts_get(p, (uint64_t)(e % 2), i, &one);
            assert_in_range(one.index, 0, N - 1);
            assert_false(seen[one.index]);
            seen[one.index] = true;
            order[e][i] = one.index;
            assert_int_equal(one.ids[0], '0' + one.index);
        }
    }
    assert_memory_not_equal(order[0], order[1], sizeof order[0]);
    assert_memory_equal(order[0], order[2], sizeof order[0]);
    prompts_close(p);
    o.seed = 0;
    o.path_count = 2;
    check_ok(prompts_open(&o, &bytes_only, &p), "in order");
    assert_int_equal(prompts_count(p), N + N / 2);
    for (int i = 0; i < N; i++) {
        prompts_get(p, 5, i, &one);
        assert_int_equal(one.ids[0], '0' + i);
    }
    prompts_close(p);
}

/* ---- refusals ---- */

static const struct {
    const char *golden, *lines, *part;
} refused[] = {
    {"qwen2", "", "p.jsonl: there is no prompt in it"},
    {"qwen2", "{\"prompt\": \"a\"}\n[1]", "p.jsonl:2: a line must be an object with prompt"},
    {"qwen2", "{\"text\": \"a\"}", "p.jsonl:1: the object has neither prompt nor messages"},
    {"qwen2", "\n{\"prompt\": \"a\"", "p.jsonl:2: column"},
    {"qwen2", "{\"prompt\": 1}", "p.jsonl:1: prompt must be a string or a list"},
    {"qwen2", "{\"prompt\": \"a\", \"teacher_prompt\": {}}",
     "p.jsonl:1: teacher_prompt must be a string or a list"},
    {"qwen2", "{\"messages\": \"a\"}", "p.jsonl:1: messages must be a list"},
    {"qwen2", "{\"prompt\": []}", "p.jsonl:1: no turn of messages is the user's"},
    {"qwen2", "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}",
     "p.jsonl:1: no turn of messages is the user's"},
    {"qwen2", "{\"messages\": [{\"role\": \"user\", \"content\": 1}]}",
     "p.jsonl:1: content of messages must be a string"},
    {"qwen2",
     "{\"messages\": [{\"role\": 1, \"content\": \"\"}, {\"role\": \"user\", \"content\": \"\"}]}",
     "p.jsonl:1: each of messages must have a role"},
    {"qwen2",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"\"}], \"tools\": [{\"name\": 1}]}",
     "p.jsonl:1: tools have no place"},
    {"gpt2", "{\"messages\": []}", "p.jsonl:1: messages: "},
    {"qwen2", "{\"prompt\": \"a\", \"id\": []}", "p.jsonl:1: id must be a string, or a number"},
    {"qwen2", "{\"prompt\": \"a\", \"id\": 18446744073709551615}",
     "p.jsonl:1: id must be a string, or a number"},
};

static void bad_lines_of_prompts_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct tokenizer t = open_golden(refused[i].golden, NULL, NULL);
        struct prompts *p;
        write_text(at("p.jsonl"), refused[i].lines);
        const int rc = try_open(at("p.jsonl"), &t, 0, &p);
        check_refused(rc, rc == NJ_E_UNSUPPORTED ? NJ_E_UNSUPPORTED : NJ_E_FORMAT, refused[i].part,
                      refused[i].lines);
        assert_null(p);
        tokenizer_close(&t);
    }
}

static void other_files_and_tokens_are_refused(void **state)
{
    (void)state;
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    struct prompts *p;
    write_text(at("p.txt"), "a");
    check_refused(try_open(at("p.txt"), &t, 0, &p), NJ_E_UNSUPPORTED,
                  "p.txt: prompts are read from .jsonl and .parquet files", "text");
    check_refused(try_open(at("none.jsonl"), &t, 0, &p), NJ_E_IO, "none.jsonl: ", "no file");
    write_text(at("p.jsonl"), "{\"prompt\": \"a\"}\n{\"prompt\": \"a<|im_end|>\"}\n");
    const char *path = at("p.jsonl");
    const struct prompts_options o = {
        .paths = &path, .path_count = 1, .vocab_size = tokenizer_added(&t, "<|im_end|>")};
    check_refused(prompts_open(&o, &t, &p), NJ_E_FORMAT, "p.jsonl:2: token 1 of the prompt is",
                  "vocabulary");
    write_text(at("p.jsonl"), "{\"prompt\": \"\"}\n");
    t.end_of_text = -1;
    check_refused(try_open(at("p.jsonl"), &t, 0, &p), NJ_E_FORMAT,
                  "p.jsonl:1: the prompt is empty and no token", "empty");
    tokenizer_close(&t);
    const struct tokenizer none = {.kind = "token files", .refusal = "field x is y"};
    check_refused(try_open(at("p.jsonl"), &none, 0, &p), NJ_E_UNSUPPORTED,
                  "p.jsonl: prompts need a tokenizer: field x is y", "no tokenizer");
}

/* ---- columns of other names ---- */

static int open_fields(const char *word, const char *lines, struct prompts **p)
{
    const char *path = at("p.jsonl");
    const char *const fields[] = {word};
    const struct prompts_options o = {
        .paths = &path, .path_count = 1, .fields = fields, .field_count = 1, .vocab_size = 257};
    write_text(path, lines);
    return prompts_open(&o, &bytes_only, p);
}

static void fields_name_columns_of_prompts(void **state)
{
    (void)state;
    struct prompts *p;
    struct prompt first, second;
    check_ok(
        open_fields(
            "prompt=question,id=key,teacher_prompt=hint",
            "{\"question\": \"ab\", \"prompt\": \"xyz\", \"messages\": 1, \"key\": 7, \"id\": 8, "
            "\"hint\": \"c\"}\n{\"question\": \"d\", \"max_tokens\": 3}",
            &p),
        "renamed");
    assert_int_equal(prompts_count(p), 2);
    prompts_get(p, 0, 0, &first);
    prompts_get(p, 0, 1, &second);
    assert_int_equal(first.count, 2);
    assert_int_equal(first.ids[1], 'b');
    assert_int_equal(first.teacher_count, 1);
    assert_string_equal(first.id, "7");
    assert_int_equal(second.most, 3);
    prompts_close(p);
    check_refused(open_fields("prompt=question", "{\"prompt\": \"a\"}", &p), NJ_E_FORMAT,
                  "the object has neither prompt nor messages", "a column that is not there");
    check_refused(open_fields("id=key", "{\"prompt\": \"a\"}", &p), NJ_E_ARG,
                  "names neither a prompt column nor a messages column", "no prompt");
    check_refused(open_fields("prompt=q,completion=a", "{\"q\": \"a\"}", &p), NJ_E_ARG,
                  "--fields completion=a: there is no such name", "completion");
}

/* ---- how the assistant's turns end ---- */

static const struct {
    const char *what, *template;
    int want;
} turns[] = {
    {"a token behind the answer", "{% for m in messages %}<left>{{ m.content }}<tool>{% endfor %}",
     1263},
    {"white space behind that token",
     "{% for m in messages %}{{ m.content }}<|im_end|>\n{% endfor %}", 1258},
    {"a token of the last answer alone",
     "{% for m in messages %}{{ m.content }}{% if not loop.last %}<left>{% elif not "
     "add_generation_prompt %}<right>{% endif %}{% endfor %}",
     1260},
    {"no token", "{% for m in messages %}{{ m.content }}\n{% endfor %}", -1},
    {"a token that is not trained",
     "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}{% generation %}"
     "{{ m.content }}{% endgeneration %}<tool>{% endif %}{% endfor %}",
     -1},
    {"a conversation that is refused", "{{ raise_exception('no') }}", -1},
};

static void the_token_that_ends_a_turn_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        struct tokenizer t = open_golden("qwen2", NULL, NULL);
        int32_t id;
        write_text(at("model/chat_template.jinja"), turns[i].template);
        check_ok(chat_turn_end(&t, &id), turns[i].what);
        if (id != turns[i].want)
            fail_msg("%s: %d, expected %d", turns[i].what, id, turns[i].want);
        tokenizer_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_name_columns_of_prompts),
        cmocka_unit_test(the_token_that_ends_a_turn_is_found),
        cmocka_unit_test(conversations_are_asked_as_in_the_template),
        cmocka_unit_test(a_template_may_write_no_begin_of_text),
        cmocka_unit_test(one_end_is_enough_to_ask),
        cmocka_unit_test(models_without_a_chat_are_refused),
        cmocka_unit_test(lines_of_prompts_are_read),
        cmocka_unit_test(a_prompt_with_nul_is_whole_behind_the_teachers_context),
        cmocka_unit_test(prompts_begin_as_the_model_has_it),
        cmocka_unit_test(long_prompts_are_dropped),
        cmocka_unit_test(epochs_of_prompts_are_shuffled),
        cmocka_unit_test(bad_lines_of_prompts_are_named),
        cmocka_unit_test(other_files_and_tokens_are_refused),
    };
    return cmocka_run_group_tests_name("prompts", tests, scratch_begin, scratch_end);
}
