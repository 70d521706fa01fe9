/* SPDX-License-Identifier: Apache-2.0
 *
 * data.c: the stream of tokens and the windows cut from it.
 *
 * All files, one after the other, make one stream. Window w reads the tokens from w * S on: S of
 * them are ids, and each one's target is the token after it, unless that one belongs to another
 * document or has no loss. A document ends with end_of_text or with its file. Each epoch visits
 * every window once, in an order that is a function of (seed, epoch) alone; so a position is two
 * numbers and resuming is setting them.
 */
#include "data.h"

#include "error.h"
#include "plural.h"
#include "random.h"
#include "token_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct data {
    struct segment *segment;
    size_t segment_count;
    int64_t tokens, windows;
    int B, S;
    uint64_t seed;
    bool once;
    int32_t end_of_text; /* -1: documents end with their files only */
    struct data_state at;
    int32_t *arrays;      /* ids, target, pos, doc_start: B * S each */
    int32_t *window;      /* S + 1 tokens */
    unsigned char *flags; /* S + 1 */
};

enum { STARTS_DOCUMENT = 1, NO_LOSS = 2 };

/* ---- order of the windows ---- */

/* A permutation of [0, n): four Feistel rounds over the next even number of bits, walked until it
 * lands below n (Black and Rogaway 2002). */
static uint64_t permute(uint64_t i, uint64_t n, uint64_t key)
{
    int half = 1;
    while (half < 31 && (uint64_t)1 << 2 * half < n)
        half++;
    const uint64_t low = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & low;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t next = left ^ (random_mix(key + round + (right << 8)) & low);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* The window that the epoch visits at place i. */
static int64_t window_at(const struct data *d, uint64_t epoch, uint64_t i)
{
    if (d->seed == 0)
        return (int64_t)i;
    return (int64_t)permute(i, (uint64_t)d->windows, random_mix(random_mix(d->seed) + epoch));
}

/* ---- opening ---- */

static int open_segments(struct data *d, const struct data_options *o, const struct tokenizer *t,
                         struct path_list *list)
{
    d->segment = calloc(list->count ? list->count : 1, sizeof *d->segment);
    if (!d->segment)
        return fail(NJ_E_NOMEM, "out of memory for %zu files", list->count);
    for (size_t i = 0; i < list->count; i++) {
        struct segment *s = &d->segment[d->segment_count++];
        s->path = list->path[i];
        list->path[i] = NULL;
        s->first = d->tokens;
        int rc = segment_open(s, t, o->vocab_size);
        if (rc)
            return rc;
        d->tokens += s->count;
        if (s->count == 0) { /* an empty file is no document */
            segment_close(s);
            d->segment_count--;
        }
    }
    return NJ_OK;
}

static int count_windows(struct data *d, const struct data_options *o)
{
    const char *path = o->path_count ? o->paths[0] : "--data";
    const char *more = o->path_count > 1 ? " and the others" : "";
    if (d->tokens == 0)
        return fail(NJ_E_FORMAT, "%s%s: there is no token in it; give files with text or tokens",
                    path, more);
    if (o->once ? d->tokens < 2 : d->tokens < (int64_t)d->S + 1)
        return fail(NJ_E_FORMAT,
                    "%s%s: %" PRId64 " token%s, fewer than one window of %d + 1; give more data "
                    "or at most --seq-len %" PRId64,
                    path, more, d->tokens, plural(d->tokens), d->S,
                    d->tokens > 1 ? d->tokens - 1 : 1);
    d->windows = o->once ? (d->tokens - 1 + d->S - 1) / d->S : (d->tokens - 1) / d->S;
    return NJ_OK;
}

static int allocate(struct data *d)
{
    const size_t n = (size_t)d->B * (size_t)d->S;
    d->arrays = calloc(4 * n, sizeof *d->arrays);
    d->window = calloc((size_t)d->S + 1, sizeof *d->window);
    d->flags = calloc((size_t)d->S + 1, 1);
    if (!d->arrays || !d->window || !d->flags)
        return fail(NJ_E_NOMEM, "out of memory for batches of %d x %d", d->B, d->S);
    return NJ_OK;
}

int data_open(const struct data_options *o, const struct tokenizer *t, struct data **out)
{
    *out = NULL;
    if (o->seq_len < 1 || o->batch_size < 1)
        return fail(NJ_E_ARG, "batches of %d x %d: both --batch-size and --seq-len must be above 0",
                    o->batch_size, o->seq_len);
    struct data *d = calloc(1, sizeof *d);
    if (!d)
        return fail(NJ_E_NOMEM, "out of memory");
    d->B = o->batch_size;
    d->S = o->seq_len;
    d->seed = o->seed;
    d->once = o->once;
    d->end_of_text = t ? t->end_of_text : -1;

    struct path_list list;
    int rc = paths_collect(o->paths, o->path_count, &list);
    if (!rc)
        rc = open_segments(d, o, t, &list);
    paths_free(&list);
    if (!rc)
        rc = count_windows(d, o);
    if (!rc)
        rc = allocate(d);
    if (rc) {
        data_close(d);
        return rc;
    }
    *out = d;
    return NJ_OK;
}

void data_close(struct data *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->segment_count; i++)
        segment_close(&d->segment[i]);
    free(d->segment);
    free(d->arrays);
    free(d->window);
    free(d->flags);
    free(d);
}

int64_t data_tokens(const struct data *d)
{
    return d->tokens;
}

int64_t data_windows(const struct data *d)
{
    return d->windows;
}

/* ---- reading ---- */

/* The segment that holds token `at` of the stream. */
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

/* Copies tokens from `at` on into d->window and d->flags; returns how many there were, at most S
 * + 1. */
static int read_window(struct data *d, int64_t at)
{
    int64_t left = d->tokens - at;
    const int n = left < d->S + 1 ? (int)left : d->S + 1;
    size_t s = segment_of(d, at);
    for (int i = 0; i < n; i++) {
        while (at + i >= d->segment[s].first + d->segment[s].count)
            s++;
        const struct segment *seg = &d->segment[s];
        const int64_t k = at + i - seg->first;
        d->window[i] = segment_id(seg, k);
        d->flags[i] = 0;
        if (k == 0 || (i > 0 && d->window[i - 1] == d->end_of_text))
            d->flags[i] |= STARTS_DOCUMENT;
        if (!segment_has_loss(seg, k))
            d->flags[i] |= NO_LOSS;
    }
    return n;
}

/* Fills row b with a window; at < 0: with padding. Returns the number of targets. */
static int64_t fill_row(struct data *d, int b, int64_t at)
{
    const size_t n = (size_t)d->B * (size_t)d->S, row = (size_t)b * (size_t)d->S;
    int32_t *ids = d->arrays + row, *target = ids + n, *pos = target + n, *doc_start = pos + n;
    const int have = at < 0 ? 0 : read_window(d, at);
    int64_t valid = 0;
    int document = 0;
    for (int i = 0; i < d->S; i++) {
        if (i > 0 && i < have && (d->flags[i] & STARTS_DOCUMENT))
            document = i;
        ids[i] = i < have ? d->window[i] : 0;
        target[i] = i + 1 < have && !d->flags[i + 1] ? d->window[i + 1] : IGNORED;
        pos[i] = i - document;
        doc_start[i] = document;
        valid += target[i] != IGNORED;
    }
    return valid;
}

int data_next(struct data *d, struct batch *out)
{
    const size_t n = (size_t)d->B * (size_t)d->S;
    const uint64_t windows = (uint64_t)d->windows;
    if (d->once && d->at.epoch > 0)
        return 1;
    *out = (struct batch){
        d->B, d->S, d->arrays, d->arrays + n, d->arrays + 2 * n, d->arrays + 3 * n, 0};
    for (int b = 0; b < d->B; b++) {
        const bool over = d->once && d->at.epoch > 0;
        out->valid +=
            fill_row(d, b, over ? -1 : window_at(d, d->at.epoch, d->at.window) * (int64_t)d->S);
        if (!over && ++d->at.window >= windows)
            d->at = (struct data_state){d->at.epoch + 1, 0};
    }
    return 0;
}

void data_tell(const struct data *d, struct data_state *out)
{
    *out = d->at;
}

void data_seek(struct data *d, const struct data_state *s)
{
    d->at = *s;
    if (d->at.window >= (uint64_t)d->windows)
        d->at = (struct data_state){s->epoch + 1, 0};
}

uint64_t data_hash(const struct data *d)
{
    /* Ids are hashed as int32, 4,096 at a time, each group with the hash before it: the same stream
     * gives the same value whatever its files are. */
    int32_t group[4096];
    uint64_t hash = 0;
    size_t n = 0;
    for (size_t s = 0; s < d->segment_count; s++)
        for (int64_t i = 0; i < d->segment[s].count; i++) {
            group[n++] = segment_id(&d->segment[s], i);
            if (n == sizeof group / sizeof *group) {
                hash = XXH3_64bits_withSeed(group, sizeof group, hash);
                n = 0;
            }
        }
    return XXH3_64bits_withSeed(group, n * sizeof *group, hash);
}
