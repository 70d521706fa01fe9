/* SPDX-License-Identifier: Apache-2.0
 *
 * operators.c: arithmetic, and + * % of texts and lists, as in Python.
 */
#include "template/builtins.h"

#include "io/error.h"
#include "template/syntax.h"
#include "template/write.h"

#include <math.h>

static const char *const signs[] = {
    [OP_ADD] = "+", [OP_SUB] = "-",  [OP_MUL] = "*",       [OP_DIV] = "/",
    [OP_MOD] = "%", [OP_POW] = "**", [OP_FLOOR_DIV] = "//"};

static int cannot(struct run *r, int op, const struct value *a, const struct value *b)
{
    const struct value *nothing = a->kind == VALUE_UNDEFINED   ? a
                                  : b->kind == VALUE_UNDEFINED ? b
                                                               : NULL;
    if (nothing)
        return run_type_error(r, "so it cannot be used in arithmetic", nothing);
    return run_fail(r, "values of type %s and %s do not go together with %s", value_type(a),
                    value_type(b), signs[op]);
}

/* ---- whole numbers ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool power(int64_t base, int64_t exponent, int64_t *out)
{
    bool over = false;
    for (*out = 1; exponent > 0 && !over; exponent >>= 1) {
        if (exponent & 1)
            over = __builtin_mul_overflow(*out, base, out);
        if (exponent > 1 && !over)
            over = __builtin_mul_overflow(base, base, &base);
    }
    return over;
}

/* Return whether the result has more than 64 bits. */
static bool whole_result(int op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case OP_ADD:
        return __builtin_add_overflow(a, b, out);
    case OP_SUB:
        return __builtin_sub_overflow(a, b, out);
    case OP_MUL:
        return __builtin_mul_overflow(a, b, out);
    case OP_FLOOR_DIV:
    case OP_MOD:
        if (b == -1) { /* the only quotient that may overflow */
            *out = 0;
            return op == OP_FLOOR_DIV && __builtin_sub_overflow(0, a, out);
        }
        *out = op == OP_MOD ? a - floor_div(a, b) * b : floor_div(a, b);
        return false;
    default:
        return power(a, b, out);
    }
}

static int whole(struct run *r, int op, int64_t a, int64_t b, struct value *out)
{
    int64_t result;
    if (whole_result(op, a, b, &result))
        return run_fail(r, "a whole number has more than 64 bits");
    *out = value_int(result);
    return 0;
}

/* ---- floats ---- */

static double modulo(double a, double b)
{
    const double rest = fmod(a, b);
    if (rest == 0)
        return copysign(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static double floor_quotient(double a, double b)
{
    const double quotient = (a - modulo(a, b)) / b, below = floor(quotient);
    if (quotient == 0)
        return copysign(0, a / b);
    return quotient - below > 0.5 ? below + 1 : below;
}

static double real_result(int op, double a, double b)
{
    switch (op) {
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
        return a * b;
    case OP_DIV:
        return a / b;
    case OP_MOD:
        return modulo(a, b);
    case OP_POW:
        return pow(a, b);
    default:
        return floor_quotient(a, b);
    }
}

static int numbers(struct run *r, int op, const struct value *a, const struct value *b,
                   struct value *out)
{
    const bool divides = op == OP_DIV || op == OP_FLOOR_DIV || op == OP_MOD;
    const bool wholes = value_is_whole(a) && value_is_whole(b);
    const bool below = op == OP_POW && value_real(b) < 0;
    if ((divides && value_real(b) == 0) || (below && value_real(a) == 0))
        return run_fail(r, "division by zero");
    if (wholes && op != OP_DIV && !below)
        return whole(r, op, a->whole, b->whole, out);
    const double result = real_result(op, value_real(a), value_real(b));
    if (op == OP_POW && (isnan(result) || isinf(result)))
        return run_fail(r, "the result of ** is not a number");
    *out = value_float(result);
    return 0;
}

/* ---- texts and lists ---- */

static int join_texts(struct run *r, const struct value *a, const struct value *b,
                      struct value *out)
{
    struct value left = *a, right = *b;
    TRY(run_spend(r, a->bytes + b->bytes));
    if (a->markup || b->markup) {
        TRY(value_escape(r, a, &left));
        TRY(value_escape(r, b, &right));
    }
    char *text = arena_take(&r->arena, left.bytes + right.bytes + 1);
    if (!text)
        return run_no_memory(r);
    memcpy(text, left.text, left.bytes);
    memcpy(text + left.bytes, right.text, right.bytes);
    *out = value_text(text, left.bytes + right.bytes);
    out->markup = left.markup && right.markup;
    return 0;
}

static int join_lists(struct run *r, const struct value *a, const struct value *b,
                      struct value *out)
{
    struct list *list;
    const size_t first = a->list->count, more = b->list->count;
    TRY(run_spend(r, first + more));
    TRY(list_make(r, first + more, &list));
    if (first > 0)
        memcpy(list->at, a->list->at, first * sizeof *list->at);
    if (more > 0)
        memcpy(list->at + first, b->list->at, more * sizeof *list->at);
    list->count = first + more;
    *out = value_list(a->kind, list);
    return 0;
}

static int repeat_text(struct run *r, const struct value *v, int64_t times, struct value *out)
{
    const size_t from = run_capture(r);
    int rc = 0;
    for (int64_t i = 0; i < times && rc == 0; i++)
        rc = run_write(r, v->text, v->bytes);
    rc = run_captured(r, from, rc, out);
    out->markup = v->markup;
    return rc;
}

static int repeat_list(struct run *r, const struct value *v, int64_t times, struct value *out)
{
    struct list *list;
    int rc = list_make(r, 0, &list);
    for (int64_t i = 0; i < times && rc == 0; i++) {
        rc = run_spend(r, 0);
        for (size_t k = 0; k < v->list->count && rc == 0; k++)
            rc = list_add(r, list, v->list->at[k]);
    }
    *out = value_list(v->kind, list);
    return rc;
}

static bool is_sequence(const struct value *v)
{
    return v->kind == VALUE_LIST || v->kind == VALUE_TUPLE;
}

static int repeat(struct run *r, const struct value *v, const struct value *times,
                  struct value *out)
{
    return v->kind == VALUE_STRING ? repeat_text(r, v, times->whole, out)
                                   : repeat_list(r, v, times->whole, out);
}

int operate(struct run *r, int op, const struct value *a, const struct value *b, struct value *out)
{
    if (value_is_number(a) && value_is_number(b))
        return numbers(r, op, a, b, out);
    if (op == OP_MOD && a->kind == VALUE_STRING)
        return format_percent(r, a, b, out);
    if (op == OP_ADD && a->kind == VALUE_STRING && b->kind == VALUE_STRING)
        return join_texts(r, a, b, out);
    if (op == OP_ADD && is_sequence(a) && a->kind == b->kind)
        return join_lists(r, a, b, out);
    if (op == OP_MUL && (a->kind == VALUE_STRING || is_sequence(a)) && value_is_whole(b))
        return repeat(r, a, b, out);
    if (op == OP_MUL && (b->kind == VALUE_STRING || is_sequence(b)) && value_is_whole(a))
        return repeat(r, b, a, out);
    return cannot(r, op, a, b);
}
