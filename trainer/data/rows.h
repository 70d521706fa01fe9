/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.h: inside of jsonl.c and prompts.c: the meaning of a row of a data set. A row is a JSON object, whatever file it
 * comes from; a shape (row_shapes.c) says which of its columns count, and messages (row_messages.c) become a list in
 * which nothing has two names.
 */
#ifndef NOJIT_TRAINER_DATA_ROWS_H
#define NOJIT_TRAINER_DATA_ROWS_H

#include "data/jsonl.h"

enum row_form { ROW_TEXT, ROW_PAIR, ROW_CHAT };

struct row {
    enum row_form form;
    json_t *text, *prompt, *completion; /* strings, owned by the row, as are messages */
    json_t *messages;
};

/* Find the shape of a row and read it; row_free() is needed in each case. */
int row_read(struct reader *r, json_t *object, struct row *out);
void row_free(struct row *row);
/* Return the column that --fields names for `name`, or `name`. */
const char *row_column(const struct row_rules *rules, const char *name, size_t *bytes);
/* Columns next to a conversation that its chat template reads, or that are refused with it. */
enum { ROW_BESIDE = 3 };
extern const char *const row_beside[ROW_BESIDE];
bool row_is_beside(const char *name);

/* Names that --fields may give columns to. */
struct row_names {
    const char *const *at;
    size_t count;
    const char *advice; /* "text, messages or ..., for example ..." */
};
/* Refuse --fields with an impossible meaning; the second function does it for training data. */
int row_fields_check(const struct row_rules *rules, const struct row_names *names);
int row_rules_check(const struct row_rules *rules);
/* Return whether this column is read from rows of training data; NULL rules: --fields is absent. */
bool row_reads(const struct row_rules *rules, const char *column);

/* Remember a column that is not read. */
void row_note(struct row_notes *n, const char *column);

/* Make from a list of messages, in any of the known spellings, a list of {role, content} with weight (1: the turn is
 * trained, 0: it is not) where the list says it, and with all other fields unchanged. name: the column's name. */
int messages_read(const struct reader *r, const json_t *list, const char *name, json_t **out);
/* Return whether a field says anything: other projects write null, [], {} or "" for an absent value. */
bool row_gives(const json_t *value);
/* Call jsonl_add_question() for a list in any spelling. */
int row_add_question(struct reader *r, const json_t *object, const json_t *list, const char *name);

#endif
