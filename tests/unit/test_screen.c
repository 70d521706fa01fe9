/* SPDX-License-Identifier: Apache-2.0
 *
 * test_screen.c: text from files and models is shown by a terminal, never executed.
 */
#include "base/utf8.h"
#include "cli/screen.h"
#include "record/progress.h"
#include "unit.h"

/* Text that a terminal acts upon, and what is shown of it. */
static const struct {
    const char *text, *shown;
} texts[] = {
    {"plain, with \xc3\xa4 and \xe2\x82\xac and \xf0\x9f\x98\x80", NULL},
    {"\x1b]52;c;AAAA\x07", "?]52;c;AAAA?"},
    {"a\rb\bc\x7f", "a?b?c?"},
    {"\xc2\x9b"
     "2J\xc2\xa0",
     "??2J\xc2\xa0"}, /* CSI as one code point */
    {"\x9b"
     "2J",
     "?2J"}, /* CSI as one byte */
    {"\xe2\x80\xae"
     "txt.exe",
     "???txt.exe"}, /* reverses the text that follows */
    {"\xe2\x81\xa6"
     "x\xe2\x81\xa9",
     "???x???"}, /* the same */
    {"cut \xe2\x82", "cut ??"},
};
enum { TEXTS = sizeof texts / sizeof *texts };

static void sentences_are_printable(void **state)
{
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        assert_int_equal((fail)(NJ_E_FORMAT, "tensor %s; fetch it again", texts[i].text),
                         NJ_E_FORMAT);
        char want[128];
        snprintf(want, sizeof want, "tensor %s; fetch it again",
                 texts[i].shown ? texts[i].shown : texts[i].text);
        assert_string_equal(fail_text(), want);
    }
    (void)(fail)(NJ_E_FORMAT, "a\nnojit: all is well");
    assert_string_equal(fail_text(), "a?nojit: all is well");
}

static void lines_are_printable(void **state)
{
    struct progress p;
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        char want[128];
        remove(at("log"));
        check_ok(progress_open(&p, at("log"), true), "open");
        progress_say(&p, "%s", texts[i].text);
        progress_close(&p);
        snprintf(want, sizeof want, "%s\n", texts[i].shown ? texts[i].shown : texts[i].text);
        check_text(at("log"), want);
    }
}

/* Characters arrive whole however they are written, and a byte is shown as soon as it can be part of none. */
static void texts_of_a_model_are_printable(void **state)
{
    (void)state;
    for (int i = 0; i < TEXTS; i++)
        for (int each = 0; each < 2; each++) {
            char *out = NULL;
            size_t bytes = 0;
            FILE *to = open_memstream(&out, &bytes), *f = screen_open(to);
            assert_true(to != NULL && f != NULL);
            const char *text = texts[i].text;
            for (size_t k = 0; text[k] != '\0'; k++) {
                fputc(text[k], f);
                if (each)
                    fflush(f);
            }
            assert_int_equal(fclose(f), 0);
            fputs("\n", to);
            fclose(to);
            /* Here one mark stands for a code point. */
            char want[128];
            size_t n = 0, left = strlen(text);
            uint32_t cp;
            for (size_t length; left > 0; text += length, left -= length) {
                length = utf8_next((const unsigned char *)text, left, &cp);
                memcpy(want + n, is_control(cp) ? "?" : text, is_control(cp) ? 1 : length);
                n += is_control(cp) ? 1 : length;
            }
            snprintf(want + n, sizeof want - n, "\n");
            assert_string_equal(out, want);
            free(out);
        }
}

static void lines_and_tabs_stay(void **state)
{
    char *out = NULL;
    size_t bytes = 0;
    (void)state;
    FILE *to = open_memstream(&out, &bytes), *f = screen_open(to);
    assert_true(to != NULL && f != NULL);
    fputs("a\tb\n\x1b[31m", f);
    fclose(f);
    fclose(to);
    assert_string_equal(out, "a\tb\n?[31m");
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences_are_printable),
        cmocka_unit_test(lines_are_printable),
        cmocka_unit_test(texts_of_a_model_are_printable),
        cmocka_unit_test(lines_and_tabs_stay),
    };
    return cmocka_run_group_tests_name("screen", tests, scratch_begin, scratch_end);
}
