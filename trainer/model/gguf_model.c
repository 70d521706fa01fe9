/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_model.c: see gguf_model.h.
 */
#include "model/gguf_model.h"

#include "base/try.h"
#include "formats/gguf.h"
#include "io/error.h"
#include "model/gguf_config.h"
#include "model/gguf_names.h"
#include "model/gguf_rope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gguf_config(const char *path, struct model_config *out)
{
    struct gguf g;
    TRY(gguf_open(path, &g));
    const int rc = gguf_read_config(&g, out);
    gguf_close(&g);
    return rc;
}

/* Cut the part for a role out of a tensor that holds q, k and v one below the other. */
static int cut(const struct gguf *g, const struct model_config *c, const struct tensor *fused,
               const struct tensor_spec *spec, struct tensor *out)
{
    const struct block *b = arch_block(&c->arch, spec->layer, BLOCK_ATTENTION);
    const int64_t rows = block_qkv_size(b);
    const bool query = spec->role == ROLE_Q_WEIGHT || spec->role == ROLE_Q_BIAS;
    const bool key = spec->role == ROLE_K_WEIGHT || spec->role == ROLE_K_BIAS;
    const int64_t before = query ? 0 : key ? b->heads : b->heads + b->kv_heads;
    if (fused->shape[0] != rows)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s has %lld rows where q, k and v have %lld; fetch or "
                    "convert the model again",
                    g->path, fused->name, (long long)fused->shape[0], (long long)rows);
    const size_t row_bytes = fused->bytes / (size_t)rows;
    *out = *fused;
    out->shape[0] = spec->shape[0];
    out->data = (const char *)fused->data + (size_t)(before * b->head_dim) * row_bytes;
    out->bytes = (size_t)spec->shape[0] * row_bytes;
    return 0;
}

/* Cut the part of one expert out of the tensor of all experts of its layer: [experts, rows, columns], or of a bias
 * [experts, rows]. */
static int cut_expert(const struct gguf *g, const struct model_config *c, const struct tensor *all,
                      const struct tensor_spec *spec, struct tensor *out)
{
    const int experts = arch_block(&c->arch, spec->layer, BLOCK_EXPERTS)->experts;
    if (all->rank != spec->rank + 1 || all->shape[0] != experts)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s has not a part for each of %d experts; fetch or convert the "
                    "model again",
                    g->path, all->name, experts);
    *out = *all;
    out->rank = spec->rank;
    memmove(out->shape, all->shape + 1, (size_t)spec->rank * sizeof out->shape[0]);
    out->bytes = all->bytes / (size_t)experts;
    out->data = (const char *)all->data + (size_t)spec->expert * out->bytes;
    return 0;
}

/* Find the tensor of that name, or the one that it may be a part of; NULL: neither is present. */
static int find(const struct gguf *g, const struct tensor_spec *named, bool *part,
                const struct tensor **out)
{
    char whole[128];
    const bool fused = gguf_fused_name(named, whole);
    const struct tensor *own = tensors_find(&g->tensors, named->name);
    const struct tensor *all = fused ? tensors_find(&g->tensors, whole) : NULL;
    if (own && all)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensors %s and %s hold the same weights; fetch or convert the model again",
                    g->path, named->name, whole);
    *part = all != NULL;
    *out = all ? all : own;
    return 0;
}

/* Take the tensor of a spec, under Hugging Face's name. */
static int take(const struct gguf *g, const struct model_config *c, const struct tensor_spec *spec,
                bool *used, struct tensor *out)
{
    struct tensor_spec named = *spec;
    const struct tensor *t = NULL;
    struct tensor part;
    bool is_part = false;
    gguf_name_in(c, spec, named.name);
    TRY(find(g, &named, &is_part, &t));
    if (t)
        used[t - g->tensors.tensor] = true;
    if (is_part) {
        TRY(cut(g, c, t, spec, &part));
        t = &part;
    }
    if (t && tensor_is_of_expert(spec->role)) {
        TRY(cut_expert(g, c, t, spec, &part));
        t = &part;
    }
    TRY(weights_check(g->path, &named, t));
    if (spec->rank == 1 && tensor_type_block(t->dtype) > 1)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensor %s is %s; norms and biases must be F32, F16 or BF16: convert the "
                    "model again",
                    g->path, named.name, tensor_type_name(t->dtype));
    *out = *t;
    memcpy(out->name, spec->name, sizeof out->name);
    out->pairs = gguf_pairs(c, spec);
    out->added = -gguf_added(c, spec);
    return 0;
}

/* Return whether the reader of positions has read a tensor. */
static bool is_of_rope(const struct model_config *c, const char *name)
{
    const struct gguf_arch *arch = gguf_arch(c->model_type);
    if (strcmp(name, GGUF_ROPE_FREQS) == 0)
        return (arch->rules & RULE_BIT(ROPE_LLAMA3)) != 0;
    return (arch->rules & RULE_BIT(ROPE_LONGROPE)) != 0 &&
           (strcmp(name, GGUF_ROPE_LONG) == 0 || strcmp(name, GGUF_ROPE_SHORT) == 0);
}

static int refuse_rest(const struct gguf *g, const struct model_config *c, const bool *used)
{
    for (size_t i = 0; i < g->tensors.count; i++)
        if (!used[i] && !is_of_rope(c, g->tensors.tensor[i].name))
            return fail(NJ_E_UNSUPPORTED,
                        "%s: tensor %s is not part of the model that the metadata describes; it "
                        "would be ignored, so use another model",
                        g->path, g->tensors.tensor[i].name);
    return 0;
}

/* Take all tensors; *out: `count` tensors, malloc()'d. */
static int take_all(const struct gguf *g, const struct model_config *c,
                    const struct tensor_spec *spec, size_t count, struct tensor **out)
{
    struct tensor *list = calloc(count, sizeof *list);
    bool *used = calloc(g->tensors.count, sizeof *used);
    int rc = list && used
                 ? 0
                 : fail(NJ_E_NOMEM, "%s: out of memory for a list of %zu tensors", g->path, count);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = take(g, c, &spec[i], used, &list[i]);
    if (rc == 0)
        rc = refuse_rest(g, c, used);
    free(used);
    if (rc != 0) {
        free(list);
        return rc;
    }
    tensors_sort(list, count);
    *out = list;
    return 0;
}

int gguf_tensors(const char *path, struct tensors *out)
{
    struct model_config c;
    struct tensor_spec *spec = NULL;
    struct tensor *list;
    struct gguf g;
    size_t count;
    *out = (struct tensors){0};
    int rc = gguf_open(path, &g);
    if (rc != 0)
        return rc;
    if (!(rc = gguf_read_config(&g, &c)) && !(rc = tensor_specs(&c, &spec, &count)) &&
        !(rc = take_all(&g, &c, spec, count, &list))) {
        *out = g.tensors; /* with the mappings */
        g.tensors = (struct tensors){0};
        free(out->tensor);
        out->tensor = list;
        out->count = count;
    }
    free(spec);
    gguf_close(&g);
    return rc;
}
