/* SPDX-License-Identifier: Apache-2.0
 *
 * live.c: a teacher that is a model, which only runs forward: it has no gradients, no moments and no master weights.
 * It keeps hidden rows, not logits, which are computed chunk by chunk when the head needs them.
 */
#include "teacher/live.h"

#include "base/checked.h"
#include "base/try.h"
#include "io/error.h"
#include "net/acts.h"
#include "net/forward.h"
#include "net/fp8.h"
#include "net/logits.h"
#include "net/quant.h"
#include "net/tables.h"
#include "net/teacher_shard.h"
#include "nojit_ops.h"

#include <stdlib.h>

/* Largest number of rows that a teacher runs over at once: GEMMs are at full speed, and the costs of a pass, such
 * as expanding quantized matrices, are 3 % of it (docs/performance.md). */
enum { PASS_ROWS = 8192 };

struct live {
    bool f8;             /* it multiplies E4M3 operands */
    struct acts acts;    /* activations of a micro-batch */
    struct acts pass;    /* activations of several; its y outlives the pass */
    struct rows rows;    /* rows of those: ids, pos, doc_start */
    char *expanded;      /* one matrix, or a slice of the head, of a quantized model */
    char *hidden;        /* [padded, C] normed rows with a target */
    struct fp8_matrix x; /* [chunk, C] FP8: rows of a chunk */
    char *logits;        /* [chunk, ld] */
};

static struct live *live_of(const struct teacher *t)
{
    return t->state;
}

/* ---- the model ---- */

static bool larger_than_a_cell(const struct net *n, size_t cell_bytes)
{
    return cell_bytes > 0 && size_mul((size_t)n->p.count, dtype_bytes(n->T)) > cell_bytes;
}

/* Place the parameters. A model that is shared out has a place for each matrix of a layer, in whatever form they
 * are. */
static int place(struct net *n, const struct live_setup *s)
{
    if (s->ranks > 0)
        TRY(teacher_shard_layout(n, s->rank, s->ranks));
    if (s->f8)
        return fp8_layout(n);
    if (s->types || s->ranks > 0)
        return quant_layout(n, s->types);
    TRY(net_place(n, PARAMS_ALL));
    if (!larger_than_a_cell(n, s->cell_bytes))
        return 0;
    net_free(n); /* each matrix has its own memory */
    return quant_layout(n, NULL);
}

static int choose(struct teacher *t)
{
    return live_of(t)->f8 ? fp8_choose(&t->net) : 0;
}

static void close_live(struct teacher *t)
{
    net_free(&t->net);
    teacher_shard_free(&t->net);
    free(t->state);
    *t = (struct teacher){0};
}

/* ---- its memory ---- */

static void carve_weights(struct teacher *t, struct carve *c, size_t end)
{
    const struct net *n = &t->net;
    const size_t from = c->used;
    (void)end;
    t->weights = carve_take(c, size_mul((size_t)n->p.count, dtype_bytes(n->T)));
    net_carve_ends(n, c);
    const size_t ends = size_sub(c->used, from);
    t->weights_alike = size_add(ends, teacher_shard_carve_layers(n, c));
}

static bool gathers_layers(const struct teacher *t)
{
    return teacher_shard_slot_bytes(&t->net) > 0;
}

static void carve_layers(struct teacher *t, struct carve *c, size_t end)
{
    (void)end;
    teacher_shard_carve_slots(&t->net, c);
}

static bool expands(const struct teacher *t)
{
    return quant_scratch_bytes(&t->net) > 0;
}

static void carve_expanded(struct teacher *t, struct carve *c, size_t end)
{
    (void)end;
    live_of(t)->expanded = carve_take(c, quant_scratch_bytes(&t->net));
}

static void carve_constants(struct teacher *t, struct carve *c, size_t end)
{
    (void)end;
    t->net.inv_freq = carve_take(c, tables_bytes(&t->net.c));
}

static void carve_activations(const struct teacher *t, int batches, struct carve *c,
                              struct acts *out)
{
    const struct teacher_sizes *s = &t->sizes;
    acts_carve(&t->net, batches * s->batch_size, s->seq_len, ACTS_INFER, c, out);
}

static void carve_acts(struct teacher *t, struct carve *c, size_t end)
{
    (void)end;
    carve_activations(t, 1, c, &live_of(t)->acts);
}

/* Return how many micro-batches of a rank, all passes alike, a pass can run over in [from.used, end). */
static int batches_within(const struct teacher *t, struct carve from, size_t end)
{
    const struct teacher_sizes *s = &t->sizes;
    const int rows = s->batch_size * s->seq_len;
    int batches = rows < PASS_ROWS ? PASS_ROWS / rows : 1;
    batches = batches < s->micro ? batches : s->micro;
    for (; batches > 1; batches--) {
        if (s->micro % batches != 0)
            continue;
        struct carve_cells tried;
        struct carve c = from;
        struct acts unused;
        if (from.cells) {
            tried = *from.cells;
            c.cells = &tried;
        }
        carve_activations(t, batches, &c, &unused);
        if (c.used <= end)
            return batches;
    }
    return 1;
}

/* Carve a pass over as many micro-batches as there is memory for anyway. */
static void carve_pass(struct teacher *t, struct carve *c, size_t end)
{
    t->schedule.batches = batches_within(t, *c, end);
    carve_activations(t, t->schedule.batches, c, &live_of(t)->pass);
}

static bool passes_several(const struct teacher *t)
{
    return t->schedule.batches > 1;
}

static void carve_pass_rows(struct teacher *t, struct carve *c, size_t end)
{
    struct live *l = live_of(t);
    const size_t rows = size_product((size_t)t->schedule.batches, (size_t)t->sizes.batch_size,
                                     (size_t)t->sizes.seq_len);
    (void)end;
    l->pass.y =
        carve_take(c, size_product(rows, (size_t)t->net.c.hidden_size, dtype_bytes(t->net.T)));
    rows_carve((int)rows, 0, USE_FORWARD, c, &l->rows);
}

static void carve_hidden(struct teacher *t, struct carve *c, size_t end)
{
    struct live *l = live_of(t);
    const struct net *n = &t->net;
    const int C = n->c.hidden_size;
    (void)end;
    l->hidden = carve_take(c, size_product((size_t)t->sizes.padded, (size_t)C, dtype_bytes(n->T)));
    if (n->head->format->e4m3)
        l->x = fp8_rows(n->f8_scales, t->sizes.chunk, C, c);
}

static void carve_logits(struct teacher *t, struct carve *c, size_t end)
{
    const struct teacher_sizes *s = &t->sizes;
    (void)end;
    live_of(t)->logits =
        carve_take(c, size_product((size_t)s->chunk, (size_t)s->ld, dtype_bytes(t->net.T)));
}

/* A pass ahead runs beside the transfer of weights that ranks have updated. */
static void connect(struct teacher *t, nj_comm *comm)
{
    struct live *l = live_of(t);
    const bool several = t->schedule.batches > 1;
    net_connect(&t->net, t->weights, NULL);
    quant_connect(&t->net, l->expanded);
    teacher_shard_connect(&t->net, comm);
    t->schedule.runs_ahead = several || t->sizes.processes;
    t->schedule.runs_eagerly = teacher_shard_collective(&t->net);
    t->schedule.runs_empty = several || t->schedule.runs_eagerly;
}

/* ---- a pass ---- */

/* Send the rows of one of several micro-batches; those of one are on the device already. */
static void send(struct work *r, struct teacher *t, const struct rows *staged, int at, int count)
{
    const size_t rows = (size_t)t->sizes.batch_size * (size_t)t->sizes.seq_len;
    const size_t first = (size_t)at * rows;
    const struct rows *to = &live_of(t)->rows, from = rows_of_teacher(staged);
    if (count == 1)
        return;
#define READ(name) OP(r, nj_copy(r->s, to->name + first, from.name, rows * sizeof *to->name));
#include "batch/batch.def"
}

static void forward(struct work *r, struct teacher *t, const struct rows *rows, int count)
{
    struct live *l = live_of(t);
    const struct rows own = rows_of_teacher(rows);
    if (count > 1)
        net_forward(r, &t->net, &l->pass, &l->rows);
    else
        net_forward(r, &t->net, &l->acts, &own);
}

static void take(struct work *r, struct teacher *t, int at)
{
    const struct live *l = live_of(t);
    const size_t bytes =
        (size_t)acts_rows(&l->acts) * (size_t)t->net.c.hidden_size * dtype_bytes(t->net.T);
    if (t->schedule.batches > 1)
        OP(r, nj_copy(r->s, l->acts.y, l->pass.y + (size_t)at * bytes, bytes));
}

static void keep(struct work *r, struct teacher *t, const struct rows *rows)
{
    const struct live *l = live_of(t);
    OP(r, nj_row_gather(r->s, t->net.T,
                        &(struct nj_row_gather){.dst = l->hidden,
                                                .src = l->acts.y,
                                                .index = rows_of_teacher(rows).valid,
                                                .M = t->sizes.padded,
                                                .R = acts_rows(&l->acts),
                                                .C = t->net.c.hidden_size,
                                                .scale = 1}));
}

static void *logits(struct work *r, struct teacher *t, int first)
{
    const struct live *l = live_of(t);
    const struct net *n = &t->net;
    const struct teacher_sizes *s = &t->sizes;
    const char *x = l->hidden + (size_t)first * (size_t)n->c.hidden_size * dtype_bytes(n->T);
    net_logits(r, n, &l->x, x, s->chunk, s->vocab, s->ld, l->logits);
    return l->logits;
}

static void attend(struct work *r, struct teacher *t)
{
    teacher_shard_attend(r, &t->net);
}

static const struct teacher_ops live_ops = {
    .buffer = {[TEACHER_WEIGHTS] = {carve_weights},
               [TEACHER_LAYERS] = {carve_layers, gathers_layers},
               [TEACHER_EXPANDED] = {carve_expanded, expands},
               [TEACHER_CONSTANTS] = {carve_constants},
               [TEACHER_ACTIVATIONS] = {carve_acts},
               [TEACHER_PASS] = {carve_pass},
               [TEACHER_PASS_ROWS] = {carve_pass_rows, passes_several},
               [TEACHER_HIDDEN] = {carve_hidden},
               [TEACHER_CHUNK] = {carve_logits}},
    .choose = choose,
    .connect = connect,
    .send = send,
    .forward = forward,
    .take = take,
    .keep = keep,
    .logits = logits,
    .attend = attend,
    .close = close_live,
};

int live_open(struct teacher *t, const struct live_setup *s)
{
    struct live *l = calloc(1, sizeof *l);
    if (!l)
        return fail(NJ_E_NOMEM, "no host memory for a teacher; free some");
    l->f8 = s->f8;
    *t = (struct teacher){
        .ops = &live_ops,
        .state = l,
        .form = TEACHER_LOGITS,
        .net = {
            .c = *s->config, .T = s->T, .f8_scales = s->f8_scales, .fp8_refused = s->fp8_refused}};
    return place(&t->net, s);
}
