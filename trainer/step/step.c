/* SPDX-License-Identifier: Apache-2.0
 *
 * step.c: one optimiser step. All micro-batches are fetched first, so that every one is normalised
 * by the valid tokens of the whole step; then each runs forward and backward: the first of a rank writes the
 * gradients, the others add to them. Those of the ranks are added (ranks.h); then one update. Micro-step and update
 * are CUDA graphs where the backend has them, and where groups of layers are exchanged during the backward pass, each
 * of them is one; what changes from step to step lies in the step state on the device (step_state.h).
 */
#include "step/step.h"

#include "io/error.h"
#include "net/backward.h"
#include "net/forward.h"
#include "nojit_ops.h"
#include "state/ranks.h"
#include "state/schedule.h"
#include "step/head.h"
#include "step/micro_batch.h"
#include "step/train_step.h"
#include "weights/f8_weights.h"
#include "weights/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Finite steps before float16's loss scale doubles. */
enum { LOSS_SCALE_GROWTH = 2000 };

/* What no product of the first micro-batch writes starts from zero: gains and biases, rows of the
 * head beyond the shared vocabulary, an embedding that is not the head. Nothing here is in the
 * layers' matrices, where the head's logits may lie until the backward pass. */
static void clear_gradients(struct work *r, const struct engine *e, int chunks)
{
    const struct params *p = &e->student.p;
    const int64_t table = (int64_t)e->student.c.vocab_size * e->student.c.hidden_size;
    const int64_t written = chunks > 0 ? (int64_t)e->shape.vocab * e->student.c.hidden_size : 0;
    float *grad = e->student.grad;
    const struct {
        int64_t first, count;
    } part[] = {
        {p->decayed, p->count - p->decayed},
        {p->head + written, table - written},
        {p->embed, p->embed == p->head ? 0 : table},
    };
    for (int i = 0; i < 3; i++)
        if (part[i].count > 0)
            OP(r, nj_zero(r->s, grad + part[i].first, (size_t)part[i].count * sizeof *grad));
}

/* What comes before the student's forward pass. */
static void micro_teacher(struct work *r, struct engine *e, bool train)
{
    if (e->has_teacher) {
        if (!train || !e->teacher.apart)
            teacher_forward(r, &e->teacher, &e->mem.rows);
        teacher_keep(r, &e->teacher, &e->mem.rows, e->shape.padded);
    }
    e->mem.student.lora.key = train ? e->mem.rows.key : NULL;
}

/* What comes behind it. */
static void micro_losses(struct work *r, struct engine *e, int chunks, bool train)
{
    if (train && e->student.grad && !r->add)
        clear_gradients(r, e, chunks);
    head_losses(r, e, chunks, train);
}

void micro_step(struct work *r, struct engine *e, int chunks, bool train)
{
    micro_teacher(r, e, train);
    net_forward(r, &e->student, &e->mem.student, &e->mem.rows);
    micro_losses(r, e, chunks, train);
    if (train)
        net_backward(r, &e->student, &e->mem.student, &e->mem.rows);
}

static bool loss_scaling(const struct engine *e)
{
    return e->o.dtype == NJ_LP && nj_context_device(e->ctx)->lp_is_f16;
}

static void clip(struct work *r, struct engine *e)
{
    struct memory *m = &e->mem;
    const struct train_options *o = &e->o;
    const int parts = ranks_sumsq(r, e);
    OP(r, nj_clip_scale(r->s, NJ_F32, m->state, m->sumsq, parts, o->max_grad_norm, o->beta1,
                        o->beta2, loss_scaling(e) ? LOSS_SCALE_GROWTH : 0));
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
        OP(r,
           nj_adamw_bf16(r->s, o->dtype, weights, m1, m2, grad, m->state, s->count, s->decayed,
                         s->first, o->beta1, o->beta2, o->eps, o->weight_decay, seed[0], seed[1]));
    } else {
        const bool whole = o->dtype == NJ_F32;
        OP(r, nj_adamw(r->s, o->dtype, whole ? NULL : weights,
                       m->master + (whole ? s->first : s->kept), m1, m2, grad, m->state, s->count,
                       s->decayed, o->beta1, o->beta2, o->eps, o->weight_decay));
    }
}

static void update(struct work *r, struct engine *e)
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

/* A part of the forward pass by itself: a group of layers, before the first of which goes all else. */
static void forward_part(struct work *r, struct engine *e, int group)
{
    const int *layer = e->shape.pieces.layer;
    if (group == 0) {
        micro_teacher(r, e, true);
        net_forward_embedding(r, &e->student, &e->mem.student, &e->mem.rows);
    }
    net_forward_layers(r, &e->student, &e->mem.student, &e->mem.rows, layer[group],
                       layer[group + 1]);
}

/* A part of the backward pass by itself: the groups of layers, from the last one to the first; then the embedding. */
static void backward_part(struct work *r, struct engine *e, int part)
{
    const struct pieces *p = &e->shape.pieces;
    const int group = p->groups - 1 - part;
    if (group >= 0)
        net_backward_layers(r, &e->student, &e->mem.student, &e->mem.rows, p->layer[group],
                            p->layer[group + 1]);
    else
        net_backward_embedding(r, &e->student, &e->mem.student, &e->mem.rows);
}

/* Work that a graph holds: one of these; from FORWARD downwards, the place in e->ahead of a part of the forward pass,
 * its group; from BACKWARD downwards, the place in e->back of a part of the backward pass, 2 * part + later; or the
 * place in e->micro of a micro-step, or of what of it lies between these parts, 2 * chunks + later. */
enum { CLIP = -1, UPDATE = -2, TEACHER = -3, FORWARD = -4, BACKWARD = FORWARD - PIECE_GROUPS };

static nj_graph **graph_of(struct engine *e, int what)
{
    switch (what) {
    case CLIP:
        return &e->clip;
    case UPDATE:
        return &e->update;
    case TEACHER:
        return &e->pass;
    default:
        return what >= 0         ? &e->micro[what]
               : what > BACKWARD ? &e->ahead[FORWARD - what]
                                 : &e->back[BACKWARD - what];
    }
}

static void enqueue(struct work *r, struct engine *e, int what)
{
    if (what == CLIP)
        clip(r, e);
    else if (what == UPDATE)
        update(r, e);
    else if (what == TEACHER && e->teacher.batches > 1)
        teacher_pass(r, &e->teacher);
    else if (what == TEACHER)
        teacher_forward(r, &e->teacher, &e->mem.rows);
    else if (what < 0 && what > BACKWARD)
        forward_part(r, e, FORWARD - what);
    else if (what <= BACKWARD) {
        r->add = (BACKWARD - what) % 2;
        backward_part(r, e, (BACKWARD - what) / 2);
    } else {
        r->add = what % 2;
        if (e->shape.early) {
            micro_losses(r, e, what / 2, true);
            net_backward_norm(r, &e->student, &e->mem.student);
        } else
            micro_step(r, e, what / 2, true);
    }
}

static int capture(struct engine *e, int what, nj_graph **graph)
{
    int rc = nj_graph_begin(e->stream);
    if (rc == NJ_E_UNSUPPORTED)
        e->graphs = false;
    if (rc != 0)
        return rc == NJ_E_UNSUPPORTED ? 0 : rc;
    struct work r = {.ctx = e->ctx, .s = e->stream};
    enqueue(&r, e, what);
    rc = nj_graph_end(e->stream, graph);
    return r.rc != 0 ? r.rc : rc;
}

/* Each graph is captured when it is first needed. */
static int make_ready(struct engine *e, int what)
{
    nj_graph **graph = graph_of(e, what);
    const bool transfers =
        e->shape.rank != RANKS_HERE &&
        (what == CLIP || what == UPDATE || (what == TEACHER && e->teacher.net.shard));
    return e->graphs && !*graph && !transfers ? capture(e, what, graph) : 0;
}

/* Enqueues the work, as a graph if there are graphs. */
static int launch(struct engine *e, int what)
{
    nj_graph **graph = graph_of(e, what);
    const int rc = make_ready(e, what);
    if (rc != 0)
        return rc;
    if (*graph)
        return nj_graph_launch(*graph, e->stream);
    struct work r = {.ctx = e->ctx, .s = e->stream};
    enqueue(&r, e, what);
    return r.rc;
}

static int fetch_all(struct engine *e, struct data *d)
{
    int rc = 0;
    e->valid = e->empty = 0;
    for (int i = 0; rc == 0 && i < e->o.grad_accum; i++) {
        const int64_t before = e->valid;
        data_tell(d, &e->began[i]);
        rc = stage_next(e, d, i, ranks_slot(&e->shape, i));
        e->empty += rc == 0 && e->valid == before;
    }
    return stage_agree(e, d, rc);
}

static int fetch(struct engine *e, struct data *d)
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

/* Host values of the step; losses count from zero. */
static int begin_step(struct engine *e)
{
    float *slots = e->mem.pinned->host_slots;
    memset(slots, 0, sizeof e->mem.pinned->host_slots);
    slots[NJ_STEP_LR] = rate_of(e);
    slots[NJ_STEP_INV_VALID] = (float)(1.0 / (double)e->valid);
    int rc = nj_copy(e->stream, e->mem.state, slots, sizeof e->mem.pinned->host_slots);
    if (rc == 0)
        rc = nj_zero(e->stream, e->mem.sums, sizeof e->mem.pinned->sums);
    e->mem.pinned->stop = e->o.stopping && e->o.stopping();
    if (rc == 0 && e->mem.pinned->stop > 0)
        rc = nj_copy(e->stream, e->mem.sums + STOP_SUM, &e->mem.pinned->stop, sizeof(float));
    return rc;
}

/* The teacher's rows of a micro-batch, where it runs over several at once: with the first of them, those of all. */
static int run_pass(struct engine *e, int slot)
{
    struct work w = {.ctx = e->ctx, .s = e->stream};
    const int batch = slot % e->teacher.batches;
    if (batch == 0)
        w.rc = send_pass(e, slot);
    if (batch == 0 && w.rc == 0)
        w.rc = launch(e, TEACHER);
    teacher_rows(&w, &e->teacher, batch);
    return w.rc;
}

/* A micro-batch without a target adds nothing to gradients that are there. */
static bool is_empty(const struct engine *e, int slot)
{
    return e->chunks_of[slot] == 0 && slot % e->shape.micro > 0 && e->teacher.batches <= 1 &&
           !e->teacher.net.shard;
}

/* Each group of layers when its weights have come. */
static int run_forward(struct engine *e)
{
    struct work r = {.ctx = e->ctx, .s = e->stream};
    for (int group = 0; r.rc == 0 && group < e->shape.pieces.groups; group++) {
        ranks_arrive(&r, e, group);
        if (r.rc == 0)
            r.rc = launch(e, FORWARD - group);
    }
    return r.rc;
}

/* Behind the losses. The gradients that a part has finished are exchanged beside the next ones, if these are the
 * last. To make a graph may wait for the device, and a transfer on it for the other ranks: so all graphs are made
 * first. */
static int run_backward(struct engine *e, bool later, bool last)
{
    const int groups = e->shape.pieces.groups;
    struct work r = {.ctx = e->ctx, .s = e->stream};
    for (int part = 0; r.rc == 0 && part <= groups; part++)
        r.rc = make_ready(e, BACKWARD - (2 * part + later));
    for (int part = 0; r.rc == 0 && part <= groups; part++) {
        r.rc = launch(e, BACKWARD - (2 * part + later));
        if (last && part < groups)
            ranks_exchange(&r, e, groups - part - 1);
    }
    return r.rc;
}

/* The teacher goes before the weights that other ranks have updated, and so beside their transfer. last: no other
 * micro-batch adds to the gradients, and they are exchanged. */
static int run_micro(struct engine *e, int slot, bool last)
{
    const bool later = slot % e->shape.micro > 0;
    const bool several = e->teacher.batches > 1;
    if (is_empty(e, slot))
        return 0;
    int rc = several ? run_pass(e, slot) : 0;
    if (rc == 0)
        rc = send_batch(e, slot);
    if (rc == 0 && e->teacher.apart && !several)
        rc = launch(e, TEACHER);
    if (rc == 0)
        rc = e->shape.early ? run_forward(e) : engine_join(e);
    if (rc == 0)
        rc = launch(e, 2 * e->chunks_of[slot] + later);
    return rc == 0 && e->shape.early ? run_backward(e, later, last) : rc;
}

/* Of a rank that is a process; the first is never empty. */
static int last_slot(const struct engine *e)
{
    int slot = e->shape.slots - 1;
    while (slot > 0 && is_empty(e, slot))
        slot--;
    return slot;
}

int step_gradients(struct engine *e)
{
    int rc = begin_step(e);
    const int last = last_slot(e);
    for (int slot = 0; rc == 0 && slot < e->shape.slots; slot++) {
        rc = run_micro(e, slot, slot == last);
        if (rc == 0 && (slot + 1) % e->shape.micro == 0)
            rc = ranks_add(e, slot / e->shape.micro);
    }
    return rc;
}

/* Losses and norm are known before the weights move: the host goes on with them, and to the next
 * batch, while the device is still at the update. */
static int finish_step(struct engine *e)
{
    int rc = launch(e, CLIP);
    if (rc == 0)
        rc = engine_copy_results(e, e->mem.total_sums);
    if (rc == 0)
        rc = nj_event_record(e->results, e->stream);
    if (rc == 0)
        rc = launch(e, UPDATE);
    return rc != 0 ? rc : nj_event_sync(e->results);
}

double loss_of(const struct engine *e, double kd, double ce)
{
    const double r = e->has_teacher ? (double)e->o.kd_ratio : 0.0, T = (double)e->o.temperature;
    return (1.0 - r) * ce + r * T * T * kd;
}

static void report(const struct engine *e, struct step_result *out)
{
    const float *sums = e->mem.pinned->sums, *state = e->mem.pinned->state;
    const double n = (double)e->valid;
    out->kd_loss = (double)sums[0] / n;
    out->class_loss = (double)sums[1] / n;
    out->teacher_entropy = (double)sums[2] / n;
    out->agreement = (double)sums[3] / n;
    out->loss = loss_of(e, out->kd_loss, out->class_loss);
    const float *answers = sums + ANSWER_SUMS;
    const double tokens = (double)answers[3]; /* 0: there are no means */
    out->forward_kl = (double)answers[0] / tokens;
    out->reverse_kl = (double)answers[1] / tokens;
    out->student_entropy = (double)answers[2] / tokens;
    out->grad_norm = (double)state[NJ_STEP_GRAD_NORM];
    out->lr = (double)state[NJ_STEP_LR];
    out->valid_tokens = e->valid;
    out->empty = e->empty;
    out->tokens = (int64_t)e->shape.rows * e->o.grad_accum;
    out->skipped_updates = (int64_t)state[NJ_STEP_SKIPPED];
    out->stopping = sums[STOP_SUM] > 0;
    out->loss_scale = state[NJ_STEP_LOSS_SCALE];
}

/* What is wrong with a step, for the sentence that ends the run. */
struct fault {
    const char *what, *name; /* name NULL: no tensor was found */
    int micro; /* the micro-batch that shows it, or NO_SLOT: one of another rank does */
};

int scan_weights(struct engine *e, const char **what, const char **name)
{
    int rc = 0;
    *what = "weight of the teacher";
    *name = NULL;
    if (e->has_teacher)
        rc = weights_scan(e, &e->teacher.net.p, e->o.dtype, e->mem.teacher_weights, name);
    if (rc == 0 && !*name && e->has_teacher)
        rc = f8_scan(e, name);
    if (rc != 0 || *name)
        return rc;
    *what = "weight of the student";
    rc = weights_scan(e, engine_trained(e), e->o.dtype, e->mem.trained, name);
    if (rc == 0 && !*name && e->student.lora)
        rc = weights_scan(e, &e->student.p, e->o.dtype, e->mem.weights, name);
    return rc;
}

/* The update has not moved the weights: the same batch gives the same gradients again. They are
 * searched after every micro-batch until the first that breaks them. */
static int repeat_step(struct engine *e, struct fault *f)
{
    const struct params *p = engine_trained(e);
    const float *sums = e->mem.pinned->sums;
    const char *gradient = NULL;
    bool found = false;
    int rc = begin_step(e);
    for (int slot = 0; rc == 0 && !found && slot < e->shape.slots; slot++) {
        f->micro = ranks_micro(&e->shape, slot);
        rc = run_micro(e, slot, false);
        if (rc == 0)
            rc = engine_read_back(e);
        if (rc == 0)
            rc = weights_scan(e, p, NJ_F32, e->mem.grad, &gradient);
        found = gradient || !isfinite(sums[0] + sums[1]);
    }
    if (!found && e->shape.rank != RANKS_HERE)
        f->micro = NO_SLOT;
    if (!f->name) {
        f->what = "gradient of";
        f->name = gradient;
    }
    return rc;
}

/* Rare, so it may be slow. */
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

/* With the data where they were before it. */
static int refuse_step(struct engine *e, struct data *d, const struct data_state *from,
                       struct step_result *out)
{
    const int rc = name_nonfinite(e, out);
    data_seek(d, from);
    return rc;
}

static bool is_broken(const struct engine *e, const struct step_result *out, float scale_before)
{
    if (!isfinite(out->loss))
        return true;
    bool may_shrink = loss_scaling(e) && scale_before > 1.0f;
    return !isfinite(out->grad_norm) && !may_shrink;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Without a target there is no gradient. The schedule goes on, so that a step is the same whatever was before it. */
static void pass_over(struct engine *e, struct step_result *out)
{
    const float *state = e->mem.pinned->state;
    *out = (struct step_result){.loss = NAN,
                                .kd_loss = NAN,
                                .class_loss = NAN,
                                .teacher_entropy = NAN,
                                .agreement = NAN,
                                .forward_kl = NAN,
                                .reverse_kl = NAN,
                                .student_entropy = NAN,
                                .grad_norm = NAN,
                                .lr = rate_of(e),
                                .tokens = (int64_t)e->shape.rows * e->o.grad_accum,
                                .skipped_updates = (int64_t)state[NJ_STEP_SKIPPED],
                                .loss_scale = state[NJ_STEP_LOSS_SCALE],
                                .empty = e->empty,
                                .passed_over = true};
    e->step++;
}

int engine_step(struct engine *e, struct data *d, struct step_result *out)
{
    double start = now_ms();
    float scale_before = e->mem.pinned->state[NJ_STEP_LOSS_SCALE];
    struct data_state from;
    *out = (struct step_result){0};
    const uint64_t received = nj_comm_received(e->o.comm);
    data_tell(d, &from);
    int rc = fetch(e, d);
    if (rc != 0) {
        data_seek(d, &from);
        return rc;
    }
    if (e->valid == 0) {
        pass_over(e, out);
        out->step_ms = now_ms() - start;
        return 0;
    }
    rc = step_gradients(e);
    if (rc == 0)
        rc = finish_step(e);
    if (rc != 0)
        return engine_fail(e, rc, "training step");
    report(e, out);
    e->step_comm_bytes = (size_t)(nj_comm_received(e->o.comm) - received);
    out->step_ms = now_ms() - start;
    if (is_broken(e, out, scale_before))
        return refuse_step(e, d, &from, out);
    e->step++;
    return 0;
}
