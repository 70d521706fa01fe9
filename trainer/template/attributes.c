/* SPDX-License-Identifier: Apache-2.0
 *
 * attributes.c: a.name and a[key]. A name is looked up as an attribute first, then as a key; a
 * key the other way round. Methods that would change a list or a dict are absent, as in the
 * sandbox of jinja2.
 */
#include "template/builtins.h"

#include "io/error.h"
#include "template/letters.h"
#include "template/syntax.h"

#include <stdlib.h>

/* ---- loops ---- */

static struct value item_of(const struct loop *l, int64_t at, const char *name)
{
    if (at < 0 || (size_t)at >= l->items->count)
        return value_undefined(name, strlen(name));
    return l->items->at[at];
}

static bool loop_attribute(const struct loop *l, const char *name, struct value *out)
{
    const int64_t at = (int64_t)l->at, count = (int64_t)l->items->count;
    const struct {
        const char *name;
        struct value value;
    } all[] = {
        {"index", value_int(at + 1)},
        {"index0", value_int(at)},
        {"first", value_bool(at == 0)},
        {"last", value_bool(at + 1 == count)},
        {"length", value_int(count)},
        {"revindex", value_int(count - at)},
        {"revindex0", value_int(count - at - 1)},
        {"depth", value_int(l->depth)},
        {"depth0", value_int(l->depth - 1)},
        {"previtem", item_of(l, at - 1, "previtem")},
        {"nextitem", item_of(l, at + 1, "nextitem")},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i].value;
            return true;
        }
    return false;
}

/* ---- methods ---- */

static const struct builtin *find_method(const struct value *a, const char *name, size_t bytes)
{
    size_t count;
    const struct builtin *table = methods_of(a->kind, &count);
    const struct builtin *found = builtin_among(table, count, name, bytes);
    if (found || a->kind != VALUE_STRING)
        return found;
    table = methods_split(&count);
    return builtin_among(table, count, name, bytes);
}

/* Find an attribute of `a`; a key of a dict is not an attribute. */
static int find_attribute(struct run *r, const struct value *a, const char *name, size_t bytes,
                          struct value *out, bool *found)
{
    const struct builtin *function = find_method(a, name, bytes);
    *found = true;
    if (function) {
        struct method *m = arena_take(&r->arena, sizeof *m);
        if (!m)
            return run_no_memory(r);
        *m = (struct method){*a, function};
        *out = (struct value){.kind = VALUE_METHOD, .method = m};
        return 0;
    }
    if (method_left_out(a->kind == VALUE_BOOL ? VALUE_INT : a->kind, name))
        return run_fail(r, "%s of a value of type %s is not supported", name, value_type(a));
    if (a->kind == VALUE_LOOP && loop_attribute(a->loop, name, out))
        return 0;
    if (a->kind == VALUE_TUPLE && a->list->group &&
        (strcmp(name, "grouper") == 0 || strcmp(name, "list") == 0)) {
        *out = a->list->at[strcmp(name, "list") == 0];
        return 0;
    }
    if (a->kind == VALUE_MACRO && strcmp(name, "name") == 0 && a->macro->node->name) {
        *out = value_c_text(a->macro->node->name);
        return 0;
    }
    const struct value *value =
        a->kind == VALUE_NAMESPACE ? dict_find_text(a->dict, name, bytes) : NULL;
    *found = value != NULL;
    if (value)
        *out = *value;
    return 0;
}

int get_attribute(struct run *r, const struct value *a, const char *name, size_t bytes, bool keys,
                  struct value *out)
{
    bool found;
    if (a->kind == VALUE_UNDEFINED)
        return run_type_error(r, "so it has no attributes", a);
    const int rc = find_attribute(r, a, name, bytes, out, &found);
    if (rc != 0 || found)
        return rc;
    const struct value *value =
        keys && a->kind == VALUE_DICT ? dict_find_text(a->dict, name, bytes) : NULL;
    *out = value ? *value : value_undefined(name, bytes);
    return 0;
}

/* ---- items ---- */

/* Return the item's index, counted from the end if it is negative; -1: there is none. */
static int64_t place_of(int64_t at, size_t count)
{
    const int64_t place = at < 0 ? at + (int64_t)count : at;
    return place < 0 || place >= (int64_t)count ? -1 : place;
}

static int letter_at(struct run *r, const struct value *text, int64_t at, struct value *out)
{
    const int64_t place = place_of(at, letters_count(text->text, text->bytes));
    if (place < 0)
        return run_spend(r, text->bytes);
    const size_t from = letters_offset(text->text, text->bytes, (size_t)place);
    const size_t bytes = letters_offset(text->text + from, text->bytes - from, 1);
    *out = value_text(text->text + from, bytes);
    out->markup = text->markup;
    return run_spend(r, text->bytes);
}

int get_item(struct run *r, const struct value *a, const struct value *key, struct value *out)
{
    bool found = false;
    if (a->kind == VALUE_UNDEFINED)
        return run_type_error(r, "so it has no items", a);
    *out = value_undefined("an item", 7);
    if (key->kind == VALUE_STRING)
        *out = value_undefined(key->text, key->bytes);
    if (a->kind == VALUE_DICT) {
        const struct value *value = dict_find(r, a->dict, key);
        if (value) {
            *out = *value;
            return run_spend(r, a->dict->count);
        }
    }
    if (value_is_whole(key) && a->kind == VALUE_STRING)
        return letter_at(r, a, key->whole, out);
    if (value_is_whole(key) && (a->kind == VALUE_LIST || a->kind == VALUE_TUPLE)) {
        const int64_t place = place_of(key->whole, a->list->count);
        if (place >= 0)
            *out = a->list->at[place];
        return 0;
    }
    if (key->kind != VALUE_STRING)
        return 0;
    struct value attribute;
    const char *name = syntax_find_name(r->template, key->text, key->bytes);
    const char *copy = name ? name : arena_copy(&r->arena, key->text, key->bytes);
    if (!copy)
        return run_no_memory(r);
    TRY(find_attribute(r, a, copy, key->bytes, &attribute, &found));
    if (found)
        *out = attribute;
    return 0;
}

/* ---- paths ---- */

/* Convert a part of a path to a key; a number is an index. */
static struct value path_part(const char *text, size_t bytes)
{
    char digits[20];
    bool whole = bytes > 0 && bytes < sizeof digits - 1;
    for (size_t i = 0; i < bytes && whole; i++)
        whole = text[i] >= '0' && text[i] <= '9';
    if (!whole)
        return value_text(text, bytes);
    memcpy(digits, text, bytes);
    digits[bytes] = '\0';
    return value_int(strtoll(digits, NULL, 10));
}

int get_path(struct run *r, const struct value *a, const struct value *path, struct value *out)
{
    int rc = 0;
    *out = *a;
    if (path->kind != VALUE_STRING)
        return path->kind == VALUE_NONE || path->kind == VALUE_ABSENT ? 0
                                                                      : get_item(r, a, path, out);
    for (size_t at = 0; at <= path->bytes && rc == 0;) {
        const char *point = memchr(path->text + at, '.', path->bytes - at);
        const size_t end = point ? (size_t)(point - path->text) : path->bytes;
        const struct value from = *out, part = path_part(path->text + at, end - at);
        rc = get_item(r, &from, &part, out);
        at = end + 1;
    }
    return rc;
}
