/* SPDX-License-Identifier: Apache-2.0
 *
 * scope.c: names and their values. Loops, macros and captured blocks have scopes of their own;
 * names set there are gone after them.
 */
#include "template/evaluate.h"

#include "io/error.h"

int scope_make(struct run *r, struct scope *parent, struct scope **out)
{
    *out = arena_zero(&r->arena, sizeof **out);
    if (!*out)
        return run_no_memory(r);
    (*out)->parent = parent;
    return 0;
}

int scope_set(struct run *r, struct scope *s, const char *name, const struct value *v)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i].name == name) {
            s->at[i].value = *v;
            return 0;
        }
    if (s->count == s->capacity) {
        const size_t grown = 2 * s->capacity + 4;
        struct binding *more = arena_take(&r->arena, grown * sizeof *more);
        if (!more)
            return run_no_memory(r);
        if (s->count > 0)
            memcpy(more, s->at, s->count * sizeof *more);
        s->at = more;
        s->capacity = grown;
    }
    s->at[s->count++] = (struct binding){name, *v};
    return run_spend(r, s->count);
}

const struct value *scope_find(const struct scope *s, const char *name)
{
    for (; s; s = s->parent)
        for (size_t i = 0; i < s->count; i++)
            if (s->at[i].name == name)
                return &s->at[i].value;
    return NULL;
}

static int assign_attribute(struct run *r, const struct node *target, const struct value *v)
{
    const struct value *object = scope_find(r->scope, target->a->name);
    const struct value key = value_c_text(target->name);
    if (!object || object->kind != VALUE_NAMESPACE)
        return run_fail(r, "%s is not a namespace, so its attributes cannot be set",
                        target->a->name);
    if (target->name[0] == '_')
        return run_fail(r, "an attribute of a namespace begins with an underscore");
    return dict_set(r, object->dict, &key, v);
}

static int assign_items(struct run *r, const struct node *target, const struct value *v)
{
    struct list *list;
    TRY(value_items(r, v, &list));
    if (list->count != target->items.count)
        return run_fail(r, "%zu values for %zu names", list->count, target->items.count);
    for (size_t i = 0; i < list->count; i++)
        TRY(scope_assign(r, target->items.at[i], &list->at[i]));
    return 0;
}

int scope_assign(struct run *r, const struct node *target, const struct value *v)
{
    r->line = target->line;
    if (target->kind == NODE_NAME)
        return scope_set(r, r->scope, target->name, v);
    return target->kind == NODE_TUPLE ? assign_items(r, target, v) : assign_attribute(r, target, v);
}
