/* SPDX-License-Identifier: Apache-2.0
 *
 * saved_state.c: moves the state that a run needs to continue bit for bit between the arenas and state.bin
 * (state_file.c): weights as they are updated (master weights if there are any) and both moments, as they lie in the
 * arenas, and the position.
 */
#include "base/try.h"
#include "io/error.h"
#include "state/ranks.h"
#include "weights/model_files.h"
#include "weights/state_file.h"
#include "weights/weights.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Return the hash of tensor names and places, and for adapters of the model and the scale that they belong to. */
static uint64_t layout_hash(const struct engine *e)
{
    const struct params *p = engine_trained(e);
    XXH3_state_t h;
    XXH3_64bits_reset(&h);
    if (e->student.lora) {
        XXH3_64bits_update(&h, &e->student_hash, sizeof e->student_hash);
        XXH3_64bits_update(&h, &e->lora.o.alpha, sizeof e->lora.o.alpha);
    }
    for (size_t i = 0; i < p->specs; i++) {
        const struct tensor_spec *spec = &p->spec[i];
        const int64_t sizes[] = {spec->shape[0], spec->rank > 1 ? spec->shape[1] : 1,
                                 spec->shape[2]};
        const size_t hashed = spec->rank > 2 ? 3 : 2; /* as in the states of older versions */
        XXH3_64bits_update(&h, spec->name, strlen(spec->name) + 1);
        XXH3_64bits_update(&h, sizes, hashed * sizeof *sizes);
        XXH3_64bits_update(&h, &p->first[i], sizeof p->first[i]);
    }
    return XXH3_64bits_digest(&h);
}

static uint32_t kept_code(const struct engine *e)
{
    return e->o.optimizer_state == STATE_F32 ? 0 : (uint32_t)(1 + weights_dtype(e));
}

/* An array of the state. held: this rank's part, if ranks are processes and have a shard each; `at` then holds the
 * whole while it moves. NULL: `at` always holds the whole. */
struct section {
    char *at;
    size_t element;
    void *held;
};

static struct section section(const struct engine *e, int i)
{
    const struct memory *m = &e->mem;
    const struct updated u = engine_updated(e);
    const size_t moment = optimizer_state_bytes((enum optimizer_state)e->o.optimizer_state);
    const bool apart = e->shape.rank != RANKS_VIRTUAL;
    const struct section sections[STATE_ARRAYS] = {
        {u.w, dtype_bytes(u.T), engine_gathers(e) ? m->master : NULL},
        {apart ? (char *)m->grad : m->m, moment, apart ? m->m : NULL},
        {apart ? (char *)m->grad : m->v, moment, apart ? m->v : NULL}};
    return sections[i];
}

/* Make a section whole before it is written, or keep this rank's part after it was read; all ranks take part. */
static int collect_section(struct engine *e, int i)
{
    const struct section of = section(e, i);
    struct work r = engine_work(e);
    ranks_collecting(e, true);
    if (of.held)
        ranks_collect(&r, e, of.held, of.element);
    OP(&r, nj_stream_sync(r.s));
    ranks_collecting(e, false);
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "collecting the training state");
}

static int release_section(struct engine *e, int i)
{
    struct work r = engine_work(e);
    if (section(e, i).held)
        ranks_release(&r, e);
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "collecting the training state");
}

static int keep_section(struct engine *e, int i)
{
    const struct section of = section(e, i);
    struct work r = engine_work(e);
    if (i == 0)
        OP(&r, weights_round(e));
    else if (of.held)
        ranks_keep(&r, e, of.held, of.element);
    OP(&r, nj_stream_sync(r.s));
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "restoring the training state");
}

static int need_training(const struct engine *e, const char *what)
{
    if (e->shape.train)
        return 0;
    return fail(NJ_E_ARG, "%s needs an engine that trains (steps above 0)", what);
}

static void array_bytes(const struct engine *e, uint64_t bytes[STATE_ARRAYS])
{
    for (int i = 0; i < STATE_ARRAYS; i++)
        bytes[i] = (uint64_t)engine_trained(e)->count * section(e, i).element;
}

/* Move one array between device and file in pieces, and hash it. */
static int move_section(struct engine *e, struct state_file *s, int i, bool writing, uint64_t *hash)
{
    const struct section of = section(e, i);
    const size_t room = e->mem.transfer_bytes;
    const size_t bytes = (size_t)engine_trained(e)->count * of.element;
    char *piece = e->mem.transfer;
    XXH3_state_t h;
    XXH3_64bits_reset(&h);
    TRY(state_file_seek(s, i));
    for (size_t at = 0; at < bytes; at += room) {
        const size_t n = bytes - at < room ? bytes - at : room;
        if (!writing)
            TRY(state_file_read(s, piece, n));
        int rc = writing ? nj_copy(e->stream, piece, of.at + at, n)
                         : nj_copy(e->stream, of.at + at, piece, n);
        if (rc == 0)
            rc = nj_stream_sync(e->stream);
        if (rc != 0)
            return engine_fail(e, rc, "copying the training state");
        XXH3_64bits_update(&h, piece, n);
        if (writing)
            TRY(state_file_write(s, piece, n));
    }
    *hash = XXH3_64bits_digest(&h);
    return 0;
}

static int write_state(struct engine *e, struct state_file *s)
{
    for (int i = 0; i < STATE_ARRAYS; i++) {
        TRY(collect_section(e, i));
        TRY(move_section(e, s, i, true, &s->array[i].hash));
        TRY(release_section(e, i));
    }
    return state_file_finish(s);
}

static int save_choices(struct engine *e, const char *dir)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/" ENGINE_GEMM_TABLE, dir);
    const int rc = nj_gemm_table_write(e->ctx, path);
    return rc == 0 ? 0 : engine_fail(e, rc, "saving the GEMM algorithms");
}

int engine_save_state(struct engine *e, const char *dir, int64_t step,
                      const struct data_state *data)
{
    struct state_file s;
    uint64_t bytes[STATE_ARRAYS];
    TRY(need_training(e, "saving a state"));
    array_bytes(e, bytes);
    TRY(state_file_create(&s, dir, bytes));
    int rc = engine_read_back(e);
    if (rc != 0)
        rc = engine_fail(e, rc, "reading the step state");
    s.fields = (struct state_fields){.step = step,
                                     .dtype = (uint32_t)e->o.dtype,
                                     .kept = kept_code(e),
                                     .layout = layout_hash(e),
                                     .elements = engine_trained(e)->count,
                                     .epoch = data->epoch,
                                     .window = data->window};
    memcpy(s.fields.slots, e->mem.pinned->state, sizeof s.fields.slots);
    if (rc == 0)
        rc = write_state(e, &s);
    TRY(state_file_close(&s, rc));
    return save_choices(e, dir);
}

int engine_collect_state(struct engine *e)
{
    for (int i = 0; i < STATE_ARRAYS; i++) {
        TRY(collect_section(e, i));
        TRY(release_section(e, i));
    }
    return 0;
}

/* Refuse the state of another run. */
static int check_run(const struct engine *e, const struct state_file *s)
{
    const struct state_fields *h = &s->fields;
    const char *path = s->path;
    if (h->layout != layout_hash(e) || h->elements != engine_trained(e)->count)
        return fail(NJ_E_ARG,
                    "%s: belongs to another model than %s, or to adapters of another form", path,
                    e->student_dir);
    if (h->dtype != (uint32_t)e->o.dtype)
        return fail(NJ_E_ARG, "%s: was saved by a run in %s; resume with the same dtype", path,
                    h->dtype == NJ_F32 ? "float32" : "16 bits");
    const uint32_t kept = kept_code(e);
    if ((h->kept == 0) != (kept == 0))
        return fail(NJ_E_ARG, "%s: was saved with --optimizer-state %s; resume with the same", path,
                    h->kept == 0 ? "f32" : "bf16");
    if (h->kept != kept)
        return fail(NJ_E_ARG,
                    "%s: holds weights in another 16-bit type than this device's; resume on a "
                    "device of the same kind",
                    path);
    return 0;
}

/* Refuse counts that no run writes, whatever their hash: the schedule and the update divide by them. */
static int check_counts(const struct state_file *s)
{
    const struct state_fields *h = &s->fields;
    const float updates = h->slots[NJ_STEP_UPDATES], scale = h->slots[NJ_STEP_LOSS_SCALE];
    if (h->step >= 0 && updates >= 0 && isfinite(updates) && scale >= 1 && isfinite(scale))
        return 0;
    return fail(NJ_E_FORMAT,
                "%s: step %lld, %g updates, loss scale %g: no run writes that; take another "
                "checkpoint",
                s->path, (long long)h->step, (double)updates, (double)scale);
}

static int check_state(const struct engine *e, struct state_file *s)
{
    uint64_t bytes[STATE_ARRAYS];
    TRY(check_run(e, s));
    TRY(check_counts(s));
    array_bytes(e, bytes);
    return state_file_expect(s, bytes);
}

static int read_section(struct engine *e, struct state_file *s, int i)
{
    uint64_t hash = 0;
    TRY(move_section(e, s, i, false, &hash));
    return state_file_check(s, i, hash);
}

static int send_section(struct engine *e, int i)
{
    const struct section of = section(e, i);
    struct work w = engine_work(e);
    ranks_send(&w, e, of.at, (size_t)engine_trained(e)->count * of.element);
    return w.rc == 0 ? 0 : engine_fail(e, w.rc, "sending the training state to all ranks");
}

/* Read the state on the rank that opened the file, and send it to all; s: NULL on the others. */
static int read_state(struct engine *e, struct state_file *s, struct state_fields *h)
{
    if (s) {
        TRY(check_state(e, s));
        *h = s->fields;
    }
    TRY(ranks_tell(e, h, sizeof *h));
    for (int i = 0; i < STATE_ARRAYS; i++) {
        if (s)
            TRY(read_section(e, s, i));
        TRY(send_section(e, i));
        TRY(keep_section(e, i));
    }
    return 0;
}

static int apply_state(struct engine *e, const struct state_fields *h)
{
    struct work w = engine_work(e);
    memcpy(e->mem.pinned->state, h->slots, sizeof h->slots);
    OP(&w, nj_copy(w.s, e->mem.state, e->mem.pinned->state, sizeof h->slots));
    OP(&w, nj_stream_sync(w.s));
    return w.rc == 0 ? 0 : engine_fail(e, w.rc, "restoring the training state");
}

static int read_file(struct engine *e, const char *dir, struct state_fields *h)
{
    struct state_file s;
    if (!engine_reads(e))
        return read_state(e, NULL, h);
    TRY(state_file_open(&s, dir));
    const int rc = read_state(e, &s, h);
    fclose(s.f);
    return rc;
}

/* After a failure the engine holds a part of the state and must be destroyed. */
int engine_load_state(struct engine *e, const char *dir, int64_t *step, struct data_state *data)
{
    struct state_fields h = {0};
    TRY(need_training(e, "resuming"));
    TRY(read_file(e, dir, &h));
    TRY(apply_state(e, &h));
    e->step = *step = h.step;
    *data = (struct data_state){.epoch = h.epoch, .window = h.window};
    return 0;
}
