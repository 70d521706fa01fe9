/* SPDX-License-Identifier: Apache-2.0
 *
 * net.c: see net.h.
 */
#include "net/net.h"

#include "base/check.h"
#include "base/try.h"
#include "io/error.h"
#include "net/tables.h"

#include <stdlib.h>

void *net_weight(const struct net *n, int64_t first)
{
    return first < 0 ? NULL : n->w + (size_t)first * dtype_bytes(n->T);
}

/* Return the number of the head. The matrices of the layers come before it, the embedding follows. */
static int head_number(const struct net *n)
{
    return n->layer[n->c.layers].matrix;
}

/* Return the number of the first matrix of a block. */
static int block_number(const struct net *n, int layer, int block)
{
    const struct layer *l = arch_layer(&n->c.arch, layer);
    int number = n->layer[layer].matrix;
    for (int b = 0; b < block; b++)
        number += block_matrix_count(&l->block[b]);
    return number;
}

/* Return the index of the block of a kind in a layer, which has one. */
static int block_index(const struct net *n, int layer, enum block_kind kind)
{
    const struct layer *l = arch_layer(&n->c.arch, layer);
    return (int)(arch_block(&n->c.arch, layer, kind) - l->block);
}

/* Return the number of a tensor's matrix, or -1. */
static int number_of(const struct net *n, const struct tensor_spec *s)
{
    enum block_kind kind = BLOCK_KINDS;
    const int which = block_matrix_of(s->role, &kind);
    if (s->role == ROLE_HEAD || s->role == ROLE_EMBED)
        return head_number(n) + (s->role == ROLE_EMBED && !n->c.tied ? 1 : 0);
    return which < 0 ? -1 : block_number(n, s->layer, block_index(n, s->layer, kind)) + which;
}

/* Tell the matrices of a layer what comes before and after their products, and where to note that their GEMMs are
 * refused. */
static void describe_layer(const struct net *n, int layer)
{
    const struct layer *l = arch_layer(&n->c.arch, layer);
    for (int b = 0; b < l->blocks; b++) {
        struct matrix *m = net_block_matrices(n, layer, b);
        const enum block_kind kind = l->block[b].kind;
        const bool after = block_has(&l->block[b], FEATURE_NORM_AFTER);
        CHECK(block_index(n, layer, kind) == b);
        for (int i = 0; i < block_matrix_count(&l->block[b]); i++) {
            const struct block_matrix *row = &block_matrices[kind].matrix[i];
            m[i].x = block_matrix_x(&l->block[b], i);
            m[i].small = row->small;
            m[i].experts = row->of_experts ? l->block[b].experts : 0;
            m[i].experts_at_once = m[i].experts;
            m[i].scale = row->output ? n->c.residual_scale : 1;
            m[i].bias_first = n->p.layer[layer][row->bias];
            CHECK((m[i].bias_first < 0 && !(row->output && after)) || matrix_scale(&m[i]) == 1);
            if (n->fp8_refused)
                m[i].refused = m[i].gradient_refused = &n->fp8_refused->in_block[kind][i];
        }
    }
}

static void describe_ends(const struct net *n)
{
    for (int i = head_number(n); n->fp8_refused && i < n->matrices; i++) {
        n->matrix[i].refused = &n->fp8_refused->logits;
        n->matrix[i].gradient_refused = &n->fp8_refused->gradients;
    }
}

/* List the matrices. Tensors that share one come one after another, the first one where the matrix begins. */
static void list_matrices(struct net *n)
{
    for (int i = 0; i < n->matrices; i++) {
        n->matrix[i] = (struct matrix){.T = n->T,
                                       .format = &matrix_plain,
                                       .first = -1,
                                       .bias_first = -1,
                                       .number = i,
                                       .f8_scales = n->f8_scales};
    }
    for (int l = 0; l < n->c.layers; l++)
        describe_layer(n, l);
    describe_ends(n);
    for (size_t i = 0; i < n->p.specs; i++) {
        const struct tensor_spec *s = &n->p.spec[i];
        const int k = number_of(n, s);
        n->rows_of[i] = (struct net_rows){k, k < 0 ? 0 : n->matrix[k].rows};
        if (k < 0)
            continue;
        struct matrix *m = &n->matrix[k];
        if (m->rows == 0)
            m->first = n->p.first[i];
        m->rows += (int)s->shape[0];
        m->cols = (int)s->shape[1];
    }
    n->head = &n->matrix[head_number(n)];
    n->head->scale = n->c.logit_scale;
    n->embedding = n->c.tied ? n->head : n->head + 1;
}

/* Count what comes before each layer. */
static void count_layers(struct net *n)
{
    int same_kind[LAYER_KINDS_MOST] = {0};
    for (int l = 0; l < n->c.layers; l++) {
        const struct layer *layer = arch_layer(&n->c.arch, l);
        struct net_layer *at = &n->layer[l];
        at->same_kind = same_kind[n->c.arch.kind_of[l]]++;
        at[1] = (struct net_layer){.matrix = at->matrix,
                                   .inner = at->inner + layer->blocks - 1,
                                   .normed_after = at->normed_after};
        for (int b = 0; b < layer->blocks; b++) {
            at[1].matrix += block_matrix_count(&layer->block[b]);
            at[1].normed_after += block_has(&layer->block[b], FEATURE_NORM_AFTER);
        }
    }
}

int net_place(struct net *n, enum params_matrices here)
{
    TRY(params_layout(&n->c, here, &n->p));
    n->layer = calloc((size_t)n->c.layers + 1, sizeof *n->layer);
    if (n->layer) {
        count_layers(n);
        n->matrices = head_number(n) + (n->c.tied ? 1 : 2);
        n->matrix = calloc((size_t)head_number(n) + 2, sizeof *n->matrix);
        n->rows_of = calloc(n->p.specs + 1, sizeof *n->rows_of);
    }
    if (!n->matrix || !n->rows_of)
        return fail(NJ_E_NOMEM, "no host memory for the list of %d layers; free some", n->c.layers);
    list_matrices(n);
    tables_place(n);
    return 0;
}

void net_free(struct net *n)
{
    params_free(&n->p);
    free(n->layer);
    free(n->matrix);
    free(n->rows_of);
    n->layer = NULL;
    n->matrix = NULL;
    n->rows_of = NULL;
    n->matrices = 0;
}

float net_embedding_scale(const struct net *n)
{
    return config_embedding_scale(&n->c, n->T == NJ_LP);
}

bool net_is_frozen(const struct net *n)
{
    return n->trained != &n->p;
}

void net_connect(struct net *n, char *w, float *grad)
{
    n->w = w;
    n->grad = net_is_frozen(n) ? NULL : grad;
    for (int i = 0; i < n->matrices; i++) {
        struct matrix *m = &n->matrix[i];
        m->bias = net_weight(n, m->bias_first);
        m->bias_grad = n->grad && m->bias_first >= 0 ? n->grad + m->bias_first : NULL;
        if (m->first < 0)
            continue;
        m->data = net_weight(n, m->first);
        m->grad = n->grad ? n->grad + m->first : NULL;
    }
}

struct matrix *net_block_matrices(const struct net *n, int layer, int block)
{
    return &n->matrix[block_number(n, layer, block)];
}

struct matrix *net_matrix(const struct net *n, int layer, enum block_kind kind, int which)
{
    return net_block_matrices(n, layer, block_index(n, layer, kind)) + which;
}

bool net_some(const struct net *n, enum block_kind kind, int which,
              bool (*condition)(const struct matrix *m))
{
    for (int l = 0; l < n->c.layers; l++) {
        const struct block *b = arch_block(&n->c.arch, l, kind);
        if (b && which < block_matrix_count(b) && condition(net_matrix(n, l, kind, which)))
            return true;
    }
    return false;
}

struct matrix *net_matrix_of(const struct net *n, size_t spec, int *row)
{
    const struct net_rows *at = &n->rows_of[spec];
    *row = at->row;
    return at->matrix < 0 ? NULL : &n->matrix[at->matrix];
}

static void carve_matrices(const struct net *n, int from, int to, struct carve *m)
{
    for (int i = from; i < to; i++)
        if (n->matrix[i].first < 0)
            n->matrix[i].format->carve(&n->matrix[i], m);
}

void net_carve_layer(const struct net *n, int layer, struct carve *m)
{
    carve_matrices(n, n->layer[layer].matrix, n->layer[layer + 1].matrix, m);
}

void net_carve_ends(const struct net *n, struct carve *m)
{
    carve_matrices(n, head_number(n), n->matrices, m);
}

size_t net_most(const struct net *n, int64_t (*size)(const struct block *b))
{
    return (size_t)arch_most(&n->c.arch, n->c.layers, size);
}

int net_widest_input(const struct net *n)
{
    int widest = 0;
    for (const struct matrix *m = n->matrix; m <= n->head; m++)
        widest = m->cols > widest ? m->cols : widest;
    return widest;
}
