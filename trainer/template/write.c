/* SPDX-License-Identifier: Apache-2.0
 *
 * write.c: see write.h: str(), repr() and HTML.
 */
#include "template/write.h"

#include "base/utf8.h"
#include "io/error.h"
#include "template/letters.h"
#include "template/syntax.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int write_c(struct run *r, const char *text)
{
    return run_write(r, text, strlen(text));
}

static int write_whole(struct run *r, int64_t x)
{
    char text[32];
    return run_write(r, text, (size_t)snprintf(text, sizeof text, "%" PRId64, x));
}

/* Write the shortest digits that read back as the number: "d.ddde-x". */
static void shortest(double x, char out[40])
{
    for (int digits = 0; digits < 17; digits++) {
        snprintf(out, 40, "%.*e", digits, x);
        if (strtod(out, NULL) == x)
            return;
    }
}

int write_float(struct run *r, double x)
{
    char text[40], made[64];
    if (isnan(x) || isinf(x))
        return write_c(r, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    shortest(x, text);
    char *mark = strchr(text, 'e');
    const int exponent = (int)strtol(mark + 1, NULL, 10),
              digits = (int)(mark - text) - (text[0] == '-') - (strchr(text, '.') ? 1 : 0);
    if (exponent < -4 || exponent >= 16) {
        *mark = '\0';
        snprintf(made, sizeof made, "%se%c%02d", text, exponent < 0 ? '-' : '+', abs(exponent));
        return write_c(r, made);
    }
    const int decimals = digits - 1 - exponent;
    snprintf(made, sizeof made, "%.*f", decimals > 1 ? decimals : 1, x);
    return write_c(r, made);
}

/* ---- repr ---- */

static int write_escape(struct run *r, uint32_t cp)
{
    char text[16];
    const char *format = cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x";
    return run_write(r, text, (size_t)snprintf(text, sizeof text, format, (unsigned)cp));
}

static int write_letter(struct run *r, const char *text, size_t bytes, uint32_t cp, char quote)
{
    static const char from[] = "\n\r\t\\", to[] = "nrt\\";
    const char *simple = cp > 0 && cp < 0x80 ? strchr(from, (int)cp) : NULL;
    if (simple || cp == (unsigned char)quote) {
        const char two[] = {'\\', simple ? to[simple - from] : quote};
        return run_write(r, two, 2);
    }
    return letter_printable(cp) ? run_write(r, text, bytes) : write_escape(r, cp);
}

static int repr_text(struct run *r, const struct value *v)
{
    const bool single = v->bytes > 0 && memchr(v->text, '\'', v->bytes);
    const char quote = single && !memchr(v->text, '"', v->bytes) ? '"' : '\'';
    uint32_t cp;
    int rc = v->markup ? write_c(r, "Markup(") : 0;
    if (rc == 0)
        rc = run_write(r, &quote, 1);
    for (size_t at = 0, n; at < v->bytes && rc == 0; at += n) {
        n = utf8_next((const unsigned char *)v->text + at, v->bytes - at, &cp);
        rc = write_letter(r, v->text + at, n, cp, quote);
    }
    if (rc == 0)
        rc = run_write(r, &quote, 1);
    return rc != 0 || !v->markup ? rc : write_c(r, ")");
}

static int repr_items(struct run *r, const struct list *list, const char *begin, const char *end)
{
    TRY(write_c(r, begin));
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            TRY(write_c(r, ", "));
        TRY(write_repr(r, &list->at[i]));
    }
    return write_c(r, end);
}

static int repr_dict(struct run *r, const struct dict *d)
{
    TRY(write_c(r, "{"));
    for (size_t i = 0; i < d->count; i++) {
        if (i > 0)
            TRY(write_c(r, ", "));
        TRY(write_repr(r, &d->at[i].key));
        TRY(write_c(r, ": "));
        TRY(write_repr(r, &d->at[i].value));
    }
    return write_c(r, "}");
}

static int repr_other(struct run *r, const struct value *v)
{
    int rc;
    switch (v->kind) {
    case VALUE_NAMESPACE:
        rc = write_c(r, "<Namespace ");
        if (rc == 0)
            rc = repr_dict(r, v->dict);
        return rc != 0 ? rc : write_c(r, ">");
    case VALUE_MACRO:
        rc = write_c(r, "<Macro ");
        if (rc == 0 && v->macro->node->name) {
            const struct value name = value_c_text(v->macro->node->name);
            rc = repr_text(r, &name);
        } else if (rc == 0) {
            rc = write_c(r, "anonymous");
        }
        return rc != 0 ? rc : write_c(r, ">");
    default:
        return run_type_error(r, "it cannot be written; `| list` makes a list of a generator", v);
    }
}

static int repr_nested(struct run *r, const struct value *v)
{
    int rc = run_enter(r);
    if (rc != 0)
        return rc;
    if (v->kind == VALUE_LIST)
        rc = repr_items(r, v->list, "[", "]");
    else if (v->kind == VALUE_TUPLE)
        rc = repr_items(r, v->list, "(", v->list->count == 1 ? ",)" : ")");
    else if (v->kind == VALUE_DICT)
        rc = repr_dict(r, v->dict);
    else
        rc = repr_other(r, v);
    run_leave(r);
    return rc;
}

int write_repr(struct run *r, const struct value *v)
{
    switch (v->kind) {
    case VALUE_UNDEFINED:
    case VALUE_ABSENT:
        return write_c(r, "Undefined");
    case VALUE_NONE:
        return write_c(r, "None");
    case VALUE_BOOL:
        return write_c(r, v->whole ? "True" : "False");
    case VALUE_INT:
        return write_whole(r, v->whole);
    case VALUE_FLOAT:
        return write_float(r, v->real);
    case VALUE_STRING:
        return repr_text(r, v);
    default:
        return repr_nested(r, v);
    }
}

/* ---- str ---- */

int write_str(struct run *r, const struct value *v)
{
    if (v->kind == VALUE_STRING)
        return run_write(r, v->text, v->bytes);
    return v->kind == VALUE_UNDEFINED ? 0 : write_repr(r, v);
}

int value_str(struct run *r, const struct value *v, struct value *out)
{
    if (v->kind == VALUE_STRING) {
        *out = value_text(v->text, v->bytes);
        return 0;
    }
    const size_t from = run_capture(r);
    return run_captured(r, from, write_str(r, v), out);
}

int value_escape(struct run *r, const struct value *v, struct value *out)
{
    static const struct {
        char mark;
        const char *name;
    } marks[] = {{'&', "&amp;"}, {'>', "&gt;"}, {'<', "&lt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
    struct value text = *v;
    int rc = v->kind == VALUE_STRING && v->markup ? 0 : value_str(r, v, &text);
    const size_t from = run_capture(r);
    for (size_t i = 0; i < text.bytes && rc == 0; i++) {
        size_t k = text.markup ? 5 : 0;
        while (k < 5 && marks[k].mark != text.text[i])
            k++;
        rc = k < 5 ? write_c(r, marks[k].name) : run_write(r, text.text + i, 1);
    }
    rc = run_captured(r, from, rc, out);
    out->markup = true;
    return rc;
}
