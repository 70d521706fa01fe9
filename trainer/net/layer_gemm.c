/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_gemm.c: see layer_gemm.h.
 */
#include "net/layer_gemm.h"

#include "nojit_ops.h"

static struct matmul matmul_of(const struct acts *a, const struct matrix *m, bool add)
{
    struct matmul p = matrix_matmul(m, acts_rows(a));
    p.add = add;
    p.x8 = &a->x;
    p.training = a->mode == ACTS_TRAIN ? &a->f8 : NULL;
    return p;
}

bool product_x_made(const struct acts *a, const struct matrix *m)
{
    const struct matmul p = matmul_of(a, m, false);
    return m->x_made && matrix_e4m3(m, &p);
}

const void *product_weight(struct work *r, const struct acts *a, const struct matrix *m)
{
    const struct matmul p = matmul_of(a, m, false);
    if (!m->format->weight || m->adapters > 0 || m->bias || matrix_e4m3(m, &p))
        return NULL;
    return m->format->weight(r, m, 0, m->rows, 0);
}

const void *product_experts(struct work *r, const struct matrix *m, int stacks, int first,
                            int count)
{
    const int rows = m->rows / stacks, each = rows / m->experts;
    const void *out = m->format->weight(r, m, first * each, count * each, 0);
    for (int k = 1; k < stacks; k++)
        m->format->weight(r, m, k * rows + first * each, count * each, k * count * each);
    return out;
}

void product_fwd(struct work *r, const struct acts *a, const struct matrix *m, void *y,
                 const void *x)
{
    const struct matmul p = matmul_of(a, m, false);
    matrix_fwd(r, m, &p, y, x);
    lora_fwd(r, m, &p, &a->lora, y, x);
    if (m->bias)
        OP(r, nj_bias_add(r->s, m->T,
                          &(struct nj_bias_add){.y = y, .b = m->bias, .N = p.rows, .C = m->rows}));
}

void product_gradient(struct work *r, const struct acts *a, const struct matrix *m, const void *dy)
{
    const struct matmul p = matmul_of(a, m, r->add);
    matrix_gradient(r, m, &p, dy);
}

/* Add to the gradient of a bias. */
static void bias_gradient(struct work *r, const struct acts *a, const struct matrix *m,
                          const void *dy)
{
    const int N = acts_rows(a), P = partial_sums(N);
    OP(r,
       nj_bias_bwd(r->s, m->T,
                   &(struct nj_bias_bwd){.part = a->part, .dy = dy, .N = N, .C = m->rows, .P = P}));
    OP(r,
       nj_colsum(r->s, NJ_F32,
                 &(struct nj_colsum){.dst = m->bias_grad, .part = a->part, .P = P, .C = m->rows}));
}

void product_dw(struct work *r, const struct acts *a, const struct matrix *m, const void *dy,
                const void *x)
{
    const struct matmul p = matmul_of(a, m, r->add);
    matrix_dw(r, m, &p, dy, x);
    if (m->bias_grad)
        bias_gradient(r, a, m, dy);
}

void product_dx(struct work *r, const struct acts *a, const struct matrix *m, void *dx,
                const void *dy, const void *x)
{
    const struct matmul p = matmul_of(a, m, r->add);
    matrix_dx(r, m, &p, dx, dy);
    lora_bwd(r, m, &p, &a->lora, dx, dy, x);
}
