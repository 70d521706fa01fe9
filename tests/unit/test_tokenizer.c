/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tokenizer.c: ids equal those of the `tokenizers` library (tests/golden, written by make_tokenizer_fixtures.py),
 * scanners equal Oniguruma; threads, bad UTF-8, refusals.
 */
#include "text/bpe.h"
#include "tokenizer_fixture.h"

#include <jansson.h>

/* ---- ids ---- */

#define MARKS_FROM "?\\\\p{L}+"
#define MARKS_TO "?[\\\\p{L}\\\\p{M}]+"
#define PREFIX "\"add_prefix_space\":false"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\"," PREFIX ",\"trim_offsets\":true,\"use_regex\":true}"

/* Golden tokenizers, and edited ones from the script. */
static const struct variant {
    const char *ids, *golden, *from, *to;
} variants[] = {
    {"qwen2", "qwen2", NULL, NULL},
    {"llama3", "llama3", NULL, NULL},
    {"gpt2", "gpt2", NULL, NULL},
    {"gpt2-prefix", "gpt2", PREFIX, "\"add_prefix_space\":true"},
    {"gpt2-digits", "gpt2", BYTE_LEVEL,
     "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":true}"
     "," BYTE_LEVEL "]}"},
    {"qwen2-marks", "qwen2", MARKS_FROM, MARKS_TO}, /* a pattern for Oniguruma */
    {"llama2", "llama2", NULL, NULL},
    {"gemma", "gemma", NULL, NULL},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static json_t *golden_rows(const char *name)
{
    char path[128];
    json_error_t error;
    snprintf(path, sizeof path, "tests/golden/tokenizer-%s-ids.json", name);
    json_t *rows = json_load_file(path, JSON_ALLOW_NUL, &error);
    if (!rows)
        fail_msg("%s: %s", path, error.text);
    return rows;
}

/* Open a golden tokenizer after edits, [from, to] each. */
static struct tokenizer open_edited(const char *golden, const json_t *edits)
{
    struct tokenizer t;
    char path[128];
    const json_t *edit;
    size_t i;
    snprintf(path, sizeof path, "tests/golden/tokenizer-%s.json", golden);
    char *text = read_text(path);
    json_array_foreach(edits, i, edit) text =
        edit_text(text, json_string_value(json_array_get(edit, 0)),
                  json_string_value(json_array_get(edit, 1)));
    tokenizer_folder(golden, NULL, NULL);
    write_text(at("model/tokenizer.json"), text);
    free(text);
    check_ok(tokenizer_open(at("model"), &t), golden);
    if (strcmp(t.kind, "bpe") != 0)
        fail_msg("%s: %s", golden, t.refusal);
    return t;
}

static void check_row(const struct tokenizer *t, const char *name, const json_t *row)
{
    const json_t *text = json_array_get(row, 0), *want = json_array_get(row, 1);
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    check_ok(tokenizer_encode(t, json_string_value(text), json_string_length(text), &ids, &count,
                              &capacity),
             name);
    for (size_t i = 0; i < count && i < json_array_size(want); i++)
        if (ids[i] != json_integer_value(json_array_get(want, i)))
            fail_msg("%s: '%s': id %zu is %d, expected %d", name, json_string_value(text), i,
                     ids[i], (int)json_integer_value(json_array_get(want, i)));
    if (count != json_array_size(want))
        fail_msg("%s: '%s': %zu ids, expected %zu", name, json_string_value(text), count,
                 json_array_size(want));
    free(ids);
}

static void ids_are_the_librarys(void **state)
{
    (void)state;
    for (int v = 0; v < VARIANTS; v++) {
        struct tokenizer t = open_golden(variants[v].golden, variants[v].from, variants[v].to);
        json_t *rows = golden_rows(variants[v].ids);
        const json_t *row;
        size_t i;
        assert_in_range(json_array_size(rows), 200, 1000);
        json_array_foreach(rows, i, row) check_row(&t, variants[v].ids, row);
        json_decref(rows);
        tokenizer_close(&t);
    }
}

/* Golden tokenizers with the edits of tokenizer-cases.json, mainly patterns that other engines than the library's read
 * differently. */
static void edited_ids_are_the_librarys(void **state)
{
    (void)state;
    json_error_t error;
    json_t *cases = json_load_file("tests/golden/tokenizer-cases.json", JSON_ALLOW_NUL, &error);
    const json_t *each, *row;
    size_t i, k;
    if (!cases)
        fail_msg("tokenizer-cases.json: %s", error.text);
    assert_in_range(json_array_size(cases), 30, 100);
    json_array_foreach(cases, i, each)
    {
        const json_t *edits = json_object_get(each, "edits");
        struct tokenizer t = open_edited(json_string_value(json_object_get(each, "golden")), edits);
        char *name = json_dumps(edits, JSON_COMPACT);
        json_array_foreach(json_object_get(each, "rows"), k, row) check_row(&t, name, row);
        free(name);
        tokenizer_close(&t);
    }
    json_decref(cases);
}

/* Repeat the texts of the golden file up to `bytes`. */
static char *long_text(size_t bytes)
{
    json_t *rows = golden_rows("qwen2");
    char *text = malloc(bytes + 1);
    size_t at = 0;
    assert_non_null(text);
    for (size_t i = 0; at < bytes; i++) {
        const json_t *row = json_array_get(json_array_get(rows, i % json_array_size(rows)), 0);
        size_t n = json_string_length(row);
        n = n < bytes - at ? n : bytes - at;
        memcpy(text + at, json_string_value(row), n);
        at += n;
    }
    json_decref(rows);
    text[bytes] = '\0';
    return text;
}

/* A text that is cut and shared among threads has the ids that it has as a whole. */
static void cutting_a_text_changes_no_id(void **state)
{
    (void)state;
    const size_t bytes = 3000001;
    char *text = long_text(bytes);
    for (int v = 0; v < VARIANTS; v++) {
        struct tokenizer t = open_golden(variants[v].golden, variants[v].from, variants[v].to);
        struct bpe_work *work = bpe_work_new();
        struct span whole = {.text = text, .bytes = bytes};
        int32_t *ids = NULL;
        size_t count = 0, capacity = 0, at = 0, cuts = 0;
        check_ok(bpe_encode(t.bpe, work, &whole), "whole");
        check_ok(tokenizer_encode(&t, text, bytes, &ids, &count, &capacity), "cut");
        assert_int_equal(count, whole.count);
        assert_memory_equal(ids, whole.ids, count * sizeof *ids);
        /* Pieces are small, so that a cut falls at every kind of place. */
        struct span pieces = {.text = text};
        for (; at < bytes; at += pieces.bytes, cuts++) {
            pieces.text = text + at;
            pieces.bytes = tokenizer_cut(&t, text + at, bytes - at, 50);
            check_ok(bpe_encode(t.bpe, work, &pieces), "piece");
        }
        assert_int_equal(pieces.count, whole.count);
        assert_memory_equal(pieces.ids, whole.ids, whole.count * sizeof *ids);
        /* A space before each part, or an unknown pattern, forbids cuts. */
        const bool cuttable = strcmp(variants[v].ids, "gpt2-prefix") != 0 &&
                              strcmp(variants[v].ids, "qwen2-marks") != 0 &&
                              strcmp(variants[v].ids, "llama2") != 0;
        assert_true(cuttable ? cuts > 1000 : cuts == 1);
        free(ids);
        free(whole.ids);
        free(pieces.ids);
        bpe_work_free(work);
        tokenizer_close(&t);
    }
    free(text);
}

/* A token may cross the end of a line, but not a space. */
static void texts_of_sentencepiece_are_cut_at_spaces_alone(void **state)
{
    (void)state;
    enum { BYTES = 400 };
    char text[BYTES + 1] = "";
    struct tokenizer t =
        open_golden("llama2", "{\"type\":\"Prepend\",\"prepend\":\"\u2581\"},", "");
    for (int i = 0; i < BYTES; i += 4)
        memcpy(text + i, "abc\n", 4);
    assert_int_equal(tokenizer_cut(&t, text, BYTES, 50), BYTES);
    for (int i = 3; i < BYTES; i += 4)
        text[i] = ' ';
    assert_true(tokenizer_cut(&t, text, BYTES, 50) < BYTES);
    tokenizer_close(&t);
}

/* If only digits are split off, a word may contain spaces. */
static void words_over_spaces_are_not_cut(void **state)
{
    (void)state;
    static const char digits[] = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"},"
                                 "{\"type\":\"ByteLevel\"," PREFIX ",\"use_regex\":false}]}";
    static const char text[] = "one two three four";
    struct tokenizer t = open_golden("gpt2", BYTE_LEVEL, digits);
    assert_int_equal(tokenizer_cut(&t, text, sizeof text - 1, 4), sizeof text - 1);
    tokenizer_close(&t);
    t = open_golden("gpt2", NULL, NULL);
    assert_int_equal(tokenizer_cut(&t, text, sizeof text - 1, 4), 7);
    tokenizer_close(&t);
}

/* ---- splitting ---- */

static const char *const patterns[] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
};

/* Make a text of neighbours that the patterns treat differently. */
static size_t odd_text(uint32_t *seed, char *out)
{
    static const char *const parts[] = {"a",
                                        "Z",
                                        "\xc3\xa9",
                                        "\xe5\xad\x97",
                                        "7",
                                        "\xd9\xa3",
                                        "\xc2\xbd",
                                        " ",
                                        "  ",
                                        "\n",
                                        "\r",
                                        "\t",
                                        "\xc2\xa0",
                                        "\xe2\x80\xa8",
                                        "\xe1\xa0\x8e",
                                        "\xc2\x85",
                                        "'s",
                                        "'LL",
                                        "'",
                                        "'\xc5\xbf",
                                        "re",
                                        "!",
                                        "\xcc\x81",
                                        "\xf0\x9f\x8c\x8a",
                                        "_",
                                        "\xe2\x80\x8d",
                                        "\v"};
    size_t n = 0;
    *seed = *seed * 1664525u + 1013904223u;
    for (uint32_t left = 1 + (*seed >> 27); left > 0; left--) {
        *seed = *seed * 1664525u + 1013904223u;
        const char *part = parts[(*seed >> 8) % (sizeof parts / sizeof *parts)];
        memcpy(out + n, part, strlen(part));
        n += strlen(part);
    }
    return n;
}

static void scanners_equal_oniguruma(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        struct split scanner, pattern;
        char wrapped[512], text[256];
        uint32_t seed = 1;
        struct split_place *places[2] = {NULL, NULL};
        snprintf(wrapped, sizeof wrapped, "(?:%s)", patterns[p]);
        const struct split_rule isolated = {BEHAVIOR_ISOLATED, false};
        check_ok(split_from_pattern(patterns[p], strlen(patterns[p]), isolated, &scanner),
                 "scanner");
        check_ok(split_from_pattern(wrapped, strlen(wrapped), isolated, &pattern), "pattern");
        assert_int_not_equal(scanner.kind, SPLIT_PATTERN);
        assert_int_equal(pattern.kind, SPLIT_PATTERN);
        for (int round = 0; round < 20000; round++) {
            const size_t bytes = odd_text(&seed, text);
            for (size_t at = 0; at < bytes;) {
                struct split_budget left = split_budget(bytes);
                const long got = split_next(&scanner, &places[0], &left, text, bytes, at);
                const long want = split_next(&pattern, &places[1], &left, text, bytes, at);
                if (got != want)
                    fail_msg("pattern %zu, '%.*s' at %zu: ends at %ld, Oniguruma at %ld", p,
                             (int)bytes, text, at, got, want);
                at = (size_t)got;
            }
        }
        split_free_place(places[0]);
        split_free_place(places[1]);
        split_free(&scanner);
        split_free(&pattern);
    }
}

/* Bytes that are not UTF-8 are kept one by one. */
static void bad_utf8_is_kept(void **state)
{
    (void)state;
    static const char *const texts[] = {"\xff",
                                        "a\xff"
                                        "b",
                                        "\xc3",
                                        "x \xc3 y",
                                        "\xe2\x82",
                                        "\xf0\x9f\x8c",
                                        "\xc0\xaf",
                                        "\xed\xa0\x80",
                                        "\xf5\x80\x80\x80",
                                        "e\xcc",
                                        "\x80\x81 \xfe\n\xff",
                                        "e\xcc\x81\xff\xcc\x81"};
    static const struct {
        const char *golden, *from, *to;
    } models[] = {{"llama3", NULL, NULL}, {"gpt2", NULL, NULL}, {"llama3", MARKS_FROM, MARKS_TO}};
    for (int g = 0; g < 3; g++) {
        struct tokenizer t = open_golden(models[g].golden, models[g].from, models[g].to);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            int32_t *ids = NULL;
            size_t count = 0, capacity = 0, at = 0;
            check_ok(tokenizer_encode(&t, texts[i], strlen(texts[i]), &ids, &count, &capacity),
                     texts[i]);
            for (size_t k = 0; k < count; k++) {
                size_t bytes;
                const char *token = tokenizer_decode(&t, ids[k], &bytes);
                assert_memory_equal(token, texts[i] + at, bytes);
                at += bytes;
            }
            assert_int_equal(at, strlen(texts[i]));
            free(ids);
        }
        tokenizer_close(&t);
    }
    /* NFC composes around such bytes: e + U+0301, FF, U+0301 */
    struct tokenizer t = open_golden("qwen2", NULL, NULL);
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    char joined[32] = "";
    check_ok(tokenizer_encode(&t, texts[11], strlen(texts[11]), &ids, &count, &capacity), "NFC");
    for (size_t k = 0; k < count; k++) {
        size_t bytes;
        const char *token = tokenizer_decode(&t, ids[k], &bytes);
        strncat(joined, token, bytes);
    }
    assert_string_equal(joined, "\xc3\xa9\xff\xcc\x81");
    free(ids);
    tokenizer_close(&t);
}

/* ---- the table ---- */

static void texts_begin_and_end(void **state)
{
    (void)state;
    struct tokenizer t = open_golden("llama3", NULL, NULL);
    assert_int_equal(tokenizer_begin_of_text(&t), tokenizer_added(&t, "<|begin_of_text|>"));
    assert_int_equal(t.end_of_text, tokenizer_added(&t, "<|end_of_text|>"));
    assert_int_equal(t.end_of_turn, tokenizer_added(&t, "<|eot_id|>"));
    tokenizer_close(&t);
    t = open_golden("gemma", NULL, NULL);
    assert_int_equal(tokenizer_begin_of_text(&t), tokenizer_added(&t, "<bos>"));
    assert_int_equal(t.end_of_text, tokenizer_added(&t, "<eos>"));
    assert_int_equal(t.end_of_turn, tokenizer_added(&t, "<end_of_turn>"));
    tokenizer_close(&t);

    /* eos_token_id of config.json ends documents, unless it ends turns. */
    static const struct {
        const char *eos, *end;
    } ends[] = {{"<|im_end|>", "<|endoftext|>"}, {"<|im_start|>", "<|im_start|>"}};
    for (int i = 0; i < 2; i++) {
        char config[64];
        t = open_golden("qwen2", NULL, NULL);
        assert_int_equal(tokenizer_begin_of_text(&t), -1);
        snprintf(config, sizeof config, "{\"eos_token_id\": [%d, 1]}",
                 tokenizer_added(&t, ends[i].eos));
        tokenizer_close(&t);
        write_text(at("model/config.json"), config);
        check_ok(tokenizer_open(at("model"), &t), "qwen2");
        assert_int_equal(t.end_of_text, tokenizer_added(&t, ends[i].end));
        tokenizer_close(&t);
    }
}

static void tables_are_compared(void **state)
{
    (void)state;
    struct tokenizer a = open_golden("qwen2", NULL, NULL), b = open_golden("qwen2", NULL, NULL);
    int common;
    assert_int_equal(tokenizer_difference(&a, &b, &common), -1);
    assert_int_equal(common, a.vocab_size);
    assert_true(tokenizer_hash(&a) == tokenizer_hash(&b));
    tokenizer_close(&b);
    b = open_golden("qwen2", "\"content\":\"<|im_start|>\"", "\"content\":\"<|in_start|>\"");
    assert_int_equal(tokenizer_difference(&a, &b, &common), tokenizer_added(&a, "<|im_start|>"));
    assert_true(tokenizer_hash(&a) != tokenizer_hash(&b));
    tokenizer_close(&b);
    struct tokenizer bytes;
    make_folder("none");
    check_ok(tokenizer_open(at("none"), &bytes), "bytes");
    assert_int_equal(tokenizer_difference(&a, &bytes, &common), 0);
    assert_int_equal(tokenizer_difference(&bytes, &bytes, &common), -1);
    assert_true(tokenizer_hash(&bytes) != tokenizer_hash(&a));
    tokenizer_close(&a);
}

#define LAST_ADDED "],\"normalizer\":"

/* Added tokens after the common ones are not a difference; others are, and so are differences before them. */
static void added_tokens_behind_the_common_ones_are_no_difference(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        int difference, more;
    } cases[] = {
        {LAST_ADDED, ",{\"id\":1264,\"content\":\"<think>\"}" LAST_ADDED, -1, 1},
        {LAST_ADDED, ",{\"id\":1267,\"content\":\"<think>\"}" LAST_ADDED, -1, 1},
        {"\"vocab\":{", "\"vocab\":{\"zzq\":1264,", 1256, 1}, /* it moves the added tokens */
        {"\"added_tokens\":[", "\"added_tokens\":[{\"id\":1264,\"content\":\"<think>\"},", 1256, 1},
    };
    struct tokenizer a = open_golden("qwen2", NULL, NULL);
    assert_int_equal(a.vocab_size, 1264);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokenizer b = open_golden("qwen2", cases[i].from, cases[i].to);
        int common[2];
        assert_int_equal(b.vocab_size, a.vocab_size + cases[i].more);
        assert_int_equal(tokenizer_difference(&a, &b, &common[0]), cases[i].difference);
        assert_int_equal(tokenizer_difference(&b, &a, &common[1]), cases[i].difference);
        assert_int_equal(common[0], a.vocab_size);
        assert_int_equal(common[1], a.vocab_size);
        tokenizer_close(&b);
    }
    tokenizer_close(&a);
}

/* ---- refusals ---- */

static const struct {
    const char *golden, *from, *to, *part;
} refused[] = {
    {"qwen2", "\"type\":\"BPE\"", "\"type\":\"Unigram\"", "model.type is \"Unigram\""},
    {"qwen2", "\"type\":\"BPE\"", "\"type\":\"WordPiece\"", "model.type is \"WordPiece\""},
    {"qwen2", "\"byte_fallback\":false", "\"byte_fallback\":true", "model.byte_fallback is true"},
    {"qwen2", "\"dropout\":null", "\"dropout\":0.1", "model.dropout is 0.1"},
    {"qwen2", "\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"",
     "model.end_of_word_suffix is \"</w>\""},
    {"qwen2", "\"type\":\"NFC\"", "\"type\":\"NFKD\"", "normalizer is {\"type\":\"NFKD\"}"},
    {"qwen2", "\"type\":\"Split\"", "\"type\":\"Metaspace\"", "this Metaspace is not supported"},
    {"qwen2", "\"behavior\":\"Isolated\"", "\"behavior\":\"Merged\"", "its behavior is not known"},
    {"qwen2", "{\"Regex\":", "{\"Glob\":", "must be a Regex or a String"},
    {"llama2", "\"pre_tokenizer\":null",
     "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\s\"},\"behavior\":"
     "\"Isolated\"}",
     "it may only split at a space"},
    {"qwen2", "?\\\\p{L}+", "?(\\\\p{L}+",
     "is not understood: end pattern with unmatched parenthesis"},
    {"gpt2", "\"pre_tokenizer\":{\"type\":\"ByteLevel\"",
     "\"pre_tokenizer\":{\"type\":\"Whitespace\"", "pre_tokenizer is {\"type\":\"Whitespace\""},
    {"gpt2", "\"decoder\":{\"type\":\"ByteLevel\"", "\"decoder\":{\"type\":\"Metaspace\"",
     "decoder is {\"type\":\"Metaspace\""},
    {"llama3", "\"type\":\"TemplateProcessing\"", "\"type\":\"BertProcessing\"",
     "post_processor is {\"type\":\"BertProcessing\""},
    {"llama2", "\"content\":\"\u2581\"", "\"content\":\"_\"",
     "only spaces can be replaced, by U+2581"},
    {"llama2", "\"prepend\":\"\u2581\"", "\"prepend\":\"_\"",
     "only U+2581 can be put before a text"},
    {"llama2", "\"<0x0A>\":", "\"<0x0a>\":", "1 of the 256 bytes have no token"},
    {"llama2", "\"pre_tokenizer\":null",
     "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}",
     "it does not go with the other steps"},
    {"gpt2", "\"vocab\":{\"!\":0", "\"vocab\":{\"!\":-7", "! is -7; an id must be"},
    {"gpt2", "\"merges\":[\"", "\"merges\":[\"zqzq x\",\"", "model.merges is \"zqzq x\""},
    {"gpt2", "\"merges\":[\"", "\"merges\":[\"abc\",\"", "must be two tokens"},
    {"qwen2", "\"merges\":[[", "\"merges\":[[\"a\"],[", "must be two tokens"},
    {"gpt2", "\"added_tokens\":[{\"id\":1256", "\"added_tokens\":[{\"id\":\"x\"",
     "added_tokens.id is \"x\""},
};

/* Token files can still be used, so opening succeeds, and encoding says why it does not. */
static void tokenizers_that_are_not_supported_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct tokenizer t;
        int32_t *ids = NULL;
        size_t count = 0, capacity = 0;
        check_ok(
            tokenizer_open(tokenizer_folder(refused[i].golden, refused[i].from, refused[i].to), &t),
            refused[i].part);
        assert_string_equal(t.kind, "token files");
        check_refused(tokenizer_encode(&t, "a", 1, &ids, &count, &capacity), NJ_E_UNSUPPORTED,
                      refused[i].part, refused[i].to);
        assert_non_null(strstr(fail_text(), "tokenizer.json"));
        assert_null(ids);
        tokenizer_close(&t);
    }
}

/* A pattern that backtracks without end is refused; the second one after a time proportional to the text, although each
 * single match is short. */
static void endless_patterns_are_refused(void **state)
{
    (void)state;
    static const char *const to[] = {"{\"Regex\":\"(a|a)*(a|a)*(a|a)*b|",
                                     "{\"Regex\":\"(?:a|b)*c|a|"};
    const size_t bytes = 8000; /* the second one's retries grow with the square of the length */
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, 'a', bytes);
    for (int i = 0; i < 2; i++) {
        struct tokenizer t = open_golden("qwen2", "{\"Regex\":\"", to[i]);
        int32_t *ids = NULL;
        size_t count = 0, capacity = 0;
        check_refused(tokenizer_encode(&t, text, bytes, &ids, &count, &capacity), NJ_E_UNSUPPORTED,
                      "cannot be matched against the text", to[i]);
        check_ok(tokenizer_encode(&t, text, 6, &ids, &count, &capacity), to[i]);
        free(ids);
        tokenizer_close(&t);
    }
    free(text);
    /* A long run that is passed twice is accepted. */
    static const char twice[] = "{\"Regex\":\"\\\\p{Lu}*\\\\p{Ll}+|\\\\p{Lu}+|";
    const size_t long_bytes = 1000000;
    struct tokenizer t = open_golden("llama3", "{\"Regex\":\"", twice);
    int32_t *ids = NULL;
    size_t count = 0, capacity = 0;
    text = malloc(long_bytes);
    assert_non_null(text);
    memset(text, 'A', long_bytes);
    check_ok(tokenizer_encode(&t, text, long_bytes, &ids, &count, &capacity), "a million letters");
    free(ids);
    free(text);
    tokenizer_close(&t);
}

/* Keys that collide in the tables of one run are spread in those of another. */
static void hash_tables_of_tokenizers_are_seeded(void **state)
{
    (void)state;
    struct tokenizer a = open_golden("qwen2", NULL, NULL), b = open_golden("qwen2", NULL, NULL);
    int same = 0;
    for (char c = 'a'; c <= 'z'; c++)
        same += bpe_slot(a.bpe, &c, 1) == bpe_slot(b.bpe, &c, 1);
    assert_in_range(same, 0, 5);
    assert_true(a.bpe->seed != b.bpe->seed);
    tokenizer_close(&a);
    tokenizer_close(&b);
}

/* Patterns and added tokens have bounds. */
static void long_patterns_are_refused(void **state)
{
    (void)state;
    enum { LONG = 20000 };
    static char to[LONG + 64];
    struct tokenizer t;
    memcpy(to, "{\"Regex\":\"", 10);
    memset(to + 10, 'a', LONG);
    memcpy(to + 10 + LONG, "|", 2);
    check_ok(tokenizer_open(tokenizer_folder("qwen2", "{\"Regex\":\"", to), &t), "long");
    assert_string_equal(t.kind, "token files");
    assert_non_null(strstr(t.refusal, "at most 16384 are supported"));
    tokenizer_close(&t);
    snprintf(to, sizeof to, "\"content\":\"%0*d\"", ADDED_BYTES_MOST + 1, 0);
    check_ok(tokenizer_open(tokenizer_folder("qwen2", "\"content\":\"<tool>\"", to), &t), "long");
    assert_string_equal(t.kind, "token files");
    assert_non_null(strstr(t.refusal, "at most 256 bytes are supported"));
    tokenizer_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_tokens_behind_the_common_ones_are_no_difference),
        cmocka_unit_test(ids_are_the_librarys),
        cmocka_unit_test(edited_ids_are_the_librarys),
        cmocka_unit_test(cutting_a_text_changes_no_id),
        cmocka_unit_test(texts_of_sentencepiece_are_cut_at_spaces_alone),
        cmocka_unit_test(words_over_spaces_are_not_cut),
        cmocka_unit_test(scanners_equal_oniguruma),
        cmocka_unit_test(bad_utf8_is_kept),
        cmocka_unit_test(texts_begin_and_end),
        cmocka_unit_test(tables_are_compared),
        cmocka_unit_test(tokenizers_that_are_not_supported_are_named),
        cmocka_unit_test(endless_patterns_are_refused),
        cmocka_unit_test(long_patterns_are_refused),
        cmocka_unit_test(hash_tables_of_tokenizers_are_seeded),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, scratch_begin, scratch_end);
}
