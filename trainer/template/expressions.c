/* SPDX-License-Identifier: Apache-2.0
 *
 * expressions.c: see evaluate.h: the value of an expression.
 */
#include "template/evaluate.h"

#include "io/error.h"
#include "template/builtins.h"
#include "template/write.h"

/* ---- names and literals ---- */

static int constant(struct run *r, const struct node *n, struct value *out)
{
    (void)r;
    *out = n->value;
    return 0;
}

static int name(struct run *r, const struct node *n, struct value *out)
{
    const struct value *found = scope_find(r->scope, n->name);
    *out = found ? *found : value_undefined(n->name, strlen(n->name));
    return 0;
}

static int list(struct run *r, const struct node *n, struct value *out)
{
    struct list *made;
    int rc = list_make(r, n->items.count, &made);
    for (size_t i = 0; i < n->items.count && rc == 0; i++) {
        struct value item;
        rc = evaluate(r, n->items.at[i], &item);
        if (rc == 0)
            rc = list_add(r, made, item);
    }
    *out = value_list(n->kind == NODE_LIST ? VALUE_LIST : VALUE_TUPLE, made);
    return rc;
}

static int dict(struct run *r, const struct node *n, struct value *out)
{
    struct dict *made;
    int rc = dict_make(r, n->items.count / 2, &made);
    for (size_t i = 0; i < n->items.count && rc == 0; i += 2) {
        struct value key, v;
        rc = evaluate(r, n->items.at[i], &key);
        if (rc == 0)
            rc = evaluate(r, n->items.at[i + 1], &v);
        if (rc == 0)
            rc = dict_set(r, made, &key, &v);
    }
    *out = (struct value){.kind = VALUE_DICT, .dict = made};
    return rc;
}

/* ---- operators ---- */

static int unary(struct run *r, const struct node *n, struct value *out)
{
    struct value v;
    const struct value zero = value_int(0);
    TRY(evaluate(r, n->a, &v));
    if (!value_is_number(&v))
        return run_type_error(r, "it has no sign", &v);
    if (v.kind == VALUE_FLOAT) {
        *out = value_float(n->op == OP_SUB ? -v.real : v.real);
        return 0;
    }
    return operate(r, n->op, &zero, &v, out);
}

static int negation(struct run *r, const struct node *n, struct value *out)
{
    struct value v;
    const int rc = evaluate(r, n->a, &v);
    *out = value_bool(rc == 0 && !value_truth(&v));
    return rc;
}

/* Evaluate `and` and `or`; the result is the operand that decides. */
static int logic(struct run *r, const struct node *n, struct value *out)
{
    const int rc = evaluate(r, n->a, out);
    if (rc != 0 || value_truth(out) == (n->kind == NODE_OR))
        return rc;
    return evaluate(r, n->b, out);
}

static int binary(struct run *r, const struct node *n, struct value *out)
{
    struct value a, b;
    int rc = evaluate(r, n->a, &a);
    if (rc == 0)
        rc = evaluate(r, n->b, &b);
    r->line = n->line;
    return rc != 0 ? rc : operate(r, n->op, &a, &b, out);
}

static int concat(struct run *r, const struct node *n, struct value *out)
{
    int rc = 0;
    const size_t from = run_capture(r);
    for (size_t i = 0; i < n->items.count && rc == 0; i++) {
        struct value v;
        rc = evaluate(r, n->items.at[i], &v);
        if (rc == 0)
            rc = write_str(r, &v);
    }
    return run_captured(r, from, rc, out);
}

static int compare_two(struct run *r, enum operation op, const struct value *a,
                       const struct value *b, bool *out)
{
    int order, rc = 0;
    switch (op) {
    case OP_EQ:
    case OP_NE:
        *out = value_equal(r, a, b) == (op == OP_EQ);
        return run_spend(r, 0);
    case OP_IN:
    case OP_NOT_IN:
        rc = value_contains(r, b, a, out);
        *out = *out == (op == OP_IN);
        return rc;
    default:
        rc = value_order(r, a, b, &order);
        *out = rc == 0 && (op == OP_LT   ? order < 0
                           : op == OP_LE ? order <= 0
                           : op == OP_GT ? order > 0
                                         : order >= 0);
        return rc;
    }
}

/* Evaluate a comparison; a < b < c requires both parts. */
static int comparison(struct run *r, const struct node *n, struct value *out)
{
    struct value a, b;
    bool holds = true;
    int rc = evaluate(r, n->a, &a);
    for (size_t i = 0; i < n->items.count && rc == 0 && holds; i++) {
        rc = evaluate(r, n->items.at[i]->a, &b);
        r->line = n->line;
        if (rc == 0)
            rc = compare_two(r, n->items.at[i]->op, &a, &b, &holds);
        a = b;
    }
    *out = value_bool(holds);
    return rc;
}

static int condition(struct run *r, const struct node *n, struct value *out)
{
    struct value v;
    TRY(evaluate(r, n->a, &v));
    if (value_truth(&v))
        return evaluate(r, n->b, out);
    *out = value_undefined("an if without else", 18);
    return n->c ? evaluate(r, n->c, out) : 0;
}

/* ---- attributes and items ---- */

static int attribute(struct run *r, const struct node *n, struct value *out)
{
    struct value a;
    const int rc = evaluate(r, n->a, &a);
    r->line = n->line;
    return rc != 0 ? rc : get_attribute(r, &a, n->name, strlen(n->name), true, out);
}

static int item(struct run *r, const struct node *n, struct value *out)
{
    struct value a, key;
    int rc = evaluate(r, n->a, &a);
    if (rc == 0)
        rc = evaluate(r, n->b, &key);
    r->line = n->line;
    return rc != 0 ? rc : get_item(r, &a, &key, out);
}

static int slice(struct run *r, const struct node *n, struct value *out)
{
    struct value a, ends[3] = {0};
    const struct node *parts[] = {n->b, n->c, n->items.count ? n->items.at[0] : NULL};
    int rc = evaluate(r, n->a, &a);
    for (int i = 0; i < 3 && rc == 0; i++)
        if (parts[i])
            rc = evaluate(r, parts[i], &ends[i]);
    r->line = n->line;
    return rc != 0 ? rc : get_slice(r, &a, &ends[0], &ends[1], &ends[2], out);
}

/* ---- calls ---- */

struct collected {
    struct list *by_place;
    struct dict *by_name;
};

static int add_named(struct run *r, struct collected *c, const struct value *key,
                     const struct value *v)
{
    if (key->kind != VALUE_STRING)
        return run_type_error(r, "the name of an argument must be a string", key);
    if (dict_find(r, c->by_name, key))
        return run_fail(r, "the argument %.*s is given twice",
                        (int)(key->bytes > 64 ? 64 : key->bytes), key->text);
    return dict_set(r, c->by_name, key, v);
}

static int add_argument(struct run *r, struct collected *c, const struct node *n,
                        const struct value *v)
{
    struct list *items;
    int rc = 0;
    const struct value key = value_c_text(n->kind == NODE_NAMED ? n->name : "");
    switch (n->kind) {
    case NODE_NAMED:
        return add_named(r, c, &key, v);
    case NODE_SPREAD:
        rc = value_items(r, v, &items);
        for (size_t i = 0; rc == 0 && i < items->count; i++)
            rc = list_add(r, c->by_place, items->at[i]);
        return rc;
    case NODE_SPREAD_ALL:
        if (v->kind != VALUE_DICT)
            return run_type_error(r, "** needs a dict", v);
        for (size_t i = 0; i < v->dict->count && rc == 0; i++)
            rc = add_named(r, c, &v->dict->at[i].key, &v->dict->at[i].value);
        return rc;
    default:
        return list_add(r, c->by_place, *v);
    }
}

/* Append evaluated arguments to those already there. */
static int collect(struct run *r, const struct nodes *items, struct collected *c)
{
    for (size_t i = 0; i < items->count; i++) {
        const struct node *n = items->at[i];
        struct value v;
        TRY(evaluate(r, n->kind < EXPRESSIONS ? n : n->a, &v));
        TRY(add_argument(r, c, n, &v));
    }
    return 0;
}

static int collected_make(struct run *r, size_t places, size_t names, struct collected *out)
{
    TRY(list_make(r, places, &out->by_place));
    return dict_make(r, names, &out->by_name);
}

static struct arguments collected_arguments(const struct collected *c)
{
    return (struct arguments){c->by_place->at, c->by_place->count, c->by_name->at,
                              c->by_name->count};
}

int evaluate_arguments(struct run *r, const struct nodes *items, const struct pair *more,
                       struct arguments *out)
{
    struct collected c;
    TRY(collected_make(r, items->count, 0, &c));
    TRY(collect(r, items, &c));
    if (more)
        TRY(add_named(r, &c, &more->key, &more->value));
    *out = collected_arguments(&c);
    return 0;
}

static int call(struct run *r, const struct node *n, struct value *out)
{
    struct value callee;
    struct arguments a;
    int rc = evaluate(r, n->a, &callee);
    if (rc == 0)
        rc = evaluate_arguments(r, &n->items, NULL, &a);
    r->line = n->line;
    return rc != 0 ? rc : r->call(r, &callee, &a, out);
}

/* Apply a filter or a test to a value. */
static int apply(struct run *r, const struct node *n, const struct value *v, struct value *out)
{
    struct collected c;
    TRY(n->function ? collected_make(r, n->items.count + 1, 0, &c)
                    : run_fail(r, "there is no filter or test named %s", n->name));
    TRY(list_add(r, c.by_place, *v));
    TRY(collect(r, &n->items, &c));
    const struct arguments a = collected_arguments(&c);
    r->line = n->line;
    return builtin_call(r, n->function, &a, out);
}

static int filter(struct run *r, const struct node *n, struct value *out)
{
    struct value v;
    const int rc = evaluate(r, n->a, &v);
    r->line = n->line;
    return rc != 0 ? rc : apply(r, n, &v, out);
}

static int test(struct run *r, const struct node *n, struct value *out)
{
    TRY(filter(r, n, out));
    if (n->flag)
        *out = value_bool(!value_truth(out));
    return 0;
}

int evaluate_filters(struct run *r, const struct node *n, const struct value *piped,
                     struct value *out)
{
    struct value before = *piped;
    if (n->a)
        TRY(evaluate_filters(r, n->a, piped, &before));
    return apply(r, n, &before, out);
}

int evaluate(struct run *r, const struct node *n, struct value *out)
{
    static int (*const kinds[EXPRESSIONS])(struct run * r, const struct node *n,
                                           struct value *out) = {
        [NODE_CONSTANT] = constant,   [NODE_NAME] = name,           [NODE_LIST] = list,
        [NODE_TUPLE] = list,          [NODE_DICT] = dict,           [NODE_UNARY] = unary,
        [NODE_NOT] = negation,        [NODE_AND] = logic,           [NODE_OR] = logic,
        [NODE_BINARY] = binary,       [NODE_CONCAT] = concat,       [NODE_COMPARE] = comparison,
        [NODE_CONDITION] = condition, [NODE_ATTRIBUTE] = attribute, [NODE_ITEM] = item,
        [NODE_SLICE] = slice,         [NODE_CALL] = call,           [NODE_FILTER] = filter,
        [NODE_TEST] = test,
    };
    TRY(run_enter(r));
    r->line = n->line;
    const int rc = kinds[n->kind](r, n, out);
    run_leave(r);
    return rc;
}
