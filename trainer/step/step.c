/* SPDX-License-Identifier: Apache-2.0
 *
 * step.c: one optimizer step:
 *   1. fetch() stages all micro-batches, so that each is normalized by the valid tokens of the whole step.
 *   2. step_gradients() runs each forward and backward (run_micro()); the first of a rank writes the gradients, the
 *      others add to them. ranks_add() then adds those of the ranks.
 *   3. finish_step() clips, brings the losses to the host, and updates the weights.
 *   4. report() makes means of the sums; a step whose loss or gradient is not finite is refused, before which the
 *      tensor at fault is looked for.
 */
#include "step/step.h"

#include "base/clock.h"
#include "base/try.h"
#include "io/error.h"
#include "state/ranks.h"
#include "state/schedule.h"
#include "step/graphs.h"
#include "step/micro_batch.h"
#include "step/train_step.h"
#include "step/update.h"
#include "weights/fp8_weights.h"
#include "weights/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int fetch_all(struct engine *e, struct batch_source *d)
{
    int rc = 0;
    e->valid = e->empty = 0;
    for (int i = 0; rc == 0 && i < e->o.grad_accum; i++) {
        const int64_t before = e->valid;
        batches_tell(d, &e->began[i]);
        rc = stage_next(e, d, i, ranks_slot(&e->shape, i));
        e->empty += rc == 0 && e->valid == before;
    }
    return stage_agree(e, d, rc);
}

static int fetch(struct engine *e, struct batch_source *d)
{
    const int rc = fetch_all(e, d);
    if (rc > 0)
        return fail(NJ_E_ARG, "the data ended at step %lld; open it for more than one pass",
                    (long long)e->step + 1);
    return rc;
}

static float rate_of(const struct engine *e)
{
    return schedule_lr(&e->o, e->step + 1);
}

/* Set the host's values of the step; losses count from zero. */
static int begin_step(struct engine *e)
{
    float *slots = e->mem.pinned->host_slots;
    memset(slots, 0, sizeof e->mem.pinned->host_slots);
    slots[NJ_STEP_LR] = rate_of(e);
    slots[NJ_STEP_INV_VALID] = (float)(1.0 / (double)e->valid);
    TRY(nj_copy(e->stream, e->mem.state, slots, sizeof e->mem.pinned->host_slots));
    TRY(nj_zero(e->stream, e->mem.sums, sizeof *e->mem.sums));
    e->mem.pinned->stop = e->o.stopping && e->o.stopping();
    if (e->mem.pinned->stop > 0)
        TRY(nj_copy(e->stream, &e->mem.sums->stopping, &e->mem.pinned->stop, sizeof(float)));
    return 0;
}

/* Send the teacher its part of the micro-batches of a pass, before the first of them. If it runs ahead, run it then,
 * and go on to the results of this micro-batch. */
static int begin_teacher(struct engine *e, int slot)
{
    struct work w = {.ctx = e->ctx, .s = e->stream};
    const int count = teacher_batches(&e->teacher), at = slot % count;
    const bool ahead = e->teacher.schedule.runs_ahead;
    if (at == 0)
        send_to_teacher(&w, e, slot, count);
    if (at == 0 && ahead && w.rc == 0)
        w.rc = step_graph_launch(e, (struct step_graph){.kind = STEP_TEACHER});
    if (ahead)
        teacher_take(&w, &e->teacher, at);
    return w.rc;
}

static int begin_micro(struct engine *e, int slot)
{
    TRY(send_batch(e, slot));
    return begin_teacher(e, slot);
}

/* Run each group of layers forward once its weights have come. */
static int run_forward(struct engine *e)
{
    struct work r = {.ctx = e->ctx, .s = e->stream};
    for (int group = 0; r.rc == 0 && group < e->shape.pieces.groups; group++) {
        ranks_arrive(&r, e, group);
        if (r.rc == 0)
            r.rc = step_graph_launch(e, (struct step_graph){.kind = STEP_FORWARD, .index = group});
    }
    return r.rc;
}

/* Run the parts of the backward pass. If `last`, the gradients that a part has finished are exchanged beside the next
 * parts. Capturing a graph may wait for the device, and a transfer on it for the other ranks: so all graphs are
 * captured first. */
static int run_backward(struct engine *e, bool add, bool last)
{
    const int groups = e->shape.pieces.groups;
    struct work r = {.ctx = e->ctx, .s = e->stream};
    for (int part = 0; r.rc == 0 && part <= groups; part++)
        r.rc = step_graph_capture(e, (struct step_graph){STEP_BACKWARD, part, add});
    for (int part = 0; r.rc == 0 && part <= groups; part++) {
        r.rc = step_graph_launch(e, (struct step_graph){STEP_BACKWARD, part, add});
        if (last && part < groups)
            ranks_exchange(&r, e, groups - part - 1);
    }
    return r.rc;
}

/* Run the student in parts: weights come, and gradients go, by groups of layers. */
static int run_in_parts(struct engine *e, int chunks, bool add, bool last)
{
    TRY(run_forward(e));
    TRY(step_graph_launch(e, (struct step_graph){STEP_HEAD, chunks, add}));
    return run_backward(e, add, last);
}

/* Run the whole student at once, when all weights have come. */
static int run_whole(struct engine *e, int chunks, bool add)
{
    TRY(engine_join(e));
    return step_graph_launch(e, (struct step_graph){STEP_MICRO, chunks, add});
}

/* Return whether a micro-batch is left out: without a target it adds nothing to gradients that are there. */
static bool is_empty(const struct engine *e, int slot)
{
    return e->chunks_of[slot] == 0 && slot % e->shape.micro > 0 && !e->teacher.schedule.runs_empty;
}

/* Run one micro-batch forward and backward. The teacher comes before the engine waits for the weights that other ranks
 * have updated, and so runs beside their transfer. last: no other micro-batch adds to the gradients. */
static int run_micro(struct engine *e, int slot, bool last)
{
    const bool add = slot % e->shape.micro > 0;
    const int chunks = e->chunks_of[slot];
    if (is_empty(e, slot))
        return 0;
    TRY(begin_micro(e, slot));
    return e->shape.overlapped ? run_in_parts(e, chunks, add, last) : run_whole(e, chunks, add);
}

/* Return the last slot that is computed, of a rank that is a process; its first is never empty. */
static int last_slot(const struct engine *e)
{
    int slot = e->shape.slots - 1;
    while (slot > 0 && is_empty(e, slot))
        slot--;
    return slot;
}

int step_gradients(struct engine *e)
{
    TRY(begin_step(e));
    const int last = last_slot(e);
    for (int slot = 0; slot < e->shape.slots; slot++) {
        TRY(run_micro(e, slot, slot == last));
        if ((slot + 1) % e->shape.micro == 0)
            TRY(ranks_add(e, slot / e->shape.micro));
    }
    return 0;
}

/* Finish the step. Losses and norm are known before the weights move: the host continues with them, and with the
 * next batch, while the device is still at the update. */
static int finish_step(struct engine *e)
{
    TRY(step_graph_launch(e, (struct step_graph){.kind = STEP_CLIP}));
    TRY(engine_copy_results(e, e->mem.total_sums));
    TRY(nj_event_record(e->results, e->stream));
    TRY(step_graph_launch(e, (struct step_graph){.kind = STEP_UPDATE}));
    return nj_event_sync(e->results);
}

double loss_of(const struct engine *e, double kd, double ce)
{
    const struct objective_terms terms = train_terms(&e->o);
    return objective_value((enum objective)e->o.objective, &terms, kd, ce);
}

static void report(const struct engine *e, struct step_result *out)
{
    const struct losses *sums = &e->mem.pinned->sums;
    const float *state = e->mem.pinned->state;
    const double n = (double)e->valid;
    const double answers = (double)sums->answers.tokens; /* if 0, their means are NaN */
#define MEAN(name) out->name = (double)sums->objective.name / n;
#define ANSWER_MEAN(name) out->name = (double)sums->answers.name / answers;
    OBJECTIVE_SUMS(MEAN)
    ANSWER_SUMS(ANSWER_MEAN)
    out->loss = loss_of(e, out->kd_loss, out->ce_loss);
    out->balanced = e->student.balance > 0;
    out->balance_loss = (double)sums->balance / e->o.grad_accum;
    out->loss += (double)sums->balance * (double)e->student.balance;
    out->grad_norm = (double)state[NJ_STEP_GRAD_NORM];
    out->lr = (double)state[NJ_STEP_LR];
    out->valid_tokens = e->valid;
    out->empty = e->empty;
    out->tokens = (int64_t)e->shape.rows * e->o.grad_accum;
    out->skipped_updates = (int64_t)state[NJ_STEP_SKIPPED];
    out->stopping = sums->stopping > 0;
    out->loss_scale = state[NJ_STEP_LOSS_SCALE];
}

/* A fault of a step, for the message that ends the run. */
struct fault {
    const char *what, *name; /* name NULL: no tensor was found */
    int micro;               /* micro-batch that shows it, or NO_SLOT: one of another rank does */
};

int scan_weights(struct engine *e, const char **what, const char **name)
{
    *what = "weight of the teacher";
    TRY(weights_scan(e, &e->teacher.net.p, e->o.dtype, e->teacher.weights, name));
    if (!*name)
        TRY(fp8_scan(e, name));
    if (*name)
        return 0;
    *what = "weight of the student";
    TRY(weights_scan(e, engine_trained(e), e->o.dtype, e->mem.trained, name));
    if (!*name && net_is_frozen(&e->student))
        TRY(weights_scan(e, &e->student.p, e->o.dtype, e->mem.weights, name));
    return 0;
}

/* Repeat the step: the update has not moved the weights, so the same batch gives the same gradients. Search them
 * after every micro-batch until the first that is not finite. */
static int repeat_step(struct engine *e, struct fault *f)
{
    const struct params *p = engine_trained(e);
    const struct objective_sums *sums = &e->mem.pinned->sums.objective;
    const char *gradient = NULL;
    bool found = false;
    TRY(begin_step(e));
    for (int slot = 0; !found && slot < e->shape.slots; slot++) {
        f->micro = ranks_micro(&e->shape, slot);
        TRY(run_micro(e, slot, false));
        TRY(engine_read_back(e));
        TRY(weights_scan(e, p, NJ_F32, e->mem.grad, &gradient));
        found = gradient || !isfinite(sums->kd_loss + sums->ce_loss);
    }
    if (!found && e->shape.rank != RANKS_VIRTUAL)
        f->micro = NO_SLOT;
    if (!f->name) {
        f->what = "gradient of";
        f->name = gradient;
    }
    return 0;
}

/* Name the tensor that is not finite; this is rare, so it may be slow. */
static int name_nonfinite(struct engine *e, struct step_result *out)
{
    struct fault f = {0};
    int rc = scan_weights(e, &f.what, &f.name);
    out->intact = rc == 0 && (!f.name || strcmp(f.what, "weight of the student") != 0);
    if (rc == 0)
        rc = repeat_step(e, &f);
    if (rc != 0)
        return engine_fail(e, rc, "searching for the tensor that is not finite");
    if (f.micro == NO_SLOT)
        return fail(NJ_ELSEWHERE,
                    "step %lld: the loss is not finite, in a micro-batch of another rank, which "
                    "says more; the weights were not changed",
                    (long long)e->step + 1);
    const struct data_state at = e->began[f.micro];
    snprintf(out->nonfinite, sizeof out->nonfinite, "%s %s", f.what, f.name ? f.name : "the loss");
    return fail(NJ_E_FORMAT,
                "step %lld: %s is not finite, in micro-batch %d of %d, which begins with window "
                "%llu of epoch %llu; the weights were not changed: lower the learning rate or "
                "check the weights and data",
                (long long)e->step + 1, out->nonfinite, f.micro + 1, e->o.grad_accum,
                (unsigned long long)at.window + 1, (unsigned long long)at.epoch + 1);
}

/* Refuse a step, with the data position of before it. */
static int refuse_step(struct engine *e, struct batch_source *d, const struct data_state *from,
                       struct step_result *out)
{
    const int rc = name_nonfinite(e, out);
    batches_seek(d, from);
    return rc;
}

static bool is_broken(const struct engine *e, const struct step_result *out, float scale_before)
{
    if (!isfinite(out->loss))
        return true;
    bool may_shrink = update_scales_loss(e) && scale_before > 1.0f;
    return !isfinite(out->grad_norm) && !may_shrink;
}

/* Pass over a step without a target, which has no gradient. The schedule goes on, so that a step does not depend on
 * those before it. */
static void pass_over(struct engine *e, struct step_result *out)
{
    const float *state = e->mem.pinned->state;
#define NO_MEAN(name) .name = NAN,
    *out = (struct step_result){.loss = NAN,
                                .grad_norm = NAN,
                                .lr = rate_of(e),
                                .tokens = (int64_t)e->shape.rows * e->o.grad_accum,
                                .skipped_updates = (int64_t)state[NJ_STEP_SKIPPED],
                                .loss_scale = state[NJ_STEP_LOSS_SCALE],
                                .empty = e->empty,
                                .passed_over = true,
                                .balance_loss = NAN,
                                .balanced = e->student.balance > 0,
                                OBJECTIVE_SUMS(NO_MEAN) ANSWER_SUMS(NO_MEAN)};
    e->step++;
}

int engine_step(struct engine *e, struct batch_source *d, struct step_result *out)
{
    double start = clock_ms();
    float scale_before = e->mem.pinned->state[NJ_STEP_LOSS_SCALE];
    struct data_state from;
    *out = (struct step_result){0};
    const uint64_t received = nj_comm_received(e->o.comm);
    batches_tell(d, &from);
    int rc = fetch(e, d);
    if (rc != 0) {
        batches_seek(d, &from);
        return rc;
    }
    if (e->valid == 0) {
        pass_over(e, out);
        out->step_ms = clock_ms() - start;
        return 0;
    }
    rc = step_gradients(e);
    if (rc == 0)
        rc = finish_step(e);
    if (rc != 0)
        return engine_fail(e, rc, "training step");
    report(e, out);
    e->step_comm_bytes = (size_t)(nj_comm_received(e->o.comm) - received);
    out->step_ms = clock_ms() - start;
    if (is_broken(e, out, scale_before))
        return refuse_step(e, d, &from, out);
    e->step++;
    return 0;
}
