/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_gemm.c: see layer_gemm.h.
 */
#include "net/layer_gemm.h"

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
    if (!m->format->weight || m->adapters > 0 || matrix_e4m3(m, &p))
        return NULL;
    return m->format->weight(r, m, 0, m->rows);
}

void product_fwd(struct work *r, const struct acts *a, const struct matrix *m, void *y,
                 const void *x)
{
    const struct matmul p = matmul_of(a, m, false);
    matrix_fwd(r, m, &p, y, x);
    lora_fwd(r, m, &p, &a->lora, y, x);
}

void product_gradient(struct work *r, const struct acts *a, const struct matrix *m, const void *dy)
{
    const struct matmul p = matmul_of(a, m, r->add);
    matrix_gradient(r, m, &p, dy);
}

void product_dw(struct work *r, const struct acts *a, const struct matrix *m, const void *dy,
                const void *x)
{
    const struct matmul p = matmul_of(a, m, r->add);
    matrix_dw(r, m, &p, dy, x);
}

void product_dx(struct work *r, const struct acts *a, const struct matrix *m, void *dx,
                const void *dy, const void *x)
{
    const struct matmul p = matmul_of(a, m, r->add);
    matrix_dx(r, m, &p, dx, dy);
    lora_bwd(r, m, &p, &a->lora, dx, dy, x);
}
