/* SPDX-License-Identifier: Apache-2.0
 *
 * filters_text.c: filters of texts and numbers.
 */
#include "template/builtins.h"

#include "base/utf8.h"
#include "io/error.h"
#include "template/letters.h"
#include "template/spaces.h"
#include "template/syntax.h"
#include "template/write.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SELF (&a->at[0])

/* ---- methods of str() of the value ---- */

static int apply(struct run *r, const char *name, const struct arguments *a, struct value *out)
{
    size_t count;
    struct value slots[8] = {0};
    const struct builtin *table = methods_text(&count);
    const struct builtin *method = builtin_among(table, count, name, strlen(name));
    for (size_t i = 0; i < a->count; i++)
        slots[i] = a->at[i];
    if (SELF->kind != VALUE_STRING)
        TRY(value_str(r, SELF, &slots[0]));
    const struct arguments placed = {.at = slots, .count = a->count};
    return method->run(r, &placed, out);
}

static int lower(struct run *r, const struct arguments *a, struct value *out)
{
    return apply(r, "lower", a, out);
}
static int upper(struct run *r, const struct arguments *a, struct value *out)
{
    return apply(r, "upper", a, out);
}
static int capitalize(struct run *r, const struct arguments *a, struct value *out)
{
    return apply(r, "capitalize", a, out);
}
static int trim(struct run *r, const struct arguments *a, struct value *out)
{
    return apply(r, "strip", a, out);
}

static int center(struct run *r, const struct arguments *a, struct value *out)
{
    const struct value slots[] = {a->at[0], value_given(&a->at[1]) ? a->at[1] : value_int(80), {0}};
    const struct arguments placed = {.at = slots, .count = 3};
    return apply(r, "center", &placed, out);
}

static int replace(struct run *r, const struct arguments *a, struct value *out)
{
    struct value slots[4] = {a->at[0], a->at[1], a->at[2], a->at[3]};
    for (int i = 0; i < 3; i++)
        TRY(value_str(r, &a->at[i], &slots[i]));
    const struct arguments placed = {.at = slots, .count = 4};
    return apply(r, "replace", &placed, out);
}

static bool between_words(uint32_t cp)
{
    return is_white(cp) || (cp > 0 && cp < 0x80 && strchr("-({[<", (int)cp));
}

/* Return the bytes up to the end of the word. */
static size_t rest_of_word(const char *text, size_t bytes)
{
    uint32_t cp;
    size_t at = 0;
    while (at < bytes) {
        const size_t n = utf8_next((const unsigned char *)text + at, bytes - at, &cp);
        if (between_words(cp))
            break;
        at += n;
    }
    return at;
}

/* Capitalize each word; words are separated by blanks, dashes and opening brackets. */
static int title(struct run *r, const struct arguments *a, struct value *out)
{
    struct value text, piece, made;
    int rc = value_str(r, SELF, &text);
    const size_t from = run_capture(r);
    bool begins = true;
    for (size_t at = 0; rc == 0 && at < text.bytes; at += piece.bytes) {
        const size_t rest = begins ? 0 : rest_of_word(text.text + at, text.bytes - at);
        const size_t one = letters_offset(text.text + at, text.bytes - at, 1);
        piece = value_text(text.text + at, rest ? rest : one);
        rc = letters_case(r, begins ? CASE_UPPER : CASE_LOWER, &piece, &made);
        if (rc == 0)
            rc = run_write(r, made.text, made.bytes);
        begins = rest == 0 && rest_of_word(piece.text, piece.bytes) == 0;
    }
    return run_captured(r, from, rc, out);
}

/* ---- texts ---- */

static int string(struct run *r, const struct arguments *a, struct value *out)
{
    *out = *SELF;
    return SELF->kind == VALUE_STRING ? 0 : value_str(r, SELF, out);
}

static int escape(struct run *r, const struct arguments *a, struct value *out)
{
    return value_escape(r, SELF, out);
}

static int safe(struct run *r, const struct arguments *a, struct value *out)
{
    const int rc = value_str(r, SELF, out);
    out->markup = true;
    return rc;
}

static int format(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *list;
    struct dict *dict;
    struct value text, values;
    TRY(value_str(r, SELF, &text));
    if (a->count > 1 && a->named_count > 0)
        return run_fail(r, "format takes arguments by place or by name, not both");
    TRY(list_make(r, a->count, &list));
    for (size_t i = 1; i < a->count; i++)
        TRY(list_add(r, list, a->at[i]));
    TRY(dict_make(r, a->named_count, &dict));
    for (size_t i = 0; i < a->named_count; i++)
        TRY(dict_set(r, dict, &a->named[i].key, &a->named[i].value));
    values = a->named_count ? (struct value){.kind = VALUE_DICT, .dict = dict}
                            : value_list(VALUE_TUPLE, list);
    return format_percent(r, &text, &values, out);
}

static int wordcount(struct run *r, const struct arguments *a, struct value *out)
{
    struct value text;
    uint32_t cp;
    bool inside = false;
    int64_t words = 0;
    int rc = value_str(r, SELF, &text);
    for (size_t at = 0; rc == 0 && at < text.bytes;) {
        at += utf8_next((const unsigned char *)text.text + at, text.bytes - at, &cp);
        const bool letter = cp == '_' || letter_alpha(cp) || letter_numeric(cp);
        words += letter && !inside;
        inside = letter;
    }
    *out = value_int(words);
    return rc != 0 ? rc : run_spend(r, text.bytes);
}

/* Write the lines of a text with blanks before each but the first; before empty ones only if
 * `blank`. */
static int write_lines(struct run *r, const struct list *lines, const struct value *blanks,
                       bool first, bool blank)
{
    for (size_t i = 0; i < lines->count; i++) {
        const struct value *line = &lines->at[i];
        if (i > 0)
            TRY(run_write(r, "\n", 1));
        if (i == 0 ? first : blank || line->bytes > 0)
            TRY(run_write(r, blanks->text, blanks->bytes));
        TRY(run_write(r, line->text, line->bytes));
    }
    return 0;
}

static int indent(struct run *r, const struct arguments *a, struct value *out)
{
    size_t count;
    int64_t width;
    struct value text, lines, blanks = a->at[1];
    const struct builtin *split = methods_split(&count);
    const struct value end = value_text("\n", 1), blank = value_text(" ", 1);
    split = builtin_among(split, count, "splitlines", strlen("splitlines"));
    int rc = argument_text(r, SELF, "indent needs a string");
    if (rc == 0)
        rc = operate(r, OP_ADD, SELF, &end, &text);
    if (rc == 0 && blanks.kind != VALUE_STRING) {
        rc = argument_whole(r, &a->at[1], "the width of indent must be a whole number", 4, &width);
        const struct value times = value_int(width);
        if (rc == 0)
            rc = operate(r, OP_MUL, &blank, &times, &blanks);
    }
    const struct value slots[2] = {text, {0}};
    const struct arguments placed = {.at = slots, .count = 2};
    if (rc == 0)
        rc = split->run(r, &placed, &lines);
    const size_t from = run_capture(r);
    if (rc == 0)
        rc = write_lines(r, lines.list, &blanks, argument_truth(&a->at[2], false),
                         argument_truth(&a->at[3], false));
    return run_captured(r, from, rc, out);
}

static int truncate(struct run *r, const struct arguments *a, struct value *out)
{
    int64_t length, leeway;
    struct value text;
    const struct value end = value_given(&a->at[3]) ? a->at[3] : value_text("...", 3);
    TRY(value_str(r, SELF, &text));
    TRY(argument_whole(r, &a->at[1], "a length must be a whole number", 255, &length));
    TRY(argument_whole(r, &a->at[4], "leeway must be a whole number", 5, &leeway));
    TRY(argument_text(r, &end, "the end of truncate must be a string"));
    const int64_t kept = length - (int64_t)letters_count(end.text, end.bytes);
    if (kept < 0 || leeway < 0)
        return run_fail(r, "truncate: the length is shorter than the end, or leeway is below 0");
    *out = *SELF;
    if ((int64_t)letters_count(text.text, text.bytes) <= length + leeway)
        return 0;
    text.bytes = letters_offset(text.text, text.bytes, (size_t)kept);
    const char *blank =
        argument_truth(&a->at[2], false) ? NULL : memrchr(text.text, ' ', text.bytes);
    if (blank)
        text.bytes = (size_t)(blank - text.text);
    return operate(r, OP_ADD, &text, &end, out);
}

/* ---- JSON ---- */

/* Read `indent`, which puts each item on a line of its own. */
static int json_indent(struct run *r, const struct value *v, struct json_style *s)
{
    const struct value blank = value_text(" ", 1);
    s->lines = value_given(v) && v->kind != VALUE_NONE;
    s->indent = value_text("", 0);
    if (!s->lines)
        return 0;
    if (v->kind == VALUE_STRING) {
        s->indent = *v;
        return 0;
    }
    if (!value_is_whole(v))
        return run_type_error(r, "indent must be a whole number or a string", v);
    return operate(r, OP_MUL, &blank, v, &s->indent);
}

static int json_separators(struct run *r, const struct value *v, struct json_style *s)
{
    s->between = s->lines ? value_text(",", 1) : value_text(", ", 2);
    s->colon = value_text(": ", 2);
    if (!value_given(v) || v->kind == VALUE_NONE)
        return 0;
    if ((v->kind != VALUE_TUPLE && v->kind != VALUE_LIST) || v->list->count != 2)
        return run_type_error(r, "separators must be two strings", v);
    s->between = v->list->at[0];
    s->colon = v->list->at[1];
    TRY(argument_text(r, &s->between, "separators must be two strings"));
    return argument_text(r, &s->colon, "separators must be two strings");
}

static int tojson(struct run *r, const struct arguments *a, struct value *out)
{
    struct json_style s = {.ascii = argument_truth(&a->at[1], false),
                           .sorted = argument_truth(&a->at[4], false)};
    TRY(json_indent(r, &a->at[2], &s));
    TRY(json_separators(r, &a->at[3], &s));
    const size_t from = run_capture(r);
    return run_captured(r, from, write_json(r, &s, SELF), out);
}

/* ---- numbers ---- */

/* Copy a number's text without surrounding white space and single underscores between digits. */
static bool number_text(const struct value *v, char out[64])
{
    size_t n = 0;
    const char *at = v->text, *end = at + v->bytes;
    while (at < end && strchr(" \t\n\r\v\f", *at) && *at)
        at++;
    while (end > at && strchr(" \t\n\r\v\f", end[-1]) && end[-1])
        end--;
    for (const char *p = at; p < end; p++) {
        const bool digits = p > at && p + 1 < end && p[-1] >= '0' && p[-1] <= '9';
        if (*p == '_' && digits && p[1] >= '0' && p[1] <= '9')
            continue;
        if (n == 63 || *p == '\0' || (unsigned char)*p >= 0x80)
            return false;
        out[n++] = *p;
    }
    out[n] = '\0';
    return n > 0;
}

static bool text_to_real(const struct value *v, double *out)
{
    char text[64], *end;
    if (!number_text(v, text) || strpbrk(text, "xXpP(") != NULL || strchr(" \t\n", text[0]))
        return false;
    *out = strtod(text, &end);
    return *end == '\0';
}

static bool text_to_whole(const struct value *v, int base, int64_t *out)
{
    char text[64], *end;
    if (!number_text(v, text))
        return false;
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    const bool marked = digits[0] == '0' && digits[1] && strchr("xXoObB", digits[1]);
    const int marks = !marked ? 0 : (digits[1] | 32) == 'x' ? 16 : (digits[1] | 32) == 'o' ? 8 : 2;
    if (marked && (base == marks || base == 0)) {
        memmove(text + (digits - text), digits + 2, strlen(digits + 2) + 1);
        base = marks;
    }
    if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", *digits) ||
        !*digits)
        return false;
    errno = 0;
    *out = strtoll(text, &end, base);
    return *end == '\0' && errno == 0;
}

/* Convert a float to a whole number; return false if it does not fit in 64 bits. */
static bool real_to_whole(double x, int64_t *out)
{
    if (!(x > -9.2e18 && x < 9.2e18))
        return false;
    *out = (int64_t)x;
    return true;
}

static int to_int(struct run *r, const struct arguments *a, struct value *out)
{
    int64_t base, whole = 0;
    double real;
    TRY(argument_whole(r, &a->at[2], "base must be a whole number", 10, &base));
    if (SELF->kind == VALUE_UNDEFINED)
        return run_type_error(r, "so it is not a number", SELF);
    const bool text = SELF->kind == VALUE_STRING, known = base == 0 || (base >= 2 && base <= 36);
    bool is = value_is_whole(SELF) || (text && known && text_to_whole(SELF, (int)base, &whole));
    if (value_is_whole(SELF))
        whole = SELF->whole;
    else if (!is && (text ? text_to_real(SELF, &real) : SELF->kind == VALUE_FLOAT))
        is = real_to_whole(text ? real : SELF->real, &whole);
    *out = is ? value_int(whole) : value_given(&a->at[1]) ? a->at[1] : value_int(0);
    return run_spend(r, 0);
}

static int to_float(struct run *r, const struct arguments *a, struct value *out)
{
    double real = 0;
    if (SELF->kind == VALUE_UNDEFINED)
        return run_type_error(r, "so it is not a number", SELF);
    const bool is =
        value_is_number(SELF) || (SELF->kind == VALUE_STRING && text_to_real(SELF, &real));
    if (value_is_number(SELF))
        real = value_real(SELF);
    *out = is ? value_float(real) : value_given(&a->at[1]) ? a->at[1] : value_float(0);
    return 0;
}

static int absolute(struct run *r, const struct arguments *a, struct value *out)
{
    if (!value_is_number(SELF))
        return run_type_error(r, "abs needs a number", SELF);
    *out = SELF->kind == VALUE_FLOAT ? value_float(fabs(SELF->real))
                                     : value_int(SELF->whole < 0 ? -SELF->whole : SELF->whole);
    return SELF->kind != VALUE_FLOAT && SELF->whole == INT64_MIN
               ? run_fail(r, "a whole number has more than 64 bits")
               : 0;
}

static double round_real(double x, int64_t digits, const struct value *method)
{
    char text[400];
    const double scale = pow(10, (double)digits);
    if (value_is_text(method, "ceil"))
        return ceil(x * scale) / scale;
    if (value_is_text(method, "floor"))
        return floor(x * scale) / scale;
    if (digits < 0 || digits > 20)
        return digits < 0 ? nearbyint(x * scale) / scale : x;
    snprintf(text, sizeof text, "%.*f", (int)digits, x);
    return strtod(text, NULL);
}

static int round_number(struct run *r, const struct arguments *a, struct value *out)
{
    int64_t digits;
    const struct value *method = &a->at[2];
    int rc = argument_whole(r, &a->at[1], "precision must be a whole number", 0, &digits);
    if (rc == 0 && !value_is_number(SELF))
        rc = run_type_error(r, "round needs a number", SELF);
    const bool common = !value_given(method) || value_is_text(method, "common");
    if (rc == 0 && !common && !value_is_text(method, "ceil") && !value_is_text(method, "floor"))
        rc = run_fail(r, "the method of round must be common, ceil or floor");
    if (rc != 0)
        return rc;
    *out = value_is_whole(SELF) && common && digits >= 0
               ? value_int(SELF->whole)
               : value_float(round_real(value_real(SELF), digits, method));
    if (value_is_whole(SELF) && common && digits < 0)
        *out = value_int((int64_t)out->real);
    return 0;
}

/* ---- any value ---- */

static int otherwise(struct run *r, const struct arguments *a, struct value *out)
{
    const bool take =
        SELF->kind == VALUE_UNDEFINED || (argument_truth(&a->at[2], false) && !value_truth(SELF));
    *out = !take ? *SELF : value_given(&a->at[1]) ? a->at[1] : value_text("", 0);
    return run_spend(r, 0);
}

static int attribute(struct run *r, const struct arguments *a, struct value *out)
{
    int rc = argument_text(r, &a->at[1], "attr needs the name of an attribute");
    const char *name = rc != 0 ? NULL : arena_copy(&r->arena, a->at[1].text, a->at[1].bytes);
    if (rc != 0 || !name)
        return rc != 0 ? rc : run_no_memory(r);
    return get_attribute(r, SELF, name, a->at[1].bytes, false, out);
}

static const struct builtin filters[] = {
    {"abs", absolute, "x", 1},
    {"attr", attribute, "obj name", 2},
    {"capitalize", capitalize, "s", 1},
    {"center", center, "value width", 1},
    {"d", otherwise, "value default_value boolean", 1},
    {"default", otherwise, "value default_value boolean", 1},
    {"e", escape, "s", 1},
    {"escape", escape, "s", 1},
    {"float", to_float, "value default", 1},
    {"format", format, NULL, 1},
    {"indent", indent, "s width first blank", 1},
    {"int", to_int, "value default base", 1},
    {"lower", lower, "s", 1},
    {"replace", replace, "s old new count", 3},
    {"round", round_number, "value precision method", 1},
    {"safe", safe, "value", 1},
    {"string", string, "object", 1},
    {"title", title, "s", 1},
    {"tojson", tojson, "x ensure_ascii indent separators sort_keys", 1},
    {"trim", trim, "value chars", 1},
    {"truncate", truncate, "s length killwords end leeway", 1},
    {"upper", upper, "s", 1},
    {"wordcount", wordcount, "s", 1},
};

const struct builtin *filters_text(size_t *count)
{
    *count = sizeof filters / sizeof *filters;
    return filters;
}
