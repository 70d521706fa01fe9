/* SPDX-License-Identifier: Apache-2.0
 *
 * quant.c: a net whose matrices stay quantised on the device, as blocks. Each is expanded into one scratch right
 * before its GEMM, the head in slices of the vocabulary, so what a GEMM reads is what it would read of a net of T
 * that holds the expanded weights. Norms and biases are T as always. Such a net only runs forward.
 */
#include "net/quant.h"

#include "base/checked.h"
#include "formats/tensors.h"
#include "io/error.h"
#include "nojit_ops.h"

#include <stdlib.h>

/* The embedding comes after the head; tied, it is the head. */
static int matrices(const struct net *n)
{
    return net_head(n) + (n->c.tied ? 1 : 2);
}

static bool is_plain(enum nj_tensor_type type)
{
    return tensor_type_block(type) == 1;
}

/* Adds a tensor's rows; those of the type before them join its part. */
static void add_rows(struct quant_matrix *m, enum nj_tensor_type type, int rows)
{
    if (m->parts == 0 || (m->part[m->parts - 1].type != type &&
                          !(is_plain(type) && is_plain(m->part[m->parts - 1].type))))
        m->part[m->parts++] = (struct quant_part){.type = type};
    m->part[m->parts - 1].rows += rows;
    m->rows += rows;
}

/* The matrix of a tensor, or -1. */
static int matrix_of(const struct net *n, const struct tensor_spec *s)
{
    return s->role == ROLE_EMBED && !n->c.tied ? net_head(n) + 1 : net_matrix(n, s);
}

int quant_layout(struct net *n, const unsigned char *types)
{
    int rc = params_layout(&n->c, PARAMS_VECTORS, &n->p);
    if (rc != 0)
        return rc;
    n->quant = calloc((size_t)matrices(n), sizeof *n->quant);
    if (!n->quant)
        return fail(NJ_E_NOMEM, "no host memory for the list of %d matrices; free some",
                    matrices(n));
    for (size_t i = 0; i < n->p.specs; i++) {
        const struct tensor_spec *s = &n->p.spec[i];
        const int k = matrix_of(n, s);
        if (k < 0)
            continue;
        n->quant[k].columns = (int)s->shape[1];
        add_rows(&n->quant[k], types ? (enum nj_tensor_type)types[i] : NJ_TYPE_F32,
                 (int)s->shape[0]);
    }
    return 0;
}

void quant_free(struct net *n)
{
    free(n->quant);
    n->quant = NULL;
}

size_t quant_rows_bytes(const struct net *n, const struct quant_matrix *m, int part, int64_t rows)
{
    const enum nj_tensor_type type = m->part[part].type;
    const size_t each = is_plain(type) ? size_mul((size_t)m->columns, dtype_bytes(n->T))
                                       : tensor_type_bytes(type, m->columns);
    return size_mul((size_t)rows, each);
}

static void carve_matrices(const struct net *n, int from, int to, struct carve *m)
{
    for (int i = from; n->quant && i < to; i++) {
        struct quant_matrix *q = &n->quant[i];
        for (int p = 0; p < q->parts; p++)
            q->part[p].data = carve_take(m, quant_rows_bytes(n, q, p, q->part[p].rows));
    }
}

void quant_carve_layer(const struct net *n, int layer, struct carve *m)
{
    carve_matrices(n, layer * PRODUCTS, (layer + 1) * PRODUCTS, m);
}

void quant_carve_ends(const struct net *n, struct carve *m)
{
    carve_matrices(n, net_head(n), matrices(n), m);
}

/* Whether it can be read where it lies. */
static bool lies_whole(const struct quant_matrix *m)
{
    return m->parts == 1 && is_plain(m->part[0].type);
}

static size_t row_bytes(const struct net *n, const struct quant_matrix *m)
{
    return size_mul((size_t)m->columns, dtype_bytes(n->T));
}

/* The largest matrix of a layer, or as few rows of the head as are expanded at a time. */
size_t quant_scratch_bytes(const struct net *n)
{
    size_t most = 0;
    for (int i = 0; n->quant && i <= net_head(n); i++) {
        const struct quant_matrix *m = &n->quant[i];
        const int rows = i == net_head(n) ? QUANT_ROWS : m->rows;
        const size_t bytes = size_mul((size_t)rows, row_bytes(n, m));
        if (!lies_whole(m) && bytes > most)
            most = bytes;
    }
    return most;
}

struct quant_matrix *quant_place(const struct net *n, size_t spec, int *part, int *row)
{
    const int k = matrix_of(n, &n->p.spec[spec]);
    *part = *row = 0;
    if (k < 0)
        return NULL;
    /* Tensors that share a matrix come in a run. */
    size_t first = spec;
    while (first > 0 && matrix_of(n, &n->p.spec[first - 1]) == k)
        first--;
    for (; first < spec; first++)
        *row += (int)n->p.spec[first].shape[0];
    for (; *row >= n->quant[k].part[*part].rows; (*part)++)
        *row -= n->quant[k].part[*part].rows;
    return &n->quant[k];
}

static void expand_part(struct work *r, const struct net *n, const struct quant_matrix *m, int part,
                        int first, int rows, char *to)
{
    const char *from = m->part[part].data + quant_rows_bytes(n, m, part, first);
    const enum nj_tensor_type type = m->part[part].type;
    if (is_plain(type))
        OP(r, nj_copy(r->s, to, from, (size_t)rows * row_bytes(n, m)));
    else
        OP(r, nj_dequantize(r->s, n->T, (int)type, to, (const int32_t *)(const void *)from, NULL,
                            rows, rows, m->columns));
}

const void *quant_expand(struct work *r, const struct net *n, int matrix, int first, int rows)
{
    const struct quant_matrix *m = &n->quant[matrix];
    char *to = n->expanded;
    if (lies_whole(m))
        return m->part[0].data + (size_t)first * row_bytes(n, m);
    for (int p = 0; p < m->parts && rows > 0; p++) {
        const int left = m->part[p].rows - first, taken = left < rows ? left : rows;
        if (taken > 0) {
            expand_part(r, n, m, p, first, taken, to);
            to += (size_t)taken * row_bytes(n, m);
            rows -= taken;
        }
        first = left > 0 ? 0 : -left;
    }
    return n->expanded;
}

int quant_head_rows(const struct net *n)
{
    const struct quant_matrix *m = &n->quant[net_head(n)];
    const size_t rows = quant_scratch_bytes(n) / row_bytes(n, m);
    return lies_whole(m) || rows > (size_t)m->rows ? m->rows
                                                   : (int)(rows / QUANT_ROWS * QUANT_ROWS);
}

void quant_embed(struct work *r, const struct net *n, void *dst, const int32_t *ids, int rows)
{
    const struct quant_matrix *m = &n->quant[net_head(n) + (n->c.tied ? 0 : 1)];
    const struct quant_part *p = &m->part[0];
    if (is_plain(p->type))
        OP(r, nj_row_gather(r->s, n->T, dst, p->data, ids, rows, m->rows, m->columns));
    else
        OP(r, nj_dequantize(r->s, n->T, (int)p->type, dst, (const int32_t *)(const void *)p->data,
                            ids, rows, m->rows, m->columns));
}
