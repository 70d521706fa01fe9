/* SPDX-License-Identifier: Apache-2.0
 *
 * json_text.c: see json_text.h.
 */
#include "io/json_text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "checked.h"
#include "io/error.h"
#include "io/regular.h"
#include "utf8.h"

json_t *json_text(const char *text, size_t bytes)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *valid = malloc(3 * bytes + 1);
    size_t n = 0, length;
    if (valid == NULL)
        return NULL;
    for (size_t at = 0; at < bytes; at += length) {
        uint32_t cp;
        length = utf8_next((const unsigned char *)text + at, bytes - at, &cp);
        const bool bad = cp == NOT_UTF8;
        memcpy(valid + n, bad ? replacement : text + at, bad ? 3 : length);
        n += bad ? 3 : length;
    }
    json_t *out = json_stringn_nocheck(valid, n);
    free(valid);
    return out;
}

/* ---- memory ---- */

static _Thread_local bool watched, refused, spent;
static _Thread_local size_t left; /* bytes that may still be asked for */

static void *allocate(size_t bytes)
{
    if (!watched)
        return malloc(bytes);
    spent = spent || (!refused && bytes > left);
    void *block = refused || spent ? NULL : malloc(bytes);
    refused = !block;
    left -= refused ? 0 : bytes;
    return block;
}

static void prepare(void)
{
    json_set_alloc_funcs(allocate, free);
}

static void begin(size_t most)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    refused = spent = false;
    left = most;
    watched = true;
}

/* A text may take so many bytes for each of its own: lists of words take 20, lists of empty objects 70.
 * What is small may take as much as a mebibyte. */
enum { MEMORY_OF_A_BYTE = 32, SMALL = 1 << 20 };

static size_t memory_of(size_t bytes)
{
    return size_mul(bytes > SMALL ? bytes : SMALL, MEMORY_OF_A_BYTE);
}

void json_memory_begin(void)
{
    begin(SIZE_MAX);
}

void json_memory_limit(size_t bytes)
{
    begin(memory_of(bytes));
}

bool json_memory_spent(void)
{
    return spent;
}

bool json_memory_end(void)
{
    watched = false;
    return refused;
}

/* ---- reading ---- */

/* What a read since begin(most) came to. */
static int read_result(const char *where, size_t most, const json_error_t *error,
                       const char *remedy, json_t **out)
{
    if (json_memory_end()) {
        json_decref(*out);
        *out = NULL;
        if (spent)
            return fail(NJ_E_FORMAT, "%s: parsing it needs more than the limit of %zu MiB; %s",
                        where, most >> 20, remedy);
        return fail(NJ_E_NOMEM, "%s: out of memory", where);
    }
    if (*out)
        return NJ_OK;
    return fail(NJ_E_FORMAT, "%s:%d: column %d: %s; %s", where, error->line, error->column,
                error->text, remedy);
}

static int read_file(const char *path, size_t bytes, size_t flags, const char *remedy, json_t **out)
{
    const size_t most = memory_of(bytes);
    json_error_t error;
    FILE *f;
    *out = NULL;
    int err = regular_open(path, bytes, remedy, &f);
    if (err)
        return err;
    begin(most);
    *out = json_loadf(f, flags, &error);
    err = read_result(path, most, &error, remedy, out);
    if (err && ferror(f))
        err = fail(NJ_E_IO, "%s: cannot be read; %s", path, remedy);
    fclose(f);
    return err;
}

int json_read_file(const char *path, size_t flags, const char *remedy, json_t **out)
{
    return read_file(path, (size_t)16 << 20, flags, remedy, out);
}

int json_read_table(const char *path, size_t flags, const char *remedy, json_t **out)
{
    return read_file(path, (size_t)256 << 20, flags, remedy, out);
}

int json_read_text(const char *where, const char *text, size_t bytes, size_t flags,
                   const char *remedy, json_t **out)
{
    const size_t most = memory_of(bytes);
    json_error_t error;
    begin(most);
    *out = json_loadb(text, bytes, flags, &error);
    return read_result(where, most, &error, remedy, out);
}
