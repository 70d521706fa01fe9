/* SPDX-License-Identifier: Apache-2.0
 *
 * keys.c: the keys that the axes of all contracts span, which of them are built, and their place in
 * nj_kernels.
 */
#include "contract.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static void name_key(struct key *k)
{
    const struct contract *c = k->c;
    const char *variant = c->axes[0].text[k->value[0]];
    for (int a = 1; a < c->axis_count; a++) {
        char *axis = keep_format("%s", c->axes[a].name);
        for (char *p = axis; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        variant = keep_format("%s.%s%d", variant, axis, c->axes[a].number[k->value[a]]);
    }
    char *entry = keep_format("nj_%s.%s", c->op, variant);
    for (char *p = entry; *p; p++)
        *p = *p == '.' ? '_' : *p;
    k->variant = variant;
    k->key = keep_format("%s.%s", c->op, variant);
    k->entry = entry;
}

static int key_total(const struct contract *c)
{
    int n = 1;
    for (int a = 0; a < c->axis_count; a++)
        n *= c->axes[a].count;
    return n;
}

static void span(struct gen *g, const struct contract *c)
{
    for (int i = 0; i < key_total(c); i++) {
        struct key *k = &g->keys[g->key_count++];
        int rest = i;
        k->c = c;
        for (int a = c->axis_count - 1; a >= 0; a--) {
            k->value[a] = rest % c->axes[a].count;
            rest /= c->axes[a].count;
        }
        name_key(k);
    }
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct key *)a)->key, ((const struct key *)b)->key);
}

/* Return whether one of the patterns in `only` matches the op or the key. */
static bool selected(const struct key *k, const char *only)
{
    char *save = NULL, *list = keep_format("%s", only);
    for (char *p = strtok_r(list, " ,", &save); p != NULL; p = strtok_r(NULL, " ,", &save))
        if (fnmatch(p, k->c->op, 0) == 0 || fnmatch(p, k->key, 0) == 0)
            return true;
    return false;
}

void keys_make(struct gen *g, const char *only)
{
    int total = 0;
    for (int i = 0; i < g->contract_count; i++)
        total += key_total(g->contracts[i]);
    g->keys = keep((size_t)(total + 1) * sizeof *g->keys);
    for (int i = 0; i < g->contract_count; i++)
        span(g, g->contracts[i]);
    qsort(g->keys, (size_t)g->key_count, sizeof *g->keys, by_key);
    for (int i = 0; i < g->key_count; i++)
        g->keys[i].id = only == NULL || selected(&g->keys[i], only) ? g->selected_count++ : -1;
    if (g->selected_count > 0 || g->key_count == 0)
        return;
    const char *ops = "";
    for (int i = 0; i < g->contract_count; i++)
        ops = keep_format("%s %s", ops, g->contracts[i]->op);
    problem("--only", 0, "'%s' matches no op and no key; ops:%s", only, ops);
}

bool key_begins_unit(const struct gen *g, const struct key *k)
{
    if (k->id < 0)
        return false;
    for (const struct key *before = g->keys; before < k; before++)
        if (before->id >= 0 && strcmp(before->unit, k->unit) == 0)
            return false;
    return true;
}

void keys_limits(struct gen *g)
{
    for (int i = 0; i < g->key_count; i++) {
        struct key *k = &g->keys[i];
        const struct contract *c = k->c;
        struct values v = key_values(k, NULL);
        int64_t n = 0;
        expr_eval(choice_of(&c->threads, k)->e[0], &v, &n);
        k->threads = (int)n;
        k->unit = keep_format("%s.t%d", c->op, k->threads);
        if (c->min_blocks.count > 0) {
            expr_eval(choice_of(&c->min_blocks, k)->e[0], &v, &n);
            k->min_blocks = (int)n;
        }
        for (int t = 0; t < c->test_count; t++) {
            v = key_values(k, &c->tests[t]);
            if (expr_eval(choice_of(&c->smem, k)->e[0], &v, &n) == NULL && n > k->max_shared)
                k->max_shared = n;
        }
    }
}
