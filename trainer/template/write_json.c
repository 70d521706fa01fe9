/* SPDX-License-Identifier: Apache-2.0
 *
 * write_json.c: see write.h: JSON as json.dumps() of Python writes it.
 */
#include "template/write.h"

#include "base/utf8.h"
#include "io/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int write_value(struct run *r, const struct json_style *s, const struct value *v,
                       size_t level);

static int write_text(struct run *r, const struct value *text)
{
    return run_write(r, text->text, text->bytes);
}

static int write_unit(struct run *r, uint32_t unit)
{
    char text[8];
    return run_write(r, text, (size_t)snprintf(text, sizeof text, "\\u%04x", (unsigned)unit));
}

static int write_letter(struct run *r, const struct json_style *s, const char *text, size_t bytes,
                        uint32_t cp)
{
    static const char from[] = "\n\r\t\f\b\\\"", to[] = "nrtfb\\\"";
    const char *simple = cp > 0 && cp < 0x80 ? strchr(from, (int)cp) : NULL;
    if (simple) {
        const char two[] = {'\\', to[simple - from]};
        return run_write(r, two, 2);
    }
    if (cp >= ' ' && (cp < 0x7f || !s->ascii))
        return run_write(r, text, bytes);
    if (cp < 0x10000)
        return write_unit(r, cp);
    TRY(write_unit(r, 0xd800 + ((cp - 0x10000) >> 10)));
    return write_unit(r, 0xdc00 + ((cp - 0x10000) & 0x3ff));
}

/* Return whether this byte of UTF-8 needs no escape. */
static bool is_plain(const struct json_style *s, unsigned char c)
{
    return c >= ' ' && c != '"' && c != '\\' && (c < 0x7f || !s->ascii);
}

static int write_string(struct run *r, const struct json_style *s, const struct value *v)
{
    uint32_t cp;
    int rc = run_write(r, "\"", 1);
    for (size_t at = 0, n; at < v->bytes && rc == 0; at += n) {
        size_t plain = at; /* most of a text is written unchanged */
        while (plain < v->bytes && is_plain(s, (unsigned char)v->text[plain]))
            plain++;
        n = plain - at;
        if (n > 0) {
            rc = run_write(r, v->text + at, n);
            continue;
        }
        n = utf8_next((const unsigned char *)v->text + at, v->bytes - at, &cp);
        rc = write_letter(r, s, v->text + at, n, cp);
    }
    return rc != 0 ? rc : run_write(r, "\"", 1);
}

static int write_number(struct run *r, const struct value *v)
{
    if (v->kind != VALUE_FLOAT)
        return write_repr(r, v);
    if (isnan(v->real))
        return run_write(r, "NaN", 3);
    if (isinf(v->real))
        return v->real > 0 ? run_write(r, "Infinity", 8) : run_write(r, "-Infinity", 9);
    return write_float(r, v->real);
}

/* Write the separator before an item, or before the closing bracket. */
static int write_break(struct run *r, const struct json_style *s, size_t level, bool comma)
{
    if (comma)
        TRY(write_text(r, &s->between));
    if (s->lines)
        TRY(run_write(r, "\n", 1));
    for (size_t i = 0; s->lines && i < level; i++)
        TRY(write_text(r, &s->indent));
    return 0;
}

static int write_list(struct run *r, const struct json_style *s, const struct list *list,
                      size_t level)
{
    if (list->count == 0)
        return run_write(r, "[]", 2);
    TRY(run_write(r, "[", 1));
    for (size_t i = 0; i < list->count; i++) {
        TRY(write_break(r, s, level + 1, i > 0));
        TRY(write_value(r, s, &list->at[i], level + 1));
    }
    TRY(write_break(r, s, level, false));
    return run_write(r, "]", 1);
}

static int write_key(struct run *r, const struct json_style *s, const struct value *key)
{
    if (key->kind == VALUE_STRING)
        return write_string(r, s, key);
    if (key->kind != VALUE_NONE && !value_is_number(key))
        return run_type_error(r, "it cannot be a key of JSON", key);
    TRY(run_write(r, "\"", 1));
    TRY(write_value(r, s, key, 0));
    return run_write(r, "\"", 1);
}

/* Sort the pairs by their keys, by inserting each among those before it. */
static int sort_pairs(struct run *r, const struct dict *d, struct dict *out)
{
    int rc = 0, order;
    *out = (struct dict){.at = arena_take(&r->arena, d->count * sizeof *d->at)};
    if (!out->at)
        return run_no_memory(r);
    for (size_t i = 0; i < d->count && rc == 0; i++) {
        size_t at = out->count++;
        for (; at > 0; at--) {
            rc = value_order(r, &out->at[at - 1].key, &d->at[i].key, &order);
            if (rc != 0 || order <= 0)
                break;
            out->at[at] = out->at[at - 1];
        }
        out->at[at] = d->at[i];
    }
    return rc;
}

static int write_dict(struct run *r, const struct json_style *s, const struct dict *d, size_t level)
{
    struct dict sorted = *d;
    if (d->count == 0)
        return run_write(r, "{}", 2);
    if (s->sorted)
        TRY(sort_pairs(r, d, &sorted));
    TRY(run_write(r, "{", 1));
    for (size_t i = 0; i < d->count; i++) {
        TRY(write_break(r, s, level + 1, i > 0));
        TRY(write_key(r, s, &sorted.at[i].key));
        TRY(write_text(r, &s->colon));
        TRY(write_value(r, s, &sorted.at[i].value, level + 1));
    }
    TRY(write_break(r, s, level, false));
    return run_write(r, "}", 1);
}

static int write_nested(struct run *r, const struct json_style *s, const struct value *v,
                        size_t level)
{
    TRY(run_enter(r));
    const int rc =
        v->kind == VALUE_DICT ? write_dict(r, s, v->dict, level) : write_list(r, s, v->list, level);
    run_leave(r);
    return rc;
}

static int write_value(struct run *r, const struct json_style *s, const struct value *v,
                       size_t level)
{
    switch (v->kind) {
    case VALUE_NONE:
        return run_write(r, "null", 4);
    case VALUE_BOOL:
        return v->whole ? run_write(r, "true", 4) : run_write(r, "false", 5);
    case VALUE_INT:
    case VALUE_FLOAT:
        return write_number(r, v);
    case VALUE_STRING:
        return write_string(r, s, v);
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
        return write_nested(r, s, v, level);
    default:
        return run_type_error(r, "it cannot be written as JSON", v);
    }
}

int write_json(struct run *r, const struct json_style *style, const struct value *v)
{
    return write_value(r, style, v, 0);
}
