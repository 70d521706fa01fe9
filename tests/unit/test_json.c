/* SPDX-License-Identifier: Apache-2.0
 *
 * test_json.c: JSON files are read as Python's json module reads them, a damaged file is an error, and a failed write
 * is noticed.
 */
#include "io/json_text.h"
#include "text/chat.h"
#include "text/tokenizer.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static json_t *engine_read_back(const char *text)
{
    json_t *out;
    write_text(at("a.json"), text);
    check_ok(json_read_file(at("a.json"), "fetch it again", &out), text);
    return out;
}

/* Check that the text is read, and written as `wanted`. */
static void check_shown(const char *text, const char *wanted)
{
    json_t *value = engine_read_back(text);
    char *shown = json_shown(value, JSON_COMPACT | JSON_REAL_PRECISION(3));
    assert_string_equal(shown, wanted);
    free(shown);
    json_decref(value);
}

static void infinity_and_nan_survive_reading_and_writing(void **state)
{
    (void)state;
    check_shown("[Infinity, -Infinity ,NaN]", "[Infinity,-Infinity,NaN]");
    check_shown("{\"a\":1e999,\"b\":-1E400}", "{\"a\":Infinity,\"b\":-Infinity}");
    check_shown("[\"Infinity\", \"a\\\"NaN\", \"\\\\\"]", "[\"Infinity\",\"a\\\"NaN\",\"\\\\\"]");
}

static void numbers_beyond_64_bits_are_floats(void **state)
{
    (void)state;
    check_shown("[1000000000000000019884624838656]", "[1e30]");
    check_shown("[9223372036854775807,-9223372036854775808]",
                "[9223372036854775807,-9223372036854775808]");
    check_shown("[9223372036854775808,-9223372036854775809]", "[9.22e18,-9.22e18]");
    char digits[1002] = "[";
    memset(digits + 1, '7', 999);
    digits[1000] = ']';
    check_shown(digits, "[Infinity]");
}

static void a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    check_shown("\xef\xbb\xbf[1]", "[1]");
}

static void the_last_of_two_equal_keys_counts(void **state)
{
    (void)state;
    check_shown("{\"a\":1,\"a\":{\"b\":2}}", "{\"a\":{\"b\":2}}");
}

static void errors_keep_their_line(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"a\":NaN,\n\"b\":x}", "{\"a\":1,\n\"b\":-Infinit}",
                                        "[1,\n007]", "[1,\n1000000000000000019884624838656.]",
                                        "[1,\n2"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *out;
        write_text(at("a.json"), texts[i]);
        check_refused(json_read_file(at("a.json"), "fetch it again", &out), NJ_E_FORMAT,
                      "a.json:2: column ", texts[i]);
        assert_null(out);
    }
}

static void only_a_file_that_is_not_there_is_absent(void **state)
{
    (void)state;
    json_t *out;
    check_ok(json_read_optional(at("none.json"), "fetch it again", &out), "absent");
    assert_null(out);
    write_text(at("a.json"), "{\"a\":");
    check_refused(json_read_optional(at("a.json"), "fetch it again", &out), NJ_E_FORMAT,
                  "fetch it again", "cut short");
    mkdir(at("folder.json"), 0700);
    check_refused(json_read_optional(at("folder.json"), "fetch it again", &out), NJ_E_IO,
                  "not a regular file", "folder");
}

/* A model file that cannot be parsed is an error, whichever of its fields is asked for. */
static void a_damaged_file_of_a_model_is_an_error(void **state)
{
    (void)state;
    struct tokenizer t;
    json_t *template;
    mkdir(at("model"), 0700);
    write_text(at("model/tokenizer_config.json"), "{\"chat_template\": \"a\",}");
    check_refused(chat_template(at("model"), &template), NJ_E_FORMAT,
                  "model/tokenizer_config.json:1: ", "tokenizer_config.json");
    write_text(at("model/config.json"), "{\"eos_token_id\": 2");
    write_text(at("model/tokenizer.json"), "{}");
    check_refused(tokenizer_open(at("model"), &t), NJ_E_FORMAT,
                  "model/config.json:1: ", "config.json");
}

static json_t *big_object(void)
{
    json_t *out = json_object();
    char key[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof key, "key%d", i);
        json_object_set_new(out, key, json_integer(i));
    }
    return out;
}

/* Writes to a stream: number `fails` fails, the others succeed. */
struct stream {
    int writes, fails;
};

static ssize_t write_stream(void *cookie, const char *data, size_t bytes)
{
    struct stream *s = cookie;
    (void)data;
    errno = ENOSPC;
    return ++s->writes == s->fails ? 0 : (ssize_t)bytes;
}

static void one_write_that_fails_is_noticed(void **state)
{
    (void)state;
    struct stream all = {0, 0};
    for (int fails = 0; fails <= all.writes; fails++) {
        struct stream s = {0, fails};
        FILE *f = fopencookie(&s, "w", (cookie_io_functions_t){.write = write_stream});
        const int rc = json_write_line(f, "rows.jsonl", big_object(), 0);
        const bool closed = fclose(f) == 0;
        assert_true((rc == NJ_OK && closed) == (fails == 0));
        if (fails == 1)
            check_refused(rc, NJ_E_IO, "rows.jsonl: cannot be written: No space", "first write");
        all.writes = fails == 0 ? s.writes : all.writes;
    }
    assert_true(all.writes > 0);
}

static void a_file_that_cannot_be_written_is_not_there(void **state)
{
    (void)state;
    struct rlimit before, small = {4096, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int rc = json_write_file(at("big.json"), big_object(), 0);
    setrlimit(RLIMIT_FSIZE, &before);
    check_refused(rc, NJ_E_IO, "big.json: cannot be written: File too large", "limit");
    assert_int_equal(access(at("big.json"), F_OK), -1);
    check_ok(json_write_file(at("big.json"), big_object(), 0), "without a limit");
}

static void numbers_of_a_file_read_back_as_they_are(void **state)
{
    (void)state;
    static const double numbers[] = {1e-5, 0.02, 0.041666666666666664, 0.1 + 0.2, 1e22 / 3};
    json_t *list = json_array(), *back;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        check_ok(json_write_file(at("one.json"), json_pack("[{s:f}]", "x", numbers[i]), 0), "one");
        check_ok(json_read_file(at("one.json"), "fetch it again", &back), "back");
        assert_true(json_real_value(json_object_get(json_array_get(back, 0), "x")) == numbers[i]);
        json_decref(back);
    }
    json_array_append_new(list, json_real(1e-5));
    json_array_append_new(list, json_real(0.02));
    check_ok(json_write_file(at("short.json"), list, JSON_COMPACT), "short");
    check_text(at("short.json"), "[1e-5,0.02]");
}

/* The result is that of Python's bytes.decode(errors="replace"). */
static void code_points_cut_short_are_replaced_once(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"\x61\xf0\x9f\x98", "\x61\xef\xbf\xbd"},
        {"\xf0\x9f\x98\x62", "\xef\xbf\xbd\x62"},
        {"\xe2\x82\x63", "\xef\xbf\xbd\x63"},
        {"\xe0\x80\x64", "\xef\xbf\xbd\xef\xbf\xbd\x64"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf0\x80\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xc3\xc3\xa9", "\xef\xbf\xbd\xc3\xa9"},
        {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\x80\x81", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf1\x80\xe2\x82\xf0", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82\xac\xe2\x82", "\xe2\x82\xac\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *text = json_c_text(rows[i][0]);
        assert_string_equal(json_string_value(text), rows[i][1]);
        json_decref(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(infinity_and_nan_survive_reading_and_writing),
        cmocka_unit_test(numbers_beyond_64_bits_are_floats),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(the_last_of_two_equal_keys_counts),
        cmocka_unit_test(errors_keep_their_line),
        cmocka_unit_test(only_a_file_that_is_not_there_is_absent),
        cmocka_unit_test(a_damaged_file_of_a_model_is_an_error),
        cmocka_unit_test(one_write_that_fails_is_noticed),
        cmocka_unit_test(a_file_that_cannot_be_written_is_not_there),
        cmocka_unit_test(numbers_of_a_file_read_back_as_they_are),
        cmocka_unit_test(code_points_cut_short_are_replaced_once),
    };
    return cmocka_run_group_tests_name("json", tests, scratch_begin, scratch_end);
}
