/* SPDX-License-Identifier: Apache-2.0
 *
 * methods_split.c: methods of Python's strings that split them.
 */
#include "template/builtins.h"

#include "base/utf8.h"
#include "io/error.h"
#include "template/letters.h"
#include "template/spaces.h"

#define SELF (&a->at[0])

static int add(struct run *r, struct list *list, const char *text, size_t bytes)
{
    return list_add(r, list, value_text(text, bytes));
}

/* Return the last occurrence of the part; NULL: there is none. */
static const char *last_of(const char *text, size_t bytes, const struct value *part)
{
    for (size_t at = bytes - (part->bytes > bytes ? bytes : part->bytes) + 1; at-- > 0;)
        if (part->bytes <= bytes && memcmp(text + at, part->text, part->bytes) == 0)
            return text + at;
    return NULL;
}

static int split_by(struct run *r, const struct value *text, const struct value *by, int64_t most,
                    struct list *list)
{
    const char *at = text->text, *end = at + text->bytes;
    int rc = 0;
    for (const char *next; rc == 0 && most != 0 && at < end &&
                           (next = memmem(at, (size_t)(end - at), by->text, by->bytes));
         most--) {
        rc = add(r, list, at, (size_t)(next - at));
        at = next + by->bytes;
    }
    return rc != 0 ? rc : add(r, list, at, (size_t)(end - at));
}

static void reverse(struct list *list)
{
    for (size_t i = 0, k = list->count; i + 1 < k; i++) {
        const struct value last = list->at[--k];
        list->at[k] = list->at[i];
        list->at[i] = last;
    }
}

static int rsplit_by(struct run *r, const struct value *text, const struct value *by, int64_t most,
                     struct list *list)
{
    size_t bytes = text->bytes;
    int rc = 0;
    for (const char *next; rc == 0 && most != 0 && (next = last_of(text->text, bytes, by));
         most--) {
        const char *behind = next + by->bytes;
        rc = add(r, list, behind, (size_t)(text->text + bytes - behind));
        bytes = (size_t)(next - text->text);
    }
    if (rc == 0)
        rc = add(r, list, text->text, bytes);
    reverse(list);
    return rc;
}

/* Return the number of bytes before the next white space. */
static size_t word(const char *text, size_t bytes)
{
    uint32_t cp;
    size_t at = 0;
    while (at < bytes) {
        const size_t n = utf8_next((const unsigned char *)text + at, bytes - at, &cp);
        if (is_white(cp))
            break;
        at += n;
    }
    return at;
}

static int split_words(struct run *r, const struct value *text, int64_t most, struct list *list)
{
    const char *at = text->text;
    size_t left = text->bytes;
    int rc = 0;
    for (; rc == 0; most--) {
        const size_t white = text_white(at, left);
        at += white;
        left -= white;
        if (left == 0 || most == 0)
            break;
        const size_t n = word(at, left);
        rc = add(r, list, at, n);
        at += n;
        left -= n;
    }
    return rc != 0 || left == 0 ? rc : add(r, list, at, left);
}

static int rsplit_words(struct run *r, const struct value *text, int64_t most, struct list *list)
{
    size_t left = text->bytes;
    int rc = 0;
    for (; rc == 0; most--) {
        left = text_rstrip(text->text, left);
        if (left == 0 || most == 0)
            break;
        size_t begin = left;
        while (begin > 0 && text_rstrip(text->text, begin) == begin)
            do
                begin--;
            while (begin > 0 && inside_letter(text->text[begin]));
        rc = add(r, list, text->text + begin, left - begin);
        left = begin;
    }
    if (rc == 0 && left > 0)
        rc = add(r, list, text->text, left);
    reverse(list);
    return rc;
}

static int split_at(struct run *r, const struct arguments *a, bool right, struct value *out)
{
    const struct value *by = &a->at[1];
    struct list *list;
    int64_t most;
    const bool words = by->kind == VALUE_ABSENT || by->kind == VALUE_NONE;
    TRY(argument_whole(r, &a->at[2], "maxsplit must be a whole number", -1, &most));
    if (!words)
        TRY(argument_text(r, by, "a separator must be a string"));
    if (!words && by->bytes == 0)
        return run_fail(r, "the separator of split() is empty");
    TRY(list_make(r, 0, &list));
    TRY(run_spend(r, SELF->bytes * (right && !words ? 1 + by->bytes / 64 : 1)));
    *out = value_list(VALUE_LIST, list);
    if (words)
        return right ? rsplit_words(r, SELF, most, list) : split_words(r, SELF, most, list);
    return right ? rsplit_by(r, SELF, by, most, list) : split_by(r, SELF, by, most, list);
}

static int split(struct run *r, const struct arguments *a, struct value *out)
{
    return split_at(r, a, false, out);
}
static int rsplit(struct run *r, const struct arguments *a, struct value *out)
{
    return split_at(r, a, true, out);
}

/* Return the number of bytes of a line end; 0: there is none. */
static size_t line_end(const char *text, size_t bytes)
{
    uint32_t cp;
    const size_t n = utf8_next((const unsigned char *)text, bytes, &cp);
    if (cp == '\r' && bytes > 1 && text[1] == '\n')
        return 2;
    return (cp >= 0x0a && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 ||
                   cp == 0x2029
               ? n
               : 0;
}

static int splitlines(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *list;
    const bool keep = argument_truth(&a->at[1], false);
    int rc = list_make(r, 0, &list);
    if (rc == 0)
        rc = run_spend(r, SELF->bytes);
    size_t begin = 0;
    for (size_t at = 0; at < SELF->bytes && rc == 0;) {
        const size_t end = line_end(SELF->text + at, SELF->bytes - at);
        if (end > 0) {
            rc = add(r, list, SELF->text + begin, at - begin + (keep ? end : 0));
            begin = at + end;
        }
        at += end ? end : letters_offset(SELF->text + at, SELF->bytes - at, 1);
    }
    if (rc == 0 && begin < SELF->bytes)
        rc = add(r, list, SELF->text + begin, SELF->bytes - begin);
    *out = value_list(VALUE_LIST, list);
    return rc;
}

static int partition_at(struct run *r, const struct arguments *a, bool right, struct value *out)
{
    const struct value *by = &a->at[1];
    struct list *list;
    TRY(argument_text(r, by, "a separator must be a string"));
    if (by->bytes == 0)
        return run_fail(r, "the separator of partition() is empty");
    TRY(list_make(r, 3, &list));
    TRY(run_spend(r, SELF->bytes * (right ? 1 + by->bytes / 64 : 1)));
    const char *end = SELF->text + SELF->bytes;
    const char *at = right ? last_of(SELF->text, SELF->bytes, by)
                           : memmem(SELF->text, SELF->bytes, by->text, by->bytes);
    const struct value empty = value_text("", 0);
    if (at) {
        list->at[0] = value_text(SELF->text, (size_t)(at - SELF->text));
        list->at[1] = *by;
        list->at[2] = value_text(at + by->bytes, (size_t)(end - at) - by->bytes);
    } else {
        list->at[0] = right ? empty : *SELF;
        list->at[1] = empty;
        list->at[2] = right ? *SELF : empty;
    }
    list->count = 3;
    *out = value_list(VALUE_TUPLE, list);
    return 0;
}

static int partition(struct run *r, const struct arguments *a, struct value *out)
{
    return partition_at(r, a, false, out);
}
static int rpartition(struct run *r, const struct arguments *a, struct value *out)
{
    return partition_at(r, a, true, out);
}

static const struct builtin methods[] = {
    {"split", split, "self sep maxsplit", 1},       {"rsplit", rsplit, "self sep maxsplit", 1},
    {"splitlines", splitlines, "self keepends", 1}, {"partition", partition, "self sep", 2},
    {"rpartition", rpartition, "self sep", 2},
};

const struct builtin *methods_split(size_t *count)
{
    *count = sizeof methods / sizeof *methods;
    return methods;
}
