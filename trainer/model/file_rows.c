/* SPDX-License-Identifier: Apache-2.0
 *
 * file_rows.c: see file_rows.h.
 */
#include "model/file_rows.h"

#include "base/try.h"
#include "io/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- orders ---- */

static bool is_gate(const struct tensor_spec *s)
{
    return s->role == ROLE_ATTENTION_GATE;
}

struct head_order file_order(const struct model_config *c, const struct tensor_spec *s)
{
    const struct block *b = s->layer < 0 ? NULL : arch_block(&c->arch, s->layer, BLOCK_ATTENTION);
    if (!b || !block_has(b, FEATURE_GATED_Q))
        return (struct head_order){0};
    const int D = b->head_dim, rotary = rope_rotary(&c->arch.rope[b->rope], D);
    switch (s->role) {
    case ROLE_Q_WEIGHT:
        return (struct head_order){b->heads, D, 2 * D, 0, rotary};
    case ROLE_ATTENTION_GATE:
        return (struct head_order){b->heads, D, 2 * D, D, D};
    case ROLE_K_WEIGHT:
        return (struct head_order){b->kv_heads, D, D, 0, rotary};
    case ROLE_Q_NORM:
    case ROLE_K_NORM:
        return (struct head_order){1, D, D, 0, rotary};
    default:
        return (struct head_order){0};
    }
}

/* Return whether a file's tensor has rows of another one between its own. */
static bool is_joined(const struct head_order *o)
{
    return o->heads > 0 && o->stride > o->D;
}

/* Return the tensor of the file that holds a tensor of the model: a gate's rows are among the queries of its layer. */
static struct tensor_spec in_file(const struct model_config *c, const struct tensor_spec *spec,
                                  size_t i)
{
    const struct head_order o = file_order(c, &spec[i]);
    struct tensor_spec out = spec[i];
    if (is_joined(&o) && is_gate(&out)) {
        while (spec[i].role != ROLE_Q_WEIGHT)
            i--;
        out = spec[i];
    }
    if (is_joined(&o))
        out.shape[0] = (int64_t)o.heads * o.stride;
    return out;
}

/* ---- reading ---- */

/* Note the order of a tensor's rows in `to`, the copy of w's list, or append the tensor. */
static int take(const char *dir, const struct model_config *c, const struct tensor_spec *spec,
                size_t i, const struct tensors *w, struct tensor *to, size_t *count)
{
    const struct head_order o = file_order(c, &spec[i]);
    const struct tensor_spec file = in_file(c, spec, i);
    const struct tensor *from = o.heads > 0 ? tensors_find(w, file.name) : NULL;
    if (!from)
        return 0; /* weights_check() names what is missing */
    TRY(weights_check(dir, &file, from));
    struct tensor *t = is_gate(&spec[i]) ? &to[(*count)++] : &to[from - w->tensor];
    *t = *from;
    t->order = o;
    t->shape[0] = spec[i].shape[0];
    memcpy(t->name, spec[i].name, sizeof t->name);
    return 0;
}

static int split(const char *dir, const struct model_config *c, const struct tensor_spec *spec,
                 size_t specs, struct tensors *w)
{
    struct tensor *list = calloc(w->count + specs, sizeof *list);
    size_t count = w->count;
    int rc = 0;
    if (!list)
        return fail(NJ_E_NOMEM, "%s: out of memory for a list of %zu tensors", dir, count + specs);
    memcpy(list, w->tensor, count * sizeof *list);
    for (size_t i = 0; rc == 0 && i < specs; i++)
        rc = take(dir, c, spec, i, w, list, &count);
    if (rc != 0) {
        free(list);
        return rc;
    }
    (void)tensors_sort(list, count); /* names of the model, each of which is there once */
    free(w->tensor);
    w->tensor = list;
    w->count = count;
    return 0;
}

int file_rows_split(const char *dir, const struct model_config *c, struct tensors *w)
{
    const struct block *b = arch_attention(&c->arch, c->layers);
    struct tensor_spec *spec;
    size_t specs;
    if (!block_has(b, FEATURE_GATED_Q))
        return 0;
    TRY(tensor_specs(c, &spec, &specs));
    const int rc = split(dir, c, spec, specs, w);
    free(spec);
    return rc;
}

/* ---- writing ---- */

int file_tensors(const struct model_config *c, const struct tensor_spec *spec, size_t specs,
                 struct file_tensor **out, size_t *count)
{
    struct file_tensor *list = calloc(specs, sizeof *list);
    size_t queries = 0; /* the tensor that the next gate is a part of */
    *out = list;
    *count = 0;
    if (!list)
        return fail(NJ_E_NOMEM, "out of memory for a list of %zu tensors", specs);
    for (size_t i = 0; i < specs; i++) {
        const struct head_order o = file_order(c, &spec[i]);
        if (is_joined(&o) && is_gate(&spec[i])) {
            list[queries].part[1] = i;
            continue;
        }
        queries = spec[i].role == ROLE_Q_WEIGHT ? *count : queries;
        list[(*count)++] = (struct file_tensor){in_file(c, spec, i), {i, i}};
    }
    return 0;
}

struct file_run file_run(const struct model_config *c, const struct file_tensor *f,
                         const struct tensor_spec *spec, int64_t row)
{
    const struct head_order o = file_order(c, &spec[f->part[0]]);
    if (o.heads == 0)
        return (struct file_run){f->part[0], row, f->spec.shape[0] - row};
    const int within = (int)(row % o.stride), second = within >= o.D, e = within % o.D;
    int count;
    const int place = head_place(o.D, second ? o.D : o.rotary, e, &count);
    return (struct file_run){f->part[second], row / o.stride * o.D + place, count};
}

int64_t file_columns(const struct tensor_spec *s)
{
    return tensor_elements(s) / s->shape[0];
}
