/* SPDX-License-Identifier: Apache-2.0
 *
 * functions.c: functions available to every template: those of jinja2, and raise_exception() and
 * strftime_now() of transformers.
 */
#include "template/builtins.h"

#include "io/error.h"
#include "template/template.h"
#include "template/write.h"

#include <time.h>

/* ---- lists and dicts ---- */

static int range(struct run *r, const struct arguments *a, struct value *out)
{
    enum { RANGE_MOST = 100000 };
    struct list *list;
    int64_t end[3] = {0, 0, 1};
    int rc = 0;
    for (size_t i = 0; i < a->count && i < 3 && rc == 0; i++)
        rc = value_is_whole(&a->at[i])
                 ? argument_whole(r, &a->at[i], "", 0, &end[a->count == 1 ? 1 : i])
                 : run_type_error(r, "range() needs whole numbers", &a->at[i]);
    if (rc == 0 && (a->count == 0 || a->count > 3 || a->named_count > 0 || end[2] == 0))
        rc = run_fail(r, "range() needs one to three whole numbers, and a step other than 0");
    if (rc == 0)
        rc = list_make(r, 0, &list);
    for (int64_t at = end[0]; rc == 0 && (end[2] > 0 ? at < end[1] : at > end[1]);) {
        rc = list->count == RANGE_MOST ? run_fail(r, "range() is longer than %d", RANGE_MOST)
                                       : list_add(r, list, value_int(at));
        if (__builtin_add_overflow(at, end[2], &at))
            break;
    }
    *out = value_list(VALUE_LIST, list);
    return rc != 0 ? rc : run_spend(r, list->count);
}

static int add_pairs(struct run *r, struct dict *d, const struct value *from)
{
    struct list *list, *pair;
    int rc = 0;
    if (from->kind == VALUE_DICT || from->kind == VALUE_NAMESPACE) {
        for (size_t i = 0; i < from->dict->count && rc == 0; i++)
            rc = dict_set(r, d, &from->dict->at[i].key, &from->dict->at[i].value);
        return rc;
    }
    TRY(value_items(r, from, &list));
    for (size_t i = 0; i < list->count; i++) {
        TRY(value_items(r, &list->at[i], &pair));
        if (pair->count != 2)
            return run_fail(r, "dict() needs pairs of a key and a value");
        TRY(dict_set(r, d, &pair->at[0], &pair->at[1]));
    }
    return 0;
}

static int make_dict(struct run *r, const struct arguments *a, enum value_kind kind,
                     struct value *out)
{
    struct dict *d;
    int rc = a->count > 1 ? run_fail(r, "dict() and namespace() take one value at most")
                          : dict_make(r, a->named_count, &d);
    if (rc == 0 && a->count == 1)
        rc = add_pairs(r, d, &a->at[0]);
    for (size_t i = 0; i < a->named_count && rc == 0; i++)
        rc = dict_set(r, d, &a->named[i].key, &a->named[i].value);
    *out = (struct value){.kind = kind, .dict = d};
    return rc;
}

static int dict(struct run *r, const struct arguments *a, struct value *out)
{
    return make_dict(r, a, VALUE_DICT, out);
}

static int namespace(struct run *r, const struct arguments *a, struct value *out)
{
    TRY(make_dict(r, a, VALUE_NAMESPACE, out));
    for (size_t i = 0; i < out->dict->count; i++) {
        const struct value *name = &out->dict->at[i].key;
        if (name->kind == VALUE_STRING && name->bytes > 0 && name->text[0] == '_')
            return run_fail(r, "an attribute of a namespace begins with an underscore");
    }
    return 0;
}

/* ---- state ---- */

static int cycler(struct run *r, const struct arguments *a, struct value *out)
{
    struct cycler *c = arena_take(&r->arena, sizeof *c);
    struct list *list;
    int rc = c ? list_make(r, a->count, &list) : run_no_memory(r);
    for (size_t i = 0; i < a->count && rc == 0; i++)
        rc = list_add(r, list, a->at[i]);
    if (rc == 0 && a->count == 0)
        rc = run_fail(r, "cycler() needs a value");
    if (rc == 0)
        *c = (struct cycler){.at = list->at, .count = a->count};
    *out = (struct value){.kind = VALUE_CYCLER, .cycler = c};
    return rc;
}

static int joiner(struct run *r, const struct arguments *a, struct value *out)
{
    struct cycler *c = arena_take(&r->arena, sizeof *c);
    struct list *list;
    int rc = c ? list_make(r, 1, &list) : run_no_memory(r);
    if (rc == 0)
        rc = list_add(r, list, value_given(&a->at[0]) ? a->at[0] : value_text(", ", 2));
    if (rc == 0)
        *c = (struct cycler){.at = list->at, .count = 1};
    *out = (struct value){.kind = VALUE_JOINER, .cycler = c};
    return rc;
}

/* ---- transformers ---- */

static int raise_exception(struct run *r, const struct arguments *a, struct value *out)
{
    struct value text;
    (void)out;
    TRY(value_str(r, &a->at[0], &text));
    return run_fail(r, "the chat template refuses the conversation: %.*s",
                    (int)(text.bytes > 300 ? 300 : text.bytes), text.text);
}

/* Day used for all texts that a run renders, so that the run can be repeated on another day. */
static struct tm day = {.tm_year = 124, .tm_mon = 6, .tm_mday = 26, .tm_wday = 5, .tm_yday = 207};

void template_set_day(const struct tm *given)
{
    day = *given;
    day.tm_hour = day.tm_min = day.tm_sec = 0;
}

/* Remove the time zone from a format: Python's datetime.now() has none, so %Z and %z are empty. */
static void drop_zone(char *format)
{
    char *to = format;
    for (const char *from = format; *from;) {
        const size_t n = from[0] == '%' && from[1] ? 2 : 1;
        const bool zone = n == 2 && (from[1] == 'Z' || from[1] == 'z');
        for (size_t i = 0; i < n && !zone; i++)
            *to++ = from[i];
        from += n;
    }
    *to = '\0';
}

static int strftime_now(struct run *r, const struct arguments *a, struct value *out)
{
    char made[512];
    int rc = argument_text(r, &a->at[0], "strftime_now() needs a string");
    char *format = rc != 0 ? NULL : arena_copy(&r->arena, a->at[0].text, a->at[0].bytes);
    if (rc != 0 || !format)
        return rc != 0 ? rc : run_no_memory(r);
    drop_zone(format);
    const size_t bytes = strftime(made, sizeof made, format, &day);
    if (bytes == 0 && *format)
        return run_fail(r, "the format of strftime_now() is too long");
    return text_make(r, made, bytes, out);
}

static const struct builtin functions[] = {
    {"cycler", cycler, NULL, 0},
    {"dict", dict, NULL, 0},
    {"joiner", joiner, "sep", 0},
    {"namespace", namespace, NULL, 0},
    {"raise_exception", raise_exception, "message", 1},
    {"range", range, NULL, 1},
    {"strftime_now", strftime_now, "format", 1},
};

const struct builtin *functions_all(size_t *count)
{
    *count = sizeof functions / sizeof *functions;
    return functions;
}
