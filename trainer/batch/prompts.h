/* SPDX-License-Identifier: Apache-2.0
 *
 * prompts.h: prompts from .jsonl files, which a model continues: as ids, in memory.
 */
#ifndef NOJIT_TRAINER_PROMPTS_H
#define NOJIT_TRAINER_PROMPTS_H

#include <jansson.h>

#include "batch/data.h"

struct prompts_options {
    const char *const *paths; /* as of data_options; what is read of them must be .jsonl */
    size_t path_count;
    int longest; /* tokens of a prompt; a line with a longer one is dropped; 0: any length */
    int teacher_longest; /* the same of what the teacher reads; 0: any length */
    /* Tokens of a prompt with its answer at most, of `most` tokens where the line does not say it; 0: any length. A
     * longer one is refused, by its line. */
    int room, most;
    const char *room_name; /* whose limit that is: "--seq-len" */
    bool skip_unusable;    /* leave out and count what would be refused */
    /* Of lines without teacher_prompt, where it is not NULL: what the teacher reads before the prompt; as a system
     * message before the others, in place of one that is there, where the prompt is a conversation */
    const char *teacher_context;
    const char *const *fields; /* words of --fields: "prompt=question,id=key" */
    size_t field_count;
    int vocab_size; /* ids must lie below it */
    uint64_t seed;  /* order of the prompts; 0 keeps the order of the files */
};
struct prompts; /* shuffled by seed anew each epoch */

struct prompt { /* owned by prompts, valid until prompts_close() */
    const int32_t *ids;
    size_t count; /* at least 1 */
    const int32_t *
        teacher_ids; /* what the teacher reads in their place: teacher_prompt of the line, or `ids` */
    size_t teacher_count;
    const char *id; /* of the line, as JSON: "a" with its quotes, or 17; NULL: none */
    int most;       /* tokens of an answer, as the line has it: max_tokens; 0: it does not */
    int64_t index;  /* its place in the order of the files, those that are left out counted */
};

/* Reads, encodes and checks everything. A prompt is, of a line of JSON:
 *   messages, or prompt where it is a list: the conversation up to the last turn of a user, and what the model's chat
 *     template writes before the assistant's next one;
 *   prompt: a text, after the token that begins texts.
 * teacher_prompt, a text or a list, is a prompt of the same kinds. Returns NJ_E_FORMAT where no prompt remains. */
int prompts_open(const struct prompts_options *o, const struct tokenizer *t, struct prompts **out);
void prompts_close(struct prompts *p); /* NULL is fine */
int64_t prompts_count(const struct prompts *p);
/* The i-th of an epoch; i lies below prompts_count(). */
void prompts_get(const struct prompts *p, uint64_t epoch, int64_t i, struct prompt *out);
/* Lines whose prompt was too long. */
int64_t prompts_dropped(const struct prompts *p);
/* Tokens of the longest that remain. */
int prompts_longest(const struct prompts *p);
int prompts_teacher_longest(const struct prompts *p);
/* Whether the teacher reads something else anywhere. */
bool prompts_teacher_apart(const struct prompts *p);
/* Of the longest with its answer, of `most` tokens where the line does not say it. */
int64_t prompts_longest_text(const struct prompts *p, int64_t most);
/* Rows that were read, and those that could not be used. */
const struct row_notes *prompts_notes(const struct prompts *p);
const struct passed_over *prompts_passed_over(const struct prompts *p);
/* Whether a prompt is a conversation. */
bool prompts_chats(const struct prompts *p);
/* Over all ids, and where each prompt ends. */
uint64_t prompts_hash(const struct prompts *p);

/* Renders a conversation, a list of {role, content} that ends with a user's, up to where the assistant begins, and
 * encodes it. *ids is malloc()'d, NULL on failure. */
int prompt_of_messages(const struct tokenizer *t, json_t *messages, int32_t **ids, size_t *count);
/* Appends a turn to such a list; false without memory. */
bool messages_add(json_t *messages, const char *role, json_t *content);
/* The ids of a conversation in which a user says `text`, after a system message (NULL: the template's own, if it has
 * one), and the assistant is next. *ids is malloc()'d, NULL on failure. */
int prompt_of_chat(const struct tokenizer *t, const char *system, const char *text, int32_t **ids,
                   size_t *count);
/* Finds the token that ends the assistant's turn as the model's chat template writes it; -1: a token does not, or a
 * model has no conversations. */
int chat_turn_end(const struct tokenizer *t, int32_t *id);

#endif
