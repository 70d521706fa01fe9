/* SPDX-License-Identifier: Apache-2.0
 *
 * parse.c: statements.
 */
#include "template/syntax.h"

#include "io/error.h"

static int parse_body(struct parser *p, const char *const *ends, struct nodes *out);

static int end_of_tag(struct parser *p)
{
    if (p->token->kind != TOKEN_BLOCK_END)
        return parser_unexpected(p, "%}");
    p->token++;
    return 0;
}

/* Parse up to {% END %}, which is consumed. */
static int parse_block(struct parser *p, const char *end, struct nodes *out)
{
    const char *const ends[] = {end, NULL};
    TRY(end_of_tag(p));
    TRY(parse_body(p, ends, out));
    p->token++;
    return end_of_tag(p);
}

/* ---- targets ---- */

/* Refuse names that are constants. */
static int check_name(const struct parser *p, const char *name, int line)
{
    static const char *const words[] = {"true", "True", "false", "False", "none", "None"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0)
            return syntax_fail(p->template, line, "%s cannot be assigned to", name);
    return 0;
}

static int parse_target_name(struct parser *p, bool attributes, struct node **out)
{
    TRY(parser_node(p, NODE_NAME, out));
    TRY(parser_name(p, &(*out)->name));
    if (attributes && parser_skip(p, ".")) {
        struct node *object = *out;
        TRY(parser_node(p, NODE_ATTRIBUTE, out));
        (*out)->a = object;
        return parser_name(p, &(*out)->name);
    }
    return check_name(p, (*out)->name, (*out)->line);
}

static int parse_target(struct parser *p, bool attributes, struct node **out);

static int parse_target_item(struct parser *p, bool attributes, struct node **out)
{
    if (!parser_skip(p, "("))
        return parse_target_name(p, attributes, out);
    TRY(parser_enter(p));
    const int rc = parse_target(p, attributes, out);
    p->depth--;
    return rc != 0 ? rc : parser_expect(p, ")");
}

/* Parse an assignment target: a, a.b if attributes are allowed, or (a, b). */
static int parse_target(struct parser *p, bool attributes, struct node **out)
{
    struct node *tuple, *item;
    int rc = parse_target_item(p, attributes, out);
    if (rc != 0 || !parser_is(p, ","))
        return rc;
    rc = parser_node(p, NODE_TUPLE, &tuple);
    if (rc == 0)
        rc = parser_add(p, &tuple->items, *out);
    *out = tuple;
    while (rc == 0 && parser_skip(p, ",")) {
        if (p->token->kind != TOKEN_NAME && !parser_is(p, "("))
            break;
        if (parser_is_name(p, "in"))
            break;
        rc = parse_target_item(p, attributes, &item);
        if (rc == 0)
            rc = parser_add(p, &tuple->items, item);
    }
    return rc;
}

/* ---- statements ---- */

static int parse_if(struct parser *p, struct node *n)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct node *next;
    int rc;
    for (p->soft++;;) {
        rc = p->items(p, false, false, &n->a);
        if (rc == 0)
            rc = end_of_tag(p);
        if (rc == 0)
            rc = parse_body(p, ends, &n->body);
        if (rc != 0 || !parser_skip_name(p, "elif"))
            break;
        rc = parser_node(p, NODE_IF, &next);
        if (rc == 0)
            rc = parser_add(p, &n->other, next);
        if (rc != 0)
            break;
        n = next;
    }
    if (rc == 0 && parser_skip_name(p, "else"))
        rc = parse_block(p, "endif", &n->other);
    else if (rc == 0 && parser_skip_name(p, "endif"))
        rc = end_of_tag(p);
    p->soft--;
    return rc;
}

static int parse_for(struct parser *p, struct node *n)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    int rc = parse_target(p, false, &n->a);
    if (rc == 0 && !parser_skip_name(p, "in"))
        rc = parser_unexpected(p, "in");
    if (rc == 0)
        rc = p->items(p, false, false, &n->b);
    if (rc == 0 && parser_skip_name(p, "if"))
        rc = p->expression(p, &n->c);
    n->flag = rc == 0 && parser_skip_name(p, "recursive");
    if (rc == 0)
        rc = end_of_tag(p);
    p->loops++;
    if (rc == 0)
        rc = parse_body(p, ends, &n->body);
    p->loops--;
    if (rc != 0)
        return rc;
    if (parser_skip_name(p, "else"))
        return parse_block(p, "endfor", &n->other);
    p->token++;
    return end_of_tag(p);
}

static int parse_set(struct parser *p, struct node *n)
{
    int rc = parse_target(p, true, &n->a);
    if (rc != 0)
        return rc;
    if (parser_skip(p, "=")) {
        rc = p->items(p, true, false, &n->b);
        return rc != 0 ? rc : end_of_tag(p);
    }
    n->kind = NODE_SET_BLOCK;
    TRY(parse_filters(p, NULL, false, &n->b));
    return parse_block(p, "endset", &n->body);
}

/* Parse names and defaults in parentheses. */
static int parse_parameters(struct parser *p, struct node *n)
{
    int rc = parser_expect(p, "(");
    for (bool first = true; rc == 0 && !parser_is(p, ")"); first = false) {
        struct node *name, *value;
        if (!first)
            rc = parser_expect(p, ",");
        if (rc == 0)
            rc = parse_target_name(p, false, &name);
        if (rc == 0)
            rc = parser_add(p, &n->items, name);
        if (rc == 0 && parser_skip(p, "=")) {
            rc = p->expression(p, &value);
            if (rc == 0)
                rc = parser_add(p, &n->other, value);
        } else if (rc == 0 && n->other.count > 0) {
            return parser_unexpected(p, "a default, as parameters before have one,");
        }
    }
    return rc != 0 ? rc : parser_expect(p, ")");
}

/* Parse the body of a macro, which cannot leave a loop around it. */
static int parse_macro_body(struct parser *p, const char *end, struct node *n)
{
    const struct parser around = *p;
    p->loops = 0;
    p->varargs = p->kwargs = false;
    const int rc = parse_block(p, end, &n->body);
    n->varargs = p->varargs;
    n->kwargs = p->kwargs;
    p->loops = around.loops;
    p->varargs = p->varargs || around.varargs;
    p->kwargs = p->kwargs || around.kwargs;
    return rc;
}

static int parse_macro(struct parser *p, struct node *n)
{
    TRY(parser_name(p, &n->name));
    TRY(check_name(p, n->name, n->line));
    TRY(parse_parameters(p, n));
    return parse_macro_body(p, "endmacro", n);
}

static int parse_call_block(struct parser *p, struct node *n)
{
    if (parser_is(p, "("))
        TRY(parse_parameters(p, n));
    TRY(p->expression(p, &n->a));
    if (n->a->kind != NODE_CALL)
        return parser_unexpected(p, "a call");
    return parse_macro_body(p, "endcall", n);
}

static int parse_filter_block(struct parser *p, struct node *n)
{
    TRY(parse_filters(p, NULL, true, &n->b));
    return parse_block(p, "endfilter", &n->body);
}

static int parse_with(struct parser *p, struct node *n)
{
    while (p->token->kind != TOKEN_BLOCK_END) {
        struct node *target, *value;
        if (n->items.count > 0)
            TRY(parser_expect(p, ","));
        TRY(parse_target_item(p, false, &target));
        TRY(parser_expect(p, "="));
        TRY(p->expression(p, &value));
        TRY(parser_add(p, &n->items, target));
        TRY(parser_add(p, &n->items, value));
    }
    return parse_block(p, "endwith", &n->body);
}

static int parse_generation(struct parser *p, struct node *n)
{
    p->template->marks_generation = true;
    return parse_macro_body(p, "endgeneration", n);
}

static int parse_leave(struct parser *p, struct node *n)
{
    if (p->loops == 0)
        return syntax_fail(p->template, n->line, "%s outside a loop",
                           n->kind == NODE_BREAK ? "break" : "continue");
    return end_of_tag(p);
}

/* Parse an autoescape block, which is supported only with a false constant. */
static int parse_autoescape(struct parser *p, struct node *n)
{
    struct node *value;
    TRY(p->expression(p, &value));
    if (value->kind != NODE_CONSTANT || value_truth(&value->value))
        return syntax_fail(p->template, n->line, "autoescape is not supported; leave it out");
    return parse_block(p, "endautoescape", &n->body);
}

static const struct {
    const char *name;
    enum node_kind kind;
    int (*parse)(struct parser *p, struct node *n);
} statements[] = {
    {"if", NODE_IF, parse_if},
    {"for", NODE_FOR, parse_for},
    {"set", NODE_SET, parse_set},
    {"macro", NODE_MACRO, parse_macro},
    {"call", NODE_CALL_BLOCK, parse_call_block},
    {"filter", NODE_FILTER_BLOCK, parse_filter_block},
    {"with", NODE_WITH, parse_with},
    {"generation", NODE_GENERATION, parse_generation},
    {"break", NODE_BREAK, parse_leave},
    {"continue", NODE_CONTINUE, parse_leave},
    {"autoescape", NODE_SCOPE, parse_autoescape},
};

static int parse_statement(struct parser *p, struct nodes *out)
{
    struct node *n;
    const size_t count = sizeof statements / sizeof *statements;
    size_t i = 0;
    while (i < count && !parser_is_name(p, statements[i].name))
        i++;
    if (i == count)
        return parser_unexpected(p, "a statement that chat templates have");
    int rc = parser_node(p, statements[i].kind, &n);
    p->token++;
    if (rc == 0)
        rc = parser_enter(p);
    if (rc != 0)
        return rc;
    rc = statements[i].parse(p, n);
    p->depth--;
    return rc != 0 ? rc : parser_add(p, out, n);
}

static int parse_output(struct parser *p, struct nodes *out)
{
    struct node *n;
    p->token++;
    int rc = parser_node(p, NODE_OUTPUT, &n);
    if (rc == 0)
        rc = p->items(p, true, false, &n->a);
    if (rc == 0 && p->token->kind != TOKEN_OUTPUT_END)
        return parser_unexpected(p, "}}");
    p->token++;
    return rc != 0 ? rc : parser_add(p, out, n);
}

static int parse_text(struct parser *p, struct nodes *out)
{
    struct node *n;
    TRY(parser_node(p, NODE_TEXT, &n));
    n->value = p->token->value;
    p->token++;
    return parser_add(p, out, n);
}

/* Return whether one of these words is at the current token. */
static bool is_end(const struct parser *p, const char *const *ends)
{
    while (*ends && !parser_is_name(p, *ends))
        ends++;
    return *ends != NULL;
}

/* Parse up to a tag that begins with one of these words, and stop there. */
static int parse_body(struct parser *p, const char *const *ends, struct nodes *out)
{
    int rc = 0;
    while (rc == 0) {
        switch (p->token->kind) {
        case TOKEN_TEXT:
            rc = parse_text(p, out);
            break;
        case TOKEN_OUTPUT_BEGIN:
            rc = parse_output(p, out);
            break;
        case TOKEN_BLOCK_BEGIN:
            p->token++;
            if (is_end(p, ends))
                return 0;
            rc = parse_statement(p, out);
            break;
        default:
            return *ends ? parser_unexpected(p, *ends) : 0;
        }
    }
    return rc;
}

int parse_statements(struct template *t, const struct tokens *tokens)
{
    static const char *const none[] = {NULL};
    struct parser p = {
        .template = t, .token = tokens->at, .expression = parse_expression, .items = parse_items};
    const int rc = parse_body(&p, none, &t->body);
    if (rc != 0 || !p.unknown)
        return rc;
    return syntax_fail(t, p.unknown->line, "there is no %s named %s",
                       p.unknown->kind == NODE_TEST ? "test" : "filter", p.unknown->name);
}
