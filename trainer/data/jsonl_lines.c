/* SPDX-License-Identifier: Apache-2.0
 *
 * jsonl_lines.c: the lines of a file of JSON objects, the refusal of one, and the parts that one becomes.
 */
#include "data/jsonl.h"

#include "base/grow.h"
#include "io/error.h"
#include "io/json_text.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_BYTES = 1 << 22, LINE_BYTES_MOST = 1 << 28 };

/* ---- refusals ---- */

int jsonl_bad_line(const struct reader *r, const char *what)
{
    return fail(NJ_E_FORMAT, "%s:%ld: %s", r->segment->path, r->line, what);
}

int jsonl_no_memory(const struct reader *r)
{
    return fail(NJ_E_NOMEM, "%s:%ld: out of memory", r->segment->path, r->line);
}

/* ---- parts ---- */

int jsonl_add_text(struct reader *r, const char *text, size_t bytes)
{
    if (!GROW(r->text, r->capacity, r->bytes + bytes))
        return jsonl_no_memory(r);
    if (bytes > 0)
        memcpy(r->text + r->bytes, text, bytes);
    r->bytes += bytes;
    return 0;
}

int jsonl_add_part(struct reader *r, size_t begin, bool loss)
{
    if (!GROW(r->part, r->part_capacity, r->parts + 1))
        return jsonl_no_memory(r);
    const struct row_rules *rules = r->segment->rules;
    loss = loss || (rules && rules->train_on_prompts);
    r->part[r->parts++] = (struct part){.begin = begin, .end = r->bytes, .loss = loss};
    return 0;
}

int jsonl_add_value(struct reader *r, const json_t *value, bool loss)
{
    const size_t begin = r->bytes;
    TRY(jsonl_add_text(r, json_string_value(value), json_string_length(value)));
    return jsonl_add_part(r, begin, loss);
}

/* ---- lines ---- */

/* Mend a number that Python reads and Jansson refuses, as it is too large: [0] replaces it, a value that no field that
 * counts may have. Lengths stay. */
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
    memcpy(text, "[0]", 3); /* such a number is longer */
    return true;
}

/* Return the value of \uXXXX, or -1. */
static long escaped(const char *text)
{
    char digits[5] = "", *end;
    if (text[0] != '\\' || text[1] != 'u')
        return -1;
    strncpy(digits, text + 2, 4);
    const long value = strtol(digits, &end, 16);
    return end == digits + 4 && isxdigit((unsigned char)digits[0]) ? value : -1;
}

/* Mend an escape, at a backslash within a string: U+FFFD replaces half of a surrogate pair. Return the number of bytes
 * that belong together. */
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

/* Mend a line and return whether a number was mended. */
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

/* Read a line as JSON; one that Jansson refuses is mended and read again. */
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

static int parse(struct reader *r, const char *line, size_t bytes, json_t **out)
{
    json_error_t error;
    json_memory_limit(2 * bytes); /* it may be read twice */
    *out = read_object(line, bytes, &error, &r->mended);
    r->row_fault = true;
    if (json_memory_end()) {
        json_decref(*out);
        *out = NULL;
        r->row_fault = json_memory_spent();
        return json_memory_spent()
                   ? jsonl_bad_line(r, "parsing it needs too much memory for its length; make "
                                       "several documents of it")
                   : jsonl_no_memory(r);
    }
    if (*out)
        return 0;
    return fail(NJ_E_FORMAT, "%s:%ld: column %d: %s; %s", r->segment->path, r->line, error.column,
                error.text,
                json_error_code(&error) == json_error_invalid_utf8
                    ? "not UTF-8; convert it with iconv"
                    : "each line must be one JSON object");
}

/* Return the number of bytes at the start of a line that say nothing: a byte order mark, which Windows puts before a
 * text (on any line, since one in the middle begins a file that was appended), then white space. */
static size_t blank_bytes(const char *line, size_t bytes)
{
    size_t n = bytes >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (n < bytes && memchr(" \t\r", line[n], 3))
        n++;
    return n;
}

/* Find the next line of the file, without its end; f->have is 0 if there is none. */
static int next_line(const struct reader *r, struct data_file *f, size_t *bytes)
{
    const char *end = NULL;
    int rc = f->have > 0 ? 0 : data_file_fill(f, BATCH_BYTES);
    while (rc == 0 && f->have > 0) {
        end = memchr(f->text, '\n', f->have);
        if (end || data_file_ended(f) || f->have > LINE_BYTES_MOST)
            break;
        rc = data_file_fill(f, f->have + (f->have > BATCH_BYTES ? f->have : BATCH_BYTES));
    }
    *bytes = end ? (size_t)(end - f->text) : f->have;
    if (rc == 0 && *bytes > LINE_BYTES_MOST)
        rc =
            fail(NJ_E_FORMAT,
                 "%s:%ld: longer than the limit of %d MiB for a line; make several documents of it",
                 r->segment->path, r->line + 1, LINE_BYTES_MOST >> 20);
    return rc;
}

int jsonl_next(struct reader *r, json_t **out)
{
    struct data_file *f = &r->segment->file;
    size_t bytes;
    *out = NULL;
    r->row_fault = false;
    int rc = next_line(r, f, &bytes);
    while (rc == 0 && f->have > 0 && !*out) {
        const size_t blank = blank_bytes(f->text, bytes);
        r->line++;
        if (blank < bytes)
            rc = parse(r, f->text + blank, bytes - blank, out);
        data_file_skip(f, bytes + (bytes < f->have));
        if (rc == 0 && !*out)
            rc = next_line(r, f, &bytes);
    }
    return rc;
}
