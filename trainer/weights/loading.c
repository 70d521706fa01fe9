/* SPDX-License-Identifier: Apache-2.0
 *
 * loading.c: see loading.h. A job is the chunk of a tensor that is hashed by itself, and the units that begin in it.
 * Jobs are taken in order, and each job taken is finished, so the first failure does not depend on threads.
 */
#include "weights/loading.h"

#include "base/try.h"

#include <omp.h>
#include <string.h>

/* Slot size from which copies run at about the rate of the bus. */
enum { SLOT_BYTES = 1 << 20 };

struct job {
    struct loading *l;
    struct load_lane *lane;
    struct load_item item;
    size_t part, parts;
    bool hashing;
    int64_t number;
    int64_t from, end; /* units */
    int64_t at;        /* units before this one have been staged */
    int64_t held;      /* number of units in the slot, the last ones before `at` */
    int64_t room;      /* number of units that a slot takes */
    int rc;
};

void loading_convert(const struct engine *e, const struct tensor *t, int64_t first, int64_t count,
                     enum nj_dtype T, char *to)
{
    if (T == NJ_F32)
        tensor_to_f32(t, first, count, (float *)(void *)to);
    else
        tensor_to_16(t, first, count, nj_context_device(e->ctx)->lp_is_f16, (uint16_t *)(void *)to);
}

bool loading_finite(const struct engine *e, const char *data, int64_t count, enum nj_dtype T)
{
    const uint32_t wide = 0x7f800000,
                   narrow = nj_context_device(e->ctx)->lp_is_f16 ? 0x7c00 : 0x7f80;
    uint32_t bad = 0; /* set by an exponent of ones */
#pragma omp simd reduction(| : bad)
    for (int64_t i = 0; i < (T == NJ_F32 ? count : 0); i++) {
        uint32_t x;
        memcpy(&x, data + 4 * i, sizeof x);
        bad |= (x & wide) == wide;
    }
#pragma omp simd reduction(| : bad)
    for (int64_t i = 0; i < (T == NJ_F32 ? 0 : count); i++) {
        uint16_t y;
        memcpy(&y, data + 2 * i, sizeof y);
        bad |= (y & narrow) == narrow;
    }
    return bad == 0;
}

/* ---- jobs; one thread at a time ---- */

/* Return the first unit of a part: the first that begins in it, or its share if a file has the tensor in several
 * places. */
static int64_t first_unit(const struct load_item *i, size_t part, size_t parts)
{
    const struct tensor *t = i->tensor;
    if (i->units == 0 || part == parts)
        return i->units;
    if (t->packed)
        return i->units * (int64_t)part / (int64_t)parts;
    const size_t each = t->bytes / (size_t)i->units;
    return (int64_t)((part * TENSOR_CHUNK_BYTES + each - 1) / each);
}

static bool next_item(struct loading *l)
{
    if (!l->next(l->user, &l->item))
        return false;
    const size_t chunks = tensor_chunks(l->item.tensor);
    l->part = 0;
    l->parts = chunks > 0 ? chunks : 1;
    bool *begun = l->hashes.w ? &l->hashes.begun[l->item.tensor - l->hashes.w->tensor] : NULL;
    l->hashing = begun && !*begun;
    if (begun)
        *begun = true;
    return true;
}

static size_t room_of(const struct loading *l, const struct load_item *i)
{
    const size_t staging = l->e->mem.staging_bytes;
    if (!i->way)
        return 0;
    return (i->way->through && staging < l->slot_bytes ? staging : l->slot_bytes) / i->unit_bytes;
}

static bool take(struct loading *l, struct job *j)
{
    if (l->failure.rc != 0 || (l->part == l->parts && !next_item(l)))
        return false;
    *j = (struct job){
        .l = l,
        .lane = j->lane,
        .item = l->item,
        .part = l->part,
        .parts = l->parts,
        .hashing = l->hashing,
        .number = l->number++,
        .from = first_unit(&l->item, l->part, l->parts),
        .end = first_unit(&l->item, l->part + 1, l->parts),
        .room = (int64_t)room_of(l, &l->item),
    };
    j->at = j->from;
    l->part++;
    return true;
}

static void give_up(struct job *j, int rc, bool refused)
{
    struct load_failure *f = &j->l->failure;
    j->rc = rc;
    if (f->rc == 0 || (refused && f->refused && j->number < f->number))
        *f = (struct load_failure){rc, j->number, refused, j->item};
}

/* Return the share of a tensor's bytes in the parts before this one. */
static size_t share(const struct tensor *t, size_t part, size_t parts)
{
    return t->bytes / parts * part + t->bytes % parts * part / parts;
}

static void done(struct job *j)
{
    struct engine *e = j->l->e;
    const struct tensor *t = j->item.tensor;
    if (!j->hashing || j->l->failure.rc != 0)
        return;
    e->load_seen += (double)(share(t, j->part + 1, j->parts) - share(t, j->part, j->parts));
    if (e->o.loaded)
        e->o.loaded(e->o.loaded_user, e->load_seen, e->load_bytes);
}

/* Wait until the contents of the slot are on the device. */
static void wait_for(struct job *j, struct load_slot *s)
{
    const int rc = s->used && j->l->failure.rc == 0 ? nj_event_sync(s->copied) : 0;
    if (rc != 0)
        give_up(j, rc, false);
}

static void send(struct job *j, struct load_slot *s)
{
    struct engine *e = j->l->e;
    struct work w = engine_work(e);
    if (j->l->failure.rc != 0)
        return;
    j->item.way->send(&w, e, &j->item, j->at - j->held, j->held, s->data);
    OP(&w, nj_event_record(s->copied, w.s));
    s->used = true;
    if (w.rc != 0)
        give_up(j, w.rc, false);
}

/* ---- in several threads ---- */

static void send_slot(struct job *j)
{
    struct load_lane *lane = j->lane;
    pthread_mutex_lock(&j->l->mutex);
    send(j, &lane->slot[lane->next]);
    pthread_mutex_unlock(&j->l->mutex);
    lane->next = (lane->next + 1) % LANE_SLOTS;
    j->held = 0;
}

static void stage(struct job *j, int64_t count)
{
    const struct load_item *i = &j->item;
    struct load_slot *s = &j->lane->slot[j->lane->next];
    if (j->held == 0) {
        pthread_mutex_lock(&j->l->mutex);
        wait_for(j, s);
        pthread_mutex_unlock(&j->l->mutex);
    }
    const int rc = j->rc != 0 ? 0
                              : i->way->fill(j->l->e, i, j->at, count,
                                             s->data + (size_t)j->held * i->unit_bytes);
    if (rc != 0) {
        pthread_mutex_lock(&j->l->mutex);
        give_up(j, rc, true);
        pthread_mutex_unlock(&j->l->mutex);
    }
    j->at += count;
    j->held += count;
}

static void stage_until(struct job *j, int64_t end)
{
    while (j->rc == 0 && j->at < end) {
        const int64_t rest = j->room - j->held;
        stage(j, end - j->at < rest ? end - j->at : rest);
        if (j->rc == 0 && j->held == j->room)
            send_slot(j);
    }
}

/* Stage the units that were just hashed, while they are in the cache. */
static void passed(void *user, size_t bytes, size_t of)
{
    struct job *j = user;
    const int64_t units = j->end - j->from;
    stage_until(j, j->from + (int64_t)((double)units * (double)bytes / (double)of));
}

static void work(struct job *j)
{
    const struct loading *l = j->l;
    const struct tensor *t = j->item.tensor;
    if (j->hashing && tensor_chunks(t) > 0)
        tensor_hashes_chunk(&l->hashes, (size_t)(t - l->hashes.w->tensor), j->part, passed, j);
    stage_until(j, j->end);
    if (j->rc == 0 && j->held > 0)
        send_slot(j);
}

static void work_all(struct loading *l)
{
    struct job j = {.lane = &l->lane[omp_get_thread_num()]};
    pthread_mutex_lock(&l->mutex);
    while (take(l, &j)) {
        pthread_mutex_unlock(&l->mutex);
        work(&j);
        pthread_mutex_lock(&l->mutex);
        done(&j);
    }
    pthread_mutex_unlock(&l->mutex);
}

/* ---- all of it ---- */

static int create_slots(struct loading *l)
{
    char *at = l->e->mem.transfer;
    int rc = 0;
    for (int i = 0; i < l->lanes * LANE_SLOTS && rc == 0; i++) {
        struct load_slot *s = &l->lane[i / LANE_SLOTS].slot[i % LANE_SLOTS];
        s->data = at + (size_t)i * l->slot_bytes;
        rc = nj_event_create(l->e->ctx, &s->copied);
    }
    return rc == 0 ? 0 : engine_fail(l->e, rc, LOADING_WEIGHTS);
}

/* Set the number of lanes to that of threads, and make slots that hold a row. */
static void lay_out(struct loading *l, int64_t columns)
{
    const size_t row = (size_t)columns * sizeof(float), all = l->e->mem.transfer_bytes / LANE_SLOTS;
    const size_t threads = (size_t)omp_get_max_threads();
    l->slot_bytes =
        row > SLOT_BYTES ? (row + SLOT_BYTES - 1) / SLOT_BYTES * SLOT_BYTES : SLOT_BYTES;
    if (l->slot_bytes > all)
        l->slot_bytes = all;
    const size_t room = all / l->slot_bytes, most = room < LANES_MOST ? room : LANES_MOST;
    l->lanes = (int)(threads < most ? threads : most);
}

int loading_begin(struct loading *l, struct engine *e, const char *path, const struct tensors *w,
                  int64_t columns)
{
    *l = (struct loading){.e = e, .path = path};
    pthread_mutex_init(&l->mutex, NULL);
    lay_out(l, columns);
    if (w)
        TRY(tensor_hashes_begin(w, &l->hashes));
    return create_slots(l);
}

int loading_run(struct loading *l, bool (*next)(void *user, struct load_item *out), void *user)
{
    pthread_mutex_lock(&l->mutex);
    l->next = next;
    l->user = user;
    l->part = l->parts = 0;
    pthread_mutex_unlock(&l->mutex);
#pragma omp parallel num_threads(l->lanes)
    work_all(l);
    pthread_mutex_lock(&l->mutex);
    const struct load_failure failure = l->failure, *f = &failure;
    pthread_mutex_unlock(&l->mutex);
    if (f->rc == 0)
        return 0;
    return f->refused ? f->item.way->refuse(l->e, l->path, &f->item, f->rc)
                      : engine_fail(l->e, f->rc, f->item.way->doing);
}

/* Return the next tensor that nothing was loaded from here. */
static bool next_left(void *user, struct load_item *out)
{
    const struct tensor_hashes *h = user;
    size_t i = 0;
    while (i < h->w->count && h->begun[i])
        i++;
    if (i == h->w->count)
        return false;
    *out = (struct load_item){.tensor = &h->w->tensor[i]};
    return true;
}

int loading_end(struct loading *l, int rc, uint64_t *hash)
{
    if (rc == 0 && hash)
        rc = loading_run(l, next_left, &l->hashes);
    const int waited = nj_stream_sync(l->e->stream);
    if (rc == 0 && waited != 0)
        rc = engine_fail(l->e, waited, LOADING_WEIGHTS);
    if (rc == 0 && hash)
        *hash = tensor_hashes_value(&l->hashes);
    for (int i = 0; i < l->lanes * LANE_SLOTS; i++)
        nj_event_destroy(l->lane[i / LANE_SLOTS].slot[i % LANE_SLOTS].copied);
    tensor_hashes_end(&l->hashes);
    pthread_mutex_destroy(&l->mutex);
    return rc;
}
