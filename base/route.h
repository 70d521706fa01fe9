/* SPDX-License-Identifier: Apache-2.0
 *
 * route.h: how a router makes scores of its logits and chooses experts by them.
 */
#ifndef NOJIT_ROUTE_H
#define NOJIT_ROUTE_H

enum nj_route {
    NJ_ROUTE_SOFTMAX,     /* softmax over all experts */
    NJ_ROUTE_TOP_SOFTMAX, /* softmax over the chosen ones */
    NJ_ROUTE_SIGMOID
};

/* The most experts of a layer, and the most that a row may choose. */
enum { NJ_EXPERTS_MAX = 512, NJ_CHOSEN_MAX = 32 };

#endif
