/* SPDX-License-Identifier: Apache-2.0
 *
 * answers.c: see answers.h. The last token of an answer is a target only, so an answer with its prompt takes one
 * position fewer than it has tokens.
 */
#include "batch/answers.h"

#include "base/integers.h"
#include "base/try.h"
#include "batch/packing.h"
#include "io/error.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int32_t inputs_of(const struct answer *a)
{
    return int_max(a->prompt_count, a->teacher_count) + a->generated_count - 1;
}

/* Put a prompt from position `at` on, then the answer without its last token; the rest up to `end` is padding, as a
 * separate document. */
static void put_text(const int32_t *prompt, int count, const struct answer *a, int32_t *ids,
                     int32_t *pos, int32_t *doc_start, int at, int end)
{
    const int inputs = count + a->generated_count - 1;
    for (int i = 0; at + i < end; i++) {
        const bool filled = i < inputs;
        ids[at + i] = !filled ? 0 : i < count ? prompt[i] : a->generated[i - count];
        pos[at + i] = filled ? i : i - inputs;
        doc_start[at + i] = filled ? at : at + inputs;
    }
}

static void put_answer(const struct answer *a, const struct batch *b, int row, int at)
{
    const size_t first = (size_t)row * (size_t)b->S;
    const int end = at + inputs_of(a), ahead = a->teacher_count - a->prompt_count;
    put_text(a->prompt, a->prompt_count, a, b->ids + first, b->pos + first, b->doc_start + first,
             at, end);
    put_text(a->teacher, a->teacher_count, a, b->teacher_ids + first, b->teacher_pos + first,
             b->teacher_doc_start + first, at, end);
    for (int i = at; i < end; i++) {
        const int generated = i - at + 1 - a->prompt_count;
        const bool loss = generated >= 0 && generated < a->generated_count;
        b->target[first + (size_t)i] = loss ? a->generated[generated] : IGNORED;
        b->teacher_at[first + (size_t)i] = loss ? i + ahead : i;
    }
}

static int put_rows(const struct answer *answers, const struct packed *p, struct batch *out)
{
    TRY(batch_allocate(out, (int)p->rows, p->S, ANSWER_ARRAYS));
    for (int row = 0; row < out->B; row++) {
        int at = 0;
        for (int i = 0; i < packed_pieces(p, row); i++) {
            const struct answer *a = &answers[packed_piece(p, row, i).first];
            put_answer(a, out, row, at);
            at += inputs_of(a);
            out->valid += a->generated_count;
        }
        batch_pad_row(out, row, at);
    }
    return 0;
}

int answer_rows_make(const struct answer *answers, size_t count, int S, struct batch *out)
{
    struct packed p = {0};
    int32_t *inputs = malloc((count + 1) * sizeof *inputs);
    int rc = inputs ? 0 : fail(NJ_E_NOMEM, "out of memory for %zu answers", count);
    *out = (struct batch){.S = S};
    for (size_t i = 0; rc == 0 && i < count; i++) {
        inputs[i] = inputs_of(&answers[i]);
        if (inputs[i] > S)
            rc = fail(NJ_E_ARG, "a prompt and its answer have %d tokens, more than --seq-len %d",
                      inputs[i] + 1, S);
    }
    if (rc == 0)
        rc = packed_lengths(inputs, count, S, &p);
    if (rc == 0)
        rc = put_rows(answers, &p, out);
    packed_free(&p);
    free(inputs);
    return rc;
}
