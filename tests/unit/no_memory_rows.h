/* SPDX-License-Identifier: Apache-2.0
 *
 * no_memory_rows.h: for test_no_memory.c: rows of Parquet files, and texts packed by gzip and Zstandard.
 */
#ifndef NOJIT_TESTS_NO_MEMORY_ROWS_H
#define NOJIT_TESTS_NO_MEMORY_ROWS_H

#include "data/parquet.h"
#include "engine_fixture.h"

#include <zlib.h>
#include <zstd.h>

static bool some_columns(void *user, const char *column)
{
    (void)user;
    return strcmp(column, "text") == 0 || strcmp(column, "messages") == 0 ||
           strcmp(column, "map") == 0;
}

static void ignore_column(void *user, const char *column)
{
    (void)user, (void)column;
}

/* Read the first rows of a file. */
static int read_parquet(const char *path)
{
    enum { ROWS = 3 };
    const struct parquet_reader reader = {some_columns, ignore_column, NULL};
    struct data_file f;
    struct parquet *p = NULL;
    bool fault;
    int rc = data_file_open(&f, path);
    if (!rc)
        rc = parquet_open(&f, &reader, &p);
    for (int i = 0; i < ROWS && !rc; i++) {
        json_t *row;
        rc = parquet_next(p, &row, &fault);
        json_decref(row);
    }
    parquet_close(p);
    data_file_close(&f);
    return rc;
}

static int load_parquet(void)
{
    int rc = read_parquet("tests/golden/parquet/delta_bytes.parquet");
    if (rc == 0)
        rc = read_parquet("tests/golden/parquet/gzip.parquet");
    return rc != 0 ? rc : read_parquet("tests/golden/parquet/zstd.parquet");
}

/* Pack a text; return the number of bytes. */
static size_t pack_text(bool gzip, const char *text, unsigned char *out, size_t room)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)strlen(text)};
    if (!gzip)
        return ZSTD_compress(out, room, text, strlen(text), 3);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

/* Rows of every shape whose reading allocates memory. */
#define ROW_LINES                                                                                  \
    "{\"text\":\"one line of text\"}\n"                                                            \
    "{\"prompt\":\"caf\u00e9 one\",\"completion\":\" two\"}\n"                                     \
    "{\"messages\":[{\"role\":\"assistant\",\"content\":\"three\"}]}\n"                            \
    "{\"instruction\":\"one\",\"input\":\"two\",\"output\":\"three\"}\n"                           \
    "{\"prompt\":[{\"from\":\"human\",\"value\":[{\"type\":\"text\",\"text\":\"a\"}]}],"           \
    "\"completion\":[{\"from\":\"gpt\",\"value\":\"a\",\"train\":true}]}\n"

static void put_bytes(const char *name, const void *bytes, size_t count)
{
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
}

static void put_rows(void)
{
    static const char one[] = "{\"text\":\"one line of text, and more of it\"}\n";
    unsigned char packed[256];
    put_bytes("lines.jsonl", ROW_LINES, sizeof ROW_LINES - 1);
    put_bytes("lines.jsonl.gz", packed, pack_text(true, one, packed, sizeof packed));
    put_bytes("lines.jsonl.zst", packed, pack_text(false, one, packed, sizeof packed));
}

#endif
