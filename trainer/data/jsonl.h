/* SPDX-License-Identifier: Apache-2.0
 *
 * jsonl.h: inside of jsonl.c and prompts.c: the rows of a file (rows_read.c), its lines and the parts of text that each
 * row becomes (jsonl_lines.c), and how a conversation becomes parts: its messages (messages.c), the stretches of its
 * text that the assistant says (turns.c), the part (conversation.c), and the ids of that part that have a loss
 * (marked.c).
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
    size_t begin, end; /* offsets in reader.text */
    /* starts, ends: it starts or ends a document; end_loss: its end of text has a loss */
    bool loss, starts, ends, end_loss;
    bool follows; /* whether it continues the part before it */
    /* whether a chat template made it, which has written all tokens but the last */
    bool rendered;
    size_t span, spans; /* its stretches that have a loss, in reader.spans */
};

/* A conversation in the form that its template takes. */
struct messages {
    json_t *variables; /* variables of the template: messages, tools and all others */
    json_t *list;      /* list of all messages */
    bool *loss;        /* whether each message is the assistant's and trained on */
    const struct template *template;
};

struct reader {
    struct segment *segment;
    const struct tokenizer *tokenizer;
    struct chat chat; /* chat template, found when the first conversation comes */
    /* whether jsonl_chats() has found that the model has no form for conversations */
    bool chatless;
    struct pool spans;
    /* texts that the template wrote: the whole conversation, and parts of it */
    struct template_text written[3];
    bool mended;    /* whether a number of the line was too large and has become [0] */
    long line;      /* number of the line or row */
    bool row_fault; /* whether this row alone has failed */
    bool begun;     /* whether the document has its first id and no other */
    char *text;     /* texts of the parts, one after the other */
    size_t bytes, capacity;
    struct part *part;
    size_t parts, part_capacity;
    size_t told;             /* number of bytes of the file that were reported as encoded */
    struct parquet *parquet; /* Parquet file that the rows come from; NULL: the rows are lines */
    /* Return whether a column is read; NULL: all are. */
    bool (*reads)(const struct reader *r, const char *column);
    /* Add the parts of a row. */
    int (*object)(struct reader *r, json_t *object);
    /* Take the ids of a part; all parts come, in their order, though not all at once. */
    int (*store)(struct reader *r, const struct part *p, const struct span *ids);
    void *user;
};

/* Read all rows of the segment's file, which is open, and free what r owns. */
int rows_read(struct reader *r);
/* Read all rows of the file at path; rules and notes are those of its segment, or NULL. */
int rows_read_file(struct reader *r, char *path, const struct row_rules *rules,
                   struct row_notes *notes);
/* Encode the parts so far if their texts fill a batch. Only for a reader whose rows can all be used: a row that may
 * still be refused must not be encoded. */
int rows_encode_full(struct reader *r);
/* Read the next line as an object; *out is NULL at the end of the file. */
int jsonl_next(struct reader *r, json_t **out);
/* Read the id of a line, as JSON, if it has one. */
int jsonl_read_id(struct reader *r, const json_t *object, struct pool *to, struct stretch *out);

/* Refuse the line. */
int jsonl_bad_line(const struct reader *r, const char *what);
int jsonl_no_memory(const struct reader *r);
int jsonl_add_text(struct reader *r, const char *text, size_t bytes);
/* End the part that began at `begin`. */
int jsonl_add_part(struct reader *r, size_t begin, bool loss);
/* Add a part that is this string. */
int jsonl_add_value(struct reader *r, const json_t *value, bool loss);
/* Find whether the model has a form for conversations: that of its chat template, or of its tokens. */
int jsonl_chats(struct reader *r, bool *chats);
/* Add the part of a conversation of the object, written by the model's chat template: a list of {role, content} in
 * which weight, if present, says whether the turn is trained; without it the assistant's turns are. */
int jsonl_add_messages(struct reader *r, const json_t *object, const json_t *messages);
/* Add one part: the turns without the answers at their end, and the text that the template writes before an answer. */
int jsonl_add_question(struct reader *r, const json_t *object, const json_t *messages);
/* Free the memory that rendering needed. */
void jsonl_free_chat(struct reader *r);

/* Make the variables of the first `count` messages of an object (or NULL), with the other fields of the line. */
int messages_make(struct reader *r, const json_t *object, const json_t *messages, size_t count,
                  struct messages *out);
void messages_free(struct messages *m);
/* Render the first `count` of them; prompt: with the text that the template writes before an answer. */
int messages_render(const struct messages *m, size_t count, bool prompt, struct template_text *out);

/* Find the stretches that the assistant says in the text of the whole conversation, r->written[0], and add them to
 * r->spans, as bytes of that text. */
int turns_find(struct reader *r, const struct messages *m);

/* Append the ids of a rendered part, with a loss where they touch its stretches. */
int marked_add(struct reader *r, const struct part *p, const struct span *ids);

#endif
