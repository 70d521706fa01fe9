/* SPDX-License-Identifier: Apache-2.0
 *
 * data.c: the stream of tokens and the rows made of it.
 *
 * All files, one after the other, make one stream; with weights each source is a stretch of it. A
 * row is a list of pieces of the stream (packing.h). The target of a token is the one after it,
 * unless that one belongs to another document or has no loss. A document ends where its segment
 * says so (token_files.h). The order of rows is a function of (seed, epoch, position) alone (shuffle.h); so
 * a run resumes by setting two numbers.
 */
#include "batch/data.h"

#include "base/check.h"
#include "base/try.h"
#include "batch/data_struct.h"
#include "io/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

int data_allocate(struct data *d, int batch_size)
{
    d->window = calloc((size_t)d->S + 1, sizeof *d->window);
    d->flags = calloc((size_t)d->S + 1, 1);
    if (!d->window || !d->flags)
        return fail(NJ_E_NOMEM, "out of memory for sequences of %d", d->S);
    return batch_allocate(&d->batch, batch_size, d->S, DATA_ARRAYS);
}

void data_close(struct data *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->segment_count; i++)
        segment_close(&d->segment[i]);
    for (size_t i = 0; i < d->order.count; i++) {
        packed_free(&d->source[i].packed);
        free(d->source[i].name);
    }
    free(d->segment);
    free(d->source);
    free(d->order.share);
    batch_free(&d->batch);
    free(d->window);
    free(d->flags);
    free(d);
}

/* ---- facts about the data ---- */

int64_t data_tokens(const struct data *d)
{
    return d->tokens;
}

int64_t data_windows(const struct data *d)
{
    return d->order.total;
}

double data_padding(const struct data *d)
{
    double padding = 0;
    for (size_t i = 0; i < d->order.count; i++) {
        const struct packed *p = &d->source[i].packed;
        const double filled = (double)p->inputs / ((double)p->rows * d->S);
        padding += (1 - filled) * (double)d->order.share[i].draws / (double)d->order.total;
    }
    return padding;
}

const struct passed_over *data_passed_over(const struct data *d)
{
    return &d->passed;
}

const struct row_notes *data_row_notes(const struct data *d)
{
    return &d->notes;
}

bool data_chats(const struct data *d)
{
    size_t i = 0;
    while (i < d->segment_count && !d->segment[i].chats)
        i++;
    return i < d->segment_count;
}

enum packing data_packing(const struct data *d)
{
    return d->packing;
}

void data_overlong(const struct data *d, struct overlong_count *out)
{
    *out = (struct overlong_count){0};
    for (size_t i = 0; i < d->order.count; i++) {
        const struct overlong_count *n = &d->source[i].packed.overlong;
        out->documents += n->documents;
        out->cut += n->cut;
        out->dropped += n->dropped;
        out->split += n->split;
        out->empty += n->empty;
        out->lost += n->lost;
        out->longest = n->longest > out->longest ? n->longest : out->longest;
    }
}

const char *data_overlong_text(const struct data *d, char *out, size_t bytes)
{
    struct overlong_count n;
    data_overlong(d, &n);
    return overlong_text(&n, d->S, out, bytes);
}

size_t data_sources(const struct data *d)
{
    return d->weighted ? d->order.count : 0;
}

void data_source(const struct data *d, size_t i, struct data_source *out)
{
    const struct source *s = &d->source[i];
    const struct share *share = &d->order.share[i];
    *out = (struct data_source){s->name, share->weight, s->tokens, share->rows, share->draws};
}

/* ---- reading ---- */

/* Return the index of the segment that holds token `at` of the stream. */
static size_t segment_of(const struct data *d, int64_t at)
{
    size_t low = 0, high = d->segment_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (d->segment[middle].first <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int data_token(const struct data *d, int64_t at, struct data_token *out)
{
    const struct segment *s = &d->segment[segment_of(d, at)];
    const int64_t i = at - s->first;
    /* whether to read the token before, which says whether a document begins */
    const size_t before = i > 0;
    int32_t ids[2];
    unsigned char flags[2];
    TRY(segment_read(s, i - (int64_t)before, 1 + before, ids, flags));
    out->id = ids[before];
    out->begins = i == 0 || flags[0] & TOKEN_ENDS;
    out->trained = flags[before] & TOKEN_TRAINED && !out->begins;
    return 0;
}

int data_pieces(const struct data *d, int64_t row)
{
    const struct row_place place = order_at(&d->order, 0, (uint64_t)row);
    return packed_pieces(&d->source[place.source].packed, place.row);
}

void data_piece(const struct data *d, int64_t row, int piece, int64_t *first, int *inputs)
{
    const struct row_place place = order_at(&d->order, 0, (uint64_t)row);
    const struct piece p = packed_piece(&d->source[place.source].packed, place.row, piece);
    *first = p.first;
    *inputs = p.inputs;
}

/* Copy n tokens from `at` on into d->window and d->flags. */
static int read_tokens(struct data *d, int64_t at, int n)
{
    size_t s = segment_of(d, at);
    for (int done = 0; done < n; s++) {
        const struct segment *seg = &d->segment[s];
        const int64_t first = at + done - seg->first, left = seg->count - first;
        const int count = left < n - done ? (int)left : n - done;
        const int rc = segment_read(seg, first, (size_t)count, d->window + done, d->flags + done);
        if (rc != 0 || segment_check(seg, first, (size_t)count, d->window + done, d->vocab))
            /* a file that was good at the start may have been rewritten */
            return rc != 0 ? rc : NJ_E_FORMAT;
        done += count;
    }
    return 0;
}

/* Fill a row from position `at` on with a piece. */
static int fill_piece(struct data *d, int row, int at, const struct piece *p)
{
    const struct batch *b = &d->batch;
    const size_t first = (size_t)row * (size_t)b->S;
    const int64_t left = d->tokens - p->first;
    const int have = left < p->inputs + 1 ? (int)left : p->inputs + 1;
    TRY(read_tokens(d, p->first, have));
    int document = at;
    CHECK(at + p->inputs <= b->S); /* else it runs into the next row */
    for (int i = 0; i < p->inputs; i++) {
        const size_t to = first + (size_t)(at + i);
        const bool follows = i + 1 < have && !(d->flags[i] & TOKEN_ENDS);
        if (i > 0 && d->flags[i - 1] & TOKEN_ENDS)
            document = at + i;
        b->ids[to] = d->window[i];
        b->target[to] = follows && d->flags[i + 1] & TOKEN_TRAINED ? d->window[i + 1] : IGNORED;
        b->pos[to] = at + i - document;
        b->doc_start[to] = document;
    }
    return 0;
}

static int fill_row(struct data *d, int row, const struct row_place *place)
{
    const struct packed *p = &d->source[place->source].packed;
    const int count = packed_pieces(p, place->row);
    int at = 0;
    for (int i = 0; i < count; i++) {
        const struct piece piece = packed_piece(p, place->row, i);
        TRY(fill_piece(d, row, at, &piece));
        at += piece.inputs;
    }
    batch_pad_row(&d->batch, row, at);
    return 0;
}

/* Fill a row from the files, or an empty one where they have ended. */
static int next_row(struct data *d, int row)
{
    if (d->once && d->at.epoch > 0) {
        batch_pad_row(&d->batch, row, 0);
    } else {
        const struct row_place place = order_at(&d->order, d->at.epoch, d->at.window);
        TRY(fill_row(d, row, &place));
        if (++d->at.window >= (uint64_t)d->order.total)
            d->at = (struct data_state){d->at.epoch + 1, 0};
    }
    return 0;
}

static struct data *of(struct batch_source *s)
{
    return (struct data *)(void *)s;
}

static int next(struct batch_source *s, struct batch *out)
{
    struct data *d = of(s);
    struct batch *b = &d->batch;
    int rc = 0;
    if (d->order.count == 0 || (d->once && d->at.epoch > 0))
        return 1;
    b->valid = 0;
    for (int row = 0; rc == 0 && row < b->B; row++) {
        rc = next_row(d, row);
        if (rc == 0)
            b->valid += batch_row_targets(b, row);
    }
    *out = *b;
    return rc;
}

static void tell(struct batch_source *s, struct data_state *out)
{
    *out = of(s)->at;
}

static void seek(struct batch_source *s, const struct data_state *at)
{
    struct data *d = of(s);
    d->at = *at;
    if (d->at.window >= (uint64_t)d->order.total)
        d->at = (struct data_state){at->epoch + 1, 0};
}

static int resize(struct batch_source *s, int batch_size)
{
    return batch_resize(&of(s)->batch, batch_size, of(s)->S, DATA_ARRAYS);
}

static int64_t rows(struct batch_source *s)
{
    return data_windows(of(s));
}

static void close_data(struct batch_source *s)
{
    data_close(of(s));
}

static const struct batch_source_ops ops = {
    .next = next,
    .tell = tell,
    .seek = seek,
    .resize = resize,
    .rows = rows,
    .close = close_data,
};

int data_create(int seq_len, struct data **out)
{
    struct data *d = calloc(1, sizeof *d);
    *out = d;
    if (!d)
        return fail(NJ_E_NOMEM, "out of memory");
    d->batches.ops = &ops;
    d->S = seq_len;
    return 0;
}

int data_none(int seq_len, struct data **out)
{
    TRY(data_create(seq_len, out));
    (*out)->order.total = 1; /* a row that nobody asks for */
    return 0;
}

struct batch_source *data_batches(struct data *d)
{
    return &d->batches;
}

uint64_t data_hash(const struct data *d)
{
    return d->hasher.hash;
}
