/* SPDX-License-Identifier: Apache-2.0
 *
 * test_state_file.c: state.bin alone: what is written is read back, and records that this program does not know are
 * refused by name. tests/durability/old_run.sh reads files of earlier versions.
 */
#include "unit.h"
#include "weights/state_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdbool.h>

enum { HEAD = 24, RECORD = 32, TAG = 16, RECORDS_HASH = 16, ARRAY_BYTES = 5 };
static const uint64_t bytes[STATE_ARRAYS] = {ARRAY_BYTES, ARRAY_BYTES, ARRAY_BYTES};
static const char *const content[STATE_ARRAYS] = {"abcde", "fghij", "klmno"};

static void write_file(void)
{
    struct state_file s;
    check_ok(state_file_create(&s, scratch, bytes), "create");
    s.fields = (struct state_fields){.step = 7, .layout = 11, .elements = 5, .window = 13};
    s.fields.slots[NJ_STEP_LOSS_SCALE] = 1;
    for (int i = STATE_ARRAYS - 1; i >= 0; i--) {
        check_ok(state_file_seek(&s, i), "seek");
        check_ok(state_file_write(&s, content[i], ARRAY_BYTES), "write");
        s.array[i].hash = XXH3_64bits(content[i], ARRAY_BYTES);
    }
    check_ok(state_file_close(&s, state_file_finish(&s)), "finish");
}

/* Give the record `from` another tag, or with NULL remove it and its bytes, and correct the hash of records. */
static void change_record(const char *from, const char *to)
{
    size_t size;
    char *file = read_bytes(at("state.bin"), &size), *changed = calloc(1, size);
    uint32_t records, kept = 0;
    memcpy(&records, file + 12, sizeof records);
    const uint32_t count = to ? records : records - 1;
    size_t from_at = HEAD + records * RECORD, to_at = HEAD + count * RECORD;
    assert_true(changed && from_at < size);
    memcpy(changed, file, HEAD);
    for (uint32_t i = 0; i < records; i++) {
        char *record = file + HEAD + i * RECORD;
        uint64_t length;
        memcpy(&length, record + TAG, sizeof length);
        const bool same = strcmp(record, from) == 0;
        if (same && to)
            memcpy(memset(record, 0, TAG), to, strnlen(to, TAG));
        if (!same || to) {
            memcpy(changed + HEAD + kept++ * RECORD, record, RECORD);
            memcpy(changed + to_at, file + from_at, length);
            to_at += length;
        }
        from_at += length;
    }
    const uint64_t hash = XXH3_64bits(changed + HEAD, kept * RECORD);
    memcpy(changed + 12, &kept, sizeof kept);
    memcpy(changed + RECORDS_HASH, &hash, sizeof hash);
    write_bytes(at("state.bin"), changed, to_at);
    free(changed);
    free(file);
}

static void a_file_has_what_was_written(void **state)
{
    struct state_file s;
    char got[ARRAY_BYTES];
    (void)state;
    write_file();
    check_ok(state_file_open(&s, scratch), "open");
    check_ok(state_file_expect(&s, bytes), "expect");
    assert_true(s.fields.step == 7 && s.fields.layout == 11 && s.fields.elements == 5 &&
                s.fields.window == 13 && s.fields.slots[NJ_STEP_LOSS_SCALE] == 1);
    for (int i = 0; i < STATE_ARRAYS; i++) {
        check_ok(state_file_seek(&s, i), "seek");
        check_ok(state_file_read(&s, got, sizeof got), "read");
        assert_memory_equal(got, content[i], ARRAY_BYTES);
        check_ok(state_file_check(&s, i, XXH3_64bits(got, sizeof got)), "check");
    }
    assert_int_equal(state_file_check(&s, 1, 0), NJ_E_FORMAT);
    assert_non_null(strstr(fail_text(), "the first moments are damaged"));
    check_ok(state_file_close(&s, 0), "close");
}

/* Expect a failure to open the file, with a part of its message. */
static void open_says(int code, const char *part)
{
    struct state_file s;
    check_refused(state_file_open(&s, scratch), code, part, "open");
}

static void unknown_fields_are_refused_by_name(void **state)
{
    (void)state;
    write_file();
    change_record("epoch", "chapter");
    open_says(NJ_E_UNSUPPORTED, "state.bin: the field 'chapter' is unknown to this program; "
                                "continue with the nojit that wrote it");
    change_record("chapter", "sixteen_letters_");
    open_says(NJ_E_UNSUPPORTED, "the field 'sixteen_letters_' is unknown");
    write_file();
    change_record("moments.2", "\033[1m");
    open_says(NJ_E_UNSUPPORTED, "the field '?[1m' is unknown");
}

static void a_field_that_an_older_file_lacks_is_zero(void **state)
{
    struct state_file s;
    (void)state;
    write_file();
    change_record("window", NULL);
    check_ok(state_file_open(&s, scratch), "open");
    check_ok(state_file_expect(&s, bytes), "expect");
    assert_true(s.fields.window == 0 && s.fields.step == 7);
    check_ok(state_file_close(&s, 0), "close");
}

static void arrays_must_be_there_once_and_whole(void **state)
{
    static const uint64_t other[STATE_ARRAYS] = {ARRAY_BYTES, ARRAY_BYTES, ARRAY_BYTES + 1};
    struct state_file s;
    (void)state;
    write_file();
    check_ok(state_file_open(&s, scratch), "open");
    check_refused(state_file_expect(&s, other), NJ_E_FORMAT, "the second moments have another size",
                  "expect");
    check_ok(state_file_close(&s, 0), "close");
    change_record("moments.1", "weights");
    open_says(NJ_E_FORMAT, "the field 'weights' is there twice");
    write_file();
    change_record("moments.1", NULL);
    open_says(NJ_E_FORMAT, "lacks its first moments");
    write_file();
    change_record("moments.1", "epoch");
    open_says(NJ_E_FORMAT, "the field 'epoch' is there twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_has_what_was_written),
        cmocka_unit_test(unknown_fields_are_refused_by_name),
        cmocka_unit_test(a_field_that_an_older_file_lacks_is_zero),
        cmocka_unit_test(arrays_must_be_there_once_and_whole),
    };
    return cmocka_run_group_tests(tests, scratch_begin, scratch_end);
}
