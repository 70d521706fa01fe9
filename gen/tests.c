/* SPDX-License-Identifier: Apache-2.0
 *
 * tests.c: reads what a contract promises and how that is tried: tests, the benchmark, spill
 * excuses, falsifiers.
 */
#include "contract.h"

#include <string.h>

/* ---- tests ---- */

/* The number that a test may give of an argument, by its fill. */
static const struct first_rule {
    const char *what; /* NULL: nothing */
    const char *number;
    int least;
} first_rules[] = {
    [FILL_POSITION] = {"its first position", "a position", 0},
    [FILL_INV_FREQ] = {"its first frequency of 0", "the number of a pair, above 0", 1},
    [FILL_REF] = {.what = NULL},
};

/* Read the first position, the first frequency of 0, or null. */
static void read_test_arg(struct contract *c, struct test *t, int i, const struct node *value)
{
    const struct arg *a = &c->args[i];
    const struct first_rule *rule = &first_rules[a->fill];
    if (rule->what && node_int(value, &t->first[i])) {
        if (t->first[i] < rule->least || t->first[i] > INT32_MAX)
            problem(c->file, value->line, "'%s' is not %s; it must be from %d to %d", a->name,
                    rule->number, rule->least, INT32_MAX);
        return;
    }
    t->null[i] = true;
    if (!node_is_null(value))
        problem(c->file, value->line, "argument '%s' can only be given as %s", a->name,
                rule->what ? rule->what : "null");
    else if (!a->optional)
        problem(c->file, value->line, "argument '%s' is null but not optional", a->name);
}

static void read_test_value(struct contract *c, struct test *t, bool *given,
                            const struct node *name, const struct node *value)
{
    int i;
    if ((i = dim_find(c, name->text)) >= 0) {
        given[i] = true;
        int64_t most = c->dims[i].wide ? INT64_MAX : INT32_MAX;
        if (!node_int(value, &t->dims[i]) || t->dims[i] > most || t->dims[i] < -most)
            problem(c->file, value->line, "dim '%s' must be a whole number of %d bits", name->text,
                    c->dims[i].wide ? 64 : 32);
    } else if ((i = scalar_find(c, name->text)) >= 0) {
        t->scalar_given[i] = read_scalar_value(c, &c->scalars[i], value, &t->scalars[i]);
    } else if ((i = arg_find(c, name->text)) >= 0) {
        read_test_arg(c, t, i, value);
    } else {
        const char *names[MAX_DIMS], *known = "";
        for (int d = 0; d < c->dim_count; d++) {
            names[d] = c->dims[d].name;
            known = keep_format("%s%s%s", known, d ? ", " : "", names[d]);
        }
        const char *meant = near_miss(name->text, names, c->dim_count);
        problem(c->file, name->line, "a test names the unknown dim '%s'; %s %s", name->text,
                meant ? "did you mean" : "known:", meant ? meant : known);
    }
}

static void read_test(struct contract *c, const struct node *n, bool bench)
{
    bool given[MAX_DIMS] = {false};
    if (n->kind != NODE_MAP || c->test_count >= MAX_LINES) {
        problem(c->file, n->line, "%s",
                n->kind != NODE_MAP ? "a test must be a map from dims to numbers"
                                    : "too many tests");
        return;
    }
    struct test t = {.line = n->line, .bench = bench};
    for (int i = 0; i < c->scalar_count; i++)
        t.scalars[i] = c->scalars[i].test;
    for (int i = 0; i < n->count; i++)
        read_test_value(c, &t, given, n->keys[i], n->items[i]);
    bool complete = true;
    for (int i = 0; i < c->dim_count; i++) {
        if (given[i])
            continue;
        complete = false;
        problem(c->file, n->line, "%s lacks the dim '%s'", bench ? "bench" : "a test",
                c->dims[i].name);
    }
    if (complete)
        c->tests[c->test_count++] = t;
}

void read_tests(void *into, const struct node *n)
{
    struct contract *c = into;
    if (n->count == 0)
        problem(c->file, n->line, "tests is empty; a kernel without a test is not built");
    for (int i = 0; i < n->count; i++)
        read_test(c, n->items[i], false);
}

void read_bench(void *into, const struct node *n)
{
    read_test(into, n, true);
}

/* ---- bytes by arch, and falsifiers ---- */

/* Read a list with keys such as "lp.d128 sm_75", "lp.d128" or "sm_75". */
static void read_arch_list(const struct contract *c, struct arch_list *list, const char *field,
                           const struct node *n)
{
    if (n->count > MAX_LINES)
        problem(c->file, n->line, "more than %d entries of %s", MAX_LINES, field);
    for (int i = 0; i < n->count && i < MAX_LINES; i++) {
        struct arch_bytes *x = &list->of[list->count++];
        const char *s = n->keys[i]->text, *space = strchr(s, ' ');
        x->line = n->keys[i]->line;
        if (space != NULL) {
            x->variant = keep_text(s, (size_t)(space - s));
            x->arch = space + 1;
        } else if (strncmp(s, "sm_", 3) == 0) {
            x->arch = s;
        } else {
            x->variant = s;
        }
        if (!node_int(n->items[i], &x->bytes) || x->bytes < 1)
            problem(c->file, n->items[i]->line, "%s '%s' must be a number of bytes", field, s);
    }
}

void read_spills(void *into, const struct node *n)
{
    struct contract *c = into;
    read_arch_list(c, &c->spills, "allow_spill", n);
}

void read_arch_smem(void *into, const struct node *n)
{
    struct contract *c = into;
    read_arch_list(c, &c->arch_smem, "arch_smem", n);
}

void read_falsifiers(void *into, const struct node *n)
{
    struct contract *c = into;
    if (n->count > MAX_LINES)
        problem(c->file, n->line, "more than %d falsifiers", MAX_LINES);
    for (int i = 0; i < n->count && i < MAX_LINES; i++)
        if (falsifier_read(c->file, n->items[i], &c->falsifiers[c->falsifier_count]))
            c->falsifier_count++;
}
