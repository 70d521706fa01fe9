/* SPDX-License-Identifier: Apache-2.0
 *
 * parse_expression.c: operators, with the precedence of jinja2: if-else, or, and, not, comparisons, + -, ~, * / // %,
 * **.
 */
#include "template/syntax.h"

#include "io/error.h"

/* Make a node with *out as the first operand; the second is parsed. */
static int second(struct parser *p, enum node_kind kind, enum operation op, struct node **out,
                  int (*parse)(struct parser *p, struct node **out))
{
    struct node *n;
    TRY(parser_node(p, kind, &n));
    n->a = *out;
    n->op = op;
    *out = n;
    return parse(p, &n->b);
}

struct sign {
    const char *text;
    enum operation op;
};

/* Parse operands with any of these operators between them, from left to right. */
static int parse_binary(struct parser *p, const struct sign *signs, size_t count,
                        int (*parse)(struct parser *p, struct node **out), struct node **out)
{
    int rc = parse(p, out);
    for (size_t i = 0, terms = 0; i < count && rc == 0;) {
        if (!parser_skip(p, signs[i].text)) {
            i++;
            continue;
        }
        if (terms++ == 400)
            return parser_unexpected(p, "a shorter sum");
        rc = second(p, NODE_BINARY, signs[i].op, out, parse);
        i = 0;
    }
    return rc;
}

static int parse_power(struct parser *p, struct node **out)
{
    static const struct sign signs[] = {{"**", OP_POW}};
    return parse_binary(p, signs, 1, parse_operand, out);
}

static int parse_product(struct parser *p, struct node **out)
{
    static const struct sign signs[] = {
        {"*", OP_MUL}, {"/", OP_DIV}, {"//", OP_FLOOR_DIV}, {"%", OP_MOD}};
    return parse_binary(p, signs, 4, parse_power, out);
}

static int parse_concat(struct parser *p, struct node **out)
{
    struct node *n = NULL, *item;
    int rc = parse_product(p, out);
    while (rc == 0 && parser_skip(p, "~")) {
        if (!n) {
            rc = parser_node(p, NODE_CONCAT, &n);
            if (rc == 0)
                rc = parser_add(p, &n->items, *out);
            *out = n;
        }
        if (rc == 0)
            rc = parse_product(p, &item);
        if (rc == 0)
            rc = parser_add(p, &n->items, item);
    }
    return rc;
}

static int parse_sum(struct parser *p, struct node **out)
{
    static const struct sign signs[] = {{"+", OP_ADD}, {"-", OP_SUB}};
    return parse_binary(p, signs, 2, parse_concat, out);
}

/* Read a comparison operator. */
static bool compare_sign(struct parser *p, enum operation *out)
{
    static const struct sign signs[] = {{"==", OP_EQ}, {"!=", OP_NE}, {"<", OP_LT},
                                        {"<=", OP_LE}, {">", OP_GT},  {">=", OP_GE}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (parser_skip(p, signs[i].text)) {
            *out = signs[i].op;
            return true;
        }
    const struct token *next = p->token + 1;
    const bool no =
        parser_is_name(p, "not") && next->kind == TOKEN_NAME && value_is_text(&next->value, "in");
    *out = no ? OP_NOT_IN : OP_IN;
    if (!no)
        return parser_skip_name(p, "in");
    p->token += 2;
    return true;
}

static int parse_comparison(struct parser *p, struct node **out)
{
    struct node *n = NULL, *operand;
    enum operation op;
    int rc = parse_sum(p, out);
    while (rc == 0 && compare_sign(p, &op)) {
        if (!n) {
            rc = parser_node(p, NODE_COMPARE, &n);
            if (rc != 0)
                return rc;
            n->a = *out;
            *out = n;
        }
        rc = parser_node(p, NODE_OPERAND, &operand);
        if (rc != 0)
            return rc;
        operand->op = op;
        rc = parse_sum(p, &operand->a);
        if (rc == 0)
            rc = parser_add(p, &n->items, operand);
    }
    return rc;
}

static int parse_not(struct parser *p, struct node **out)
{
    if (!parser_is_name(p, "not"))
        return parse_comparison(p, out);
    int rc = parser_enter(p);
    if (rc == 0)
        rc = parser_node(p, NODE_NOT, out);
    if (rc != 0)
        return rc;
    p->token++;
    rc = parse_not(p, &(*out)->a);
    p->depth--;
    return rc;
}

static int parse_logic(struct parser *p, const char *word, enum node_kind kind,
                       int (*parse)(struct parser *p, struct node **out), struct node **out)
{
    TRY(parse(p, out));
    for (int terms = 0; parser_skip_name(p, word); terms++) {
        if (terms == 400)
            return parser_unexpected(p, "a shorter condition");
        TRY(second(p, kind, OP_ADD, out, parse));
    }
    return 0;
}

static int parse_and(struct parser *p, struct node **out)
{
    return parse_logic(p, "and", NODE_AND, parse_not, out);
}

static int parse_or(struct parser *p, struct node **out)
{
    return parse_logic(p, "or", NODE_OR, parse_and, out);
}

static int parse_else(struct parser *p, struct node *n)
{
    if (!parser_skip_name(p, "else"))
        return 0;
    return parse_expression(p, &n->c);
}

/* Parse an expression with a condition, in which unknown filters are allowed. */
static int parse_conditions(struct parser *p, struct node **out)
{
    const struct node *unknown = p->unknown;
    int rc = parse_or(p, out);
    for (int terms = 0; rc == 0 && parser_skip_name(p, "if"); terms++) {
        struct node *n;
        if (terms == 200)
            return parser_unexpected(p, "fewer conditions");
        rc = parser_node(p, NODE_CONDITION, &n);
        if (rc != 0)
            return rc;
        n->b = *out;
        *out = n;
        rc = parse_or(p, &n->a);
        if (rc == 0)
            rc = parse_else(p, n);
        p->unknown = unknown;
    }
    return rc;
}

int parse_expression(struct parser *p, struct node **out)
{
    TRY(parser_enter(p));
    const int rc = parse_conditions(p, out);
    p->depth--;
    return rc;
}

static int parse_part(struct parser *p, bool conditions, struct node **out)
{
    return conditions ? parse_expression(p, out) : parse_or(p, out);
}

/* Return whether a tuple ends here. */
static bool tuple_ends(const struct parser *p)
{
    return p->token->kind == TOKEN_BLOCK_END || p->token->kind == TOKEN_OUTPUT_END ||
           parser_is(p, ")") || parser_is(p, "]");
}

int parse_items(struct parser *p, bool conditions, bool empty, struct node **out)
{
    struct node *n, *item;
    int rc = parser_node(p, NODE_TUPLE, &n);
    if (rc != 0 || (empty && tuple_ends(p))) {
        *out = n;
        return rc;
    }
    rc = parse_part(p, conditions, out);
    if (rc != 0 || !parser_is(p, ","))
        return rc;
    rc = parser_add(p, &n->items, *out);
    *out = n;
    while (rc == 0 && parser_skip(p, ",") && !tuple_ends(p)) {
        rc = parse_part(p, conditions, &item);
        if (rc == 0)
            rc = parser_add(p, &n->items, item);
    }
    return rc;
}
