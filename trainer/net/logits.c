/* SPDX-License-Identifier: Apache-2.0
 *
 * logits.c: see logits.h.
 */
#include "net/logits.h"

#include "net/f8.h"
#include "net/quant.h"

/* Slices of the vocabulary, as many rows of the head as the scratch holds. */
static void quant_logits(struct work *r, const struct net *n, const struct linear *whole, char *y,
                         const void *x)
{
    const int most = quant_head_rows(n);
    for (int from = 0; from < whole->out; from += most) {
        struct linear slice = *whole;
        slice.out = whole->out - from < most ? whole->out - from : most;
        linear_fwd(r, &slice, y + (size_t)from * dtype_bytes(n->T), x,
                   quant_expand(r, n, net_head(n), from, slice.out));
    }
}

void net_logits(struct work *r, const struct net *n, const struct f8_matrix *quantised,
                const void *x, int rows, int vocab, int ld, void *y)
{
    const int C = n->c.hidden_size;
    const struct linear head = {n->T, rows, vocab, C, .ldy = ld};
    if (f8_head_on(n)) {
        struct linear wide = head;
        wide.refused = n->f8_refused ? &n->f8_refused->logits : NULL;
        wide.out = f8_logits(vocab);
        f8_quantize(r, n, quantised, x, rows, C);
        linear_f8(r, &wide, y, quantised, &n->f8[net_head(n)]);
    } else if (n->quant)
        quant_logits(r, n, &head, y, x);
    else
        linear_fwd(r, &head, y, x, n->f8 ? n->f8[net_head(n)].q : net_weight(n, n->p.head));
}
