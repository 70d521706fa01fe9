/* SPDX-License-Identifier: Apache-2.0
 *
 * value.c: see value.h: making values, failures and limits.
 */
#include "template/value.h"

#include "base/grow.h"
#include "io/error.h"
#include "template/syntax.h"
#include "template/template.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int run_fail(const struct run *r, const char *format, ...)
{
    char what[512];
    va_list rest;
    va_start(rest, format);
    vsnprintf(what, sizeof what, format, rest);
    va_end(rest);
    return fail(NJ_E_FORMAT, "%s:%d: %s", r->template->name, r->line, what);
}

int run_no_memory(const struct run *r)
{
    if (r->arena.spent)
        return run_fail(r, "the template needs more than the limit of %zu MiB of memory",
                        r->arena.most >> 20);
    return fail(NJ_E_NOMEM, "%s: out of memory to run the template", r->template->name);
}

int run_type_error(const struct run *r, const char *what, const struct value *v)
{
    if (v->kind == VALUE_UNDEFINED)
        return run_fail(r, "'%.*s' is undefined, and %s", (int)(v->bytes > 64 ? 64 : v->bytes),
                        v->text, what);
    return run_fail(r, "a value of type %s: %s", value_type(v), what);
}

int run_spend(struct run *r, size_t amount)
{
    enum { AT_A_STEP = 32 };
    r->steps -= (int64_t)(amount / AT_A_STEP) + 1;
    return r->steps >= 0 ? 0 : run_fail(r, "the template runs beyond the limit of steps");
}

int run_write(struct run *r, const char *text, size_t bytes)
{
    struct template_text *t = r->out;
    if (bytes > r->out_most - t->bytes)
        return run_fail(r, "the template writes more than the limit of %zu MiB", r->out_most >> 20);
    if (!GROW(t->text, t->capacity, t->bytes + bytes))
        return run_no_memory(r);
    TRY(run_spend(r, bytes));
    if (bytes > 0) {
        memcpy(t->text + t->bytes, text, bytes);
        t->bytes += bytes;
    }
    return 0;
}

int run_enter(struct run *r)
{
    enum { DEPTH_MOST = 1000 };
    if (r->depth >= DEPTH_MOST)
        return run_fail(r, "the template or its data are nested beyond the limit of %d levels",
                        DEPTH_MOST);
    r->depth++;
    return run_spend(r, 0);
}

size_t run_capture(struct run *r)
{
    r->captures++;
    return r->out->bytes;
}

int run_captured(struct run *r, size_t from, int rc, struct value *out)
{
    if (rc == 0)
        rc = text_make(r, r->out->text ? r->out->text + from : "", r->out->bytes - from, out);
    r->out->bytes = from;
    r->captures--;
    return rc;
}

/* ---- making values ---- */

int list_make(struct run *r, size_t capacity, struct list **out)
{
    *out = arena_zero(&r->arena, sizeof **out);
    if (!*out)
        return run_no_memory(r);
    if (capacity == 0)
        return 0;
    if (capacity > r->arena.most / sizeof *(*out)->at) {
        r->arena.spent = true;
        return run_no_memory(r);
    }
    (*out)->at = arena_take(&r->arena, capacity * sizeof *(*out)->at);
    (*out)->capacity = capacity;
    return (*out)->at ? 0 : run_no_memory(r);
}

int list_add(struct run *r, struct list *list, struct value v)
{
    if (list->count == list->capacity) {
        const size_t grown = 2 * list->capacity + 8;
        struct value *more = arena_take(&r->arena, grown * sizeof *more);
        if (!more)
            return run_no_memory(r);
        if (list->count > 0)
            memcpy(more, list->at, list->count * sizeof *more);
        list->at = more;
        list->capacity = grown;
    }
    list->at[list->count++] = v;
    return 0;
}

int dict_make(struct run *r, size_t capacity, struct dict **out)
{
    *out = arena_zero(&r->arena, sizeof **out);
    if (!*out)
        return run_no_memory(r);
    if (capacity == 0)
        return 0;
    (*out)->at = arena_take(&r->arena, capacity * sizeof *(*out)->at);
    (*out)->capacity = capacity;
    return (*out)->at ? 0 : run_no_memory(r);
}

int text_make(struct run *r, const char *text, size_t bytes, struct value *out)
{
    TRY(run_spend(r, bytes));
    const char *copy = arena_copy(&r->arena, text, bytes);
    *out = value_text(copy, bytes);
    return copy ? 0 : run_no_memory(r);
}

/* ---- queries ---- */

bool value_is_text(const struct value *v, const char *text)
{
    return v->kind == VALUE_STRING && v->bytes == strlen(text) &&
           memcmp(v->text, text, v->bytes) == 0;
}

const char *value_type(const struct value *v)
{
    static const char *const names[] = {
        [VALUE_ABSENT] = "absent",     [VALUE_UNDEFINED] = "Undefined",
        [VALUE_NONE] = "NoneType",     [VALUE_BOOL] = "bool",
        [VALUE_INT] = "int",           [VALUE_FLOAT] = "float",
        [VALUE_STRING] = "str",        [VALUE_LIST] = "list",
        [VALUE_TUPLE] = "tuple",       [VALUE_ITERATOR] = "generator",
        [VALUE_DICT] = "dict",         [VALUE_NAMESPACE] = "Namespace",
        [VALUE_FUNCTION] = "function", [VALUE_METHOD] = "method",
        [VALUE_MACRO] = "Macro",       [VALUE_LOOP] = "LoopContext",
        [VALUE_CYCLER] = "Cycler",     [VALUE_JOINER] = "Joiner",
    };
    return names[v->kind];
}

bool value_truth(const struct value *v)
{
    switch (v->kind) {
    case VALUE_ABSENT:
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        return false;
    case VALUE_BOOL:
    case VALUE_INT:
        return v->whole != 0;
    case VALUE_FLOAT:
        return v->real != 0;
    case VALUE_STRING:
        return v->bytes > 0;
    case VALUE_LIST:
    case VALUE_TUPLE:
        return v->list->count > 0;
    case VALUE_ITERATOR:
        return !v->list->view || v->list->count > 0;
    case VALUE_DICT:
        return v->dict->count > 0;
    default:
        return true;
    }
}

bool value_callable(const struct value *v)
{
    return v->kind == VALUE_FUNCTION || v->kind == VALUE_METHOD || v->kind == VALUE_MACRO ||
           v->kind == VALUE_LOOP || v->kind == VALUE_JOINER || v->kind == VALUE_UNDEFINED;
}
