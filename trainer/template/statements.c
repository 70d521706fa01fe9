/* SPDX-License-Identifier: Apache-2.0
 *
 * statements.c: see evaluate.h: execution of statements and their output.
 */
#include "template/evaluate.h"

#include "base/grow.h"
#include "io/error.h"
#include "template/template.h"
#include "template/write.h"

#include <stdlib.h>

/* Run a body with its own scope. */
static int execute_inside(struct run *r, const struct nodes *body)
{
    struct scope *around = r->scope;
    int rc = scope_make(r, around, &r->scope);
    if (rc == 0)
        rc = execute(r, body);
    r->scope = around;
    return rc;
}

static int text(struct run *r, const struct node *n)
{
    return run_write(r, n->value.text, n->value.bytes);
}

static int output(struct run *r, const struct node *n)
{
    struct value v;
    TRY(evaluate(r, n->a, &v));
    return write_str(r, &v);
}

static int branch(struct run *r, const struct node *n)
{
    struct value v;
    TRY(evaluate(r, n->a, &v));
    return execute(r, value_truth(&v) ? &n->body : &n->other);
}

/* ---- loops ---- */

/* Keep the items for which the loop's condition holds. */
static int choose_items(struct run *r, const struct node *n, struct list **items)
{
    struct list *kept;
    struct scope *around = r->scope;
    int rc = list_make(r, 0, &kept);
    if (rc == 0)
        rc = scope_make(r, around, &r->scope);
    for (size_t i = 0; rc == 0 && i < (*items)->count; i++) {
        struct value holds;
        r->scope->count = 0;
        rc = scope_assign(r, n->a, &(*items)->at[i]);
        if (rc == 0)
            rc = evaluate(r, n->c, &holds);
        if (rc == 0 && value_truth(&holds))
            rc = list_add(r, kept, (*items)->at[i]);
    }
    r->scope = around;
    *items = kept;
    return rc;
}

/* Run the body for the current item; *on: whether the loop continues. */
static int turn(struct run *r, const struct node *n, struct loop *loop, const char *loop_name,
                bool *on)
{
    const struct value state = {.kind = VALUE_LOOP, .loop = loop};
    r->scope->count = 0;
    int rc = loop_name ? scope_set(r, r->scope, loop_name, &state) : 0;
    if (rc == 0)
        rc = scope_assign(r, n->a, &loop->items->at[loop->at]);
    if (rc == 0)
        rc = execute(r, &n->body);
    *on = r->flow != FLOW_BREAK;
    r->flow = FLOW_ON;
    return rc;
}

int execute_loop(struct run *r, const struct node *n, struct scope *around, struct list *items,
                 int depth)
{
    struct scope *before = r->scope;
    const char *loop_name = syntax_find_name(r->template, "loop", 4);
    struct loop *loop = arena_zero(&r->arena, sizeof *loop);
    bool on = true;
    int rc = 0;
    if (!loop)
        return run_no_memory(r);
    r->scope = around;
    if (n->c)
        rc = choose_items(r, n, &items);
    *loop = (struct loop){.items = items, .depth = depth, .node = n, .scope = around};
    const bool empty = rc == 0 && items->count == 0;
    if (rc == 0 && !empty)
        rc = scope_make(r, around, &r->scope);
    for (; rc == 0 && on && loop->at < loop->items->count; loop->at++)
        rc = turn(r, n, loop, loop_name, &on);
    if (empty)
        rc = execute_inside(r, &n->other);
    r->scope = before;
    return rc;
}

static int loop_over(struct run *r, const struct node *n)
{
    struct value v;
    struct list *items;
    int rc = evaluate(r, n->b, &v);
    r->line = n->line;
    if (rc == 0)
        rc = value_items(r, &v, &items);
    return rc != 0 ? rc : execute_loop(r, n, r->scope, items, 1);
}

static int leave(struct run *r, const struct node *n)
{
    r->flow = n->kind == NODE_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
    return 0;
}

/* ---- names ---- */

static int set(struct run *r, const struct node *n)
{
    struct value v;
    TRY(evaluate(r, n->b, &v));
    return scope_assign(r, n->a, &v);
}

/* Make a value of the body's output, through the filters of the block. */
static int capture(struct run *r, const struct node *n, struct value *out)
{
    struct value made;
    const size_t from = run_capture(r);
    int rc = run_captured(r, from, execute_inside(r, &n->body), &made);
    *out = made;
    return rc != 0 || !n->b ? rc : evaluate_filters(r, n->b, &made, out);
}

static int set_block(struct run *r, const struct node *n)
{
    struct value v;
    TRY(capture(r, n, &v));
    return scope_assign(r, n->a, &v);
}

static int filter_block(struct run *r, const struct node *n)
{
    struct value v;
    TRY(capture(r, n, &v));
    return write_str(r, &v);
}

/* Run a `with` block, whose values are evaluated in the surrounding scope. */
static int with(struct run *r, const struct node *n)
{
    struct scope *around = r->scope, *inside;
    int rc = scope_make(r, around, &inside);
    for (size_t i = 0; i < n->items.count && rc == 0; i += 2) {
        struct value v;
        r->scope = around;
        rc = evaluate(r, n->items.at[i + 1], &v);
        r->scope = inside;
        if (rc == 0)
            rc = scope_assign(r, n->items.at[i], &v);
    }
    r->scope = inside;
    if (rc == 0)
        rc = execute(r, &n->body);
    r->scope = around;
    return rc;
}

/* ---- macros ---- */

static int macro_make(struct run *r, const struct node *n, struct value *out)
{
    struct macro *m = arena_take(&r->arena, sizeof *m);
    if (!m)
        return run_no_memory(r);
    *m = (struct macro){n, r->scope};
    *out = (struct value){.kind = VALUE_MACRO, .macro = m};
    return 0;
}

static int macro(struct run *r, const struct node *n)
{
    struct value v;
    TRY(macro_make(r, n, &v));
    return scope_set(r, r->scope, n->name, &v);
}

/* Call a macro with the block as its `caller`. */
static int call_block(struct run *r, const struct node *n)
{
    struct value callee, written;
    struct pair caller = {.key = value_c_text("caller")};
    struct arguments a;
    int rc = evaluate(r, n->a->a, &callee);
    if (rc == 0)
        rc = macro_make(r, n, &caller.value);
    if (rc == 0)
        rc = evaluate_arguments(r, &n->a->items, &caller, &a);
    r->line = n->line;
    if (rc == 0)
        rc = r->call(r, &callee, &a, &written);
    return rc != 0 ? rc : write_str(r, &written);
}

/* ---- text of the assistant ---- */

static int add_span(struct run *r, size_t begin, size_t end)
{
    struct template_text *t = r->out;
    if (!GROW(t->span, t->span_capacity, t->spans + 1))
        return run_no_memory(r);
    t->span[t->spans++] = (struct template_span){begin, end};
    return 0;
}

static int generation(struct run *r, const struct node *n)
{
    const size_t begin = r->out->bytes;
    const int rc = execute_inside(r, &n->body);
    r->out->spans_unknown = r->out->spans_unknown || r->captures > 0;
    return rc != 0 || r->captures > 0 ? rc : add_span(r, begin, r->out->bytes);
}

static int inside(struct run *r, const struct node *n)
{
    return execute_inside(r, &n->body);
}

static int statement(struct run *r, const struct node *n)
{
    static int (*const kinds[NODES])(struct run * r, const struct node *n) = {
        [NODE_TEXT] = text,
        [NODE_OUTPUT] = output,
        [NODE_IF] = branch,
        [NODE_FOR] = loop_over,
        [NODE_SET] = set,
        [NODE_SET_BLOCK] = set_block,
        [NODE_MACRO] = macro,
        [NODE_CALL_BLOCK] = call_block,
        [NODE_FILTER_BLOCK] = filter_block,
        [NODE_WITH] = with,
        [NODE_BREAK] = leave,
        [NODE_CONTINUE] = leave,
        [NODE_GENERATION] = generation,
        [NODE_SCOPE] = inside,
    };
    TRY(run_enter(r));
    r->line = n->line;
    const int rc = kinds[n->kind](r, n);
    run_leave(r);
    return rc;
}

int execute(struct run *r, const struct nodes *body)
{
    for (size_t i = 0; i < body->count && r->flow == FLOW_ON; i++)
        TRY(statement(r, body->at[i]));
    return 0;
}
