/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tokenizer_folder.c: the tokenizer of a folder comes from all its files: tokens that files other than
 * tokenizer.json add, and folders without tokenizer.json.
 */
#include "io/notes.h"
#include "tokenizer_fixture.h"

static char heard[1024];

static void hear(const char *sentence)
{
    snprintf(heard, sizeof heard, "%s", sentence);
}

static void check_ids(const struct tokenizer *t, const char *text, const int32_t *want, size_t n)
{
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    check_ok(tokenizer_encode(t, text, strlen(text), &ids, &count, &capacity), text);
    assert_int_equal(count, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ids[i], want[i]);
    free(ids);
}

/* Open a folder with GPT-2's golden tokenizer, whose ids end at 1258, and other files. */
static struct tokenizer open_with(const char *name, const char *text)
{
    struct tokenizer t;
    tokenizer_folder("gpt2", NULL, NULL);
    write_text(at(name), text);
    heard[0] = '\0';
    notes_to(hear);
    check_ok(tokenizer_open(at("model"), &t), name);
    assert_string_equal(t.kind, "bpe");
    return t;
}

/* Return the first id that the golden tokenizer lacks. */
static int32_t next_id(void)
{
    struct tokenizer t;
    check_ok(tokenizer_open(tokenizer_folder("gpt2", NULL, NULL), &t), "golden");
    const int32_t n = t.vocab_size;
    tokenizer_close(&t);
    return n;
}

static void tokens_of_the_configuration_are_added_in_the_order_of_their_ids(void **state)
{
    (void)state;
    const int32_t n = next_id();
    struct tokenizer t =
        open_with("model/tokenizer_config.json",
                  "{\"added_tokens_decoder\":{\"20000\":{\"content\":\"<b>\",\"special\":true},"
                  "\"3000\":{\"content\":\"<a>\",\"special\":false}},\"pad_token\":\"<pad>\","
                  "\"additional_special_tokens\":[\"<b>\",{\"content\":\"<c>\"}]}");
    const int32_t want[] = {n, n + 1, n + 2, n + 3};
    check_ids(&t, "<a><b><pad><c>", want, 4);
    size_t bytes;
    bool special[4];
    for (int i = 0; i < 4; i++)
        tokenizer_token(&t, n + i, &bytes, &special[i]);
    assert_true(!special[0] && special[1] && special[2] && special[3]);
    assert_non_null(strstr(heard, "4 tokens that tokenizer.json lacks are added"));
    tokenizer_close(&t);
}

static void older_files_add_tokens_where_the_configuration_lists_none(void **state)
{
    (void)state;
    const int32_t n = next_id();
    struct tokenizer t = open_with("model/added_tokens.json", "{\"<y>\": 9000, \"<x>\": 8000}");
    check_ids(&t, "<x><y>", (const int32_t[]){n, n + 1}, 2);
    tokenizer_close(&t);
    t = open_with("model/special_tokens_map.json", "{\"sep_token\": {\"content\": \"<sep>\"}}");
    check_ids(&t, "<sep>", &n, 1);
    tokenizer_close(&t);
    tokenizer_folder("gpt2", NULL, NULL);
    write_text(at("model/tokenizer_config.json"), "{\"added_tokens_decoder\":{}}");
    write_text(at("model/added_tokens.json"), "{\"<x>\": 8000}");
    check_ok(tokenizer_open(at("model"), &t), "both");
    assert_int_equal(t.vocab_size, n);
    tokenizer_close(&t);
}

static void tokens_that_are_there_need_no_note(void **state)
{
    (void)state;
    const int32_t n = next_id();
    struct tokenizer t =
        open_with("model/tokenizer_config.json", "{\"eos_token\":\"<|endoftext|>\"}");
    assert_int_equal(t.vocab_size, n);
    assert_string_equal(heard, "");
    tokenizer_close(&t);
}

static void open_bare(const char *config, struct tokenizer *t)
{
    remove_tree(at("model"));
    make_folder("model");
    if (config)
        write_text(at("model/config.json"), config);
    check_ok(tokenizer_open(at("model"), t), config);
}

static void a_vocabulary_of_bytes_is_read_as_bytes(void **state)
{
    (void)state;
    struct tokenizer t;
    static const struct {
        const char *config;
        int ids, end;
    } rows[] = {{NULL, 257, 256},
                {"{\"vocab_size\":257}", 257, 256},
                {"{\"vocab_size\":384}", 257, 256},
                {"{\"vocab_size\":256}", 256, -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open_bare(rows[i].config, &t);
        assert_string_equal(t.kind, "bytes");
        assert_int_equal(t.vocab_size, rows[i].ids);
        assert_int_equal(t.end_of_text, rows[i].end);
        tokenizer_close(&t);
    }
}

static void another_vocabulary_is_read_from_token_files_alone(void **state)
{
    (void)state;
    static const char *const others[] = {"tekken.json", "tokenizer.model", "vocab.json",
                                         "qwen.tiktoken", NULL};
    struct tokenizer t;
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    char name[64];
    for (int i = 0; i < 5; i++) {
        open_bare("{\"vocab_size\":1280,\"eos_token_id\":[7,8]}", &t);
        snprintf(name, sizeof name, "model/%s", others[i] ? others[i] : "README.md");
        write_text(at(name), "{}");
        check_ok(tokenizer_open(at("model"), &t), name);
        assert_string_equal(t.kind, "token files");
        assert_int_equal(t.end_of_text, 7);
        check_refused(tokenizer_encode(&t, "a", 1, &ids, &count, &capacity), NJ_E_UNSUPPORTED,
                      others[i] ? others[i] : "a vocabulary of 1280 tokens is not one of bytes",
                      name);
        tokenizer_close(&t);
    }
}

/* ---- vocab.json and merges.txt ---- */

/* Write the bytes of GPT-2's alphabet that the texts need, their merges, and a letter and its mark: e, U+0301. */
static void make_vocab_files(const char *config, const char *settings, const char *merges)
{
    remove_tree(at("model"));
    make_folder("model");
    write_text(at("model/vocab.json"),
               "{\"1\":0,\"2\":1,\"e\":2,\"\u0120\":3,\"12\":4,\"\u0120e\":5,\"\u00c3\":6,"
               "\"\u00a9\":7,\"\u00cc\":8,\"\u0123\":9,\"#\":10,\"##\":11}");
    write_text(at("model/merges.txt"), merges);
    write_text(at("model/config.json"), config);
    write_text(at("model/tokenizer_config.json"), settings);
}

/* Open the folder, and check the ids of digits, signs, a space, and of a letter with a separate mark. */
static void check_vocab_files(const char *config, const char *settings, const int32_t *want,
                              size_t count)
{
    struct tokenizer t;
    make_vocab_files(config, settings, "#version: 0.2\n1 2\r\n\xc4\xa0 e\n# #\n");
    check_ok(tokenizer_open(at("model"), &t), settings);
    assert_string_equal(t.refusal, "");
    check_ids(&t, "12## e\xcc\x81<|endoftext|>", want, count);
    tokenizer_close(&t);
}

static void vocabulary_and_merges_are_used_as_their_class_does(void **state)
{
    (void)state;
    static const int32_t gpt2[] = {4, 11, 5, 8, 9, 12}, spaced[] = {3, 4, 11, 5, 8, 9, 12},
                         qwen2[] = {0, 1, 11, 3, 6, 7, 12};
    static const struct {
        const char *config, *settings;
        const int32_t *ids;
        size_t count;
    } rows[] = {
        {"{\"model_type\":\"llama\"}", "{\"tokenizer_class\":\"GPT2TokenizerFast\"}", gpt2, 6},
        {"{\"model_type\":\"llama\",\"tokenizer_class\":\"CodeGenTokenizer\"}", "{}", gpt2, 6},
        {"{\"model_type\":\"qwen3\"}", "{\"tokenizer_class\":\"GPT2Tokenizer\"}", gpt2, 6},
        {"{}", "{\"tokenizer_class\":\"GPT2Tokenizer\",\"add_prefix_space\":true}", spaced, 7},
        {"{\"model_type\":\"qwen3\"}", "{}", qwen2, 7},
        {"{\"model_type\":\"qwen2\"}", "{\"tokenizer_class\":\"GPT2Tokenizer\"}", qwen2, 7},
        {"{\"model_type\":\"llama\"}", "{\"tokenizer_class\":\"Qwen2Tokenizer\"}", qwen2, 7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_vocab_files(rows[i].config, rows[i].settings, rows[i].ids, rows[i].count);
}

static void vocabularies_of_other_classes_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *config, *settings, *merges, *sentence;
    } rows[] = {
        {"{\"model_type\":\"llama\"}", "{}", "", "not for a folder that names none"},
        {"{}", "{\"tokenizer_class\":\"RobertaTokenizer\"}", "", "not for RobertaTokenizer"},
        {"{}", "{\"tokenizer_class\":\"GPT2Tokenizer\",\"auto_map\":{}}", "", "code of its own"},
        {"{\"model_type\":\"mistral\"}", "{\"tokenizer_class\":\"GPT2Tokenizer\"}", "",
         "copy the model's tokenizer.json there"},
        {"{}", "{\"tokenizer_class\":\"GPT2Tokenizer\",\"add_bos_token\":true}", "",
         "add_bos_token is true"},
        {"{}", "{\"tokenizer_class\":\"GPT2Tokenizer\"}", "1 2\n\n", "an entry of model.merges"},
    };
    struct tokenizer t;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        make_vocab_files(rows[i].config, rows[i].settings, rows[i].merges);
        check_ok(tokenizer_open(at("model"), &t), rows[i].sentence);
        assert_string_equal(t.kind, "token files");
        if (!strstr(t.refusal, rows[i].sentence))
            fail_msg("%s: %s", rows[i].sentence, t.refusal);
        tokenizer_close(&t);
    }
    make_vocab_files("{}", "{\"tokenizer_class\":\"GPT2Tokenizer\"}", "1 \xff\n");
    check_refused(tokenizer_open(at("model"), &t), NJ_E_FORMAT, "merge 0 is not UTF-8", "merges");
}

static void a_damaged_tokenizer_is_an_error(void **state)
{
    (void)state;
    struct tokenizer t;
    tokenizer_folder("gpt2", "{", "[");
    check_refused(tokenizer_open(at("model"), &t), NJ_E_FORMAT, "tokenizer.json:1: ", "damaged");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_the_configuration_are_added_in_the_order_of_their_ids),
        cmocka_unit_test(older_files_add_tokens_where_the_configuration_lists_none),
        cmocka_unit_test(tokens_that_are_there_need_no_note),
        cmocka_unit_test(a_vocabulary_of_bytes_is_read_as_bytes),
        cmocka_unit_test(another_vocabulary_is_read_from_token_files_alone),
        cmocka_unit_test(vocabulary_and_merges_are_used_as_their_class_does),
        cmocka_unit_test(vocabularies_of_other_classes_are_refused_by_name),
        cmocka_unit_test(a_damaged_tokenizer_is_an_error),
    };
    return cmocka_run_group_tests_name("tokenizer_folder", tests, scratch_begin, scratch_end);
}
