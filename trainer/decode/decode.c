/* SPDX-License-Identifier: Apache-2.0
 *
 * decode.c: continues many prompts at a time. The device writes a few tokens of each sequence on its own (decoder.h);
 * then the host hands out the tokens, gives the slots of sequences that ended to the next prompts, and moves the
 * others together, so that a step has no more rows than it needs. The decoder uses the memory of the activations, so
 * a training step or an evaluation begins without it.
 */
#include "decode/decode.h"

#include "base/try.h"
#include "decode/repetition.h"
#include "io/error.h"
#include "net/decoder.h"
#include "state/engine_struct.h"

#include <stdlib.h>
#include <string.h>

/* Graph of a step of so many rows and chunks, captured when it is first needed. */
struct decode_graph {
    struct decode_sampling how;
    int rows, chunks;
    nj_graph *graph;
    struct decode_graph *next;
};

/* A sequence being written. */
struct sequence {
    struct decode_prompt prompt;
    int generated;
};

struct session {
    struct engine *e;
    struct decoder *d;
    const struct decode_io *io;
    struct sequence *sequence; /* [rows] sequences of the rows, in order */
    int count;
    int *slots; /* [rows] free slots, the last of which is taken next */
    int free;
    bool more; /* prompts may still come */
    int window;
    struct repetition repetition;
};

void decode_graphs_free(struct decode_graph *g)
{
    while (g) {
        struct decode_graph *next = g->next;
        nj_graph_destroy(g->graph);
        free(g);
        g = next;
    }
}

/* ---- the device's part ---- */

static bool same_sampling(const struct decode_sampling *a, const struct decode_sampling *b)
{
    return a->temperature == b->temperature && a->top_k == b->top_k && a->top_p == b->top_p &&
           a->min_p == b->min_p && a->seed == b->seed;
}

static int capture(struct session *s, int rows, int chunks, nj_graph **out)
{
    struct engine *e = s->e;
    struct work w = {.ctx = e->ctx, .s = e->stream};
    TRY(nj_graph_begin(e->stream));
    nj_stream_dependent_launches(e->stream, 1);
    decoder_step(&w, s->d, &s->io->how, rows, chunks);
    nj_stream_dependent_launches(e->stream, 0);
    const int rc = nj_graph_end(e->stream, out);
    return w.rc != 0 ? w.rc : rc;
}

static int add_graph(struct session *s, int rows, int chunks, struct decode_graph **out)
{
    struct engine *e = s->e;
    struct decode_graph *g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g)
        return fail(NJ_E_NOMEM, "no host memory for a graph; free some");
    const int rc = capture(s, rows, chunks, &g->graph);
    if (rc != 0) {
        free(g);
        e->graphs = e->graphs && rc != NJ_E_UNSUPPORTED;
        return rc == NJ_E_UNSUPPORTED ? 0 : rc;
    }
    *g = (struct decode_graph){s->io->how, rows, chunks, g->graph, e->decode};
    e->decode = *out = g;
    return 0;
}

/* Find or capture the graph of a step; NULL if there are no graphs. */
static int graph_of(struct session *s, int rows, int chunks, nj_graph **out)
{
    struct decode_graph *g = s->e->decode;
    int rc = 0;
    while (g && (g->rows != rows || g->chunks != chunks || !same_sampling(&g->how, &s->io->how)))
        g = g->next;
    if (!g && s->e->graphs)
        rc = add_graph(s, rows, chunks, &g);
    *out = g ? g->graph : NULL;
    return rc;
}

/* Run a step whose logits go through the host. */
static int run_penalized(struct session *s, int rows, int chunks)
{
    struct engine *e = s->e;
    struct work w = {.ctx = e->ctx, .s = e->stream};
    decoder_logits(&w, s->d, rows, chunks);
    if (w.rc == 0)
        w.rc = repetition_apply(&s->repetition, e, e->mem.now.slot, rows);
    decoder_sample(&w, s->d, &s->io->how, rows);
    return w.rc;
}

static int run_steps(struct session *s, int rows, int chunks)
{
    struct engine *e = s->e;
    nj_graph *graph;
    TRY(graph_of(s, rows, chunks, &graph));
    if (!graph)
        s->window = 1; /* waiting would gain nothing */
    for (int i = 0; i < s->window; i++) {
        struct work w = {.ctx = e->ctx, .s = e->stream};
        if (!graph)
            decoder_step(&w, s->d, &s->io->how, rows, chunks);
        TRY(graph ? nj_graph_launch(graph, e->stream) : w.rc);
    }
    return 0;
}

/* ---- prompts ---- */

static int check_prompt(const struct session *s, const struct decode_prompt *p)
{
    const int room = s->d->cache.positions;
    if (p->count < 1 || p->most < 1 || p->count > room || p->most > room - p->count)
        return fail(NJ_E_ARG,
                    "a prompt of %d tokens that %d may follow does not fit the %d positions of "
                    "the decoder",
                    p->count, p->most, room);
    for (int i = 0; i < p->count; i++)
        if (p->ids[i] < 0 || p->ids[i] >= s->d->vocab)
            return fail(NJ_E_ARG, "token id %d of a prompt lies outside the vocabulary of %d",
                        p->ids[i], s->d->vocab);
    return 0;
}

/* Stage all but the last token of a prompt, from row `from` of a pass on. */
static void put_prompt(struct rows *to, int from, const struct decode_prompt *p, int slot)
{
    for (int i = 0; i + 1 < p->count; i++) {
        to->ids[from + i] = p->ids[i];
        to->pos[from + i] = i;
        to->slot[from + i] = slot;
        to->doc_start[from + i] = from;
    }
}

static void put_nothing(struct rows *to, int from, int end)
{
    for (int i = from; i < end; i++) {
        to->ids[i] = to->pos[i] = 0;
        to->slot[i] = -1;
        to->doc_start[i] = i;
    }
}

/* Compute the first `count` rows of the pass that is staged. */
static int prefill(struct session *s, int count)
{
    struct engine *e = s->e;
    struct memory *m = &e->mem;
    struct work w = {.ctx = e->ctx, .s = e->stream};
    const int rows = decoder_prompt_rows(s->d, count);
    if (count == 0)
        return 0;
    put_nothing(&m->prompts, count, rows);
    w.rc = nj_copy(e->stream, s->d->prompts.ids, m->prompts.ids, s->d->prompts_bytes);
    decoder_prefill(&w, s->d, rows);
    if (w.rc == 0)
        w.rc = nj_stream_sync(e->stream); /* the staged rows are free again */
    return w.rc != 0 ? engine_fail(e, w.rc, "reading prompts") : 0;
}

static int begin(struct session *s, const struct decode_prompt *p)
{
    struct decode_rows *now = &s->e->mem.now;
    const int row = s->count++;
    s->sequence[row] = (struct sequence){.prompt = *p};
    now->id[row] = p->ids[p->count - 1];
    now->pos[row] = p->count - 1;
    now->slot[row] = s->slots[--s->free];
    now->number[row] = p->number;
    now->left[row] = p->most;
    return repetition_is_on(&s->repetition)
               ? repetition_begin(&s->repetition, now->slot[row], p->ids, p->count)
               : 0;
}

/* Give free slots to prompts, and compute their keys and values in as few passes as they fit in. */
static int take_prompts(struct session *s)
{
    int staged = 0;
    while (s->more && s->free > 0) {
        struct decode_prompt p;
        const int got = s->io->next(s->io->user, &p);
        s->more = got > 0;
        TRY(got > 0 ? check_prompt(s, &p) : got);
        if (!s->more)
            break;
        if (staged + p.count - 1 > s->d->prefill) {
            TRY(prefill(s, staged));
            staged = 0;
        }
        TRY(begin(s, &p));
        put_prompt(&s->e->mem.prompts, staged, &p, s->e->mem.now.slot[s->count - 1]);
        staged += p.count - 1;
    }
    return prefill(s, staged);
}

/* ---- what came of it ---- */

bool decode_stops(const struct decode_io *io, int32_t id)
{
    int i = 0;
    while (i < io->stops && io->stop[i] != id)
        i++;
    return i < io->stops;
}

/* Find how a sequence ended, if it did. */
static int end_of(const struct session *s, const struct sequence *q, int32_t last, bool ended,
                  enum decode_end *out)
{
    *out = DECODE_MORE;
    if (!ended)
        return 0;
    *out = DECODE_STOPPED;
    if (q->generated > 0 && decode_stops(s->io, last))
        return 0;
    *out = DECODE_LENGTH;
    if (q->generated == q->prompt.most)
        return 0;
    return fail(NJ_E_FORMAT, "the logits of the model are not finite; use intact weights, or "
                             "--dtype float32 if activations overflow");
}

/* Pass the tokens of a row in the window to its reader. Return above 0 if the reader needs no more. */
static int hand_out(struct session *s, int row, int rows, bool ended)
{
    struct sequence *q = &s->sequence[row];
    int32_t ids[DECODE_WINDOW];
    enum decode_end end;
    int count = 0;
    for (int i = 0; i < s->window; i++) {
        const int32_t id = s->e->mem.generated[(size_t)i * (size_t)rows + (size_t)row];
        if (id >= 0)
            ids[count++] = id;
    }
    q->generated += count;
    TRY(end_of(s, q, count > 0 ? ids[count - 1] : -1, ended, &end));
    return s->io->generated(s->io->user, &q->prompt, ids, count, end);
}

static void move(struct session *s, int to, int from)
{
    struct decode_rows *now = &s->e->mem.now;
    int32_t *const array[] = {now->id, now->pos, now->slot, now->number, now->left};
    for (size_t i = 0; i < sizeof array / sizeof *array; i++)
        array[i][to] = array[i][from];
    s->sequence[to] = s->sequence[from];
}

/* Look at the results of a window. slot_of: slot of each row before the window; rows that ended have none any
 * more. */
static int look(struct session *s, int rows, const int32_t *slot_of)
{
    const struct decode_rows *now = &s->e->mem.now;
    int kept = 0, rc = 0;
    for (int row = 0; rc == 0 && row < s->count; row++) {
        bool ended = now->slot[row] < 0;
        rc = hand_out(s, row, rows, ended);
        ended = ended || rc > 0;
        rc = rc < 0 ? rc : 0;
        if (!ended && repetition_is_on(&s->repetition)) /* the window is one step */
            rc = repetition_add(&s->repetition, slot_of[row], &s->e->mem.generated[row], 1);
        if (ended)
            s->slots[s->free++] = slot_of[row];
        else
            move(s, kept++, row);
    }
    s->count = kept;
    return rc;
}

/* Return the number of chunks for the last step of the window. */
static int chunks_of_window(const struct session *s)
{
    const int32_t *pos = s->e->mem.now.pos;
    int64_t keys = 0;
    int longest = 0;
    for (int row = 0; row < s->count; row++) {
        const int length = pos[row] + s->window;
        keys += length;
        longest = length > longest ? length : longest;
    }
    return decoder_chunks(s->d, keys, longest);
}

/* Run a window. slot_of: room for a slot of each row. */
static int run_window(struct session *s, int32_t *slot_of)
{
    struct engine *e = s->e;
    struct memory *m = &e->mem;
    const struct decoder *d = s->d;
    const int rows = decoder_step_rows(d, s->count);
    for (int row = s->count; row < rows; row++) {
        m->now.id[row] = m->now.pos[row] = m->now.number[row] = m->now.left[row] = 0;
        m->now.slot[row] = -1;
    }
    memcpy(slot_of, m->now.slot, (size_t)rows * sizeof *slot_of);
    m->now.step[0] = 0;
    int rc = nj_copy(e->stream, d->now.id, m->now.id, d->now_bytes);
    if (rc == 0)
        rc = repetition_is_on(&s->repetition) ? run_penalized(s, rows, chunks_of_window(s))
                                              : run_steps(s, rows, chunks_of_window(s));
    if (rc == 0)
        rc = nj_copy(e->stream, m->now.id, d->now.id, d->now_bytes);
    if (rc == 0)
        rc = nj_copy(e->stream, m->generated, d->generated, d->generated_bytes);
    if (rc == 0)
        rc = nj_stream_sync(e->stream);
    return rc != 0 ? engine_fail(e, rc, "generating tokens") : look(s, rows, slot_of);
}

static int send_stops(struct session *s)
{
    struct engine *e = s->e;
    int32_t *stop = e->mem.generated;
    if (s->io->stops > DECODE_STOPS)
        return fail(NJ_E_ARG, "%d tokens end a text; at most %d can", s->io->stops, DECODE_STOPS);
    for (int i = 0; i < DECODE_STOPS; i++)
        stop[i] = i < s->io->stops ? s->io->stop[i] : -1;
    int rc = nj_copy(e->stream, s->d->stop, stop, DECODE_STOPS * sizeof *stop);
    if (rc == 0)
        rc = nj_stream_sync(e->stream);
    return rc != 0 ? engine_fail(e, rc, "sending the tokens that end a text") : 0;
}

static int run(struct session *s, int32_t *slot_of)
{
    TRY(engine_join(s->e));
    TRY(send_stops(s));
    for (;;) {
        TRY(take_prompts(s));
        if (s->count == 0)
            return 0;
        TRY(run_window(s, slot_of));
    }
}

int engine_decode(struct engine *e, const struct decode_io *io)
{
    struct decoder *d = &e->mem.decoder;
    const size_t rows = (size_t)d->rows;
    struct session s = {.e = e, .d = d, .io = io, .more = true, .window = DECODE_WINDOW};
    int32_t *slot_of = calloc(rows, sizeof *slot_of);
    s.sequence = calloc(rows, sizeof *s.sequence);
    s.slots = calloc(rows, sizeof *s.slots);
    int rc = d->rows > 0 ? 0 : fail(NJ_E_ARG, "the engine was opened without a decoder");
    if (rc == 0 && (!slot_of || !s.sequence || !s.slots))
        rc = fail(NJ_E_NOMEM, "no host memory for %d sequences; free some", d->rows);
    if (rc == 0)
        rc = repetition_open(d, io->how.repetition, &s.repetition);
    s.window = repetition_is_on(&s.repetition) ? 1 : s.window;
    for (; rc == 0 && s.free < d->rows; s.free++)
        s.slots[s.free] = d->rows - 1 - s.free;
    if (rc == 0)
        rc = run(&s, slot_of);
    repetition_close(&s.repetition);
    free(slot_of);
    free(s.sequence);
    free(s.slots);
    return rc;
}
