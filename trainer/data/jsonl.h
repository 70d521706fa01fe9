/* SPDX-License-Identifier: Apache-2.0
 *
 * jsonl.h: inside of jsonl.c and prompts.c: the rows of a file (rows_read.c, jsonl_lines.c), the parts of text that
 * each is made into (jsonl_parts.c), and how a conversation becomes them: its messages (messages.c), what of its text
 * the assistant says (turns.c), the part (conversation.c), and the ids of that which have a loss (marked.c).
 */
#ifndef NOJIT_TRAINER_JSONL_H
#define NOJIT_TRAINER_JSONL_H

#include "data/pool.h"
#include "data/token_files.h"
#include "template/template.h"
#include "text/chat.h"

#include <jansson.h>

struct span;

/* A stretch of a document, or a prompt. */
struct part {
    size_t begin, end;                 /* in reader.text */
    bool loss, starts, ends, end_loss; /* starts, ends: a document; end_loss: end of text has one */
    bool follows;                      /* it goes on behind the part before it */
    bool rendered;      /* by a chat template, which has written all tokens but the last */
    size_t span, spans; /* of it: stretches that have a loss, in reader.spans */
};

/* A conversation as its template takes it. */
struct messages {
    json_t *variables; /* messages, tools and all others */
    json_t *list;      /* all messages */
    bool *loss;        /* of each message: it is the assistant's, and trained on */
    const struct template *template;
};

struct reader {
    struct segment *segment;
    const struct tokenizer *tokenizer;
    struct chat chat; /* found when the first conversation comes */
    bool chatless;    /* jsonl_chats() has found that conversations have no form */
    struct pool spans;
    struct template_text written[3]; /* by the template: all of a conversation, and parts of it */
    bool mended;                     /* a number of the line was too large, and has become [0] */
    long line;                       /* or row */
    bool row_fault;                  /* what failed is this row alone */
    bool begun;                      /* the document has its first id, and no other */
    char *text;                      /* of the parts, one after the other */
    size_t bytes, capacity;
    struct part *part;
    size_t parts, part_capacity;
    size_t told;             /* bytes of the file that were said to be encoded */
    struct parquet *parquet; /* the rows' file; NULL: they are lines */
    /* Whether a column is read; NULL: all are. */
    bool (*reads)(const struct reader *r, const char *column);
    /* Adds the parts of a row. */
    int (*object)(struct reader *r, json_t *object);
    /* Takes the ids of a part; all parts come, in their order, if not at once. */
    int (*store)(struct reader *r, const struct part *p, const struct span *ids);
    void *user;
};

/* Reads all rows of the segment's file, which is open, and frees what r owns. */
int rows_read(struct reader *r);
/* Reads all rows of the file at path; rules and notes are those of its segment, or NULL. */
int rows_read_file(struct reader *r, char *path, const struct row_rules *rules,
                   struct row_notes *notes);
/* Encodes the parts that there are where their texts fill a batch. For a reader whose rows can all be used: not one of
 * a row that may yet be refused. */
int rows_encode_full(struct reader *r);
/* Reads the next line as an object; NULL where there is none. */
int jsonl_next(struct reader *r, json_t **out);
/* The id of a line, if it has one, as JSON. */
int jsonl_read_id(struct reader *r, const json_t *object, struct pool *to, struct stretch *out);

/* Refuses the line. */
int jsonl_bad_line(const struct reader *r, const char *what);
int jsonl_no_memory(const struct reader *r);
int jsonl_add_text(struct reader *r, const char *text, size_t bytes);
/* Ends the part that began at `begin`. */
int jsonl_add_part(struct reader *r, size_t begin, bool loss);
/* A part that is this string. */
int jsonl_add_value(struct reader *r, const json_t *value, bool loss);
/* Whether the model's conversations have a form: that of its chat template, or of its tokens. */
int jsonl_chats(struct reader *r, bool *chats);
/* Adds the part of a conversation of the object, written by the model's chat template: a list of {role, content} in
 * which weight, if it is there, says whether the turn is trained; without it the assistant's are. */
int jsonl_add_messages(struct reader *r, const json_t *object, const json_t *messages);
/* Adds one part: the turns but for answers at their end, and what the template writes before an answer. */
int jsonl_add_question(struct reader *r, const json_t *object, const json_t *messages);
/* Frees what rendering needed. */
void jsonl_free_chat(struct reader *r);

/* Makes the variables of the first `count` messages of an object (or NULL), with what the line has beside them. */
int messages_make(struct reader *r, const json_t *object, const json_t *messages, size_t count,
                  struct messages *out);
void messages_free(struct messages *m);
/* Renders the first `count` of them; prompt: with what the template writes before an answer. */
int messages_render(const struct messages *m, size_t count, bool prompt, struct template_text *out);

/* Finds what the assistant says in the text of the whole conversation, r->written[0], and adds the stretches to
 * r->spans, as bytes of that text. */
int turns_find(struct reader *r, const struct messages *m);

/* Appends the ids of a rendered part, with a loss where they touch its stretches. */
int marked_add(struct reader *r, const struct part *p, const struct span *ids);

#endif
