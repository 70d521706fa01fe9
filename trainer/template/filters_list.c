/* SPDX-License-Identifier: Apache-2.0
 *
 * filters_list.c: filters of lists and dicts.
 */
#include "template/builtins.h"

#include "io/error.h"
#include "template/letters.h"
#include "template/syntax.h"
#include "template/write.h"

#define SELF (&a->at[0])

/* List with the key by which each item is compared. */
struct keyed {
    struct list *items, *keys;
};

/* ---- keys ---- */

/* Return the value at a path in an item, or for several paths, separated by commas, a list of values. */
static int key_of(struct run *r, const struct value *item, const struct value *path,
                  struct value *out)
{
    struct list *all;
    if (path->kind != VALUE_STRING || !memchr(path->text, ',', path->bytes))
        return get_path(r, item, path, out);
    int rc = list_make(r, 0, &all);
    for (size_t at = 0; at <= path->bytes && rc == 0;) {
        struct value one;
        const char *comma = memchr(path->text + at, ',', path->bytes - at);
        const size_t end = comma ? (size_t)(comma - path->text) : path->bytes;
        const struct value part = value_text(path->text + at, end - at);
        rc = get_path(r, item, &part, &one);
        if (rc == 0)
            rc = list_add(r, all, one);
        at = end + 1;
    }
    *out = value_list(VALUE_LIST, all);
    return rc;
}

static int ignore_case(struct run *r, struct value *key)
{
    int rc = 0;
    if (key->kind == VALUE_STRING) {
        const struct value text = *key;
        return letters_case(r, CASE_LOWER, &text, key);
    }
    struct list *made;
    if (key->kind != VALUE_LIST || key->list->count == 0)
        return 0;
    rc = list_make(r, key->list->count, &made);
    for (size_t i = 0; i < key->list->count && rc == 0; i++) {
        struct value one = key->list->at[i];
        if (one.kind == VALUE_STRING)
            rc = letters_case(r, CASE_LOWER, &key->list->at[i], &one);
        if (rc == 0)
            rc = list_add(r, made, one);
    }
    key->list = made;
    return rc;
}

static int keyed_make(struct run *r, const struct value *v, const struct value *path, bool cases,
                      struct keyed *out)
{
    TRY(value_items(r, v, &out->items));
    TRY(list_make(r, out->items->count, &out->keys));
    for (size_t i = 0; i < out->items->count; i++) {
        struct value key;
        TRY(key_of(r, &out->items->at[i], path, &key));
        if (!cases)
            TRY(ignore_case(r, &key));
        TRY(list_add(r, out->keys, key));
    }
    return 0;
}

/* ---- order ---- */

struct sorting {
    struct run *run;
    const struct value *keys;
    size_t *order, *spare;
    bool reverse;
};

/* Return whether b must precede a, which comes first in the list. */
static int misplaced(struct sorting *s, size_t a, size_t b, bool *out)
{
    int order;
    const int rc = s->reverse ? value_order(s->run, &s->keys[b], &s->keys[a], &order)
                              : value_order(s->run, &s->keys[a], &s->keys[b], &order);
    *out = rc == 0 && order > 0;
    return rc;
}

static int merge(struct sorting *s, size_t begin, size_t middle, size_t end)
{
    size_t a = begin, b = middle, n = 0;
    int rc = 0;
    while (rc == 0 && (a < middle || b < end)) {
        bool second = a == middle;
        if (a < middle && b < end)
            rc = misplaced(s, s->order[a], s->order[b], &second);
        s->spare[n++] = s->order[second ? b++ : a++];
    }
    memcpy(s->order + begin, s->spare, n * sizeof *s->spare);
    return rc;
}

/* Sort by merging ever longer runs, so that equal items keep their order. */
static int sort_keys(struct sorting *s, size_t count)
{
    for (size_t width = 1; width < count; width *= 2)
        for (size_t at = 0; at + width < count; at += 2 * width) {
            const size_t end = at + 2 * width < count ? at + 2 * width : count;
            TRY(merge(s, at, at + width, end));
        }
    return 0;
}

static int sorted(struct run *r, const struct keyed *k, bool reverse, struct value *out)
{
    struct list *list;
    const size_t count = k->items->count;
    struct sorting s = {.run = r,
                        .keys = k->keys->at,
                        .reverse = reverse,
                        .order = arena_take(&r->arena, (count + 1) * sizeof *s.order),
                        .spare = arena_take(&r->arena, (count + 1) * sizeof *s.order)};
    if (!s.order || !s.spare)
        return run_no_memory(r);
    for (size_t i = 0; i < count; i++)
        s.order[i] = i;
    int rc = sort_keys(&s, count);
    if (rc == 0)
        rc = list_make(r, count, &list);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = list_add(r, list, k->items->at[s.order[i]]);
    *out = value_list(VALUE_LIST, list);
    return rc;
}

static int sort(struct run *r, const struct arguments *a, struct value *out)
{
    struct keyed k;
    TRY(keyed_make(r, SELF, &a->at[3], argument_truth(&a->at[2], false), &k));
    return sorted(r, &k, argument_truth(&a->at[1], false), out);
}

/* Make a list of pairs. */
static int pairs_of(struct run *r, const struct value *v, struct value *out)
{
    size_t count;
    const struct builtin *table = methods_of(VALUE_DICT, &count);
    const struct arguments self = {.at = v, .count = 1};
    if (v->kind != VALUE_DICT)
        return run_type_error(r, "a dict must come here", v);
    return builtin_among(table, count, "items", 5)->run(r, &self, out);
}

static int dictsort(struct run *r, const struct arguments *a, struct value *out)
{
    struct value pairs, place = value_int(value_is_text(&a->at[2], "value"));
    struct keyed k;
    TRY(pairs_of(r, SELF, &pairs));
    if (value_given(&a->at[2]) && !place.whole && !value_is_text(&a->at[2], "key"))
        return run_fail(r, "dictsort sorts by key or by value");
    TRY(keyed_make(r, &pairs, &place, argument_truth(&a->at[1], false), &k));
    return sorted(r, &k, argument_truth(&a->at[3], false), out);
}

static int items(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *none;
    if (SELF->kind != VALUE_UNDEFINED)
        return pairs_of(r, SELF, out);
    const int rc = list_make(r, 0, &none);
    *out = value_list(VALUE_ITERATOR, none);
    return rc;
}

/* Find the item whose key comes first (sign 1) or last (-1). */
static int extreme(struct run *r, const struct arguments *a, int sign, struct value *out)
{
    struct keyed k;
    int order;
    size_t best = 0;
    int rc = keyed_make(r, SELF, &a->at[2], argument_truth(&a->at[1], false), &k);
    for (size_t i = 1; rc == 0 && i < k.items->count; i++) {
        rc = value_order(r, &k.keys->at[i], &k.keys->at[best], &order);
        best = rc == 0 && order * sign < 0 ? i : best;
    }
    if (rc != 0)
        return rc;
    *out = k.items->count ? k.items->at[best] : value_undefined("an item of an empty list", 24);
    return 0;
}

static int least(struct run *r, const struct arguments *a, struct value *out)
{
    return extreme(r, a, 1, out);
}
static int most(struct run *r, const struct arguments *a, struct value *out)
{
    return extreme(r, a, -1, out);
}

static int unique(struct run *r, const struct arguments *a, struct value *out)
{
    struct keyed k;
    struct list *list, *seen;
    int rc = keyed_make(r, SELF, &a->at[2], argument_truth(&a->at[1], false), &k);
    if (rc == 0)
        rc = list_make(r, 0, &list);
    if (rc == 0)
        rc = list_make(r, 0, &seen);
    for (size_t i = 0; rc == 0 && i < k.items->count; i++) {
        const struct value known = value_list(VALUE_LIST, seen);
        bool again;
        rc = value_contains(r, &known, &k.keys->at[i], &again);
        if (rc != 0 || again)
            continue;
        rc = list_add(r, seen, k.keys->at[i]);
        if (rc == 0)
            rc = list_add(r, list, k.items->at[i]);
    }
    *out = value_list(VALUE_ITERATOR, list);
    return rc;
}

/* ---- ends ---- */

static int first(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *list;
    TRY(value_items(r, SELF, &list));
    *out = list->count ? list->at[0] : value_undefined("the first item of an empty list", 31);
    return 0;
}

static int last(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *list;
    const bool once = SELF->kind == VALUE_ITERATOR && !SELF->list->view;
    TRY(once ? run_type_error(r, "it has no last item; make a list of it", SELF)
             : value_items(r, SELF, &list));
    *out = list->count ? list->at[list->count - 1]
                       : value_undefined("the last item of an empty list", 30);
    return 0;
}

static int length(struct run *r, const struct arguments *a, struct value *out)
{
    size_t count;
    const int rc = value_length(r, SELF, &count);
    *out = value_int((int64_t)count);
    return rc;
}

static int to_list(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *list;
    const int rc = value_items(r, SELF, &list);
    *out = value_list(VALUE_LIST, list);
    return rc;
}

static int reverse(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *list, *made;
    if (SELF->kind == VALUE_STRING) {
        const struct value none = {0}, back = value_int(-1);
        return get_slice(r, SELF, &none, &none, &back, out);
    }
    int rc = value_items(r, SELF, &list);
    if (rc == 0)
        rc = list_make(r, list->count, &made);
    for (size_t i = rc != 0 ? 0 : list->count; i-- > 0 && rc == 0;)
        rc = list_add(r, made, list->at[i]);
    *out = value_list(VALUE_ITERATOR, made);
    return rc != 0 ? rc : run_spend(r, made->count);
}

/* ---- all items ---- */

static int join(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *list;
    struct value item, between = value_text("", 0);
    int rc = value_items(r, SELF, &list);
    if (rc == 0 && value_given(&a->at[1]))
        rc = value_str(r, &a->at[1], &between);
    const size_t from = run_capture(r);
    for (size_t i = 0; rc == 0 && i < list->count; i++) {
        rc = get_path(r, &list->at[i], &a->at[2], &item);
        if (rc == 0 && i > 0)
            rc = run_write(r, between.text, between.bytes);
        if (rc == 0)
            rc = write_str(r, &item);
    }
    return run_captured(r, from, rc, out);
}

static int sum(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *list;
    int rc = value_items(r, SELF, &list);
    *out = value_given(&a->at[2]) ? a->at[2] : value_int(0);
    if (rc == 0 && out->kind == VALUE_STRING)
        return run_type_error(r, "sum cannot begin with a string; use join", out);
    for (size_t i = 0; rc == 0 && i < list->count; i++) {
        struct value item;
        const struct value before = *out;
        rc = get_path(r, &list->at[i], &a->at[1], &item);
        if (rc == 0)
            rc = operate(r, OP_ADD, &before, &item, out);
    }
    return rc;
}

/* ---- lists of lists ---- */

/* Append a value until a list has `count` items, unless it is None. */
static int fill(struct run *r, struct list *list, size_t count, const struct value *with)
{
    while (value_given(with) && with->kind != VALUE_NONE && list->count < count)
        TRY(list_add(r, list, *with));
    return 0;
}

static int batch(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *from, *to = NULL, *row;
    int64_t count;
    int rc = argument_whole(r, &a->at[1], "the size of a batch must be a whole number", 0, &count);
    if (rc == 0)
        rc = value_items(r, SELF, &from);
    if (rc == 0)
        rc = list_make(r, 0, &to);
    if (rc == 0)
        rc = list_make(r, 0, &row);
    for (size_t i = 0; rc == 0 && i < from->count; i++) {
        if ((int64_t)row->count == count) {
            rc = list_add(r, to, value_list(VALUE_LIST, row));
            if (rc == 0)
                rc = list_make(r, 0, &row);
        }
        if (rc == 0)
            rc = list_add(r, row, from->at[i]);
    }
    if (rc == 0 && row->count > 0 && (int64_t)row->count < count)
        rc = fill(r, row, (size_t)count, &a->at[2]);
    if (rc == 0 && row->count > 0)
        rc = list_add(r, to, value_list(VALUE_LIST, row));
    *out = value_list(VALUE_ITERATOR, to);
    return rc;
}

/* Divide the items into slices; the first ones have one more if the number is not divisible. */
static int slice(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *from, *to = NULL, *row;
    int64_t slices;
    int rc = argument_whole(r, &a->at[1], "the number of slices must be whole", 0, &slices);
    if (rc == 0 && slices == 0)
        rc = run_fail(r, "slice needs at least one slice");
    if (rc == 0)
        rc = value_items(r, SELF, &from);
    if (rc == 0)
        rc = list_make(r, 0, &to);
    for (int64_t i = 0, at = 0; rc == 0 && i < slices; i++) {
        const int64_t each = (int64_t)from->count / slices, more = (int64_t)from->count % slices;
        const int64_t end = at + each + (i < more);
        rc = list_make(r, 0, &row);
        for (; rc == 0 && at < end; at++)
            rc = list_add(r, row, from->at[at]);
        if (rc == 0 && i >= more)
            rc = fill(r, row, row->count + 1, &a->at[2]);
        if (rc == 0)
            rc = list_add(r, to, value_list(VALUE_LIST, row));
        if (rc == 0)
            rc = run_spend(r, 1);
    }
    *out = value_list(VALUE_ITERATOR, to);
    return rc;
}

/* Read the key by which an item is grouped. */
static int group_key(struct run *r, const struct arguments *a, const struct value *item,
                     struct value *out)
{
    const struct value *otherwise = &a->at[2];
    TRY(get_path(r, item, &a->at[1], out));
    if (out->kind == VALUE_UNDEFINED && value_given(otherwise) && otherwise->kind != VALUE_NONE)
        *out = *otherwise;
    return 0;
}

static int group_keys(struct run *r, const struct arguments *a, const struct list *items,
                      struct list **out)
{
    TRY(list_make(r, items->count, out));
    for (size_t i = 0; i < items->count; i++) {
        struct value key;
        TRY(group_key(r, a, &items->at[i], &key));
        if (!argument_truth(&a->at[3], false))
            TRY(ignore_case(r, &key));
        TRY(list_add(r, *out, key));
    }
    return 0;
}

/* Begin a group with its first item, whose key it has. */
static int add_group(struct run *r, const struct arguments *a, const struct value *item,
                     struct list *to, struct list **items)
{
    struct list *pair;
    struct value key;
    TRY(list_make(r, 2, &pair));
    TRY(list_make(r, 0, items));
    TRY(group_key(r, a, item, &key));
    TRY(list_add(r, pair, key));
    TRY(list_add(r, pair, value_list(VALUE_LIST, *items)));
    pair->group = true;
    return list_add(r, to, value_list(VALUE_TUPLE, pair));
}

static int groupby(struct run *r, const struct arguments *a, struct value *out)
{
    struct list *to = NULL, *items = NULL, *keys;
    struct keyed k;
    struct value all;
    int rc = value_items(r, SELF, &k.items);
    if (rc == 0)
        rc = group_keys(r, a, k.items, &k.keys);
    if (rc == 0)
        rc = sorted(r, &k, false, &all);
    if (rc == 0)
        rc = group_keys(r, a, all.list, &keys);
    if (rc == 0)
        rc = list_make(r, 0, &to);
    for (size_t i = 0; rc == 0 && i < all.list->count; i++) {
        if (i == 0 || !value_equal(r, &keys->at[i - 1], &keys->at[i]))
            rc = add_group(r, a, &all.list->at[i], to, &items);
        if (rc == 0)
            rc = list_add(r, items, all.list->at[i]);
    }
    *out = value_list(VALUE_LIST, to);
    return rc;
}

static const struct builtin filters[] = {
    {"batch", batch, "value linecount fill_with", 2},
    {"count", length, "obj", 1},
    {"dictsort", dictsort, "value case_sensitive by reverse", 1},
    {"first", first, "seq", 1},
    {"groupby", groupby, "value attribute default case_sensitive", 2},
    {"items", items, "value", 1},
    {"join", join, "value d attribute", 1},
    {"last", last, "seq", 1},
    {"length", length, "obj", 1},
    {"list", to_list, "value", 1},
    {"max", most, "value case_sensitive attribute", 1},
    {"min", least, "value case_sensitive attribute", 1},
    {"reverse", reverse, "value", 1},
    {"slice", slice, "value slices fill_with", 2},
    {"sort", sort, "value reverse case_sensitive attribute", 1},
    {"sum", sum, "iterable attribute start", 1},
    {"unique", unique, "value case_sensitive attribute", 1},
};

const struct builtin *filters_list(size_t *count)
{
    *count = sizeof filters / sizeof *filters;
    return filters;
}
