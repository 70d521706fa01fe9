/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_prompt.c: a question to a chat model, as prompts.c has it of a line of JSON.
 */
#include "data/prompts.h"

#include "data/jsonl.h"
#include "io/error.h"
#include "io/json_text.h"

#include <stdlib.h>
#include <string.h>

/* Appends a turn; false without memory. */
static bool add_turn(json_t *messages, const char *role, const char *text)
{
    json_t *turn = json_object();
    const bool set = json_object_set_new_nocheck(turn, "role", json_string(role)) == 0 &&
                     json_object_set_new_nocheck(turn, "content", json_string_nocheck(text)) == 0;
    if (set)
        return json_array_append_new(messages, turn) == 0;
    json_decref(turn);
    return false;
}

static int render(struct reader *r, const char *system, const char *text)
{
    json_memory_begin();
    json_t *messages = json_array();
    bool made = !system || add_turn(messages, "system", system);
    made = made && add_turn(messages, "user", text);
    int rc = json_memory_end() || !made ? fail(NJ_E_NOMEM, "out of memory for the prompt") : NJ_OK;
    if (!rc)
        rc = jsonl_add_question(r, NULL, messages);
    json_decref(messages);
    return rc;
}

static int encode(const struct reader *r, int32_t **ids, size_t *count)
{
    size_t capacity = 0;
    return tokenizer_encode(r->tokenizer, r->text, r->bytes, ids, count, &capacity);
}

int prompt_of_chat(const struct tokenizer *t, const char *system, const char *text, int32_t **ids,
                   size_t *count)
{
    struct segment s = {.path = (char[]){"the prompt"}};
    struct reader r = {.segment = &s, .tokenizer = t, .line = 1};
    *ids = NULL;
    *count = 0;
    int rc = t->vocab_size > 0 ? chat_find(t->dir, t, &r.chat)
                               : fail(NJ_E_UNSUPPORTED, "%s", t->refusal);
    if (!rc)
        rc = render(&r, system, text);
    if (!rc)
        rc = encode(&r, ids, count);
    if (rc) {
        free(*ids);
        *ids = NULL;
    }
    free(r.text);
    free(r.part);
    jsonl_free_chat(&r);
    return rc;
}
