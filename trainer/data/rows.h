/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.h: inside of jsonl.c and prompts.c: what a row of a data set means. A row is a JSON object, whatever file it
 * comes from; a shape (row_shapes.c) says which of its columns count, and messages (row_messages.c) become a list in
 * which nothing has two names.
 */
#ifndef NOJIT_TRAINER_ROWS_H
#define NOJIT_TRAINER_ROWS_H

#include "data/jsonl.h"

enum row_form { ROW_TEXT, ROW_PAIR, ROW_CHAT };

struct row {
    enum row_form form;
    json_t *text, *prompt, *completion; /* strings; the row's, as are messages */
    json_t *messages;
};

/* Finds the shape of a row and reads it; row_free() in each case. */
int row_read(struct reader *r, json_t *object, struct row *out);
void row_free(struct row *row);
/* The column that --fields names for `name`, or `name`. */
const char *row_column(const struct row_rules *rules, const char *name, size_t *bytes);
/* Columns beside a conversation that its chat template reads, or that are refused with it. */
enum { ROW_BESIDE = 3 };
extern const char *const row_beside[ROW_BESIDE];
bool row_is_beside(const char *name);

/* Names that --fields may give columns to. */
struct row_names {
    const char *const *at;
    size_t count;
    const char *advice; /* "text, messages or ..., for example ..." */
};
/* Refuses what --fields cannot mean; the second: of training data. */
int row_fields_check(const struct row_rules *rules, const struct row_names *names);
int row_rules_check(const struct row_rules *rules);
/* Whether a row of training data is read from this column; NULL rules: --fields is absent. */
bool row_reads(const struct row_rules *rules, const char *column);

/* Remembers a column that is not read. */
void row_note(struct row_notes *n, const char *column);

/* Makes of a list of messages, in any of the known spellings, one of {role, content} with, where the list says it,
 * weight (1: the turn is trained, 0: it is not), and with fields of other names as they are. name: the column's. */
int messages_read(const struct reader *r, const json_t *list, const char *name, json_t **out);
/* Whether a field says anything: other projects write null, [], {} or "" for what is absent. */
bool row_gives(const json_t *value);
/* jsonl_add_question() of a list in any spelling. */
int row_add_question(struct reader *r, const json_t *object, const json_t *list, const char *name);

#endif
