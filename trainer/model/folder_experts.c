/* SPDX-License-Identifier: Apache-2.0
 *
 * folder_experts.c: see folder_experts.h. transformers 5 computes with such tensors, and saves them where a model was
 * changed by other programs.
 */
#include "model/folder_experts.h"

#include "base/route.h"
#include "io/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of tensors of all experts, [experts, rows, columns], and of the parts of each expert's rows. */
enum { PARTS_MOST = 2 };
static const struct stack {
    const char *end;
    const char *part[PARTS_MOST];
} stacks[] = {
    {".mlp.experts.gate_up_proj", {"gate_proj", "up_proj"}},
    {".mlp.experts.down_proj", {"down_proj"}},
};

/* Return the row of a tensor of all experts that can be divided; NULL: it is none. */
static const struct stack *stack_of(const struct tensor *t)
{
    const size_t bytes = strlen(t->name);
    for (size_t i = 0; t->rank == 3 && i < sizeof stacks / sizeof *stacks; i++) {
        const struct stack *s = &stacks[i];
        const size_t end = strlen(s->end);
        if (bytes > end && strcmp(t->name + bytes - end, s->end) == 0 &&
            t->shape[0] <= NJ_EXPERTS_MAX && t->shape[1] % (s->part[1] ? 2 : 1) == 0)
            return s;
    }
    return NULL;
}

static int parts_of(const struct stack *s)
{
    return s->part[1] ? 2 : 1;
}

/* Append the tensors of all experts to a list. Return their number. */
static size_t divide(const struct tensor *t, const struct stack *s, struct tensor *to)
{
    const int parts = parts_of(s);
    const size_t count = (size_t)t->shape[0] * (size_t)parts, bytes = t->bytes / count;
    const int before = (int)(strlen(t->name) - strlen(strrchr(t->name, '.')));
    for (size_t i = 0; i < count; i++) {
        to[i] = (struct tensor){.dtype = t->dtype,
                                .rank = 2,
                                .shape = {t->shape[1] / parts, t->shape[2]},
                                .data = (const char *)t->data + i * bytes,
                                .bytes = bytes};
        snprintf(to[i].name, sizeof to[i].name, "%.*s.%zu.%s.weight", before, t->name,
                 i / (size_t)parts, s->part[i % (size_t)parts]);
    }
    return count;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

int folder_experts_split(const char *dir, struct tensors *w)
{
    size_t count = 0, more = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct stack *s = stack_of(&w->tensor[i]);
        if (s)
            more += (size_t)w->tensor[i].shape[0] * (size_t)parts_of(s);
    }
    if (more == 0)
        return 0;
    struct tensor *list = calloc(w->count + more, sizeof *list);
    if (!list)
        return fail(NJ_E_NOMEM, "%s: out of memory for a list of %zu tensors", dir, more);
    for (size_t i = 0; i < w->count; i++) {
        const struct stack *s = stack_of(&w->tensor[i]);
        if (s)
            count += divide(&w->tensor[i], s, list + count);
        else
            list[count++] = w->tensor[i];
    }
    qsort(list, count, sizeof *list, compare);
    free(w->tensor);
    w->tensor = list;
    w->count = count;
    return 0;
}
