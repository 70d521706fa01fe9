/* SPDX-License-Identifier: Apache-2.0
 *
 * net.c: see net.h.
 */
#include "net/net.h"

#include "io/error.h"

#include <stdlib.h>

void *net_weight(const struct net *n, int64_t first)
{
    return first < 0 ? NULL : n->w + (size_t)first * dtype_bytes(n->T);
}

int net_qkv(const struct model_config *c)
{
    return (c->heads + 2 * c->kv_heads) * c->head_dim;
}

/* Return the number of the head. Matrices are numbered layer * PRODUCTS + product; the head follows, then the
 * embedding. */
static int head_number(const struct net *n)
{
    return n->c.layers * PRODUCTS;
}

/* Return the number of a tensor's matrix, or -1. */
static int number_of(const struct net *n, const struct tensor_spec *s)
{
    static const struct {
        bool multiplies;
        enum product product;
    } of_role[ROLE_COUNT] = {
        [ROLE_Q_WEIGHT] = {true, PRODUCT_QKV},        [ROLE_K_WEIGHT] = {true, PRODUCT_QKV},
        [ROLE_V_WEIGHT] = {true, PRODUCT_QKV},        [ROLE_O_WEIGHT] = {true, PRODUCT_O},
        [ROLE_GATE_WEIGHT] = {true, PRODUCT_GATE_UP}, [ROLE_UP_WEIGHT] = {true, PRODUCT_GATE_UP},
        [ROLE_DOWN_WEIGHT] = {true, PRODUCT_DOWN},
    };
    if (s->role == ROLE_HEAD || s->role == ROLE_EMBED)
        return head_number(n) + (s->role == ROLE_EMBED && !n->c.tied ? 1 : 0);
    if (!of_role[s->role].multiplies)
        return -1;
    return s->layer * PRODUCTS + (int)of_role[s->role].product;
}

/* Tell a matrix where to note that its GEMMs are refused. */
static void connect_refusals(const struct net *n, struct matrix *m)
{
    struct f8_refusals *f = n->f8_refused;
    const bool head = m->number >= head_number(n);
    if (!f)
        return;
    m->refused = head ? &f->logits : &f->product[m->number % PRODUCTS];
    m->gradient_refused = head ? &f->gradients : m->refused;
}

/* List the matrices. Tensors that share one come one after another, the first one where the matrix begins. */
static void list_matrices(struct net *n)
{
    for (int i = 0; i < n->matrices; i++) {
        n->matrix[i] = (struct matrix){.T = n->T,
                                       .format = &matrix_plain,
                                       .first = -1,
                                       .number = i,
                                       .f8_scales = n->f8_scales};
        connect_refusals(n, &n->matrix[i]);
    }
    for (size_t i = 0; i < n->p.specs; i++) {
        const struct tensor_spec *s = &n->p.spec[i];
        const int k = number_of(n, s);
        if (k < 0)
            continue;
        struct matrix *m = &n->matrix[k];
        if (m->rows == 0)
            m->first = n->p.first[i];
        m->rows += (int)s->shape[0];
        m->cols = (int)s->shape[1];
    }
    n->head = &n->matrix[head_number(n)];
    n->embedding = n->c.tied ? n->head : n->head + 1;
}

int net_place(struct net *n, enum params_matrices here)
{
    const int rc = params_layout(&n->c, here, &n->p);
    if (rc != 0)
        return rc;
    n->matrices = head_number(n) + (n->c.tied ? 1 : 2);
    n->matrix = calloc((size_t)head_number(n) + 2, sizeof *n->matrix);
    if (!n->matrix)
        return fail(NJ_E_NOMEM, "no host memory for the list of %d matrices; free some",
                    n->matrices);
    list_matrices(n);
    return 0;
}

void net_free(struct net *n)
{
    params_free(&n->p);
    free(n->matrix);
    n->matrix = NULL;
    n->matrices = 0;
}

void net_connect(struct net *n, char *w, float *grad)
{
    n->w = w;
    n->grad = grad;
    for (int i = 0; i < n->matrices; i++) {
        struct matrix *m = &n->matrix[i];
        if (m->first < 0)
            continue;
        m->data = net_weight(n, m->first);
        m->grad = grad ? grad + m->first : NULL;
    }
}

bool net_is_plain(const struct net *n)
{
    for (int i = 0; i < n->matrices; i++)
        if (n->matrix[i].format != &matrix_plain || n->matrix[i].adapters > 0)
            return false;
    return true;
}

struct matrix *net_layer_matrix(const struct net *n, int layer, enum product which)
{
    return &n->matrix[layer * PRODUCTS + (int)which];
}

struct matrix *net_matrix_of(const struct net *n, size_t spec, int *row)
{
    const int k = number_of(n, &n->p.spec[spec]);
    *row = 0;
    for (; k >= 0 && spec > 0 && number_of(n, &n->p.spec[spec - 1]) == k; spec--)
        *row += (int)n->p.spec[spec - 1].shape[0];
    return k < 0 ? NULL : &n->matrix[k];
}

static void carve_matrices(const struct net *n, int from, int to, struct carve *m)
{
    for (int i = from; i < to; i++)
        if (n->matrix[i].first < 0)
            n->matrix[i].format->carve(&n->matrix[i], m);
}

void net_carve_layer(const struct net *n, int layer, struct carve *m)
{
    carve_matrices(n, layer * PRODUCTS, (layer + 1) * PRODUCTS, m);
}

void net_carve_ends(const struct net *n, struct carve *m)
{
    carve_matrices(n, head_number(n), n->matrices, m);
}

const char *product_name(enum product which)
{
    static const char *const name[PRODUCTS] = {
        [PRODUCT_QKV] = "qkv",
        [PRODUCT_O] = "o",
        [PRODUCT_GATE_UP] = "gate_up",
        [PRODUCT_DOWN] = "down",
    };
    return name[which];
}

int product_widest_input(const struct model_config *c)
{
    int widest = c->heads * c->head_dim;
    widest = widest > c->hidden_size ? widest : c->hidden_size;
    return widest > c->intermediate_size ? widest : c->intermediate_size;
}
