/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: decides what memory a run needs and where each region lies, before anything is allocated.
 * The same function counts and carves, so that the plan is what is used.
 */
#include "state/plan_layout.h"

#include "base/checked.h"
#include "io/error.h"
#include "net/f8.h"
#include "net/quant.h"
#include "net/teacher_shard.h"
#include "state/cost.h"

#include <stdio.h>
#include <string.h>

enum { HEAD_CHUNK_ROWS = 2048, TRANSFER_BYTES = 32 << 20 };
/* Rows that a teacher runs over at once, at most: a GEMM is as fast as it gets, and what is paid once per
 * pass, such as expanding quantised matrices, is 3 % of it (docs/performance.md). */
enum { TEACHER_ROWS = 8192 };

static int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

/* Equal chunks: 3,000 rows are two of 1,504 where 2,048 is the most, not one of 2,048 and a rest. A multiple of 8, and
 * of what FP8 GEMMs take. */
static int equal_chunks(int rows, int most, bool f8)
{
    const int multiple = f8 ? F8_MULTIPLE : 8;
    return ceil_div(ceil_div(rows, ceil_div(rows, most)), multiple) * multiple;
}

static int ranks_of(const struct train_options *o)
{
    return o->steps > 0 && o->ranks > 1 ? o->ranks : 1;
}

/* Each in a process of its own. */
static bool ranks_apart(const struct train_options *o)
{
    return ranks_of(o) > 1 && o->rank != RANKS_HERE;
}

/* Micro-batches of a rank. */
static int micro_of(const struct train_options *o)
{
    return o->steps > 0 ? o->grad_accum / ranks_of(o) : 1;
}

/* Bytes of gradients that nothing is in yet while the head runs: those of the layers, where a rank has one
 * micro-batch. */
static size_t idle_gradients(const struct net *student, const struct train_options *o)
{
    if (o->steps == 0 || micro_of(o) != 1 || student->lora)
        return 0;
    return size_mul((size_t)params_matrices(&student->p), sizeof(float));
}

void plan_shape(const struct net *student, const struct model_config *teacher,
                const struct train_options *o, struct shape *out)
{
    const int rows = o->batch_size * o->seq_len;
    int vocab = config_common_vocab(&student->c, teacher), chunk = o->head_chunk;
    if (o->vocab > 0 && o->vocab < vocab)
        vocab = o->vocab;
    const int ld = o->teacher_f8 || student->f8_head ? f8_logits(vocab) : ceil_div(vocab, 8) * 8;
    const size_t idle_rows = idle_gradients(student, o) / ((size_t)ld * dtype_bytes(student->T));
    if (chunk <= 0) { /* twice as many where the student's logits take no memory of their own */
        chunk = equal_chunks(rows, 2 * HEAD_CHUNK_ROWS, student->f8_head);
        if ((size_t)chunk > idle_rows)
            chunk = equal_chunks(rows, HEAD_CHUNK_ROWS, student->f8_head);
    } else if (chunk > rows)
        chunk = rows;
    const int chunks = ceil_div(rows, chunk);
    *out = (struct shape){
        .rows = rows,
        .chunk = chunk,
        .chunks = chunks,
        .padded = chunks * chunk,
        .vocab = vocab,
        .ld = ld,
        .train = o->steps > 0,
        .ranks = ranks_of(o),
        .micro = micro_of(o),
        .rank = ranks_apart(o) ? o->rank : RANKS_HERE,
        .slots = micro_of(o) * (ranks_apart(o) ? 1 : ranks_of(o)),
        .logits_in_gradients = (size_t)chunk <= idle_rows,
        .arrays = USE_FORWARD | USE_STEP | (teacher && o->teacher_apart ? USE_TEACHER : 0U) |
                  (teacher && o->steps > 0 && o->answers ? USE_ANSWERS : 0U),
    };
    pieces_cut(student->lora ? &student->lora->p : &student->p,
               student->lora ? 0 : student->c.layers, out->ranks, &out->pieces);
    out->early = ranks_apart(o) && out->pieces.groups > 0;
}

/* within: as in struct plan_region. A region that the plan has no room for makes it too large. */
static void plan_add(struct plan *p, enum plan_place place, const char *name, const char *within,
                     size_t bytes)
{
    size_t *sum = place == PLAN_HOST ? &p->host_bytes : &p->total_bytes;
    const bool room = p->count < PLAN_REGIONS;
    *sum = size_add(*sum, room ? bytes : SIZE_MAX);
    if (!room)
        return;
    struct plan_region *r = &p->region[p->count++];
    *r = (struct plan_region){.place = place, .bytes = bytes, .within = within};
    snprintf(r->name, sizeof r->name, "%s", name);
}

/* One region under construction: arrays are carved between open and close. */
struct layout {
    struct plan *plan;
    struct carve device, host;
    size_t at, from; /* of the device: the first array's place, and the bytes before it */
};

static void open_region(struct layout *l)
{
    l->at = l->device.used;
    l->from = carve_bytes(&l->device);
}

/* The region that the largest array is in is named, for those who have no memory for it. */
static void close_region(struct layout *l, const char *name)
{
    const struct carve_pieces *p = l->device.pieces;
    plan_add(l->plan, PLAN_DEVICE, name, NULL, size_sub(carve_bytes(&l->device), l->from));
    if (p == NULL || p->most <= l->plan->array_bytes)
        return;
    l->plan->array_bytes = p->most;
    snprintf(l->plan->array_in, sizeof l->plan->array_in, "%s", name);
}

static void *region(struct layout *l, const char *name, size_t bytes)
{
    open_region(l);
    void *at = carve_take(&l->device, bytes);
    close_region(l, name);
    return at;
}

static void *host_region(struct layout *l, const char *name, size_t bytes)
{
    size_t from = l->host.used;
    void *at = carve_take(&l->host, bytes);
    plan_add(l->plan, PLAN_HOST, name, NULL, size_sub(l->host.used, from));
    return at;
}

static void *state_region(struct layout *l, const char *owner, const char *what, int64_t count,
                          size_t each)
{
    char name[48];
    snprintf(name, sizeof name, "%s.%s", owner, what);
    return region(l, name, size_mul((size_t)count, each));
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
    const char *owner = n->lora ? "adapters" : "student";
    const int64_t all = n->lora ? n->lora->p.count : n->p.count, frozen = n->p.count;
    const bool apart = s->rank != RANKS_HERE;
    const int64_t count = apart ? pieces_shards(all, s->ranks) : all;
    const int64_t held = apart ? pieces_shard(all, s->ranks) : all;
    const size_t moment = optimizer_state_bytes(kept);
    m->weights = region(l, "student.weights",
                        size_mul((size_t)(n->lora ? frozen : count), dtype_bytes(n->T)));
    m->trained = m->weights;
    if (n->lora)
        m->trained = region(l, "adapters.weights", size_mul((size_t)count, dtype_bytes(n->T)));
    if (!s->train)
        return;
    if (n->T == NJ_F32)
        m->master = (float *)(void *)m->trained;
    else if (kept == STATE_F32)
        m->master = state_region(l, owner, "master", held, sizeof(float));
    m->m = state_region(l, owner, "moment1", held, moment);
    m->v = state_region(l, owner, "moment2", held, moment);
    m->grad = state_region(l, owner, "gradients", count, sizeof(float));
    m->total = m->grad;
    if (s->ranks > 1 && !apart)
        m->total = state_region(l, owner, "gradients.sum", count, sizeof(float));
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
    char name[48];
    snprintf(name, sizeof name, "%s.gradients.%s", n->lora ? "adapters" : "student",
             here ? "rounded" : "received");
    if (!s->train || s->ranks == 1 || (here && reduced == REDUCE_F32))
        return;
    if (bytes <= m->staging_bytes) {
        plan_add(l->plan, PLAN_DEVICE, name, "activations", 0);
        m->received = (float *)(void *)m->staging;
    } else {
        m->received = region(l, name, bytes);
    }
    if (s->early)
        m->early = state_region(l, "student", "gradients.early", pieces_largest_group(&s->pieces),
                                sizeof(float));
}

static void layout_teacher(struct layout *l, const struct net *n, struct memory *m)
{
    open_region(l);
    m->teacher_weights = carve_take(&l->device, size_mul((size_t)n->p.count, dtype_bytes(n->T)));
    net_carve_ends(n, &l->device);
    m->teacher_common = size_sub(l->device.used, l->at);
    teacher_shard_carve_layers(n, &l->device);
    close_region(l, "teacher.weights");
    if (n->shard) {
        open_region(l);
        teacher_shard_carve_slots(n, &l->device);
        close_region(l, "teacher.layers");
    }
    if (quant_scratch_bytes(n) > 0)
        m->teacher_expanded = region(l, "teacher.expanded", quant_scratch_bytes(n));
}

static bool larger_than_a_piece(const struct net *n, const struct train_options *o)
{
    return o->piece_bytes > 0 && size_mul((size_t)n->p.count, dtype_bytes(n->T)) > o->piece_bytes;
}

/* One that is shared out has a place for each matrix of a layer, in whatever form they are. */
int teacher_layout(struct net *n, const struct train_options *o)
{
    const bool shared = o->teacher_shard && ranks_apart(o);
    int rc = shared ? teacher_shard_layout(n, o->rank, o->ranks) : 0;
    if (rc != 0)
        return rc;
    if (o->teacher_f8)
        return f8_layout(n);
    if (o->teacher_types || shared)
        return quant_layout(n, o->teacher_types);
    rc = net_place(n, PARAMS_ALL);
    if (rc != 0 || !larger_than_a_piece(n, o))
        return rc;
    net_free(n); /* each matrix by itself */
    return quant_layout(n, NULL);
}

void teacher_free(struct net *n)
{
    net_free(n);
    teacher_shard_free(n);
}

/* Micro-batches of a rank, all passes alike, that the teacher can run over in this much memory. */
static int teacher_batches(const struct net *n, const struct train_options *o, struct carve from,
                           size_t room)
{
    const int rows = o->batch_size * o->seq_len;
    int batches = o->steps > 0 && rows < TEACHER_ROWS ? TEACHER_ROWS / rows : 1;
    batches = batches < micro_of(o) ? batches : micro_of(o);
    for (; batches > 1; batches--) {
        struct carve_pieces tried;
        struct carve c = from;
        struct acts unused;
        if (from.pieces) {
            tried = *from.pieces;
            c.pieces = &tried;
        }
        acts_carve(n, batches * o->batch_size, o->seq_len, ACTS_INFER, &c, &unused);
        if (micro_of(o) % batches == 0 && c.used <= room)
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
    close_region(l, "activations");
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
    close_region(l, "teacher.pass");
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
    close_region(l, "teacher.hidden");
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
        return region(l, "head.logits", bytes);
    plan_add(l->plan, PLAN_DEVICE, "head.logits", "student.gradients", 0);
    return layer_gradients(student, m);
}

/* Operands of FP8 GEMMs: in the teacher's logits, which only the head uses, if there is room. */
static void layout_student_f8(struct layout *l, const struct net *n, const struct shape *s,
                              size_t room, struct memory *m)
{
    struct carve within = {.base = m->teacher_logits};
    student_f8_carve(n, s->rows, &within, &m->student);
    if (within.used <= room) {
        plan_add(l->plan, PLAN_DEVICE, "student.fp8", "teacher.logits", 0);
        return;
    }
    open_region(l);
    student_f8_carve(n, s->rows, &l->device, &m->student);
    close_region(l, "student.fp8");
}

/* Operands of the LM head: in what is idle between forward and backward, the scratch of a layer or the gradients
 * behind the logits, if there is room. */
static void layout_f8_head(struct layout *l, const struct net *n, const struct train_options *o,
                           const struct shape *s, size_t logits, struct memory *m)
{
    const size_t before = s->logits_in_gradients ? size_up(logits, CARVE_ALIGN) : 0;
    const struct {
        const char *name;
        struct carve from;
        size_t bytes;
    } place[] = {
        {"activations", {.base = m->student.y}, m->student.scratch_bytes},
        {"student.gradients",
         {.base = layer_gradients(n, m), .used = before},
         idle_gradients(n, o)},
    };
    for (int i = 0; i < 2; i++) {
        struct carve within = place[i].from;
        student_f8_head_carve(n, s->chunk, s->ld, &within, &m->f8_head);
        if (within.used <= place[i].bytes) {
            plan_add(l->plan, PLAN_DEVICE, "head.fp8", place[i].name, 0);
            return;
        }
    }
    open_region(l);
    student_f8_head_carve(n, s->chunk, s->ld, &l->device, &m->f8_head);
    close_region(l, "head.fp8");
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
        plan_add(l->plan, PLAN_DEVICE, "head.fp8.gradients", "teacher.logits", 0);
}

static void layout_head(struct layout *l, const struct net *student, const struct net *teacher,
                        const struct train_options *o, const struct shape *s, struct memory *m)
{
    const size_t e = dtype_bytes(student->T), C = (size_t)student->c.hidden_size;
    const size_t logits = size_product((size_t)s->chunk, (size_t)s->ld, e);
    const size_t each = size_mul((size_t)s->chunk, sizeof(float));
    m->hidden = region(l, "head.hidden", size_product((size_t)s->padded, C, e));
    m->logits = head_logits(l, student, s, logits, m);
    if (teacher) {
        layout_pass(l, teacher, s, m);
        layout_teacher_rows(l, teacher, s, m);
        m->teacher_logits = region(l, "teacher.logits", logits);
    }
    if (student_f8_any(student))
        layout_student_f8(l, student, s, teacher ? logits : 0, m);
    if (student->f8_head && s->train)
        layout_f8_head(l, student, o, s, logits, m);
    if (student->f8_head && s->train && teacher)
        layout_f8_head_gradients(l, student, o, s, logits, m);
    open_region(l);
    m->kd = carve_take(&l->device, each);
    m->ce = carve_take(&l->device, each);
    m->entropy = carve_take(&l->device, each);
    m->agree = carve_take(&l->device, each);
    close_region(l, "head.losses");
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
    close_region(l, "batch");
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
    close_region(l, "step.state");
}

static void layout_decoder(struct layout *l, struct memory *m)
{
    const size_t from = l->host.used;
    if (m->decoder.rows == 0)
        return;
    decoder_carve_host(&m->decoder, &l->host, &m->prompts, &m->now, &m->said);
    plan_add(l->plan, PLAN_HOST, "host.decoder", NULL, size_sub(l->host.used, from));
}

void plan_layout(const struct net *student, const struct net *teacher,
                 const struct train_options *o, struct carve device, char *host, struct memory *out,
                 struct plan *plan)
{
    const struct model_config *cs = &student->c, *ct = teacher ? &teacher->c : NULL;
    struct shape s;
    struct layout l = {.plan = plan, .device = device, .host = {.base = host}};
    plan_shape(student, ct, o, &s);
    *out = (struct memory){.transfer_bytes = TRANSFER_BYTES};
    layout_student(&l, student, &s, (enum optimizer_state)o->optimizer_state, out);
    if (teacher)
        layout_teacher(&l, teacher, out);
    layout_activations(&l, student, teacher, o, &s, out);
    layout_received(&l, student, &s, (enum reduce_dtype)o->reduce_dtype, out);
    layout_head(&l, student, teacher, o, &s, out);
    layout_small(&l, cs, ct, &s, out);
    out->batches = host_region(&l, "host.batches", size_mul(out->rows_bytes, (size_t)s.slots));
    out->pinned = host_region(&l, "host.pinned", sizeof *out->pinned);
    layout_decoder(&l, out);
    if (teacher && !s.train) {
        const size_t each = size_mul((size_t)s.padded, sizeof(float));
        out->token_kd = host_region(&l, "host.token_kd", each);
        out->token_ce = host_region(&l, "host.token_ce", each);
    }
    out->transfer = host_region(&l, "host.transfer", TRANSFER_BYTES);
}

static size_t step_comm_bytes(const struct train_options *o, const struct shape *s)
{
    const size_t wire = o->reduce_dtype == REDUCE_BF16 ? sizeof(uint16_t) : sizeof(float);
    const size_t losses = (size_t)(s->ranks - 1) * sizeof(struct losses);
    return ranks_apart(o) ? losses + pieces_received(&s->pieces, wire, dtype_bytes(o->dtype)) : 0;
}

static int check_options(const struct train_options *o)
{
    const struct {
        const char *name;
        int64_t value, least;
    } needed[] = {
        {"batch size", o->batch_size, 1},
        {"sequence length", o->seq_len, 1},
        {"gradient accumulation", o->steps > 0 ? o->grad_accum : 1, 1},
        {"steps", o->steps, 0},
        {"head chunk", o->head_chunk, 0},
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (needed[i].value < needed[i].least)
            return fail(NJ_E_ARG, "%s is %lld; it must be at least %lld", needed[i].name,
                        (long long)needed[i].value, (long long)needed[i].least);
    if (o->steps > 0 &&
        (o->ranks < 0 || o->ranks > NJ_COMM_RANKS_MOST || o->grad_accum % ranks_of(o) != 0))
        return fail(NJ_E_ARG,
                    "gradient accumulation is %d and %d ranks share its micro-batches; it must be "
                    "a multiple of them, at most %d",
                    o->grad_accum, o->ranks, (int)NJ_COMM_RANKS_MOST);
    if ((int64_t)o->batch_size * o->seq_len > PLAN_ROWS_MOST)
        return fail(NJ_E_ARG, "batch size %d times sequence length %d is too large; lower one",
                    o->batch_size, o->seq_len);
    return 0;
}

struct carve plan_arena(struct plan *p, const struct train_options *o)
{
    p->pieces.limit = o->piece_bytes / CARVE_ALIGN * CARVE_ALIGN;
    return (struct carve){.pieces = p->pieces.limit > 0 ? &p->pieces : NULL};
}

int plan_make(const struct model_config *student, const struct model_config *teacher,
              const struct train_options *o, struct plan *out)
{
    struct net s = {.c = *student,
                    .T = o->dtype,
                    .recompute = (enum recompute)o->recompute,
                    .f8_scales = o->f8_scales,
                    .f8_refused = o->f8_refused[0]};
    struct net t = {.T = o->dtype, .f8_scales = o->f8_scales, .f8_refused = o->f8_refused[1]};
    struct lora lora = {0};
    struct memory placed;
    struct shape shape;
    *out = (struct plan){0};
    int rc = check_options(o);
    if (rc == 0)
        rc = net_layout(&s, &o->lora, &lora);
    if (rc == 0)
        rc = student_f8_choose(&s, o->student_f8, train_rows(o));
    if (rc == 0 && teacher) {
        t.c = *teacher;
        rc = teacher_layout(&t, o);
    }
    if (rc == 0)
        plan_layout(&s, teacher ? &t : NULL, o, plan_arena(out, o), NULL, &placed, out);
    if (rc == 0) {
        plan_shape(&s, teacher, o, &shape);
        out->step_comm_bytes = step_comm_bytes(o, &shape);
        out->work = step_work_count(&s, teacher ? &t : NULL, o, &placed);
    }
    if (rc == 0 && o->workspace_bytes > 0)
        plan_add(out, PLAN_LIBRARY, "gemm.workspace", NULL, o->workspace_bytes);
    if (rc == 0 && (out->total_bytes == SIZE_MAX || out->host_bytes == SIZE_MAX))
        rc = fail(NJ_E_NOMEM,
                  "this run needs more memory than can be addressed; lower the batch size or the "
                  "sequence length, and check the sizes in config.json");
    net_free(&s);
    teacher_free(&t);
    lora_free(&lora);
    return rc;
}
