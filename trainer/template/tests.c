/* SPDX-License-Identifier: Apache-2.0
 *
 * tests.c: tests of `x is y`.
 */
#include "template/builtins.h"

#include "io/error.h"
#include "template/syntax.h"
#include "template/write.h"

#define SELF (&a->at[0])

/* Tests that depend only on the kind of the value. */
#define IS(name, what)                                                                             \
    static int name(struct run *r, const struct arguments *a, struct value *out)                   \
    {                                                                                              \
        *out = value_bool(what);                                                                   \
        return run_spend(r, 0);                                                                    \
    }

static bool iterable(const struct value *v)
{
    return v->kind == VALUE_UNDEFINED || v->kind == VALUE_LOOP ||
           (v->kind >= VALUE_STRING && v->kind <= VALUE_DICT);
}

IS(is_defined, SELF->kind != VALUE_UNDEFINED)
IS(is_undefined, SELF->kind == VALUE_UNDEFINED)
IS(is_none, SELF->kind == VALUE_NONE)
IS(is_boolean, SELF->kind == VALUE_BOOL)
IS(is_true, SELF->kind == VALUE_BOOL && SELF->whole)
IS(is_false, SELF->kind == VALUE_BOOL && !SELF->whole)
IS(is_integer, SELF->kind == VALUE_INT)
IS(is_float, SELF->kind == VALUE_FLOAT)
IS(is_number, value_is_number(SELF))
IS(is_string, SELF->kind == VALUE_STRING)
IS(is_mapping, SELF->kind == VALUE_DICT)
IS(is_iterable, iterable(SELF))
IS(is_sequence, iterable(SELF) && SELF->kind != VALUE_ITERATOR && SELF->kind != VALUE_LOOP)
IS(is_callable, value_callable(SELF))
IS(is_escaped, SELF->kind == VALUE_STRING && SELF->markup)
IS(is_same, value_same(SELF, &a->at[1]))
IS(is_equal, value_equal(r, SELF, &a->at[1]))
IS(is_unequal, !value_equal(r, SELF, &a->at[1]))

/* ---- order ---- */

static int ordered(struct run *r, const struct arguments *a, int below, int same, int above,
                   struct value *out)
{
    int order;
    const int rc = value_order(r, SELF, &a->at[1], &order);
    *out = value_bool(rc == 0 && (order < 0 ? below : order > 0 ? above : same));
    return rc;
}

static int is_less(struct run *r, const struct arguments *a, struct value *out)
{
    return ordered(r, a, 1, 0, 0, out);
}
static int is_at_most(struct run *r, const struct arguments *a, struct value *out)
{
    return ordered(r, a, 1, 1, 0, out);
}
static int is_greater(struct run *r, const struct arguments *a, struct value *out)
{
    return ordered(r, a, 0, 0, 1, out);
}
static int is_at_least(struct run *r, const struct arguments *a, struct value *out)
{
    return ordered(r, a, 0, 1, 1, out);
}

static int is_in(struct run *r, const struct arguments *a, struct value *out)
{
    bool in;
    const int rc = value_contains(r, &a->at[1], SELF, &in);
    *out = value_bool(in);
    return rc;
}

/* ---- numbers ---- */

static int remainder_is(struct run *r, const struct value *v, const struct value *by, int64_t rest,
                        struct value *out)
{
    struct value left;
    const struct value wanted = value_int(rest);
    const int rc = operate(r, OP_MOD, v, by, &left);
    *out = value_bool(rc == 0 && value_equal(r, &left, &wanted));
    return rc;
}

static int is_odd(struct run *r, const struct arguments *a, struct value *out)
{
    const struct value two = value_int(2);
    return remainder_is(r, SELF, &two, 1, out);
}
static int is_even(struct run *r, const struct arguments *a, struct value *out)
{
    const struct value two = value_int(2);
    return remainder_is(r, SELF, &two, 0, out);
}
static int is_divisible(struct run *r, const struct arguments *a, struct value *out)
{
    return remainder_is(r, SELF, &a->at[1], 0, out);
}

/* ---- texts ---- */

static int asks_text(struct run *r, const struct arguments *a, const char *name, struct value *out)
{
    size_t count;
    struct value text;
    const struct builtin *table = methods_text(&count);
    const struct arguments self = {.at = &text, .count = 1};
    TRY(value_str(r, SELF, &text));
    return builtin_among(table, count, name, strlen(name))->run(r, &self, out);
}

static int is_lower(struct run *r, const struct arguments *a, struct value *out)
{
    return asks_text(r, a, "islower", out);
}
static int is_upper(struct run *r, const struct arguments *a, struct value *out)
{
    return asks_text(r, a, "isupper", out);
}

/* ---- names ---- */

static int is_known(struct run *r, const struct arguments *a, enum builtin_use use,
                    struct value *out)
{
    const struct builtin *found;
    const char *name =
        SELF->kind == VALUE_STRING ? arena_copy(&r->arena, SELF->text, SELF->bytes) : "";
    *out = value_bool(name && r->find(use, name, &found));
    return name ? 0 : run_no_memory(r);
}

static int is_filter(struct run *r, const struct arguments *a, struct value *out)
{
    return is_known(r, a, BUILTIN_FILTER, out);
}
static int is_test(struct run *r, const struct arguments *a, struct value *out)
{
    return is_known(r, a, BUILTIN_TEST, out);
}

static const struct builtin tests[] = {
    {"boolean", is_boolean, "value", 1},
    {"callable", is_callable, "value", 1},
    {"defined", is_defined, "value", 1},
    {"divisibleby", is_divisible, "value num", 2},
    {"eq", is_equal, "a b", 2},
    {"equalto", is_equal, "a b", 2},
    {"==", is_equal, "a b", 2},
    {"escaped", is_escaped, "value", 1},
    {"even", is_even, "value", 1},
    {"false", is_false, "value", 1},
    {"filter", is_filter, "value", 1},
    {"float", is_float, "value", 1},
    {"ge", is_at_least, "a b", 2},
    {">=", is_at_least, "a b", 2},
    {"greaterthan", is_greater, "a b", 2},
    {"gt", is_greater, "a b", 2},
    {">", is_greater, "a b", 2},
    {"in", is_in, "value seq", 2},
    {"integer", is_integer, "value", 1},
    {"iterable", is_iterable, "value", 1},
    {"le", is_at_most, "a b", 2},
    {"<=", is_at_most, "a b", 2},
    {"lessthan", is_less, "a b", 2},
    {"lower", is_lower, "value", 1},
    {"lt", is_less, "a b", 2},
    {"<", is_less, "a b", 2},
    {"mapping", is_mapping, "value", 1},
    {"ne", is_unequal, "a b", 2},
    {"!=", is_unequal, "a b", 2},
    {"none", is_none, "value", 1},
    {"number", is_number, "value", 1},
    {"odd", is_odd, "value", 1},
    {"sameas", is_same, "value other", 2},
    {"sequence", is_sequence, "value", 1},
    {"string", is_string, "value", 1},
    {"test", is_test, "value", 1},
    {"true", is_true, "value", 1},
    {"undefined", is_undefined, "value", 1},
    {"upper", is_upper, "value", 1},
};

const struct builtin *tests_all(size_t *count)
{
    *count = sizeof tests / sizeof *tests;
    return tests;
}
