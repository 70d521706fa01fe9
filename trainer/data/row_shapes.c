/* SPDX-License-Identifier: Apache-2.0
 *
 * row_shapes.c: the columns of a row that count, and their meaning together.
 */
#include "data/rows.h"

#include "io/error.h"
#include "io/json_text.h"

#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

enum column {
    TEXT,
    MESSAGES,
    CONVERSATIONS,
    CONVERSATION,
    PROMPT,
    COMPLETION,
    INSTRUCTION,
    INPUT,
    OUTPUT
};
static const char *const columns[] = {"text",         "messages", "conversations",
                                      "conversation", "prompt",   "completion",
                                      "instruction",  "input",    "output"};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* Columns, other than those of a shape, that change the meaning of a row in one trainer or another. */
static const char *const meant[] = {
    "system", "system_prompt", "history",   "functions", "chat_template", "images",
    "image",  "videos",        "audios",    "input_ids", "labels",        "loss_mask",
    "weight", "train",         "trainable", "chosen",    "rejected",
};
enum { MEANT = sizeof meant / sizeof *meant };

const char *const row_beside[ROW_BESIDE] = {"tools", "documents", "chat_template_kwargs"};

bool row_is_beside(const char *name)
{
    int i = 0;
    while (i < ROW_BESIDE && strcmp(name, row_beside[i]) != 0)
        i++;
    return i < ROW_BESIDE;
}

/* Pairs of a word of --fields, "prompt=question,completion=answer", one at a time. */
struct pair {
    const char *name, *column;
    size_t name_bytes, column_bytes;
};

static bool next_pair(const char **at, struct pair *out)
{
    const size_t bytes = strcspn(*at, ",");
    const char *equals = memchr(*at, '=', bytes);
    *out = (struct pair){*at, *at + bytes, bytes, 0};
    if (equals)
        *out = (struct pair){*at, equals + 1, (size_t)(equals - *at),
                             bytes - 1 - (size_t)(equals - *at)};
    *at += bytes;
    *at += **at == ',';
    return bytes > 0;
}

static bool is_name(const char *text, size_t bytes, const char *name)
{
    return bytes == strlen(name) && memcmp(text, name, bytes) == 0;
}

const char *row_column(const struct row_rules *rules, const char *name, size_t *bytes)
{
    struct pair p;
    *bytes = strlen(name);
    if (!rules || rules->field_count == 0)
        return name;
    for (size_t i = 0; i < rules->field_count; i++)
        for (const char *at = rules->fields[i]; next_pair(&at, &p);)
            if (is_name(p.name, p.name_bytes, name)) {
                *bytes = p.column_bytes;
                return p.column;
            }
    return NULL;
}

static int bad_field(const struct pair *p, const struct row_names *names, const char *what)
{
    return fail(NJ_E_ARG, "--fields %.*s: %s; write NAME=COLUMN, where NAME is %s",
                (int)(p->column + p->column_bytes - p->name), p->name, what, names->advice);
}

static int check_pair(const struct pair *p, const struct row_names *names, unsigned *seen)
{
    size_t i = 0;
    while (i < names->count && !is_name(p->name, p->name_bytes, names->at[i]))
        i++;
    if (i == names->count)
        return bad_field(p, names, "there is no such name");
    if (p->column_bytes == 0)
        return bad_field(p, names, "the column is missing");
    if (*seen & 1u << i)
        return bad_field(p, names, "the name is given twice");
    *seen |= 1u << i;
    return 0;
}

int row_fields_check(const struct row_rules *rules, const struct row_names *names)
{
    unsigned seen = 0;
    struct pair p;
    int rc = 0;
    for (size_t i = 0; i < rules->field_count; i++)
        for (const char *at = rules->fields[i]; rc == 0 && next_pair(&at, &p);)
            rc = check_pair(&p, names, &seen);
    return rc;
}

int row_rules_check(const struct row_rules *rules)
{
    static const char *const at[] = {"text",        "messages", "prompt", "completion",
                                     "instruction", "input",    "output"};
    static const struct row_names names = {
        at, sizeof at / sizeof *at,
        "text, messages, prompt, completion, instruction, input or output, for example "
        "prompt=question,completion=answer"};
    return row_fields_check(rules, &names);
}

bool row_reads(const struct row_rules *rules, const char *column)
{
    size_t bytes;
    bool reads = row_is_beside(column);
    for (int i = 0; i < COLUMNS && !reads; i++) {
        const char *named = row_column(rules, columns[i], &bytes);
        reads = named && is_name(named, bytes, column);
    }
    for (int i = 0; i < MEANT && !reads; i++)
        reads = strcmp(column, meant[i]) == 0;
    return reads;
}

/* ---- shapes ---- */

/* A row as it is read: the values of the columns that count, NULL where one is absent or null. */
struct found {
    struct reader *r;
    const json_t *object;
    json_t *value[COLUMNS];
};

static int must_be(const struct found *f, const char *names, const char *what)
{
    return fail(NJ_E_FORMAT, "%s:%ld: %s must be %s", f->r->segment->path, f->r->line, names, what);
}

static int read_text(struct found *f, struct row *out)
{
    out->form = ROW_TEXT;
    out->text = json_incref(f->value[TEXT]);
    return json_is_string(out->text) ? 0 : must_be(f, "text", "a string");
}

static int read_chat(const struct found *f, enum column column, struct row *out)
{
    out->form = ROW_CHAT;
    return messages_read(f->r, f->value[column], columns[column], &out->messages);
}

static int read_messages(struct found *f, struct row *out)
{
    return read_chat(f, MESSAGES, out);
}

static int read_conversations(struct found *f, struct row *out)
{
    return read_chat(f, CONVERSATIONS, out);
}

static int read_conversation(struct found *f, struct row *out)
{
    return read_chat(f, CONVERSATION, out);
}

/* Mark the turns of a prompt as not trained, unless they say that they are. */
static int quiet(const struct found *f, json_t *messages)
{
    const struct row_rules *rules = f->r->segment->rules;
    const bool all = rules && rules->train_on_prompts;
    size_t i;
    json_t *turn;
    bool set = true;
    json_array_foreach(messages, i, turn) if (!all && !json_object_get(turn, "weight")) set =
        set && json_object_set_new(turn, "weight", json_integer(0)) == 0;
    return set ? 0 : jsonl_no_memory(f->r);
}

/* Read TRL's conversational prompt and completion: one conversation, of which the completion is trained. */
static int read_lists(struct found *f, struct row *out)
{
    json_t *answer = NULL;
    out->form = ROW_CHAT;
    int rc = messages_read(f->r, f->value[PROMPT], "prompt", &out->messages);
    if (rc == 0)
        rc = quiet(f, out->messages);
    if (rc == 0)
        rc = messages_read(f->r, f->value[COMPLETION], "completion", &answer);
    if (rc == 0 && json_array_extend(out->messages, answer) != 0)
        rc = jsonl_no_memory(f->r);
    json_decref(answer);
    return rc;
}

static int read_strings(const struct found *f, enum column prompt, enum column completion,
                        struct row *out)
{
    out->form = ROW_PAIR;
    out->prompt = json_incref(f->value[prompt]);
    out->completion = json_incref(f->value[completion]);
    return json_is_string(out->prompt) && json_is_string(out->completion) ? 0 : NJ_E_FORMAT;
}

static int read_pair(struct found *f, struct row *out)
{
    if (json_is_array(f->value[PROMPT]) && json_is_array(f->value[COMPLETION]))
        return read_lists(f, out);
    return read_strings(f, PROMPT, COMPLETION, out) == 0
               ? 0
               : must_be(f, "prompt and completion", "both strings, or both lists of messages");
}

static int read_input(struct found *f, struct row *out)
{
    return read_strings(f, INPUT, OUTPUT, out) == 0 ? 0 : must_be(f, "input and output", "strings");
}

/* A text that is not copied. */
struct piece {
    const char *text;
    size_t bytes;
};

static json_t *join(const struct piece *part, int count)
{
    size_t bytes = 0, n = 0;
    for (int i = 0; i < count; i++)
        bytes += part[i].bytes;
    char *text = malloc(bytes + 1);
    for (int i = 0; i < count && text; n += part[i++].bytes)
        memcpy(text + n, part[i].text, part[i].bytes);
    json_t *out = text ? json_stringn_nocheck(text, bytes) : NULL;
    free(text);
    return out;
}

static struct piece words(const char *text)
{
    return (struct piece){text, strlen(text)};
}

/* Write Alpaca's prompt, for a model without a chat template. */
static json_t *alpaca_prompt(struct piece instruction, struct piece input)
{
    const bool more = input.bytes > 0;
    const struct piece parts[] = {
        words("Below is an instruction that describes a task"),
        words(more ? ", paired with an input that provides further context" : ""),
        words(". Write a response that appropriately completes the request.\n\n### Instruction:\n"),
        instruction,
        words(more ? "\n\n### Input:\n" : ""),
        input,
        words("\n\n### Response:\n"),
    };
    return join(parts, sizeof parts / sizeof *parts);
}

static json_t *alpaca_messages(struct piece instruction, struct piece input, json_t *output)
{
    const struct piece asked[] = {instruction, {"\n", input.bytes > 0}, input};
    return json_pack("[{s:s, s:o}, {s:s, s:O}]", "role", "user", "content", join(asked, 3), "role",
                     "assistant", "content", output);
}

static struct piece words_of(const json_t *value)
{
    return (struct piece){value ? json_string_value(value) : "", json_string_length(value)};
}

static int read_instruction(struct found *f, struct row *out)
{
    const struct piece instruction = words_of(f->value[INSTRUCTION]);
    const struct piece input = words_of(f->value[INPUT]);
    json_t *output = f->value[OUTPUT];
    bool chats;
    if (!instruction.text || !input.text || !json_is_string(output))
        return must_be(f, "instruction, input and output", "strings");
    TRY(jsonl_chats(f->r, &chats));
    out->form = chats ? ROW_CHAT : ROW_PAIR;
    json_memory_begin();
    if (chats)
        out->messages = alpaca_messages(instruction, input, output);
    else
        out->prompt = alpaca_prompt(instruction, input);
    out->completion = json_incref(output);
    const bool refused = json_memory_end();
    return refused || (!out->messages && !out->prompt) ? jsonl_no_memory(f->r) : 0;
}

#define BIT(column) (1u << (column))
/* The shapes. A row has a shape if it has all columns that the shape needs. The shape takes these and its optional
 * ones, so that a later one does not see them. */
static const struct shape {
    const char *name, *chosen; /* chosen: name of the shape if --fields chose it */
    unsigned needs, may;
    int (*read)(struct found *f, struct row *out);
} shapes[] = {
    {"messages", "messages=messages", BIT(MESSAGES), 0, read_messages},
    {"conversations", "messages=conversations", BIT(CONVERSATIONS), 0, read_conversations},
    {"conversation", "messages=conversation", BIT(CONVERSATION), 0, read_conversation},
    {"prompt and completion", "prompt=prompt,completion=completion", BIT(PROMPT) | BIT(COMPLETION),
     0, read_pair},
    {"instruction and output", "instruction=instruction,output=output",
     BIT(INSTRUCTION) | BIT(OUTPUT), BIT(INPUT), read_instruction},
    {"input and output", "input=input,output=output", BIT(INPUT) | BIT(OUTPUT), 0, read_input},
    {"text", "text=text", BIT(TEXT), 0, read_text},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- a row ---- */

/* List the columns of a row, for a sentence. */
static const char *list_columns(json_t *object, char *out, size_t bytes)
{
    const char *name;
    json_t *value;
    size_t n = 0;
    out[0] = '\0';
    json_object_foreach(object, name, value) if (!json_is_null(value) && n + 40 < bytes) n +=
        (size_t)snprintf(out + n, bytes - n, "%s%.32s", n > 0 ? ", " : "", name);
    return out;
}

/* Refuse a row that lacks a column of --fields. */
static int no_column(const struct found *f, json_t *object, const char *column, size_t bytes)
{
    char text[256];
    return fail(NJ_E_FORMAT, "%s:%ld: there is no column %.*s; the row has %s", f->r->segment->path,
                f->r->line, (int)bytes, column,
                *list_columns(object, text, sizeof text) ? text : "no column with a value");
}

/* Return the first column that --fields names and the row lacks; NULL: it has all. */
static const char *absent_column(const struct found *f, json_t *object, size_t *bytes)
{
    const struct row_rules *rules = f->r->segment->rules;
    for (int i = 0; i < COLUMNS && rules && rules->field_count > 0; i++) {
        const char *column = row_column(rules, columns[i], bytes);
        if (column && !json_object_getn(object, column, *bytes))
            return column;
    }
    return NULL;
}

static int no_shape(const struct found *f, json_t *object)
{
    char text[256];
    size_t column_bytes;
    if (!json_is_object(object))
        return jsonl_bad_line(f->r, "a line must be an object with text, prompt and completion, "
                                    "or messages");
    const char *column = absent_column(f, object, &column_bytes);
    if (column)
        return no_column(f, object, column, column_bytes);
    return fail(NJ_E_FORMAT,
                "%s:%ld: the row has neither text, nor prompt and completion, nor messages, "
                "conversations, instruction and output, or input and output; it has %s: say which "
                "of them count, for example --fields prompt=question,completion=answer",
                f->r->segment->path, f->r->line,
                *list_columns(object, text, sizeof text) ? text : "no column with a value");
}

static int find_shape(const struct found *f, json_t *object, const struct shape **out)
{
    unsigned there = 0;
    *out = NULL;
    for (int i = 0; i < COLUMNS; i++)
        there |= f->value[i] ? BIT(i) : 0;
    for (int i = 0; i < SHAPES; i++) {
        if ((there & shapes[i].needs) != shapes[i].needs)
            continue;
        if (*out)
            return fail(NJ_E_FORMAT,
                        "%s:%ld: the row has %s, and also %s; say which counts: --fields %s, or "
                        "--fields %s",
                        f->r->segment->path, f->r->line, (*out)->name, shapes[i].name,
                        (*out)->chosen, shapes[i].chosen);
        there &= ~(shapes[i].needs | shapes[i].may);
        *out = &shapes[i];
    }
    return *out ? 0 : no_shape(f, object);
}

static bool takes(const struct found *f, const struct shape *shape, const json_t *value)
{
    for (int i = 0; i < COLUMNS; i++)
        if (f->value[i] == value && ((shape->needs | shape->may) & BIT(i)))
            return true;
    return false;
}

static int check_meant(const struct found *f, const char *name)
{
    int i = 0;
    while (i < MEANT && strcmp(name, meant[i]) != 0)
        i++;
    if (i == MEANT)
        return 0;
    return fail(NJ_E_FORMAT,
                "%s:%ld: the column %s may change what the row means, and is not understood; "
                "leave it out, or say with --fields which columns count",
                f->r->segment->path, f->r->line, name);
}

/* Return whether the row is a conversation, or becomes one if the model has a chat template. */
static bool may_chat(const struct found *f, const struct shape *shape)
{
    const unsigned chats =
        BIT(MESSAGES) | BIT(CONVERSATIONS) | BIT(CONVERSATION) | BIT(INSTRUCTION);
    return (shape->needs & chats) ||
           ((shape->needs & BIT(COMPLETION)) && json_is_array(f->value[COMPLETION]));
}

/* Refuse columns that change the meaning of the others, and note the rest that no shape takes. */
static int check_others(const struct found *f, const struct shape *shape, json_t *object)
{
    const struct row_rules *rules = f->r->segment->rules;
    const bool told = rules && rules->field_count > 0;
    const char *name;
    json_t *value;
    int rc = 0;
    json_object_foreach(object, name, value)
    {
        if (rc != 0 || !row_gives(value) || takes(f, shape, value) ||
            (may_chat(f, shape) && row_is_beside(name)))
            continue;
        rc = told ? 0 : check_meant(f, name);
        if (rc == 0 && f->r->segment->notes)
            row_note(f->r->segment->notes, name);
    }
    return rc;
}

int row_read(struct reader *r, json_t *object, struct row *out)
{
    struct found f = {.r = r};
    const struct shape *shape;
    *out = (struct row){0};
    for (int i = 0; i < COLUMNS; i++) {
        size_t bytes;
        const char *column = row_column(r->segment->rules, columns[i], &bytes);
        f.value[i] = column ? json_object_getn(object, column, bytes) : NULL;
        if (json_is_null(f.value[i]))
            f.value[i] = NULL;
    }
    TRY(find_shape(&f, object, &shape));
    TRY(check_others(&f, shape, object));
    return shape->read(&f, out);
}

void row_free(struct row *row)
{
    json_decref(row->text);
    json_decref(row->prompt);
    json_decref(row->completion);
    json_decref(row->messages);
}
