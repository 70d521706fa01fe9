/* SPDX-License-Identifier: Apache-2.0
 *
 * answers.c: see answers.h. The last token of an answer is a target only, so an answer with its prompt takes one
 * position less than it has tokens.
 */
#include "batch/answers.h"

#include "base/integers.h"
#include "batch/data.h"
#include "batch/packing.h"
#include "io/error.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int32_t inputs_of(const struct answer *a)
{
    return int_max(a->prompt_count, a->teacher_count) + a->said_count - 1;
}

/* A prompt, from position `at` on, then the answer but its last token; to `end` a document that nobody reads. */
static void put_text(const int32_t *prompt, int count, const struct answer *a, int32_t *ids,
                     int32_t *pos, int32_t *doc_start, int at, int end)
{
    const int inputs = count + a->said_count - 1;
    for (int i = 0; at + i < end; i++) {
        const bool filled = i < inputs;
        ids[at + i] = !filled ? 0 : i < count ? prompt[i] : a->said[i - count];
        pos[at + i] = filled ? i : i - inputs;
        doc_start[at + i] = filled ? at : at + inputs;
    }
}

static void put_answer(const struct answer *a, int32_t *row, size_t n, int at)
{
    int32_t *target = row + ROW_TARGET * n, *teacher_at = row + ROW_TEACHER_AT * n;
    const int end = at + inputs_of(a), ahead = a->teacher_count - a->prompt_count;
    put_text(a->prompt, a->prompt_count, a, row, row + ROW_POS * n, row + ROW_DOC_START * n, at,
             end);
    put_text(a->teacher, a->teacher_count, a, row + ROW_TEACHER_IDS * n, row + ROW_TEACHER_POS * n,
             row + ROW_TEACHER_DOC_START * n, at, end);
    for (int i = at; i < end; i++) {
        const int said = i - at + 1 - a->prompt_count;
        const bool loss = said >= 0 && said < a->said_count;
        target[i] = loss ? a->said[said] : IGNORED;
        teacher_at[i] = loss ? i + ahead : i;
    }
}

void row_put_padding(int32_t *row, size_t n, int at, int S)
{
    for (int i = at; i < S; i++) {
        row[i] = 0;
        row[ROW_TARGET * n + (size_t)i] = IGNORED;
        row[ROW_POS * n + (size_t)i] = i - at;
        row[ROW_DOC_START * n + (size_t)i] = at;
    }
}

void row_put_teacher(int32_t *row, size_t n, int S)
{
    const size_t bytes = (size_t)S * sizeof *row;
    memcpy(row + ROW_TEACHER_IDS * n, row + ROW_IDS * n, bytes);
    memcpy(row + ROW_TEACHER_POS * n, row + ROW_POS * n, bytes);
    memcpy(row + ROW_TEACHER_DOC_START * n, row + ROW_DOC_START * n, bytes);
    for (int i = 0; i < S; i++)
        row[ROW_TEACHER_AT * n + (size_t)i] = i;
}

/* The same behind the answers of a row, for both. */
static void end_row(int32_t *row, size_t n, int at, int S)
{
    row_put_padding(row, n, at, S);
    for (int i = at; i < S; i++) {
        row[ROW_TEACHER_IDS * n + (size_t)i] = 0;
        row[ROW_TEACHER_POS * n + (size_t)i] = i - at;
        row[ROW_TEACHER_DOC_START * n + (size_t)i] = at;
        row[ROW_TEACHER_AT * n + (size_t)i] = i;
    }
}

static int put_rows(const struct answer *answers, const struct packed *p, struct answer_rows *out)
{
    const size_t n = (size_t)p->rows * (size_t)p->S;
    out->rows = p->rows;
    out->arrays = malloc(ROW_ARRAYS * n * sizeof *out->arrays);
    if (!out->arrays)
        return fail(NJ_E_NOMEM, "out of memory for %lld rows of answers", (long long)p->rows);
    for (int64_t row = 0; row < p->rows; row++) {
        int32_t *first = out->arrays + (size_t)row * (size_t)p->S;
        int at = 0;
        for (int i = 0; i < packed_pieces(p, row); i++) {
            const struct answer *a = &answers[packed_piece(p, row, i).first];
            put_answer(a, first, n, at);
            at += inputs_of(a);
            out->valid += a->said_count;
        }
        end_row(first, n, at, p->S);
    }
    return 0;
}

int answer_rows_make(const struct answer *answers, size_t count, int S, struct answer_rows *out)
{
    struct packed p = {0};
    int32_t *inputs = malloc((count + 1) * sizeof *inputs);
    int rc = inputs ? 0 : fail(NJ_E_NOMEM, "out of memory for %zu answers", count);
    *out = (struct answer_rows){.S = S};
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

void answer_rows_free(struct answer_rows *a)
{
    free(a->arrays);
    *a = (struct answer_rows){0};
}
