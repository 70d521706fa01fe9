/* SPDX-License-Identifier: Apache-2.0
 *
 * expr.h: the expressions of contracts: parsed once, evaluated for test cases, printed as C for
 * launchers. Numbers are int64_t; a result that does not fit is an error in gen and saturates in a
 * launcher, where the limits on grids then refuse it.
 */
#ifndef GEN_EXPR_H
#define GEN_EXPR_H

#include "util.h"

#include <stdint.h>

enum { MAX_SYMBOLS = 24 };

enum expr_op {
    EXPR_NUMBER,
    EXPR_SYMBOL,
    EXPR_SIZE, /* size(T); other sizes are numbers */
    EXPR_ADD,
    EXPR_SUB,
    EXPR_MUL,
    EXPR_DIV,
    EXPR_REM,
    EXPR_CEIL_DIV,
    EXPR_MIN,
    EXPR_MAX,
    EXPR_ROW_BYTES,
    EXPR_EQ, /* first of the conditions */
    EXPR_NE,
    EXPR_LT,
    EXPR_LE,
    EXPR_GT,
    EXPR_GE,
    EXPR_AND,
    EXPR_OR,
    EXPR_OPS
};

struct expr {
    enum expr_op op;
    int64_t number; /* NUMBER */
    int symbol;     /* SYMBOL: index into the scope */
    const struct expr *a, *b;
    const char *source; /* text of the whole expression, at the root */
    int line;           /* at the root */
};

/* Names that an expression may use. */
struct scope {
    const char *file;
    const char *names[MAX_SYMBOLS];
    int count;
};
/* Values of those names. */
struct values {
    int64_t of[MAX_SYMBOLS];
    int size_of_T;
};

/* Parse an expression; NULL after problem(). condition: it must be true or false rather than a number. */
const struct expr *expr_parse(const struct scope *scope, int line, const char *text,
                              bool condition);
/* Evaluate an expression. Returns NULL, or why there is no value ("division by zero"). */
const char *expr_eval(const struct expr *e, const struct values *v, int64_t *out);
/* Print C that calls the functions i64_* of runtime/launcher.h; scope: names to use there. */
void expr_print(struct text *t, const struct expr *e, const struct scope *scope);
/* Call visit for each divisor in e that is not a number, innermost first. */
void expr_divisors(const struct expr *e, void (*visit)(void *user, const struct expr *divisor),
                   void *user);
/* Return whether e uses a symbol below `limit`, that is a dim if `limit` is the number of dims. */
bool expr_uses(const struct expr *e, int limit);

#endif
