/* SPDX-License-Identifier: Apache-2.0
 *
 * test_refusals.c: the refusals that the harness cannot test. Every condition of every contract (its `require` line,
 * and the requirements on its pointers) is violated, for every key, and the launcher must refuse and name that
 * condition. Nothing runs, so the pointers need not be valid.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel_case.h"

enum { SOMEWHERE = 1 << 20 };

static nj_context *ctx;
static nj_stream *stream;

/* A case that can be changed to violate a condition. */
struct block {
    const struct kernel_case *c;
    const struct nj_kernel *k;
    const char *const *names;
    _Alignas(16) unsigned char params[BLOCK_MAX];
};

static void set(struct block *b, uint32_t param, int64_t value)
{
    memcpy(b->params + b->k->params[param].offset, &value, b->k->params[param].bytes);
}

static int64_t get(const struct block *b, uint32_t param)
{
    int64_t wide;
    int32_t narrow;
    if (b->k->params[param].bytes == sizeof wide) {
        memcpy(&wide, b->params + b->k->params[param].offset, sizeof wide);
        return wide;
    }
    memcpy(&narrow, b->params + b->k->params[param].offset, sizeof narrow);
    return narrow;
}

/* Return a case's arguments, with pointers that lead nowhere, or without. */
static struct block block_of(const struct kernel_case *c, int pointers)
{
    struct block b = {
        .c = c, .k = &nj_kernels[c->kernel], .names = nj_case_names[c->kernel].params};
    assert_true(b.k->param_bytes <= BLOCK_MAX);
    memcpy(b.params, c->params, b.k->param_bytes);
    for (uint32_t i = 0; i < c->arg_count && pointers; i++)
        if (!c->args[i].null)
            set(&b, i, SOMEWHERE);
    return b;
}

static int refused_for(struct block *b, const char *condition)
{
    char want[200];
    snprintf(want, sizeof want, "%s: %s does not hold (", b->k->op, condition);
    return b->c->launch(stream, b->params) == NJ_E_ARG &&
           strncmp(nj_context_error(ctx), want, strlen(want)) == 0;
}

/* ---- conditions on sizes ---- */

/* Try values around everything in the condition: its numbers, its other sizes, the present value with the next
 * multiples. At least one must violate it while the earlier conditions hold. */
static int breaks_somehow(const struct block *whole, uint32_t param, const char *condition)
{
    int64_t near[64] = {0, get(whole, param)};
    int count = 2;
    for (const char *s = condition; *s && count < 40; s++) {
        if ((s == condition || s[-1] == ' ') && *s >= '0' && *s <= '9')
            near[count++] = strtoll(s, NULL, 10);
        for (uint32_t p = whole->c->arg_count; p < whole->k->param_count; p++)
            if (p != param && strncmp(s, whole->names[p], strlen(whole->names[p])) == 0)
                near[count++] = get(whole, p);
    }
    for (int i = 0; i < count; i++) {
        static const int64_t steps[] = {-1, 0, 1, 8, 64};
        for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
            struct block b = *whole;
            set(&b, param, near[i] + steps[k]);
            /* if the condition still holds, a pointer is refused */
            if (refused_for(&b, condition))
                return 1;
        }
    }
    return 0;
}

static int is_size(const struct block *b, uint32_t param, const char *condition)
{
    const char *name = b->names[param];
    const size_t n = strlen(name);
    for (const char *s = condition; (s = strstr(s, name)) != NULL; s++)
        if ((s == condition || strchr(" (", s[-1])) && strchr(" )", s[n])) /* or its end */
            return 1;
    return 0;
}

static int key_refuses(uint32_t kernel, const char *condition)
{
    for (uint32_t i = 0; i < nj_case_count; i++) {
        if (nj_cases[i].kernel != kernel)
            continue;
        const struct block whole = block_of(&nj_cases[i], 0);
        for (uint32_t p = whole.c->arg_count; p < whole.k->param_count; p++)
            if (is_size(&whole, p, condition) && breaks_somehow(&whole, p, condition))
                return 1;
    }
    return 0;
}

/* Read the list between the brackets of the contract's `require` line. */
static void read_conditions(const char *op, char *out, size_t bytes)
{
    char path[200], line[1000];
    snprintf(path, sizeof path, "contracts/kernels/%s.yaml", op);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        fail_msg("%s cannot be opened: run this from the root of the tree", path);
    *out = '\0';
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "require: [", 10) == 0)
            snprintf(out, bytes, "%.*s", (int)strcspn(line + 10, "]"), line + 10);
    fclose(f);
    if (*out == '\0')
        fail_msg("%s has no line `require: [...]`", path);
}

/* Return the next item of a YAML list; items with a comma are in quotes. Return NULL at its end. */
static char *next_condition(char **rest)
{
    *rest += strspn(*rest, ", ");
    const int quoted = **rest == '"';
    char *item = *rest + quoted;
    if (*item == '\0')
        return NULL;
    *rest = item + strcspn(item, quoted ? "\"" : ",");
    if (**rest != '\0')
        *(*rest)++ = '\0';
    return item;
}

static void every_condition_is_enforced(void **state)
{
    int tried = 0;
    (void)state;
    for (uint32_t k = 0; k < nj_kernel_count; k++) {
        char conditions[1000], *rest = conditions;
        read_conditions(nj_kernels[k].op, conditions, sizeof conditions);
        for (char *c; (c = next_condition(&rest)) != NULL;) {
            if (!key_refuses(k, c))
                fail_msg("%s: no sizes are refused for '%s'", nj_kernels[k].key, c);
            tried++;
        }
    }
    print_message("%d conditions of %u keys\n", tried, nj_kernel_count);
    assert_true(tried >= (int)nj_kernel_count);
}

/* ---- pointers ---- */

static int some_case_passes_null(uint32_t kernel, uint32_t arg)
{
    for (uint32_t i = 0; i < nj_case_count; i++)
        if (nj_cases[i].kernel == kernel && nj_cases[i].args[arg].null)
            return 1;
    return 0;
}

/* Every pointer must refuse NULL, unless some case of the harness passes it. */
static void every_pointer_is_looked_at(void **state)
{
    int nulls = 0, crooked = 0;
    (void)state;
    for (uint32_t i = 0; i < nj_case_count; i++) {
        const struct block whole = block_of(&nj_cases[i], 1);
        for (uint32_t a = 0; a < whole.c->arg_count; a++) {
            const struct case_arg *arg = &whole.c->args[a];
            struct block b = whole;
            char condition[100];
            const uint32_t element = arg->type == CASE_LP ? 2 : 4;
            if (arg->null)
                continue;
            if (arg->align > element)
                snprintf(condition, sizeof condition, "%s is aligned to %u bytes", arg->name,
                         arg->align);
            else
                snprintf(condition, sizeof condition, "%s is aligned to its element", arg->name);
            set(&b, a, SOMEWHERE + (int64_t)arg->align / 2);
            if (!refused_for(&b, condition))
                fail_msg("%s: '%s' is not asked for: %s", b.k->key, condition,
                         nj_context_error(ctx));
            crooked++;
            if (some_case_passes_null(whole.c->kernel, a))
                continue;
            snprintf(condition, sizeof condition, "%s is not NULL", arg->name);
            set(&b, a, 0);
            if (!refused_for(&b, condition))
                fail_msg("%s: '%s' is not asked for", b.k->key, condition);
            nulls++;
        }
    }
    print_message("%d pointers not aligned, %d of them NULL\n", crooked, nulls);
    assert_true(nulls > 0);
}

static int open_cpu(void **state)
{
    const struct nj_options cpu = {.device = NJ_DEVICE_CPU};
    (void)state;
    return nj_context_create(&ctx, &cpu) || nj_stream_create(ctx, &stream);
}

static int close_cpu(void **state)
{
    (void)state;
    nj_stream_destroy(stream);
    nj_context_destroy(ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_condition_is_enforced),
        cmocka_unit_test(every_pointer_is_looked_at),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_cpu);
}
