/* SPDX-License-Identifier: Apache-2.0
 *
 * prompts.h: prompts from .jsonl files, which a model continues, as ids in memory.
 */
#ifndef NOJIT_TRAINER_PROMPTS_H
#define NOJIT_TRAINER_PROMPTS_H

#include <jansson.h>

#include "batch/data.h"

struct prompts_options {
    const char *const *paths; /* paths as in data_options; all data among them must be .jsonl */
    size_t path_count;
    /* largest number of tokens of a prompt; a line with a longer one is dropped; 0: any length */
    int longest;
    int teacher_longest; /* the same for the teacher's prompt; 0: any length */
    /* Largest number of tokens of a prompt with its answer, which has `most` tokens where the line does not say it; 0:
     * any length. A longer one is refused, by its line. */
    int room, most;
    const char *room_name; /* option that sets the limit: "--seq-len" */
    bool skip_unusable;    /* whether lines that would be refused are left out and counted */
    /* Text that the teacher reads before the prompt of a line without teacher_prompt, or NULL; where the prompt is a
     * conversation, a system message before the others, in place of an existing one. */
    const char *teacher_context;
    const char *const *fields; /* words of --fields: "prompt=question,id=key" */
    size_t field_count;
    int vocab_size; /* number of ids; all must be below it */
    uint64_t seed;  /* seed of the order of the prompts; 0 keeps the order of the files */
};
struct prompts; /* shuffled by seed anew each epoch */

struct prompt { /* owned by prompts, valid until prompts_close() */
    const int32_t *ids;
    size_t count; /* at least 1 */
    const int32_t *
        teacher_ids; /* ids that the teacher reads: teacher_prompt of the line, or those in `ids` */
    size_t teacher_count;
    const char *id; /* id of the line, as JSON: "a" with its quotes, or 17; NULL: none */
    int most; /* largest number of tokens of an answer: max_tokens of the line; 0: it has none */
    int64_t index; /* place in the order of the files, counting prompts that are left out */
};

/* Read, encode and check everything. A line of JSON gives a prompt by one of:
 *   messages, or prompt if it is a list: the conversation up to the last turn of a user, and the text that the
 *     model's chat template writes before the assistant's next turn;
 *   prompt: a text, after the token that begins texts.
 * teacher_prompt, a text or a list, is a prompt of the same kinds. Return NJ_E_FORMAT where no prompt remains. */
int prompts_open(const struct prompts_options *o, const struct tokenizer *t, struct prompts **out);
void prompts_close(struct prompts *p); /* NULL is allowed */
int64_t prompts_count(const struct prompts *p);
/* Get the i-th prompt of an epoch; i is below prompts_count(). */
void prompts_get(const struct prompts *p, uint64_t epoch, int64_t i, struct prompt *out);
/* Return the number of lines whose prompt was too long. */
int64_t prompts_dropped(const struct prompts *p);
/* Return the number of tokens of the longest prompt that remains. */
int prompts_longest(const struct prompts *p);
int prompts_teacher_longest(const struct prompts *p);
/* Return whether the teacher reads something else anywhere. */
bool prompts_teacher_has_context(const struct prompts *p);
/* Return the number of tokens of the longest prompt with its answer, which has `most` tokens where the line does not
 * say it. */
int64_t prompts_longest_text(const struct prompts *p, int64_t most);
/* Return the notes about the rows that were read and those that could not be used. */
const struct row_notes *prompts_notes(const struct prompts *p);
const struct passed_over *prompts_passed_over(const struct prompts *p);
/* Return whether any prompt is a conversation. */
bool prompts_chats(const struct prompts *p);
/* Return the hash over all ids and the ends of the prompts. */
uint64_t prompts_hash(const struct prompts *p);

/* Render a conversation, a list of {role, content} that ends with a user's turn, up to where the assistant begins, and
 * encode it. *ids is malloc()'d, NULL on failure. */
int prompt_of_messages(const struct tokenizer *t, json_t *messages, int32_t **ids, size_t *count);
/* Append a turn to such a list; false without memory. */
bool messages_add(json_t *messages, const char *role, json_t *content);
/* Encode a conversation in which a user says `text`, after a system message (NULL: the template's own, if it has one),
 * and the assistant is next. *ids is malloc()'d, NULL on failure. */
int prompt_of_chat(const struct tokenizer *t, const char *system, const char *text, int32_t **ids,
                   size_t *count);
/* Find the token that ends the assistant's turn as the model's chat template writes it; -1: no token does, or the model
 * has no conversations. */
int chat_turn_end(const struct tokenizer *t, int32_t *id);

#endif
