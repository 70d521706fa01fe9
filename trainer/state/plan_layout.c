/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_layout.c: see plan_layout.h. It places the buffers of buffers.c, in their order.
 */
#include "state/plan_layout.h"

#include "base/checked.h"
#include "state/buffers.h"

static const struct region_row {
    const char *name, *of_adapters; /* the second one if adapters are trained; NULL: the same */
    enum plan_place place;
    bool
        chunked; /* a larger batch may have smaller chunks of rows, or passes, and so fewer bytes */
    /* It begins a cell of the arena, so that as much as possible of it lies together. */
    bool new_cell;
} regions[PLAN_REGIONS] = {
    [REGION_STUDENT_WEIGHTS] = {"student.weights"},
    [REGION_STUDENT_EXPANDED] = {"student.expanded"},
    [REGION_ADAPTERS_WEIGHTS] = {"adapters.weights"},
    [REGION_MASTER] = {"student.master", "adapters.master"},
    [REGION_MOMENT1] = {"student.moment1", "adapters.moment1"},
    [REGION_MOMENT2] = {"student.moment2", "adapters.moment2"},
    [REGION_GRADIENTS] = {"student.gradients", "adapters.gradients"},
    [REGION_GRADIENTS_SUM] = {"student.gradients.sum", "adapters.gradients.sum"},
    [REGION_TEACHER_WEIGHTS] = {"teacher.weights"},
    [REGION_TEACHER_LAYERS] = {"teacher.layers"},
    [REGION_TEACHER_EXPANDED] = {"teacher.expanded"},
    [REGION_ACTIVATIONS] = {"activations", .new_cell = true},
    [REGION_GRADIENTS_RECEIVED] = {"student.gradients.received", "adapters.gradients.received"},
    [REGION_GRADIENTS_ROUNDED] = {"student.gradients.rounded", "adapters.gradients.rounded"},
    [REGION_GRADIENTS_OVERLAPPED] = {"student.gradients.early"},
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
    [REGION_HOST_TEACHER] = {"host.teacher", .place = PLAN_HOST},
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

/* Add a region to the plan. within: as in struct plan_region. A region that the plan has no room for makes it too
 * large. */
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

/* Return the bytes of the regions that only grow with the batch. Logits, losses and a teacher's pass may also shrink,
 * with the chunks of rows. */
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

static void carve_row(void *user, struct carve *c)
{
    struct layout *l = user;
    l->row->carve(l, c);
}

static const char *name_of(const struct layout *l, enum region which)
{
    return region_name(which, net_is_frozen(l->student));
}

/* Name the region that has the largest array, for users without memory for it. */
static void note_largest_array(struct layout *l, enum region which)
{
    const struct carve_cells *p = l->device.arena.cells;
    if (p == NULL || p->most <= l->plan->array_bytes)
        return;
    l->plan->array_bytes = p->most;
    l->plan->array_in = name_of(l, which);
}

/* Place the row within another region, which has bytes for it already. */
static bool lend(struct layout *l)
{
    const struct buffer *b = l->row;
    for (int i = 0; i < 2 && b->within[i] != REGION_NONE; i++) {
        const enum region host = b->within[i];
        if (placement_lend(&l->device, l->at[host].from, l->at[host].to, b->phases, carve_row, l)) {
            add(l->plan, b->region, name_of(l, b->region), name_of(l, host), 0);
            l->has[b->region] = true;
            return true;
        }
    }
    return false;
}

/* Place the buffers of a region, the rows from `row` to before `end`. */
static void add_region(struct layout *l, const struct buffer *row, const struct buffer *end)
{
    const enum region which = row->region;
    struct placement *p = regions[which].place == PLAN_HOST ? &l->host : &l->device;
    if (regions[which].new_cell)
        carve_new_cell(&p->arena);
    const size_t from = p->arena.used, before = carve_bytes(&p->arena);
    bool own = false;
    for (l->row = row; l->row < end; l->row++) {
        if (l->row->wanted && !l->row->wanted(l))
            continue;
        if (lend(l) || l->row->optional)
            continue;
        placement_add(p, from, l->row->phases, carve_row, l);
        if (l->row->narrow)
            l->row->narrow(l);
        own = l->has[which] = true;
    }
    if (!own)
        return;
    l->at[which].from = from;
    l->at[which].to = p->arena.used;
    add(l->plan, which, name_of(l, which), NULL, size_sub(carve_bytes(&p->arena), before));
    note_largest_array(l, which);
}

static struct teacher_sizes sizes_of(const struct shape *s, const struct train_options *o)
{
    return (struct teacher_sizes){.batch_size = o->batch_size,
                                  .seq_len = o->seq_len,
                                  .micro = s->micro,
                                  .chunk = s->chunk,
                                  .padded = s->padded,
                                  .vocab = s->vocab,
                                  .ld = s->ld,
                                  .processes = s->rank != RANKS_VIRTUAL};
}

void plan_layout(const struct net *student, struct teacher *teacher, const struct train_options *o,
                 struct carve device, char *host, struct memory *out, struct plan *plan)
{
    struct layout l = {.student = student,
                       .teacher = teacher,
                       .o = o,
                       .m = out,
                       .plan = plan,
                       .device = {.arena = device},
                       .host = {.arena = {.base = host}}};
    *out = (struct memory){0};
    if (device.cells) /* the plan has counted in these */
        carve_again(device.cells);
    plan_shape(student, teacher_model_config(teacher), o, &l.s);
    teacher->sizes = sizes_of(&l.s, o);
    for (int first = 0, end; first < buffers_count; first = end) {
        for (end = first + 1; end < buffers_count && buffers[end].region == buffers[first].region;)
            end++;
        add_region(&l, &buffers[first], &buffers[end]);
    }
    if (l.s.train && student->T == NJ_F32)
        out->master = (float *)(void *)out->trained;
    out->fp8_head.gradients = l.has[REGION_HEAD_FP8_GRADIENTS];
}
