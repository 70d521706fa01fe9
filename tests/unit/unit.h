/* SPDX-License-Identifier: Apache-2.0
 *
 * unit.h: shared by the unit tests of files: a scratch folder, small files, and refusals with a checked message.
 */
#ifndef NOJIT_TESTS_UNIT_H
#define NOJIT_TESTS_UNIT_H

#include "io/error.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The test program's folder; at() gives paths in it. */
static char scratch[64];

static inline int scratch_begin(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/nojit-test-XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int scratch_remove_entry(const char *path, const struct stat *info, int type,
                                       struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    nftw(path, scratch_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int scratch_end(void **state)
{
    (void)state;
    remove_tree(scratch);
    return 0;
}

/* Return the path of a name in the scratch folder; four may be in use at a time. */
static inline char *at(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

static inline char *make_folder(const char *name)
{
    char *path = at(name);
    assert_int_equal(mkdir(path, 0777), 0);
    return path;
}

static inline void write_bytes(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

/* Return the bytes of a file, followed by a zero; the caller frees them. */
static inline char *read_bytes(const char *path, size_t *bytes)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &info) != 0)
        fail_msg("%s: cannot be opened", path);
    char *data = calloc(1, (size_t)info.st_size + 1);
    assert_non_null(data);
    *bytes = fread(data, 1, (size_t)info.st_size, file);
    assert_int_equal(*bytes, info.st_size);
    fclose(file);
    return data;
}

/* Check that a file holds this text. */
static inline void check_text(const char *path, const char *text)
{
    size_t bytes;
    char *found = read_bytes(path, &bytes);
    assert_string_equal(found, text);
    free(found);
}

/* Check that rc is `code` and the message contains `part`; print the message otherwise. */
static inline void check_refused(int rc, int code, const char *part, const char *where)
{
    if (rc != code || !strstr(fail_text(), part))
        fail_msg("%s: got %d \"%s\", expected %d with \"%s\"", where, rc, rc ? fail_text() : "",
                 code, part);
}

/* Check that rc is 0; print the message otherwise. */
static inline void check_ok(int rc, const char *where)
{
    if (rc != 0)
        fail_msg("%s: got %d \"%s\"", where, rc, fail_text());
}

#endif
