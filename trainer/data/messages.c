/* SPDX-License-Identifier: Apache-2.0
 *
 * messages.c: the messages of a line of JSON as variables of the chat template, as transformers passes them: null
 * fields are left out, and the assistant's thoughts have each of their names. A field that no template would read is
 * refused.
 */
#include "data/jsonl.h"

#include "io/error.h"
#include "io/json_text.h"

#include <stdlib.h>
#include <string.h>

/* Return whether a value is this string, with no NUL and more after it. */
static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && json_string_length(value) == strlen(text) &&
           strcmp(json_string_value(value), text) == 0;
}

/* Return whether a field says anything: other projects write null, [] or "" for an absent value. */
static bool is_given(const json_t *value)
{
    if (json_is_string(value))
        return json_string_length(value) > 0;
    if (json_is_array(value) || json_is_object(value))
        return json_array_size(value) + json_object_size(value) > 0;
    return value && !json_is_null(value);
}

/* Return whether the value may have held a number that was too large and has become [0]. */
static bool has_mended(json_t *value)
{
    size_t i;
    const char *key;
    json_t *each;
    json_t *first = json_array_size(value) == 1 ? json_array_get(value, 0) : NULL;
    bool found = json_is_integer(first) && json_integer_value(first) == 0;
    json_array_foreach(value, i, each) found = found || has_mended(each);
    json_object_foreach(value, key, each) found = found || has_mended(each);
    return found;
}

static int check_numbers(const struct reader *r, json_t *value)
{
    return r->mended && has_mended(value)
               ? jsonl_bad_line(r, "a number of a conversation must have at most 64 bits; write it "
                                   "as a string")
               : 0;
}

/* ---- fields of a message ---- */

static const char *const reasoning[] = {"reasoning_content", "thinking", "reasoning"};
enum { REASONING = sizeof reasoning / sizeof *reasoning };

/* Return whether the template reads the field, or does not need to. */
static bool has_place(const struct messages *m, const char *field)
{
    static const char *const harmless[] = {"role", "content", "weight", "name", "tool_call_id"};
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strcmp(field, harmless[i]) == 0)
            return true;
    bool any = template_mentions(m->template, field), thought = false;
    for (int i = 0; i < REASONING; i++)
        thought = thought || strcmp(field, reasoning[i]) == 0;
    for (int i = 0; thought && i < REASONING && !any; i++)
        any = template_mentions(m->template, reasoning[i]);
    return any;
}

static int check_fields(const struct reader *r, const struct messages *m, json_t *turn)
{
    const char *field;
    json_t *value;
    json_object_foreach(turn, field, value)
    {
        if (is_given(value) && !has_place(m, field))
            return fail(NJ_E_FORMAT,
                        "%s:%ld: %.64s of messages has no place in this model's conversations: its "
                        "chat template does not read it; leave it out",
                        r->segment->path, r->line, field);
    }
    return check_numbers(r, turn);
}

/* Check the content, which is a text; a call of tools may have none. */
static int check_content(const struct reader *r, const json_t *turn)
{
    const json_t *content = json_object_get(turn, "content");
    const bool absent = !content || json_is_null(content);
    if (json_is_string(content) || (absent && is_given(json_object_get(turn, "tool_calls"))))
        return 0;
    return jsonl_bad_line(r, "content of messages must be a string, or a list of parts of type "
                             "text");
}

/* Read whether a turn is trained: its weight says so; without one the assistant's turns are. */
static bool has_loss(const json_t *turn)
{
    const json_t *weight = json_object_get(turn, "weight");
    return weight ? json_integer_value(weight) != 0
                  : is_text(json_object_get(turn, "role"), "assistant");
}

static int check_turn(const struct reader *r, const struct messages *m, json_t *turn, bool *loss)
{
    if (!is_given(json_object_get(turn, "role")) || !json_is_string(json_object_get(turn, "role")))
        return jsonl_bad_line(r, "each of messages must have a role, which is a text");
    int rc = check_fields(r, m, turn);
    if (rc == 0)
        rc = check_content(r, turn);
    *loss = has_loss(turn);
    return rc;
}

/* ---- variables ---- */

/* Copy a message without null fields, and with the assistant's thoughts under the names that templates read. */
static json_t *copy_turn(json_t *turn)
{
    json_t *copy = json_object(), *thought = NULL, *value;
    const char *field;
    for (int i = 0; i < REASONING && !thought; i++) {
        value = json_object_get(turn, reasoning[i]);
        thought = json_is_null(value) ? NULL : value;
    }
    if (thought && !is_given(json_object_get(turn, "thinking")))
        json_object_set(copy, "thinking", thought);
    json_object_foreach(turn, field,
                        value) if (!json_is_null(value) && strcmp(field, "weight") != 0)
        json_object_set_nocheck(copy, field, value);
    if (thought)
        json_object_set(copy, "reasoning_content", thought);
    return copy;
}

/* Add the line's other fields. */
static int add_column(const struct reader *r, struct messages *m, const json_t *object,
                      const char *name)
{
    json_t *value = json_object_get(object, name), *item;
    size_t i;
    json_object_set_new(m->variables, name, json_null());
    if (!is_given(value))
        return 0;
    bool dicts = json_is_array(value);
    json_array_foreach(value, i, item) dicts = dicts && json_is_object(item);
    if (!dicts)
        return fail(NJ_E_FORMAT, "%s:%ld: %s must be a list of objects", r->segment->path, r->line,
                    name);
    if (!template_mentions(m->template, name))
        return fail(NJ_E_FORMAT,
                    "%s:%ld: %s have no place in this model's conversations: its chat template "
                    "does not read them; leave them out",
                    r->segment->path, r->line, name);
    json_object_set(m->variables, name, value);
    return check_numbers(r, value);
}

/* Add chat_template_kwargs, which are further variables, such as enable_thinking. */
static int add_others(const struct reader *r, struct messages *m, const json_t *object)
{
    json_t *others = json_object_get(object, "chat_template_kwargs"), *value;
    const char *name;
    if (is_given(others) && !json_is_object(others))
        return jsonl_bad_line(r, "chat_template_kwargs must be an object");
    json_object_foreach(others, name, value)
    {
        const bool taken = strcmp(name, "messages") == 0 || strcmp(name, "tools") == 0 ||
                           strcmp(name, "documents") == 0 ||
                           strcmp(name, "add_generation_prompt") == 0;
        if (taken || (is_given(value) && !template_mentions(m->template, name)))
            return fail(NJ_E_FORMAT, "%s:%ld: chat_template_kwargs: %.64s is %s; leave it out",
                        r->segment->path, r->line, name,
                        taken ? "given otherwise" : "nothing that the chat template reads");
        json_object_set_nocheck(m->variables, name, value);
    }
    return check_numbers(r, others);
}

static int read_turns(const struct reader *r, struct messages *m, const json_t *messages,
                      size_t count)
{
    int rc = 0;
    m->loss = calloc(count + 1, sizeof *m->loss);
    if (!m->loss)
        return jsonl_no_memory(r);
    for (size_t i = 0; i < count && rc == 0; i++) {
        json_t *turn = json_array_get(messages, i);
        rc = check_turn(r, m, turn, &m->loss[i]);
        if (rc == 0)
            json_array_append_new(m->list, copy_turn(turn));
    }
    return rc;
}

int messages_make(struct reader *r, const json_t *object, const json_t *messages, size_t count,
                  struct messages *out)
{
    *out = (struct messages){0};
    out->template = chat_template_for(&r->chat, is_given(json_object_get(object, "tools")));
    json_memory_begin();
    out->variables = json_copy(r->chat.tokens);
    out->list = json_array();
    int rc = add_column(r, out, object, "tools");
    if (rc == 0)
        rc = add_column(r, out, object, "documents");
    if (rc == 0)
        rc = add_others(r, out, object);
    if (rc == 0)
        rc = read_turns(r, out, messages, count);
    return json_memory_end() ? jsonl_no_memory(r) : rc;
}

void messages_free(struct messages *m)
{
    json_decref(m->variables);
    json_decref(m->list);
    free(m->loss);
    *m = (struct messages){0};
}

/* Return the first of the messages as a list. */
static json_t *first_of(const struct messages *m, size_t count)
{
    if (count == json_array_size(m->list))
        return json_incref(m->list);
    json_t *first = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append(first, json_array_get(m->list, i));
    return first;
}

int messages_render(const struct messages *m, size_t count, bool prompt, struct template_text *out)
{
    json_memory_begin();
    json_object_set_new(m->variables, "messages", first_of(m, count));
    json_object_set_new(m->variables, "add_generation_prompt", json_boolean(prompt));
    if (json_memory_end())
        return fail(NJ_E_NOMEM, "out of memory for a conversation");
    return template_render(m->template, m->variables, out);
}
