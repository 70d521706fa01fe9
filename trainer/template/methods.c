/* SPDX-License-Identifier: Apache-2.0
 *
 * methods.c: methods of dicts, lists, loops and cyclers.
 */
#include "template/builtins.h"

#include "io/error.h"

#define SELF (&a->at[0])

/* ---- dicts ---- */

static int dict_get(struct run *r, const struct arguments *a, struct value *out)
{
    const struct value *found = dict_find(r, SELF->dict, &a->at[1]);
    *out = found ? *found : value_given(&a->at[2]) ? a->at[2] : VALUE_NOTHING;
    if (a->at[1].kind == VALUE_LIST || a->at[1].kind == VALUE_DICT)
        return run_type_error(r, "it cannot be a key", &a->at[1]);
    return run_spend(r, SELF->dict->count);
}

static struct value pair_key(struct run *r, const struct pair *p)
{
    (void)r;
    return p->key;
}
static struct value pair_value(struct run *r, const struct pair *p)
{
    (void)r;
    return p->value;
}
/* Make a tuple of both; ABSENT if memory runs out. */
static struct value pair_both(struct run *r, const struct pair *p)
{
    struct list *both;
    if (list_make(r, 2, &both))
        return (struct value){0};
    both->at[0] = p->key;
    both->at[1] = p->value;
    both->count = 2;
    return value_list(VALUE_TUPLE, both);
}

/* Make a view: a list of a part of each pair. */
static int view(struct run *r, const struct dict *d,
                struct value (*part)(struct run *r, const struct pair *p), struct value *out)
{
    struct list *list;
    TRY(list_make(r, d->count, &list));
    for (size_t i = 0; i < d->count; i++) {
        const struct value v = part(r, &d->at[i]);
        TRY(value_given(&v) ? list_add(r, list, v) : run_no_memory(r));
    }
    list->view = true;
    *out = value_list(VALUE_ITERATOR, list);
    return run_spend(r, d->count);
}

static int dict_items(struct run *r, const struct arguments *a, struct value *out)
{
    return view(r, SELF->dict, pair_both, out);
}
static int dict_keys(struct run *r, const struct arguments *a, struct value *out)
{
    return view(r, SELF->dict, pair_key, out);
}
static int dict_values(struct run *r, const struct arguments *a, struct value *out)
{
    return view(r, SELF->dict, pair_value, out);
}

/* Copy a list or a dict. Lists and dicts are never modified, so the copy is the same value. */
static int copy(struct run *r, const struct arguments *a, struct value *out)
{
    *out = *SELF;
    return run_spend(r, 0);
}

static const struct builtin of_dicts[] = {
    {"get", dict_get, "self key default", 2},
    {"items", dict_items, "self", 1},
    {"keys", dict_keys, "self", 1},
    {"values", dict_values, "self", 1},
    {"copy", copy, "self", 1},
};

/* ---- lists ---- */

static int list_count(struct run *r, const struct arguments *a, struct value *out)
{
    int64_t count = 0;
    for (size_t i = 0; i < SELF->list->count; i++)
        count += value_equal(r, &SELF->list->at[i], &a->at[1]);
    *out = value_int(count);
    return run_spend(r, SELF->list->count);
}

static int list_index(struct run *r, const struct arguments *a, struct value *out)
{
    size_t i = 0;
    while (i < SELF->list->count && !value_equal(r, &SELF->list->at[i], &a->at[1]))
        i++;
    *out = value_int((int64_t)i);
    return i < SELF->list->count ? run_spend(r, i)
                                 : run_fail(r, "index(): the list has no such item");
}

static const struct builtin of_lists[] = {
    {"count", list_count, "self value", 2},
    {"index", list_index, "self value", 2},
    {"copy", copy, "self", 1},
};

/* ---- loops and cyclers ---- */

static int loop_cycle(struct run *r, const struct arguments *a, struct value *out)
{
    if (a->count < 2)
        return run_fail(r, "loop.cycle() has nothing to choose from");
    *out = a->at[1 + SELF->loop->at % (a->count - 1)];
    return 0;
}

/* Return whether the values differ from those of the call before. */
static int loop_changed(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *list;
    TRY(list_make(r, a->count, &list));
    for (size_t i = 1; i < a->count; i++)
        TRY(list_add(r, list, a->at[i]));
    const struct value now = value_list(VALUE_TUPLE, list);
    const struct value *before = &SELF->loop->changed;
    *out = value_bool(!value_given(before) || !value_equal(r, before, &now));
    SELF->loop->changed = now;
    return run_spend(r, 0);
}

static const struct builtin of_loops[] = {
    {"cycle", loop_cycle, NULL, 1},
    {"changed", loop_changed, NULL, 1},
};

static int cycler_next(struct run *r, const struct arguments *a, struct value *out)
{
    struct cycler *c = SELF->cycler;
    *out = c->at[c->next];
    c->next = (c->next + 1) % c->count;
    return run_spend(r, 0);
}

static int cycler_reset(struct run *r, const struct arguments *a, struct value *out)
{
    SELF->cycler->next = 0;
    *out = VALUE_NOTHING;
    return run_spend(r, 0);
}

static const struct builtin of_cyclers[] = {
    {"next", cycler_next, "self", 1},
    {"reset", cycler_reset, "self", 1},
};

const struct builtin *methods_of(enum value_kind kind, size_t *count)
{
    static const struct {
        const struct builtin *table;
        size_t count;
    } tables[] = {
        [VALUE_DICT] = {of_dicts, sizeof of_dicts / sizeof *of_dicts},
        [VALUE_LIST] = {of_lists, sizeof of_lists / sizeof *of_lists},
        [VALUE_TUPLE] = {of_lists, 2},
        [VALUE_LOOP] = {of_loops, sizeof of_loops / sizeof *of_loops},
        [VALUE_CYCLER] = {of_cyclers, sizeof of_cyclers / sizeof *of_cyclers},
    };
    *count = 0;
    if (kind == VALUE_STRING)
        return methods_text(count);
    if (kind >= sizeof tables / sizeof *tables)
        return NULL;
    *count = tables[kind].count;
    return tables[kind].table;
}

bool method_left_out(enum value_kind kind, const char *name)
{
    static const struct {
        enum value_kind kind;
        const char *name;
    } methods[] = {
        {VALUE_STRING, "casefold"},
        {VALUE_STRING, "encode"},
        {VALUE_STRING, "expandtabs"},
        {VALUE_STRING, "format_map"},
        {VALUE_STRING, "isidentifier"},
        {VALUE_STRING, "isprintable"},
        {VALUE_STRING, "istitle"},
        {VALUE_STRING, "maketrans"},
        {VALUE_STRING, "translate"},
        {VALUE_DICT, "fromkeys"},
        {VALUE_INT, "bit_length"},
        {VALUE_INT, "bit_count"},
        {VALUE_INT, "real"},
        {VALUE_INT, "imag"},
        {VALUE_INT, "numerator"},
        {VALUE_INT, "denominator"},
        {VALUE_INT, "to_bytes"},
        {VALUE_INT, "as_integer_ratio"},
        {VALUE_FLOAT, "real"},
        {VALUE_FLOAT, "imag"},
        {VALUE_FLOAT, "is_integer"},
        {VALUE_FLOAT, "hex"},
        {VALUE_FLOAT, "fromhex"},
        {VALUE_FLOAT, "as_integer_ratio"},
        {VALUE_INT, "conjugate"},
        {VALUE_FLOAT, "conjugate"},
        {VALUE_CYCLER, "current"},
        {VALUE_MACRO, "arguments"},
        {VALUE_MACRO, "catch_kwargs"},
        {VALUE_MACRO, "catch_varargs"},
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].kind == kind && strcmp(methods[i].name, name) == 0)
            return true;
    return false;
}
