/* SPDX-License-Identifier: Apache-2.0
 *
 * conversation.c: the messages of a line of JSON: turns, as the model's chat template writes them.
 */
#include "data/jsonl.h"

#include "io/error.h"
#include "text/spaces.h"

#include <string.h>

/* Whether a value is this string, with no NUL and more behind it. */
static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && json_string_length(value) == strlen(text) &&
           strcmp(json_string_value(value), text) == 0;
}

/* A turn as it is to be written. */
struct turn {
    const char *role, *opening;
    struct chat_text thought, content;
    bool assistant, thinks, loss;
};

/* Appends a turn. Everything up to what the assistant says is a part without a loss that began at
 * *begin. */
static int add_turn(struct reader *r, const struct turn *t, size_t *begin)
{
    const struct chat_format *f = r->chat.format;
    const struct chat_text thought = chat_strip(t->thought, true);
    const struct chat_text content = t->thinks ? chat_strip(t->content, false) : t->content;
    const char *header[] = {f->before_role, t->role, f->after_role, t->opening};
    int rc = NJ_OK;
    for (int i = 0; i < 4 && !rc; i++)
        rc = jsonl_add_text(r, header[i], strlen(header[i]));
    if (!rc && t->loss) {
        rc = jsonl_add_part(r, *begin, false);
        *begin = r->bytes;
    }
    const struct chat_text said[] = {{"<think>\n", t->thinks ? 8 : 0},
                                     {thought.text, t->thinks ? thought.bytes : 0},
                                     {"\n</think>\n\n", t->thinks ? 11 : 0},
                                     content,
                                     {f->end, strlen(f->end)}};
    for (int i = 0; i < 5 && !rc; i++)
        rc = jsonl_add_text(r, said[i].text, said[i].bytes);
    if (!rc && t->loss) {
        rc = jsonl_add_part(r, *begin, true);
        *begin = r->bytes;
    }
    return rc ? rc : jsonl_add_text(r, f->after, strlen(f->after));
}

/* Whether a field says anything: other projects write null, [] or "" for what is not there. */
static bool is_given(const json_t *value)
{
    if (json_is_string(value))
        return json_string_length(value) > 0;
    if (json_is_array(value) || json_is_object(value))
        return json_array_size(value) + json_object_size(value) > 0;
    return value && !json_is_null(value);
}

/* Whether nothing is lost when a field is left out, or read_turn() reads it. */
static bool is_read(const char *name)
{
    static const char *const fields[] = {"role", "content", "weight", "reasoning_content"};
    size_t i = 0;
    while (i < sizeof fields / sizeof *fields && strcmp(name, fields[i]) != 0)
        i++;
    return i < sizeof fields / sizeof *fields;
}

static int check_known(const struct reader *r, json_t *turn)
{
    const char *name;
    json_t *value;
    json_object_foreach(turn, name, value)
    {
        if (is_given(value) && !is_read(name))
            return fail(NJ_E_FORMAT,
                        "%s:%ld: a turn has the field %.60s, which is not understood and may "
                        "change what the turn means; leave it out, or make it null",
                        r->segment->path, r->line, name);
    }
    return NJ_OK;
}

/* Refuses what a template would write in a way of its own. */
static int check_fields(const struct reader *r, json_t *turn)
{
    static const char *const calls[] = {"tool_calls", "function_call"};
    for (int i = 0; i < 2; i++)
        if (is_given(json_object_get(turn, calls[i])))
            return fail(NJ_E_FORMAT,
                        "%s:%ld: %s of messages cannot be written as the model's template does; "
                        "write the conversation as prompt and completion",
                        r->segment->path, r->line, calls[i]);
    if (!r->chat.thinks && is_given(json_object_get(turn, "reasoning_content")))
        return jsonl_bad_line(r, "reasoning_content of messages has no place in this model's "
                                 "conversations; put it into content, or leave it out");
    return check_known(r, turn);
}

static int read_role(const struct reader *r, const json_t *turn, struct turn *out)
{
    /* A developer is who was called system before. */
    static const char *const roles[][2] = {{"system", "system"},
                                           {"user", "user"},
                                           {"assistant", "assistant"},
                                           {"developer", "system"}};
    const json_t *role = json_object_get(turn, "role");
    int known = 0;
    while (known < 4 && !is_text(role, roles[known][0]))
        known++;
    if (known == 4)
        return jsonl_bad_line(r, "a role of messages must be system, user or assistant");
    out->role = roles[known][1];
    out->assistant = known == 2;
    return NJ_OK;
}

/* What is said and, in a format that has think blocks, what was thought before. */
static int read_content(const struct reader *r, const json_t *turn, struct turn *out)
{
    const json_t *content = json_object_get(turn, "content");
    const json_t *thought = json_object_get(turn, "reasoning_content");
    if (!json_is_string(content))
        return jsonl_bad_line(r, "content of messages must be a string");
    out->content = (struct chat_text){json_string_value(content), json_string_length(content)};
    if (r->chat.format->trims)
        text_strip(&out->content.text, &out->content.bytes);
    if (r->chat.thinks && out->assistant && json_is_string(thought))
        out->thought = (struct chat_text){json_string_value(thought), json_string_length(thought)};
    else if (r->chat.thinks && out->assistant)
        chat_split(&out->content, &out->thought);
    return NJ_OK;
}

/* weight says whether a turn is trained; without it the assistant's are. */
static void read_weight(const json_t *turn, struct turn *out)
{
    const json_t *weight = json_object_get(turn, "weight");
    out->loss = weight ? json_integer_value(weight) != 0 : out->assistant;
}

static int read_turn(const struct reader *r, json_t *turn, struct turn *out)
{
    *out = (struct turn){.opening = ""};
    int rc = read_role(r, turn, out);
    if (!rc)
        rc = check_fields(r, turn);
    if (!rc)
        rc = read_content(r, turn, out);
    read_weight(turn, out);
    return rc;
}

/* A user's turn that is not a tool's answer in disguise. */
static bool is_question(const json_t *turn)
{
    static const char begin[] = "<tool_response>", end[] = "</tool_response>";
    const json_t *content = json_object_get(turn, "content");
    const char *text = json_string_value(content);
    const size_t bytes = json_string_length(content), least = sizeof end - 1;
    return is_text(json_object_get(turn, "role"), "user") && text &&
           !(strncmp(text, begin, sizeof begin - 1) == 0 && bytes >= least &&
             memcmp(text + bytes - least, end, least) == 0);
}

/* Where the last question among the first `count` turns stands: think blocks are of the turns after it. */
static size_t last_question(const json_t *messages, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (is_question(json_array_get(messages, i)))
            return i;
    return count - 1;
}

/* The template's own system message, where the conversation has none. */
static int add_system(struct reader *r, const json_t *messages, size_t *begin)
{
    const struct chat *c = &r->chat;
    if (!c->system || is_text(json_object_get(json_array_get(messages, 0), "role"), "system"))
        return NJ_OK;
    const struct turn t = {
        .role = "system", .opening = c->opening, .content = {c->system, strlen(c->system)}};
    return add_turn(r, &t, begin);
}

/* Adds the first `count` turns; a prompt has no losses. */
static int add_turns(struct reader *r, const json_t *messages, size_t count, bool prompt,
                     size_t *begin)
{
    const size_t question = last_question(messages, count);
    bool spoke = prompt;
    int rc = add_system(r, messages, begin);
    for (size_t i = 0; i < count && !rc; i++) {
        struct turn t;
        rc = read_turn(r, json_array_get(messages, i), &t);
        if (rc)
            return rc;
        t.thinks = r->chat.thinks && t.assistant && i > question &&
                   (i == count - 1 || t.thought.bytes > 0);
        if (i == 0 && strcmp(t.role, "system") == 0)
            t.opening = r->chat.opening;
        t.loss = t.loss && !prompt;
        spoke = spoke || t.loss;
        rc = add_turn(r, &t, begin);
    }
    if (!rc && !spoke)
        return jsonl_bad_line(r, "no turn of messages is the assistant's with a weight above 0, so "
                                 "nothing has a loss");
    return rc;
}

/* Checks a conversation as a whole, and finds the format of the first one. */
static int begin_messages(struct reader *r, const json_t *object, const json_t *messages)
{
    if (!json_is_array(messages))
        return jsonl_bad_line(r, "messages must be a list of {role, content}");
    if (is_given(json_object_get(object, "tools")))
        return jsonl_bad_line(
            r, "tools cannot be written as the model's template does; leave them out, or "
               "write the conversation as prompt and completion");
    const int rc = r->chat.format ? NJ_OK : chat_find(r->tokenizer->dir, r->tokenizer, &r->chat);
    return rc ? fail(rc, "%s:%ld: messages: %s", r->segment->path, r->line, fail_text()) : NJ_OK;
}

int jsonl_chats(struct reader *r, bool *chats)
{
    json_t *template = NULL;
    *chats = true;
    const int rc = r->chat.format ? NJ_OK : chat_find(r->tokenizer->dir, r->tokenizer, &r->chat);
    if (rc != NJ_E_UNSUPPORTED)
        return rc;
    const int none = chat_template(r->tokenizer->dir, &template);
    *chats = template != NULL;
    json_decref(template);
    return none || *chats ? fail(rc, "%s:%ld: %s", r->segment->path, r->line, fail_text()) : NJ_OK;
}

int jsonl_add_messages(struct reader *r, const json_t *object, const json_t *messages)
{
    size_t begin = r->bytes;
    int rc = begin_messages(r, object, messages);
    if (rc)
        return rc;
    rc = chat_check_end(&r->chat, r->tokenizer);
    if (rc)
        return fail(rc, "%s:%ld: messages: %s", r->segment->path, r->line, fail_text());
    rc = add_turns(r, messages, json_array_size(messages), false, &begin);
    return rc ? rc : jsonl_add_part(r, begin, false);
}

/* ---- prompts ---- */

/* What the template writes for add_generation_prompt. */
static int add_generation_prompt(struct reader *r)
{
    const struct chat *c = &r->chat;
    const char *parts[] = {c->format->before_role, "assistant", c->format->after_role,
                           c->before_answer};
    int rc = NJ_OK;
    for (int i = 0; i < 4 && !rc; i++)
        rc = jsonl_add_text(r, parts[i], strlen(parts[i]));
    return rc;
}

int jsonl_add_question(struct reader *r, const json_t *object, const json_t *messages)
{
    size_t begin = r->bytes, count = json_array_size(messages);
    int rc = begin_messages(r, object, messages);
    if (rc)
        return rc;
    while (count > 0 &&
           !is_text(json_object_get(json_array_get(messages, count - 1), "role"), "user"))
        count--;
    if (count == 0)
        return jsonl_bad_line(r,
                              "no turn of messages is the user's, so there is nothing to answer");
    rc = add_turns(r, messages, count, true, &begin);
    if (!rc)
        rc = add_generation_prompt(r);
    return rc ? rc : jsonl_add_part(r, begin, false);
}
