/* SPDX-License-Identifier: Apache-2.0
 *
 * parse_operand.c: values, their suffixes (attributes, items, calls), filters, tests and signs.
 */
#include "template/syntax.h"

#include "io/error.h"
#include "template/builtins.h"

static int constant(struct parser *p, struct value value, struct node **out)
{
    TRY(parser_node(p, NODE_CONSTANT, out));
    (*out)->value = value;
    return 0;
}

/* ---- values ---- */

static int parse_word(struct parser *p, struct node **out)
{
    static const struct {
        const char *name;
        enum value_kind kind;
        int64_t whole;
    } words[] = {{"true", VALUE_BOOL, 1},  {"True", VALUE_BOOL, 1}, {"false", VALUE_BOOL, 0},
                 {"False", VALUE_BOOL, 0}, {"none", VALUE_NONE, 0}, {"None", VALUE_NONE, 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (parser_skip_name(p, words[i].name))
            return constant(p, (struct value){.kind = words[i].kind, .whole = words[i].whole}, out);
    p->varargs = p->varargs || parser_is_name(p, "varargs");
    p->kwargs = p->kwargs || parser_is_name(p, "kwargs");
    TRY(parser_node(p, NODE_NAME, out));
    return parser_name(p, &(*out)->name);
}

/* Parse strings; adjacent ones are joined. A string may be a key of a message, so the template
 * mentions it. */
static int parse_strings(struct parser *p, struct node **out)
{
    enum { KEY_MOST = 64 };
    size_t bytes = 0;
    const struct token *first = p->token, *t = first;
    for (; t->kind == TOKEN_STRING; t++)
        bytes += t->value.bytes;
    char *text = arena_take(&p->template->arena, bytes + 1), *to = text;
    if (!text)
        return syntax_no_memory(p->template);
    for (; p->token < t; p->token++) {
        memcpy(to, p->token->value.text, p->token->value.bytes);
        to += p->token->value.bytes;
    }
    if (bytes <= KEY_MOST && !syntax_name(p->template, text, bytes))
        return syntax_no_memory(p->template);
    return constant(p, value_text(text, bytes), out);
}

static int parse_list(struct parser *p, struct node **out)
{
    int rc = parser_node(p, NODE_LIST, out);
    p->token++;
    while (rc == 0 && !parser_is(p, "]")) {
        struct node *item;
        if ((*out)->items.count > 0)
            rc = parser_expect(p, ",");
        if (rc != 0 || parser_is(p, "]"))
            break;
        rc = p->expression(p, &item);
        if (rc == 0)
            rc = parser_add(p, &(*out)->items, item);
    }
    return rc != 0 ? rc : parser_expect(p, "]");
}

static int parse_pair(struct parser *p, struct nodes *items)
{
    struct node *key, *value;
    TRY(p->expression(p, &key));
    TRY(parser_expect(p, ":"));
    TRY(p->expression(p, &value));
    TRY(parser_add(p, items, key));
    return parser_add(p, items, value);
}

static int parse_dict(struct parser *p, struct node **out)
{
    int rc = parser_node(p, NODE_DICT, out);
    p->token++;
    while (rc == 0 && !parser_is(p, "}")) {
        if ((*out)->items.count > 0)
            rc = parser_expect(p, ",");
        if (rc != 0 || parser_is(p, "}"))
            break;
        rc = parse_pair(p, &(*out)->items);
    }
    return rc != 0 ? rc : parser_expect(p, "}");
}

static int parse_brackets(struct parser *p, struct node **out)
{
    p->token++;
    TRY(p->items(p, true, true, out));
    return parser_expect(p, ")");
}

static int parse_primary(struct parser *p, struct node **out)
{
    const struct token *t = p->token;
    switch (t->kind) {
    case TOKEN_NAME:
        return parse_word(p, out);
    case TOKEN_STRING:
        return parse_strings(p, out);
    case TOKEN_INT:
    case TOKEN_FLOAT:
        p->token++;
        return constant(p, t->value, out);
    default:
        break;
    }
    if (parser_is(p, "("))
        return parse_brackets(p, out);
    if (parser_is(p, "["))
        return parse_list(p, out);
    return parser_is(p, "{") ? parse_dict(p, out) : parser_unexpected(p, "an expression");
}

/* ---- suffixes: attributes, items, calls ---- */

static int parse_attribute(struct parser *p, struct node **out)
{
    struct node *n;
    p->token++;
    TRY(parser_node(p, p->token->kind == TOKEN_INT ? NODE_ITEM : NODE_ATTRIBUTE, &n));
    n->a = *out;
    *out = n;
    if (n->kind == NODE_ATTRIBUTE)
        return parser_name(p, &n->name);
    p->token++;
    return constant(p, p->token[-1].value, &n->b);
}

/* Parse a[...], with one index, a slice, or several as a tuple. */
static int parse_slice(struct parser *p, struct node *n, struct node *first)
{
    struct node **parts[] = {&n->c, NULL};
    struct node *step = NULL;
    parts[1] = &step;
    n->kind = NODE_SLICE;
    n->b = first;
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0 && parser_skip(p, ":"); i++)
        if (!parser_is(p, ":") && !parser_is(p, "]"))
            rc = p->expression(p, parts[i]);
    return rc != 0 || !step ? rc : parser_add(p, &n->items, step);
}

static int parse_item(struct parser *p, struct node **out)
{
    struct node *n, *first = NULL;
    p->token++;
    int rc = parser_node(p, NODE_ITEM, &n);
    if (rc != 0)
        return rc;
    n->a = *out;
    *out = n;
    if (!parser_is(p, ":"))
        rc = p->items(p, true, false, &first);
    n->b = first;
    if (rc == 0 && parser_is(p, ":"))
        rc = parse_slice(p, n, first);
    return rc != 0 ? rc : parser_expect(p, "]");
}

static int parse_argument(struct parser *p, struct nodes *items)
{
    struct node *n = NULL;
    int rc = 0;
    const struct token *t = p->token;
    const bool named = t->kind == TOKEN_NAME && t[1].kind == TOKEN_OPERATOR &&
                       t[1].value.bytes == 1 && t[1].value.text[0] == '=';
    const bool all = parser_is(p, "**"), spread = all || parser_is(p, "*");
    if (named || spread)
        rc = parser_node(p, named ? NODE_NAMED : all ? NODE_SPREAD_ALL : NODE_SPREAD, &n);
    if (rc == 0 && named)
        rc = parser_name(p, &n->name);
    p->token += rc == 0 && (named || spread);
    if (rc == 0)
        rc = p->expression(p, named || spread ? &n->a : &n);
    return rc != 0 ? rc : parser_add(p, items, n);
}

/* Check that positional arguments precede named ones. */
static int check_arguments(struct parser *p, const struct nodes *items)
{
    for (size_t i = 1; i < items->count; i++)
        if (items->at[i]->kind < EXPRESSIONS &&
            (items->at[i - 1]->kind == NODE_NAMED || items->at[i - 1]->kind == NODE_SPREAD_ALL))
            return parser_unexpected(p, "a named argument");
    return 0;
}

static int parse_arguments(struct parser *p, struct nodes *items)
{
    int rc = parser_expect(p, "(");
    for (bool first = true; rc == 0 && !parser_is(p, ")"); first = false) {
        if (!first)
            rc = parser_expect(p, ",");
        if (rc != 0 || parser_is(p, ")"))
            break;
        rc = parse_argument(p, items);
    }
    if (rc == 0)
        rc = check_arguments(p, items);
    return rc != 0 ? rc : parser_expect(p, ")");
}

int parse_call(struct parser *p, struct node *a, struct node **out)
{
    TRY(parser_node(p, NODE_CALL, out));
    (*out)->a = a;
    return parse_arguments(p, &(*out)->items);
}

static int parse_postfix(struct parser *p, struct node **out)
{
    for (int links = 0;; links++) {
        if (links == 200)
            return parser_unexpected(p, "a shorter chain of attributes");
        if (parser_is(p, "."))
            TRY(parse_attribute(p, out));
        else if (parser_is(p, "["))
            TRY(parse_item(p, out));
        else if (parser_is(p, "("))
            TRY(parse_call(p, *out, out));
        else
            break;
    }
    return 0;
}

/* ---- filters and tests ---- */

/* Read a name with points in it, as filters may have. */
static int parse_dotted(struct parser *p, const char **out)
{
    const struct token *t = p->token;
    const int rc = parser_name(p, out);
    if (rc != 0 || !parser_is(p, "."))
        return rc;
    p->token = t;
    return parser_unexpected(p, "a name without points");
}

/* Find a filter or test. An unknown name is refused in the end, except in a branch, which may
 * not be taken. */
static int find_function(struct parser *p, const char *kind, struct node *n, enum builtin_use use)
{
    if (builtin_find(use, n->name, &n->function))
        return 0;
    if (builtin_left_out(use, n->name))
        return syntax_fail(p->template, n->line, "the %s %s of jinja2 is not supported", kind,
                           n->name);
    if (p->soft == 0 && !p->unknown)
        p->unknown = n;
    return 0;
}

int parse_filters(struct parser *p, struct node *a, bool at_name, struct node **out)
{
    int rc = 0;
    *out = a;
    for (int links = 0; rc == 0 && (at_name || parser_skip(p, "|")); links++) {
        struct node *n;
        at_name = false;
        if (links == 200)
            return parser_unexpected(p, "a shorter chain of filters");
        rc = parser_node(p, NODE_FILTER, &n);
        if (rc == 0)
            rc = parse_dotted(p, &n->name);
        if (rc == 0)
            rc = find_function(p, "filter", n, BUILTIN_FILTER);
        if (rc == 0 && parser_is(p, "("))
            rc = parse_arguments(p, &n->items);
        if (rc != 0)
            return rc;
        n->a = *out;
        *out = n;
    }
    return rc;
}

/* Parse a test's argument, which may lack parentheses. */
static int parse_test_argument(struct parser *p, struct node *n)
{
    struct node *argument;
    const enum token_kind kind = p->token->kind;
    if (parser_is(p, "("))
        return parse_arguments(p, &n->items);
    const bool begins = kind == TOKEN_NAME || kind == TOKEN_STRING || kind == TOKEN_INT ||
                        kind == TOKEN_FLOAT || parser_is(p, "[") || parser_is(p, "{");
    if (!begins || parser_is_name(p, "else") || parser_is_name(p, "or") || parser_is_name(p, "and"))
        return 0;
    if (parser_is_name(p, "is"))
        return parser_unexpected(p, "the end of a test");
    TRY(parse_primary(p, &argument));
    TRY(parse_postfix(p, &argument));
    return parser_add(p, &n->items, argument);
}

static int parse_test(struct parser *p, struct node **out)
{
    struct node *n;
    p->token++;
    TRY(parser_node(p, NODE_TEST, &n));
    n->flag = parser_skip_name(p, "not");
    n->a = *out;
    *out = n;
    TRY(parse_dotted(p, &n->name));
    TRY(find_function(p, "test", n, BUILTIN_TEST));
    return parse_test_argument(p, n);
}

static int parse_behind(struct parser *p, struct node **out)
{
    for (int links = 0;; links++) {
        if (links == 200)
            return parser_unexpected(p, "a shorter chain");
        if (parser_is(p, "|"))
            TRY(parse_filters(p, *out, false, out));
        else if (parser_is_name(p, "is"))
            TRY(parse_test(p, out));
        else if (parser_is(p, "("))
            TRY(parse_call(p, *out, out));
        else
            break;
    }
    return 0;
}

static int parse_sign(struct parser *p, struct node **out)
{
    struct node *n;
    if (!parser_is(p, "-") && !parser_is(p, "+"))
        return parse_primary(p, out);
    int rc = parser_enter(p);
    if (rc == 0)
        rc = parser_node(p, NODE_UNARY, &n);
    if (rc != 0)
        return rc;
    n->op = parser_is(p, "-") ? OP_SUB : OP_ADD;
    p->token++;
    rc = parse_sign(p, &n->a);
    if (rc == 0)
        rc = parse_postfix(p, &n->a);
    p->depth--;
    *out = n;
    return rc;
}

int parse_operand(struct parser *p, struct node **out)
{
    TRY(parse_sign(p, out));
    TRY(parse_postfix(p, out));
    return parse_behind(p, out);
}
