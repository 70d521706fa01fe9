/* SPDX-License-Identifier: Apache-2.0
 *
 * no_memory_answers.h: for test_no_memory.c: prompts; answers as rows, and in a file.
 */
#ifndef NOJIT_TESTS_NO_MEMORY_ANSWERS_H
#define NOJIT_TESTS_NO_MEMORY_ANSWERS_H

#include "batch/answers.h"
#include "batch/prompts.h"
#include "engine_fixture.h"

static int read_prompts(const char *path, const struct tokenizer *t)
{
    const struct prompts_options o = {
        .paths = &path, .path_count = 1, .longest = 64, .vocab_size = t->vocab_size, .seed = 1};
    struct prompts *p;
    const int rc = prompts_open(&o, t, &p);
    prompts_close(p);
    return rc;
}

static int load_answer_rows(void)
{
    static const int32_t ids[] = {1, 2, 3};
    const struct answer answers[] = {{ids, ids, ids, 1, 1, 3}, {ids, ids, ids, 3, 3, 1}};
    struct batch rows;
    const int rc = answer_rows_make(answers, 2, 4, &rows);
    batch_free(&rows);
    return rc;
}

static int load_answers(void)
{
    struct batch rows;
    const int rc = answer_rows_read(path_of("answers.bin"), 4, 2, 4, &rows);
    batch_free(&rows);
    return rc;
}

static void write_answers(void)
{
    static const int32_t ids[] = {1, 2, 3};
    const struct answer answer = {ids, ids, ids, 1, 1, 3};
    struct batch rows;
    ok(answer_rows_make(&answer, 1, 4, &rows));
    ok(answer_rows_write(&rows, path_of("answers.bin")));
    batch_free(&rows);
}

#endif
