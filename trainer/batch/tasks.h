/* SPDX-License-Identifier: Apache-2.0
 *
 * tasks.h: questions of benchmarks from .jsonl files: as ids, in memory.
 */
#ifndef NOJIT_TRAINER_TASKS_H
#define NOJIT_TRAINER_TASKS_H

#include "batch/data.h"

struct tasks_options {
    const char *const *paths; /* as of data_options; what is read of them must be .jsonl */
    size_t path_count;
    int vocab_size; /* ids must lie below it */
};
struct tasks;

enum task_kind {
    TASK_CHOICE, /* which of some continuations is the likeliest */
    TASK_TEXT    /* whether what the model writes is the answer */
};
enum { TASK_KINDS = 2 };

struct task_item { /* owned by tasks, valid until tasks_close() */
    enum task_kind kind;
    int task;           /* its number, for tasks_name() */
    const int32_t *ids; /* the context of the choices, or the prompt; at least one */
    int count;
    int choices, gold;  /* TASK_CHOICE: how many, at least 2, and which is right */
    int64_t choice;     /* the number of the first, for tasks_choice() */
    const char *answer; /* TASK_TEXT; ends with a NUL and may hold others */
    size_t answer_bytes;
    int untils;       /* TASK_TEXT: texts that end what the model writes, for tasks_until() */
    int64_t until;    /* the number of the first */
    int most;         /* TASK_TEXT: max_tokens of the line; 0: it has none */
    const char *id;   /* of the line, as JSON: "a" with its quotes, or 17; NULL: none */
    const char *path; /* where it stands */
    long line;
};
struct task_choice {
    const int32_t *ids; /* what follows the context, at least one */
    int count;
    int characters; /* code points of the choice */
};

/* Reads, encodes and checks everything: docs/tasks.md. Context and choices have the ids that lm-evaluation-harness
 * gives them. Returns NJ_E_FORMAT where there is no item. */
int tasks_open(const struct tasks_options *o, const struct tokenizer *t, struct tasks **out);
void tasks_close(struct tasks *t); /* NULL is fine */
int64_t tasks_count(const struct tasks *t);
/* In the order of the files; i lies below tasks_count(). */
void tasks_get(const struct tasks *t, int64_t i, struct task_item *out);
int64_t tasks_choices(const struct tasks *t); /* of all items */
void tasks_choice(const struct tasks *t, int64_t number, struct task_choice *out);
const char *tasks_until(const struct tasks *t, int64_t number, size_t *bytes);
/* In the order in which they first come. */
int tasks_names(const struct tasks *t);
const char *tasks_name(const struct tasks *t, int task);
const struct passed_over *tasks_passed_over(const struct tasks *t);

#endif
