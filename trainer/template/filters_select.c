/* SPDX-License-Identifier: Apache-2.0
 *
 * filters_select.c: filters that apply another filter or a test to each item.
 */
#include "template/builtins.h"

#include "io/error.h"

enum { MORE_MOST = 8 }; /* maximum number of arguments that are passed on */

#define SELF (&a->at[0])

/* Filter or test with its arguments besides an item. */
struct applied {
    const struct builtin *function;
    struct value at[MORE_MOST];
    size_t count; /* number of arguments, including the item */
    const struct arguments *a;
};

/* Read the name of a filter or test among the arguments, and the arguments after it. */
static int read_applied(struct run *r, enum builtin_use use, const struct arguments *a,
                        size_t place, struct applied *out)
{
    const struct value *name = &a->at[place];
    int rc = argument_text(r, name, "the name of a filter or test must be a string");
    const char *copy = rc != 0 ? NULL : arena_copy(&r->arena, name->text, name->bytes);
    if (rc != 0 || !copy)
        return rc != 0 ? rc : run_no_memory(r);
    *out = (struct applied){.count = a->count - place, .a = a};
    if (!r->find(use, copy, &out->function))
        return run_fail(r, "there is no %s named %.64s", use == BUILTIN_TEST ? "test" : "filter",
                        copy);
    if (out->count > MORE_MOST)
        return run_fail(r, "%s has too many arguments", copy);
    for (size_t i = 1; i < out->count; i++)
        out->at[i] = a->at[place + i];
    return 0;
}

static int apply(struct run *r, struct applied *f, const struct value *item, struct value *out)
{
    f->at[0] = *item;
    const struct arguments a = {
        .at = f->at, .count = f->count, .named = f->a->named, .named_count = f->a->named_count};
    return builtin_call(r, f->function, &a, out);
}

/* ---- map ---- */

static const struct value *named(const struct arguments *a, const char *name)
{
    for (size_t i = 0; i < a->named_count; i++)
        if (value_is_text(&a->named[i].key, name))
            return &a->named[i].value;
    return NULL;
}

static int map_attribute(struct run *r, const struct arguments *a, struct list *from,
                         struct list *to)
{
    const struct value *path = named(a, "attribute"), *otherwise = named(a, "default");
    int rc = 0;
    if (a->count > 1 || !path || a->named_count > 1 + (otherwise != NULL))
        return run_fail(r, "map needs the name of a filter, or attribute alone");
    for (size_t i = 0; i < from->count && rc == 0; i++) {
        struct value item;
        rc = get_path(r, &from->at[i], path, &item);
        if (rc == 0 && item.kind == VALUE_UNDEFINED && otherwise && otherwise->kind != VALUE_NONE)
            item = *otherwise;
        if (rc == 0)
            rc = list_add(r, to, item);
    }
    return rc;
}

static int map_filter(struct run *r, const struct arguments *a, struct list *from, struct list *to)
{
    struct applied f;
    TRY(read_applied(r, BUILTIN_FILTER, a, 1, &f));
    for (size_t i = 0; i < from->count; i++) {
        struct value item;
        TRY(apply(r, &f, &from->at[i], &item));
        TRY(list_add(r, to, item));
    }
    return 0;
}

/* Read the items; *any: whether there may be some. A false value of any kind has none. */
static int items_of(struct run *r, const struct value *v, struct list **from, struct list **to,
                    bool *any)
{
    int rc = list_make(r, 0, to);
    *any = value_truth(v);
    return rc != 0 || !*any ? rc : value_items(r, v, from);
}

static int map(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *from, *to;
    bool any;
    int rc = items_of(r, SELF, &from, &to, &any);
    if (rc == 0 && any)
        rc = a->count > 1 ? map_filter(r, a, from, to) : map_attribute(r, a, from, to);
    *out = value_list(VALUE_ITERATOR, to);
    return rc;
}

/* ---- select ---- */

/* Keep items for which the truth of the item, or of a test on it or on its attribute, is
 * `wanted`. */
static int keep(struct run *r, const struct arguments *a, bool by_attribute, bool wanted,
                struct value *out)
{
    const size_t place = by_attribute ? 2 : 1;
    struct applied f = {0};
    struct list *from, *to;
    bool any;
    int rc = items_of(r, SELF, &from, &to, &any);
    *out = value_list(VALUE_ITERATOR, to);
    if (rc != 0 || !any)
        return rc;
    if (by_attribute && a->count < 2)
        return run_fail(r, "selectattr and rejectattr need an attribute");
    if (a->count > place)
        rc = read_applied(r, BUILTIN_TEST, a, place, &f);
    for (size_t i = 0; rc == 0 && i < from->count; i++) {
        struct value v = from->at[i], answer;
        if (by_attribute)
            rc = get_path(r, &from->at[i], &a->at[1], &v);
        answer = v;
        if (rc == 0 && f.function)
            rc = apply(r, &f, &v, &answer);
        if (rc == 0 && value_truth(&answer) == wanted)
            rc = list_add(r, to, from->at[i]);
    }
    return rc;
}

static int select_items(struct run *r, const struct arguments *a, struct value *out)
{
    return keep(r, a, false, true, out);
}
static int reject(struct run *r, const struct arguments *a, struct value *out)
{
    return keep(r, a, false, false, out);
}
static int selectattr(struct run *r, const struct arguments *a, struct value *out)
{
    return keep(r, a, true, true, out);
}
static int rejectattr(struct run *r, const struct arguments *a, struct value *out)
{
    return keep(r, a, true, false, out);
}

static const struct builtin filters[] = {
    {"map", map, NULL, 1},
    {"reject", reject, NULL, 1},
    {"rejectattr", rejectattr, NULL, 1},
    {"select", select_items, NULL, 1},
    {"selectattr", selectattr, NULL, 1},
};

const struct builtin *filters_select(size_t *count)
{
    *count = sizeof filters / sizeof *filters;
    return filters;
}
