/* SPDX-License-Identifier: Apache-2.0
 *
 * calls.c: see evaluate.h: calls of macros and of other callable values.
 */
#include "template/evaluate.h"

#include "io/error.h"
#include "template/builtins.h"

/* ---- macros ---- */

static const struct value *named(const struct arguments *a, const char *name)
{
    for (size_t i = 0; i < a->named_count; i++)
        if (value_is_text(&a->named[i].key, name))
            return &a->named[i].value;
    return NULL;
}

/* Bind one parameter to an argument by its position or name, to its default, or to nothing. */
static int bind_parameter(struct run *r, const struct node *n, size_t i, const struct arguments *a)
{
    const char *name = n->items.at[i]->name;
    const struct value *by_name = named(a, name);
    const size_t defaults = n->items.count - n->other.count;
    struct value v = value_undefined(name, strlen(name));
    int rc = 0;
    if (i < a->count && by_name)
        return run_fail(r, "%s() is given its argument %s twice", n->name ? n->name : "caller",
                        name);
    if (i < a->count)
        v = a->at[i];
    else if (by_name)
        v = *by_name;
    else if (i >= defaults)
        rc = evaluate(r, n->other.at[i - defaults], &v);
    return rc != 0 ? rc : scope_set(r, r->scope, name, &v);
}

/* Set a special name of the macro, unless the template never uses it. */
static int set_special(struct run *r, const char *name, const struct value *v)
{
    const char *known = syntax_find_name(r->template, name, strlen(name));
    return known ? scope_set(r, r->scope, known, v) : 0;
}

static int bind_rest(struct run *r, const struct node *n, const struct arguments *a)
{
    struct list *rest;
    const size_t taken = n->items.count < a->count ? n->items.count : a->count;
    if (a->count > taken && !n->varargs)
        return run_fail(r, "%s() takes %zu argument(s), it has %zu", n->name ? n->name : "caller",
                        n->items.count, a->count);
    int rc = list_make(r, 0, &rest);
    for (size_t i = taken; i < a->count && rc == 0; i++)
        rc = list_add(r, rest, a->at[i]);
    const struct value v = value_list(VALUE_TUPLE, rest);
    return rc != 0 ? rc : set_special(r, "varargs", &v);
}

static bool is_parameter(const struct node *n, const struct value *name)
{
    for (size_t i = 0; i < n->items.count; i++)
        if (value_is_text(name, n->items.at[i]->name))
            return true;
    return false;
}

static int bind_named_rest(struct run *r, const struct node *n, const struct arguments *a)
{
    struct dict *rest;
    TRY(dict_make(r, 0, &rest));
    for (size_t i = 0; i < a->named_count; i++) {
        const struct value *name = &a->named[i].key;
        if (is_parameter(n, name) || value_is_text(name, "caller"))
            continue;
        TRY(n->kwargs ? dict_set(r, rest, name, &a->named[i].value)
                      : run_fail(r, "%s() has no argument %.*s", n->name ? n->name : "caller",
                                 (int)(name->bytes > 64 ? 64 : name->bytes), name->text));
    }
    const struct value v = {.kind = VALUE_DICT, .dict = rest};
    return set_special(r, "kwargs", &v);
}

static int bind_all(struct run *r, const struct node *n, const struct arguments *a)
{
    const struct value *caller = named(a, "caller");
    const struct value none = value_undefined("caller", 6);
    int rc = 0;
    if (n->kind == NODE_MACRO)
        rc = set_special(r, "caller", caller ? caller : &none);
    if (rc == 0)
        rc = bind_rest(r, n, a);
    if (rc == 0)
        rc = bind_named_rest(r, n, a);
    for (size_t i = 0; i < n->items.count && rc == 0; i++)
        rc = bind_parameter(r, n, i, a);
    return rc;
}

static int call_macro(struct run *r, const struct macro *m, const struct arguments *a,
                      struct value *out)
{
    struct scope *around = r->scope;
    const size_t from = run_capture(r);
    int rc = scope_make(r, m->scope, &r->scope);
    if (rc == 0)
        rc = bind_all(r, m->node, a);
    if (rc == 0)
        rc = execute(r, &m->node->body);
    r->scope = around;
    return run_captured(r, from, rc, out);
}

/* ---- other callable values ---- */

static int call_method(struct run *r, const struct method *m, const struct arguments *a,
                       struct value *out)
{
    struct list *all;
    TRY(list_make(r, a->count + 1, &all));
    TRY(list_add(r, all, m->self));
    for (size_t i = 0; i < a->count; i++)
        TRY(list_add(r, all, a->at[i]));
    const struct arguments with_self = {all->at, all->count, a->named, a->named_count};
    return builtin_call(r, m->function, &with_self, out);
}

/* Run a recursive loop over other items. */
static int call_loop(struct run *r, const struct loop *loop, const struct arguments *a,
                     struct value *out)
{
    struct list *items;
    if (!loop->node->flag)
        return run_fail(r, "loop() is called in a loop that is not recursive");
    if (a->count != 1 || a->named_count > 0)
        return run_fail(r, "loop() takes one argument, the items to walk");
    int rc = value_items(r, &a->at[0], &items);
    const size_t from = run_capture(r);
    if (rc == 0)
        rc = execute_loop(r, loop->node, loop->scope, items, loop->depth + 1);
    return run_captured(r, from, rc, out);
}

static int call_joiner(struct run *r, struct cycler *c, struct value *out)
{
    *out = c->next ? c->at[0] : value_text("", 0);
    c->next = 1;
    return run_spend(r, 0);
}

int call_value(struct run *r, const struct value *callee, const struct arguments *a,
               struct value *out)
{
    switch (callee->kind) {
    case VALUE_FUNCTION:
        return builtin_call(r, callee->function, a, out);
    case VALUE_METHOD:
        return call_method(r, callee->method, a, out);
    case VALUE_MACRO:
        return call_macro(r, callee->macro, a, out);
    case VALUE_LOOP:
        return call_loop(r, callee->loop, a, out);
    case VALUE_JOINER:
        return call_joiner(r, callee->cycler, out);
    default:
        return run_type_error(r, "it cannot be called", callee);
    }
}
