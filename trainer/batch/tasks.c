/* SPDX-License-Identifier: Apache-2.0
 *
 * tasks.c: see tasks.h. The ids of a choice are those that the ids of context and choice as one text have beyond the
 * ids of the context alone, as in TemplateLM._encode_pair() of lm-evaluation-harness. Up to the last place where the
 * context may be cut without a change of ids, all of these texts have the same ids, which are made once. Ids, texts and
 * choices of all items are in one array each.
 */
#include "batch/tasks.h"

#include "base/try.h"
#include "base/utf8.h"
#include "data/file_kinds.h"
#include "data/pool.h"
#include "data/rows.h"
#include "io/error.h"
#include "template/spaces.h"
#include "text/bpe.h"
#include "text/prefix_token.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Limits of a line: number of choices, bytes that are encoded for them, tokens of an answer. */
enum { CHOICES_MOST = 1024, TEXTS_MOST = 1 << 28, ANSWER_TOKENS_MOST = 1 << 20 };
enum { CONTEXT_PARTS = 2 }; /* parts of the context: up to where it may be cut, and the rest */
enum { NO_TEXT = 0 };       /* index that stands for no text: only the first path begins at 0 */

struct choice {
    struct stretch ids;
    int characters;
};

struct item {
    enum task_kind kind;
    /* parts: number of parts of text that are encoded */
    int task, parts, choices, gold, untils, most;
    struct stretch ids, answer, id;
    int64_t choice, until, line;
    uint64_t path;
    bool bare; /* whether its context is the prefix token alone */
};

struct tasks {
    struct pool ids, text, item, choice, until,
        name; /* until: struct stretch; name: uint64_t, the beginning of a text */
    struct passed_over passed;
};

/* The state of reading. Items from `next` on wait for their ids. */
struct collector {
    struct reader reader;
    struct tasks *t;
    const struct tasks_options *o;
    json_t *names;  /* number of each task */
    int32_t prefix; /* token before a text that has no context; -1: none */
    uint64_t path;
    size_t next;
    int stored;  /* number of parts of that item that have their ids */
    bool headed; /* whether its context begins with a part that the choices lack */
    /* number of ids of its context that come before those of a choice, as both are encoded */
    uint64_t whole;
};

static struct item *item_of(const struct tasks *t, size_t i)
{
    return (struct item *)t->item.at + i;
}

static const char *text_at(const struct tasks *t, uint64_t first)
{
    return (const char *)t->text.at + first;
}

/* ---- fields ---- */

/* Return a field under either name; NULL if it is absent or null. */
static const json_t *field(const json_t *object, const char *name, const char *other)
{
    const json_t *value = json_object_get(object, name);
    if (!value || json_is_null(value))
        value = other ? json_object_get(object, other) : NULL;
    return json_is_null(value) ? NULL : value;
}

static int keep_string(struct collector *c, const json_t *value, struct stretch *out)
{
    return pool_add_text(&c->t->text, json_string_value(value), json_string_length(value), out)
               ? 0
               : jsonl_no_memory(&c->reader);
}

/* Find the name of a file without its folder and ending. */
static size_t file_name(const char *path, const char **out)
{
    const char *slash = strrchr(path, '/');
    *out = slash ? slash + 1 : path;
    return strlen(*out) - strlen(extension_of(path));
}

static int number_task(struct collector *c, const char *name, size_t bytes, int *out)
{
    struct tasks *t = c->t;
    struct stretch kept;
    char *text = strndup(name, bytes);
    const json_t *known = text ? json_object_get(c->names, text) : NULL;
    *out = known ? (int)json_integer_value(known) : (int)t->name.count;
    const bool added =
        known || (text && json_object_set_new_nocheck(c->names, text, json_integer(*out)) == 0 &&
                  pool_add_text(&t->text, text, bytes, &kept) &&
                  pool_add(&t->name, &kept.first, 1, sizeof kept.first));
    free(text);
    return added ? 0 : jsonl_no_memory(&c->reader);
}

static int read_task(struct collector *c, const json_t *object, struct item *out)
{
    const json_t *task = field(object, "task", NULL);
    const char *name = json_string_value(task);
    size_t bytes = json_string_length(task);
    if (task && (!name || bytes == 0 || memchr(name, '\0', bytes)))
        return jsonl_bad_line(&c->reader, "task must be a name");
    if (!task)
        bytes = file_name(c->reader.segment->path, &name);
    return number_task(c, name, bytes, &out->task);
}

/* ---- choices ---- */

static int characters_of(const json_t *text)
{
    const unsigned char *s = (const unsigned char *)json_string_value(text);
    size_t left = json_string_length(text);
    uint32_t cp;
    int count = 0;
    for (size_t n; left > 0; s += n, left -= n, count++)
        n = utf8_next(s, left, &cp);
    return count;
}

static int check_choices(const struct collector *c, const json_t *choices)
{
    const size_t count = json_array_size(choices);
    if (count < 2 || count > CHOICES_MOST)
        return fail(NJ_E_FORMAT, "%s:%ld: choices must be a list of 2 to %d texts",
                    c->reader.segment->path, c->reader.line, CHOICES_MOST);
    for (size_t i = 0; i < count; i++)
        if (json_string_length(json_array_get(choices, i)) == 0)
            return jsonl_bad_line(&c->reader, "each of choices must be a text, and none is empty");
    return 0;
}

/* Read the right choice: its number, or its text. */
static int read_gold(const struct collector *c, const json_t *object, const json_t *choices,
                     int *out)
{
    const json_t *gold = field(object, "answer", "gold");
    const json_int_t count = (json_int_t)json_array_size(choices);
    json_int_t i = json_is_integer(gold) ? json_integer_value(gold) : 0;
    while (json_is_string(gold) && i < count &&
           !json_equal(gold, json_array_get(choices, (size_t)i)))
        i++;
    *out = (int)i;
    if ((json_is_integer(gold) || json_is_string(gold)) && i >= 0 && i < count)
        return 0;
    return fail(NJ_E_FORMAT,
                "%s:%ld: answer must be the number of a choice, from 0 to %lld, or the text of one",
                c->reader.segment->path, c->reader.line, (long long)count - 1);
}

static int read_choices(struct collector *c, const json_t *object, struct item *out)
{
    struct reader *r = &c->reader;
    const json_t *context = field(object, "context", "query");
    const json_t *choices = json_object_get(object, "choices");
    const json_t *delimiter = field(object, "target_delimiter", NULL);
    if (!json_is_string(context) || (delimiter && !json_is_string(delimiter)))
        return jsonl_bad_line(r, context ? "context and target_delimiter must be texts"
                                         : "choices need a context, which may be \"\"");
    const int rc = check_choices(c, choices);
    out->kind = TASK_CHOICE;
    out->choices = (int)json_array_size(choices);
    out->choice = (int64_t)c->t->choice.count;
    out->bare = json_string_length(context) == 0;
    out->parts = out->choices + (out->bare ? 0 : CONTEXT_PARTS);
    return rc != 0 ? rc : read_gold(c, object, choices, &out->gold);
}

/* The texts before each choice of a line. */
struct before {
    const char *text; /* context from the place where it was cut */
    size_t bytes;
    const json_t *delimiter;
};

static int check_texts(const struct collector *c, const struct before *b, const json_t *choices)
{
    const size_t each = b->bytes + json_string_length(b->delimiter);
    uint64_t bytes = each * (uint64_t)json_array_size(choices);
    for (size_t i = 0; i < json_array_size(choices); i++)
        bytes += json_string_length(json_array_get(choices, i));
    return bytes > TEXTS_MOST
               ? jsonl_bad_line(&c->reader,
                                "the context before each of the choices makes more than "
                                "256 MiB; shorten it")
               : 0;
}

static int add_text(struct reader *r, const char *text, size_t bytes)
{
    const size_t begin = r->bytes;
    TRY(jsonl_add_text(r, text, bytes));
    return jsonl_add_part(r, begin, false);
}

/* Add context, delimiter and choice as one text, which is a part. */
static int add_choice(struct collector *c, const struct before *b, const json_t *text)
{
    struct reader *r = &c->reader;
    const struct choice choice = {.characters = characters_of(text)};
    const json_t *texts[] = {b->delimiter, text};
    const size_t begin = r->bytes;
    TRY(jsonl_add_text(r, b->text, b->bytes));
    for (int i = 0; i < 2; i++)
        TRY(jsonl_add_text(r, json_string_value(texts[i]), json_string_length(texts[i])));
    TRY(jsonl_add_part(r, begin, false));
    if (!pool_add(&c->t->choice, &choice, 1, sizeof choice))
        return jsonl_no_memory(r);
    return rows_encode_full(r);
}

/* Add the parts of an item, which is stored: CONTEXT_PARTS of its context without the white space at the end, which
 * belongs to the choices, then the choices. */
static int add_choices(struct collector *c, const json_t *object, const struct item *it)
{
    const json_t *context = field(object, "context", "query");
    const json_t *choices = json_object_get(object, "choices");
    const char *text = json_string_value(context);
    const size_t bytes = text_rstrip(text, json_string_length(context));
    const size_t cut = tokenizer_cut_last(c->reader.tokenizer, text, bytes);
    const struct before before = {text + cut, json_string_length(context) - cut,
                                  field(object, "target_delimiter", NULL)};
    TRY(check_texts(c, &before, choices));
    if (!it->bare) {
        TRY(add_text(&c->reader, text, cut));
        TRY(add_text(&c->reader, text + cut, bytes - cut));
    }
    for (size_t i = 0; i < json_array_size(choices); i++)
        TRY(add_choice(c, &before, json_array_get(choices, i)));
    return 0;
}

/* ---- prompts ---- */

static int read_untils(struct collector *c, const json_t *object, struct item *out)
{
    const json_t *until = field(object, "until", NULL);
    const size_t count = json_is_array(until) ? json_array_size(until) : until != NULL;
    out->until = (int64_t)c->t->until.count;
    for (size_t i = 0; i < count; i++) {
        const json_t *text = json_is_array(until) ? json_array_get(until, i) : until;
        struct stretch kept;
        if (!json_is_string(text))
            return jsonl_bad_line(&c->reader, "until must be a text or a list of texts");
        if (json_string_length(text) == 0)
            continue;
        const int rc = keep_string(c, text, &kept);
        if (rc != 0 || !pool_add(&c->t->until, &kept, 1, sizeof kept))
            return rc != 0 ? rc : jsonl_no_memory(&c->reader);
        out->untils++;
    }
    return 0;
}

static int read_most(struct collector *c, const json_t *object, struct item *out)
{
    const json_t *most = field(object, "max_tokens", "max_gen_toks");
    const json_int_t value = json_integer_value(most);
    if (most && (!json_is_integer(most) || value < 1 || value > ANSWER_TOKENS_MOST))
        return jsonl_bad_line(&c->reader, "max_tokens must be a whole number, at least 1");
    out->most = (int)value;
    return 0;
}

static int read_prompt(struct collector *c, const json_t *object, struct item *out)
{
    struct reader *r = &c->reader;
    const json_t *messages = field(object, "messages", NULL);
    const json_t *prompt = messages ? messages : field(object, "prompt", NULL);
    const json_t *answer = field(object, "answer", "target");
    out->kind = TASK_TEXT;
    out->parts = 1;
    if (!json_is_string(answer))
        TRY(jsonl_bad_line(r, "answer must be the text that the model is to write"));
    else if (messages || json_is_array(prompt))
        TRY(row_add_question(r, object, prompt, messages ? "messages" : "prompt"));
    else if (json_is_string(prompt))
        TRY(jsonl_add_value(r, prompt, false));
    else
        TRY(jsonl_bad_line(r, "prompt must be a text or a list of {role, content}"));
    TRY(keep_string(c, answer, &out->answer));
    TRY(read_untils(c, object, out));
    return read_most(c, object, out);
}

static int add_line(struct reader *r, json_t *object)
{
    struct collector *c = r->user;
    struct item it = {.path = c->path, .line = r->line};
    int rc;
    if (field(object, "choices", NULL))
        rc = read_choices(c, object, &it);
    else if (field(object, "prompt", "messages"))
        rc = read_prompt(c, object, &it);
    else
        rc = jsonl_bad_line(r, "a line must be an object with context, choices and answer, or with "
                               "prompt or messages, and answer");
    if (rc == 0)
        rc = jsonl_read_id(&c->reader, object, &c->t->text, &it.id);
    if (rc == 0)
        rc = read_task(c, object, &it);
    if (rc == 0 && !pool_add(&c->t->item, &it, 1, sizeof it))
        rc = jsonl_no_memory(r);
    return rc || it.kind == TASK_TEXT ? rc : add_choices(c, object, &it);
}

/* ---- ids ---- */

static int fail_item(const struct collector *c, int rc, const char *what)
{
    return fail(rc, "%s:%" PRId64 ": %s", c->reader.segment->path, item_of(c->t, c->next)->line,
                what);
}

static int keep_ids(struct collector *c, const int32_t *ids, size_t count, struct stretch *out)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= c->o->vocab_size)
            return fail(NJ_E_FORMAT,
                        "%s:%" PRId64 ": token %d lies beyond the vocabulary of the model, which "
                        "ends at %d; leave it out",
                        c->reader.segment->path, item_of(c->t, c->next)->line, ids[i],
                        c->o->vocab_size - 1);
    if (!pool_add(&c->t->ids, ids, count, sizeof *ids))
        return fail_item(c, NJ_E_NOMEM, "out of memory");
    out->count += count;
    return 0;
}

static void begin_ids(const struct collector *c, struct stretch *out)
{
    *out = (struct stretch){c->t->ids.count, 0};
}

/* Return whether the token that begins texts comes before this text, which may begin with it itself. */
static bool has_lead(const struct collector *c, const struct span *s)
{
    const struct tokenizer *t = c->reader.tokenizer;
    bool special;
    size_t bytes = 0;
    const char *prefix = c->prefix >= 0 ? tokenizer_token(t, c->prefix, &bytes, &special) : NULL;
    const bool there =
        prefix && bytes > 0 && s->bytes >= bytes && memcmp(s->text, prefix, bytes) == 0;
    return tokenizer_begin_of_text(t) >= 0 && !there;
}

/* Keep the ids of a span without the first `skip`. */
static int keep_span(struct collector *c, const struct span *s, bool lead, size_t skip,
                     struct stretch *out)
{
    const int32_t begin = tokenizer_begin_of_text(c->reader.tokenizer);
    const size_t from = skip > lead ? skip - lead : 0;
    if (lead && skip == 0)
        TRY(keep_ids(c, &begin, 1, out));
    if (s->count > from)
        TRY(keep_ids(c, s->ids + from, s->count - from, out));
    return 0;
}

static int store_prefix(struct collector *c, struct item *it)
{
    it->bare = true;
    c->whole = 0;
    begin_ids(c, &it->ids);
    return c->prefix >= 0
               ? keep_ids(c, &c->prefix, 1, &it->ids)
               : fail_item(
                     c, NJ_E_FORMAT,
                     "the context is empty and no token of the model begins a text; give one");
}

/* Store the ids of the context: those up to where it was cut, then the others. */
static int store_context(struct collector *c, struct item *it, const struct span *s)
{
    const bool head = c->stored == 0;
    if (head) {
        begin_ids(c, &it->ids);
        c->headed = s->bytes > 0;
    }
    const bool begins = c->headed == head;
    const int rc = keep_span(c, s, begins && has_lead(c, s), 0, &it->ids);
    c->whole = c->headed ? s->count : it->ids.count;
    return rc || head || it->ids.count > 0 ? rc : store_prefix(c, it);
}

/* Store a choice. A text without a context that begins with the prefix token needs no other one. */
static int store_choice(struct collector *c, const struct item *it, int number,
                        const struct span *s)
{
    struct choice *out = (struct choice *)c->t->choice.at + it->choice + number;
    const bool twice = it->bare && s->count > 0 && s->ids[0] == c->prefix;
    const bool lead = !it->bare && !c->headed && has_lead(c, s);
    begin_ids(c, &out->ids);
    TRY(keep_span(c, s, lead, twice ? 1 : (size_t)c->whole, &out->ids));
    if (out->ids.count > 0)
        return 0;
    return fail(NJ_E_FORMAT,
                "%s:%" PRId64 ": choice %d adds no token to the context; move the end of the "
                "context into the choices",
                c->reader.segment->path, it->line, number);
}

/* Store a text after the token that begins texts; an empty one is the token that ends them where none begins them. */
static int store_prompt(struct collector *c, struct item *it, bool rendered, const struct span *s)
{
    const struct tokenizer *t = c->reader.tokenizer;
    const int32_t begin = tokenizer_begin_of_text(t);
    begin_ids(c, &it->ids);
    if (begin < 0 && s->count == 0)
        return t->end_of_text >= 0 ? keep_ids(c, &t->end_of_text, 1, &it->ids)
                                   : fail_item(c, NJ_E_FORMAT,
                                               "the prompt is empty and no token of the model "
                                               "begins a text; give one");
    return keep_span(c, s, !rendered && has_lead(c, s), 0, &it->ids);
}

/* Store the ids of a part: of the context, if there is one, then of each choice with the text cut off the context. */
static int store_ids(struct reader *r, const struct part *part, const struct span *s)
{
    struct collector *c = r->user;
    struct item *it = item_of(c->t, c->next);
    const int first = it->parts - it->choices;
    int rc = 0;
    if (it->kind == TASK_TEXT)
        rc = store_prompt(c, it, part->rendered, s);
    else if (c->stored < first)
        rc = store_context(c, it, s);
    else if (c->stored == 0)
        rc = store_prefix(c, it);
    if (rc == 0 && it->kind == TASK_CHOICE && c->stored >= first)
        rc = store_choice(c, it, c->stored - first, s);
    if (++c->stored == it->parts) {
        c->stored = 0;
        c->next++;
    }
    return rc;
}

/* ---- files ---- */

static int read_file(struct collector *c, char *path, const struct tokenizer *t)
{
    struct stretch name;
    if (strcasecmp(extension_of(path), ".jsonl") != 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tasks are read from .jsonl files; write each item as a line "
                    "{\"context\": \"...\", \"choices\": [...], \"answer\": 0}",
                    path);
    if (!pool_add_text(&c->t->text, path, strlen(path), &name))
        return fail(NJ_E_NOMEM, "%s: out of memory", path);
    c->path = name.first;
    c->reader = (struct reader){.tokenizer = t, .object = add_line, .store = store_ids, .user = c};
    return rows_read_file(&c->reader, path, NULL, NULL);
}

static int read_files(struct collector *c, const struct tokenizer *t)
{
    const struct split_choice together = {SPLIT_AUTO, SPLIT_AUTO};
    struct file_list list;
    c->t->passed.jsonl_alone = true;
    int rc = files_collect(c->o->paths, c->o->path_count, &together, &list, &c->t->passed);
    for (size_t i = 0; i < list.count && rc == 0; i++)
        rc = read_file(c, list.path[i], t);
    files_free(&list);
    if (rc == 0 && c->t->item.count == 0)
        rc = fail(NJ_E_FORMAT,
                  "%s%s: there is no item in it; write each as a line {\"context\": \"...\", "
                  "\"choices\": [...], \"answer\": 0}",
                  c->o->paths[0], c->o->path_count > 1 ? " and the others" : "");
    return rc;
}

static int read_all(struct tasks *tasks, const struct tasks_options *o, const struct tokenizer *t)
{
    struct collector c = {.t = tasks, .o = o, .names = json_object()};
    int rc = 0;
    if (!c.names)
        rc = fail(NJ_E_NOMEM, "out of memory");
    else if (t->vocab_size == 0)
        rc = fail(NJ_E_UNSUPPORTED, "%s: tasks need a tokenizer: %s", o->paths[0], t->refusal);
    if (rc == 0)
        rc = prefix_token(t, &c.prefix);
    if (rc == 0)
        rc = read_files(&c, t);
    json_decref(c.names);
    return rc;
}

int tasks_open(const struct tasks_options *o, const struct tokenizer *t, struct tasks **out)
{
    struct tasks *tasks = calloc(1, sizeof *tasks);
    *out = NULL;
    if (!tasks)
        return fail(NJ_E_NOMEM, "out of memory");
    const int rc = read_all(tasks, o, t);
    if (rc != 0)
        tasks_close(tasks);
    else
        *out = tasks;
    return rc;
}

void tasks_close(struct tasks *t)
{
    if (!t)
        return;
    struct pool *pools[] = {&t->ids, &t->text, &t->item, &t->choice, &t->until, &t->name};
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++)
        free(pools[i]->at);
    free(t);
}

/* ---- facts about the tasks ---- */

int64_t tasks_count(const struct tasks *t)
{
    return (int64_t)t->item.count;
}

void tasks_get(const struct tasks *t, int64_t i, struct task_item *out)
{
    const struct item *it = item_of(t, (size_t)i);
    *out = (struct task_item){
        .kind = it->kind,
        .task = it->task,
        .ids = (const int32_t *)t->ids.at + it->ids.first,
        .count = (int)it->ids.count,
        .choices = it->choices,
        .gold = it->gold,
        .choice = it->choice,
        .answer = it->kind == TASK_TEXT ? text_at(t, it->answer.first) : NULL,
        .answer_bytes = it->answer.count,
        .untils = it->untils,
        .until = it->until,
        .most = it->most,
        .id = it->id.first == NO_TEXT ? NULL : text_at(t, it->id.first),
        .path = text_at(t, it->path),
        .line = (long)it->line,
    };
}

int64_t tasks_choices(const struct tasks *t)
{
    return (int64_t)t->choice.count;
}

void tasks_choice(const struct tasks *t, int64_t number, struct task_choice *out)
{
    const struct choice *c = (const struct choice *)t->choice.at + number;
    *out = (struct task_choice){.ids = (const int32_t *)t->ids.at + c->ids.first,
                                .count = (int)c->ids.count,
                                .characters = c->characters};
}

const char *tasks_until(const struct tasks *t, int64_t number, size_t *bytes)
{
    const struct stretch *s = (const struct stretch *)t->until.at + number;
    *bytes = s->count;
    return text_at(t, s->first);
}

int tasks_names(const struct tasks *t)
{
    return (int)t->name.count;
}

const char *tasks_name(const struct tasks *t, int task)
{
    return text_at(t, ((const uint64_t *)t->name.at)[task]);
}

const struct passed_over *tasks_passed_over(const struct tasks *t)
{
    return &t->passed;
}
