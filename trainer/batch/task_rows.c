/* SPDX-License-Identifier: Apache-2.0
 *
 * task_rows.c: see task_rows.h. Neighboring choices that differ in their last token alone share a text, as in
 * lm-evaluation-harness: the logits behind it score all of them.
 */
#include "batch/task_rows.h"

#include "base/try.h"
#include "batch/packing.h"
#include "data/pool.h"
#include "io/error.h"

#include <stdlib.h>
#include <string.h>

/* A context with a choice without its last token, which several choices may share. */
struct text {
    int64_t item, choice; /* item and first choice */
    int32_t choices, inputs;
};

struct task_rows {
    const struct tasks *tasks;
    struct pool text; /* texts (struct text) */
    struct packed packed;
    int limit;
    int64_t cut;
};

/* ---- texts ---- */

static int inputs_of(const struct task_rows *r, const struct task_item *it,
                     const struct task_choice *c)
{
    const int all = it->count + c->count - 1;
    return all < r->limit ? all : r->limit;
}

/* Return whether a choice has the same tokens as the one before it, except for the last. A text has no more targets
 * than positions, and so has a batch. */
static bool shares_text(const struct text *last, const struct task_choice *c,
                        const struct task_choice *before)
{
    return c->count == before->count && (int64_t)(last->choices + 1) * c->count <= last->inputs &&
           memcmp(c->ids, before->ids, (size_t)(c->count - 1) * sizeof *c->ids) == 0;
}

static int add_choice(struct task_rows *r, int64_t item, const struct task_item *it, int number)
{
    struct task_choice c, before;
    struct text *last = number > 0 ? (struct text *)r->text.at + r->text.count - 1 : NULL;
    tasks_choice(r->tasks, it->choice + number, &c);
    if (c.count > r->limit)
        return fail(NJ_E_FORMAT,
                    "%s:%ld: choice %d has %d tokens, and a sequence has %d; raise --seq-len, "
                    "within what the model takes",
                    it->path, it->line, number, c.count, r->limit);
    const struct text text = {item, it->choice + number, 1, inputs_of(r, it, &c)};
    r->cut += it->count + c.count - 1 > r->limit;
    if (last)
        tasks_choice(r->tasks, it->choice + number - 1, &before);
    if (last && shares_text(last, &c, &before))
        last->choices++;
    else if (!pool_add(&r->text, &text, 1, sizeof text))
        return fail(NJ_E_NOMEM, "out of memory for the choices of %s", it->path);
    return 0;
}

static int add_texts(struct task_rows *r)
{
    for (int64_t i = 0; i < tasks_count(r->tasks); i++) {
        struct task_item it;
        tasks_get(r->tasks, i, &it);
        for (int n = 0; n < it.choices; n++)
            TRY(add_choice(r, i, &it, n));
    }
    return 0;
}

/* ---- rows ---- */

static int row_length(const int32_t *inputs, size_t count, int length)
{
    int64_t total = 0;
    int longest = 1;
    for (size_t i = 0; i < count; i++) {
        longest = inputs[i] > longest ? inputs[i] : longest;
        total += inputs[i];
    }
    length = total < length ? (int)total : length;
    return length > longest ? length : longest;
}

static int pack(struct task_rows *r, int length)
{
    const struct text *text = r->text.at;
    int32_t *inputs = malloc((r->text.count + 1) * sizeof *inputs);
    if (!inputs)
        return fail(NJ_E_NOMEM, "out of memory for %zu texts", r->text.count);
    for (size_t i = 0; i < r->text.count; i++)
        inputs[i] = text[i].inputs;
    const int rc = packed_lengths(inputs, r->text.count, row_length(inputs, r->text.count, length),
                                  &r->packed);
    free(inputs);
    return rc;
}

int task_rows_make(const struct tasks *t, int limit, int length, struct task_rows **out)
{
    struct task_rows *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r)
        return fail(NJ_E_NOMEM, "out of memory");
    r->tasks = t;
    r->limit = limit;
    int rc = add_texts(r);
    if (rc == 0)
        rc = pack(r, length);
    if (rc != 0)
        task_rows_free(r);
    else
        *out = r;
    return rc;
}

void task_rows_free(struct task_rows *r)
{
    if (!r)
        return;
    packed_free(&r->packed);
    free(r->text.at);
    free(r);
}

int task_rows_length(const struct task_rows *r)
{
    return r->packed.S;
}

int64_t task_rows_count(const struct task_rows *r)
{
    return r->packed.rows;
}

int64_t task_rows_cut(const struct task_rows *r)
{
    return r->cut;
}

/* ---- batches ---- */

int task_batch_open(const struct task_rows *r, int B, struct task_batch *out)
{
    const size_t n = (size_t)B * (size_t)r->packed.S;
    *out = (struct task_batch){0};
    TRY(batch_allocate(&out->text, B, r->packed.S, USE_FORWARD));
    out->at = malloc(n * sizeof *out->at);
    out->next = malloc(n * sizeof *out->next);
    out->owner = malloc(n * sizeof *out->owner);
    if (!out->at || !out->next || !out->owner)
        return fail(NJ_E_NOMEM, "out of memory for a batch of %zu positions", n);
    return 0;
}

void task_batch_close(struct task_batch *b)
{
    batch_free(&b->text);
    free(b->at);
    free(b->next);
    free(b->owner);
    *b = (struct task_batch){0};
}

/* Put the tokens of its choices as targets; end: the position after the text. */
static void put_targets(const struct tasks *tasks, const struct text *t, int end,
                        struct task_batch *b)
{
    for (int64_t k = t->choice; k < t->choice + t->choices; k++) {
        struct task_choice c;
        tasks_choice(tasks, k, &c);
        for (int i = 0; i < c.count; i++) {
            b->at[b->count] = end - c.count + i;
            b->next[b->count] = c.ids[i];
            b->owner[b->count++] = k;
        }
    }
}

/* Put a text into row `row` of the batch, from position `at` on. */
static void put_text(const struct tasks *tasks, const struct text *t, int row, int at,
                     struct task_batch *b)
{
    const int first = row * b->text.S + at;
    struct task_item it;
    struct task_choice c;
    tasks_get(tasks, t->item, &it);
    tasks_choice(tasks, t->choice, &c);
    const int cut = it.count + c.count - 1 - t->inputs;
    for (int i = 0; i < t->inputs; i++) {
        const int from = cut + i;
        b->text.ids[first + i] = from < it.count ? it.ids[from] : c.ids[from - it.count];
        b->text.pos[first + i] = i;
        b->text.doc_start[first + i] = at;
    }
    put_targets(tasks, t, first + t->inputs, b);
}

void task_batch_fill(const struct task_rows *r, int64_t first, struct task_batch *b)
{
    const struct text *text = r->text.at;
    b->count = 0;
    b->choices = 0;
    for (int row = 0; row < b->text.B; row++) {
        const int64_t number = first + row;
        const int pieces = number < r->packed.rows ? packed_pieces(&r->packed, number) : 0;
        int at = 0;
        for (int i = 0; i < pieces; i++) {
            const struct text *t = &text[packed_piece(&r->packed, number, i).first];
            put_text(r->tasks, t, row, at, b);
            at += t->inputs;
            b->choices += t->choices;
        }
        batch_pad_row(&b->text, row, at);
    }
}
