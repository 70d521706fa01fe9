/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_grad.h: the gradient that an engine computes for its trained parameters, and difference quotients of its loss.
 */
#ifndef NOJIT_TESTS_ENGINE_GRAD_H
#define NOJIT_TESTS_ENGINE_GRAD_H

#include "engine/engine.h"
#include "engine_fixture.h"
#include "step/micro_batch.h"
#include "step/micro_step.h"

static double loss_at(struct engine *e, struct batch_source *d)
{
    struct eval_result r;
    ok(engine_eval(e, d, &r));
    return r.loss;
}

/* Compute the gradient of the loss over one pass of d, and leave it in e->mem.grad. */
static void gradient(struct engine *e, struct batch_source *d)
{
    batches_seek(d, &(struct data_state){0});
    int64_t valid = 0;
    struct batch b;
    while (batches_next(d, &b) == 0)
        valid += b.valid;
    batches_seek(d, &(struct data_state){0});
    e->mem.state[NJ_STEP_INV_VALID] = 1.0f / (float)valid;
    e->teacher.schedule.runs_ahead = false; /* the teacher runs in each micro-batch separately */
    for (int i = 0; stage_next(e, d, 0, 0) == 0; i++) {
        struct work w = engine_work(e);
        w.add = i > 0;
        ok(send_batch(e, 0));
        micro_step(&w, e, e->chunks_of[0], true);
        ok(w.rc);
    }
}

static inline int64_t steepest(const float *grad, int64_t first, int64_t count)
{
    int64_t best = first;
    for (int64_t i = first; i < first + count; i++)
        if (fabsf(grad[i]) > fabsf(grad[best]))
            best = i;
    return best;
}

typedef double loss_fn(struct engine *e, struct batch_source *d);

/* Return a central difference with one Richardson step: its error is of order h^4, plus float32 rounding. */
static inline double difference(struct engine *e, struct batch_source *d, int64_t at, loss_fn *loss)
{
    const float h = 8e-3f, w = e->mem.master[at];
    double slope[2];
    for (int i = 0; i < 2; i++) {
        volatile float up = w + h * (float)(i + 1), down = w - h * (float)(i + 1);
        e->mem.master[at] = up;
        double above = loss(e, d);
        e->mem.master[at] = down;
        double below = loss(e, d);
        slope[i] = (above - below) / ((double)up - (double)down);
    }
    e->mem.master[at] = w;
    return (4.0 * slope[0] - slope[1]) / 3.0;
}

#endif
