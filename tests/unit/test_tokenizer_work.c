/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tokenizer_work.c: the work for a pattern of tokenizer.json is bounded by the length of the text.
 */
#include "tokenizer_fixture.h"

/* Each match of these patterns examines all the remaining text and backtracks once. */
static void patterns_that_look_far_are_refused(void **state)
{
    (void)state;
    static const char *const to[] = {"{\"Regex\":\"a++c|a|", "{\"Regex\":\"(?>.*)c|a|",
                                     "{\"Regex\":\"(?:a|b)*+c|a|", "{\"Regex\":\"(?=.*c)a|a|",
                                     "{\"Regex\":\"(?~c)c|a|"};
    const size_t bytes = 20000;
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, 'a', bytes);
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        struct tokenizer t = open_golden("qwen2", "{\"Regex\":\"", to[i]);
        int32_t *ids = NULL;
        size_t count = 0, capacity = 0;
        check_refused(tokenizer_encode(&t, text, bytes, &ids, &count, &capacity), NJ_E_UNSUPPORTED,
                      "cannot be matched against the text", to[i]);
        check_ok(tokenizer_encode(&t, text, 100, &ids, &count, &capacity), to[i]);
        free(ids);
        tokenizer_close(&t);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(patterns_that_look_far_are_refused)};
    return cmocka_run_group_tests_name("tokenizer_work", tests, scratch_begin, scratch_end);
}
