/* SPDX-License-Identifier: Apache-2.0
 *
 * percent.c: `text % arguments`, formatted as in Python.
 */
#include "template/builtins.h"

#include "io/error.h"
#include "template/letters.h"
#include "template/write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH_MOST = 1000 };

struct conversion {
    char flags[8];
    int width, precision; /* width and precision; -1: none */
    char kind;
};

struct formatting {
    struct run *run;
    const struct value *arguments;
    size_t next; /* index of the next argument */
};

static int next_argument(struct formatting *f, const struct value *key, struct value *out)
{
    const struct value *a = f->arguments;
    if (key->kind == VALUE_STRING && a->kind != VALUE_DICT)
        return run_type_error(f->run, "a format with names needs a dict", a);
    if (key->kind == VALUE_STRING) {
        const struct value *found = dict_find(f->run, a->dict, key);
        if (!found)
            return run_fail(f->run, "a format names a key that is not there");
        *out = *found;
        return 0;
    }
    const size_t count = a->kind == VALUE_TUPLE ? a->list->count : 1;
    if (f->next == count)
        return run_fail(f->run, "a format has more places than arguments");
    *out = a->kind == VALUE_TUPLE ? a->list->at[f->next] : *a;
    f->next++;
    return 0;
}

/* Write blanks that pad a text with this many letters to its width. */
static int pad(struct run *r, const struct conversion *c, size_t letters)
{
    for (size_t i = letters; c->width > 0 && i < (size_t)c->width; i++)
        TRY(run_write(r, " ", 1));
    return 0;
}

static int put_text(struct run *r, const struct conversion *c, const struct value *v)
{
    size_t bytes = v->bytes;
    if (c->precision >= 0)
        bytes = letters_offset(v->text, bytes, (size_t)c->precision);
    const size_t letters = letters_count(v->text, bytes);
    int rc = strchr(c->flags, '-') ? 0 : pad(r, c, letters);
    if (rc == 0)
        rc = run_write(r, v->text, bytes);
    return rc != 0 || !strchr(c->flags, '-') ? rc : pad(r, c, letters);
}

static int put_number(struct run *r, const struct conversion *c, const struct value *v)
{
    char format[32], text[2 * WIDTH_MOST];
    const bool real = strchr("eEfFgG", c->kind) != NULL;
    if (!value_is_number(v) || (!real && v->kind == VALUE_FLOAT && c->kind != 'd'))
        return run_type_error(r, "a format wants a number", v);
    if (!real && v->kind == VALUE_FLOAT && !(v->real > -9e18 && v->real < 9e18))
        return run_fail(r, "a whole number has more than 64 bits");
    snprintf(format, sizeof format, real ? "%%%s*.*%c" : "%%%s*.*" PRId64, c->flags, c->kind);
    if (!real)
        format[strlen(format) - 1] = c->kind;
    const int width = c->width > 0 ? c->width : 0, precision = c->precision;
    const int64_t whole = v->kind == VALUE_FLOAT ? (int64_t)v->real : v->whole;
    const int n = real ? snprintf(text, sizeof text, format, width, precision, value_real(v))
                       : snprintf(text, sizeof text, format, width, precision, whole);
    return n < (int)sizeof text ? run_write(r, text, (size_t)n)
                                : run_fail(r, "a formatted number is too long");
}

static int convert(struct formatting *f, const struct conversion *c, const struct value *v)
{
    struct value text;
    struct run *r = f->run;
    int rc;
    switch (c->kind) {
    case 's':
        rc = value_str(r, v, &text);
        return rc != 0 ? rc : put_text(r, c, &text);
    case 'r': {
        const size_t from = run_capture(r);
        rc = run_captured(r, from, write_repr(r, v), &text);
        return rc != 0 ? rc : put_text(r, c, &text);
    }
    case 'd':
    case 'x':
    case 'X':
    case 'o':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        return put_number(r, c, v);
    default:
        return run_fail(r, "%%%c in a format is not supported", c->kind);
    }
}

/* Read a number up to the limit, or a `*`, which is not supported. */
static const char *read_width(const char *at, const char *end, int *out)
{
    for (*out = 0; at < end && *at >= '0' && *at <= '9'; at++)
        *out = *out > WIDTH_MOST ? *out : *out * 10 + (*at - '0');
    return at;
}

/* Read the part between % and its letter; return that letter's position. */
static const char *read_conversion(const char *at, const char *end, struct conversion *out)
{
    size_t n = 0;
    *out = (struct conversion){.width = -1, .precision = -1};
    for (; at < end && *at && strchr("-+ #0", *at); at++)
        if (n < 5 && !strchr(out->flags, *at))
            out->flags[n++] = *at;
    at = read_width(at, end, &out->width);
    if (at < end && *at == '.')
        at = read_width(at + 1, end, &out->precision);
    while (at < end && *at && strchr("hlL", *at))
        at++;
    out->kind = at < end ? *at : '\0';
    if (out->kind == 'i' || out->kind == 'u')
        out->kind = 'd';
    return at;
}

/* Write one conversion of the format, after its %. */
static int put_place(struct formatting *f, const char **at, const char *end)
{
    struct conversion c;
    struct value key = {0}, v;
    if (*at < end && **at == '(') {
        const char *close = memchr(*at, ')', (size_t)(end - *at));
        if (!close)
            return run_fail(f->run, "a key in a format has no end");
        key = value_text(*at + 1, (size_t)(close - *at) - 1);
        *at = close + 1;
    }
    *at = read_conversion(*at, end, &c);
    if (*at == end || c.width > WIDTH_MOST || c.precision > WIDTH_MOST)
        return run_fail(f->run, "a format is incomplete or too wide");
    ++*at;
    if (c.kind == '%')
        return run_write(f->run, "%", 1);
    TRY(next_argument(f, &key, &v));
    return convert(f, &c, &v);
}

int format_percent(struct run *r, const struct value *text, const struct value *arguments,
                   struct value *out)
{
    struct formatting f = {.run = r, .arguments = arguments};
    const char *at = text->text, *end = at + text->bytes;
    const size_t from = run_capture(r);
    int rc = 0;
    while (at < end && rc == 0) {
        const char *place = memchr(at, '%', (size_t)(end - at));
        rc = run_write(r, at, (size_t)((place ? place : end) - at));
        at = place ? place + 1 : end;
        if (rc == 0 && place)
            rc = put_place(&f, &at, end);
    }
    const bool left =
        arguments->kind == VALUE_TUPLE
            ? f.next < arguments->list->count
            : f.next == 0 && arguments->kind != VALUE_DICT && arguments->kind != VALUE_LIST;
    if (rc == 0 && left)
        rc = run_fail(r, "a format has fewer places than arguments");
    rc = run_captured(r, from, rc, out);
    out->markup = text->markup;
    return rc;
}
