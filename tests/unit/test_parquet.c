/* SPDX-License-Identifier: Apache-2.0
 *
 * test_parquet.c: rows of Parquet files equal those that pyarrow reads, whatever the settings of the writer; unused
 * columns are not read; damaged files are refused.
 */
#include "data/parquet.h"
#include "unit.h"

#include "io/error.h"

#include <dirent.h>

static bool all(void *user, const char *column)
{
    (void)user, (void)column;
    return true;
}

static bool text_alone(void *user, const char *column)
{
    (void)user;
    return strcmp(column, "text") == 0;
}

static void ignore(void *user, const char *column)
{
    (void)user, (void)column;
}

static void count_unread(void *user, const char *column)
{
    (void)column;
    ++*(int *)user;
}

static const char *folder(void)
{
    const char *other = getenv("NOJIT_PARQUET");
    return other ? other : "tests/golden/parquet";
}

static json_t *expected_rows(void)
{
    char path[512];
    json_t *rows = json_array();
    char *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "%s/rows.jsonl", folder());
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (getline(&line, &room, f) > 0)
        json_array_append_new(rows, json_loads(line, 0, NULL));
    free(line);
    fclose(f);
    return rows;
}

static void check_file(const char *path, const json_t *expected)
{
    const struct parquet_reader reader = {all, ignore, NULL};
    struct data_file f;
    struct parquet *p;
    json_t *row;
    bool fault;
    size_t count = 0;
    check_ok(data_file_open(&f, path), path);
    check_ok(parquet_open(&f, &reader, &p), path);
    for (;;) {
        check_ok(parquet_next(p, &row, &fault), path);
        if (!row)
            break;
        const json_t *want = json_array_get(expected, count++);
        char *got_text = json_dumps(row, JSON_SORT_KEYS), *text = json_dumps(want, JSON_SORT_KEYS);
        if (!text || strcmp(got_text, text) != 0)
            print_error("%s: row %zu\n", path, count);
        assert_string_equal(got_text, text);
        free(got_text);
        free(text);
        json_decref(row);
    }
    assert_int_equal(count, json_array_size(expected));
    parquet_close(p);
    data_file_close(&f);
}

static void parquet_rows_are_those_of_pyarrow(void **state)
{
    (void)state;
    json_t *expected = expected_rows();
    DIR *d = opendir(folder());
    int files = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[1024];
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".parquet") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder(), e->d_name);
        check_file(path, expected);
        files++;
    }
    closedir(d);
    json_decref(expected);
    assert_true(files >= 17);
}

static void columns_that_nobody_wants_are_left_out(void **state)
{
    (void)state;
    int unread = 0;
    const struct parquet_reader reader = {text_alone, count_unread, &unread};
    struct data_file f;
    struct parquet *p;
    json_t *row;
    bool fault;
    check_ok(data_file_open(&f, "tests/golden/parquet/zstd.parquet"), "open");
    check_ok(parquet_open(&f, &reader, &p), "open");
    assert_int_equal(unread, 17);
    check_ok(parquet_next(p, &row, &fault), "next");
    assert_int_equal(json_object_size(row), 1);
    assert_true(json_is_string(json_object_get(row, "text")));
    json_decref(row);
    parquet_close(p);
    data_file_close(&f);
}

/* Read all rows; return the error code. */
static int read_all(const char *path)
{
    const struct parquet_reader reader = {all, ignore, NULL};
    struct data_file f;
    struct parquet *p;
    json_t *row = NULL;
    bool fault;
    check_ok(data_file_open(&f, path), path);
    int rc = parquet_open(&f, &reader, &p);
    do {
        json_decref(row);
        row = NULL;
        rc = rc ? rc : parquet_next(p, &row, &fault);
    } while (!rc && row);
    json_decref(row);
    parquet_close(p);
    data_file_close(&f);
    return rc;
}

/* Write a file of the golden folder with one byte changed, or truncated. */
static const char *damaged(const char *name, long place, int with, long bytes)
{
    static unsigned char all_bytes[1 << 16];
    char path[512];
    snprintf(path, sizeof path, "tests/golden/parquet/%s.parquet", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const long size = (long)fread(all_bytes, 1, sizeof all_bytes, f);
    fclose(f);
    assert_in_range(place < 0 ? size + place : place, 0, size - 1);
    if (place != 0)
        all_bytes[place < 0 ? size + place : place] ^= (unsigned char)with;
    write_bytes(at("damaged.parquet"), all_bytes, (size_t)(bytes > 0 ? bytes : size));
    return at("damaged.parquet");
}

static void damaged_parquet_files_are_refused(void **state)
{
    (void)state;
    check_refused(read_all(damaged("snappy", -1, 1, 0)), NJ_E_FORMAT,
                  "does not end as Parquet does", "magic");
    check_refused(read_all(damaged("snappy", 0, 0, 4000)), NJ_E_FORMAT, "does not end as", "cut");
    check_refused(read_all(damaged("snappy", -5, 0x40, 0)), NJ_E_FORMAT,
                  "its footer is longer than the file", "footer");
    check_refused(read_all(damaged("snappy", 0, 0, 9)), NJ_E_FORMAT, "too short for Parquet", "9");
    check_refused(read_all(damaged("zstd", 60, 1, 0)), NJ_E_FORMAT,
                  "of the column text does not have the checksum it should", "checksum");
}

/* Every byte is changed in two ways: the file is read or refused, and nothing else happens. */
static void no_byte_of_a_parquet_file_is_trusted(void **state)
{
    (void)state;
    static const char *const names[] = {"page_v2", "delta"};
    int refused = 0;
    for (int k = 0; k < 2; k++) {
        struct stat file;
        assert_int_equal(stat(damaged(names[k], 0, 0, 0), &file), 0);
        for (long at = 1; at <= file.st_size; at += 3)
            refused += read_all(damaged(names[k], -at, at % 2 ? 0xff : 0x81, 0)) != NJ_OK;
    }
    assert_true(refused > 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parquet_rows_are_those_of_pyarrow),
        cmocka_unit_test(columns_that_nobody_wants_are_left_out),
        cmocka_unit_test(damaged_parquet_files_are_refused),
        cmocka_unit_test(no_byte_of_a_parquet_file_is_trusted),
    };
    return cmocka_run_group_tests_name("parquet", tests, scratch_begin, scratch_end);
}
