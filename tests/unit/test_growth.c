/* SPDX-License-Identifier: Apache-2.0
 *
 * test_growth.c: the steps that readers of text take for n bytes and for twice as many. The sources are compiled here
 * again, with counters in their innermost calls.
 */
#include "text/bpe.h"
#include "text/unicode.h"

#include <utf8proc.h>

static size_t steps;

static size_t run_counted(const unsigned char *s, size_t bytes, size_t at, int wanted)
{
    const size_t end = unicode_run(s, bytes, at, wanted);
    steps += end - at;
    return end;
}

#define utf8proc_get_property(cp) (steps++, utf8proc_get_property(cp))
#define utf8_before(s, at, cp) (steps++, utf8_before(s, at, cp))
#define unicode_class counted_class
#define unicode_prepare counted_prepare
#define unicode_normalize counted_normalize
#define unicode_run counted_run
size_t unicode_run(const unsigned char *s, size_t bytes, size_t at, int wanted);
extern uint8_t unicode_class[NOT_UTF8 + 1];
void unicode_prepare(void);
int unicode_normalize(enum unicode_form form, const char *text, size_t bytes, char **out,
                      size_t *count, size_t *capacity);
#include "text/unicode.c"
#undef unicode_class
#undef unicode_prepare
#undef unicode_run
#define unicode_run run_counted
#define added_prepare counted_added_prepare
#define added_split counted_added_split
void added_prepare(struct added_set *set);
int added_split(const struct added_set *set, const char *text, size_t bytes,
                const struct added_visitor *v);
#include "text/bpe_added.c"
#include "unit.h"

enum { SMALL = 20000 };

/* Return the steps for marks of two classes in turn, half of which must move. */
static size_t composed(size_t marks)
{
    char *text = malloc(2 * marks + 1), *out = NULL;
    size_t count = 0, capacity = 0;
    assert_non_null(text);
    for (size_t i = 0; i < marks; i++)
        memcpy(text + 2 * i, i % 2 ? "\xcc\xa3" : "\xcc\x87", 2);
    steps = 0;
    assert_int_equal(unicode_normalize(UNICODE_NFC, text, 2 * marks, &out, &count, &capacity), 1);
    assert_int_equal(count, 2 * marks);
    for (size_t i = 0; i < marks; i++)
        assert_memory_equal(out + 2 * i, i < marks / 2 ? "\xcc\xa3" : "\xcc\x87", 2);
    free(text);
    free(out);
    return steps;
}

static void marks_are_ordered_in_time(void **state)
{
    (void)state;
    counted_prepare();
    const size_t small = composed(SMALL), large = composed(2 * SMALL);
    assert_in_range(large, small, small * 5 / 2);
}

static int pass_text(void *user, const char *text, size_t bytes)
{
    (void)user;
    (void)text;
    (void)bytes;
    return 0;
}

static int pass_token(void *user, int32_t id)
{
    (void)id;
    ++*(size_t *)user;
    return 0;
}

/* Return the steps for an added token that strips the spaces beside it. */
static size_t stripped(size_t spaces, bool lstrip, bool rstrip)
{
    struct added_token token = {
        .text = (char[]){" "}, .bytes = 1, .lstrip = lstrip, .rstrip = rstrip};
    struct added_set set = {.token = &token, .count = 1};
    size_t found = 0;
    const struct added_visitor v = {&found, pass_text, pass_token};
    char *text = malloc(spaces);
    assert_non_null(text);
    memset(text, ' ', spaces);
    added_prepare(&set);
    steps = 0;
    assert_int_equal(added_split(&set, text, spaces, &v), 0);
    assert_int_equal(found, spaces);
    free(text);
    return steps;
}

static void spaces_are_stripped_in_time(void **state)
{
    (void)state;
    unicode_prepare();
    for (int k = 1; k < 4; k++)
        assert_in_range(stripped(2 * SMALL, k & 1, k & 2), 0, 8 * SMALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_ordered_in_time),
        cmocka_unit_test(spaces_are_stripped_in_time),
    };
    return cmocka_run_group_tests_name("growth", tests, NULL, NULL);
}
