/* SPDX-License-Identifier: Apache-2.0
 *
 * test_generation.c: stop tokens in generation_config.json.
 */
#include "text/generation.h"
#include "tokenizer_fixture.h"

enum { VOCAB = 2000 };

static void begin(const char *generation, const char *config)
{
    unlink(at("model/generation_config.json"));
    unlink(at("model/config.json"));
    if (generation)
        write_text(at("model/generation_config.json"), generation);
    if (config)
        write_text(at("model/config.json"), config);
}

static void check_stops(const struct generation *g, const int32_t *want, int count,
                        const char *what)
{
    if (g->stops != count)
        fail_msg("%s: %d stop ids, expected %d", what, g->stops, count);
    for (int i = 0; i < count; i++)
        if (g->stop[i] != want[i] || !generation_stops(g, want[i]))
            fail_msg("%s: stop id %d is %d, expected %d", what, i, g->stop[i], want[i]);
}

/* The ids of the files come first, then the tokenizer's; each occurs once. */
static void stop_ids_are_merged(void **state)
{
    (void)state;
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    const int text = t.end_of_text, turn = t.end_of_turn;
    assert_true(text >= 0 && turn >= 0 && text != turn);
    const struct {
        const char *generation, *config;
        int32_t want[STOP_IDS_MOST];
        int count;
    } rows[] = {
        {NULL, NULL, {text, turn}, 2},
        {"{}", NULL, {text, turn}, 2},
        {"{\"eos_token_id\": null}", NULL, {text, turn}, 2},
        {"{\"eos_token_id\": 7}", "{\"eos_token_id\": 8}", {7, text, turn}, 3},
        {"{\"eos_token_id\": [5, 3, 5, 4]}", NULL, {5, 3, 4, text, turn}, 5},
        {"{\"eos_token_id\": []}", "{\"eos_token_id\": 8}", {8, text, turn}, 3},
        {NULL, "{\"eos_token_id\": [9, 10]}", {9, 10, text, turn}, 4},
        /* Settings that are not applied are not checked. */
        {"{\"top_k\": -1, \"temperature\": \"0.6\", \"eos_token_id\": [6, 7]}",
         NULL,
         {6, 7, text, turn},
         4},
        {"{\"eos_token_id\": [0, 1, 2, 3, 4, 5]}", NULL, {0, 1, 2, 3, 4, 5, text, turn}, 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct generation g;
        begin(rows[i].generation, rows[i].config);
        check_ok(generation_read(at("model"), &t, VOCAB, &g), "merged");
        check_stops(&g, rows[i].want, rows[i].count, rows[i].generation ? rows[i].generation : "-");
        assert_false(generation_stops(&g, 1999));
    }
    /* As many ids as there is room for, with the tokenizer's among them. */
    char list[64];
    struct generation g;
    snprintf(list, sizeof list, "{\"eos_token_id\": [0, 1, 2, 3, 4, 5, %d, %d]}", turn, text);
    begin(list, NULL);
    check_ok(generation_read(at("model"), &t, VOCAB, &g), list);
    assert_int_equal(g.stops, 8);
    /* A token of the tokenizer that the model lacks ends nothing. */
    begin(NULL, NULL);
    check_ok(generation_read(at("model"), &t, text, &g), "small");
    assert_int_equal(g.stops, 0);
    t.end_of_text = t.end_of_turn = -1;
    check_ok(generation_read(at("model"), &t, VOCAB, &g), "none");
    assert_int_equal(g.stops, 0);
    tokenizer_close(&t);
}

static const struct {
    const char *text, *part;
} refused[] = {
    {"{", "model/generation_config.json:1: column"},
    {"[]", "generation_config.json: the file must hold an object"},
    {"{\"eos_token_id\": \"a\"}",
     "generation_config.json: eos_token_id is \"a\"; it must be an id from 0 to 1999"},
    {"{\"eos_token_id\": -1}", "eos_token_id is -1"},
    {"{\"eos_token_id\": 2000}", "eos_token_id is 2000"},
    {"{\"eos_token_id\": 4294967296}", "eos_token_id is 4294967296"},
    {"{\"eos_token_id\": [1, [2]]}", "eos_token_id is [1,[2]]"},
    {"{\"eos_token_id\": [1, null]}", "eos_token_id is [1,null]"},
    {"{\"eos_token_id\": [1, 2, 3, 4, 5, 6, 7, 8, 9]}", "or a list of at most 8"},
    {"{\"eos_token_id\": [1, 2, 3, 4, 5, 6, 7, 8]}", "more than 8 tokens end a text"},
};

static void bad_settings_are_named(void **state)
{
    (void)state;
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    struct generation g;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        begin(refused[i].text, NULL);
        check_refused(generation_read(at("model"), &t, VOCAB, &g), NJ_E_FORMAT, refused[i].part,
                      refused[i].text);
    }
    begin(NULL, "{\"eos_token_id\": true}");
    check_refused(generation_read(at("model"), &t, VOCAB, &g), NJ_E_FORMAT,
                  "model/config.json: eos_token_id is true", "config");
    begin(NULL, NULL);
    assert_int_equal(mkfifo(at("model/generation_config.json"), 0666), 0);
    check_refused(generation_read(at("model"), &t, VOCAB, &g), NJ_E_IO, "not a regular file",
                  "a pipe");
    unlink(at("model/generation_config.json"));
    tokenizer_close(&t);
}

/* A model's file has no folder with further files. */
static void files_have_the_tokenizers_alone(void **state)
{
    (void)state;
    static const char file[] = "tests/fuzz/corpus/apr/valid_tokenizer";
    struct tokenizer t;
    struct generation g;
    check_ok(tokenizer_open(file, &t), file);
    t.end_of_turn = 3;
    check_ok(generation_read(file, &t, VOCAB, &g), file);
    check_stops(&g, (int32_t[]){t.end_of_text, 3}, 2, file);
    tokenizer_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_ids_are_merged),
        cmocka_unit_test(bad_settings_are_named),
        cmocka_unit_test(files_have_the_tokenizers_alone),
    };
    return cmocka_run_group_tests_name("generation", tests, scratch_begin, scratch_end);
}
