/* SPDX-License-Identifier: Apache-2.0
 *
 * prompts.c: see prompts.h. Token ids are in one array and the ids of lines in another; a prompt holds its places in
 * both.
 */
#include "batch/prompts.h"

#include "base/plural.h"
#include "base/try.h"
#include "batch/shuffle.h"
#include "data/file_kinds.h"
#include "data/pool.h"
#include "data/rows.h"
#include "io/error.h"
#include "io/json_text.h"
#include "text/bpe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { ANSWER_TOKENS_MOST = 1 << 20 };

struct item {
    struct stretch ids, teacher;
    struct stretch id;    /* count is 0 if there is none */
    int64_t line, number; /* number: number among all prompts that were read */
    int most;             /* max_tokens of the line; 0: none */
    bool has_context;     /* the teacher has a context of its own */
};

struct prompts {
    struct pool item, ids, text; /* text: ids of lines */
    int64_t dropped;
    int longest, teacher_longest; /* numbers of tokens of the longest prompts that remain */
    uint64_t hash;
    struct order order;
    struct share share;
    struct passed_over passed;
    bool chats;
    struct row_notes notes;
};

static struct item *item_of(const struct prompts *p, size_t i)
{
    return (struct item *)p->item.at + i;
}

static const int32_t *ids_of(const struct prompts *p, const struct stretch *s)
{
    return (const int32_t *)p->ids.at + s->first;
}

static bool add_ids(struct prompts *p, const int32_t *ids, size_t count)
{
    return pool_add(&p->ids, ids, count, sizeof *ids);
}

/* ---- a line ---- */

/* The state of reading. Items from `next` on wait for their ids; those below `kept` remain. */
struct collector {
    struct reader reader;
    struct prompts *p;
    const struct prompts_options *o;
    struct row_rules rules; /* rules with the columns that count */
    size_t kept, next;
    bool teacher; /* whether the next item has its own ids */
};

static int add_prompt(struct reader *r, const json_t *object, const json_t *value, const char *name)
{
    if (json_is_array(value))
        return row_add_question(r, object, value, name);
    if (json_is_string(value))
        return jsonl_add_value(r, value, false);
    return fail(NJ_E_FORMAT, "%s:%ld: %s must be a string or a list of {role, content}",
                r->segment->path, r->line, name);
}

/* Join two texts; the second may hold NUL. */
static json_t *joined(const char *context, const json_t *prompt)
{
    const size_t before = strlen(context), bytes = json_string_length(prompt);
    char *text = malloc(before + bytes + 1);
    if (!text)
        return NULL;
    memcpy(text, context, before);
    memcpy(text + before, json_string_value(prompt), bytes);
    json_t *out = json_stringn(text, before + bytes);
    free(text);
    return out;
}

/* Return the text or the messages of a prompt after the context, which comes before a text, or before messages as a
 * system message. */
static json_t *with_context(const char *context, const json_t *prompt)
{
    if (json_is_string(prompt))
        return joined(context, prompt);
    json_t *out = json_pack("[{s:s, s:s}]", "role", "system", "content", context);
    size_t i;
    json_t *turn;
    json_array_foreach(prompt, i, turn)
    {
        const char *role = json_string_value(json_object_get(turn, "role"));
        if (i > 0 || !role || strcmp(role, "system") != 0)
            json_array_append(out, turn);
    }
    return out;
}

static int add_teacher(struct collector *c, const json_t *object, const json_t *prompt,
                       const json_t *teacher)
{
    if (teacher)
        return add_prompt(&c->reader, object, teacher, "teacher_prompt");
    json_t *made = with_context(c->o->teacher_context, prompt);
    const int rc =
        made ? add_prompt(&c->reader, object, made, "prompt") : jsonl_no_memory(&c->reader);
    json_decref(made);
    return rc;
}

static int read_most(struct collector *c, const json_t *object, struct item *out)
{
    const json_t *most = json_object_get(object, "max_tokens");
    const json_int_t value = json_integer_value(most);
    if (!most || json_is_null(most))
        return 0;
    if (!json_is_integer(most) || value < 1 || value > ANSWER_TOKENS_MOST)
        return jsonl_bad_line(&c->reader, "max_tokens must be a whole number, at least 1");
    out->most = (int)value;
    return 0;
}

/* Return the value of a field; a null one is absent. */
static const json_t *field(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

static int add_row(struct reader *r, json_t *object)
{
    struct collector *c = r->user;
    struct prompts *p = c->p;
    const json_t *messages = field(object, "messages");
    const json_t *prompt = messages ? messages : field(object, "prompt");
    const json_t *teacher = field(object, "teacher_prompt");
    struct item it = {.line = r->line, .number = p->notes.rows};
    it.has_context = teacher || c->o->teacher_context;
    if (!prompt)
        return jsonl_bad_line(r, json_is_object(object)
                                     ? "the object has neither prompt nor messages; rename its "
                                       "fields"
                                     : "a line must be an object with prompt or messages");
    TRY(messages ? row_add_question(r, object, messages, "messages")
                 : add_prompt(r, object, prompt, "prompt"));
    if (it.has_context)
        TRY(add_teacher(c, object, prompt, teacher));
    TRY(jsonl_read_id(r, object, &p->text, &it.id));
    TRY(read_most(c, object, &it));
    return pool_add(&p->item, &it, 1, sizeof it) ? 0 : jsonl_no_memory(r);
}

/* ---- columns ---- */

/* Fields that --fields may give a column to. With --fields, prompt and messages count only if they are named there. */
static const char *const named[] = {"prompt", "messages", "teacher_prompt", "id", "max_tokens"};
enum { NAMED = sizeof named / sizeof *named, ASKING = 2 };

static const char *column_of(const struct row_rules *rules, int i, size_t *bytes)
{
    const char *column = row_column(rules, named[i], bytes);
    if (column || i < ASKING)
        return column;
    *bytes = strlen(named[i]);
    return named[i];
}

static int check_fields(const struct row_rules *rules)
{
    static const struct row_names names = {
        named, NAMED,
        "prompt, messages, teacher_prompt, id or max_tokens, for example prompt=question"};
    size_t bytes;
    TRY(row_fields_check(rules, &names));
    if (column_of(rules, 0, &bytes) || column_of(rules, 1, &bytes))
        return 0;
    return fail(NJ_E_ARG, "--fields names neither a prompt column nor a messages column; "
                          "add prompt=COLUMN or messages=COLUMN");
}

/* Make a row whose fields have the names that prompts have for them. */
static json_t *rename_row(const struct row_rules *rules, const json_t *object)
{
    json_t *row = json_object();
    for (int i = 0; row && i < NAMED; i++) {
        size_t bytes;
        const char *column = column_of(rules, i, &bytes);
        json_t *value = column ? json_object_getn(object, column, bytes) : NULL;
        if (value)
            json_object_set(row, named[i], value);
    }
    for (int i = 0; row && i < ROW_BESIDE; i++)
        if (json_object_get(object, row_beside[i]))
            json_object_set(row, row_beside[i], json_object_get(object, row_beside[i]));
    return row;
}

static int add_line(struct reader *r, json_t *object)
{
    const struct collector *c = r->user;
    if (c->rules.field_count == 0 || !json_is_object(object))
        return add_row(r, object);
    json_memory_begin();
    json_t *row = rename_row(&c->rules, object);
    int rc = json_memory_end() ? jsonl_no_memory(r) : 0;
    if (rc == 0)
        rc = add_row(r, row);
    json_decref(row);
    return rc;
}

/* ---- ids ---- */

static int check_vocabulary(const struct collector *c, const struct item *it,
                            const struct stretch *s)
{
    const int32_t *ids = ids_of(c->p, s);
    for (size_t i = 0; i < s->count; i++)
        if (ids[i] < 0 || ids[i] >= c->o->vocab_size)
            return fail(NJ_E_FORMAT,
                        "%s:%" PRId64 ": token %zu of the prompt is %d, the vocabulary of this run "
                        "ends at %d; leave that token out",
                        c->reader.segment->path, it->line, i, ids[i], c->o->vocab_size - 1);
    return 0;
}

/* Add a text after the token that begins texts, unless it begins with that token itself; an empty one is the token that
 * ends texts where none begins them. A chat template has written that token, if it is needed. */
static int add_encoded(struct collector *c, const struct item *it, const struct span *ids,
                       bool rendered, struct stretch *out)
{
    const struct tokenizer *t = c->reader.tokenizer;
    const int32_t begin = tokenizer_begin_of_text(t);
    const int32_t first = begin >= 0 ? begin : t->end_of_text;
    const bool led = rendered || (ids->count > 0 && ids->ids[0] == begin);
    const bool lead = (begin >= 0 && !led) || ids->count == 0;
    out->first = c->p->ids.count;
    if (lead && first < 0)
        return fail(NJ_E_FORMAT,
                    "%s:%" PRId64 ": the prompt is empty and no token of the model begins a text; "
                    "give one",
                    c->reader.segment->path, it->line);
    if ((lead && !add_ids(c->p, &first, 1)) || !add_ids(c->p, ids->ids, ids->count))
        return fail(NJ_E_NOMEM, "%s:%" PRId64 ": out of memory", c->reader.segment->path, it->line);
    out->count = c->p->ids.count - out->first;
    return check_vocabulary(c, it, out);
}

static bool too_long(const struct stretch *s, int longest)
{
    return longest > 0 && s->count > (uint64_t)longest;
}

/* Refuse a prompt that has no room with its answer, or leave it out and count it; *out: whether it was left out. */
static int check_room(struct collector *c, const struct item *it, bool *out)
{
    struct row_notes *n = &c->p->notes;
    const int64_t text = (int64_t)it->ids.count + (it->most > 0 ? it->most : c->o->most);
    *out = c->o->room > 0 && text > c->o->room;
    if (!*out)
        return 0;
    const int rc = fail(NJ_E_ARG,
                        "%s:%" PRId64 ": the prompt and --max-tokens make %" PRId64
                        " tokens, more than %s %d; shorten it, lower --max-tokens or max_tokens of "
                        "the line, or leave such prompts out by --skip-unusable",
                        c->reader.segment->path, it->line, text, c->o->room_name, c->o->room);
    if (!c->o->skip_unusable)
        return rc;
    if (n->unusable++ == 0)
        snprintf(n->first, sizeof n->first, "%s", fail_text());
    return 0;
}

/* End the item, which has all its ids: it stays, or is dropped with them. */
static int end_item(struct collector *c)
{
    struct prompts *p = c->p;
    struct item *it = item_of(p, c->next++);
    bool out;
    if (!it->has_context)
        it->teacher = it->ids;
    c->teacher = false;
    const int rc = check_room(c, it, &out);
    const bool dropped =
        too_long(&it->ids, c->o->longest) || too_long(&it->teacher, c->o->teacher_longest);
    p->dropped += dropped;
    if (out || dropped)
        p->ids.count = it->ids.first;
    else
        *item_of(p, c->kept++) = *it;
    return rc;
}

static int store_ids(struct reader *r, const struct part *part, const struct span *ids)
{
    struct collector *c = r->user;
    struct item *it = item_of(c->p, c->next);
    c->p->chats = c->p->chats || part->rendered;
    const int rc = add_encoded(c, it, ids, part->rendered, c->teacher ? &it->teacher : &it->ids);
    if (rc != 0 || (it->has_context && !c->teacher)) {
        c->teacher = true;
        return rc;
    }
    return end_item(c);
}

/* ---- files ---- */

static bool prompts_read(const struct reader *r, const char *column)
{
    const struct collector *c = r->user;
    bool reads = row_is_beside(column);
    for (int i = 0; i < NAMED && !reads; i++) {
        size_t bytes;
        const char *name = column_of(&c->rules, i, &bytes);
        reads = name && bytes == strlen(column) && memcmp(name, column, bytes) == 0;
    }
    return reads;
}

static int read_file(struct collector *c, char *path, const struct tokenizer *t)
{
    if (!file_has_rows(path))
        return fail(NJ_E_UNSUPPORTED,
                    "%s: prompts are read from .jsonl and .parquet files; write each as a line "
                    "{\"prompt\": \"...\"}",
                    path);
    c->reader = (struct reader){
        .tokenizer = t, .reads = prompts_read, .object = add_line, .store = store_ids, .user = c};
    return rows_read_file(&c->reader, path,
                          &(struct row_rules){.skip_unusable = c->o->skip_unusable}, &c->p->notes);
}

static int read_files(struct collector *c, const struct tokenizer *t)
{
    const struct split_choice together = {SPLIT_AUTO, SPLIT_AUTO};
    struct file_list list;
    c->p->passed.jsonl_alone = true;
    int rc = files_collect(c->o->paths, c->o->path_count, &together, &list, &c->p->passed);
    for (size_t i = 0; i < list.count && rc == 0; i++)
        rc = read_file(c, list.path[i], t);
    files_free(&list);
    c->p->item.count = c->kept;
    return rc;
}

/* ---- opening ---- */

static int check_any(const struct prompts *p, const struct prompts_options *o)
{
    const char *path = o->path_count ? o->paths[0] : "--prompts";
    const char *more = o->path_count > 1 ? " and the others" : "";
    if (p->item.count > 0)
        return 0;
    if (p->notes.unusable > 0)
        return fail(NJ_E_FORMAT, "%s%s: no prompt can be used; the first: %s", path, more,
                    p->notes.first);
    if (p->dropped == 0)
        return fail(NJ_E_FORMAT,
                    "%s%s: there is no prompt in it; write each as a line {\"prompt\": \"...\"}",
                    path, more);
    return fail(NJ_E_FORMAT,
                "%s%s: %" PRId64 " prompt%s, and each is longer than this run allows (%d token%s); "
                "raise --seq-len, or lower the number of tokens that follow",
                path, more, p->dropped, plural(p->dropped), o->longest, plural(o->longest));
}

static void take_order(struct prompts *p, uint64_t seed)
{
    p->share = (struct share){1, (int64_t)p->item.count, (int64_t)p->item.count};
    p->order = (struct order){seed, &p->share, 1, (int64_t)p->item.count};
}

/* Set the fields that follow from the items. */
static void finish(struct prompts *p, uint64_t seed)
{
    p->hash = 0;
    for (size_t i = 0; i < p->item.count; i++) {
        const struct item *it = item_of(p, i);
        const struct stretch *both[] = {&it->ids, &it->teacher};
        for (int k = 0; k < 2; k++) {
            const uint64_t head[2] = {p->hash, both[k]->count};
            p->hash = XXH3_64bits_withSeed(ids_of(p, both[k]), both[k]->count * sizeof(int32_t),
                                           XXH3_64bits(head, sizeof head));
        }
        if ((int)it->ids.count > p->longest)
            p->longest = (int)it->ids.count;
        if ((int)it->teacher.count > p->teacher_longest)
            p->teacher_longest = (int)it->teacher.count;
    }
    take_order(p, seed);
}

static int read_all(struct prompts *p, const struct prompts_options *o, const struct tokenizer *t)
{
    struct collector c = {
        .p = p, .o = o, .rules = {.fields = o->fields, .field_count = o->field_count}};
    if (!t || t->vocab_size == 0)
        return fail(NJ_E_UNSUPPORTED, "%s: prompts need a tokenizer: %s",
                    o->path_count ? o->paths[0] : "--prompts", t ? t->refusal : "there is none");
    TRY(check_fields(&c.rules));
    TRY(read_files(&c, t));
    TRY(check_any(p, o));
    finish(p, o->seed);
    return 0;
}

int prompts_open(const struct prompts_options *o, const struct tokenizer *t, struct prompts **out)
{
    struct prompts *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p)
        return fail(NJ_E_NOMEM, "out of memory");
    const int rc = read_all(p, o, t);
    if (rc != 0)
        prompts_close(p);
    else
        *out = p;
    return rc;
}

void prompts_close(struct prompts *p)
{
    if (!p)
        return;
    free(p->item.at);
    free(p->ids.at);
    free(p->text.at);
    free(p);
}

/* ---- facts about the prompts ---- */

int64_t prompts_count(const struct prompts *p)
{
    return p->order.total;
}

void prompts_get(const struct prompts *p, uint64_t epoch, int64_t i, struct prompt *out)
{
    const int64_t index = order_at(&p->order, epoch, (uint64_t)i).row;
    const struct item *it = item_of(p, (size_t)index);
    *out = (struct prompt){.ids = ids_of(p, &it->ids),
                           .count = it->ids.count,
                           .teacher_ids = ids_of(p, &it->teacher),
                           .teacher_count = it->teacher.count,
                           .id = it->id.count == 0 ? NULL : (const char *)p->text.at + it->id.first,
                           .most = it->most,
                           .index = it->number};
}

int64_t prompts_dropped(const struct prompts *p)
{
    return p->dropped;
}

int prompts_longest(const struct prompts *p)
{
    return p->longest;
}

int prompts_teacher_longest(const struct prompts *p)
{
    return p->teacher_longest;
}

bool prompts_teacher_has_context(const struct prompts *p)
{
    size_t i = 0;
    while (i < p->item.count && item_of(p, i)->teacher.first == item_of(p, i)->ids.first)
        i++;
    return i < p->item.count;
}

int64_t prompts_longest_text(const struct prompts *p, int64_t most)
{
    int64_t longest = 0;
    for (size_t i = 0; i < p->item.count; i++) {
        const struct item *it = item_of(p, i);
        const int64_t text = (int64_t)it->ids.count + (it->most > 0 ? it->most : most);
        longest = text > longest ? text : longest;
    }
    return longest;
}

const struct row_notes *prompts_notes(const struct prompts *p)
{
    return &p->notes;
}

const struct passed_over *prompts_passed_over(const struct prompts *p)
{
    return &p->passed;
}

bool prompts_chats(const struct prompts *p)
{
    return p->chats;
}

uint64_t prompts_hash(const struct prompts *p)
{
    return p->hash;
}
