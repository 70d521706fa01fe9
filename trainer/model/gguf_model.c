/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_model.c: see gguf_model.h.
 */
#include "model/gguf_model.h"

#include "base/try.h"
#include "formats/gguf.h"
#include "io/error.h"
#include "io/notes.h"
#include "model/file_rows.h"
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

/* ---- columns in another order ---- */

/* Elements of a block that has elements of one head. */
enum { CUT_ELEMENTS = 64 };

/* Make floats of one head, of which the file's blocks hold several. */
static void cut_block(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    const struct tensor t = {.dtype = (enum nj_tensor_type)p->part[0].type,
                             .rank = 2,
                             .shape = {p->rows, p->columns},
                             .data = p->part[0].data};
    float x[CUT_ELEMENTS];
    tensor_to_f32(&t, row * p->columns + head_tiles_element(&p->tiles, column), CUT_ELEMENTS, x);
    memcpy(to, x, sizeof x);
}

/* Note the order of heads in the columns of a tensor. Where its blocks do not end with heads, it becomes one of
 * floats. */
static void order_columns(const struct head_tiles *tiles, struct packed *p, struct tensor *t)
{
    if (tiles->each < 2 || tiles->D % tensor_type_block(t->dtype) == 0) {
        t->column_tiles = *tiles;
        return;
    }
    *p = (struct packed){.block = cut_block,
                         .part = {{t->data, t->bytes, (int)t->dtype}},
                         .type = tensor_type_name(t->dtype),
                         .elements = CUT_ELEMENTS,
                         .rows = t->shape[0],
                         .columns = t->shape[1],
                         .tiles = *tiles};
    t->packed = p;
    t->data = NULL;
    t->dtype = NJ_TYPE_F32;
    t->bytes = tensor_type_bytes(t->dtype, p->rows * p->columns);
}

/* ---- all tensors ---- */

/* Return the tensor of the file that holds one of the model's, and in *order which of its rows these are: a gate's are
 * among the queries of its layer. */
static struct tensor_spec in_file(const struct model_config *c, const struct tensor_spec *spec,
                                  struct head_order *order)
{
    struct tensor_spec out = gguf_shape(spec);
    *order = file_order(c, spec);
    if (order->stride > order->D) {
        out.role = ROLE_Q_WEIGHT;
        out.shape[0] = (int64_t)order->heads * order->stride;
    }
    gguf_tensor_name(gguf_arch(c->model_type), &out, out.name);
    return out;
}

/* Take the tensor of a spec, under Hugging Face's name. packed: room for a source of its blocks. */
static int take(const struct gguf *g, const struct model_config *c, const struct tensor_spec *spec,
                bool *used, struct packed *packed, struct tensor *out)
{
    struct head_order order;
    const struct tensor_spec named = in_file(c, spec, &order);
    const struct head_tiles columns = gguf_column_tiles(c, spec);
    const struct tensor *t = NULL;
    struct tensor part;
    bool is_part = false;
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
    if (spec->rank != 2 && tensor_type_block(t->dtype) > 1)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensor %s is %s; norms, biases and the taps of convolutions must be F32, "
                    "F16 or BF16: convert the model again",
                    g->path, named.name, tensor_type_name(t->dtype));
    *out = *t;
    memcpy(out->name, spec->name, sizeof out->name);
    out->rank = spec->rank;
    memcpy(out->shape, spec->shape, sizeof spec->shape);
    out->pairs = gguf_pairs(c, spec);
    out->order = order;
    out->row_tiles = gguf_row_tiles(c, spec);
    out->added = -gguf_added(c, spec);
    out->negated_exp = gguf_negated_exp(spec);
    order_columns(&columns, packed, out);
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

/* Return whether a tensor is of a layer that predicts further tokens. */
static bool is_of_prediction(const struct model_config *c, const char *name)
{
    static const char layers[] = "blk.";
    return gguf_arch(c->model_type)->predicts && strncmp(name, layers, strlen(layers)) == 0 &&
           strtol(name + strlen(layers), NULL, 10) >= c->layers;
}

static int refuse_rest(const struct gguf *g, const struct model_config *c, const bool *used)
{
    size_t left_out = 0;
    for (size_t i = 0; i < g->tensors.count; i++) {
        const char *name = g->tensors.tensor[i].name;
        const bool predicts = !used[i] && is_of_prediction(c, name);
        left_out += predicts;
        if (!used[i] && !predicts && !is_of_rope(c, name))
            return fail(NJ_E_UNSUPPORTED,
                        "%s: tensor %s is not part of the model that the metadata describes; it "
                        "would be ignored, so use another model",
                        g->path, name);
    }
    if (left_out > 0)
        note("%s: of its tensors %zu are left out, which predict further tokens: those of layers "
             "from %d on",
             g->path, left_out, c->layers);
    return 0;
}

/* Take all tensors of `spec` into a list, and the sources of blocks of some. */
static int take_all(const struct gguf *g, const struct model_config *c,
                    const struct tensor_spec *spec, size_t count, struct tensors *out)
{
    struct tensor *list = calloc(count, sizeof *list);
    struct packed *packed = calloc(count, sizeof *packed);
    bool *used = calloc(g->tensors.count, sizeof *used);
    int rc = list && packed && used
                 ? 0
                 : fail(NJ_E_NOMEM, "%s: out of memory for a list of %zu tensors", g->path, count);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = take(g, c, &spec[i], used, &packed[i], &list[i]);
    if (rc == 0)
        rc = refuse_rest(g, c, used);
    free(used);
    if (rc != 0) {
        free(list);
        free(packed);
        return rc;
    }
    tensors_sort(list, count);
    *out = (struct tensors){.tensor = list, .packed = packed, .count = count};
    return 0;
}

int gguf_tensors(const char *path, struct tensors *out)
{
    struct model_config c;
    struct tensor_spec *spec = NULL;
    struct tensors taken;
    struct gguf g;
    size_t count;
    *out = (struct tensors){0};
    int rc = gguf_open(path, &g);
    if (rc != 0)
        return rc;
    if (!(rc = gguf_read_config(&g, &c)) && !(rc = tensor_specs(&c, &spec, &count)) &&
        !(rc = take_all(&g, &c, spec, count, &taken))) {
        *out = taken;
        out->map = g.tensors.map;
        out->map_count = g.tensors.map_count;
        free(g.tensors.tensor);
        g.tensors = (struct tensors){0};
    }
    free(spec);
    gguf_close(&g);
    return rc;
}
