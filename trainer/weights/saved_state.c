/* SPDX-License-Identifier: Apache-2.0
 *
 * saved_state.c: state.bin, what a run needs to go on bit for bit: a header, then weights as they are
 * updated (master weights where there are some) and both moments, as they lie in the arenas. Every part
 * carries its XXH3-64; nothing is believed unchecked.
 */
#include "io/error.h"
#include "io/path.h"
#include "io/regular.h"
#include "state/ranks.h"
#include "weights/model_files.h"
#include "weights/weights.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STATE_VERSION = 1, SECTIONS = 3 };
static const char state_magic[8] = "NJSTATE";
static const char *const section_name[SECTIONS] = {"weights", "first moments", "second moments"};

/* Little-endian, no padding: every field lies at a multiple of its size. */
struct state_header {
    char magic[8];
    uint32_t version;
    uint16_t dtype;  /* enum nj_dtype of the run */
    uint16_t kept;   /* 0: all in float32; else moments in bfloat16, weights as kept_code() says */
    uint64_t layout; /* XXH3 of tensor names and places */
    int64_t elements;
    int64_t step;
    uint64_t epoch, window;
    float state[NJ_STEP_SLOTS];
    uint64_t section_hash[SECTIONS];
    uint64_t header_hash; /* of all before it */
};

struct state_file {
    FILE *f;
    char path[PATH_BYTES];
};

/* Adapters belong to one model and are scaled in one way. */
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
        XXH3_64bits_update(&h, p->spec[i].name, strlen(p->spec[i].name) + 1);
        XXH3_64bits_update(&h, p->spec[i].shape, sizeof p->spec[i].shape);
        XXH3_64bits_update(&h, &p->first[i], sizeof p->first[i]);
    }
    return XXH3_64bits_digest(&h);
}

static uint64_t header_hash(const struct state_header *h)
{
    return XXH3_64bits(h, offsetof(struct state_header, header_hash));
}

static uint16_t kept_code(const struct engine *e)
{
    return e->o.optimizer_state == STATE_F32 ? 0 : (uint16_t)(1 + weights_dtype(e));
}

/* held: what this rank has of it, where ranks are processes and have a shard each; then `at` is where it is whole while
 * it moves. NULL: it is whole where it is. */
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
    const bool apart = e->shape.rank != RANKS_HERE;
    const struct section sections[SECTIONS] = {
        {u.w, dtype_bytes(u.T), engine_gathers(e) ? m->master : NULL},
        {apart ? (char *)m->grad : m->m, moment, apart ? m->m : NULL},
        {apart ? (char *)m->grad : m->v, moment, apart ? m->v : NULL}};
    return sections[i];
}

/* Of all ranks: makes a section whole before it is written, and, once it was read, keeps what is this rank's. */
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

static int open_state(struct state_file *s, const char *dir, bool writing)
{
    if (snprintf(s->path, sizeof s->path, "%s/state.bin", dir) >= (int)sizeof s->path)
        return fail(NJ_E_ARG, "%s: path too long; use a shorter one", dir);
    if (!writing)
        return regular_open(s->path, 0, "take another checkpoint", &s->f);
    s->f = fopen(s->path, "wb");
    if (!s->f)
        return fail(NJ_E_IO, "%s: %s", s->path, strerror(errno));
    return 0;
}

static int io_failed(const struct state_file *s, const char *doing)
{
    if (feof(s->f))
        return fail(NJ_E_FORMAT, "%s: ends too early; take another checkpoint", s->path);
    const bool full = errno == ENOSPC || errno == EDQUOT;
    return fail(NJ_E_IO, "%s: %s failed: %s%s", s->path, doing, strerror(errno),
                full ? "; free space, then continue with --resume auto" : "");
}

/* Moves one array between device and file in pieces, and hashes it. */
static int move_section(struct engine *e, struct state_file *s, int i, bool writing, uint64_t *hash)
{
    const struct section of = section(e, i);
    const size_t room = e->mem.transfer_bytes;
    const size_t bytes = (size_t)engine_trained(e)->count * of.element;
    char *piece = e->mem.transfer;
    XXH3_state_t h;
    XXH3_64bits_reset(&h);
    for (size_t at = 0; at < bytes; at += room) {
        size_t n = bytes - at < room ? bytes - at : room;
        int rc = 0;
        if (!writing && fread(piece, 1, n, s->f) != n)
            return io_failed(s, "reading");
        rc = writing ? nj_copy(e->stream, piece, of.at + at, n)
                     : nj_copy(e->stream, of.at + at, piece, n);
        if (rc == 0)
            rc = nj_stream_sync(e->stream);
        if (rc != 0)
            return engine_fail(e, rc, "copying the training state");
        XXH3_64bits_update(&h, piece, n);
        if (writing && fwrite(piece, 1, n, s->f) != n)
            return io_failed(s, "writing");
    }
    *hash = XXH3_64bits_digest(&h);
    return 0;
}

/* The header is written last: a file cut short has none. */
static int write_state(struct engine *e, struct state_file *s, struct state_header *h)
{
    if (fseek(s->f, sizeof *h, SEEK_SET) != 0)
        return io_failed(s, "seeking");
    for (int i = 0; i < SECTIONS; i++) {
        int rc = collect_section(e, i);
        if (rc == 0)
            rc = move_section(e, s, i, true, &h->section_hash[i]);
        if (rc == 0)
            rc = release_section(e, i);
        if (rc != 0)
            return rc;
    }
    h->header_hash = header_hash(h);
    if (fseek(s->f, 0, SEEK_SET) != 0 || fwrite(h, sizeof *h, 1, s->f) != 1 || fflush(s->f) != 0 ||
        fsync(fileno(s->f)) != 0)
        return io_failed(s, "writing");
    return 0;
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
    struct state_header h = {
        .version = STATE_VERSION,
        .dtype = (uint16_t)e->o.dtype,
        .kept = kept_code(e),
        .layout = layout_hash(e),
        .elements = engine_trained(e)->count,
        .step = step,
        .epoch = data->epoch,
        .window = data->window,
    };
    memcpy(h.magic, state_magic, sizeof h.magic);
    int rc = need_training(e, "saving a state");
    if (rc == 0)
        rc = open_state(&s, dir, true);
    if (rc != 0)
        return rc;
    rc = engine_read_back(e);
    if (rc != 0)
        rc = engine_fail(e, rc, "reading the step state");
    memcpy(h.state, e->mem.pinned->state, sizeof h.state);
    if (rc == 0)
        rc = write_state(e, &s, &h);
    if (fclose(s.f) != 0 && rc == 0)
        rc = fail(NJ_E_IO, "%s: closing failed: %s", s.path, strerror(errno));
    return rc == 0 ? save_choices(e, dir) : rc;
}

int engine_collect_state(struct engine *e)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < SECTIONS; i++) {
        rc = collect_section(e, i);
        if (rc == 0)
            rc = release_section(e, i);
    }
    return rc;
}

static int check_header(const struct engine *e, const char *path, const struct state_header *h)
{
    const bool ours = memcmp(h->magic, state_magic, sizeof h->magic) == 0;
    /* Before the hash, which another version may keep elsewhere. */
    if (ours && h->version != STATE_VERSION)
        return fail(
            NJ_E_UNSUPPORTED,
            "%s: format version %u, and this program reads version %d; continue with the nojit "
            "that wrote it; if that is this one, the file is damaged",
            path, h->version, STATE_VERSION);
    if (!ours || h->header_hash != header_hash(h))
        return fail(NJ_E_FORMAT, "%s: not a whole training state; take another checkpoint", path);
    if (h->layout != layout_hash(e) || h->elements != engine_trained(e)->count)
        return fail(NJ_E_ARG,
                    "%s: belongs to another model than %s, or to adapters of another form", path,
                    e->student_dir);
    if (h->dtype != (uint16_t)e->o.dtype)
        return fail(NJ_E_ARG, "%s: was saved by a run in %s; resume with the same dtype", path,
                    h->dtype == NJ_F32 ? "float32" : "16 bits");
    const uint16_t kept = kept_code(e);
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

/* What no run writes, whatever its hash says: the schedule and the update divide by these. */
static int check_counts(const char *path, const struct state_header *h)
{
    const float updates = h->state[NJ_STEP_UPDATES], scale = h->state[NJ_STEP_LOSS_SCALE];
    if (h->step >= 0 && updates >= 0 && isfinite(updates) && scale >= 1 && isfinite(scale))
        return 0;
    return fail(NJ_E_FORMAT,
                "%s: step %lld, %g updates, loss scale %g: no run writes that; take another "
                "checkpoint",
                path, (long long)h->step, (double)updates, (double)scale);
}

static int read_header(const struct engine *e, struct state_file *s, struct state_header *h)
{
    if (fread(h, sizeof *h, 1, s->f) != 1)
        return io_failed(s, "reading");
    const int rc = check_header(e, s->path, h);
    return rc ? rc : check_counts(s->path, h);
}

static int read_section(struct engine *e, struct state_file *s, const struct state_header *h, int i)
{
    uint64_t hash = 0;
    const int rc = move_section(e, s, i, false, &hash);
    if (rc == 0 && hash != h->section_hash[i])
        return fail(NJ_E_FORMAT, "%s: the %s are damaged; take another checkpoint", s->path,
                    section_name[i]);
    return rc;
}

static int send_section(struct engine *e, int i)
{
    const struct section of = section(e, i);
    struct work w = engine_work(e);
    ranks_send(&w, e, of.at, (size_t)engine_trained(e)->count * of.element);
    return w.rc == 0 ? 0 : engine_fail(e, w.rc, "sending the training state to all ranks");
}

/* s: NULL where another rank reads. */
static int read_state(struct engine *e, struct state_file *s, struct state_header *h)
{
    int rc = s ? read_header(e, s, h) : 0;
    if (rc == 0)
        rc = ranks_tell(e, h, sizeof *h);
    for (int i = 0; rc == 0 && i < SECTIONS; i++) {
        rc = s ? read_section(e, s, h, i) : 0;
        if (rc == 0)
            rc = send_section(e, i);
        if (rc == 0)
            rc = keep_section(e, i);
    }
    if (rc == 0 && s && fgetc(s->f) != EOF)
        rc = fail(NJ_E_FORMAT, "%s: longer than its header says; take another checkpoint", s->path);
    return rc;
}

static int apply_state(struct engine *e, const struct state_header *h)
{
    struct work w = engine_work(e);
    memcpy(e->mem.pinned->state, h->state, sizeof h->state);
    OP(&w, nj_copy(w.s, e->mem.state, e->mem.pinned->state, sizeof h->state));
    OP(&w, nj_stream_sync(w.s));
    return w.rc == 0 ? 0 : engine_fail(e, w.rc, "restoring the training state");
}

/* After a failure the engine holds a part of the state and must be destroyed. */
int engine_load_state(struct engine *e, const char *dir, int64_t *step, struct data_state *data)
{
    const bool reads = engine_reads(e);
    struct state_file s;
    struct state_header h = {0};
    int rc = need_training(e, "resuming");
    if (rc == 0 && reads)
        rc = open_state(&s, dir, false);
    if (rc != 0)
        return rc;
    rc = read_state(e, reads ? &s : NULL, &h);
    if (reads)
        fclose(s.f);
    if (rc == 0)
        rc = apply_state(e, &h);
    if (rc != 0)
        return rc;
    e->step = *step = h.step;
    *data = (struct data_state){.epoch = h.epoch, .window = h.window};
    return 0;
}
