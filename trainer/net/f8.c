/* SPDX-License-Identifier: Apache-2.0
 *
 * f8.c: a net that multiplies e4m3: each matrix has a byte an element and a scale a row, and so have
 * the rows that it is multiplied with. Embedding, norms and biases are T as always, and so is
 * everything between two products. A matrix whose GEMM the device refuses in FP8 stays T. Such a net only
 * runs forward.
 */
#include "net/f8.h"

#include "base/checked.h"
#include "io/error.h"
#include "nojit_ops.h"

#include <stdlib.h>

enum { BLOCK = 32 }; /* elements that have a scale */

int f8_logits(int vocab)
{
    return (vocab + F8_MULTIPLE - 1) / F8_MULTIPLE * F8_MULTIPLE;
}

int f8_multiple(const struct net *n)
{
    return n->f8_scales == NJ_F8_BLOCKS ? BLOCK : F8_MULTIPLE;
}

static int check(const struct net *n)
{
    const int C = n->c.hidden_size, I = n->c.intermediate_size, multiple = f8_multiple(n);
    if (C % multiple == 0 && I % multiple == 0 && I <= F8_WIDEST_ACTIVATION)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "an fp8 teacher needs a hidden_size and an intermediate_size that are multiples of "
                "%d, the latter at most %d; this one has %d and %d: leave --teacher-dtype out",
                multiple, F8_WIDEST_ACTIVATION, C, I);
}

/* Of the layers; the head comes after them. */
static int layer_matrices(const struct net *n)
{
    return n->c.layers * PRODUCTS;
}

bool f8_on(const struct net *n, enum product which)
{
    return n->f8 && !n->f8[which].plain;
}

bool f8_head_on(const struct net *n)
{
    return n->f8 && !n->f8[net_head(n)].plain;
}

int64_t f8_plain_weights(const struct net *n)
{
    int64_t elements = 0;
    for (int i = 0; n->f8 && i <= net_head(n); i++)
        if (n->f8[i].plain)
            elements +=
                (int64_t)(i == net_head(n) ? n->c.vocab_size : n->f8[i].rows) * n->f8[i].columns;
    return elements;
}

int f8_choose(struct net *n)
{
    const struct f8_refusals *refused = n->f8_refused;
    bool any = false;
    for (int i = 0; i <= net_head(n); i++) {
        const bool head = i == net_head(n);
        n->f8[i].plain = refused && (head ? refused->logits : refused->product[i % PRODUCTS]);
        any |= !n->f8[i].plain;
    }
    if (any)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "--teacher-dtype fp8: cuBLASLt has no FP8 algorithm for any of this teacher's "
                "GEMMs on this GPU; leave --teacher-dtype out");
}

int f8_layout(struct net *n)
{
    const int products = layer_matrices(n);
    int rc = check(n);
    if (rc == 0)
        rc = params_layout(&n->c, PARAMS_EMBEDDING, &n->p);
    if (rc != 0)
        return rc;
    n->f8 = calloc((size_t)products + 1, sizeof *n->f8);
    if (!n->f8)
        return fail(NJ_E_NOMEM, "no host memory for the list of %d matrices; free some", products);
    for (int i = 0; i < products; i++) {
        const struct linear l = product_shape(n, 1, (enum product)(i % PRODUCTS));
        n->f8[i] = (struct f8_matrix){.rows = l.out, .columns = l.in};
    }
    /* Rows beyond the vocabulary stay zero. */
    n->f8[products] =
        (struct f8_matrix){.rows = f8_logits(n->c.vocab_size), .columns = n->c.hidden_size};
    return f8_choose(n);
}

void f8_free(struct net *n)
{
    free(n->f8);
    n->f8 = NULL;
}

/* Tiles of 128 rows and 128 columns, of which as few as a row or a block of columns may be used, have a byte for 32
 * elements: (rows + 127) (columns + 96) / 32 at most, columns being whole blocks (f8_multiple). */
static size_t wanted_bytes(enum nj_f8_scales scales, size_t elements, int rows, int columns)
{
    const size_t padding = size_add(size_mul((size_t)rows, 3), size_mul((size_t)columns, 4));
    if (scales == NJ_F8_BLOCKS)
        return size_add(elements / BLOCK, size_add(padding, 128 * 3));
    return sizeof(float);
}

struct f8_matrix f8_room(const struct net *n, size_t elements, int rows, int columns,
                         struct carve *m)
{
    struct f8_matrix out = {.rows = rows};
    out.q = carve_take(m, elements);
    out.scale = carve_take(m, size_mul((size_t)rows, sizeof *out.scale));
    if (n->f8_scales == NJ_F8_BLOCKS || n->f8_scales == NJ_F8_ONE)
        out.wanted = carve_take(m, wanted_bytes(n->f8_scales, elements, rows, columns));
    return out;
}

struct f8_matrix f8_rows(const struct net *n, int rows, int columns, struct carve *m)
{
    struct f8_matrix out = f8_room(n, size_mul((size_t)rows, (size_t)columns), rows, columns, m);
    out.columns = columns;
    return out;
}

static struct f8_matrix carve_matrix(const struct net *n, const struct f8_matrix *of,
                                     struct carve *m)
{
    struct f8_matrix out = {.rows = of->rows, .columns = of->columns, .plain = true};
    if (!of->plain)
        return f8_rows(n, of->rows, of->columns, m);
    out.q = carve_take(m, size_product((size_t)of->rows, (size_t)of->columns, dtype_bytes(n->T)));
    return out;
}

static void carve_matrices(const struct net *n, int from, int to, struct carve *m)
{
    for (int i = from; n->f8 && i < to; i++)
        n->f8[i] = carve_matrix(n, &n->f8[i], m);
}

void f8_carve_layer(const struct net *n, int layer, struct carve *m)
{
    carve_matrices(n, layer * PRODUCTS, (layer + 1) * PRODUCTS, m);
}

void f8_carve_head(const struct net *n, struct carve *m)
{
    carve_matrices(n, net_head(n), net_head(n) + 1, m);
}

void f8_quantize(struct work *r, const struct net *n, const struct f8_matrix *to, const void *x,
                 int rows, int columns)
{
    OP(r, nj_quantize_rows(r->s, n->T, to->q, to->scale, NULL, x, rows, columns));
}
