/* SPDX-License-Identifier: Apache-2.0
 *
 * row_messages.c: the spellings of a conversation: OpenAI's {role, content}, ShareGPT's {from, value}, texts as a list
 * of parts, and the names of the field by which a turn says whether it is trained.
 */
#include "data/rows.h"

#include "io/error.h"
#include "io/json_text.h"

#include <stdlib.h>
#include <string.h>

bool row_gives(const json_t *value)
{
    if (json_is_string(value))
        return json_string_length(value) > 0;
    if (json_is_array(value) || json_is_object(value))
        return json_array_size(value) + json_object_size(value) > 0;
    return value && !json_is_null(value);
}

/* ---- fields ---- */

enum meaning { ROLE, CONTENT, TRAINED, HARMLESS, KEPT };

/* Fields of a message. Any other field that says anything is kept, for the code that writes the turn to take or refuse:
 * it may change the turn's meaning. */
static const struct {
    const char *name;
    enum meaning meaning;
} fields[] = {
    {"role", ROLE},
    {"from", ROLE},
    {"content", CONTENT},
    {"value", CONTENT},
    {"weight", TRAINED},
    {"loss_mask", TRAINED},
    {"train", TRAINED},
    {"trainable", TRAINED},
    /* metadata: the origin and time of the message */
    {"id", HARMLESS},
    {"message_id", HARMLESS},
    {"turn_identifier", HARMLESS},
    {"timestamp", HARMLESS},
    {"created_at", HARMLESS},
    {"model", HARMLESS},
    {"language", HARMLESS},
    {"country", HARMLESS},
    {"state", HARMLESS},
    {"hashed_ip", HARMLESS},
    {"header", HARMLESS},
    {"redacted", HARMLESS},
    {"toxic", HARMLESS},
};
enum { FIELDS = sizeof fields / sizeof *fields };

static enum meaning meaning_of(const char *name)
{
    int i = 0;
    while (i < FIELDS && strcmp(name, fields[i].name) != 0)
        i++;
    return i < FIELDS ? fields[i].meaning : KEPT;
}

/* ---- one message ---- */

/* A message that is being read: the values of its fields, and their names. */
struct message {
    const struct reader *r;
    const char *list; /* name of the column */
    const json_t *role, *content;
    const char *trained_name;
    int trained; /* 1 or 0, or -1: it does not say */
};

static int bad(const struct message *m, const char *what, const char *name)
{
    return fail(NJ_E_FORMAT, "%s:%ld: %s of %s%s", m->r->segment->path, m->r->line, name, m->list,
                what);
}

/* Return whether a value says yes (true, 1 and 1.0) or no (false, 0 and 0.0). */
static int read_trained(struct message *m, const char *name, const json_t *value)
{
    const double number = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
    const bool known = json_is_boolean(value) || json_is_number(value);
    if (!known || (number != 0 && number != 1))
        return bad(m, " must be 0 (no loss) or 1", name);
    if (m->trained >= 0 && m->trained != (int)number)
        return fail(NJ_E_FORMAT, "%s:%ld: %s and %s of a turn of %s contradict each other",
                    m->r->segment->path, m->r->line, m->trained_name, name, m->list);
    m->trained_name = name;
    m->trained = (int)number;
    return 0;
}

static int read_once(const struct message *m, const json_t **to, const json_t *value,
                     const char *names)
{
    if (*to)
        return bad(m, ": a turn has one of them only", names);
    *to = value;
    return 0;
}

static int read_field(struct message *m, const char *name, const json_t *value)
{
    const enum meaning meaning = meaning_of(name);
    if (meaning == ROLE && !json_is_null(value))
        return read_once(m, &m->role, value, "role and from");
    if (meaning == CONTENT && !json_is_null(value))
        return read_once(m, &m->content, value, "content and value");
    if (meaning == TRAINED && row_gives(value))
        return read_trained(m, name, value);
    return 0;
}

static const struct {
    const char *from, *to;
} roles[] = {
    {"human", "user"},
    {"gpt", "assistant"},
};

static json_t *role_of(const json_t *given)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (json_string_length(given) == strlen(roles[i].from) &&
            strcmp(json_string_value(given), roles[i].from) == 0)
            return json_string(roles[i].to);
    return json_deep_copy(given);
}

/* Return the text of a part {"type": "text", "text": "..."}; NULL for any other. */
static const json_t *text_of_part(json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type")), *name;
    const json_t *text = json_object_get(part, "text");
    json_t *value;
    bool plain = type && strcmp(type, "text") == 0 && json_is_string(text);
    json_object_foreach(part, name, value)
    {
        const bool known = strcmp(name, "type") == 0 || strcmp(name, "text") == 0;
        plain = plain && (known || !row_gives(value));
    }
    return plain ? text : NULL;
}

/* Join the parts of a text. *out stays NULL without memory. */
static int join_parts(const struct message *m, json_t **out)
{
    const size_t count = json_array_size(m->content);
    struct reader text = {.segment = m->r->segment, .line = m->r->line};
    int rc = count > 0 ? 0 : bad(m, " has no part", "content");
    for (size_t i = 0; i < count && rc == 0; i++) {
        const json_t *part = text_of_part(json_array_get(m->content, i));
        rc = part ? jsonl_add_text(&text, json_string_value(part), json_string_length(part))
                  : bad(m,
                        " has a part that is not {\"type\": \"text\", \"text\": ...}; only "
                        "texts are read",
                        "content");
    }
    if (rc == 0)
        *out = json_stringn_nocheck(text.text ? text.text : "", text.bytes);
    free(text.text);
    return rc;
}

/* Set a field to a value that the message then owns; false without memory. */
static bool put(json_t *turn, const char *name, json_t *value)
{
    return value && json_object_set_new_nocheck(turn, name, value) == 0;
}

static int content_of(const struct message *m, json_t **out)
{
    if (json_is_array(m->content))
        return join_parts(m, out);
    *out = m->content ? json_deep_copy(m->content) : json_null();
    return 0;
}

static int write_turn(const struct message *m, json_t *turn, json_t *to)
{
    const char *name;
    json_t *content = NULL, *value;
    bool put_all = put(to, "role", m->role ? role_of(m->role) : json_null());
    const int rc = put_all ? content_of(m, &content) : 0;
    put_all = put_all && rc == 0 && put(to, "content", content);
    if (m->trained >= 0)
        put_all = put_all && put(to, "weight", json_integer(m->trained));
    json_object_foreach(turn, name, value)
    {
        if (put_all && meaning_of(name) == KEPT && row_gives(value))
            put_all = put(to, name, json_deep_copy(value));
    }
    return rc != 0 || put_all ? rc : jsonl_no_memory(m->r);
}

static int read_turn(struct message *m, json_t *turn, json_t *to)
{
    const struct row_rules *rules = m->r->segment->rules;
    const char *name;
    json_t *value;
    int rc = 0;
    if (!json_is_object(turn))
        return fail(NJ_E_FORMAT, "%s:%ld: %s must be a list of {role, content}",
                    m->r->segment->path, m->r->line, m->list);
    json_object_foreach(turn, name, value) rc = rc != 0 ? rc : read_field(m, name, value);
    if (rc == 0 && m->trained == 0 && rules && rules->train_on_prompts)
        rc = fail(NJ_E_FORMAT,
                  "%s:%ld: %s takes a turn of %s out of training, and --train-on-prompts trains "
                  "all; leave one of them out",
                  m->r->segment->path, m->r->line, m->trained_name, m->list);
    return rc != 0 ? rc : write_turn(m, turn, to);
}

/* ---- the list ---- */

static int read_turns(const struct reader *r, const json_t *list, const char *name, json_t *out)
{
    int rc = 0;
    for (size_t i = 0; i < json_array_size(list) && rc == 0; i++) {
        struct message m = {.r = r, .list = name, .trained = -1};
        json_t *turn = json_object();
        rc = turn ? read_turn(&m, json_array_get(list, i), turn) : jsonl_no_memory(r);
        if (rc != 0)
            json_decref(turn);
        else if (json_array_append_new(out, turn) != 0)
            rc = jsonl_no_memory(r);
    }
    return rc;
}

int messages_read(const struct reader *r, const json_t *list, const char *name, json_t **out)
{
    *out = NULL;
    if (!json_is_array(list))
        return fail(NJ_E_FORMAT, "%s:%ld: %s must be a list of {role, content}", r->segment->path,
                    r->line, name);
    json_memory_begin();
    *out = json_array();
    int rc = *out ? read_turns(r, list, name, *out) : jsonl_no_memory(r);
    if (json_memory_end() && rc == 0)
        rc = jsonl_no_memory(r);
    if (rc != 0) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}

int row_add_question(struct reader *r, const json_t *object, const json_t *list, const char *name)
{
    json_t *messages;
    int rc = messages_read(r, list, name, &messages);
    if (rc == 0)
        rc = jsonl_add_question(r, object, messages);
    json_decref(messages);
    return rc;
}
