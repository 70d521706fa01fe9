/* SPDX-License-Identifier: Apache-2.0
 *
 * micro_batch.c: the host's part of a micro-batch: what kernels need beside the token ids, in pinned
 * memory laid out as on the device, so that one copy sends it.
 */
#include "step/micro_batch.h"

#include "step/train_step.h"

#include "io/error.h"
#include "io/random.h"

#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* One pass of a stable radix sort of positions by a digit of their ids. from NULL: 0, 1, 2, ... */
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

/* order: positions by id, equal ids in order of position. runs: where each run of equal ids starts.
 */
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

static int compact(const struct shape *s, const struct batch *b, struct rows *out)
{
    int found = 0;
    for (int i = 0; i < s->rows; i++) {
        bool has = b->target[i] != IGNORED;
        const int rc = has ? check_target(s, b->target[i], i) : 0;
        if (rc != 0)
            return rc;
        out->inverse[i] = has ? found : -1;
        if (!has)
            continue;
        out->valid[found] = i;
        if (out->teacher_valid)
            out->teacher_valid[found] = b->teacher_at ? i - i % b->S + b->teacher_at[i] : i;
        if (out->answer)
            out->answer[found] = b->own[i / b->S] ? b->target[i] : -1;
        out->target[found++] = b->target[i];
    }
    int used = (found + s->chunk - 1) / s->chunk;
    for (int i = found; i < s->padded; i++)
        out->valid[i] = out->target[i] = -1;
    for (int i = found; out->teacher_valid && i < s->padded; i++)
        out->teacher_valid[i] = -1;
    for (int i = found; out->answer && i < s->padded; i++)
        out->answer[i] = -1;
    return used;
}

/* Host side of a micro-batch: sorted ids, valid rows. scratch: rows ints. Returns how many chunks of the
 * head hold its valid rows, or a negative code. */
static int stage_batch(const struct shape *s, const struct batch *b, struct rows *out,
                       int32_t *scratch)
{
    size_t bytes = (size_t)s->rows * sizeof(int32_t);
    if ((int64_t)b->B * b->S != s->rows)
        return fail(NJ_E_ARG, "a batch has %d x %d rows; the engine was opened for %d", b->B, b->S,
                    s->rows);
    const int rc = check_ids(s, b->ids);
    if (rc != 0)
        return rc;
    memcpy(out->ids, b->ids, bytes);
    memcpy(out->pos, b->pos, bytes);
    memcpy(out->doc_start, b->doc_start, bytes);
    if (s->teacher_apart) {
        memcpy(out->teacher_ids, b->teacher_ids ? b->teacher_ids : b->ids, bytes);
        memcpy(out->teacher_pos, b->teacher_ids ? b->teacher_pos : b->pos, bytes);
        memcpy(out->teacher_doc_start, b->teacher_ids ? b->teacher_doc_start : b->doc_start, bytes);
    }
    sort_ids(b->ids, s->rows, out->order, out->runs, scratch);
    return compact(s, b, out);
}

static struct rows host_rows(const struct engine *e, int slot)
{
    struct rows rows;
    struct carve c = {.base = e->mem.batches + (size_t)slot * e->mem.rows_bytes};
    const struct shape *s = &e->shape;
    rows_carve(s->rows, s->padded, s->teacher_apart, s->answers, &c, &rows);
    return rows;
}

int stage_next(struct engine *e, struct data *d, int micro, int slot)
{
    struct batch b;
    int rc = data_next(d, &b);
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

int stage_agree(struct engine *e, struct data *d, int rc)
{
    rc = data_agree(d, rc);
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
    int rc = check_positions(s, b);
    if (rc == 0)
        rc = check_ids(s, b->ids);
    for (int i = 0; rc == 0 && b->target && i < b->count; i++)
        rc = check_target(s, b->target[i], b->at[i]);
    if (rc != 0)
        return rc;
    memcpy(rows.ids, b->ids, bytes);
    memcpy(rows.pos, b->pos, bytes);
    memcpy(rows.doc_start, b->doc_start, bytes);
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

int send_pass(struct engine *e, int slot)
{
    const size_t count = (size_t)e->shape.rows;
    const struct rows *to = &e->teacher.rows;
    int rc = 0;
    for (int i = 0; rc == 0 && i < e->teacher.batches; i++) {
        const struct rows staged = host_rows(e, slot + i), from = rows_of_teacher(&staged);
        const struct {
            int32_t *to, *from;
        } array[] = {{to->ids, from.ids}, {to->pos, from.pos}, {to->doc_start, from.doc_start}};
        for (int a = 0; rc == 0 && a < 3; a++)
            rc = nj_copy(e->stream, array[a].to + (size_t)i * count, array[a].from,
                         count * sizeof(int32_t));
    }
    return rc;
}

int send_batch(struct engine *e, int slot)
{
    return nj_copy(e->stream, e->mem.rows.ids, e->mem.batches + (size_t)slot * e->mem.rows_bytes,
                   e->mem.rows_bytes);
}
