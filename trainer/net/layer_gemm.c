/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_gemm.c: see layer_gemm.h.
 */
#include "net/layer_gemm.h"

#include "net/f8.h"
#include "net/quant.h"
#include "net/student_f8.h"

const void *product_weight(struct work *r, const struct net *n, int layer, enum product which)
{
    if (n->quant)
        return quant_expand(r, n, layer * PRODUCTS + (int)which, 0, product_shape(n, 1, which).out);
    if (n->f8)
        return n->f8[layer * PRODUCTS + (int)which].q;
    return net_weight(n, params_product(&n->p, layer, which));
}

void product_fwd(struct work *r, const struct net *n, const struct acts *a, int layer,
                 enum product which, void *y, const void *x)
{
    struct linear l = product_shape(n, acts_rows(a), which);
    if (f8_on(n, which)) {
        l.refused = net_f8_refused(n, which);
        linear_f8(r, &l, y, &a->x, &n->f8[layer * PRODUCTS + (int)which]);
        return;
    }
    if (student_f8_on(n, a, which))
        student_f8_fwd(r, n, a, layer, which, y, x);
    else
        linear_fwd(r, &l, y, x, product_weight(r, n, layer, which));
    if (n->lora)
        lora_fwd(r, n, &a->lora, layer, which, &l, y, x);
}

void product_gradient(struct work *r, const struct net *n, const struct acts *a, int layer,
                      enum product which, const void *dy)
{
    if (student_f8_on(n, a, which))
        student_f8_gradient(r, n, a, layer, which, dy);
}

void product_dw(struct work *r, const struct net *n, const struct acts *a, int layer,
                enum product which, const void *dy, const void *x)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    if (n->grad && student_f8_on(n, a, which))
        student_f8_dw(r, n, a, layer, which, x);
    else if (n->grad)
        linear_dw(r, &l, n->grad + params_product(&n->p, layer, which), dy, x, r->add);
}

void product_dx(struct work *r, const struct net *n, const struct acts *a, int layer,
                enum product which, void *dx, const void *dy, const void *x)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    if (student_f8_on(n, a, which))
        student_f8_dx(r, n, a, layer, which, dx);
    else
        linear_dx(r, &l, dx, dy, net_weight(n, params_product(&n->p, layer, which)));
    if (n->lora)
        lora_bwd(r, n, &a->lora, layer, which, &l, dx, dy, x);
}
