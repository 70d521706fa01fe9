/* SPDX-License-Identifier: Apache-2.0
 *
 * task_fixture.h: small tasks, for tests that read them repeatedly.
 */
#ifndef NOJIT_TESTS_TASK_FIXTURE_H
#define NOJIT_TESTS_TASK_FIXTURE_H

#include "batch/task_rows.h"

/* One item of each kind. */
#define TASK_LINES                                                                                 \
    "{\"context\":\"caf\u00e9 \",\"choices\":[\"one\",\"two\"],\"answer\":\"two\",\"id\":1}\n"     \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"one\"}],\"answer\":\"two\","                  \
    "\"until\":[\"a\",\"b\"],\"task\":\"t\"}\n"

/* Read the tasks of a file and make rows and a batch from them. */
static inline int read_tasks(const char *path, const struct tokenizer *t)
{
    const struct tasks_options o = {.paths = &path, .path_count = 1, .vocab_size = t->vocab_size};
    struct tasks *tasks;
    struct task_rows *rows = NULL;
    struct task_batch b = {0};
    int rc = tasks_open(&o, t, &tasks);
    if (!rc)
        rc = task_rows_make(tasks, 64, 16, &rows);
    if (!rc)
        rc = task_batch_open(rows, 2, &b);
    task_batch_close(&b);
    task_rows_free(rows);
    tasks_close(tasks);
    return rc;
}

#endif
