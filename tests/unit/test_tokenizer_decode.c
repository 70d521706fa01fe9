/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tokenizer_decode.c: the bytes of a text's tokens are the text, except for the space that a tokenizer puts before
 * it.
 */
#include "tokenizer_fixture.h"

#include <jansson.h>

static json_t *golden_rows(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "tests/golden/tokenizer-%s-ids.json", name);
    json_t *rows = json_load_file(path, JSON_ALLOW_NUL, NULL);
    assert_non_null(rows);
    return rows;
}

/* Check the texts; `prefix` is the length of a space that the tokenizer puts before a text. */
static void check_texts(const char *golden, size_t prefix)
{
    struct tokenizer t = open_golden(golden, NULL, NULL);
    json_t *rows = golden_rows(golden);
    const json_t *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const json_t *text = json_array_get(row, 0);
        const json_t *id;
        const size_t before = json_string_length(text) > 0 ? prefix : 0;
        size_t k, at = 0;
        if (strstr(json_string_value(text), "<|endoftext|>") ||
            strstr(json_string_value(text), "<left>") || strstr(json_string_value(text), "<right>"))
            continue; /* special ids have no text, and the other added tokens strip spaces */
        if (prefix &&
            (strpbrk(json_string_value(text), "<w") || strstr(json_string_value(text), "▁")))
            continue; /* each stretch between added tokens has a prefix */
        json_array_foreach(json_array_get(row, 1), k, id)
        {
            size_t bytes;
            const char *token = tokenizer_decode(&t, (int32_t)json_integer_value(id), &bytes);
            assert_true(at + bytes <= json_string_length(text) + before);
            const size_t skip = k == 0 ? before : 0;
            assert_true(skip == 0 || token[0] == ' ');
            assert_memory_equal(token + skip, json_string_value(text) + at + skip - before,
                                bytes - skip);
            at += bytes;
        }
        assert_int_equal(at, json_string_length(text) + before);
    }
    json_decref(rows);
    tokenizer_close(&t);
}

static void texts_come_back_from_their_ids(void **state)
{
    (void)state;
    check_texts("gpt2", 0);
    check_texts("llama2", 1);
    check_texts("gemma", 0);
}

/* ---- long texts ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_come_back_from_their_ids)};
    return cmocka_run_group_tests_name("tokenizer_decode", tests, scratch_begin, scratch_end);
}
