/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.c: see value.h: equality, order, keys, membership, and the items of a loop.
 */
#include "template/value.h"

#include "base/utf8.h"
#include "io/error.h"

static int sign(double x)
{
    return (x > 0) - (x < 0);
}

static int order_numbers(const struct value *a, const struct value *b)
{
    if (value_is_whole(a) && value_is_whole(b))
        return (a->whole > b->whole) - (a->whole < b->whole);
    return sign(value_real(a) - value_real(b));
}

/* Compare texts; UTF-8 preserves the order of code points in bytes. */
static int order_texts(const struct value *a, const struct value *b)
{
    const size_t common = a->bytes < b->bytes ? a->bytes : b->bytes;
    const int first = common > 0 ? memcmp(a->text, b->text, common) : 0;
    return first ? sign(first) : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static bool equal_lists(struct run *r, const struct list *a, const struct list *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!value_equal(r, &a->at[i], &b->at[i]))
            return false;
    return true;
}

static bool equal_dicts(struct run *r, const struct dict *a, const struct dict *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct value *other = dict_find(r, b, &a->at[i].key);
        if (!other || !value_equal(r, &a->at[i].value, other))
            return false;
    }
    return true;
}

bool value_same(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == VALUE_NONE)
        return true;
    if (a->kind == VALUE_STRING)
        return a->bytes == b->bytes && memcmp(a->text, b->text, a->bytes) == 0;
    return a->kind == VALUE_FLOAT ? a->real == b->real : a->whole == b->whole;
}

/* Compare lists and dicts. Excessive nesting uses up all steps, so that the run fails: equality
 * itself cannot fail. */
static bool equal_nested(struct run *r, const struct value *a, const struct value *b)
{
    bool equal = false;
    if (run_enter(r)) {
        r->steps = -1;
        return false;
    }
    equal =
        a->kind == VALUE_DICT ? equal_dicts(r, a->dict, b->dict) : equal_lists(r, a->list, b->list);
    run_leave(r);
    return equal;
}

bool value_equal(struct run *r, const struct value *a, const struct value *b)
{
    r->steps--;
    if (value_is_number(a) && value_is_number(b))
        return value_is_whole(a) && value_is_whole(b) ? a->whole == b->whole
                                                      : value_real(a) == value_real(b);
    if (a->kind != b->kind || r->steps < 0)
        return false;
    switch (a->kind) {
    case VALUE_STRING:
        r->steps -= a->bytes == b->bytes ? (int64_t)a->bytes / 32 : 0;
        return value_same(a, b);
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
        return equal_nested(r, a, b);
    case VALUE_UNDEFINED:
        return true;
    default:
        return value_same(a, b);
    }
}

static int order_lists(struct run *r, const struct list *a, const struct list *b, int *out)
{
    int rc = run_enter(r);
    size_t i = 0;
    if (rc != 0)
        return rc;
    while (i < a->count && i < b->count && value_equal(r, &a->at[i], &b->at[i]))
        i++;
    if (i < a->count && i < b->count)
        rc = value_order(r, &a->at[i], &b->at[i], out);
    else
        *out = (a->count > b->count) - (a->count < b->count);
    run_leave(r);
    return rc;
}

int value_order(struct run *r, const struct value *a, const struct value *b, int *out)
{
    TRY(run_spend(r, 0));
    if (value_is_number(a) && value_is_number(b)) {
        *out = order_numbers(a, b);
        return 0;
    }
    if (a->kind == VALUE_UNDEFINED || b->kind == VALUE_UNDEFINED)
        return run_type_error(r, "it cannot be compared", a->kind == VALUE_UNDEFINED ? a : b);
    if (a->kind == b->kind && a->kind == VALUE_STRING) {
        *out = order_texts(a, b);
        return run_spend(r, a->bytes < b->bytes ? a->bytes : b->bytes);
    }
    if (a->kind == b->kind && (a->kind == VALUE_LIST || a->kind == VALUE_TUPLE))
        return order_lists(r, a->list, b->list, out);
    return run_fail(r, "values of type %s and %s cannot be compared", value_type(a), value_type(b));
}

/* ---- keys ---- */

struct value *dict_find_text(const struct dict *d, const char *key, size_t bytes)
{
    for (size_t i = 0; i < d->count; i++) {
        const struct value *k = &d->at[i].key;
        if (k->kind == VALUE_STRING && k->bytes == bytes && memcmp(k->text, key, bytes) == 0)
            return &d->at[i].value;
    }
    return NULL;
}

struct value *dict_find(struct run *r, const struct dict *d, const struct value *key)
{
    if (key->kind == VALUE_STRING)
        return dict_find_text(d, key->text, key->bytes);
    for (size_t i = 0; i < d->count; i++)
        if (value_equal(r, &d->at[i].key, key))
            return &d->at[i].value;
    return NULL;
}

/* Return whether Python can hash the value; nested tuples are accepted up to a few levels. */
static bool hashable(const struct value *v, int levels)
{
    if (v->kind == VALUE_TUPLE)
        for (size_t i = 0; i < v->list->count; i++)
            if (levels == 0 || !hashable(&v->list->at[i], levels - 1))
                return false;
    return v->kind != VALUE_LIST && v->kind != VALUE_DICT;
}

int dict_set(struct run *r, struct dict *d, const struct value *key, const struct value *v)
{
    if (!hashable(key, 8))
        return run_type_error(r, "it cannot be a key", key);
    int rc = run_spend(r, d->count);
    struct value *there = rc != 0 ? NULL : dict_find(r, d, key);
    if (there)
        *there = *v;
    if (rc != 0 || there)
        return rc;
    if (d->count == d->capacity) {
        const size_t grown = 2 * d->capacity + 4;
        struct pair *more = arena_take(&r->arena, grown * sizeof *more);
        if (!more)
            return run_no_memory(r);
        if (d->count > 0)
            memcpy(more, d->at, d->count * sizeof *more);
        d->at = more;
        d->capacity = grown;
    }
    d->at[d->count++] = (struct pair){*key, *v};
    return 0;
}

/* ---- walking ---- */

static int letters(struct run *r, const struct value *v, struct list **out)
{
    uint32_t cp;
    TRY(list_make(r, v->bytes, out));
    for (size_t at = 0, n; at < v->bytes; at += n) {
        n = utf8_next((const unsigned char *)v->text + at, v->bytes - at, &cp);
        TRY(list_add(r, *out, value_text(v->text + at, n)));
    }
    return 0;
}

static int keys(struct run *r, const struct dict *d, struct list **out)
{
    TRY(list_make(r, d->count, out));
    for (size_t i = 0; i < d->count; i++)
        TRY(list_add(r, *out, d->at[i].key));
    return 0;
}

/* Take all remaining items of a generator, which gives each once. */
static int take_all(struct run *r, struct list *from, struct list **out)
{
    TRY(list_make(r, 0, out));
    **out = *from;
    (*out)->capacity = from->count; /* added items go elsewhere */
    if (!from->view)
        from->count = 0;
    return 0;
}

/* Make a list of the items of a loop that are still to come. */
static int rest_of(struct run *r, struct loop *loop, struct list **out)
{
    int rc = list_make(r, 0, out);
    for (loop->at++; loop->at < loop->items->count && rc == 0; loop->at++)
        rc = list_add(r, *out, loop->items->at[loop->at]);
    return rc;
}

int value_items(struct run *r, const struct value *v, struct list **out)
{
    TRY(run_spend(r, 0));
    switch (v->kind) {
    case VALUE_UNDEFINED:
        return list_make(r, 0, out);
    case VALUE_STRING:
        return letters(r, v, out);
    case VALUE_LIST:
    case VALUE_TUPLE:
        *out = v->list;
        return 0;
    case VALUE_ITERATOR:
        return take_all(r, v->list, out);
    case VALUE_DICT:
        return keys(r, v->dict, out);
    case VALUE_LOOP:
        return rest_of(r, v->loop, out);
    default:
        return run_type_error(r, "it cannot be iterated over", v);
    }
}

int value_length(struct run *r, const struct value *v, size_t *out)
{
    uint32_t cp;
    *out = 0;
    switch (v->kind) {
    case VALUE_UNDEFINED:
        return 0;
    case VALUE_STRING:
        for (size_t at = 0; at < v->bytes; ++*out)
            at += utf8_next((const unsigned char *)v->text + at, v->bytes - at, &cp);
        return run_spend(r, v->bytes);
    case VALUE_DICT:
        *out = v->dict->count;
        return 0;
    case VALUE_LOOP:
        *out = v->loop->items->count;
        return 0;
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_ITERATOR:
        *out = v->list->count;
        if (v->kind != VALUE_ITERATOR || v->list->view)
            return 0;
        break;
    default:
        break;
    }
    return run_type_error(r, "it has no length", v);
}

int value_contains(struct run *r, const struct value *v, const struct value *item, bool *out)
{
    struct list *list;
    *out = false;
    if (v->kind == VALUE_STRING) {
        if (item->kind != VALUE_STRING)
            return run_type_error(r, "only a string can be in a string", item);
        *out = item->bytes == 0 || memmem(v->text, v->bytes, item->text, item->bytes);
        return run_spend(r, v->bytes);
    }
    if (v->kind == VALUE_DICT) {
        if (item->kind == VALUE_LIST || item->kind == VALUE_DICT)
            return run_type_error(r, "it cannot be a key", item);
        *out = dict_find(r, v->dict, item) != NULL;
        return run_spend(r, v->dict->count);
    }
    TRY(value_items(r, v, &list));
    for (size_t i = 0; i < list->count && !*out; i++)
        *out = value_equal(r, &list->at[i], item);
    return run_spend(r, 0);
}
