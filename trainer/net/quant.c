/* SPDX-License-Identifier: Apache-2.0
 *
 * quant.c: a net whose matrices stay quantized on the device, as blocks. Each is expanded into shared scratch right
 * before its GEMM, the head in slices of the vocabulary, so that a GEMM reads the same as in a net of T with the
 * expanded weights. Norms and biases are T as always. Such a net only runs forward.
 */
#include "net/quant.h"

#include "base/checked.h"
#include "base/try.h"
#include "formats/tensors.h"
#include "io/error.h"
#include "nojit_ops.h"

/* Alignment that kernels need of the blocks that they read. */
enum { BLOCKS_ALIGN = 16 };

static bool is_plain(enum nj_tensor_type type)
{
    return tensor_type_block(type) == 1;
}

/* Add a tensor's rows; rows of the same type as those before them join their part. */
static int add_rows(struct quant_matrix *q, enum nj_tensor_type type, const struct tensor_spec *s)
{
    if (q->parts == 0 || (q->part[q->parts - 1].type != type &&
                          !(is_plain(type) && is_plain(q->part[q->parts - 1].type)))) {
        if (q->parts == QUANT_PARTS)
            return fail(NJ_E_UNSUPPORTED,
                        "the experts of layer %d have %s after matrices of other types; use a "
                        "release of the model that has one type for all experts of a layer",
                        s->layer, tensor_type_name(type));
        q->part[q->parts++] = (struct quant_part){.type = type};
    }
    q->part[q->parts - 1].rows += (int)s->shape[0];
    return 0;
}

static size_t row_bytes(const struct matrix *m)
{
    return size_mul((size_t)m->cols, dtype_bytes(m->T));
}

/* Return the number of experts in each of the fewest groups that have at most `most`. */
static int in_group(const struct matrix *m, int most)
{
    const int groups = (m->experts + most - 1) / most;
    return (m->experts + groups - 1) / groups;
}

/* Return the fewest rows that a product takes at a time: of the head a slice of the vocabulary, of experts a group. */
static int fewest_rows(const struct net *n, const struct matrix *m)
{
    if (m == n->head)
        return QUANT_ROWS;
    if (m->experts == 0 || m->rows / m->experts % QUANT_ROWS != 0)
        return m->rows;
    return in_group(m, (m->experts + EXPERT_GROUPS - 1) / EXPERT_GROUPS) * (m->rows / m->experts);
}

/* Set how much of a matrix is expanded at a time. */
static void divide(struct matrix *m, size_t scratch)
{
    const size_t rows = scratch / row_bytes(m);
    m->quant.at_once = rows >= (size_t)m->rows ? m->rows : (int)(rows / QUANT_ROWS * QUANT_ROWS);
    if (m->experts > 0)
        m->experts_at_once = in_group(m, m->quant.at_once / (m->rows / m->experts));
}

/* Choose the format of each matrix; one without a quantized row is read in place. */
static void choose_formats(struct net *n)
{
    for (int i = 0; i < n->matrices; i++) {
        const struct quant_matrix *q = &n->matrix[i].quant;
        const bool plain = q->parts == 1 && is_plain(q->part[0].type);
        n->matrix[i].format = plain ? &matrix_plain : &matrix_quant;
    }
    const size_t scratch = quant_scratch_bytes(n);
    for (int i = 0; i < n->matrices; i++)
        if (n->matrix[i].format == &matrix_quant)
            divide(&n->matrix[i], scratch);
}

int quant_layout(struct net *n, const unsigned char *types)
{
    TRY(net_place(n, PARAMS_VECTORS));
    for (size_t i = 0; i < n->p.specs; i++) {
        int row;
        struct matrix *m = net_matrix_of(n, i, &row);
        if (m)
            TRY(add_rows(&m->quant, types ? (enum nj_tensor_type)types[i] : NJ_TYPE_F32,
                         &n->p.spec[i]));
    }
    choose_formats(n);
    return 0;
}

size_t quant_rows_bytes(const struct matrix *m, int part, int64_t rows)
{
    const enum nj_tensor_type type = m->quant.part[part].type;
    return size_mul((size_t)rows, is_plain(type) ? row_bytes(m) : tensor_type_bytes(type, m->cols));
}

static void carve(struct matrix *m, struct carve *c)
{
    struct quant_matrix *q = &m->quant;
    for (int p = 0; p < q->parts; p++)
        q->part[p].data = carve_take(c, quant_rows_bytes(m, p, q->part[p].rows));
}

/* The scratch holds the largest matrix of a layer, or as few rows of the head or of experts as are expanded at a
 * time. */
size_t quant_scratch_bytes(const struct net *n)
{
    size_t most = 0;
    for (const struct matrix *m = n->matrix; m <= n->head; m++) {
        const size_t bytes = size_mul((size_t)fewest_rows(n, m), row_bytes(m));
        if (m->format == &matrix_quant && bytes > most)
            most = bytes;
    }
    return most;
}

void quant_connect(struct net *n, char *scratch)
{
    for (int i = 0; i < n->matrices; i++)
        if (n->matrix[i].format == &matrix_quant)
            n->matrix[i].quant.expanded = scratch;
}

int quant_part_of(const struct matrix *m, int *row)
{
    int part = 0;
    for (; *row >= m->quant.part[part].rows; part++)
        *row -= m->quant.part[part].rows;
    return part;
}

const int32_t *quant_blocks(const struct matrix *m, int first, int rows, enum nj_tensor_type *type)
{
    if (m->format != &matrix_quant)
        return NULL;
    const int part = quant_part_of(m, &first);
    const struct quant_part *p = &m->quant.part[part];
    const size_t before = quant_rows_bytes(m, part, first);
    *type = p->type;
    if (is_plain(p->type) || first + rows > p->rows || before % BLOCKS_ALIGN != 0)
        return NULL;
    return (const int32_t *)(const void *)(p->data + before);
}

static void expand_part(struct work *r, const struct matrix *m, int part, int first, int rows,
                        char *to)
{
    const struct quant_part *p = &m->quant.part[part];
    const char *from = p->data + quant_rows_bytes(m, part, first);
    if (is_plain(p->type))
        OP(r, nj_copy(r->s, to, from, (size_t)rows * row_bytes(m)));
    else
        OP(r, nj_dequantize(r->s, m->T, (int)p->type,
                            &(struct nj_dequantize){.dst = to,
                                                    .data = (const int32_t *)(const void *)from,
                                                    .M = rows,
                                                    .R = rows,
                                                    .C = m->cols}));
}

static const void *weight(struct work *r, const struct matrix *m, int first, int rows, int at)
{
    char *const begin = m->quant.expanded + (size_t)at * row_bytes(m), *to = begin;
    for (int p = 0; p < m->quant.parts && rows > 0; p++) {
        const int left = m->quant.part[p].rows - first, taken = left < rows ? left : rows;
        if (taken > 0) {
            expand_part(r, m, p, first, taken, to);
            to += (size_t)taken * row_bytes(m);
            rows -= taken;
        }
        first = left > 0 ? 0 : -left;
    }
    return begin;
}

static void gather(struct work *r, const struct matrix *m, void *dst, const int32_t *ids, int rows,
                   float scale)
{
    const struct quant_part *p = &m->quant.part[0];
    OP(r, nj_dequantize(r->s, m->T, (int)p->type,
                        &(struct nj_dequantize){.dst = dst,
                                                .data = (const int32_t *)(const void *)p->data,
                                                .index = ids,
                                                .M = rows,
                                                .R = m->rows,
                                                .C = m->cols}));
    if (scale != 1)
        OP(r, nj_row_gather(
                  r->s, m->T,
                  &(struct nj_row_gather){
                      .dst = dst, .src = dst, .M = rows, .R = rows, .C = m->cols, .scale = scale}));
}

/* The head is computed in slices of the vocabulary, each of as many rows as the scratch holds. */
static void fwd(struct work *r, const struct matrix *m, const struct matmul *p, void *y,
                const void *x)
{
    const int most = m->quant.at_once;
    for (int from = 0; from < p->out; from += most) {
        struct linear slice = matrix_shape(m, p);
        slice.out = p->out - from < most ? p->out - from : most;
        linear_fwd(r, &slice, (char *)y + (size_t)from * dtype_bytes(m->T), x,
                   weight(r, m, from, slice.out, 0));
    }
}

const struct matrix_format matrix_quant = {
    .name = "quantized",
    .carve = carve,
    .weight = weight,
    .gather = gather,
    .fwd = fwd,
};
