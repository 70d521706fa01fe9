/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_gemm.c: see layer_gemm.h.
 */
#include "engine/layer_gemm.h"

void product_fwd(struct work *r, const struct net *n, const struct acts *a, int layer,
                 enum product which, void *y, const void *x)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    if (n->f8) {
        linear_f8(r, &l, y, &a->x, &n->f8[layer * PRODUCTS + (int)which]);
        return;
    }
    linear_fwd(r, &l, y, x, net_weight(n, params_product(&n->p, layer, which)));
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
