/* SPDX-License-Identifier: Apache-2.0
 *
 * contract_find.c: what a contract that was read holds, by name or key.
 */
#include "contract.h"

#include <string.h>

const struct contract *contract_find(const struct gen *g, const char *op)
{
    for (int i = 0; i < g->contract_count; i++)
        if (strcmp(g->contracts[i]->op, op) == 0)
            return g->contracts[i];
    return NULL;
}

int arg_find(const struct contract *c, const char *name)
{
    for (int i = 0; i < c->arg_count; i++)
        if (strcmp(c->args[i].name, name) == 0)
            return i;
    return -1;
}

int dim_find(const struct contract *c, const char *name)
{
    for (int i = 0; i < c->dim_count; i++)
        if (strcmp(c->dims[i].name, name) == 0)
            return i;
    return -1;
}

int scalar_find(const struct contract *c, const char *name)
{
    for (int i = 0; i < c->scalar_count; i++)
        if (strcmp(c->scalars[i].name, name) == 0)
            return i;
    return -1;
}

int axis_find(const struct contract *c, const char *name)
{
    for (int i = 0; i < c->axis_count; i++)
        if (strcmp(c->axes[i].name, name) == 0)
            return i;
    return -1;
}

enum dtype key_dtype(const struct key *k, enum dtype dtype)
{
    return dtype == DTYPE_T ? (enum dtype)k->c->axes[0].number[k->value[0]] : dtype;
}

int dtype_bytes(enum dtype dtype)
{
    static const int bytes[] = {[DTYPE_LP] = 2,   [DTYPE_F32] = 4,  [DTYPE_I32] = 4, [DTYPE_F8] = 1,
                                [DTYPE_BF16] = 2, [DTYPE_E5M2] = 1, [DTYPE_I64] = 8};
    return bytes[dtype];
}

struct values key_values(const struct key *k, const struct test *test)
{
    const struct contract *c = k->c;
    struct values v = {.size_of_T = dtype_bytes(key_dtype(k, DTYPE_T))};
    int n = 0;
    if (test != NULL)
        for (; n < c->dim_count; n++)
            v.of[n] = test->dims[n];
    for (int a = 1; a < c->axis_count; a++)
        v.of[n++] = c->axes[a].number[k->value[a]];
    return v;
}

const struct choice *choice_of(const struct choices *list, const struct key *k)
{
    for (int i = 0; i < list->count; i++)
        if (list->of[i].axis < 0 || k->value[list->of[i].axis] == list->of[i].value)
            return &list->of[i];
    return NULL;
}

int64_t arch_bytes_of(const struct arch_list *list, const struct key *k, const struct arch *a)
{
    int64_t most = 0;
    for (int i = 0; i < list->count; i++) {
        const struct arch_bytes *x = &list->of[i];
        if ((x->variant == NULL || strcmp(x->variant, k->variant) == 0) &&
            (x->arch == NULL || strcmp(x->arch, a->name) == 0) && x->bytes > most)
            most = x->bytes;
    }
    return most;
}
