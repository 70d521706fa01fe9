/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_layout.c: see plan_layout.h. The same function counts and carves, so that the plan is what is used.
 */
#include "state/plan_layout.h"

#include "base/checked.h"
#include "net/f8.h"
#include "net/quant.h"
#include "net/teacher_shard.h"

enum { TRANSFER_BYTES = 32 << 20 };
/* Rows that a teacher runs over at once, at most: a GEMM is as fast as it gets, and what is paid once per
 * pass, such as expanding quantised matrices, is 3 % of it (docs/performance.md). */
enum { TEACHER_ROWS = 8192 };

static const struct region_row {
    const char *name, *of_adapters; /* the latter where adapters are trained; NULL: the same */
    enum plan_place place;
    bool
        chunked; /* its bytes follow the rows of a chunk, or of a pass, which a larger batch may lower */
} regions[PLAN_REGIONS] = {
    [REGION_STUDENT_WEIGHTS] = {"student.weights"},
    [REGION_ADAPTERS_WEIGHTS] = {"adapters.weights"},
    [REGION_MASTER] = {"student.master", "adapters.master"},
    [REGION_MOMENT1] = {"student.moment1", "adapters.moment1"},
    [REGION_MOMENT2] = {"student.moment2", "adapters.moment2"},
    [REGION_GRADIENTS] = {"student.gradients", "adapters.gradients"},
    [REGION_GRADIENTS_SUM] = {"student.gradients.sum", "adapters.gradients.sum"},
    [REGION_TEACHER_WEIGHTS] = {"teacher.weights"},
    [REGION_TEACHER_LAYERS] = {"teacher.layers"},
    [REGION_TEACHER_EXPANDED] = {"teacher.expanded"},
    [REGION_ACTIVATIONS] = {"activations"},
    [REGION_GRADIENTS_RECEIVED] = {"student.gradients.received", "adapters.gradients.received"},
    [REGION_GRADIENTS_ROUNDED] = {"student.gradients.rounded", "adapters.gradients.rounded"},
    [REGION_GRADIENTS_EARLY] = {"student.gradients.early"},
    [REGION_HEAD_HIDDEN] = {"head.hidden", .chunked = true},
    [REGION_HEAD_LOGITS] = {"head.logits", .chunked = true},
    [REGION_TEACHER_PASS] = {"teacher.pass", .chunked = true},
    [REGION_TEACHER_HIDDEN] = {"teacher.hidden", .chunked = true},
    [REGION_TEACHER_LOGITS] = {"teacher.logits", .chunked = true},
    [REGION_STUDENT_FP8] = {"student.fp8"},
    [REGION_HEAD_FP8] = {"head.fp8", .chunked = true},
    [REGION_HEAD_FP8_GRADIENTS] = {"head.fp8.gradients", .chunked = true},
    [REGION_HEAD_LOSSES] = {"head.losses", .chunked = true},
    [REGION_BATCH] = {"batch"},
    [REGION_STEP_STATE] = {"step.state"},
    [REGION_HOST_BATCHES] = {"host.batches", .place = PLAN_HOST},
    [REGION_HOST_PINNED] = {"host.pinned", .place = PLAN_HOST},
    [REGION_HOST_DECODER] = {"host.decoder", .place = PLAN_HOST},
    [REGION_HOST_TOKEN_KD] = {"host.token_kd", .place = PLAN_HOST},
    [REGION_HOST_TOKEN_CE] = {"host.token_ce", .place = PLAN_HOST},
    [REGION_HOST_TRANSFER] = {"host.transfer", .place = PLAN_HOST},
    [REGION_GEMM_WORKSPACE] = {"gemm.workspace", .place = PLAN_LIBRARY},
};

static const char *region_name(enum region which, bool adapters)
{
    const struct region_row *row = &regions[which];
    return adapters && row->of_adapters ? row->of_adapters : row->name;
}

/* within: as in struct plan_region. A region that the plan has no room for makes it too large. */
static void add(struct plan *p, enum region which, const char *name, const char *within,
                size_t bytes)
{
    const enum plan_place place = regions[which].place;
    size_t *sum = place == PLAN_HOST ? &p->host_bytes : &p->total_bytes;
    const bool room = p->count < PLAN_REGIONS;
    *sum = size_add(*sum, room ? bytes : SIZE_MAX);
    if (!room)
        return;
    struct plan_region *r = &p->region[p->count++];
    *r = (struct plan_region){which, name, place, bytes, within};
}

void plan_add_workspace(struct plan *p, size_t bytes)
{
    add(p, REGION_GEMM_WORKSPACE, regions[REGION_GEMM_WORKSPACE].name, NULL, bytes);
}

size_t plan_bytes(const struct plan *p, enum region which)
{
    for (int i = 0; i < p->count; i++)
        if (p->region[i].region == which)
            return p->region[i].bytes;
    return 0;
}

/* Logits and losses go in chunks of rows whose size follows the batch up and down, and so does a teacher's pass; the
 * rest only grows. */
size_t plan_bytes_growing(const struct plan *p)
{
    size_t bytes = 0;
    for (int i = 0; i < p->count; i++) {
        const struct plan_region *r = &p->region[i];
        if (r->place == PLAN_DEVICE && !regions[r->region].chunked)
            bytes = size_add(bytes, r->bytes);
    }
    return bytes;
}

/* One region under construction: arrays are carved between open and close. */
struct layout {
    struct plan *plan;
    bool adapters; /* are trained */
    struct carve device, host;
    size_t at, from; /* of the device: the first array's place, and the bytes before it */
};

static void open_region(struct layout *l)
{
    l->at = l->device.used;
    l->from = carve_bytes(&l->device);
}

/* The region that the largest array is in is named, for those who have no memory for it. */
static void close_region(struct layout *l, enum region which)
{
    const struct carve_pieces *p = l->device.pieces;
    const char *name = region_name(which, l->adapters);
    add(l->plan, which, name, NULL, size_sub(carve_bytes(&l->device), l->from));
    if (p == NULL || p->most <= l->plan->array_bytes)
        return;
    l->plan->array_bytes = p->most;
    l->plan->array_in = name;
}

static void *region(struct layout *l, enum region which, size_t bytes)
{
    open_region(l);
    void *at = carve_take(&l->device, bytes);
    close_region(l, which);
    return at;
}

static void *host_region(struct layout *l, enum region which, size_t bytes)
{
    size_t from = l->host.used;
    void *at = carve_take(&l->host, bytes);
    add(l->plan, which, regions[which].name, NULL, size_sub(l->host.used, from));
    return at;
}

static void *state_region(struct layout *l, enum region which, int64_t count, size_t each)
{
    return region(l, which, size_mul((size_t)count, each));
}

/* A region without bytes of its own. */
static void lies_within(struct layout *l, enum region which, enum region host)
{
    add(l->plan, which, region_name(which, l->adapters), region_name(host, l->adapters), 0);
}

size_t optimizer_state_bytes(enum optimizer_state kept)
{
    return kept == STATE_BF16 ? sizeof(uint16_t) : sizeof(float);
}

/* Only what is trained has master weights, moments and gradients. Where ranks are processes, the first two are
 * shards, and weights and gradients whole shards, so that they are gathered where they lie. */
static void layout_student(struct layout *l, const struct net *n, const struct shape *s,
                           enum optimizer_state kept, struct memory *m)
{
    const int64_t all = n->lora ? n->lora->p.count : n->p.count, frozen = n->p.count;
    const bool apart = s->rank != RANKS_HERE;
    const int64_t count = apart ? pieces_shards(all, s->ranks) : all;
    const int64_t held = apart ? pieces_shard(all, s->ranks) : all;
    const size_t moment = optimizer_state_bytes(kept);
    m->weights = region(l, REGION_STUDENT_WEIGHTS,
                        size_mul((size_t)(n->lora ? frozen : count), dtype_bytes(n->T)));
    m->trained = m->weights;
    if (n->lora)
        m->trained = region(l, REGION_ADAPTERS_WEIGHTS, size_mul((size_t)count, dtype_bytes(n->T)));
    if (!s->train)
        return;
    if (n->T == NJ_F32)
        m->master = (float *)(void *)m->trained;
    else if (kept == STATE_F32)
        m->master = state_region(l, REGION_MASTER, held, sizeof(float));
    m->m = state_region(l, REGION_MOMENT1, held, moment);
    m->v = state_region(l, REGION_MOMENT2, held, moment);
    m->grad = state_region(l, REGION_GRADIENTS, count, sizeof(float));
    m->total = m->grad;
    if (s->ranks > 1 && !apart)
        m->total = state_region(l, REGION_GRADIENTS_SUM, count, sizeof(float));
}

/* What a rank that is a process gets of the others' gradients, of one piece at a time, or where those of a rank that is
 * not are rounded: in activations, which are idle by then, if there is room. They are not while pieces are exchanged
 * early, during the backward pass. */
static void layout_received(struct layout *l, const struct net *n, const struct shape *s,
                            enum reduce_dtype reduced, struct memory *m)
{
    const bool here = s->rank == RANKS_HERE;
    const int64_t all = n->lora ? n->lora->p.count : n->p.count;
    const size_t bytes = here ? size_mul((size_t)all, sizeof(uint16_t))
                              : size_mul((size_t)pieces_largest_other(&s->pieces), sizeof(float));
    const enum region which = here ? REGION_GRADIENTS_ROUNDED : REGION_GRADIENTS_RECEIVED;
    if (!s->train || s->ranks == 1 || (here && reduced == REDUCE_F32))
        return;
    if (bytes <= m->staging_bytes) {
        lies_within(l, which, REGION_ACTIVATIONS);
        m->received = (float *)(void *)m->staging;
    } else {
        m->received = region(l, which, bytes);
    }
    if (s->early)
        m->early = state_region(l, REGION_GRADIENTS_EARLY, pieces_largest_group(&s->pieces),
                                sizeof(float));
}

static void layout_teacher(struct layout *l, const struct net *n, struct memory *m)
{
    open_region(l);
    m->teacher_weights = carve_take(&l->device, size_mul((size_t)n->p.count, dtype_bytes(n->T)));
    net_carve_ends(n, &l->device);
    m->teacher_common = size_sub(l->device.used, l->at);
    teacher_shard_carve_layers(n, &l->device);
    close_region(l, REGION_TEACHER_WEIGHTS);
    if (n->shard) {
        open_region(l);
        teacher_shard_carve_slots(n, &l->device);
        close_region(l, REGION_TEACHER_LAYERS);
    }
    if (quant_scratch_bytes(n) > 0)
        m->teacher_expanded = region(l, REGION_TEACHER_EXPANDED, quant_scratch_bytes(n));
}

/* Micro-batches of a rank, all passes alike, that the teacher can run over in this much memory. */
static int teacher_batches(const struct net *n, const struct train_options *o, struct carve from,
                           size_t room)
{
    const int rows = o->batch_size * o->seq_len;
    int batches = o->steps > 0 && rows < TEACHER_ROWS ? TEACHER_ROWS / rows : 1;
    batches = batches < shape_micro(o) ? batches : shape_micro(o);
    for (; batches > 1; batches--) {
        struct carve_pieces tried;
        struct carve c = from;
        struct acts unused;
        if (from.pieces) {
            tried = *from.pieces;
            c.pieces = &tried;
        }
        acts_carve(n, batches * o->batch_size, o->seq_len, ACTS_INFER, &c, &unused);
        if (shape_micro(o) % batches == 0 && c.used <= room)
            return batches;
    }
    return 1;
}

/* Student, teacher and generation never need theirs at the same time. */
static void layout_activations(struct layout *l, const struct net *student,
                               const struct net *teacher, const struct train_options *o,
                               const struct shape *s, struct memory *m)
{
    enum acts_mode mode = o->steps > 0 ? ACTS_TRAIN : ACTS_INFER;
    carve_apart(&l->device);
    open_region(l);
    struct carve a = l->device, b = l->device, c = l->device, d = l->device;
    acts_carve(student, o->batch_size, o->seq_len, mode, &a, &m->student);
    if (teacher)
        acts_carve(teacher, o->batch_size, o->seq_len, ACTS_INFER, &b, &m->teacher);
    const struct decoder_size size = {
        .rows = o->decode_rows,
        .positions = o->decode_positions > 0 ? o->decode_positions : o->seq_len,
        .bytes_cached = o->decode_bytes,
    };
    if (size.rows > 0)
        decoder_carve(teacher && o->teacher_writes ? teacher : student, &size, s->vocab, s->ld, &c,
                      &m->decoder);
    size_t used = a.used > b.used ? a.used : b.used;
    used = used > c.used ? used : c.used;
    if (teacher) {
        m->teacher_batches = teacher_batches(teacher, o, l->device, used);
        acts_carve(teacher, m->teacher_batches * o->batch_size, o->seq_len, ACTS_INFER, &d,
                   &m->teacher_pass);
    }
    l->device.used = used;
    m->staging = carve_at(&l->device, l->at);
    m->staging_bytes = carve_room(&l->device, l->at);
    close_region(l, REGION_ACTIVATIONS);
}

/* What lasts from the teacher's pass to the last of its micro-batches. */
static void layout_pass(struct layout *l, const struct net *n, const struct shape *s,
                        struct memory *m)
{
    const size_t rows = size_mul((size_t)m->teacher_batches, (size_t)s->rows);

    if (m->teacher_batches == 1)
        return;
    open_region(l);
    m->teacher_pass.y =
        carve_take(&l->device, size_product(rows, (size_t)n->c.hidden_size, dtype_bytes(n->T)));
    rows_carve((int)rows, 0, USE_FORWARD, &l->device, &m->teacher_rows);
    close_region(l, REGION_TEACHER_PASS);
}

static void layout_teacher_rows(struct layout *l, const struct net *n, const struct shape *s,
                                struct memory *m)
{
    const int C = n->c.hidden_size;
    open_region(l);
    m->teacher_hidden =
        carve_take(&l->device, size_product((size_t)s->padded, (size_t)C, dtype_bytes(n->T)));
    if (n->head->format->e4m3)
        m->teacher_x = f8_rows(n->f8_scales, s->chunk, C, &l->device);
    close_region(l, REGION_TEACHER_HIDDEN);
}

/* NULL while it is only counted. */
static char *layer_gradients(const struct net *n, const struct memory *m)
{
    return m->grad ? (char *)&m->grad[params_product(&n->p, 0, PRODUCT_QKV)] : NULL;
}

static void *head_logits(struct layout *l, const struct net *student, const struct shape *s,
                         size_t bytes, const struct memory *m)
{
    if (!s->logits_in_gradients)
        return region(l, REGION_HEAD_LOGITS, bytes);
    lies_within(l, REGION_HEAD_LOGITS, REGION_GRADIENTS);
    return layer_gradients(student, m);
}

/* Operands of FP8 GEMMs: in the teacher's logits, which only the head uses, if there is room. */
static void layout_student_f8(struct layout *l, const struct net *n, const struct shape *s,
                              size_t room, struct memory *m)
{
    struct carve within = {.base = m->teacher_logits};
    student_f8_carve(n, s->rows, &within, &m->student);
    if (within.used <= room) {
        lies_within(l, REGION_STUDENT_FP8, REGION_TEACHER_LOGITS);
        return;
    }
    open_region(l);
    student_f8_carve(n, s->rows, &l->device, &m->student);
    close_region(l, REGION_STUDENT_FP8);
}

/* Operands of the LM head: in what is idle between forward and backward, the scratch of a layer or the gradients
 * behind the logits, if there is room. */
static void layout_f8_head(struct layout *l, const struct net *n, const struct train_options *o,
                           const struct shape *s, size_t logits, struct memory *m)
{
    const size_t before = s->logits_in_gradients ? size_up(logits, CARVE_ALIGN) : 0;
    const struct {
        enum region host;
        struct carve from;
        size_t bytes;
    } place[] = {
        {REGION_ACTIVATIONS, {.base = m->student.y}, m->student.scratch_bytes},
        {REGION_GRADIENTS,
         {.base = layer_gradients(n, m), .used = before},
         shape_idle_gradients(n, o)},
    };
    for (int i = 0; i < 2; i++) {
        struct carve within = place[i].from;
        student_f8_head_carve(n, s->chunk, s->ld, &within, &m->f8_head);
        if (within.used <= place[i].bytes) {
            lies_within(l, REGION_HEAD_FP8, place[i].host);
            return;
        }
    }
    open_region(l);
    student_f8_head_carve(n, s->chunk, s->ld, &l->device, &m->f8_head);
    close_region(l, REGION_HEAD_FP8);
}

/* Those of its gradients: in the teacher's logits, when the objective has read them, or in 16 bits. */
static void layout_f8_head_gradients(struct layout *l, const struct net *n,
                                     const struct train_options *o, const struct shape *s,
                                     size_t logits, struct memory *m)
{
    const struct carve from = {.base = m->teacher_logits};
    m->f8_head.gradients =
        objective_has_e5m2((enum objective)o->objective) && s->chunk % F8_MULTIPLE == 0 &&
        student_f8_head_carve_gradients(n, s->chunk, s->ld, from, logits, &m->f8_head);
    if (m->f8_head.gradients)
        lies_within(l, REGION_HEAD_FP8_GRADIENTS, REGION_TEACHER_LOGITS);
}

static void layout_head(struct layout *l, const struct net *student, const struct net *teacher,
                        const struct train_options *o, const struct shape *s, struct memory *m)
{
    const size_t e = dtype_bytes(student->T), C = (size_t)student->c.hidden_size;
    const size_t logits = size_product((size_t)s->chunk, (size_t)s->ld, e);
    const size_t each = size_mul((size_t)s->chunk, sizeof(float));
    m->hidden = region(l, REGION_HEAD_HIDDEN, size_product((size_t)s->padded, C, e));
    m->logits = head_logits(l, student, s, logits, m);
    if (teacher) {
        layout_pass(l, teacher, s, m);
        layout_teacher_rows(l, teacher, s, m);
        m->teacher_logits = region(l, REGION_TEACHER_LOGITS, logits);
    }
    if (student_f8_any(student))
        layout_student_f8(l, student, s, teacher ? logits : 0, m);
    if (student_f8_head(student) && s->train)
        layout_f8_head(l, student, o, s, logits, m);
    if (student_f8_head(student) && s->train && teacher)
        layout_f8_head_gradients(l, student, o, s, logits, m);
    open_region(l);
    m->kd = carve_take(&l->device, each);
    m->ce = carve_take(&l->device, each);
    m->entropy = carve_take(&l->device, each);
    m->agree = carve_take(&l->device, each);
    close_region(l, REGION_HEAD_LOSSES);
}

static void layout_small(struct layout *l, const struct model_config *student,
                         const struct model_config *teacher, const struct shape *s,
                         struct memory *m)
{
    struct carve batch = {0};
    rows_carve(s->rows, s->padded, s->arrays, &batch, &m->rows);
    m->rows_bytes = batch.used;
    carve_together(&l->device, batch.used);
    open_region(l);
    rows_carve(s->rows, s->padded, s->arrays, &l->device, &m->rows);
    close_region(l, REGION_BATCH);
    open_region(l);
    m->state = carve_take(&l->device, size_mul(NJ_STEP_SLOTS, sizeof(float)));
    m->sums = carve_take(&l->device, sizeof *m->sums);
    m->total_sums = m->sums;
    if (s->ranks > 1)
        m->total_sums = carve_take(&l->device, size_mul((size_t)s->ranks, sizeof *m->sums));
    m->sumsq =
        carve_take(&l->device,
                   size_product((size_t)s->ranks, (size_t)pieces_sumsq(&s->pieces), sizeof(float)));
    m->inv_freq = carve_take(&l->device, size_mul((size_t)student->head_dim / 2, sizeof(float)));
    if (teacher)
        m->teacher_inv_freq =
            carve_take(&l->device, size_mul((size_t)teacher->head_dim / 2, sizeof(float)));
    close_region(l, REGION_STEP_STATE);
}

static void layout_decoder(struct layout *l, struct memory *m)
{
    const size_t from = l->host.used;
    if (m->decoder.rows == 0)
        return;
    decoder_carve_host(&m->decoder, &l->host, &m->prompts, &m->now, &m->said);
    add(l->plan, REGION_HOST_DECODER, regions[REGION_HOST_DECODER].name, NULL,
        size_sub(l->host.used, from));
}

void plan_layout(const struct net *student, const struct net *teacher,
                 const struct train_options *o, struct carve device, char *host, struct memory *out,
                 struct plan *plan)
{
    const struct model_config *cs = &student->c, *ct = teacher ? &teacher->c : NULL;
    struct shape s;
    struct layout l = {
        .plan = plan, .adapters = student->lora != NULL, .device = device, .host = {.base = host}};
    plan_shape(student, ct, o, &s);
    *out = (struct memory){.transfer_bytes = TRANSFER_BYTES};
    layout_student(&l, student, &s, (enum optimizer_state)o->optimizer_state, out);
    if (teacher)
        layout_teacher(&l, teacher, out);
    layout_activations(&l, student, teacher, o, &s, out);
    layout_received(&l, student, &s, (enum reduce_dtype)o->reduce_dtype, out);
    layout_head(&l, student, teacher, o, &s, out);
    layout_small(&l, cs, ct, &s, out);
    out->batches = host_region(&l, REGION_HOST_BATCHES, size_mul(out->rows_bytes, (size_t)s.slots));
    out->pinned = host_region(&l, REGION_HOST_PINNED, sizeof *out->pinned);
    layout_decoder(&l, out);
    if (teacher && !s.train) {
        const size_t each = size_mul((size_t)s.padded, sizeof(float));
        out->token_kd = host_region(&l, REGION_HOST_TOKEN_KD, each);
        out->token_ce = host_region(&l, REGION_HOST_TOKEN_CE, each);
    }
    out->transfer = host_region(&l, REGION_HOST_TRANSFER, TRANSFER_BYTES);
}
