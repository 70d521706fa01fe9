/* SPDX-License-Identifier: Apache-2.0
 *
 * test_stop_text.c: texts that end a model's output: where it is cut, whatever its tokens are, and how much may be
 * shown before the end is known.
 */
#include "record/stop_text.h"
#include "unit.h"

static const char *const texts[] = {"STOP", "\nUser:", "aab"};
static const struct stop_texts stops = {texts, 3};

static const struct {
    const char *said, *want, *by; /* NULL: no stop text */
} rows[] = {
    {"one STOP two", "one ", "STOP"},
    {"one\nUser: STOP", "one", "\nUser:"},
    {"STSTOP", "ST", "STOP"},
    {"aaab", "a", "aab"},
    {"STO", "STO", NULL},
    {"aa\nUser", "aa\nUser", NULL},
    {"", "", NULL},
    {"STOP", "", "STOP"},
};

/* Write a text in tokens of a given number of bytes, and check what may be shown after each. */
static void write_by(const char *said, size_t each, const char *want, const char *by)
{
    struct stopped_text t = {{NULL, 0, 0}, NULL};
    const size_t bytes = strlen(said), length = strlen(want);
    size_t shown = 0;
    for (size_t at = 0; at < bytes && !t.by; at += each) {
        assert_true(stop_add(&stops, &t, said + at, bytes - at < each ? bytes - at : each));
        const size_t sure = stop_sure(&stops, &t);
        assert_in_range(sure, shown, length); /* nothing is taken back */
        shown = sure;
    }
    assert_int_equal(t.text.count, length);
    if (length > 0)
        assert_memory_equal(t.text.at, want, length);
    assert_true(by ? t.by && strcmp(t.by, by) == 0 : !t.by);
    free(t.text.at);
}

static void texts_end_before_a_stop_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t each = 1; each < 14; each++)
            write_by(rows[i].said, each, rows[i].want, rows[i].by);
}

/* Only text that may be the beginning of a stop text is held back. */
static void text_that_stays_is_shown_at_once(void **state)
{
    (void)state;
    struct stopped_text t = {{NULL, 0, 0}, NULL};
    assert_true(stop_add(&stops, &t, "word ", 5));
    assert_int_equal(stop_sure(&stops, &t), 5);
    assert_true(stop_add(&stops, &t, "aa", 2));
    assert_int_equal(stop_sure(&stops, &t), 5);
    assert_true(stop_add(&stops, &t, "a", 1));
    assert_int_equal(stop_sure(&stops, &t), 6);
    free(t.text.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_end_before_a_stop_text),
        cmocka_unit_test(text_that_stays_is_shown_at_once),
    };
    return cmocka_run_group_tests_name("stop_text", tests, NULL, NULL);
}
