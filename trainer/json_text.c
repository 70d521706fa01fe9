/* SPDX-License-Identifier: Apache-2.0
 *
 * json_text.c: see json_text.h.
 */
#include "json_text.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "unicode.h"

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

static _Thread_local bool watched, refused;

static void *allocate(size_t bytes)
{
    void *block = watched && refused ? NULL : malloc(bytes);
    refused = watched && !block;
    return block;
}

static void prepare(void)
{
    json_set_alloc_funcs(allocate, free);
}

void json_memory_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    refused = false;
    watched = true;
}

bool json_memory_end(void)
{
    watched = false;
    return refused;
}

/* ---- reading ---- */

/* What a read since json_memory_begin() came to. */
static int read_result(const char *where, const json_error_t *error, const char *remedy,
                       json_t **out)
{
    if (json_memory_end()) {
        json_decref(*out);
        *out = NULL;
        return fail(NJ_E_NOMEM, "%s: out of memory", where);
    }
    if (*out)
        return NJ_OK;
    if (json_error_code(error) == json_error_cannot_open_file)
        return fail(NJ_E_IO, "%s: %s; %s", where, strerror(errno), remedy);
    return fail(NJ_E_FORMAT, "%s:%d: column %d: %s; %s", where, error->line, error->column,
                error->text, remedy);
}

int json_read_file(const char *path, size_t flags, const char *remedy, json_t **out)
{
    json_error_t error;
    json_memory_begin();
    *out = json_load_file(path, flags, &error);
    return read_result(path, &error, remedy, out);
}

int json_read_text(const char *where, const char *text, size_t bytes, size_t flags,
                   const char *remedy, json_t **out)
{
    json_error_t error;
    json_memory_begin();
    *out = json_loadb(text, bytes, flags, &error);
    return read_result(where, &error, remedy, out);
}
