/* SPDX-License-Identifier: Apache-2.0
 *
 * prompts.c: see prompts.h. Token ids lie in one array and the ids of lines in another; a prompt is places in both.
 */
#include "data/prompts.h"

#include "data/jsonl.h"
#include "data/shuffle.h"
#include "io/error.h"
#include "io/plural.h"
#include "text/bpe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* A stretch of the token ids, or of the text; an id of a line ends with a NUL behind it. */
struct stretch {
    uint64_t first, count;
};
enum { ANSWER_TOKENS_MOST = 1 << 20 };

struct item {
    struct stretch ids, teacher;
    struct stretch id; /* count is 0: there is none */
    int64_t line;
    int most;   /* max_tokens of the line; 0: none */
    bool apart; /* the teacher reads something else */
};

struct prompts {
    struct item *item;
    size_t count, capacity;
    int32_t *ids;
    size_t id_count, id_capacity;
    char *text;
    size_t text_bytes, text_capacity;
    int64_t dropped;
    int longest, teacher_longest; /* of those that are there */
    uint64_t hash;
    struct order order;
    struct share share;
    struct passed_over passed;
};

/* ---- what grows ---- */

/* Room for `more` behind `used`. Returns what `old` became, or NULL. */
static void *grow(void *old, size_t used, size_t more, size_t size, size_t *capacity)
{
    if (old && *capacity - used >= more)
        return old;
    const size_t grown = used + more + (used + more) / 2 + 16;
    void *out = realloc(old, grown * size);
    *capacity = out ? grown : *capacity;
    return out;
}

static bool add_ids(struct prompts *p, const int32_t *ids, size_t count)
{
    int32_t *more = grow(p->ids, p->id_count, count, sizeof *ids, &p->id_capacity);
    if (!more)
        return false;
    p->ids = more;
    if (count > 0)
        memcpy(p->ids + p->id_count, ids, count * sizeof *ids);
    p->id_count += count;
    return true;
}

static bool add_text(struct prompts *p, const char *text, size_t bytes, struct stretch *out)
{
    char *more = grow(p->text, p->text_bytes, bytes + 1, 1, &p->text_capacity);
    if (!more)
        return false;
    p->text = more;
    memcpy(p->text + p->text_bytes, text, bytes);
    p->text[p->text_bytes + bytes] = '\0';
    *out = (struct stretch){p->text_bytes, bytes};
    p->text_bytes += bytes + 1;
    return true;
}

/* ---- a line ---- */

/* What is read. Items from `next` on wait for their ids; those below `kept` remain. */
struct collector {
    struct reader reader;
    struct prompts *p;
    const struct prompts_options *o;
    size_t kept, next;
    bool teacher; /* the next item has its own ids */
};

static int add_prompt(struct reader *r, const json_t *object, const json_t *value, const char *name)
{
    if (json_is_array(value))
        return jsonl_add_question(r, object, value);
    if (json_is_string(value))
        return jsonl_add_value(r, value, false);
    return fail(NJ_E_FORMAT, "%s:%ld: %s must be a string or a list of {role, content}",
                r->segment->path, r->line, name);
}

static int read_id(struct collector *c, const json_t *object, struct item *out)
{
    const json_t *id = json_object_get(object, "id");
    if (!id || json_is_null(id))
        return NJ_OK;
    if (!json_is_string(id) && !json_is_number(id))
        return jsonl_bad_line(&c->reader, "id must be a string, or a number of at most 64 bits; "
                                          "write others as strings");
    char *text = json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT);
    const bool added = text && add_text(c->p, text, strlen(text), &out->id);
    free(text);
    return added ? NJ_OK : jsonl_no_memory(&c->reader);
}

/* A text, or the messages behind a system message of their own. */
static json_t *with_context(const char *context, const json_t *prompt)
{
    if (json_is_string(prompt))
        return json_sprintf("%s%s", context, json_string_value(prompt));
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
    if (teacher && !json_is_null(teacher))
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
        return NJ_OK;
    if (!json_is_integer(most) || value < 1 || value > ANSWER_TOKENS_MOST)
        return jsonl_bad_line(&c->reader, "max_tokens must be a whole number, at least 1");
    out->most = (int)value;
    return NJ_OK;
}

static int add_line(struct reader *r, const json_t *object)
{
    struct collector *c = r->user;
    struct prompts *p = c->p;
    const json_t *messages = json_object_get(object, "messages");
    const json_t *prompt = messages ? messages : json_object_get(object, "prompt");
    const json_t *teacher = json_object_get(object, "teacher_prompt");
    struct item it = {.line = r->line};
    it.apart = (teacher && !json_is_null(teacher)) || c->o->teacher_context;
    if (!prompt)
        return jsonl_bad_line(r, json_is_object(object)
                                     ? "the object has neither prompt nor messages; rename its "
                                       "fields"
                                     : "a line must be an object with prompt or messages");
    int rc = messages ? jsonl_add_question(r, object, messages)
                      : add_prompt(r, object, prompt, "prompt");
    if (!rc && it.apart)
        rc = add_teacher(c, object, prompt, teacher);
    if (!rc)
        rc = read_id(c, object, &it);
    if (!rc)
        rc = read_most(c, object, &it);
    if (rc)
        return rc;
    struct item *more = grow(p->item, p->count, 1, sizeof *more, &p->capacity);
    if (!more)
        return jsonl_no_memory(r);
    p->item = more;
    p->item[p->count++] = it;
    return NJ_OK;
}

/* ---- ids ---- */

static int check_vocabulary(const struct collector *c, const struct item *it,
                            const struct stretch *s)
{
    const int32_t *ids = c->p->ids + s->first;
    for (size_t i = 0; i < s->count; i++)
        if (ids[i] < 0 || ids[i] >= c->o->vocab_size)
            return fail(NJ_E_FORMAT,
                        "%s:%" PRId64 ": token %zu of the prompt is %d, the vocabulary of this run "
                        "ends at %d; leave that token out",
                        c->reader.segment->path, it->line, i, ids[i], c->o->vocab_size - 1);
    return NJ_OK;
}

/* A text after the token that begins texts; an empty one is the token that ends them where none begins them. */
static int add_encoded(struct collector *c, const struct item *it, const struct span *ids,
                       struct stretch *out)
{
    const struct tokenizer *t = c->reader.tokenizer;
    const int32_t begin = tokenizer_begin_of_text(t);
    const int32_t first = begin >= 0 ? begin : t->end_of_text;
    const bool lead = begin >= 0 || ids->count == 0;
    out->first = c->p->id_count;
    if (lead && first < 0)
        return fail(NJ_E_FORMAT,
                    "%s:%" PRId64 ": the prompt is empty and no token of the model begins a text; "
                    "give one",
                    c->reader.segment->path, it->line);
    if ((lead && !add_ids(c->p, &first, 1)) || !add_ids(c->p, ids->ids, ids->count))
        return fail(NJ_E_NOMEM, "%s:%" PRId64 ": out of memory", c->reader.segment->path, it->line);
    out->count = c->p->id_count - out->first;
    return check_vocabulary(c, it, out);
}

static bool too_long(const struct stretch *s, int longest)
{
    return longest > 0 && s->count > (uint64_t)longest;
}

/* The item has all its ids: it stays, or is dropped with them. */
static void end_item(struct collector *c)
{
    struct prompts *p = c->p;
    struct item *it = &p->item[c->next++];
    if (!it->apart)
        it->teacher = it->ids;
    c->teacher = false;
    if (too_long(&it->ids, c->o->longest) || too_long(&it->teacher, c->o->teacher_longest)) {
        p->id_count = it->ids.first;
        p->dropped++;
    } else {
        p->item[c->kept++] = *it;
    }
}

static int store_ids(struct reader *r, const struct part *part, const struct span *ids)
{
    struct collector *c = r->user;
    struct item *it = &c->p->item[c->next];
    (void)part;
    const int rc = add_encoded(c, it, ids, c->teacher ? &it->teacher : &it->ids);
    if (rc || (it->apart && !c->teacher)) {
        c->teacher = true;
        return rc;
    }
    end_item(c);
    return NJ_OK;
}

/* ---- files ---- */

static int read_file(struct collector *c, char *path, const struct tokenizer *t)
{
    struct segment s = {.path = path};
    if (strcasecmp(extension_of(path), ".jsonl") != 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: prompts are read from .jsonl files; write each as a line "
                    "{\"prompt\": \"...\"}",
                    path);
    int rc = data_file_open(&s.file, path);
    c->reader = (struct reader){
        .segment = &s, .tokenizer = t, .object = add_line, .store = store_ids, .user = c};
    if (!rc)
        rc = jsonl_read(&c->reader);
    data_file_close(&s.file);
    return rc;
}

static int read_files(struct collector *c, const struct tokenizer *t)
{
    struct file_list list;
    c->p->passed.jsonl_alone = true;
    int rc = files_collect(c->o->paths, c->o->path_count, &list, &c->p->passed);
    for (size_t i = 0; i < list.count && !rc; i++)
        rc = read_file(c, list.path[i], t);
    files_free(&list);
    c->p->count = c->kept;
    return rc;
}

/* ---- opening ---- */

static int check_any(const struct prompts *p, const struct prompts_options *o)
{
    const char *path = o->path_count ? o->paths[0] : "--prompts";
    const char *more = o->path_count > 1 ? " and the others" : "";
    if (p->count > 0)
        return NJ_OK;
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
    p->share = (struct share){1, (int64_t)p->count, (int64_t)p->count};
    p->order = (struct order){seed, &p->share, 1, (int64_t)p->count};
}

/* What follows from the items. */
static void finish(struct prompts *p, uint64_t seed)
{
    p->hash = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct item *it = &p->item[i];
        const struct stretch *both[] = {&it->ids, &it->teacher};
        for (int k = 0; k < 2; k++) {
            const uint64_t head[2] = {p->hash, both[k]->count};
            p->hash = XXH3_64bits_withSeed(p->ids + both[k]->first, both[k]->count * sizeof *p->ids,
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
    struct collector c = {.p = p, .o = o};
    if (!t || t->vocab_size == 0)
        return fail(NJ_E_UNSUPPORTED, "%s: prompts need a tokenizer: %s",
                    o->path_count ? o->paths[0] : "--prompts", t ? t->refusal : "there is none");
    int rc = read_files(&c, t);
    if (!rc)
        rc = check_any(p, o);
    if (!rc)
        finish(p, o->seed);
    return rc;
}

int prompts_open(const struct prompts_options *o, const struct tokenizer *t, struct prompts **out)
{
    struct prompts *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p)
        return fail(NJ_E_NOMEM, "out of memory");
    const int rc = read_all(p, o, t);
    if (rc)
        prompts_close(p);
    else
        *out = p;
    return rc;
}

void prompts_close(struct prompts *p)
{
    if (!p)
        return;
    free(p->item);
    free(p->ids);
    free(p->text);
    free(p);
}

/* ---- what there is ---- */

int64_t prompts_count(const struct prompts *p)
{
    return p->order.total;
}

void prompts_get(const struct prompts *p, uint64_t epoch, int64_t i, struct prompt *out)
{
    const int64_t index = order_at(&p->order, epoch, (uint64_t)i).row;
    const struct item *it = &p->item[index];
    *out = (struct prompt){.ids = p->ids + it->ids.first,
                           .count = it->ids.count,
                           .teacher_ids = p->ids + it->teacher.first,
                           .teacher_count = it->teacher.count,
                           .id = it->id.count == 0 ? NULL : p->text + it->id.first,
                           .most = it->most,
                           .index = index};
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

bool prompts_teacher_apart(const struct prompts *p)
{
    size_t i = 0;
    while (i < p->count && p->item[i].teacher.first == p->item[i].ids.first)
        i++;
    return i < p->count;
}

int64_t prompts_longest_text(const struct prompts *p, int64_t most)
{
    int64_t longest = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct item *it = &p->item[i];
        const int64_t text = (int64_t)it->ids.count + (it->most > 0 ? it->most : most);
        longest = text > longest ? text : longest;
    }
    return longest;
}

const struct passed_over *prompts_passed_over(const struct prompts *p)
{
    return &p->passed;
}

uint64_t prompts_hash(const struct prompts *p)
{
    return p->hash;
}
