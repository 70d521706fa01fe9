/* SPDX-License-Identifier: Apache-2.0
 *
 * expr.c: a recursive-descent parser over one table of operators, an evaluator and a printer; see
 * expr.h.
 */
#include "expr.h"

#include "base/tensor_type.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_LENGTH = 1024 };

/* Infix operators, longest first so that <= is not read as <. */
static const struct infix {
    const char *sign;
    int level; /* precedence: higher binds tighter */
    enum expr_op op;
} infixes[] = {
    {"||", 1, EXPR_OR}, {"&&", 2, EXPR_AND}, {"==", 3, EXPR_EQ}, {"!=", 3, EXPR_NE},
    {"<=", 3, EXPR_LE}, {">=", 3, EXPR_GE},  {"<", 3, EXPR_LT},  {">", 3, EXPR_GT},
    {"+", 4, EXPR_ADD}, {"-", 4, EXPR_SUB},  {"*", 5, EXPR_MUL}, {"/", 5, EXPR_DIV},
    {"%", 5, EXPR_REM},
};
enum { LEVELS = 5, LEVEL_COMPARE = 3 };

static const struct function {
    const char *name;
    enum expr_op op;
} functions[] = {{"ceil_div", EXPR_CEIL_DIV},
                 {"min", EXPR_MIN},
                 {"max", EXPR_MAX},
                 {"row_bytes", EXPR_ROW_BYTES}};

/* Functions of runtime/launcher.h that generated C calls. */
static const char *const helpers[EXPR_OPS] = {
    [EXPR_ADD] = "i64_add", [EXPR_SUB] = "i64_sub", [EXPR_MUL] = "i64_mul",
    [EXPR_DIV] = "i64_div", [EXPR_REM] = "i64_rem", [EXPR_CEIL_DIV] = "i64_ceil_div",
    [EXPR_MIN] = "i64_min", [EXPR_MAX] = "i64_max", [EXPR_ROW_BYTES] = "nj_row_bytes"};

struct parser {
    const struct scope *scope;
    const char *text, *at;
    int line, depth;
    bool failed;
};

static bool is_condition(const struct expr *e)
{
    return e->op >= EXPR_EQ;
}

static const struct expr *fail(struct parser *p, const char *why)
{
    if (!p->failed)
        problem(p->scope->file, p->line, "expression '%s': %s", p->text, why);
    p->failed = true;
    return NULL;
}

static void skip_spaces(struct parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool accept(struct parser *p, const char *sign)
{
    skip_spaces(p);
    if (strncmp(p->at, sign, strlen(sign)) != 0)
        return false;
    p->at += strlen(sign);
    return true;
}

static struct expr *new_expr(enum expr_op op, const struct expr *a, const struct expr *b)
{
    struct expr *e = keep(sizeof *e);
    e->op = op;
    e->a = a;
    e->b = b;
    return e;
}

static const struct expr *new_number(int64_t number)
{
    struct expr *e = new_expr(EXPR_NUMBER, NULL, NULL);
    e->number = number;
    return e;
}

static const struct expr *join(struct parser *p, enum expr_op op, const struct expr *a,
                               const struct expr *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    bool wants_conditions = op == EXPR_AND || op == EXPR_OR;
    if (wants_conditions && !(is_condition(a) && is_condition(b)))
        return fail(p, "&& and || join conditions, such as N >= 1");
    bool divides = op == EXPR_DIV || op == EXPR_REM || op == EXPR_CEIL_DIV;
    if (divides && b->op == EXPR_NUMBER && b->number == 0)
        return fail(p, "division by zero");
    return new_expr(op, a, b);
}

static const struct expr *parse_level(struct parser *p, int level);

static const struct expr *parse_number(struct parser *p)
{
    char *end;
    errno = 0;
    long long number = strtoll(p->at, &end, 10);
    if (errno != 0)
        return fail(p, "a number that does not fit 64 bits");
    if (isalnum((unsigned char)*end) || *end == '.' || *end == '_')
        return fail(p, "only whole decimal numbers are allowed");
    p->at = end;
    return new_number(number);
}

static const struct expr *parse_size(struct parser *p)
{
    static const struct {
        const char *dtype;
        int bytes;
    } sizes[] = {{"lp", 2}, {"f32", 4}, {"i32", 4}};
    if (!accept(p, "("))
        return fail(p, "expected '(' after size");
    const struct expr *e = NULL;
    if (accept(p, "T"))
        e = new_expr(EXPR_SIZE, NULL, NULL);
    for (size_t i = 0; e == NULL && i < sizeof sizes / sizeof *sizes; i++)
        if (accept(p, sizes[i].dtype))
            e = new_number(sizes[i].bytes);
    if (e == NULL || !accept(p, ")"))
        return fail(p, "size() takes T, lp, f32 or i32");
    return e;
}

static const struct expr *unknown_name(struct parser *p, const char *name)
{
    const struct scope *s = p->scope;
    const char *list = "";
    for (int i = 0; i < s->count; i++)
        list = keep_format("%s%s%s", list, i ? ", " : "", s->names[i]);
    return fail(p, keep_format("unknown name '%s'; known here: %s", name,
                               s->count ? list : "none, only numbers"));
}

static const struct expr *parse_name(struct parser *p)
{
    const char *start = p->at;
    while (isalnum((unsigned char)*p->at) || *p->at == '_')
        p->at++;
    const char *name = keep_text(start, (size_t)(p->at - start));
    if (strcmp(name, "size") == 0)
        return parse_size(p);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(name, functions[i].name) != 0)
            continue;
        if (!accept(p, "("))
            return fail(p, keep_format("expected '(' after %s", name));
        const struct expr *a = parse_level(p, 1);
        if (a != NULL && !accept(p, ","))
            return fail(p, keep_format("%s takes two values, separated by a comma", name));
        const struct expr *b = a ? parse_level(p, 1) : NULL;
        if (b != NULL && !accept(p, ")"))
            return fail(p, "expected ')'");
        return join(p, functions[i].op, a, b);
    }
    for (int i = 0; i < p->scope->count; i++) {
        if (strcmp(name, p->scope->names[i]) == 0) {
            struct expr *e = new_expr(EXPR_SYMBOL, NULL, NULL);
            e->symbol = i;
            return e;
        }
    }
    return unknown_name(p, name);
}

static const struct expr *parse_primary(struct parser *p)
{
    skip_spaces(p);
    if (p->depth >= MAX_DEPTH)
        return fail(p, "nested too deep");
    p->depth++;
    const struct expr *e;
    if (isdigit((unsigned char)*p->at)) {
        e = parse_number(p);
    } else if (isalpha((unsigned char)*p->at) || *p->at == '_') {
        e = parse_name(p);
    } else if (accept(p, "-")) {
        e = join(p, EXPR_SUB, new_number(0), parse_primary(p));
    } else if (accept(p, "(")) {
        e = parse_level(p, 1);
        if (e != NULL && !accept(p, ")"))
            e = fail(p, "expected ')'");
    } else if (*p->at == '\0') {
        e = fail(p, "it ends where a number, a name or '(' is expected");
    } else {
        e = fail(p, keep_format("expected a number, a name or '(' at '%s'", p->at));
    }
    p->depth--;
    return e;
}

static const struct infix *accept_infix(struct parser *p, int level)
{
    skip_spaces(p);
    for (size_t i = 0; i < sizeof infixes / sizeof *infixes; i++) {
        const struct infix *x = &infixes[i];
        if (strncmp(p->at, x->sign, strlen(x->sign)) != 0)
            continue;
        if (x->level != level)
            return NULL;
        p->at += strlen(x->sign);
        return x;
    }
    return NULL;
}

static const struct expr *parse_level(struct parser *p, int level)
{
    if (level > LEVELS)
        return parse_primary(p);
    const struct expr *a = parse_level(p, level + 1);
    const struct infix *x;
    while (a != NULL && (x = accept_infix(p, level)) != NULL) {
        a = join(p, x->op, a, parse_level(p, level + 1));
        if (level == LEVEL_COMPARE)
            break; /* a < b < c has an unexpected meaning in C */
    }
    return a;
}

const struct expr *expr_parse(const struct scope *scope, int line, const char *text, bool condition)
{
    struct parser p = {.scope = scope, .text = text, .at = text, .line = line};
    if (strlen(text) > MAX_LENGTH)
        return fail(&p, "longer than any sensible expression");
    const struct expr *parsed = parse_level(&p, 1);
    if (parsed == NULL)
        return NULL;
    skip_spaces(&p);
    if (*p.at != '\0')
        return fail(&p, keep_format("expected an operator or the end at '%s'", p.at));
    if (is_condition(parsed) != condition)
        return fail(&p, condition ? "expected a condition, such as N >= 1"
                                  : "expected a number, not a condition");
    struct expr *root = keep(sizeof *root);
    *root = *parsed;
    root->source = text;
    root->line = line;
    return root;
}

static const char *eval_division(enum expr_op op, int64_t a, int64_t b, int64_t *out)
{
    if (b == 0)
        return "division by zero";
    if (b == -1) {
        if (op == EXPR_REM)
            *out = 0;
        else if (__builtin_sub_overflow(0, a, out))
            return "a number that does not fit 64 bits";
        return NULL;
    }
    *out = op == EXPR_REM ? a % b : a / b + (op == EXPR_CEIL_DIV && a % b > 0);
    return NULL;
}

static bool eval_condition(enum expr_op op, int64_t a, int64_t b)
{
    switch (op) {
    case EXPR_EQ:
        return a == b;
    case EXPR_NE:
        return a != b;
    case EXPR_LT:
        return a < b;
    case EXPR_LE:
        return a <= b;
    case EXPR_GT:
        return a > b;
    case EXPR_GE:
        return a >= b;
    case EXPR_AND:
        return a && b;
    default:
        return a || b;
    }
}

const char *expr_eval(const struct expr *e, const struct values *v, int64_t *out)
{
    int64_t a = 0, b = 0;
    bool overflow = false;
    const char *why = e->a ? expr_eval(e->a, v, &a) : NULL;
    if (why == NULL && (e->op == EXPR_AND || e->op == EXPR_OR) && (a != 0) == (e->op == EXPR_OR)) {
        *out = a; /* the right side may be meaningless then, as in C */
        return NULL;
    }
    if (why == NULL && e->b)
        why = expr_eval(e->b, v, &b);
    if (why != NULL)
        return why;
    switch (e->op) {
    case EXPR_NUMBER:
        *out = e->number;
        break;
    case EXPR_SYMBOL:
        *out = v->of[e->symbol];
        break;
    case EXPR_SIZE:
        *out = v->size_of_T;
        break;
    case EXPR_ADD:
        overflow = __builtin_add_overflow(a, b, out);
        break;
    case EXPR_SUB:
        overflow = __builtin_sub_overflow(a, b, out);
        break;
    case EXPR_MUL:
        overflow = __builtin_mul_overflow(a, b, out);
        break;
    case EXPR_DIV:
    case EXPR_REM:
    case EXPR_CEIL_DIV:
        return eval_division(e->op, a, b, out);
    case EXPR_MIN:
        *out = a < b ? a : b;
        break;
    case EXPR_MAX:
        *out = a > b ? a : b;
        break;
    case EXPR_ROW_BYTES:
        *out = nj_row_bytes(a, b);
        break;
    default:
        *out = eval_condition(e->op, a, b);
        break;
    }
    return overflow ? "a number that does not fit 64 bits" : NULL;
}

static const char *sign_of(enum expr_op op)
{
    size_t i = 0;
    while (infixes[i].op != op)
        i++;
    return infixes[i].sign;
}

void expr_print(struct text *t, const struct expr *e, const struct scope *scope)
{
    bool logical = e->op == EXPR_AND || e->op == EXPR_OR;
    if (e->op == EXPR_NUMBER) {
        if (e->number > INT32_MAX)
            put(t, "INT64_C(%" PRId64 ")", e->number);
        else
            put(t, "%" PRId64, e->number);
    } else if (e->op == EXPR_SYMBOL) {
        put(t, "%s", scope->names[e->symbol]);
    } else if (e->op == EXPR_SIZE) {
        put(t, "i64_size(T)");
    } else if (is_condition(e)) {
        put(t, logical ? "(" : "");
        expr_print(t, e->a, scope);
        put(t, logical ? ") %s (" : " %s ", sign_of(e->op));
        expr_print(t, e->b, scope);
        put(t, logical ? ")" : "");
    } else {
        put(t, "%s(", helpers[e->op]);
        expr_print(t, e->a, scope);
        put(t, ", ");
        expr_print(t, e->b, scope);
        put(t, ")");
    }
}

void expr_divisors(const struct expr *e, void (*visit)(void *user, const struct expr *divisor),
                   void *user)
{
    if (e->a)
        expr_divisors(e->a, visit, user);
    if (e->b)
        expr_divisors(e->b, visit, user);
    bool divides = e->op == EXPR_DIV || e->op == EXPR_REM || e->op == EXPR_CEIL_DIV;
    if (divides && e->b->op != EXPR_NUMBER)
        visit(user, e->b);
}

bool expr_uses(const struct expr *e, int limit)
{
    return (e->op == EXPR_SYMBOL && e->symbol < limit) || (e->a && expr_uses(e->a, limit)) ||
           (e->b && expr_uses(e->b, limit));
}
