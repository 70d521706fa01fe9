/* SPDX-License-Identifier: Apache-2.0
 *
 * cached.c: a teacher whose hidden states were stored. Before each micro-step the host reads those of the rows with a
 * target from the cache, and sends them to where a live teacher keeps its own; the LM head computes logits from them as
 * usual.
 */
#include "teacher/cached.h"

#include "base/checked.h"
#include "base/grow.h"
#include "io/error.h"
#include "net/logits.h"

#include <stdlib.h>

/* Hidden states of two micro-batches are on the host: those of one are read while those of the other are copied. */
enum { STAGED = 2 };

struct cached {
    const struct teacher_cache *cache;
    size_t row_bytes;
    char *hidden; /* [padded, C] normed rows with a target, on the device */
    char *logits; /* [chunk, ld] */
    struct staged {
        char *rows;       /* [padded, C] in pinned memory */
        nj_event *copied; /* NULL: nothing has been copied from there */
    } staged[STAGED];
    int next;                /* element of `staged` that is filled next */
    struct passage *passage; /* [passages] those of a micro-batch */
    size_t passages, room;
};

static struct cached *cached_of(const struct teacher *t)
{
    return t->state;
}

static void close_cached(struct teacher *t)
{
    for (int i = 0; i < STAGED; i++)
        nj_event_destroy(cached_of(t)->staged[i].copied);
    net_free(&t->net);
    free(cached_of(t)->passage);
    free(t->state);
    *t = (struct teacher){0};
}

static int choose(struct teacher *t)
{
    (void)t;
    return 0;
}

/* ---- its memory ---- */

static size_t rows_bytes(const struct teacher *t)
{
    return size_mul((size_t)t->sizes.padded, cached_of(t)->row_bytes);
}

static void carve_head(struct teacher *t, struct carve *c, size_t end)
{
    (void)end;
    t->weights_alike = size_mul((size_t)t->net.p.count, dtype_bytes(t->net.T));
    t->weights = carve_take(c, t->weights_alike);
}

static void carve_hidden(struct teacher *t, struct carve *c, size_t end)
{
    (void)end;
    cached_of(t)->hidden = carve_take(c, rows_bytes(t));
}

static void carve_logits(struct teacher *t, struct carve *c, size_t end)
{
    const struct teacher_sizes *s = &t->sizes;
    (void)end;
    cached_of(t)->logits =
        carve_take(c, size_product((size_t)s->chunk, (size_t)s->ld, dtype_bytes(t->net.T)));
}

static void carve_staged(struct teacher *t, struct carve *c, size_t end)
{
    (void)end;
    for (int i = 0; i < STAGED; i++)
        cached_of(t)->staged[i].rows = carve_take(c, rows_bytes(t));
}

static void connect(struct teacher *t, nj_comm *comm)
{
    (void)comm;
    net_connect(&t->net, t->weights, NULL);
}

static int loaded(const struct teacher *t, uint64_t *hash)
{
    const struct teacher_cache *cache = cached_of(t)->cache;
    const struct cache_facts *facts = cache_facts(cache);
    if (*hash != facts->head)
        return fail(NJ_E_FORMAT,
                    "%s/model.safetensors: it is damaged, or another one: it does not have the "
                    "hash that cache.json says; make the cache again with `nojit cache`",
                    cache_dir(cache));
    *hash = facts->teacher;
    return 0;
}

/* ---- a micro-batch ---- */

/* Wait until what is staged there has been copied. */
static int free_staged(struct work *r, struct staged *s)
{
    return s->copied ? nj_event_sync(s->copied) : nj_event_create(r->ctx, &s->copied);
}

/* List the passages of a micro-batch. Return the number of their rows, or NJ_E_NOMEM. */
static int list_passages(struct cached *c, const struct passage_rows *rows)
{
    struct passage p = {0};
    for (c->passages = 0; passage_next(rows, &p); c->passages++) {
        if (!GROW(c->passage, c->room, c->passages + 1))
            return fail(NJ_E_NOMEM, "no host memory for %zu passages; free some", c->passages);
        c->passage[c->passages] = p;
    }
    return p.first + p.targets;
}

static int read_passage(const struct cached *c, size_t i, char *to)
{
    const struct passage *p = &c->passage[i];
    return cache_read(c->cache, p, to + (size_t)p->first * c->row_bytes);
}

/* Read the hidden states of all passages, in several threads. Return the number of rows, or a negative code. The
 * sentence of an error belongs to its thread, so the first passage that fails is read again. */
static int read_rows(struct cached *c, const struct passage_rows *rows, char *to)
{
    const int count = list_passages(c, rows);
    const int64_t passages = (int64_t)c->passages;
    int64_t failed = passages;
#pragma omp parallel for schedule(dynamic, 1) reduction(min : failed)
    for (int64_t i = 0; i < passages; i++)
        if (read_passage(c, (size_t)i, to) != 0)
            failed = i < failed ? i : failed;
    if (count >= 0 && failed < passages)
        TRY(read_passage(c, (size_t)failed, to));
    return count;
}

static void send(struct work *r, struct teacher *t, const struct rows *staged, int at, int count)
{
    struct cached *c = cached_of(t);
    struct staged *s = &c->staged[c->next];
    const struct passage_rows rows = {.ids = staged->ids,
                                      .doc_start = staged->doc_start,
                                      .valid = staged->valid,
                                      .targets = t->sizes.padded,
                                      .S = t->sizes.seq_len};
    (void)at;
    (void)count;
    c->next = (c->next + 1) % STAGED;
    OP(r, free_staged(r, s));
    if (r->rc != 0)
        return;
    const int found = read_rows(c, &rows, s->rows);
    if (found < 0) {
        r->rc = found;
        t->failed = true;
        return;
    }
    const size_t bytes = (size_t)found * c->row_bytes;
    if (bytes > 0)
        OP(r, nj_copy(r->s, c->hidden, s->rows, bytes));
    if (bytes < rows_bytes(t))
        OP(r, nj_zero(r->s, c->hidden + bytes, rows_bytes(t) - bytes));
    OP(r, nj_event_record(s->copied, r->s));
}

static void *logits(struct work *r, struct teacher *t, int first)
{
    const struct cached *c = cached_of(t);
    const struct teacher_sizes *s = &t->sizes;
    net_logits(r, &t->net, NULL, c->hidden + (size_t)first * c->row_bytes, s->chunk, s->vocab,
               s->ld, c->logits);
    return c->logits;
}

static const struct teacher_ops cached_ops = {
    .buffer = {[TEACHER_WEIGHTS] = {carve_head},
               [TEACHER_HIDDEN] = {carve_hidden},
               [TEACHER_CHUNK] = {carve_logits},
               [TEACHER_STAGED] = {carve_staged}},
    .choose = choose,
    .connect = connect,
    .loaded = loaded,
    .send = send,
    .logits = logits,
    .close = close_cached,
};

int cached_open(struct teacher *t, const struct model_config *config, enum nj_dtype T,
                const struct teacher_cache *cache)
{
    struct cached *c = calloc(1, sizeof *c);
    if (!c)
        return fail(NJ_E_NOMEM, "no host memory for a teacher; free some");
    c->cache = cache;
    c->row_bytes = size_mul((size_t)config->hidden_size, dtype_bytes(T));
    *t = (struct teacher){
        .ops = &cached_ops, .state = c, .form = TEACHER_LOGITS, .net = {.c = *config, .T = T}};
    t->net.c.layers = 0; /* they ran when the cache was made */
    return net_place(&t->net, PARAMS_HEAD);
}
