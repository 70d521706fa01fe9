/* SPDX-License-Identifier: Apache-2.0
 *
 * micro_batch.c: the host's part of a micro-batch: the input of kernels beside the token ids, in pinned memory laid
 * out as on the device, so that one copy sends it.
 */
#include "step/micro_batch.h"

#include "base/try.h"
#include "step/train_step.h"

#include "io/error.h"
#include "io/random.h"

#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Run one pass of a stable radix sort of positions by a digit of their ids. from NULL: 0, 1, 2, ... */
static void sort_digit(const int32_t *ids, int n, int shift, const int32_t *from, int32_t *to)
{
    int32_t at[DIGITS] = {0};
    for (int i = 0; i < n; i++)
        at[(ids[i] >> shift) & (DIGITS - 1)]++;
    for (int32_t d = 0, sum = 0; d < DIGITS; d++) {
        int32_t count = at[d];
        at[d] = sum;
        sum += count;
    }
    for (int i = 0; i < n; i++) {
        int32_t p = from ? from[i] : i;
        to[at[(ids[p] >> shift) & (DIGITS - 1)]++] = p;
    }
}

/* Sort positions by id into `order`, equal ids in order of position. runs: start of each run of equal ids. */
static void sort_ids(const int32_t *ids, int n, int32_t *order, int32_t *runs, int32_t *scratch)
{
    sort_digit(ids, n, 0, NULL, order);
    sort_digit(ids, n, DIGIT_BITS, order, scratch);
    sort_digit(ids, n, 2 * DIGIT_BITS, scratch, order);
    int found = 0;
    for (int i = 0; i < n; i++)
        if (i == 0 || ids[order[i]] != ids[order[i - 1]])
            runs[found++] = i;
    while (found <= n)
        runs[found++] = n;
}

static int check_ids(const struct shape *s, const int32_t *ids)
{
    for (int i = 0; i < s->rows; i++)
        if (ids[i] < 0 || ids[i] >= s->vocab)
            return fail(
                NJ_E_FORMAT,
                "token id %d of row %d lies outside the %d common tokens of the models; use "
                "data encoded with their tokenizer",
                ids[i], i, s->vocab);
    return 0;
}

static int check_target(const struct shape *s, int32_t target, int row)
{
    if (target >= 0 && target < s->vocab)
        return 0;
    return fail(NJ_E_FORMAT,
                "target %d of row %d lies outside the %d common tokens of the models; use data "
                "encoded with their tokenizer",
                target, row, s->vocab);
}

static int check_targets(const struct shape *s, const int32_t *target)
{
    for (int i = 0; i < s->rows; i++)
        if (target[i] != IGNORED)
            TRY(check_target(s, target[i], i));
    return 0;
}

static int check_batch(const struct shape *s, const struct batch *b)
{
    if ((int64_t)b->B * b->S != s->rows)
        return fail(NJ_E_ARG, "a batch has %d x %d rows; the engine was opened for %d", b->B, b->S,
                    s->rows);
#define CHECK_TOKEN check_ids
#define CHECK_TARGET check_targets
#define CHECK_PLACE(s, array) 0 /* checked by the code that fills it */
#define CHECK_ANY(s, array) 0
#define HOST(name, type, use, values, empty)                                                       \
    if (b->name)                                                                                   \
        TRY(CHECK_##values(s, b->name));
#include "batch/batch.def"
    return 0;
}

/* Copy the arrays that the device gets unchanged. A teacher without a context of its own reads the student's. */
static void copy_positions(const struct batch *b, size_t count, struct rows *out)
{
#define READ(name)                                                                                 \
    if (out->teacher_##name && !b->teacher_##name)                                                 \
        memcpy(out->teacher_##name, b->name, count * sizeof *b->name);
#define COPY_TARGETS(name)
#define COPY_POSITIONS(name)                                                                       \
    if (out->name && b->name)                                                                      \
        memcpy(out->name, b->name, count * sizeof *b->name);
#define GIVEN(name, type, use, values, empty, count_) COPY_##count_(name)
#include "batch/batch.def"
}

/* Put position i, which has a target, at its place among the targets. */
static void put_target(const struct batch *b, int i, struct rows *out, int at)
{
#define PUT_POSITIONS(name)
#define PUT_TARGETS(name)                                                                          \
    if (out->name && b->name)                                                                      \
        out->name[at] = b->name[i];
#define GIVEN(name, type, use, values, empty, count) PUT_##count(name)
#include "batch/batch.def"
    out->valid[at] = i;
    if (out->teacher_valid)
        out->teacher_valid[at] = b->teacher_at ? i - i % b->S + b->teacher_at[i] : i;
    if (out->answer)
        out->answer[at] = b->own && b->own[i / b->S] ? b->target[i] : -1;
}

static void put_no_target(struct rows *out, int at)
{
#define END_POSITIONS(name)
#define END_POSITIONS_AND_END(name)
#define END_KEY(name)
#define END_TARGETS(name)                                                                          \
    if (out->name)                                                                                 \
        out->name[at] = -1;
#define DEVICE(name, type, use, count) END_##count(name)
#include "batch/batch.def"
}

/* Move the targets together. Return how many there are. */
static int compact(const struct shape *s, const struct batch *b, struct rows *out)
{
    int found = 0;
    for (int i = 0; i < s->rows; i++) {
        const bool has = b->target[i] != IGNORED;
        out->inverse[i] = has ? found : -1;
        if (has)
            put_target(b, i, out, found++);
    }
    for (int i = found; i < s->padded; i++)
        put_no_target(out, i);
    return found;
}

/* Mark positions of padding, which batch_pad_row() makes a document without a target at the end of a sequence. Without
 * a target anywhere all are marked, as a micro-batch that is left out adds nothing either. */
static void mark_padding(const struct batch *b, bool has_targets, int32_t *keep)
{
    for (int row = 0; row < b->B; row++) {
        const int32_t *ids = b->ids + (size_t)row * (size_t)b->S;
        const int32_t *target = b->target + (size_t)row * (size_t)b->S;
        const int last = b->doc_start[(row + 1) * b->S - 1];
        bool padding = true;
        for (int i = last; i < b->S && padding; i++)
            padding = ids[i] == 0 && target[i] == IGNORED;
        for (int i = 0; i < b->S; i++)
            keep[row * b->S + i] = !has_targets || (padding && i >= last) ? -1 : 0;
    }
}

/* Stage a micro-batch: its arrays, sorted ids, and targets moved together. scratch: rows ints. Return how many chunks
 * of the head hold its targets, or a negative code. */
static int stage_batch(const struct shape *s, const struct batch *b, struct rows *out,
                       int32_t *scratch)
{
    TRY(check_batch(s, b));
    copy_positions(b, (size_t)s->rows, out);
    sort_ids(b->ids, s->rows, out->order, out->runs, scratch);
    const int targets = compact(s, b, out);
    if (out->keep)
        mark_padding(b, targets > 0, out->keep);
    return (targets + s->chunk - 1) / s->chunk;
}

static struct rows host_rows(const struct engine *e, int slot)
{
    struct rows rows;
    struct carve c = {.base = e->mem.batches + (size_t)slot * e->mem.rows_bytes};
    const struct shape *s = &e->shape;
    rows_carve(s->rows, s->padded, s->arrays, &c, &rows);
    return rows;
}

int stage_next(struct engine *e, struct batch_source *d, int micro, int slot)
{
    struct batch b;
    int rc = batches_next(d, &b);
    e->data_failed = rc < 0;
    if (rc != 0)
        return rc;
    e->valid += b.valid;
    if (slot == NO_SLOT)
        return 0;
    struct rows rows = host_rows(e, slot);
    int chunks = stage_batch(&e->shape, &b, &rows, e->scratch);
    e->data_failed = chunks < 0;
    if (chunks < 0)
        return chunks;
    const uint64_t place = (uint64_t)e->step * (uint64_t)e->o.grad_accum + (uint64_t)micro;
    const uint64_t key = random_mix(random_mix(e->o.seed) + place);
    memcpy(rows.key, &key, sizeof key);
    e->chunks_of[slot] = chunks;
    return 0;
}

int stage_agree(struct engine *e, struct batch_source *d, int rc)
{
    rc = batches_agree(d, rc);
    e->data_failed = rc < 0;
    return rc;
}

static int check_positions(const struct shape *s, const struct score_batch *b)
{
    bool inside = b->count >= 0 && b->count <= s->rows;
    for (int i = 0; inside && i < b->count; i++)
        inside = b->at[i] >= 0 && b->at[i] < s->rows;
    return inside ? 0
                  : fail(NJ_E_ARG,
                         "%d positions are asked for, and a batch has %d; ask for fewer at a time",
                         b->count, s->rows);
}

int stage_scored(struct engine *e, const struct score_batch *b)
{
    const struct shape *s = &e->shape;
    const size_t bytes = (size_t)s->rows * sizeof(int32_t);
    struct rows rows = host_rows(e, 0);
    TRY(check_positions(s, b));
    TRY(check_ids(s, b->ids));
    for (int i = 0; b->target && i < b->count; i++)
        TRY(check_target(s, b->target[i], b->at[i]));
#define READ(name) memcpy(rows.name, b->name, bytes);
#include "batch/batch.def"
    for (int i = 0; i < s->padded; i++) {
        rows.valid[i] = i < b->count ? b->at[i] : -1;
        rows.target[i] = b->target && i < b->count ? b->target[i] : -1;
    }
    return (b->count + s->chunk - 1) / s->chunk;
}

bool engine_data_failed(const struct engine *e)
{
    return e->data_failed;
}

void send_to_teacher(struct work *r, struct engine *e, int slot, int count)
{
    for (int i = 0; i < count; i++) {
        const struct rows staged = host_rows(e, slot + i);
        teacher_send(r, &e->teacher, &staged, i, count);
    }
}

int send_batch(struct engine *e, int slot)
{
    return nj_copy(e->stream, e->mem.rows.ids, e->mem.batches + (size_t)slot * e->mem.rows_bytes,
                   e->mem.rows_bytes);
}
