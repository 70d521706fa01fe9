/* SPDX-License-Identifier: Apache-2.0
 *
 * golden_answers.h: for test_golden.c: the completions of cases.json as the data of a step.
 */
#ifndef NOJIT_TESTS_GOLDEN_ANSWERS_H
#define NOJIT_TESTS_GOLDEN_ANSWERS_H

#include "batch/answers.h"
#include "batch/answers_source.h"
#include "batch/data.h"
#include "engine/engine.h"
#include "unit.h"

#include <jansson.h>

enum { COMPLETIONS = 24, TEXT_MOST = 16, ROWS_MOST = 4 };

static int read_ids(const json_t *entry, const char *name, int32_t *out)
{
    const json_t *ids = json_object_get(entry, name), *id;
    size_t i;
    assert_in_range(json_array_size(ids), 1, TEXT_MOST);
    json_array_foreach(ids, i, id) out[i] = (int32_t)json_integer_value(id);
    return (int)json_array_size(ids);
}

/* Pack the completions into the rows of a step. With `teacher`, the teacher reads other prompts. */
static struct batch_source *open_answers(const json_t *completions, const struct train_options *o,
                                         struct batch *rows, bool teacher)
{
    static int32_t text[COMPLETIONS][3][TEXT_MOST];
    static const unsigned char own[ROWS_MOST] = {1, 1, 1, 1};
    struct answer answers[COMPLETIONS];
    const json_t *entry;
    size_t i;
    struct answers_source *source;
    struct data *none;
    assert_int_equal(json_array_size(completions), COMPLETIONS);
    json_array_foreach(completions, i, entry)
    {
        struct answer *a = &answers[i];
        *a = (struct answer){.prompt = text[i][0], .teacher = text[i][1], .generated = text[i][2]};
        a->prompt_count = read_ids(entry, "prompt", text[i][0]);
        a->teacher_count = read_ids(entry, teacher ? "teacher_prompt" : "prompt", text[i][1]);
        a->generated_count = read_ids(entry, "completion", text[i][2]);
    }
    check_ok(answer_rows_make(answers, COMPLETIONS, o->seq_len, rows), "answers");
    assert_in_range(rows->B, 3, ROWS_MOST); /* several per row, and in both micro-batches */
    check_ok(data_none(o->seq_len, &none), "answers");
    struct batch_source *batches = data_batches(none);
    check_ok(answers_source_open(&batches, o->batch_size, o->seq_len, teacher, &source), "answers");
    answers_source_put(source, rows, own, ROWS_MOST);
    return batches;
}

#endif
