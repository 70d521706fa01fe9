/* SPDX-License-Identifier: Apache-2.0
 *
 * generate.c: text, one token at a time: the layers of forward.c on one row, with a cache of keys
 * and values. The cache lies in the activations, and logits may lie in gradients, so a training step
 * or an evaluation ends a text that was being generated, and a text ends what is left of a step.
 */
#include "engine/generate.h"

#include "engine/forward.h"
#include "io/error.h"
#include "nojit_ops.h"

void generate_logits(struct work *r, struct engine *e, int pos)
{
    const struct net *n = &e->student;
    const struct linear logits = {n->T, 1, e->shape.vocab, n->c.hidden_size, .ldy = e->shape.ld};
    e->mem.decode.decode_pos = pos;
    net_forward(r, n, &e->mem.decode, &e->mem.rows);
    linear_fwd(r, &logits, e->mem.logits, e->mem.decode.y, net_weight(n, n->p.head));
}

static int draw(struct engine *e, int32_t id, int pos, float u)
{
    struct memory *m = &e->mem;
    struct work r = engine_work(e);
    struct pinned *box = m->pinned;
    box->u = u;
    box->id = id;
    box->pos = pos;
    OP(&r, nj_copy(r.s, m->rows.ids, &box->id, sizeof box->id));
    OP(&r, nj_copy(r.s, m->rows.pos, &box->pos, sizeof box->pos));
    OP(&r, nj_copy(r.s, m->u, &box->u, sizeof box->u));
    generate_logits(&r, e, pos);
    OP(&r, nj_sample(r.s, e->student.T, m->next, m->logits, m->u, 1, e->shape.vocab, e->shape.ld,
                     e->o.sample_temperature, e->o.sample_min_p));
    OP(&r, nj_copy(r.s, &box->next, m->next, sizeof box->next));
    OP(&r, nj_stream_sync(r.s));
    return r.rc;
}

int engine_generate(struct engine *e, int32_t id, int pos, float u, int32_t *next)
{
    if (pos < 0 || pos >= e->o.seq_len)
        return fail(NJ_E_ARG, "position %d lies outside the %d positions of the engine", pos,
                    e->o.seq_len);
    if (id < 0 || id >= e->shape.vocab)
        return fail(NJ_E_ARG, "token id %d lies outside the vocabulary of %d", id, e->shape.vocab);
    int rc = draw(e, id, pos, u);
    if (rc != 0)
        return engine_fail(e, rc, "generating a token");
    *next = e->mem.pinned->next;
    return 0;
}
