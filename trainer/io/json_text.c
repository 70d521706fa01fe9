/* SPDX-License-Identifier: Apache-2.0
 *
 * json_text.c: see json_text.h.
 */
#include "io/json_text.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/python_json.h"
#include "base/utf8.h"
#include "io/error.h"
#include "io/regular.h"

/* Return how many invalid bytes one U+FFFD stands for, as in Python and in Unicode's
 * recommendation: the beginning of a truncated code point, or one byte. */
static size_t bad_bytes(const unsigned char *s, size_t left)
{
    const unsigned char c = s[0], low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    const size_t most = c >= 0xf0 && c <= 0xf4 ? 3 : c >= 0xe0 && c <= 0xef ? 2 : 1;
    size_t n = 1;
    if (most > 1 && left > 1 && s[1] >= low && s[1] <= high)
        for (n = 2; n < most && n < left && (s[n] & 0xc0) == 0x80;)
            n++;
    return n;
}

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
        if (bad)
            length = bad_bytes((const unsigned char *)text + at, bytes - at);
        memcpy(valid + n, bad ? replacement : text + at, bad ? 3 : length);
        n += bad ? 3 : length;
    }
    json_t *out = json_stringn_nocheck(valid, n);
    free(valid);
    return out;
}

/* ---- memory ---- */

static _Thread_local bool watched, refused, spent;
static _Thread_local size_t left; /* bytes that may still be allocated */

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

/* Memory that a text may take for each of its bytes: lists of words take 20 bytes, lists of
 * empty objects 70. A small text may take up to a mebibyte. */
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
    const bool out = refused;
    watched = refused = false;
    return out;
}

/* ---- reading ---- */

/* Return the result of a read since begin(most). */
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
        return 0;
    return fail(NJ_E_FORMAT, "%s:%d: column %d: %s; %s", where, error->line, error->column,
                error->text, remedy);
}

/* Read all of an open file, at most `most` bytes; *bytes receives the number read. */
static int read_all(const char *path, FILE *f, size_t most, const char *remedy, char **out,
                    size_t *bytes)
{
    struct stat info;
    if (fstat(fileno(f), &info) != 0 || (uint64_t)info.st_size > most)
        return fail(NJ_E_IO, "%s: cannot be read; %s", path, remedy);
    *out = malloc((size_t)info.st_size + 1);
    if (!*out)
        return fail(NJ_E_NOMEM, "%s: out of memory", path);
    *bytes = fread(*out, 1, (size_t)info.st_size, f);
    return ferror(f) ? fail(NJ_E_IO, "%s: cannot be read; %s", path, remedy) : 0;
}

static int parse_file(const char *path, const char *text, size_t bytes, size_t most,
                      const char *remedy, json_t **out)
{
    json_error_t error;
    bool no_memory;
    begin(most);
    *out = python_json_load(text, bytes, &no_memory, &error);
    refused = refused || no_memory;
    return read_result(path, most, &error, remedy, out);
}

static int read_file(const char *path, size_t bytes, const char *remedy, json_t **out)
{
    const size_t most = memory_of(bytes);
    char *text = NULL;
    size_t count = 0;
    FILE *f;
    *out = NULL;
    TRY(regular_open(path, bytes, remedy, &f));
    int rc = read_all(path, f, bytes, remedy, &text, &count);
    fclose(f);
    if (rc == 0 && regular_is_pointer(text, count))
        rc = regular_refuse_pointer(path);
    if (rc == 0)
        rc = parse_file(path, text, count, most, remedy, out);
    free(text);
    return rc;
}

int json_read_file(const char *path, const char *remedy, json_t **out)
{
    return read_file(path, (size_t)16 << 20, remedy, out);
}

int json_read_optional(const char *path, const char *remedy, json_t **out)
{
    *out = NULL;
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    return json_read_file(path, remedy, out);
}

int json_read_table(const char *path, const char *remedy, json_t **out)
{
    return read_file(path, (size_t)256 << 20, remedy, out);
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

/* ---- writing ---- */

char *json_shown(const json_t *value, size_t flags)
{
    char *text = value ? json_dumps(value, flags | JSON_ENCODE_ANY) : NULL;
    if (text)
        python_json_restore(text);
    return text;
}

/* Return the text of a value, which is freed, or NULL if memory runs out. */
static char *take_text(json_t *value, size_t flags)
{
    char *text = json_shown(value, flags);
    json_decref(value);
    if (!json_memory_end())
        return text;
    free(text);
    return NULL;
}

static int refuse_write(const char *where, int error)
{
    return fail(NJ_E_IO, "%s: cannot be written: %s; check its place and the free space", where,
                strerror(error));
}

/* Write a text, which is freed here, followed by `end`; return false with errno on failure. */
static bool put_text(FILE *f, char *text, const char *end)
{
    const bool written = fputs(text, f) != EOF && fputs(end, f) != EOF;
    free(text);
    return written;
}

/* Return the number of digits with which a number reads back unchanged: 15 if that suffices, so
 * that 1e-05 stays short. */
static size_t digits_of_real(double x)
{
    enum { FEWEST = 15, MOST = 17 };
    char text[32];
    int digits = FEWEST;
    for (; digits < MOST; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    return (size_t)digits;
}

/* Return the maximum number of digits for any number in the value, 0 if it has none. */
static size_t digits_of(json_t *value)
{
    const char *key;
    json_t *part;
    size_t i, more, digits = json_is_real(value) ? digits_of_real(json_real_value(value)) : 0;
    json_array_foreach(value, i, part) digits = (more = digits_of(part)) > digits ? more : digits;
    json_object_foreach(value, key, part) digits =
        (more = digits_of(part)) > digits ? more : digits;
    return digits;
}

int json_write_file(const char *path, json_t *value, size_t flags)
{
    char *text = take_text(value, flags | JSON_REAL_PRECISION(digits_of(value)));
    if (!text)
        return fail(NJ_E_NOMEM, "%s: out of memory while writing it", path);
    FILE *f = fopen(path, "wbe");
    int rc = f ? 0 : refuse_write(path, errno);
    if (!f)
        free(text);
    else if (!put_text(f, text, ""))
        rc = refuse_write(path, errno);
    if (f && fclose(f) != 0 && rc == 0)
        rc = refuse_write(path, errno);
    if (f && rc != 0)
        unlink(path);
    return rc;
}

int json_write_line(FILE *f, const char *where, json_t *value, size_t flags)
{
    char *text = take_text(value, flags);
    if (!text)
        return fail(NJ_E_NOMEM, "%s: out of memory for a line", where);
    return put_text(f, text, "\n") ? 0 : refuse_write(where, errno);
}
