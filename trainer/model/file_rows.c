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

static struct head_order attention_order(const struct model_config *c, const struct block *b,
                                         enum tensor_role role)
{
    const int D = b->head_dim, rotary = rope_rotary(&c->arch.rope[b->rope], D);
    if (!block_has(b, FEATURE_GATED_Q))
        return (struct head_order){0};
    switch (role) {
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

/* Return the order of files that have one key head after another: its query and key, its value heads, and their z; of
 * the steps, the b of its value heads, and their a. */
static struct head_order delta_order(const struct block *b, enum tensor_role role)
{
    if (!block_has(b, FEATURE_GROUPED_DELTA))
        return (struct head_order){0};
    const int K = b->kv_heads, D = b->head_dim, values = b->heads / K, all = 2 * (1 + values) * D;
    switch (role) {
    case ROLE_DELTA_Q_WEIGHT:
        return (struct head_order){K, D, all, 0, 0};
    case ROLE_DELTA_K_WEIGHT:
        return (struct head_order){K, D, all, D, 0};
    case ROLE_DELTA_V_WEIGHT:
        return (struct head_order){K, values * D, all, 2 * D, 0};
    case ROLE_DELTA_Z_WEIGHT:
        return (struct head_order){K, values * D, all, (2 + values) * D, 0};
    case ROLE_DELTA_B_WEIGHT:
        return (struct head_order){K, values, 2 * values, 0, 0};
    case ROLE_DELTA_A_WEIGHT:
        return (struct head_order){K, values, 2 * values, values, 0};
    default:
        return (struct head_order){0};
    }
}

struct head_order file_order(const struct model_config *c, const struct tensor_spec *s)
{
    const struct block *mixer = s->layer < 0 ? NULL : arch_mixer(&c->arch, s->layer);
    if (!mixer)
        return (struct head_order){0};
    return mixer->kind == BLOCK_ATTENTION ? attention_order(c, mixer, s->role)
                                          : delta_order(mixer, s->role);
}

/* Return whether a file's tensor has rows of other ones between its own. */
static bool is_joined(const struct head_order *o)
{
    return o->heads > 0 && o->stride > o->D;
}

/* Return whether a tensor's rows are in a file's tensor that another one, before it, begins. */
static bool is_inside(const struct head_order *o)
{
    return is_joined(o) && o->first > 0;
}

/* Return the tensor of the file that holds a tensor of the model. */
static struct tensor_spec in_file(const struct model_config *c, const struct tensor_spec *spec,
                                  size_t i)
{
    const struct head_order o = file_order(c, &spec[i]);
    struct head_order begins = o;
    if (!is_joined(&o))
        return spec[i];
    while (!is_joined(&begins) || begins.first > 0)
        begins = file_order(c, &spec[--i]);
    struct tensor_spec out = spec[i];
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
    struct tensor *t = is_inside(&o) ? &to[(*count)++] : &to[from - w->tensor];
    *t = *from;
    t->order = o;
    t->shape[0] = spec[i].shape[0];
    memcpy(t->name, spec[i].name, sizeof t->name);
    return 0;
}

int file_rows_of(const char *dir, const struct model_config *c, const struct tensor_spec *spec,
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
    const struct tensor *twice = rc == 0 ? tensors_sort(list, count) : NULL;
    if (twice)
        rc = fail(NJ_E_FORMAT,
                  "%s: tensor %s is there twice, by itself and among the rows of another; use "
                  "another release of the model",
                  dir, twice->name);
    if (rc != 0) {
        free(list);
        return rc;
    }
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
    const int rc = file_rows_of(dir, c, spec, specs, w);
    free(spec);
    return rc;
}

/* ---- writing ---- */

int file_tensors(const struct model_config *c, const struct tensor_spec *spec, size_t specs,
                 struct file_tensor **out, size_t *count)
{
    struct file_tensor *list = calloc(specs, sizeof *list);
    size_t joined = 0; /* the tensor that the next tensor inside of one is a part of */
    *out = list;
    *count = 0;
    if (!list)
        return fail(NJ_E_NOMEM, "out of memory for a list of %zu tensors", specs);
    for (size_t i = 0; i < specs; i++) {
        const struct head_order o = file_order(c, &spec[i]);
        if (is_inside(&o)) {
            list[joined].part[list[joined].parts++] = i;
            continue;
        }
        joined = is_joined(&o) ? *count : joined;
        list[(*count)++] = (struct file_tensor){in_file(c, spec, i), 1, {i}};
    }
    return 0;
}

struct file_run file_run(const struct model_config *c, const struct file_tensor *f,
                         const struct tensor_spec *spec, int64_t row)
{
    struct head_order o = file_order(c, &spec[f->part[0]]);
    if (o.heads == 0)
        return (struct file_run){f->part[0], row, f->spec.shape[0] - row};
    const int within = (int)(row % o.stride);
    int part = 0, count;
    while (within >= o.first + o.D)
        o = file_order(c, &spec[f->part[++part]]);
    const int place = head_place(o.D, o.rotary, within - o.first, &count);
    return (struct file_run){f->part[part], row / o.stride * o.D + place, count};
}

int64_t file_columns(const struct tensor_spec *s)
{
    return tensor_elements(s) / s->shape[0];
}
