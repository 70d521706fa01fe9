/* SPDX-License-Identifier: Apache-2.0
 *
 * f8.c: a net that multiplies E4M3: each matrix, and each operand multiplied by it, has a byte per element and a
 * scale per row. Embedding, norms and biases are T as always, and so is everything between two products. A matrix
 * whose FP8 GEMM the device refuses stays T. Such a net only runs forward.
 */
#include "net/fp8.h"

#include "base/checked.h"
#include "base/try.h"
#include "io/error.h"
#include "nojit_ops.h"

enum { BLOCK = 32 }; /* number of elements that share a scale */

int fp8_logits(int vocab)
{
    return (vocab + FP8_MULTIPLE - 1) / FP8_MULTIPLE * FP8_MULTIPLE;
}

int fp8_multiple(enum nj_f8_scales scales)
{
    return scales == NJ_F8_BLOCKS ? BLOCK : FP8_MULTIPLE;
}

static int check_width(const struct net *n, int ffn_size)
{
    const int C = n->c.hidden_size, multiple = fp8_multiple(n->f8_scales);
    if (C % multiple == 0 && ffn_size % multiple == 0 && ffn_size <= FP8_WIDEST_ACTIVATION)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "an fp8 teacher needs a hidden_size and an intermediate_size that are multiples of "
                "%d, the latter at most %d; this one has %d and %d: leave --teacher-dtype out",
                multiple, FP8_WIDEST_ACTIVATION, C, ffn_size);
}

static int check(const struct net *n)
{
    for (int l = 0; l < n->c.layers; l++) {
        const struct block *b = arch_block(&n->c.arch, l, BLOCK_GLU);
        if (arch_block(&n->c.arch, l, BLOCK_EXPERTS))
            return fail(NJ_E_UNSUPPORTED,
                        "an fp8 teacher cannot have experts; leave --teacher-dtype out, or choose "
                        "q8_0");
        TRY(check_width(n, b ? b->ffn_size : 0));
    }
    return 0;
}

bool fp8_any(const struct net *n)
{
    return fp8_elements(n, &matrix_fp8) > 0;
}

int64_t fp8_elements(const struct net *n, const struct matrix_format *format)
{
    int64_t elements = 0;
    for (int i = 0; i < n->matrices; i++)
        if (n->matrix[i].format == format)
            elements += matrix_elements(&n->matrix[i]);
    return elements;
}

/* The inputs of the output projection and of the head come from kernels that do not write E4M3. */
int fp8_choose(struct net *n)
{
    for (struct matrix *m = n->matrix; m <= n->head; m++) {
        const bool refused = m->small || (m->refused && *m->refused);
        m->format = refused ? &matrix_fp8_refused : &matrix_fp8;
        m->x_made = m->x != X_OTHER;
    }
    if (fp8_any(n))
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "--teacher-dtype fp8: cuBLASLt has no FP8 algorithm for any of this teacher's "
                "GEMMs on this GPU; leave --teacher-dtype out");
}

int fp8_layout(struct net *n)
{
    TRY(check(n));
    TRY(net_place(n, PARAMS_EMBEDDING));
    if (n->c.tied) { /* the head is a copy, as only it is E4M3 */
        n->embedding = n->head + 1;
        *n->embedding = *n->head;
        n->head->first = -1;
        n->matrices++;
    }
    return fp8_choose(n);
}

/* Return the bytes of scales of blocks. Tiles of 128 rows and 128 columns, of which as few as a row or a block of
 * columns may be used, have a byte for 32 elements: (rows + 127) (columns + 96) / 32 at most, as columns are whole
 * blocks (fp8_multiple). */
static size_t wanted_bytes(enum nj_f8_scales scales, size_t elements, int rows, int columns)
{
    const size_t padding = size_add(size_mul((size_t)rows, 3), size_mul((size_t)columns, 4));
    if (scales == NJ_F8_BLOCKS)
        return size_add(elements / BLOCK, size_add(padding, 128 * 3));
    return sizeof(float);
}

struct fp8_matrix fp8_room(enum nj_f8_scales scales, size_t elements, int rows, int columns,
                           struct carve *m)
{
    struct fp8_matrix out = {.rows = rows};
    out.q = carve_take(m, elements);
    out.scale = carve_take(m, size_mul((size_t)rows, sizeof *out.scale));
    if (scales == NJ_F8_BLOCKS || scales == NJ_F8_ONE)
        out.wanted = carve_take(m, wanted_bytes(scales, elements, rows, columns));
    return out;
}

struct fp8_matrix fp8_rows(enum nj_f8_scales scales, int rows, int columns, struct carve *m)
{
    struct fp8_matrix out =
        fp8_room(scales, size_mul((size_t)rows, (size_t)columns), rows, columns, m);
    out.columns = columns;
    return out;
}

/* Carve a matrix with the rows that logits need; rows beyond those of the matrix stay zero. */
static void carve(struct matrix *m, struct carve *c)
{
    m->f8 = fp8_rows(m->f8_scales, fp8_logits(m->rows), m->cols, c);
}

static void fwd(struct work *r, const struct matrix *m, const struct matmul *p, void *y,
                const void *x)
{
    struct linear l = matrix_shape(m, p);
    l.out = fp8_logits(p->out);
    l.refused = m->refused;
    if (!m->x_made)
        OP(r, nj_quantize_rows(
                  r->s, m->T,
                  &(struct nj_quantize_rows){
                      .q = p->x8->q, .scale = p->x8->scale, .x = x, .N = p->rows, .C = m->cols}));
    linear_fp8(r, &l, y, p->x8, &m->f8);
}

const struct matrix_format matrix_fp8 = {
    .name = "fp8",
    .e4m3 = true,
    .carve = carve,
    .fwd = fwd,
};

const struct matrix_format matrix_fp8_refused = {
    .name = "fp8, refused",
    .carve = matrix_carve_plain,
    .fwd = matrix_fwd_plain,
};
