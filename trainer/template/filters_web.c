/* SPDX-License-Identifier: Apache-2.0
 *
 * filters_web.c: filters that write HTML, URLs and file sizes.
 */
#include "template/builtins.h"

#include "io/error.h"
#include "template/write.h"

#include <math.h>
#include <stdio.h>

#define SELF (&a->at[0])

/* ---- addresses ---- */

/* Write a text quoted for a URL; in its query, "/" is quoted, too, and a blank is "+". */
static int write_quoted(struct run *r, const struct value *v, bool query)
{
    static const char hex[] = "0123456789ABCDEF";
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~";
    struct value text;
    TRY(value_str(r, v, &text));
    for (size_t i = 0; i < text.bytes; i++) {
        const unsigned char c = (unsigned char)text.text[i];
        const char quoted[3] = {'%', hex[c >> 4], hex[c & 15]};
        const bool stays = (c != '\0' && strchr(plain, c)) || (c == '/' && !query);
        TRY(stays               ? run_write(r, text.text + i, 1)
            : c == ' ' && query ? run_write(r, "+", 1)
                                : run_write(r, quoted, sizeof quoted));
    }
    return 0;
}

static int write_query(struct run *r, const struct list *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        struct list *pair;
        TRY(value_items(r, &pairs->at[i], &pair));
        if (pair->count != 2)
            return run_fail(r, "urlencode needs pairs of a name and a value");
        if (i > 0)
            TRY(run_write(r, "&", 1));
        TRY(write_quoted(r, &pair->at[0], true));
        TRY(run_write(r, "=", 1));
        TRY(write_quoted(r, &pair->at[1], true));
    }
    return 0;
}

static int urlencode(struct run *r, const struct arguments *a, struct value *out)
{
    const bool one =
        SELF->kind == VALUE_STRING || SELF->kind == VALUE_NONE || value_is_number(SELF);
    struct value pairs = *SELF;
    struct list *list;
    int rc = 0;
    if (SELF->kind == VALUE_DICT) {
        size_t count;
        const struct builtin *table = methods_of(VALUE_DICT, &count);
        rc = builtin_among(table, count, "items", strlen("items"))->run(r, a, &pairs);
    }
    if (rc == 0 && !one)
        rc = value_items(r, &pairs, &list);
    const size_t from = run_capture(r);
    if (rc == 0)
        rc = one ? write_quoted(r, SELF, false) : write_query(r, list);
    return run_captured(r, from, rc, out);
}

/* ---- HTML ---- */

static int forceescape(struct run *r, const struct arguments *a, struct value *out)
{
    struct value text = *SELF;
    text.markup = false;
    return value_escape(r, &text, out);
}

static int write_attribute(struct run *r, const struct pair *p, bool first)
{
    struct value key, value;
    TRY(argument_text(r, &p->key, "the names of xmlattr must be strings"));
    for (size_t i = 0; i < p->key.bytes; i++)
        if (strchr(" \t\n\r\v\f/>=", p->key.text[i]) && p->key.text[i] != '\0')
            return run_fail(r, "a name of xmlattr has white space, /, > or = in it");
    TRY(value_escape(r, &p->key, &key));
    TRY(value_escape(r, &p->value, &value));
    if (!first)
        TRY(run_write(r, " ", 1));
    TRY(run_write(r, key.text, key.bytes));
    TRY(run_write(r, "=\"", 2));
    TRY(run_write(r, value.text, value.bytes));
    return run_write(r, "\"", 1);
}

static int xmlattr(struct run *r, const struct arguments *a, struct value *out)
{
    bool first = !argument_truth(&a->at[1], true);
    int rc = SELF->kind == VALUE_DICT ? 0 : run_type_error(r, "xmlattr needs a dict", SELF);
    const size_t from = run_capture(r);
    for (size_t i = 0; rc == 0 && i < SELF->dict->count; i++) {
        const struct pair *p = &SELF->dict->at[i];
        if (p->value.kind == VALUE_NONE || p->value.kind == VALUE_UNDEFINED)
            continue;
        rc = write_attribute(r, p, first);
        first = false;
    }
    return run_captured(r, from, rc, out);
}

/* ---- sizes ---- */

static int filesizeformat(struct run *r, const struct arguments *a, struct value *out)
{
    static const char names[] = "kMGTPEZY";
    const bool binary = argument_truth(&a->at[1], false);
    const double base = binary ? 1024 : 1000;
    char text[400];
    if (!value_is_number(SELF))
        return run_type_error(r, "filesizeformat needs a number", SELF);
    const double bytes = value_real(SELF);
    if (bytes == 1 || bytes < base) {
        snprintf(text, sizeof text, "%.0f Byte%s", trunc(bytes), bytes == 1 ? "" : "s");
        if (isinf(bytes))
            return run_fail(r, "filesizeformat needs a finite number");
    } else {
        size_t i = 0;
        double unit = base * base;
        for (; i + 1 < sizeof names - 1 && !(bytes < unit); i++)
            unit *= base;
        const char name = (char)(binary && i == 0 ? 'K' : names[i]);
        snprintf(text, sizeof text, "%.1f %c%sB", base * bytes / unit, name, binary ? "i" : "");
    }
    return text_make(r, text, strlen(text), out);
}

static const struct builtin filters[] = {
    {"filesizeformat", filesizeformat, "value binary", 1},
    {"forceescape", forceescape, "value", 1},
    {"urlencode", urlencode, "value", 1},
    {"xmlattr", xmlattr, "d autospace", 1},
};

const struct builtin *filters_web(size_t *count)
{
    *count = sizeof filters / sizeof *filters;
    return filters;
}
