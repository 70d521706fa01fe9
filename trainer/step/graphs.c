/* SPDX-License-Identifier: Apache-2.0
 *
 * graphs.c: see graphs.h.
 */
#include "step/graphs.h"

#include "base/check.h"
#include "base/try.h"
#include "io/error.h"
#include "step/micro_step.h"
#include "step/update.h"

#include <stdlib.h>

/* ---- how many graphs there are of a kind ---- */

static int one(const struct engine *e)
{
    (void)e;
    return 1;
}

static int chunk_counts(const struct engine *e)
{
    return e->shape.chunks + 1;
}

static int layer_groups(const struct engine *e)
{
    return e->shape.pieces.groups;
}

static int backward_parts(const struct engine *e)
{
    return e->shape.pieces.groups + 1;
}

/* ---- whether no graph can hold it ---- */

static bool never(const struct engine *e)
{
    (void)e;
    return false;
}

static bool with_other_ranks(const struct engine *e)
{
    return e->shape.rank != RANKS_VIRTUAL;
}

static bool teacher_runs_eagerly(const struct engine *e)
{
    return e->teacher.schedule.runs_eagerly;
}

/* ---- what it enqueues ---- */

static void teacher_pass(struct work *r, struct engine *e, int index)
{
    (void)index;
    teacher_forward(r, &e->teacher, &e->mem.rows, teacher_batches(&e->teacher));
}

static void train_micro_step(struct work *r, struct engine *e, int chunks)
{
    micro_step(r, e, chunks, true);
}

static void clip(struct work *r, struct engine *e, int index)
{
    (void)index;
    update_clip(r, e);
}

static void update(struct work *r, struct engine *e, int index)
{
    (void)index;
    update_weights(r, e);
}

/* Kinds of graphs. Eager work is enqueued each time: a graph cannot hold a transfer between ranks. */
static const struct {
    void (*enqueue)(struct work *r, struct engine *e, int index);
    int (*count)(const struct engine *e);
    bool (*eager)(const struct engine *e);
} kinds[STEP_GRAPH_KINDS] = {
    [STEP_TEACHER] = {teacher_pass, one, teacher_runs_eagerly},
    [STEP_MICRO] = {train_micro_step, chunk_counts, never},
    [STEP_FORWARD] = {micro_forward_group, layer_groups, never},
    [STEP_HEAD] = {micro_head, chunk_counts, never},
    [STEP_BACKWARD] = {micro_backward_part, backward_parts, never},
    [STEP_CLIP] = {clip, one, with_other_ranks},
    [STEP_UPDATE] = {update, one, with_other_ranks},
};

/* Return how many graphs come before those of a kind: two for each index, the second of which adds. */
static int graphs_before(const struct engine *e, enum step_graph_kind kind)
{
    int count = 0;
    for (unsigned k = 0; k < kind; k++)
        count += 2 * kinds[k].count(e);
    return count;
}

static nj_graph **graph_of(const struct engine *e, struct step_graph g)
{
    CHECK(g.index >= 0 && g.index < kinds[g.kind].count(e)); /* else it is another kind's graph */
    return &e->step_graphs[graphs_before(e, g.kind) + 2 * g.index + g.add];
}

static void enqueue(struct work *r, struct engine *e, struct step_graph g)
{
    r->add = g.add;
    kinds[g.kind].enqueue(r, e, g.index);
}

static int capture(struct engine *e, struct step_graph g)
{
    int rc = nj_graph_begin(e->stream);
    if (rc == NJ_E_UNSUPPORTED)
        e->graphs = false;
    if (rc != 0)
        return rc == NJ_E_UNSUPPORTED ? 0 : rc;
    struct work r = {.ctx = e->ctx, .s = e->stream};
    enqueue(&r, e, g);
    rc = nj_graph_end(e->stream, graph_of(e, g));
    return r.rc != 0 ? r.rc : rc;
}

int step_graph_capture(struct engine *e, struct step_graph g)
{
    const bool may_capture = e->graphs && !*graph_of(e, g) && !kinds[g.kind].eager(e);
    return may_capture ? capture(e, g) : 0;
}

int step_graph_launch(struct engine *e, struct step_graph g)
{
    TRY(step_graph_capture(e, g));
    nj_graph *graph = *graph_of(e, g);
    if (graph)
        return nj_graph_launch(graph, e->stream);
    struct work r = {.ctx = e->ctx, .s = e->stream};
    enqueue(&r, e, g);
    return r.rc;
}

int step_graphs_open(struct engine *e)
{
    e->step_graphs = calloc((size_t)graphs_before(e, STEP_GRAPH_KINDS), sizeof *e->step_graphs);
    return e->step_graphs ? 0 : fail(NJ_E_NOMEM, "no host memory for graphs; free some");
}

void step_graphs_close(struct engine *e)
{
    for (int i = 0; e->step_graphs && i < graphs_before(e, STEP_GRAPH_KINDS); i++)
        nj_graph_destroy(e->step_graphs[i]);
    free(e->step_graphs);
}
