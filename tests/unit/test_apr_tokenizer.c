/* SPDX-License-Identifier: Apache-2.0
 *
 * test_apr_tokenizer.c: tokenizers in the metadata of APR files, compared with those of the GGUF files that they came
 * from.
 */
#include "apr_fixture.h"
#include "text/bpe.h"
#include "text/chat.h"
#include "text/gguf_tokenizer.h"
#include "tokenizer_fixture.h"

static const char text[] = "I'll be\n\n 12345 caf\xc3\xa9 <left> <|im_start|>x";

/* Write a GGUF file that contains only a tokenizer. */
static void write_gguf(const char *golden)
{
    struct tokenizer t;
    struct gguf_writer *w;
    tokenizer_folder(golden, NULL, NULL);
    write_text(at("model/tokenizer_config.json"),
               "{\"eos_token\":{\"content\":\"<tool>\"},\"pad_token\":\"<left>\","
               "\"chat_template\":\"{{ '<|im_start|>' }}\"}");
    check_ok(tokenizer_open(at("model"), &t), golden);
    check_ok(gguf_write_begin(at("t.gguf"), &w), golden);
    check_ok(gguf_put_tokenizer(w, &t, t.vocab_size + 3), golden);
    check_ok(gguf_write_tensors(w, NULL, 0), golden);
    check_ok(gguf_write_end(w), golden);
    tokenizer_close(&t);
}

/* Write t.apr with changed metadata. */
static void write_apr(const char *change)
{
    struct gguf g;
    const struct apr_bytes none = {0};
    json_t *m = json_object(), *changes = json_loads(change, 0, NULL);
    assert_non_null(changes);
    check_ok(gguf_open(at("t.gguf"), &g), "open");
    apr_put_tokenizer(m, &g);
    gguf_close(&g);
    assert_int_equal(json_object_update(m, changes), 0);
    char *metadata = json_dumps(m, JSON_COMPACT);
    assert_int_equal(apr_write(at("t.apr"), apr_file(512, metadata, 0, &none, &none)), 0);
    free(metadata);
    json_decref(changes);
    json_decref(m);
}

static void check_same(const char *golden)
{
    struct tokenizer a, b;
    int32_t *x = NULL, *y = NULL;
    size_t n = 0, m = 0, room[2] = {0, 0};
    int common;
    check_ok(tokenizer_open(at("t.gguf"), &a), golden);
    check_ok(tokenizer_open(at("t.apr"), &b), golden);
    assert_string_equal(a.kind, "bpe");
    if (strcmp(b.kind, "bpe") != 0)
        fail_msg("%s: %s", golden, b.refusal);
    assert_true(tokenizer_hash(&a) == tokenizer_hash(&b));
    assert_int_equal(tokenizer_difference(&a, &b, &common), -1);
    assert_int_equal(common, a.vocab_size);
    assert_int_equal(a.end_of_text, b.end_of_text);
    assert_int_equal(tokenizer_begin_of_text(&a), tokenizer_begin_of_text(&b));
    check_ok(tokenizer_encode(&a, text, sizeof text - 1, &x, &n, &room[0]), golden);
    check_ok(tokenizer_encode(&b, text, sizeof text - 1, &y, &m, &room[1]), golden);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n * sizeof *x);
    free(x);
    free(y);
    tokenizer_close(&a);
    tokenizer_close(&b);
}

static void check_same_file(const char *a, const char *b)
{
    size_t n, m;
    char *x = read_bytes(a, &n), *y = read_bytes(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

static void tokenizers_of_gguf_files_are_the_same(void **state)
{
    (void)state;
    static const char *const golden[] = {"qwen2", "llama3", "gpt2"};
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        json_t *template;
        write_gguf(golden[i]);
        write_apr("{}");
        check_same(golden[i]);
        check_ok(chat_template(at("t.apr"), &template), golden[i]);
        assert_string_equal(json_string_value(template), "{{ '<|im_start|>' }}");
        json_decref(template);
        remove_tree(at("a"));
        remove_tree(at("b"));
        make_folder("a");
        make_folder("b");
        check_ok(gguf_tokenizer_check(at("t.apr")), golden[i]);
        check_ok(gguf_tokenizer_copy(at("t.gguf"), at("a")), golden[i]);
        check_ok(gguf_tokenizer_copy(at("t.apr"), at("b")), golden[i]);
        check_same_file(at("a/tokenizer.json"), at("b/tokenizer.json"));
        check_same_file(at("a/tokenizer_config.json"), at("b/tokenizer_config.json"));
    }
    /* the other place of the template, and another word for the kind, or none */
    write_apr("{\"chat_template\":null,\"tokenizer.chat_template\":\"x\",\"tokenizer.model\":null,"
              "\"tokenizer.model_type\":\"BPE\"}");
    check_same("other names");
    write_apr("{\"tokenizer.model\":null}");
    check_same("no kind");
    /* several ids; the first is used */
    char list[64];
    struct tokenizer t;
    check_ok(tokenizer_open(at("t.gguf"), &t), "t.gguf");
    assert_true(t.end_of_text >= 0);
    snprintf(list, sizeof list, "{\"tokenizer.eos_token_id\":[%d,0]}", t.end_of_text);
    tokenizer_close(&t);
    write_apr(list);
    check_same("a list of ids");
    write_apr("{\"tokenizer.padding_token_id\":[]}");
    check_same("an empty list");
}

static void a_file_without_one_works_on_bytes(void **state)
{
    (void)state;
    const struct apr_bytes none = {0};
    struct tokenizer t;
    json_t *template;
    assert_int_equal(apr_write(at("none.apr"), apr_file(0, "{}", 0, &none, &none)), 0);
    check_ok(tokenizer_open(at("none.apr"), &t), "none");
    assert_string_equal(t.kind, "bytes");
    tokenizer_close(&t);
    check_ok(gguf_tokenizer_check(at("none.apr")), "none");
    check_ok(chat_template(at("none.apr"), &template), "none");
    assert_null(template);
}

/* Token files can still be used. */
static void what_an_apr_tokenizer_lacks_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *change;
        int code;
        const char *part;
    } cases[] = {
        {"{\"tokenizer.pre_type\":null}", NJ_E_UNSUPPORTED,
         "tokenizer.pre_type is missing, and its tokenizer cannot be used without it; use the"},
        {"{\"tokenizer.token_type\":null}", NJ_E_UNSUPPORTED, "tokenizer.token_type is missing"},
        {"{\"tokenizer.merges\":null}", NJ_E_UNSUPPORTED, "tokenizer.merges is missing"},
        {"{\"tokenizer.vocabulary\":null}", NJ_E_UNSUPPORTED, "tokenizer.vocabulary is missing"},
        {"{\"tokenizer.model\":\"llama\"}", NJ_E_UNSUPPORTED,
         "tokenizer.model is 'llama'; byte-level BPE, gpt2, is supported"},
        {"{\"tokenizer.pre_type\":\"none\"}", NJ_E_UNSUPPORTED,
         "tokenizer.pre_type is 'none', and"},
        {"{\"tokenizer.bos_token_id\":99999}", NJ_E_FORMAT,
         "tokenizer.bos_token_id is 99999, which"},
        {"{\"tokenizer.token_type\":[1]}", NJ_E_FORMAT, "entries, tokenizer.token_type 1;"},
        {"{\"tokenizer.token_type\":[4294967297]}", NJ_E_FORMAT,
         "t.apr: element 0 of tokenizer.token_type does not fit"},
        {"{\"tokenizer.model\":null,\"tokenizer.model_type\":\"spm\"}", NJ_E_UNSUPPORTED,
         "tokenizer.model_type is 'spm'; byte-level"},
        {"{\"tokenizer.bos_token_id\":null,\"tokenizer.add_bos_token\":true}", NJ_E_FORMAT,
         "texts begin with a token, and tokenizer.bos_token_id is missing"},
        {"{\"tokenizer.vocabulary\":[\"x\"],\"tokenizer.token_type\":[7],"
         "\"tokenizer.eos_token_id\":null,\"tokenizer.padding_token_id\":null}",
         NJ_E_FORMAT, "tokenizer.token_type is 7 for token 0; 1 to 6 are known"},
        {"{\"tokenizer.vocabulary\":[\"xy\"],\"tokenizer.token_type\":[1],\"tokenizer.merges\":[],"
         "\"tokenizer.eos_token_id\":null,\"tokenizer.padding_token_id\":null}",
         NJ_E_UNSUPPORTED, "t.apr (tokenizer): no token stands for a byte"},
    };
    write_gguf("qwen2");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokenizer t;
        write_apr(cases[i].change);
        check_ok(tokenizer_open(at("t.apr"), &t), cases[i].change);
        assert_string_equal(t.kind, "token files");
        if (!strstr(t.refusal, cases[i].part))
            fail_msg("%s: \"%s\"", cases[i].change, t.refusal);
        check_refused(gguf_tokenizer_check(at("t.apr")), cases[i].code, cases[i].part, "check");
        tokenizer_close(&t);
    }
}

static void apr_tokenizer_values_of_other_types_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *change, *part;
    } cases[] = {
        {"{\"tokenizer.vocabulary\":\"a\"}", "tokenizer.vocabulary is not a list of texts"},
        {"{\"tokenizer.merges\":[[\"a\",\"b\"]]}", "tokenizer.merges is not a list of texts"},
        {"{\"tokenizer.token_type\":[1.5]}", "tokenizer.token_type is not a list of whole numbers"},
        {"{\"tokenizer.eos_token_id\":\"1\"}", "tokenizer.eos_token_id is not a whole number"},
        {"{\"tokenizer.eos_token_id\":[\"1\"]}", "tokenizer.eos_token_id is not a whole number"},
        {"{\"tokenizer.add_bos_token\":1}", "tokenizer.add_bos_token is not true or false"},
        {"{\"tokenizer.pre_type\":1}", "tokenizer.pre_type is not text"},
        {"{\"tokenizer.model\":1}", "tokenizer.model is not text"},
        {"{\"tokenizer.model\":null,\"tokenizer.model_type\":1}",
         "tokenizer.model_type is not text"},
    };
    struct tokenizer t;
    write_gguf("qwen2");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_apr(cases[i].change);
        check_refused(tokenizer_open(at("t.apr"), &t), NJ_E_FORMAT, cases[i].part, cases[i].part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokenizers_of_gguf_files_are_the_same),
        cmocka_unit_test(a_file_without_one_works_on_bytes),
        cmocka_unit_test(what_an_apr_tokenizer_lacks_is_said),
        cmocka_unit_test(apr_tokenizer_values_of_other_types_are_refused),
    };
    return cmocka_run_group_tests_name("apr_tokenizer", tests, scratch_begin, scratch_end);
}
