/* SPDX-License-Identifier: Apache-2.0
 *
 * update.c: see update.h.
 */
#include "step/update.h"

#include "nojit_ops.h"
#include "state/ranks.h"

/* Number of finite steps before float16's loss scale doubles. */
enum { LOSS_SCALE_GROWTH = 2000 };

bool update_scales_loss(const struct engine *e)
{
    return e->o.dtype == NJ_LP && nj_context_device(e->ctx)->lp_is_f16;
}

void update_clip(struct work *r, struct engine *e)
{
    struct memory *m = &e->mem;
    const struct train_options *o = &e->o;
    const int parts = ranks_sumsq(r, e);
    OP(r, nj_clip_scale(
              r->s, NJ_F32,
              &(struct nj_clip_scale){.state = m->state,
                                      .part = m->sumsq,
                                      .P = parts,
                                      .max_norm = o->max_grad_norm,
                                      .beta1 = o->beta1,
                                      .beta2 = o->beta2,
                                      .growth = update_scales_loss(e) ? LOSS_SCALE_GROWTH : 0}));
}

static void update_shard(struct work *r, struct engine *e, const struct shard *s)
{
    struct memory *m = &e->mem;
    const struct train_options *o = &e->o;
    const size_t element = dtype_bytes(o->dtype);
    const size_t moment = optimizer_state_bytes((enum optimizer_state)o->optimizer_state);
    const float *grad = m->total + s->first;
    char *weights = m->trained + (size_t)s->first * element;
    void *m1 = (char *)m->m + (size_t)s->kept * moment;
    void *m2 = (char *)m->v + (size_t)s->kept * moment;
    const int32_t seed[] = {(int32_t)o->seed, (int32_t)(o->seed >> 32)};
    if (o->optimizer_state == STATE_BF16) {
        OP(r, nj_adamw_bf16(r->s, o->dtype,
                            &(struct nj_adamw_bf16){.w = weights,
                                                    .m = m1,
                                                    .v = m2,
                                                    .g = grad,
                                                    .state = m->state,
                                                    .n = s->count,
                                                    .n_decay = s->decayed,
                                                    .first = s->first,
                                                    .beta1 = o->beta1,
                                                    .beta2 = o->beta2,
                                                    .eps = o->eps,
                                                    .weight_decay = o->weight_decay,
                                                    .seed_low = seed[0],
                                                    .seed_high = seed[1]}));
    } else {
        const bool whole = o->dtype == NJ_F32;
        OP(r, nj_adamw(r->s, o->dtype,
                       &(struct nj_adamw){.p = whole ? NULL : weights,
                                          .w = m->master + (whole ? s->first : s->kept),
                                          .m = m1,
                                          .v = m2,
                                          .g = grad,
                                          .state = m->state,
                                          .n = s->count,
                                          .n_decay = s->decayed,
                                          .beta1 = o->beta1,
                                          .beta2 = o->beta2,
                                          .eps = o->eps,
                                          .weight_decay = o->weight_decay}));
    }
}

void update_weights(struct work *r, struct engine *e)
{
    const int parts = ranks_parts(e);
    for (int i = 0; i < parts; i++) {
        const int part = parts > 1 ? pieces_updated(&e->shape.pieces, i) : 0;
        const struct shard s = ranks_held(e, part);
        if (s.count > 0)
            update_shard(r, e, &s);
        ranks_gather(r, e, part);
    }
}
