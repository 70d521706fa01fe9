/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_prompt.c: conversations that come from no file: a question to a chat model, encoded as prompts.c encodes a line
 * of JSON, and a conversation that shows how the assistant's turns end.
 */
#include "batch/prompts.h"

#include "data/jsonl.h"
#include "io/error.h"
#include "io/json_text.h"
#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

bool messages_add(json_t *messages, const char *role, json_t *content)
{
    json_t *turn = json_object();
    bool set = json_object_set_new_nocheck(turn, "role", json_string(role)) == 0;
    set = json_object_set_new_nocheck(turn, "content", content) == 0 && set;
    if (set)
        return json_array_append_new(messages, turn) == 0;
    json_decref(turn);
    return false;
}

static int encode(const struct reader *r, int32_t **ids, size_t *count)
{
    size_t capacity = 0;
    return tokenizer_encode(r->tokenizer, r->text, r->bytes, ids, count, &capacity);
}

static void free_reader(struct reader *r)
{
    free(r->text);
    free(r->part);
    jsonl_free_chat(r);
}

int prompt_of_messages(const struct tokenizer *t, json_t *messages, int32_t **ids, size_t *count)
{
    struct segment s = {.path = (char[]){"the prompt"}};
    struct reader r = {.segment = &s, .tokenizer = t, .line = 1};
    *ids = NULL;
    *count = 0;
    int rc = t->vocab_size > 0 ? chat_find(t->dir, t, &r.chat)
                               : fail(NJ_E_UNSUPPORTED, "%s", t->refusal);
    if (rc == 0)
        rc = jsonl_add_question(&r, NULL, messages);
    if (rc == 0)
        rc = encode(&r, ids, count);
    if (rc != 0) {
        free(*ids);
        *ids = NULL;
    }
    free_reader(&r);
    return rc;
}

int prompt_of_chat(const struct tokenizer *t, const char *system, const char *text, int32_t **ids,
                   size_t *count)
{
    *ids = NULL;
    json_memory_begin();
    json_t *messages = json_array();
    bool made = !system || messages_add(messages, "system", json_string_nocheck(system));
    made = made && messages_add(messages, "user", json_string_nocheck(text));
    int rc = json_memory_end() || !made ? fail(NJ_E_NOMEM, "out of memory for the prompt") : 0;
    if (rc == 0)
        rc = prompt_of_messages(t, messages, ids, count);
    json_decref(messages);
    return rc;
}

/* ---- the end of a turn ---- */

/* Return the longest added token that the text ends with, or -1. */
static int32_t last_token(const struct tokenizer *t, const char *text, size_t bytes)
{
    char token[ADDED_BYTES_MOST + 1];
    int32_t found = -1;
    for (size_t n = 1; n <= bytes && n < sizeof token; n++) {
        memcpy(token, text + bytes - n, n);
        token[n] = '\0';
        const int32_t id = strlen(token) == n ? tokenizer_added(t, token) : -1;
        found = id >= 0 ? id : found;
    }
    return found;
}

/* Render a question and its answer as training data; the last stretch with a loss ends where the answer does. */
static int render_answered(struct reader *r)
{
    json_memory_begin();
    json_t *messages = json_array();
    const bool made = messages_add(messages, "user", json_string("a")) &&
                      messages_add(messages, "assistant", json_string("b"));
    int rc = json_memory_end() || !made ? fail(NJ_E_NOMEM, "out of memory for a conversation")
                                        : jsonl_add_messages(r, NULL, messages);
    json_decref(messages);
    return rc;
}

int chat_turn_end(const struct tokenizer *t, int32_t *id)
{
    struct segment s = {.path = (char[]){"a conversation"}};
    struct reader r = {.segment = &s, .tokenizer = t, .line = 1};
    *id = -1;
    if (t->vocab_size == 0)
        return 0;
    const int rc = render_answered(&r);
    if (rc == 0 && r.spans.count > 0) {
        const struct template_span *span =
            (const struct template_span *)r.spans.at + r.spans.count - 1;
        *id = last_token(t, r.text, span->end);
    }
    free_reader(&r);
    /* a conversation that this template refuses shows nothing */
    return rc == NJ_E_NOMEM ? rc : 0;
}
