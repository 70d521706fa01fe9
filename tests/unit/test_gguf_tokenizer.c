/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf_tokenizer.c: tokenizers in GGUF files: from a tokenizer.json and back, ids of difficult texts, damaged
 * metadata.
 */
#include "gguf_variants.h"
#include "text/bpe.h"
#include "text/chat.h"
#include "text/gguf_pre.h"
#include "text/gguf_tokenizer.h"
#include "tokenizer_fixture.h"

#include <jansson.h>

#define KEY(name) "tokenizer.ggml." name

/* Clear the flags that GGUF cannot store. */
static void clear_flags(const char *path)
{
    static const char *const flags[] = {"lstrip", "rstrip", "single_word", "normalized"};
    json_t *root = json_load_file(path, 0, NULL), *token;
    size_t i;
    assert_non_null(root);
    json_array_foreach(json_object_get(root, "added_tokens"), i, token) for (size_t k = 0; k < 4;
                                                                             k++)
        json_object_set_new(token, flags[k], json_false());
    assert_int_equal(json_dump_file(root, path, JSON_COMPACT), 0);
    json_decref(root);
}

static struct tokenizer open_variant(const struct variant *v)
{
    struct tokenizer t;
    tokenizer_folder(v->golden, v->from, v->to);
    clear_flags(at("model/tokenizer.json"));
    write_text(at("model/tokenizer_config.json"),
               "{\"eos_token\":{\"content\":\"<tool>\"},\"pad_token\":\"<left>\","
               "\"chat_template\":\"{{ '<|im_start|>' }}\"}");
    check_ok(tokenizer_open(at("model"), &t), v->pre);
    assert_string_equal(t.kind, "bpe");
    return t;
}

/* End a GGUF file that contains only metadata. */
static int end_file(struct gguf_writer *w, int rc)
{
    if (rc == 0)
        rc = gguf_write_tensors(w, NULL, 0);
    if (rc == 0)
        return gguf_write_end(w);
    gguf_write_abort(w);
    return rc;
}

static int write_gguf(const char *path, const struct tokenizer *t, int vocab_size)
{
    struct gguf_writer *w;
    check_ok(gguf_write_begin(path, &w), path);
    return end_file(w, gguf_put_tokenizer(w, t, vocab_size));
}

static struct tokenizer open_file(const char *path)
{
    struct tokenizer t;
    check_ok(tokenizer_open(path, &t), path);
    if (strcmp(t.kind, "bpe") != 0)
        fail_msg("%s: %s", path, t.refusal);
    return t;
}

static size_t encode(const struct tokenizer *t, const json_t *text, int32_t **ids)
{
    size_t count = 0, capacity = 0;
    *ids = NULL;
    check_ok(tokenizer_encode(t, json_string_value(text), json_string_length(text), ids, &count,
                              &capacity),
             "encode");
    return count;
}

/* Compare ids over the texts of the golden files: digits, scripts, emoji, marks, spaces, added tokens. */
static void check_same_ids(const struct tokenizer *a, const struct tokenizer *b, const char *what)
{
    json_t *rows = json_load_file("tests/golden/tokenizer-llama3-ids.json", JSON_ALLOW_NUL, NULL);
    const json_t *row;
    size_t i;
    assert_in_range(json_array_size(rows), 200, 1000);
    json_array_foreach(rows, i, row)
    {
        const json_t *text = json_array_get(row, 0);
        int32_t *x, *y;
        const size_t n = encode(a, text, &x), m = encode(b, text, &y);
        if (n != m || (n > 0 && memcmp(x, y, n * sizeof *x) != 0))
            fail_msg("%s: other ids for '%s'", what, json_string_value(text));
        free(x);
        free(y);
    }
    json_decref(rows);
}

static void check_same(const struct tokenizer *a, const struct tokenizer *b, const char *what)
{
    int common;
    check_same_ids(a, b, what);
    assert_int_equal(tokenizer_difference(a, b, &common), -1);
    assert_int_equal(common, a->vocab_size);
    assert_int_equal(a->vocab_size, b->vocab_size);
    assert_true(tokenizer_hash(a) == tokenizer_hash(b));
    assert_int_equal(tokenizer_begin_of_text(a), tokenizer_begin_of_text(b));
    assert_int_equal(a->end_of_turn, b->end_of_turn);
}

static void ids_survive_the_way_there_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < VARIANTS; i++) {
        struct tokenizer t = open_variant(&variants[i]);
        struct gguf g;
        struct gguf_text pre;
        check_ok(write_gguf(at("t.gguf"), &t, t.vocab_size + 3), variants[i].pre);
        check_ok(gguf_open(at("t.gguf"), &g), variants[i].pre);
        check_ok(gguf_string(&g, KEY("pre"), &pre), variants[i].pre);
        if (pre.bytes != strlen(variants[i].pre) ||
            (pre.bytes > 0 && memcmp(pre.text, variants[i].pre, pre.bytes) != 0))
            fail_msg("%s: it was taken for %.*s", variants[i].pre, (int)pre.bytes, pre.text);
        gguf_close(&g);
        struct tokenizer read = open_file(at("t.gguf"));
        check_same(&t, &read, variants[i].pre);
        assert_int_equal(read.end_of_text, tokenizer_added(&t, "<tool>"));

        /* and as a tokenizer.json */
        remove_tree(at("copy"));
        make_folder("copy");
        check_ok(gguf_tokenizer_check(at("t.gguf")), variants[i].pre);
        check_ok(gguf_tokenizer_copy(at("t.gguf"), at("copy")), variants[i].pre);
        struct tokenizer copy = open_file(at("copy"));
        check_same(&t, &copy, variants[i].pre);
        /* which gives the same file again */
        check_ok(write_gguf(at("u.gguf"), &copy, t.vocab_size + 3), variants[i].pre);
        size_t bytes[2];
        char *data[2] = {read_bytes(at("t.gguf"), &bytes[0]), read_bytes(at("u.gguf"), &bytes[1])};
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(data[0], data[1], bytes[0]);
        free(data[0]);
        free(data[1]);
        tokenizer_close(&copy);
        tokenizer_close(&read);
        tokenizer_close(&t);
    }
}

/* ---- what is written ---- */

static void check_token(const struct gguf_text *t, const char *text)
{
    if (t->bytes != strlen(text) || memcmp(t->text, text, t->bytes) != 0)
        fail_msg("'%.*s', expected '%s'", (int)t->bytes, t->text, text);
}

static void metadata_are_the_converters(void **state)
{
    (void)state;
    struct tokenizer t = open_variant(&variants[0]);
    struct gguf g;
    struct gguf_text *token, *merge, text;
    int32_t *type;
    size_t tokens, types, merges;
    int64_t id;
    bool begins;
    check_ok(write_gguf(at("t.gguf"), &t, t.vocab_size + 3), "write");
    check_ok(gguf_open(at("t.gguf"), &g), "open");
    check_ok(gguf_strings(&g, KEY("tokens"), &token, &tokens), "tokens");
    check_ok(gguf_ints(&g, KEY("token_type"), &type, &types), "types");
    check_ok(gguf_strings(&g, KEY("merges"), &merge, &merges), "merges");
    assert_int_equal(tokens, t.vocab_size + 3);
    assert_int_equal(types, tokens);
    check_token(&token[0], "!");
    check_token(&token[bpe_find(t.bpe, " ", 1)], "\xc4\xa0");
    assert_int_equal(type[0], 1);
    assert_int_equal(type[tokenizer_added(&t, "<|im_start|>")], 3);
    assert_int_equal(type[tokenizer_added(&t, "<tool>")], 4);
    check_token(&token[tokens - 1], "[PAD1266]");
    assert_int_equal(type[tokens - 1], 5);
    assert_int_equal(type[t.vocab_size - 1], 4);

    json_t *root = json_load_file(at("model/tokenizer.json"), 0, NULL);
    const json_t *list = json_object_get(json_object_get(root, "model"), "merges"), *pair;
    size_t i;
    assert_int_equal(json_array_size(list), merges);
    json_array_foreach(list, i, pair)
    {
        char want[256];
        snprintf(want, sizeof want, "%s %s", json_string_value(json_array_get(pair, 0)),
                 json_string_value(json_array_get(pair, 1)));
        check_token(&merge[i], want);
    }
    json_decref(root);
    check_ok(gguf_int(&g, KEY("eos_token_id"), -1, &id), "eos");
    assert_int_equal(id, tokenizer_added(&t, "<tool>"));
    check_ok(gguf_int(&g, KEY("padding_token_id"), -1, &id), "padding");
    assert_int_equal(id, tokenizer_added(&t, "<left>"));
    assert_null(gguf_find(&g, KEY("bos_token_id")));
    check_ok(gguf_bool(&g, KEY("add_bos_token"), true, &begins), "begins");
    assert_false(begins);
    check_ok(gguf_string(&g, "tokenizer.chat_template", &text), "template");
    check_token(&text, "{{ '<|im_start|>' }}");
    free(token);
    free(type);
    free(merge);
    gguf_close(&g);
    tokenizer_close(&t);
}

/* Added tokens that only look special are control tokens to llama.cpp. */
static void added_tokens_that_look_special_are_control_tokens(void **state)
{
    (void)state;
    struct tokenizer t = open_golden("qwen2", "\"content\":\"<tool>\"", "\"content\":\"<|fim|>\"");
    check_ok(write_gguf(at("t.gguf"), &t, t.vocab_size), "write");
    struct tokenizer read = open_file(at("t.gguf"));
    const int32_t id = tokenizer_added(&read, "<|fim|>");
    assert_int_equal(id, tokenizer_added(&t, "<|fim|>"));
    assert_true(read.bpe->special[id] && !t.bpe->special[id]);
    assert_false(read.bpe->special[tokenizer_added(&read, "<left>")]);
    tokenizer_close(&read);
    tokenizer_close(&t);
}

static void bytes_are_a_vocabulary(void **state)
{
    (void)state;
    struct tokenizer t;
    int common;
    remove_tree(at("none"));
    make_folder("none");
    write_text(at("none/config.json"), "{\"eos_token_id\": 299}"); /* no token has this id */
    check_ok(tokenizer_open(at("none"), &t), "bytes");
    check_ok(write_gguf(at("t.gguf"), &t, 300), "write");
    struct tokenizer read = open_file(at("t.gguf"));
    assert_int_equal(tokenizer_difference(&t, &read, &common), -1);
    assert_int_equal(common, 257);
    assert_int_equal(read.end_of_text, 256);
    json_t *text = json_string("a \xc3\xa9\xe6\xbc\x81 12\n");
    int32_t *x, *y;
    const size_t n = encode(&t, text, &x);
    assert_int_equal(n, encode(&read, text, &y));
    assert_memory_equal(x, y, n * sizeof *x);
    json_decref(text);
    free(x);
    free(y);
    tokenizer_close(&read);
    tokenizer_close(&t);
}

static void what_llama_cpp_lacks_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *golden, *from, *to;
        int more;
        const char *part;
    } cases[] = {
        {"qwen2", "?\\\\p{L}+", "?[\\\\p{L}\\\\p{M}]+", 0, "cuts texts as none of"},
        {"qwen2", "\"ignore_merges\":false", "\"ignore_merges\":true", 0, "cuts texts as none of"},
        {"gpt2", "\"add_prefix_space\":false", "\"add_prefix_space\":true", 0,
         "pre-tokenizers qwen2, llama-bpe, smaug-bpe, smollm, gpt-2, tekken, qwen35, gpt-4o, "
         "olmo, deepseek-v3, deepseek-coder, deepseek-llm, minicpm5, superbpe does"},
        {"llama2", NULL, NULL, 0, "cuts texts as none of"}, /* a space before each text */
        {"qwen2", NULL, NULL, -1, "has 1264 tokens, the model 1263"},
        {"qwen2", "\"type\":\"NFC\"", "\"type\":\"NFD\"", 0, "normalizer is"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokenizer t;
        check_ok(tokenizer_open(tokenizer_folder(cases[i].golden, cases[i].from, cases[i].to), &t),
                 cases[i].part);
        const int rc = write_gguf(at("no.gguf"), &t, 1264 + cases[i].more);
        check_refused(rc, cases[i].more ? NJ_E_FORMAT : NJ_E_UNSUPPORTED, cases[i].part,
                      cases[i].part);
        assert_int_not_equal(access(at("no.gguf"), F_OK), 0);
        tokenizer_close(&t);
    }
    /* llama.cpp does not normalize, so a tokenizer without NFC is written, too. */
    struct tokenizer t =
        open_golden("qwen2", "\"normalizer\":{\"type\":\"NFC\"}", "\"normalizer\":null");
    check_ok(write_gguf(at("t.gguf"), &t, 1264), "without NFC");
    tokenizer_close(&t);
}

/* ---- small files ---- */

enum begins { UNSAID, NO, YES };

/* A small tokenizer: 256 bytes, "ab" from a merge, then further tokens. */
struct small {
    const char *model, *pre; /* NULL: gpt2 and gpt-2; "": left out */
    const char *more[4];     /* tokens from 257 on */
    int32_t type[4];
    const char *merge; /* a second merge */
    long bos, eos;     /* 0: left out */
    enum begins begins;
    int types_more; /* entries of token_type beyond the number of tokens */
    const char *chat;
};

static void put_name(struct gguf_writer *w, const char *key, const char *name, const char *missing)
{
    if (!name || *name)
        gguf_put_string(w, key, name ? name : missing);
}

static int write_small(const char *path, const struct small *s)
{
    static char spelled[256][4];
    struct gguf_text token[261] = {{0}}, merge[2] = {{"a b", 3}, {s->merge, 0}};
    int32_t type[264];
    size_t n = 256;
    struct gguf_writer *w;
    for (int b = 0, next = 256; b < 256; b++) {
        const bool seen = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        const int cp = seen ? b : next++;
        snprintf(spelled[b], 4, cp < 0x80 ? "%c" : "%c%c", cp < 0x80 ? cp : 0xc0 | cp >> 6,
                 0x80 | (cp & 0x3f));
        token[b] = (struct gguf_text){spelled[b], strlen(spelled[b])};
    }
    for (size_t i = 0; i < 264; i++)
        type[i] = 1;
    token[n++] = (struct gguf_text){"ab", 2};
    for (int i = 0; i < 4 && s->more[i]; i++, n++) {
        token[n] = (struct gguf_text){s->more[i], strlen(s->more[i])};
        type[n] = s->type[i];
    }
    merge[1].bytes = s->merge ? strlen(s->merge) : 0;
    check_ok(gguf_write_begin(path, &w), path);
    put_name(w, KEY("model"), s->model, "gpt2");
    put_name(w, KEY("pre"), s->pre, "gpt-2");
    gguf_put_strings(w, KEY("tokens"), token, n);
    gguf_put_i32s(w, KEY("token_type"), type, n + (size_t)s->types_more);
    gguf_put_strings(w, KEY("merges"), merge, s->merge ? 2 : 1);
    if (s->bos > 0)
        gguf_put_u32(w, KEY("bos_token_id"), (uint32_t)s->bos);
    if (s->eos > 0)
        gguf_put_u32(w, KEY("eos_token_id"), (uint32_t)s->eos);
    if (s->begins != UNSAID)
        gguf_put_bool(w, KEY("add_bos_token"), s->begins == YES);
    if (s->chat)
        gguf_put_string(w, "tokenizer.chat_template", s->chat);
    return end_file(w, 0);
}

static void gguf_tokenizers_that_are_not_supported_are_named(void **state)
{
    (void)state;
    static const struct {
        struct small file;
        const char *part;
    } cases[] = {
        {{.model = "bert"}, "tokenizer.ggml.model is 'bert'; byte-level BPE, gpt2, and"},
        {{.pre = ""}, "tokenizer.ggml.pre, which says how texts are cut into words, is"},
        {{.pre = "kimi-k2"}, "tokenizer.ggml.pre is 'kimi-k2', and qwen2, llama-bpe, "},
        {{.pre = "qwen"}, "tokenizer.ggml.pre is 'qwen', and"},
        {{.types_more = 1}, "tokens has 257 entries, tokenizer.ggml.token_type 258; fetch"},
        {{.more = {"x"}, .type = {1}}, "tokens 120 and 257 are both 'x'; fetch the file"},
        {{.more = {"<x>"}, .type = {7}}, "tokenizer.ggml.token_type is 7 for token 257; 1 to 6"},
        {{.more = {"<x>"}, .type = {-1}}, "tokenizer.ggml.token_type is -1 for token 257"},
        {{.more = {"<\xff>"}, .type = {3}}, "token 257 is not UTF-8 text; fetch the file"},
        {{.merge = "q \xff"}, "merge 1 is not UTF-8 text; fetch the file again"},
        {{.merge = "a q"}, "merges is \"a q\"; both parts and what they make must be"},
        {{.merge = "aq"}, "merges is \"aq\"; it must be two tokens"},
        {{.merge = "a b c"}, "merges is \"a b c\"; it must be two tokens"},
        {{.merge = " a"}, "merges is \" a\"; both parts and what they make must be"},
        {{.eos = 257}, "eos_token_id is 257, which no token has; fetch the file again"},
        {{.bos = 4000000000}, "bos_token_id is 4000000000, which no token has"},
        {{.more = {"[PAD257]"}, .type = {5}, .bos = 257}, "bos_token_id is 257, which no"},
        {{.begins = YES}, "texts begin with a token, and tokenizer.ggml.bos_token_id is"},
        {{.pre = "tekken"}, "texts begin with a token, and tokenizer.ggml.bos_token_id"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokenizer t;
        check_ok(write_small(at("small.gguf"), &cases[i].file), cases[i].part);
        check_ok(tokenizer_open(at("small.gguf"), &t), cases[i].part);
        assert_string_equal(t.kind, "token files");
        if (!strstr(t.refusal, cases[i].part) || !strstr(t.refusal, "small.gguf"))
            fail_msg("'%s', expected '%s'", t.refusal, cases[i].part);
        assert_int_not_equal(gguf_tokenizer_check(at("small.gguf")), 0);
        tokenizer_close(&t);
    }
}

/* Lists are missing, of another type, with NUL bytes, or with a token of 1 MiB. */
static void lists_are_held_against_each_other(void **state)
{
    (void)state;
    static char large[1 << 20];
    static const int32_t types[2] = {1, 3};
    memset(large, 'a', sizeof large);
    const struct gguf_text with_nul[2] = {{"a", 1}, {"b\0c", 3}},
                           with_large[2] = {{"a", 1}, {large, sizeof large}};
    static const char *const parts[] = {
        "tokenizer.ggml.tokens is missing", "tokenizer.ggml.token_type is missing",
        "tokenizer.ggml.merges is missing", "token 1 is not UTF-8 text",
        "at most 256 bytes are supported",  "tokens is an array of i32, not an array of texts"};
    for (int i = 0; i < 6; i++) {
        struct gguf_writer *w;
        struct tokenizer t;
        check_ok(gguf_write_begin(at("small.gguf"), &w), parts[i]);
        gguf_put_string(w, KEY("model"), "gpt2");
        gguf_put_string(w, KEY("pre"), "gpt-2");
        if (i == 5)
            gguf_put_i32s(w, KEY("tokens"), types, 2);
        else if (i != 0)
            gguf_put_strings(w, KEY("tokens"), i == 4 ? with_large : with_nul, 2);
        if (i != 1)
            gguf_put_i32s(w, KEY("token_type"), types, 2);
        if (i != 2)
            gguf_put_strings(w, KEY("merges"), NULL, 0);
        check_ok(end_file(w, 0), parts[i]);
        check_ok(tokenizer_open(at("small.gguf"), &t), parts[i]);
        if (!strstr(t.refusal, parts[i]))
            fail_msg("'%s', expected '%s'", t.refusal, parts[i]);
        tokenizer_close(&t);
    }
}

/* ---- reading ---- */

static void names_of_pre_tokenizers_share_rows(void **state)
{
    (void)state;
    static const char *const same[][2] = {
        {"llama3", "llama-bpe"},     {"llama-v3", "llama-bpe"}, {"deepseek-r1-qwen", "qwen2"},
        {"starcoder", "smollm"},     {"phi-2", "gpt-2"},        {"granite-docling", "gpt-2"},
        {"exaone", "smollm"},        {"llama4", "gpt-4o"},      {"hunyuan-dense", "deepseek-v3"},
        {"chatglm-bpe", "smaug-bpe"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const struct gguf_pre *pre =
            gguf_pre_find((struct gguf_text){same[i][0], strlen(same[i][0])});
        assert_non_null(pre);
        assert_string_equal(pre->name[0], same[i][1]);
    }
    /* Mislabelled files of Llama 3 exist; all words are merged, as in llama.cpp. */
    assert_false(gguf_pre_find((struct gguf_text){"smaug-bpe", 9})->ignore_merges);
    assert_null(gguf_pre_find((struct gguf_text){"gpt-", 4}));
    assert_null(gguf_pre_find((struct gguf_text){"default", 7}));
}

static void kinds_of_tokens_are_read(void **state)
{
    (void)state;
    struct small s = {
        .more = {"<|endoftext|>", "<u>", "<?>", "[PAD260]"}, .type = {3, 4, 2, 4}, .eos = 257};
    check_ok(write_small(at("small.gguf"), &s), "small");
    struct tokenizer t = open_file(at("small.gguf"));
    json_t *text = json_string("ab<u>b<?><|endoftext|>");
    int32_t *ids;
    assert_int_equal(t.vocab_size, 260); /* padding is no token, whatever its type */
    assert_int_equal(t.end_of_text, 257);
    assert_true(t.bpe->special[257] && !t.bpe->special[258] && t.bpe->special[259]);
    assert_int_equal(encode(&t, text, &ids), 5);
    assert_memory_equal(ids, ((int32_t[]){256, 258, 98, 259, 257}), 5 * sizeof *ids);
    free(ids);
    json_decref(text);
    tokenizer_close(&t);

    /* tokenizer.ggml.add_bos_token overrides the pre-tokenizer's default. */
    static const struct {
        const char *pre;
        enum begins begins;
        int begin;
    } begins[] = {{"gpt-2", UNSAID, -1}, {"gpt-2", YES, 257},       {"llama-bpe", UNSAID, 257},
                  {"llama-bpe", NO, -1}, {"smaug-bpe", UNSAID, -1}, {"tekken", UNSAID, 257}};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        s.pre = begins[i].pre;
        s.begins = begins[i].begins;
        s.bos = 257;
        check_ok(write_small(at("small.gguf"), &s), s.pre);
        t = open_file(at("small.gguf"));
        assert_int_equal(tokenizer_begin_of_text(&t), begins[i].begin);
        tokenizer_close(&t);
    }
}

static void a_file_without_tokenizer_reads_bytes(void **state)
{
    (void)state;
    struct small s = {.model = "no_vocab"};
    struct tokenizer t;
    check_ok(write_small(at("small.gguf"), &s), "small");
    check_ok(tokenizer_open(at("small.gguf"), &t), "small");
    assert_string_equal(t.kind, "bytes");
    tokenizer_close(&t);
    s.model = "";
    check_ok(write_small(at("small.gguf"), &s), "small");
    check_ok(tokenizer_open(at("small.gguf"), &t), "small");
    assert_string_equal(t.kind, "bytes");
    remove_tree(at("copy"));
    make_folder("copy");
    check_ok(gguf_tokenizer_copy(at("small.gguf"), at("copy")), "copy");
    assert_int_equal(rmdir(at("copy")), 0); /* nothing was written */
    tokenizer_close(&t);
}

static void check_chat(const char *model, const struct tokenizer *t, const char *want)
{
    struct chat c;
    struct template_text text = {0};
    check_ok(chat_find(model, t, &c), model);
    check_ok(template_render(c.plain, c.tokens, &text), model);
    assert_int_equal(text.bytes, strlen(want));
    assert_memory_equal(text.text, want, text.bytes);
    template_text_free(&text);
    chat_free(&c);
}

static void chat_templates_are_found(void **state)
{
    struct small s = {.more = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"},
                      .type = {3, 3, 3},
                      .eos = 259,
                      .chat = "{{ 'Be' + eos_token }}"};
    struct chat c;
    (void)state;
    check_ok(write_small(at("small.gguf"), &s), "small");
    struct tokenizer t = open_file(at("small.gguf"));
    assert_int_equal(t.end_of_turn, 259);
    assert_int_equal(t.end_of_text, 257); /* eos ends turns */
    check_chat(t.dir, &t, "Be<|im_end|>");
    remove_tree(at("copy"));
    make_folder("copy");
    check_ok(gguf_tokenizer_copy(at("small.gguf"), at("copy")), "copy");
    check_chat(at("copy"), &t, "Be<|im_end|>");
    tokenizer_close(&t);
    s.chat = "{% no %}";
    check_ok(write_small(at("small.gguf"), &s), "small");
    t = open_file(at("small.gguf"));
    check_refused(chat_find(t.dir, &t, &c), NJ_E_FORMAT, "small.gguf:1: 'no' where", "chat");
    chat_free(&c);
    tokenizer_close(&t);
}

/* Tables from GGUF and from tokenizer.json are compared: equal bytes are equal tokens, and padding is none. */
static void tables_are_compared_by_bytes(void **state)
{
    (void)state;
    struct tokenizer a = open_golden("qwen2", NULL, NULL);
    check_ok(write_gguf(at("t.gguf"), &a, 2000), "write");
    struct tokenizer b = open_file(at("t.gguf"));
    int common;
    assert_int_equal(tokenizer_difference(&a, &b, &common), -1);
    assert_int_equal(common, 1264);
    tokenizer_close(&b);
    tokenizer_close(&a);
    a = open_golden("qwen2", "\"content\":\"<tool>\"", "\"content\":\"<fool>\"");
    b = open_file(at("t.gguf"));
    assert_int_equal(tokenizer_difference(&a, &b, &common), 1263);
    tokenizer_close(&b);
    tokenizer_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_survive_the_way_there_and_back),
        cmocka_unit_test(metadata_are_the_converters),
        cmocka_unit_test(added_tokens_that_look_special_are_control_tokens),
        cmocka_unit_test(bytes_are_a_vocabulary),
        cmocka_unit_test(what_llama_cpp_lacks_is_refused),
        cmocka_unit_test(gguf_tokenizers_that_are_not_supported_are_named),
        cmocka_unit_test(lists_are_held_against_each_other),
        cmocka_unit_test(names_of_pre_tokenizers_share_rows),
        cmocka_unit_test(kinds_of_tokens_are_read),
        cmocka_unit_test(a_file_without_tokenizer_reads_bytes),
        cmocka_unit_test(chat_templates_are_found),
        cmocka_unit_test(tables_are_compared_by_bytes),
    };
    return cmocka_run_group_tests_name("gguf tokenizer", tests, scratch_begin, scratch_end);
}
