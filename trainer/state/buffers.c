/* SPDX-License-Identifier: Apache-2.0
 *
 * buffers.c: see buffers.h. The same function carves a buffer whether it is counted or placed, so that the plan
 * agrees with the memory used.
 */
#include "state/buffers.h"

#include "base/checked.h"
#include "net/fp8.h"
#include "net/quant.h"
#include "net/student_fp8.h"
#include "net/tables.h"
#include "objective/objective.h"

enum { TRANSFER_BYTES = 32 << 20 };

/* ---- what is trained ---- */

size_t optimizer_state_bytes(enum optimizer_state kept)
{
    return kept == STATE_BF16 ? sizeof(uint16_t) : sizeof(float);
}

static bool ranks_are_processes(const struct layout *l)
{
    return l->s.rank != RANKS_VIRTUAL;
}

static int64_t trained_elements(const struct layout *l)
{
    return l->student->trained->count;
}

/* Return the number of elements of weights and gradients. With ranks that are processes they are whole shards, so that
 * they can be gathered in place. */
static int64_t elements(const struct layout *l)
{
    const int64_t all = trained_elements(l);
    return ranks_are_processes(l) ? pieces_shards(all, l->s.ranks) : all;
}

/* Return the number of elements of master weights and moments; a rank that is a process has only its shards. */
static int64_t elements_held(const struct layout *l)
{
    const int64_t all = trained_elements(l);
    return ranks_are_processes(l) ? pieces_shard(all, l->s.ranks) : all;
}

static void *take(struct carve *c, int64_t count, size_t each)
{
    return carve_take(c, size_mul((size_t)count, each));
}

static bool trains(const struct layout *l)
{
    return l->s.train;
}

static bool is_frozen(const struct layout *l)
{
    return net_is_frozen(l->student);
}

static void student_weights(struct layout *l, struct carve *c)
{
    const struct net *n = l->student;
    l->m->weights = take(c, is_frozen(l) ? n->p.count : elements(l), dtype_bytes(n->T));
    l->m->trained = l->m->weights;
    net_carve_ends(n, c);
    for (int i = 0; i < n->c.layers; i++)
        net_carve_layer(n, i, c);
}

static bool expands(const struct layout *l)
{
    return quant_scratch_bytes(l->student) > 0;
}

static void student_expanded(struct layout *l, struct carve *c)
{
    l->m->expanded = carve_take(c, quant_scratch_bytes(l->student));
}

static void adapter_weights(struct layout *l, struct carve *c)
{
    l->m->trained = take(c, elements(l), dtype_bytes(l->student->T));
}

static bool has_master(const struct layout *l)
{
    return l->s.train && l->student->T != NJ_F32 && l->o->optimizer_state == STATE_F32;
}

static void master(struct layout *l, struct carve *c)
{
    l->m->master = take(c, elements_held(l), sizeof(float));
}

static void *moment(struct layout *l, struct carve *c)
{
    const enum optimizer_state kept = (enum optimizer_state)l->o->optimizer_state;
    return take(c, elements_held(l), optimizer_state_bytes(kept));
}

static void moment1(struct layout *l, struct carve *c)
{
    l->m->m = moment(l, c);
}

static void moment2(struct layout *l, struct carve *c)
{
    l->m->v = moment(l, c);
}

static void gradients(struct layout *l, struct carve *c)
{
    const size_t bytes = size_mul((size_t)elements(l), sizeof(float));
    carve_together(c, size_up(bytes, CARVE_ALIGN));
    l->gradients = c->used;
    l->m->grad = carve_take(c, bytes);
    l->m->total = l->m->grad;
}

/* Mark the gradients of the layers' matrices as idle until the backward pass, if each rank has one micro-batch. */
static void idle_gradients(struct layout *l)
{
    const size_t bytes = shape_idle_gradients(l->student, l->o);
    const int64_t first = params_layer(&l->student->p, 0);
    const size_t from = size_add(l->gradients, size_mul((size_t)first, sizeof(float)));
    if (bytes > 0)
        placement_narrow(&l->device, from, size_add(from, bytes),
                         PHASE_LOAD | PHASE_BACKWARD | PHASE_EXCHANGE | PHASE_UPDATE);
}

/* ---- what ranks exchange ---- */

static bool sums_here(const struct layout *l)
{
    return l->s.train && l->s.ranks > 1 && !ranks_are_processes(l);
}

static void gradients_sum(struct layout *l, struct carve *c)
{
    l->m->total = take(c, elements(l), sizeof(float));
}

static bool is_process(const struct layout *l)
{
    return l->s.train && ranks_are_processes(l);
}

/* Carve room for the other ranks' gradients of one piece at a time. */
static void received(struct layout *l, struct carve *c)
{
    l->m->received = take(c, pieces_largest_other(&l->s.pieces), sizeof(float));
}

static bool rounds_here(const struct layout *l)
{
    return sums_here(l) && l->o->reduce_dtype != REDUCE_F32;
}

static void rounded(struct layout *l, struct carve *c)
{
    l->m->received = take(c, trained_elements(l), sizeof(uint16_t));
}

static bool exchanges_overlapped(const struct layout *l)
{
    return l->s.train && l->s.overlapped;
}

static void received_overlapped(struct layout *l, struct carve *c)
{
    l->m->overlapped = take(c, pieces_largest_group(&l->s.pieces), sizeof(float));
}

/* ---- the teacher ---- */

static bool teacher_wants(const struct layout *l)
{
    return teacher_has(l->teacher, l->row->teacher);
}

static void carve_teacher(struct layout *l, struct carve *c)
{
    teacher_carve(l->teacher, l->row->teacher, c, l->device.arena.used);
}

/* ---- activations ---- */

static void student_kept(struct layout *l, struct carve *c)
{
    const struct train_options *o = l->o;
    const enum acts_mode mode = o->steps > 0 ? ACTS_TRAIN : ACTS_INFER;
    acts_carve_kept(l->student, o->batch_size, o->seq_len, mode, c, &l->m->student);
}

static void student_scratch(struct layout *l, struct carve *c)
{
    acts_carve_scratch(l->student, c, &l->m->student);
}

static bool decodes(const struct layout *l)
{
    return l->o->decode_rows > 0;
}

static void decoder(struct layout *l, struct carve *c)
{
    const struct train_options *o = l->o;
    const struct decoder_size size = {
        .rows = o->decode_rows,
        .positions = o->decode_positions > 0 ? o->decode_positions : o->seq_len,
        .bytes_cached = o->decode_bytes,
    };
    const struct net *teacher = o->teacher_writes ? teacher_net(l->teacher) : NULL;
    decoder_carve(teacher ? teacher : l->student, &size, l->s.vocab, l->s.ld, c, &l->m->decoder);
}

/* Data from files passes through all the memory of the activations. */
static void staging(struct layout *l, struct carve *c)
{
    l->m->staging = carve_at(c, c->used);
    l->m->staging_bytes = carve_room(&l->device.arena, c->used);
    c->used = size_add(c->used, l->m->staging_bytes);
}

/* ---- the LM head ---- */

static size_t logits_bytes(const struct layout *l)
{
    return size_product((size_t)l->s.chunk, (size_t)l->s.ld, dtype_bytes(l->student->T));
}

static void head_hidden(struct layout *l, struct carve *c)
{
    const struct net *n = l->student;
    l->m->hidden = carve_take(
        c, size_product((size_t)l->s.padded, (size_t)n->c.hidden_size, dtype_bytes(n->T)));
}

static void head_logits(struct layout *l, struct carve *c)
{
    l->m->logits = carve_take(c, logits_bytes(l));
}

static bool has_fp8(const struct layout *l)
{
    return student_fp8_any(l->student);
}

static void student_fp8(struct layout *l, struct carve *c)
{
    student_fp8_carve(l->student, l->s.rows, c, &l->m->student);
}

static bool has_fp8_head(const struct layout *l)
{
    return student_fp8_head(l->student) && l->s.train;
}

static void head_fp8(struct layout *l, struct carve *c)
{
    student_fp8_head_carve(l->student, l->s.chunk, l->s.ld, c, &l->m->fp8_head);
}

static bool may_have_fp8_gradients(const struct layout *l)
{
    const enum objective wanted = (enum objective)l->o->objective;
    const enum objective objective = objective_with(wanted, l->teacher->form);
    return has_fp8_head(l) && objectives[objective].has_e5m2 && l->s.chunk % FP8_MULTIPLE == 0 &&
           student_fp8_head_gradients_may(l->student);
}

static void head_fp8_gradients(struct layout *l, struct carve *c)
{
    student_fp8_head_carve_gradients(l->student, l->s.chunk, l->s.ld, c, &l->m->fp8_head);
}

static void head_losses(struct layout *l, struct carve *c)
{
    struct memory *m = l->m;
    m->kd = take(c, l->s.chunk, sizeof(float));
    m->ce = take(c, l->s.chunk, sizeof(float));
    m->entropy = take(c, l->s.chunk, sizeof(float));
    m->agree = take(c, l->s.chunk, sizeof(float));
}

/* ---- small things ---- */

/* Carve the rows of a micro-batch together, as they are copied at once. */
static void batch(struct layout *l, struct carve *c)
{
    const struct shape *s = &l->s;
    struct memory *m = l->m;
    struct carve counted = {0};
    rows_carve(s->rows, s->padded, s->arrays, &counted, &m->rows);
    m->rows_bytes = counted.used;
    carve_together(c, counted.used);
    rows_carve(s->rows, s->padded, s->arrays, c, &m->rows);
}

static void step_state(struct layout *l, struct carve *c)
{
    const size_t ranks = (size_t)l->s.ranks;
    struct memory *m = l->m;
    m->state = take(c, NJ_STEP_SLOTS, sizeof(float));
    m->sums = carve_take(c, sizeof *m->sums);
    m->total_sums = m->sums;
    if (ranks > 1)
        m->total_sums = carve_take(c, size_mul(ranks, sizeof *m->sums));
    m->sumsq =
        carve_take(c, size_product(ranks, (size_t)pieces_sumsq(&l->s.pieces), sizeof(float)));
    m->inv_freq = carve_take(c, tables_bytes(&l->student->c));
    teacher_carve(l->teacher, TEACHER_CONSTANTS, c, 0);
}

/* ---- what the host has ---- */

static void host_batches(struct layout *l, struct carve *c)
{
    l->m->batches = take(c, l->s.slots, l->m->rows_bytes);
}

static void host_pinned(struct layout *l, struct carve *c)
{
    l->m->pinned = carve_take(c, sizeof *l->m->pinned);
}

static void host_decoder(struct layout *l, struct carve *c)
{
    struct memory *m = l->m;
    decoder_carve_host(&m->decoder, c, &m->prompts, &m->now, &m->generated);
}

static bool compares_tokens(const struct layout *l)
{
    return l->teacher->form != TEACHER_NONE && !l->s.train;
}

static void token_kd(struct layout *l, struct carve *c)
{
    l->m->token_kd = take(c, l->s.padded, sizeof(float));
}

static void token_ce(struct layout *l, struct carve *c)
{
    l->m->token_ce = take(c, l->s.padded, sizeof(float));
}

static void host_transfer(struct layout *l, struct carve *c)
{
    l->m->transfer_bytes = TRANSFER_BYTES;
    l->m->transfer = carve_take(c, TRANSFER_BYTES);
}

/* ---- the table ---- */

enum {
    PHASE_LOSSES = PHASE_LOSS | PHASE_LOSS_BACK,
    PHASE_STUDENT = PHASE_FORWARD | PHASE_LOSSES | PHASE_BACKWARD,
    PHASE_MICRO = PHASE_TEACHER | PHASE_STUDENT
};

#define TEACHER(which) .carve = carve_teacher, .wanted = teacher_wants, .teacher = which

const struct buffer buffers[] = {
    {REGION_STUDENT_WEIGHTS, PHASES, .carve = student_weights},
    {REGION_STUDENT_EXPANDED, PHASE_DECODE | PHASE_FORWARD | PHASE_LOSS, .carve = student_expanded,
     .wanted = expands},
    {REGION_ADAPTERS_WEIGHTS, PHASES, .carve = adapter_weights, .wanted = is_frozen},
    {REGION_MASTER, PHASES, .carve = master, .wanted = has_master},
    {REGION_MOMENT1, PHASES, .carve = moment1, .wanted = trains},
    {REGION_MOMENT2, PHASES, .carve = moment2, .wanted = trains},
    {REGION_GRADIENTS, PHASES, .carve = gradients, .wanted = trains, .narrow = idle_gradients},
    {REGION_GRADIENTS_SUM, PHASES, .carve = gradients_sum, .wanted = sums_here},
    {REGION_TEACHER_WEIGHTS, PHASES, TEACHER(TEACHER_WEIGHTS)},
    {REGION_TEACHER_LAYERS, PHASES, TEACHER(TEACHER_LAYERS)},
    {REGION_TEACHER_EXPANDED, PHASE_DECODE | PHASE_PASS | PHASE_TEACHER | PHASE_LOSS,
     TEACHER(TEACHER_EXPANDED)},
    {REGION_ACTIVATIONS, PHASE_STUDENT, .carve = student_kept},
    {REGION_ACTIVATIONS, PHASE_FORWARD | PHASE_BACKWARD, .carve = student_scratch},
    {REGION_ACTIVATIONS, PHASE_TEACHER, TEACHER(TEACHER_ACTIVATIONS)},
    {REGION_ACTIVATIONS, PHASE_DECODE, .carve = decoder, .wanted = decodes},
    {REGION_ACTIVATIONS, PHASE_PASS, TEACHER(TEACHER_PASS)},
    {REGION_ACTIVATIONS, PHASE_LOAD, .carve = staging},
    {REGION_GRADIENTS_RECEIVED, PHASE_EXCHANGE, .carve = received, .wanted = is_process,
     .within = {REGION_ACTIVATIONS}},
    {REGION_GRADIENTS_ROUNDED, PHASE_EXCHANGE, .carve = rounded, .wanted = rounds_here,
     .within = {REGION_ACTIVATIONS}},
    {REGION_GRADIENTS_OVERLAPPED, PHASE_BACKWARD | PHASE_EXCHANGE, .carve = received_overlapped,
     .wanted = exchanges_overlapped},
    /* Between two steps it also carries the data that ranks send each other. */
    {REGION_HEAD_HIDDEN, PHASES, .carve = head_hidden},
    {REGION_HEAD_LOGITS, PHASE_LOSSES, .carve = head_logits, .within = {REGION_GRADIENTS}},
    {REGION_TEACHER_PASS, PHASE_PASS | PHASE_MICRO, TEACHER(TEACHER_PASS_ROWS)},
    {REGION_TEACHER_HIDDEN, PHASE_TEACHER | PHASE_FORWARD | PHASE_LOSSES, TEACHER(TEACHER_HIDDEN)},
    {REGION_TEACHER_LOGITS, PHASE_LOSS, TEACHER(TEACHER_CHUNK)},
    {REGION_STUDENT_FP8, PHASE_FORWARD | PHASE_BACKWARD, .carve = student_fp8, .wanted = has_fp8,
     .within = {REGION_TEACHER_LOGITS}},
    {REGION_HEAD_FP8, PHASE_LOSSES, .carve = head_fp8, .wanted = has_fp8_head,
     .within = {REGION_ACTIVATIONS, REGION_GRADIENTS}},
    {REGION_HEAD_FP8_GRADIENTS, PHASE_LOSS_BACK, .carve = head_fp8_gradients,
     .wanted = may_have_fp8_gradients, .within = {REGION_TEACHER_LOGITS}, .optional = true},
    {REGION_HEAD_LOSSES, PHASE_LOSS, .carve = head_losses},
    {REGION_BATCH, PHASE_PASS | PHASE_MICRO, .carve = batch},
    {REGION_STEP_STATE, PHASES, .carve = step_state},
    {REGION_HOST_BATCHES, PHASES, .carve = host_batches},
    {REGION_HOST_PINNED, PHASES, .carve = host_pinned},
    {REGION_HOST_DECODER, PHASE_DECODE, .carve = host_decoder, .wanted = decodes},
    {REGION_HOST_TEACHER, PHASES, TEACHER(TEACHER_STAGED)},
    {REGION_HOST_TOKEN_KD, PHASE_LOSS, .carve = token_kd, .wanted = compares_tokens},
    {REGION_HOST_TOKEN_CE, PHASE_LOSS, .carve = token_ce, .wanted = compares_tokens},
    {REGION_HOST_TRANSFER, PHASES, .carve = host_transfer},
};
const int buffers_count = sizeof buffers / sizeof buffers[0];
