/* SPDX-License-Identifier: Apache-2.0
 *
 * conversation.c: the messages of a line of JSON as one part: their text, as the model's chat template writes it.
 */
#include "data/jsonl.h"

#include "io/error.h"

#include <stdlib.h>
#include <string.h>

/* Find the model's template for the first conversation. */
static int find_template(struct reader *r)
{
    if (r->chat.plain)
        return 0;
    chat_free(&r->chat); /* remains of an attempt that failed */
    return chat_find(r->tokenizer->dir, r->tokenizer, &r->chat);
}

static int begin_messages(struct reader *r, const json_t *messages)
{
    if (!json_is_array(messages))
        return jsonl_bad_line(r, "messages must be a list of {role, content}");
    const int rc = find_template(r);
    return rc != 0 ? fail(rc, "%s:%ld: messages: %s", r->segment->path, r->line, fail_text()) : 0;
}

int jsonl_chats(struct reader *r, bool *chats)
{
    json_t *template = NULL;
    int rc = r->chatless ? 0 : find_template(r);
    if (rc == NJ_E_UNSUPPORTED) {
        r->chatless = chat_template(r->tokenizer->dir, &template) == 0 && !template;
        json_decref(template);
        rc = r->chatless ? 0 : rc;
    }
    *chats = !r->chatless;
    return rc != 0 ? fail(rc, "%s:%ld: %s", r->segment->path, r->line, fail_text()) : 0;
}

static const char *role_of(const json_t *turn)
{
    return json_string_value(json_object_get(turn, "role"));
}

/* Return whether every template that can be called knows the role. */
static bool is_usual(const char *role)
{
    static const char *const usual[] = {"system", "user", "assistant", "tool"};
    size_t i = 0;
    while (i < sizeof usual / sizeof *usual && strcmp(role, usual[i]) != 0)
        i++;
    return i < sizeof usual / sizeof *usual;
}

/* Set whether the text of all messages, written[0], would be the same without one of them. */
static int is_passed_over(struct reader *r, const struct messages *m, size_t i, bool prompt,
                          bool *out)
{
    const struct template_text *whole = &r->written[0], *rest = &r->written[1];
    json_t *turn = json_incref(json_array_get(m->list, i));
    json_array_remove(m->list, i);
    const int rc = messages_render(m, json_array_size(m->list), prompt, &r->written[1]);
    const bool back = json_array_insert_new(m->list, i, turn) == 0;
    *out =
        rc == 0 && rest->bytes == whole->bytes && memcmp(rest->text, whole->text, rest->bytes) == 0;
    return back && rc != NJ_E_NOMEM ? 0 : jsonl_no_memory(r);
}

/* Refuse a message with a role that the template does not know, and so leaves out. */
static int check_roles(struct reader *r, const struct messages *m, bool prompt)
{
    for (size_t i = 0; i < json_array_size(m->list); i++) {
        const char *role = role_of(json_array_get(m->list, i));
        bool over = false;
        if (r->written[0].bytes > 0 && !is_usual(role))
            TRY(is_passed_over(r, m, i, prompt, &over));
        if (over)
            return fail(NJ_E_FORMAT,
                        "%s:%ld: message %zu has no place in this model's conversations: its chat "
                        "template writes nothing of the role %.64s; give it another role",
                        r->segment->path, r->line, i + 1, role);
    }
    return 0;
}

/* Render all messages into written[0]. */
static int render(struct reader *r, const struct messages *m, bool prompt)
{
    const int rc = messages_render(m, json_array_size(m->list), prompt, &r->written[0]);
    return rc != 0 ? fail(rc, "%s:%ld: messages: %s", r->segment->path, r->line, fail_text())
                   : check_roles(r, m, prompt);
}

/* Add written[0] as a part, with the stretches from the given one on. */
static int add_part(struct reader *r, size_t first)
{
    const size_t begin = r->bytes;
    TRY(jsonl_add_text(r, r->written[0].text, r->written[0].bytes));
    TRY(jsonl_add_part(r, begin, false));
    struct part *p = &r->part[r->parts - 1];
    p->rendered = true;
    p->span = first;
    p->spans = r->spans.count - first;
    return 0;
}

static bool any_loss(const struct messages *m)
{
    size_t i = 0;
    while (i < json_array_size(m->list) && !m->loss[i])
        i++;
    return i < json_array_size(m->list);
}

/* Refuse a conversation without a trained turn; the message mentions weight if one was given. */
static int refuse_silent(const struct reader *r, const struct messages *m)
{
    char roles[128] = "", sentence[320];
    size_t i, n = 0;
    bool answers = false;
    json_t *turn;
    json_array_foreach(m->list, i, turn)
    {
        const char *role = json_string_value(json_object_get(turn, "role"));
        answers = answers || (role != NULL && strcmp(role, "assistant") == 0);
        if (role != NULL && strstr(roles, role) == NULL && n + 40 < sizeof roles)
            n += (size_t)snprintf(roles + n, sizeof roles - n, "%s%.32s", n > 0 ? ", " : "", role);
    }
    if (answers)
        return jsonl_bad_line(r, "no turn of messages is the assistant's with a weight above 0, so "
                                 "nothing has a loss");
    snprintf(sentence, sizeof sentence,
             "no turn of messages is the assistant's, so nothing has a loss; the roles are %s",
             n > 0 ? roles : "none");
    return jsonl_bad_line(r, sentence);
}

/* Refuse a conversation of which the template leaves out what the assistant says. */
static int check_spans(const struct reader *r, size_t first)
{
    const struct template_span *span = r->spans.at;
    while (first < r->spans.count && span[first].end == span[first].begin)
        first++;
    return first < r->spans.count
               ? 0
               : jsonl_bad_line(r,
                                "the chat template leaves out the assistant's turns, so no token "
                                "has a loss");
}

static int add_conversation(struct reader *r, const struct messages *m)
{
    const struct row_rules *rules = r->segment->rules;
    const bool all = rules && rules->train_on_prompts && json_array_size(m->list) > 0;
    const size_t first = r->spans.count;
    if (!all && !any_loss(m))
        return refuse_silent(r, m);
    TRY(render(r, m, false));
    if (!all) {
        TRY(turns_find(r, m));
        TRY(check_spans(r, first));
    }
    return add_part(r, first);
}

int jsonl_add_messages(struct reader *r, const json_t *object, const json_t *messages)
{
    struct messages m = {0};
    TRY(begin_messages(r, messages));
    int rc = messages_make(r, object, messages, json_array_size(messages), &m);
    if (rc == 0)
        rc = add_conversation(r, &m);
    messages_free(&m);
    return rc;
}

/* ---- prompts ---- */

/* Return whether a turn asks for an answer. */
static bool asks(const json_t *turn)
{
    static const char *const others[] = {"assistant", "system", "developer"};
    const char *role = role_of(turn);
    bool other = !role;
    for (size_t i = 0; i < sizeof others / sizeof *others && !other; i++)
        other = strcmp(role, others[i]) == 0;
    return !other;
}

int jsonl_add_question(struct reader *r, const json_t *object, const json_t *messages)
{
    struct messages m = {0};
    size_t count = json_array_size(messages);
    TRY(begin_messages(r, messages));
    while (count > 0 && !asks(json_array_get(messages, count - 1)))
        count--;
    if (count == 0)
        return jsonl_bad_line(r,
                              "no turn of messages is the user's, so there is nothing to answer");
    int rc = messages_make(r, object, messages, count, &m);
    if (rc == 0)
        rc = render(r, &m, true);
    if (rc == 0)
        rc = add_part(r, r->spans.count);
    messages_free(&m);
    return rc;
}

void jsonl_free_chat(struct reader *r)
{
    for (size_t i = 0; i < sizeof r->written / sizeof *r->written; i++)
        template_text_free(&r->written[i]);
    free(r->spans.at);
    r->spans = (struct pool){0};
    chat_free(&r->chat);
}
