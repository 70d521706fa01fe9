/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_gemm.c: see layer_gemm.h.
 */
#include "engine/layer_gemm.h"

#include "engine/quant.h"

const void *product_weight(struct work *r, const struct net *n, int layer, enum product which)
{
    if (n->quant)
        return quant_expand(r, n, layer * PRODUCTS + (int)which, 0, product_shape(n, 1, which).out);
    return net_weight(n, params_product(&n->p, layer, which));
}

void product_fwd(struct work *r, const struct net *n, const struct acts *a, int layer,
                 enum product which, void *y, const void *x)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    if (n->f8) {
        linear_f8(r, &l, y, &a->x, &n->f8[layer * PRODUCTS + (int)which]);
        return;
    }
    linear_fwd(r, &l, y, x, product_weight(r, n, layer, which));
    if (n->lora)
        lora_fwd(r, n, &a->lora, layer, which, &l, y, x);
}

void product_dw(struct work *r, const struct net *n, const struct acts *a, int layer,
                enum product which, const void *dy, const void *x)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    if (n->grad)
        linear_dw(r, &l, n->grad + params_product(&n->p, layer, which), dy, x, r->add);
}

void product_dx(struct work *r, const struct net *n, const struct acts *a, int layer,
                enum product which, void *dx, const void *dy, const void *x)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    linear_dx(r, &l, dx, dy, net_weight(n, params_product(&n->p, layer, which)));
    if (n->lora)
        lora_bwd(r, n, &a->lora, layer, which, &l, dx, dy, x);
}
