/* SPDX-License-Identifier: Apache-2.0
 *
 * jsonl_lines.c: the lines of a file of JSON objects, and the parts of text that they are made into, encoded some at a
 * time.
 */
#include "data/jsonl.h"

#include "io/error.h"
#include "io/json_text.h"
#include "text/bpe.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_BYTES = 1 << 22, LINE_BYTES_MOST = 1 << 28 };

/* ---- lines ---- */

/* What Python reads and Jansson refuses: a number that is too large, in whose place true comes, which no field that
 * counts may be; half of a surrogate pair, in whose place U+FFFD comes. Lengths stay. */
static bool mend_number(char *text, size_t bytes)
{
    errno = 0;
    const bool whole = strspn(text, "+-0123456789") >= bytes;
    const double value = strtod(text, NULL);
    if (whole)
        (void)strtoll(text, NULL, 10);
    if (whole ? errno != ERANGE : fabs(value) <= DBL_MAX)
        return false;
    memset(text, ' ', bytes);
    memcpy(text, "true", 4); /* such a number is longer */
    return true;
}

/* The value of \uXXXX, or -1. */
static long escaped(const char *text)
{
    char digits[5] = "", *end;
    if (text[0] != '\\' || text[1] != 'u')
        return -1;
    strncpy(digits, text + 2, 4);
    const long value = strtol(digits, &end, 16);
    return end == digits + 4 && isxdigit((unsigned char)digits[0]) ? value : -1;
}

/* text: at a backslash within a string. Returns how many bytes belong together. */
static size_t mend_escape(char *text)
{
    const long first = escaped(text);
    const bool high = first >= 0xd800 && first < 0xdc00;
    const long second = high ? escaped(text + 6) : -1;
    if (second >= 0xdc00 && second < 0xe000)
        return 12;
    if (first >= 0xd800 && first < 0xe000)
        memcpy(text + 2, "fffd", 4);
    return text[1] == '\0' ? 1 : 2;
}

/* Returns whether a number was mended. */
static bool mend(char *line)
{
    bool string = false, numbers = false;
    for (size_t i = 0; line[i] != '\0';) {
        const size_t number = string ? 0 : strspn(line + i, "0123456789+-.eE");
        if (number > 0)
            numbers = mend_number(line + i, number) || numbers;
        string = string != (line[i] == '"');
        i += number > 0 ? number : string && line[i] == '\\' ? mend_escape(line + i) : 1;
    }
    return numbers;
}

/* A line that Jansson refuses is mended and read again. */
static json_t *read_object(const char *line, size_t bytes, json_error_t *error, bool *mended)
{
    json_t *object = json_loadb(line, bytes, JSON_ALLOW_NUL, error);
    char *copy = object ? NULL : malloc(bytes + 1);
    *mended = false;
    if (!copy)
        return object;
    memcpy(copy, line, bytes);
    copy[bytes] = '\0';
    *mended = mend(copy);
    object = json_loadb(copy, bytes, JSON_ALLOW_NUL, error);
    free(copy);
    return object;
}

static int add_line(struct reader *r, const char *line, size_t bytes)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of byte order, which Windows puts before a text */
    const size_t marked = r->line == 1 && bytes >= 3 && memcmp(line, mark, 3) == 0 ? 3 : 0;
    size_t blank = marked;
    while (blank < bytes && memchr(" \t\r", line[blank], 3))
        blank++;
    if (blank == bytes)
        return NJ_OK;
    json_error_t error;
    json_memory_limit(2 * bytes); /* it may be read twice */
    json_t *object = read_object(line + marked, bytes - marked, &error, &r->mended);
    int rc = NJ_OK;
    if (json_memory_end())
        rc = json_memory_spent()
                 ? jsonl_bad_line(r, "parsing it needs too much memory for its length; make "
                                     "several documents of it")
                 : jsonl_no_memory(r);
    else if (!object)
        rc = fail(NJ_E_FORMAT, "%s:%ld: column %d: %s; %s", r->segment->path, r->line, error.column,
                  error.text,
                  json_error_code(&error) == json_error_invalid_utf8
                      ? "not UTF-8; convert it with iconv"
                      : "each line must be one JSON object");
    else
        rc = r->object(r, object);
    json_decref(object);
    return rc;
}

/* ---- encoding ---- */

/* Encodes the parts read so far and forgets them. */
static int flush(struct reader *r)
{
    if (r->parts == 0)
        return NJ_OK;
    struct span *spans = calloc(r->parts, sizeof *spans);
    if (!spans)
        return jsonl_no_memory(r);
    for (size_t i = 0; i < r->parts; i++) {
        spans[i].text = r->text ? r->text + r->part[i].begin : ""; /* no part has a byte */
        spans[i].bytes = r->part[i].end - r->part[i].begin;
    }
    int rc = tokenizer_encode_spans(r->tokenizer, spans, r->parts);
    if (rc)
        rc = fail(rc, "%s: up to line %ld: %s", r->segment->path, r->line, fail_text());
    for (size_t i = 0; i < r->parts; i++) {
        if (!rc)
            rc = r->store(r, &r->part[i], &spans[i]);
        free(spans[i].ids);
    }
    free(spans);
    r->parts = r->bytes = r->spans.count = 0;
    const size_t read = r->segment->file.at - r->segment->file.have;
    if (!rc && r->tokenizer->encoded)
        r->tokenizer->encoded(r->tokenizer->user, read - r->told);
    r->told = read;
    return rc;
}

/* The next line of the file, without its end; f->have is 0 if there is none. */
static int next_line(const struct reader *r, struct data_file *f, size_t *bytes)
{
    const char *end = NULL;
    int rc = f->have > 0 ? NJ_OK : data_file_fill(f, BATCH_BYTES);
    while (!rc && f->have > 0) {
        end = memchr(f->text, '\n', f->have);
        if (end || f->at == f->bytes || f->have > LINE_BYTES_MOST)
            break;
        rc = data_file_fill(f, f->have + (f->have > BATCH_BYTES ? f->have : BATCH_BYTES));
    }
    *bytes = end ? (size_t)(end - f->text) : f->have;
    if (!rc && *bytes > LINE_BYTES_MOST)
        rc =
            fail(NJ_E_FORMAT,
                 "%s:%ld: longer than the limit of %d MiB for a line; make several documents of it",
                 r->segment->path, r->line + 1, LINE_BYTES_MOST >> 20);
    return rc;
}

int jsonl_read(struct reader *r)
{
    struct data_file *f = &r->segment->file;
    size_t bytes;
    int rc = next_line(r, f, &bytes);
    while (!rc && f->have > 0) {
        r->line++;
        rc = add_line(r, f->text, bytes);
        data_file_skip(f, bytes + (bytes < f->have));
        if (!rc && r->bytes >= BATCH_BYTES)
            rc = flush(r);
        if (!rc)
            rc = next_line(r, f, &bytes);
    }
    if (!rc)
        rc = flush(r);
    free(r->text);
    free(r->part);
    jsonl_free_chat(r);
    return rc;
}

int jsonl_read_file(struct reader *r, char *path)
{
    struct segment s = {.path = path};
    int rc = data_file_open(&s.file, path);
    r->segment = &s;
    if (!rc)
        rc = jsonl_read(r);
    data_file_close(&s.file);
    r->segment = NULL;
    return rc;
}

int jsonl_read_id(struct reader *r, const json_t *object, struct pool *to, struct stretch *out)
{
    const json_t *id = json_object_get(object, "id");
    if (!id || json_is_null(id))
        return NJ_OK;
    if (!json_is_string(id) && !json_is_number(id))
        return jsonl_bad_line(r, "id must be a string, or a number of at most 64 bits; write "
                                 "others as strings");
    char *text = json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT);
    const bool added = text && pool_add_text(to, text, strlen(text), out);
    free(text);
    return added ? NJ_OK : jsonl_no_memory(r);
}
