/* SPDX-License-Identifier: Apache-2.0
 *
 * test_rows.c: the forms of rows in data sets: the columns that count, the meaning of a turn's fields, the effects of
 * --fields, --train-on-prompts and --skip-unusable, notes and refusals.
 */
#include "rows_fixture.h"

#include "io/error.h"

#define CHATML(user, answer)                                                                       \
    "<|im_start|>user\n" user "<|im_end|>\n<|im_start|>assistant\n" answer "\n"
#define ENDED "<|endoftext|>"

static const struct {
    const char *what, *golden, *line, *want;
} shapes[] = {
    {"ShareGPT's conversations", "qwen2",
     "{\"id\": 1, \"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", "
     "\"value\": \"a\"}]}",
     CHATML("q", "{a<|im_end|>}") ENDED},
    {"a system message of ShareGPT, and roles of other names as the template takes them", "qwen2",
     "{\"conversations\": [{\"from\": \"system\", \"value\": \"s\"}, {\"role\": \"developer\", "
     "\"content\": \"d\"}, {\"from\": \"gpt\", \"value\": \"a\"}]}",
     "<|im_start|>system\ns<|im_end|>\n<|im_start|>developer\nd<|im_end|>\n"
     "<|im_start|>assistant\n"
     "{a<|im_end|>}\n" ENDED},
    {"Alpaca's columns, for a model with conversations", "qwen2",
     "{\"instruction\": \"q\", \"input\": \"i\", \"output\": \"a\"}",
     CHATML("q\ni", "{a<|im_end|>}") ENDED},
    {"Alpaca's columns without an input", "qwen2",
     "{\"instruction\": \"q\", \"input\": \"\", \"output\": \"a\"}",
     CHATML("q", "{a<|im_end|>}") ENDED},
    {"Alpaca's columns, for a model without conversations", "gpt2",
     "{\"instruction\": \"q\", \"output\": \"a\"}",
     "Below is an instruction that describes a task. Write a response that appropriately "
     "completes the request.\n\n### Instruction:\nq\n\n### Response:\n{a<|endoftext|>}"},
    {"Alpaca's columns with an input, without conversations", "gpt2",
     "{\"instruction\": \"q\", \"output\": \"a\", \"input\": \"i\"}",
     "Below is an instruction that describes a task, paired with an input that provides further "
     "context. Write a response that appropriately completes the request.\n\n### Instruction:\nq"
     "\n\n### Input:\ni\n\n### Response:\n{a<|endoftext|>}"},
    {"input and output", "qwen2", "{\"input\": \"q \", \"output\": \"a\"}", "q {a<|endoftext|>}"},
    {"TRL's prompt and completion as lists", "qwen2",
     "{\"prompt\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", "
     "\"content\": \"b\"}, {\"role\": \"user\", \"content\": \"r\"}], \"completion\": [{\"role\": "
     "\"assistant\", \"content\": \"a\"}]}",
     CHATML("q", "b<|im_end|>") CHATML("r", "{a<|im_end|>}") ENDED},
    {"content as parts of text", "qwen2",
     "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"q\", "
     "\"image\": null}, {\"type\": \"text\", \"text\": \"r\"}]}, {\"role\": \"assistant\", "
     "\"content\": \"a\"}]}",
     CHATML("qr", "{a<|im_end|>}") ENDED},
    {"columns that are null", "qwen2",
     "{\"text\": null, \"messages\": null, \"prompt\": \"q\", \"completion\": \"a\"}",
     "q{a<|endoftext|>}"},
    {"fields of a turn that are null or harmless", "qwen2",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"q\", \"name\": null, \"from\": null, "
     "\"timestamp\": 1, \"annotations\": []}, {\"role\": \"assistant\", \"content\": \"a\", "
     "\"weight\": null}]}",
     CHATML("q", "{a<|im_end|>}") ENDED},
    {"turns out of training by any of their names", "qwen2",
     "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", \"train\": false}, {\"role\": "
     "\"assistant\", \"content\": \"b\", \"loss_mask\": 0}, {\"role\": \"assistant\", "
     "\"content\": \"c\", \"trainable\": 0.0}, {\"role\": \"assistant\", \"content\": \"d\", "
     "\"weight\": 1, \"train\": true}]}",
     "<|im_start|>assistant\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n"
     "<|im_start|>assistant\nc<|im_end|>\n<|im_start|>assistant\n{d<|im_end|>}\n" ENDED},
    {"a user's turn that is to be trained", "qwen2",
     "{\"messages\": [{\"role\": \"user\", \"content\": \"q\", \"train\": true}]}",
     "<|im_start|>user\n{q<|im_end|>}\n" ENDED},
    {"a text that ends itself", "qwen2", "{\"text\": \"ab<|endoftext|>\"}", "ab{<|endoftext|>}"},
    {"a completion that ends itself", "qwen2",
     "{\"prompt\": \"ab\", \"completion\": \"a<|endoftext|>\"}", "ab{a<|endoftext|>}"},
    {"a text that begins itself", "llama3", "{\"text\": \"<|begin_of_text|>ab\"}",
     "<|begin_of_text|>{ab<|end_of_text|>}"},
    {"a prompt that begins itself, with an empty one before it", "llama3",
     "{\"prompt\": \"<|begin_of_text|>ab\", \"completion\": \"c\"}\n{\"prompt\": \"\", "
     "\"completion\": \"<|begin_of_text|>c\"}",
     "<|begin_of_text|>ab{c<|end_of_text|>}<|begin_of_text|>{c<|end_of_text|>}"},
};

/* Check the documents that a line gives under these rules. */
static void makes(const char *what, const char *golden, const struct row_rules *rules,
                  const char *line, const char *want)
{
    char text[2048];
    struct tokenizer t = open_golden(golden, NULL, NULL);
    write_text(at("d.jsonl"), line);
    as_text(at("d.jsonl"), rules, &t, text, sizeof text);
    if (strcmp(text, want) != 0)
        print_error("%s\n", what);
    assert_string_equal(text, want);
    tokenizer_close(&t);
}

static void rows_of_known_shapes_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        makes(shapes[i].what, shapes[i].golden, &plain, shapes[i].line, shapes[i].want);
}

static void fields_say_which_columns_count(void **state)
{
    (void)state;
    static const char *const pair[] = {"prompt=question,completion=answer"};
    static const char *const words[] = {"instruction=i", "output=text"};
    static const char *const text[] = {"text=text"};
    static const struct {
        const char *const *fields;
        size_t count;
        const char *line, *want;
    } rows[] = {
        {pair, 1, "{\"question\": \"q\", \"answer\": \"a\", \"text\": \"t\", \"weight\": 3}",
         "q{a<|endoftext|>}"},
        {words, 2, "{\"i\": \"q\", \"text\": \"a\", \"output\": \"b\"}",
         CHATML("q", "{a<|im_end|>}") ENDED},
        {text, 1, "{\"prompt\": \"q\", \"completion\": \"a\", \"text\": \"ab\"}",
         "ab{<|endoftext|>}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row_rules rules = {.fields = rows[i].fields, .field_count = rows[i].count};
        makes(rows[i].line, "qwen2", &rules, rows[i].line, rows[i].want);
    }
}

static void prompts_are_trained_when_asked(void **state)
{
    (void)state;
    const struct row_rules all = {.train_on_prompts = true};
    makes("pair", "llama3", &all, "{\"prompt\": \"ab\", \"completion\": \"c\"}",
          "<|begin_of_text|>{abc<|end_of_text|>}");
    makes("chat", "qwen2", &all,
          "{\"prompt\": [{\"role\": \"user\", \"content\": \"q\"}], \"completion\": [{\"role\": "
          "\"assistant\", \"content\": \"a\"}]}",
          "<|im_start|>{user\nq<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n}" ENDED);
}

/* Open a file with these lines. */
static int open_lines(const char *lines, const struct row_rules *rules, struct data **d)
{
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    write_text(at("r.jsonl"), lines);
    const char *path = at("r.jsonl");
    const struct data_options o = {.paths = &path,
                                   .path_count = 1,
                                   .seq_len = 64,
                                   .batch_size = 1,
                                   .vocab_size = t.vocab_size,
                                   .rules = *rules,
                                   .once = true};
    const int rc = data_open(&o, &t, d);
    tokenizer_close(&t);
    return rc;
}

static void unusable_rows_are_counted(void **state)
{
    (void)state;
    const struct row_rules skip = {.skip_unusable = true};
    char text[1024];
    struct data *d;
    check_ok(
        open_lines("{\"text\": \"ab\"}\n{\"text\": 1}\n{\"messages\": [{\"role\": \"user\", "
                   "\"content\": \"q\"}]}\n{\n{\"text\": \"\xff\"}\n{\"messages\": [{\"role\": "
                   "\"assistant\", \"content\": \"a\"}, {\"role\": \"user\", \"content\": "
                   "1}]}\n{\"text\": \"ab\"}\n",
                   &skip, &d),
        "skip");
    const struct row_notes *n = data_row_notes(d);
    assert_int_equal(n->rows, 7);
    assert_int_equal(n->unusable, 5);
    assert_int_equal(data_tokens(d), 4);
    assert_non_null(strstr(row_unusable_text(n, text, sizeof text), "5 of 7 rows could not be"));
    assert_non_null(strstr(text, "r.jsonl:2: text must be a string"));
    data_close(d);
    check_refused(open_lines("{}\n[]\n", &skip, &d), NJ_E_FORMAT,
                  "no row can be used; the first: ", "all are unusable");
}

static void columns_that_are_not_read_are_noted(void **state)
{
    (void)state;
    char text[1024];
    struct data *d;
    check_ok(open_lines("{\"text\": \"ab\", \"id\": 1, \"url\": null}\n{\"source\": \"s\", "
                        "\"text\": \"cd\", \"id\": 2, \"prompt\": \"p\"}\n",
                        &plain, &d),
             "columns");
    assert_string_equal(row_columns_text(data_row_notes(d), text, sizeof text),
                        "columns not read: id, source, prompt");
    data_close(d);
    check_ok(open_lines("{\"text\": \"ab\", \"url\": null}\n", &plain, &d), "no column");
    assert_null(row_columns_text(data_row_notes(d), text, sizeof text));
    data_close(d);
}

#define TURN(fields) "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", " fields "}]}"
static const struct {
    const char *line, *part;
} refused[] = {
    {"{\"text\": \"a\", \"messages\": []}", "r.jsonl:1: the row has messages, and also text; say "
                                            "which counts: --fields messages=messages, "
                                            "or --fields text=text"},
    {"{\"instruction\": \"a\", \"output\": \"a\", \"text\": \"a\"}",
     "--fields instruction=instruction,output=output, or --fields text=text"},
    {"{\"question\": \"a\", \"answer\": \"b\", \"x\": null}", "it has question, answer: say which"},
    {"{\"text\": \"a\", \"chosen\": \"b\"}", "r.jsonl:1: the column chosen may change"},
    {"{\"messages\": [], \"system\": \"b\"}", "r.jsonl:1: the column system may change"},
    {TURN("\"audio\": \"x\""), "r.jsonl:1: audio of messages has no place in this model's"},
    {TURN("\"train\": \"no\""), "r.jsonl:1: train of messages must be 0 (no loss) or 1"},
    {TURN("\"train\": true, \"weight\": 0"), "of a turn of messages contradict each other"},
    {TURN("\"value\": \"b\""), "r.jsonl:1: content and value of messages: a turn has one of them"},
    {"{\"conversations\": [{\"from\": \"tool\", \"value\": \"x\"}]}",
     "r.jsonl:1: no turn of messages is the assistant's"},
    {"{\"conversations\": [[]]}", "r.jsonl:1: conversations must be a list of {role, content}"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\", \"image\": "
     "\"x\"}]}]}",
     "r.jsonl:1: content of messages has a part that is not"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"x\", "
     "\"image\": \"y\"}]}]}",
     "r.jsonl:1: content of messages has a part that is not"},
    {"{\"prompt\": \"a\", \"completion\": []}",
     "r.jsonl:1: prompt and completion must be both strings, or both lists of messages"},
    {"{\"instruction\": \"a\", \"input\": 1, \"output\": \"b\"}",
     "r.jsonl:1: instruction, input and output must be strings"},
};

static void rows_that_are_not_understood_are_refused(void **state)
{
    (void)state;
    struct data *d;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_refused(open_lines(refused[i].line, &plain, &d), NJ_E_FORMAT, refused[i].part,
                      refused[i].line);
    const struct row_rules all = {.train_on_prompts = true};
    check_refused(open_lines(TURN("\"train\": false"), &all, &d), NJ_E_FORMAT,
                  "train takes a turn of messages out of training, and --train-on-prompts", "both");
}

static void fields_that_mean_nothing_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *word, *part;
    } words[] = {
        {"question=prompt", "--fields question=prompt: there is no such name"},
        {"prompt", "--fields prompt: the column is missing"},
        {"text=a,text=b", "--fields text=b: the name is given twice"},
        {"conversations=a", "there is no such name"},
    };
    struct data *d;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const struct row_rules rules = {.fields = &words[i].word, .field_count = 1};
        check_refused(open_lines("{\"text\": \"a\"}", &rules, &d), NJ_E_ARG, words[i].part,
                      words[i].word);
    }
}

/* ---- where documents end ---- */

#define TURNS                                                                                      \
    "{% for m in messages %}{% if m.role == 'user' %}U: {{ m.content }} A:{% else %} "             \
    "{{ m.content }}<|endoftext|>{% endif %}{% endfor %}"
#define CHAT(a, b)                                                                                 \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", "         \
    "\"content\": \"" a "\"}, {\"role\": \"user\", \"content\": \"r\"}, {\"role\": "               \
    "\"assistant\", \"content\": \"" b "\"}]}\n"

/* Write the tokens of a file, with a bar before each document and braces around targets with a loss. */
static void as_documents(const char *path, const struct tokenizer *t, char *out, size_t room)
{
    struct data *d = open_file(path, &plain, t, 16);
    size_t n = 0;
    bool open = false;
    for (int64_t at = 0; at < data_tokens(d); at++) {
        struct data_token token;
        size_t bytes;
        bool special;
        check_ok(data_token(d, at, &token), path);
        const char *text = tokenizer_token(t, token.id, &bytes, &special);
        n += (size_t)snprintf(out + n, room - n, "%s%s%s%.*s", open && !token.trained ? "}" : "",
                              token.begins ? "|" : "", token.trained && !open ? "{" : "",
                              (int)bytes, text);
        open = token.trained;
    }
    snprintf(out + n, room - n, "%s", open ? "}" : "");
    data_close(d);
}

static const struct {
    const char *what, *lines, *want;
} documents[] = {
    {"turns that end with the token that ends documents", CHAT("a", "b") CHAT("c", "d"),
     "|U: q A:{ a<|endoftext|>}U: r A:{ b<|endoftext|>}"
     "|U: q A:{ c<|endoftext|>}U: r A:{ d<|endoftext|>}"},
    {"a prompt with that token",
     "{\"prompt\": \"a<|endoftext|>b\", \"completion\": \"c<|endoftext|>d\"}\n"
     "{\"prompt\": \"e\", \"completion\": \"f\"}",
     "|a<|endoftext|>b{c<|endoftext|>d<|endoftext|>}|e{f<|endoftext|>}"},
    {"texts in a text", "{\"text\": \"ab<|endoftext|>cd\"}\n{\"text\": \"ef\"}",
     "|ab{<|endoftext|>}|c{d<|endoftext|>}|ef{<|endoftext|>}"},
};

static struct tokenizer open_turns(void)
{
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    write_text(at("model/chat_template.jinja"), TURNS);
    return t;
}

static void documents_end_where_rows_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        char text[2048];
        struct tokenizer t = open_turns();
        write_text(at("d.jsonl"), documents[i].lines);
        as_documents(at("d.jsonl"), &t, text, sizeof text);
        if (strcmp(text, documents[i].want) != 0)
            print_error("%s\n", documents[i].what);
        assert_string_equal(text, documents[i].want);
        tokenizer_close(&t);
    }
}

/* Positions continue after the token that ends a turn, and all of a conversation is visible. */
static void a_conversation_is_one_document_of_a_row(void **state)
{
    (void)state;
    struct tokenizer t = open_turns();
    struct batch b;
    write_text(at("d.jsonl"), CHAT("a", "b") CHAT("c", "d"));
    const char *path = at("d.jsonl");
    const struct data_options o = {.paths = &path,
                                   .path_count = 1,
                                   .packing = PACKING_BFD,
                                   .seq_len = 128,
                                   .batch_size = 1,
                                   .vocab_size = t.vocab_size};
    struct data *d;
    check_ok(data_open(&o, &t, &d), path);
    assert_int_equal(batches_next(data_batches(d), &b), 0);
    const int each = (int)data_tokens(d) / 2 - 1;
    for (int i = 0; i < 2 * each; i++) {
        assert_int_equal(b.doc_start[i], i < each ? 0 : each);
        assert_int_equal(b.pos[i], i % each);
    }
    data_close(d);
    tokenizer_close(&t);
}

/* A role with another name becomes what the template makes of it; one that the template leaves out is refused. */
static void roles_without_a_place_are_refused(void **state)
{
    static const char line[] =
        "{\"messages\": [{\"role\": \"developer\", \"content\": \"d\"}, {\"role\": "
        "\"user\", \"content\": \"q\"}, {\"role\": \"assistant\", \"content\": "
        "\"a\"}]}";
    static const struct {
        const char *template, *want; /* NULL: it is refused */
    } rows[] = {
        {"{% for m in messages %}<{{ m.role }}>{{ m.content }}<|im_end|>{% endfor %}",
         "|<developer>d<|im_end|><user>q<|im_end|>{<assistant>a<|im_end|>}<|endoftext|>"},
        {"{% for m in messages %}{% if m.role in ['user', 'assistant'] %}<{{ m.role }}>"
         "{{ m.content }}<|im_end|>{% endif %}{% endfor %}",
         NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        struct tokenizer t = open_golden("qwen2", NULL, NULL);
        struct data *d;
        const char *path = at("d.jsonl");
        const struct data_options o = {.paths = &path,
                                       .path_count = 1,
                                       .seq_len = 8,
                                       .batch_size = 1,
                                       .vocab_size = t.vocab_size};
        write_text(at("model/chat_template.jinja"), rows[i].template);
        write_text(path, line);
        if (rows[i].want) {
            as_documents(path, &t, text, sizeof text);
            assert_string_equal(text, rows[i].want);
        } else {
            check_refused(
                data_open(&o, &t, &d), NJ_E_FORMAT,
                "d.jsonl:1: message 1 has no place in this model's conversations: its chat "
                "template writes nothing of the role developer",
                line);
        }
        tokenizer_close(&t);
    }
}

static void token_files_hold_no_such_documents(void **state)
{
    (void)state;
    struct tokenizer t = open_turns();
    struct tokenized done;
    const char *path = at("d.jsonl");
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        write_text(path, documents[i].lines);
        const int rc = tokenize(&path, 1, &plain, &together, &t, at("d.bin"), &done);
        if (i == 2)
            check_ok(rc, documents[i].what);
        else
            check_refused(
                rc, NJ_E_UNSUPPORTED,
                "d.jsonl: a document has the token that ends documents (1256) in its midst",
                documents[i].what);
    }
    tokenizer_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_end_where_rows_do),
        cmocka_unit_test(a_conversation_is_one_document_of_a_row),
        cmocka_unit_test(roles_without_a_place_are_refused),
        cmocka_unit_test(token_files_hold_no_such_documents),
        cmocka_unit_test(rows_of_known_shapes_are_read),
        cmocka_unit_test(fields_say_which_columns_count),
        cmocka_unit_test(prompts_are_trained_when_asked),
        cmocka_unit_test(unusable_rows_are_counted),
        cmocka_unit_test(columns_that_are_not_read_are_noted),
        cmocka_unit_test(rows_that_are_not_understood_are_refused),
        cmocka_unit_test(fields_that_mean_nothing_are_refused),
    };
    return cmocka_run_group_tests_name("rows", tests, scratch_begin, scratch_end);
}
