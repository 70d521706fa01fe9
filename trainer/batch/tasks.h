/* SPDX-License-Identifier: Apache-2.0
 *
 * tasks.h: questions of benchmarks from .jsonl files, as ids in memory.
 */
#ifndef NOJIT_TRAINER_TASKS_H
#define NOJIT_TRAINER_TASKS_H

#include "batch/data.h"

struct tasks_options {
    const char *const *paths; /* paths as in data_options; all data among them must be .jsonl */
    size_t path_count;
    int vocab_size; /* number of ids; all must be below it */
};
struct tasks;

enum task_kind {
    TASK_CHOICE, /* the likeliest of some continuations is asked for */
    TASK_TEXT    /* the text that the model writes is compared with the answer */
};
enum { TASK_KINDS = 2 };

struct task_item { /* owned by tasks, valid until tasks_close() */
    enum task_kind kind;
    int task;           /* number of the task, for tasks_name() */
    const int32_t *ids; /* ids of the context of the choices, or of the prompt; at least one */
    int count;
    int choices, gold;  /* TASK_CHOICE: number of choices, at least 2, and the right one */
    int64_t choice;     /* number of the first choice, for tasks_choice() */
    const char *answer; /* TASK_TEXT: answer, which ends with a NUL and may hold others */
    size_t answer_bytes;
    int untils;       /* TASK_TEXT: number of texts that end the model's text, for tasks_until() */
    int64_t until;    /* number of the first of these texts */
    int most;         /* TASK_TEXT: max_tokens of the line; 0: it has none */
    const char *id;   /* id of the line, as JSON: "a" with its quotes, or 17; NULL: none */
    const char *path; /* file of the line */
    long line;
};
struct task_choice {
    const int32_t *ids; /* ids that follow the context, at least one */
    int count;
    int characters; /* number of code points of the choice */
};

/* Read, encode and check everything: docs/tasks.md. Context and choices have the ids that lm-evaluation-harness gives
 * them. Return NJ_E_FORMAT where there is no item. */
int tasks_open(const struct tasks_options *o, const struct tokenizer *t, struct tasks **out);
void tasks_close(struct tasks *t); /* NULL is allowed */
int64_t tasks_count(const struct tasks *t);
/* Get the i-th item in the order of the files; i is below tasks_count(). */
void tasks_get(const struct tasks *t, int64_t i, struct task_item *out);
int64_t tasks_choices(const struct tasks *t); /* number of choices of all items */
void tasks_choice(const struct tasks *t, int64_t number, struct task_choice *out);
const char *tasks_until(const struct tasks *t, int64_t number, size_t *bytes);
/* Return the number of tasks, which are in the order of their first items. */
int tasks_names(const struct tasks *t);
const char *tasks_name(const struct tasks *t, int task);
const struct passed_over *tasks_passed_over(const struct tasks *t);

#endif
