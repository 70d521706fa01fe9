/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf_scores.c: GGUF's vocabulary with scores, llama: ids equal those of llama.cpp (xllamacpp 2026.10.11549), and
 * the vocabulary in a folder made from it.
 */
#include "text/bpe.h"
#include "text/gguf_tokenizer.h"
#include "tokenizer_fixture.h"

#define CORPUS "tests/fuzz/corpus/gguf_tokenizer/"

static const char *const texts[] = {"abc", "bcabc", " ab<u>ab",
                                    "\xc3\xa9\xe6\xbc\xa2"
                                    "a",
                                    "<s>a  b"};
enum { TEXTS = 5, IDS = 8 };

/* bc is 264, ab 265, cab 266, a space with a 267, <u> 268. */
static const int32_t spaced[TEXTS][IDS] = {{259, 265, 262},
                                           {259, 264, 265, 262},
                                           {259, 259, 265, 268, 259, 265},
                                           {259, 263, 233, 191, 165, 260},
                                           {1, 267, 259, 259, 261}},
                     bare[TEXTS][IDS] = {{265, 262},
                                         {264, 265, 262},
                                         {259, 265, 268, 265},
                                         {263, 233, 191, 165, 260},
                                         {1, 260, 259, 259, 261}};

static void check_ids(const struct tokenizer *t, const char *text, const int32_t *want)
{
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    check_ok(tokenizer_encode(t, text, strlen(text), &ids, &count, &capacity), text);
    for (size_t i = 0; i < IDS; i++)
        if ((i < count ? ids[i] : 0) != want[i])
            fail_msg("'%s': id %zu is %d, llama.cpp's %d", text, i, i < count ? ids[i] : 0,
                     want[i]);
    free(ids);
}

static struct tokenizer open_scores(const char *path)
{
    struct tokenizer t;
    check_ok(tokenizer_open(path, &t), path);
    assert_string_equal(t.refusal, "");
    return t;
}

static void ids_are_those_of_llama_cpp(void **state)
{
    (void)state;
    struct tokenizer t = open_scores(CORPUS "valid_scores");
    for (int i = 0; i < TEXTS; i++)
        check_ids(&t, texts[i], spaced[i]);
    assert_int_equal(tokenizer_begin_of_text(&t), 1);
    assert_int_equal(t.end_of_text, 2);
    tokenizer_close(&t);
    t = open_scores(CORPUS "valid_scores_without_a_space");
    for (int i = 0; i < TEXTS; i++)
        check_ids(&t, texts[i], bare[i]);
    assert_int_equal(tokenizer_begin_of_text(&t), -1);
    tokenizer_close(&t);
}

/* Merges take the place of scores: bc is merged before ab. */
static void merges_of_gemma_are_read(void **state)
{
    (void)state;
    static const int32_t merged[TEXTS][IDS] = {{260, 264},
                                               {264, 260, 264},
                                               {259, 265, 268, 265},
                                               {263, 233, 191, 165, 260},
                                               {1, 260, 259, 259, 261}};
    struct tokenizer t = open_scores(CORPUS "valid_gemma");
    for (int i = 0; i < TEXTS; i++)
        check_ids(&t, texts[i], merged[i]);
    assert_int_equal(tokenizer_begin_of_text(&t), -1);
    tokenizer_close(&t);
    /* two spaces are a token of their own, which stands for U+2581 in the merges */
    t = open_scores(CORPUS "valid_gemma_spaces");
    check_ids(&t, "<s>a  b   a", (int32_t[IDS]){1, 260, 268, 261, 268, 267});
    tokenizer_close(&t);
}

static void a_folder_has_the_same_table(void **state)
{
    (void)state;
    int common;
    remove_tree(at("copy"));
    make_folder("copy");
    check_ok(gguf_tokenizer_copy(CORPUS "valid_scores", at("copy")), "copy");
    struct tokenizer t = open_scores(CORPUS "valid_scores"), copy = open_scores(at("copy"));
    assert_int_equal(tokenizer_difference(&t, &copy, &common), -1);
    assert_int_equal(tokenizer_begin_of_text(&copy), 1);
    check_ids(&copy, " ab<u>ab", spaced[2]);
    tokenizer_close(&t);
    tokenizer_close(&copy);
}

static void what_is_not_supported_is_named(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"scores_missing", "tokenizer.ggml.scores has 0 entries for 269 tokens; fetch"},
        {"scores_too_few", "tokenizer.ggml.scores has 267 entries"},
        {"scores_are_whole", "tokenizer.ggml.scores is an array of i32, not"},
        {"scores_not_numbers", "the score of token 0 is not a number"},
        {"scores_token_too_long", "token 268 has 600 bytes; at most 512"},
        {"scores_character_missing", "token 268, 'az', has a character that is not a token"},
        {"scores_byte_missing", "1 of the 256 bytes have no token"},
        {"gemma_without_merges", "tokenizer.ggml.merges is missing"},
        {"gemma_merge_unknown", "an entry of model.merges is "},
        {"ends_with_eos", "tokenizer.ggml.add_eos_token is true"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[128];
        struct tokenizer t;
        snprintf(path, sizeof path, CORPUS "%s", cases[i][0]);
        check_ok(tokenizer_open(path, &t), path);
        assert_string_equal(t.kind, "token files");
        if (!strstr(t.refusal, cases[i][1]))
            fail_msg("'%s', expected '%s'", t.refusal, cases[i][1]);
        tokenizer_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_those_of_llama_cpp),
        cmocka_unit_test(merges_of_gemma_are_read),
        cmocka_unit_test(a_folder_has_the_same_table),
        cmocka_unit_test(what_is_not_supported_is_named),
    };
    return cmocka_run_group_tests_name("gguf_scores", tests, scratch_begin, scratch_end);
}
