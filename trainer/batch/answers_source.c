/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_source.c: see answers_source.h. The other source gives one row at a time, and its position is that of both
 * sources.
 */
#include "batch/answers_source.h"

#include "base/try.h"
#include "io/error.h"

#include <stdlib.h>

struct answers_source {
    struct batch_source source;
    struct batch_source *others;
    struct batch batch;
    unsigned uses; /* uses of its arrays (enum array_use) */
    const struct batch *rows;
    const unsigned char *own;
    int64_t count, at; /* number of rows that were put; number of those that have passed */
    int used;          /* number of rows of `rows` that have passed */
};

static struct answers_source *of(struct batch_source *s)
{
    return (struct answers_source *)(void *)s;
}

/* Fill a row with the next answer. Return false if the next row is not an answer. */
static bool put_answer(struct answers_source *a, int row)
{
    if (a->at >= a->count || !a->own[a->at++])
        return false;
    if (a->used == a->rows->B)
        batch_pad_row(&a->batch, row, 0);
    else
        batch_copy_row(&a->batch, row, a->rows, a->used++);
    return true;
}

static int put_other(struct answers_source *a, int row)
{
    struct batch other;
    TRY(batches_next(a->others, &other));
    batch_copy_row(&a->batch, row, &other, 0);
    batch_share_row(&a->batch, row);
    return 0;
}

static int next(struct batch_source *s, struct batch *out)
{
    struct answers_source *a = of(s);
    struct batch *b = &a->batch;
    int rc = 0;
    b->valid = 0;
    for (int row = 0; rc == 0 && row < b->B; row++) {
        b->own[row] = put_answer(a, row);
        if (!b->own[row])
            rc = put_other(a, row);
        if (rc == 0)
            b->valid += batch_row_targets(b, row);
    }
    *out = *b;
    return rc;
}

static void tell(struct batch_source *s, struct data_state *out)
{
    batches_tell(of(s)->others, out);
}

static void seek(struct batch_source *s, const struct data_state *at)
{
    batches_seek(of(s)->others, at);
}

static int resize(struct batch_source *s, int batch_size)
{
    struct answers_source *a = of(s);
    return batch_resize(&a->batch, batch_size, a->batch.S, a->uses);
}

static int64_t rows(struct batch_source *s)
{
    return batches_rows(of(s)->others);
}

static void close_answers(struct batch_source *s)
{
    struct answers_source *a = of(s);
    batch_free(&a->batch);
    batches_close(a->others);
    free(a);
}

static const struct batch_source_ops ops = {
    .next = next,
    .tell = tell,
    .seek = seek,
    .resize = resize,
    .rows = rows,
    .close = close_answers,
};

int answers_source_open(struct batch_source **s, int B, int S, bool teacher_context,
                        struct answers_source **out)
{
    const unsigned uses =
        USE_FORWARD | USE_STEP | USE_ANSWERS | (teacher_context ? USE_TEACHER : 0U);
    struct answers_source *a = calloc(1, sizeof *a);
    *out = NULL;
    if (!a)
        return fail(NJ_E_NOMEM, "out of memory for batches of %d x %d", B, S);
    *a = (struct answers_source){.source = {&ops}, .others = *s, .uses = uses};
    int rc = batches_resize(*s, 1);
    if (rc == 0)
        rc = batch_allocate(&a->batch, B, S, uses);
    if (rc != 0) {
        free(a);
        return rc;
    }
    *s = &a->source;
    *out = a;
    return 0;
}

void answers_source_put(struct answers_source *a, const struct batch *given,
                        const unsigned char *own, int64_t count)
{
    a->rows = given;
    a->own = own;
    a->count = count;
    a->at = a->used = 0;
}
