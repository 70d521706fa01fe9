/* SPDX-License-Identifier: Apache-2.0
 *
 * turns.c: the stretches of a conversation's text that the assistant says. A template that marks them with its
 * `generation` blocks says so itself. For any other template, the text up to an answer is its output for the messages
 * before with add_generation_prompt, and the text with the answer its output for those up to it: the whole must begin
 * with both. Where the template writes the last answer in a way of its own (Qwen3's keeps its thoughts), a mark in
 * place of the answer shows where it begins and ends.
 */
#include "data/jsonl.h"

#include "io/error.h"
#include "io/json_text.h"
#include "template/spaces.h"

#include <string.h>

/* The mark: private-use code points, which no answer ends with. */
static const char mark[] = "\xee\x84\xa3\xee\x84\xa4";
enum { MARK = sizeof mark - 1 };

static bool begins_with(const struct template_text *whole, const struct template_text *part)
{
    return part->bytes <= whole->bytes &&
           (part->bytes == 0 || memcmp(whole->text, part->text, part->bytes) == 0);
}

static size_t common_begin(const struct template_text *a, const struct template_text *b)
{
    size_t n = 0;
    while (n < a->bytes && n < b->bytes && a->text[n] == b->text[n])
        n++;
    return n;
}

static size_t common_end(const struct template_text *a, const struct template_text *b)
{
    size_t n = 0;
    while (n < a->bytes && n < b->bytes && a->text[a->bytes - 1 - n] == b->text[b->bytes - 1 - n])
        n++;
    return n;
}

static bool is_answer(const struct messages *m, size_t i)
{
    const json_t *turn = json_array_get(m->list, i);
    return strcmp(json_string_value(json_object_get(turn, "role")), "assistant") == 0;
}

/* Add a stretch without the white space after the token that ends a turn, which is never generated. */
static int add_span(struct reader *r, size_t begin, size_t end)
{
    const size_t bytes = end > begin ? text_rstrip(r->written[0].text + begin, end - begin) : 0;
    const struct template_span span = {begin, begin + bytes};
    return pool_add(&r->spans, &span, 1, sizeof span) ? 0 : jsonl_no_memory(r);
}

/* ---- marks ---- */

/* Compare the text that follows an answer in a conversation that ends with it (`last`) with the text that follows it
 * here. Return how many bytes of `last` match: all but white space at the end, or those up to the end of the first
 * added token; -1 if neither do. */
static int64_t ending(const struct reader *r, const char *last, size_t last_bytes, const char *here,
                      size_t bytes)
{
    char token[256];
    const size_t full = text_rstrip(last, last_bytes);
    if (full <= bytes && memcmp(last, here, full) == 0)
        return (int64_t)full;
    const size_t blank = text_white(last, last_bytes);
    for (size_t n = 1; n < sizeof token && blank + n <= last_bytes && blank + n <= bytes; n++) {
        if (memcmp(last, here, blank + n) != 0)
            break;
        memcpy(token, last + blank, n);
        token[n] = '\0';
        if (tokenizer_added(r->tokenizer, token) >= 0)
            return (int64_t)(blank + n);
    }
    return -1;
}

static const char *find_mark(const struct template_text *t)
{
    return t->bytes ? memmem(t->text, t->bytes, mark, MARK) : NULL;
}

/* Texts of a conversation with the mark in place of an answer. */
struct marked {
    struct template_text whole, upto; /* all of it; the text up to the answer */
    size_t begin; /* beginning of the assistant's turn; 0: it begins with the answer */
};

/* Add the turn, if the text around the answer in the whole is the text around the mark. */
static int add_marked(struct reader *r, const struct marked *m, bool *found)
{
    const struct template_text *whole = &r->written[0];
    const char *at = find_mark(&m->upto), *here = find_mark(&m->whole);
    const size_t common = common_begin(whole, &m->whole), left = common_end(whole, &m->whole);
    const size_t begin = m->begin > 0 && m->begin < common ? m->begin : common;
    const size_t place = here ? (size_t)(here - m->whole.text) : 0;
    *found = at && here && common + left <= whole->bytes && place + MARK + left == m->whole.bytes &&
             (m->begin > 0 || place == common);
    if (!*found)
        return 0;
    const size_t end = whole->bytes - left;
    at += MARK;
    const int64_t more =
        ending(r, at, (size_t)(m->upto.text + m->upto.bytes - at), whole->text + end, left);
    *found = more >= 0;
    return *found ? add_span(r, begin, end + (size_t)more) : 0;
}

/* Find where the assistant's turn begins: after the prompt for it, if the whole begins with that; otherwise where both
 * differ, after the messages before. *known: whether one of these holds. Only the content of another role's turn
 * counts. */
static int find_begin(struct reader *r, const struct messages *m, size_t i, bool prompted,
                      struct marked *out, bool *known)
{
    struct template_text *prompt = &r->written[1], *before = &r->written[2];
    const size_t common = prompted ? common_begin(prompt, &out->whole) : 0;
    *known = i == 0 || !is_answer(m, i) || (prompted && common == prompt->bytes);
    out->begin = prompted && common == prompt->bytes ? common : 0;
    const int rc = *known ? 0 : messages_render(m, i, false, before);
    if (rc != 0 || *known)
        return rc;
    *known = begins_with(&out->whole, before);
    out->begin = common >= before->bytes ? common : 0;
    return 0;
}

static int render_marked(struct reader *r, const struct messages *m, size_t i, bool prompted,
                         bool *found)
{
    struct marked marked = {0};
    int rc = messages_render(m, i + 1, false, &marked.upto);
    if (rc == 0)
        rc = messages_render(m, json_array_size(m->list), false, &marked.whole);
    bool known = false;
    if (rc == 0)
        rc = find_begin(r, m, i, prompted, &marked, &known);
    if (rc == 0 && known)
        rc = add_marked(r, &marked, found);
    template_text_free(&marked.whole);
    template_text_free(&marked.upto);
    return rc == NJ_E_NOMEM ? rc : 0; /* a template that raises an error has not found it */
}

/* Find a turn by a mark in place of its answer. */
static int find_marked(struct reader *r, const struct messages *m, size_t i, bool prompted,
                       bool *found)
{
    json_t *turn = json_array_get(m->list, i);
    json_t *content = json_incref(json_object_get(turn, "content"));
    *found = false;
    int rc = json_object_set_new(turn, "content", json_stringn_nocheck(mark, MARK))
                 ? jsonl_no_memory(r)
                 : render_marked(r, m, i, prompted, found);
    if (content ? json_object_set(turn, "content", content) : json_object_del(turn, "content"))
        rc = jsonl_no_memory(r);
    json_decref(content);
    return rc;
}

/* ---- turns ---- */

/* Find a turn by the beginning of the whole, or by a mark. */
static int find_turn(struct reader *r, const struct messages *m, size_t i)
{
    struct template_text *before = &r->written[1], *upto = &r->written[2];
    const bool last = i + 1 == json_array_size(m->list);
    const bool answer = is_answer(m, i);
    bool found;
    int rc = answer ? messages_render(m, i, true, before) : 0;
    const bool prompted = answer && rc == 0;
    if (prompted && !last)
        rc = messages_render(m, i + 1, false, upto);
    if (rc == NJ_E_NOMEM)
        return rc;
    const struct template_text *end = last ? &r->written[0] : upto;
    if (prompted && rc == 0 && begins_with(&r->written[0], before) &&
        begins_with(&r->written[0], end) && before->bytes <= end->bytes)
        return add_span(r, before->bytes, end->bytes);
    rc = find_marked(r, m, i, prompted, &found);
    if (rc != 0 || found)
        return rc;
    return fail(
        NJ_E_UNSUPPORTED,
        "%s:%ld: where message %zu begins and ends in the text of the conversation cannot be "
        "told from its chat template; mark it there with {%% generation %%}, or write the "
        "conversation as prompt and completion",
        r->segment->path, r->line, i + 1);
}

/* Add stretches that the template marks. */
static int add_marks(struct reader *r, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        const struct template_span *span = &r->written[0].span[i];
        if (span->end > span->begin && !pool_add(&r->spans, span, 1, sizeof *span))
            return jsonl_no_memory(r);
    }
    return 0;
}

/* Mark the stretches of a conversation that have a loss. If these are exactly the answers, the template's marks serve;
 * otherwise answers without a loss are left out, and turns of other roles with one are searched for in the text. */
static int take_marked(struct reader *r, const struct messages *m)
{
    const struct template_text *whole = &r->written[0];
    const size_t turns = json_array_size(m->list);
    size_t answers = 0, next = 0;
    bool usual = true;
    int rc = 0;
    for (size_t i = 0; i < turns; i++) {
        answers += is_answer(m, i);
        usual = usual && m->loss[i] == is_answer(m, i);
    }
    if (usual)
        return add_marks(r, 0, whole->spans);
    if (whole->spans != answers)
        return jsonl_bad_line(r, "weight of messages cannot be kept: the chat template does not "
                                 "mark each answer once with {% generation %}");
    for (size_t i = 0; i < turns && rc == 0; i++) {
        const bool answer = is_answer(m, i);
        if (m->loss[i])
            rc = answer ? add_marks(r, next, 1) : find_turn(r, m, i);
        next += answer;
    }
    return rc;
}

int turns_find(struct reader *r, const struct messages *m)
{
    int rc = 0;
    if (template_marks_generation(m->template) && !r->written[0].spans_unknown)
        return take_marked(r, m);
    for (size_t i = 0; i < json_array_size(m->list) && rc == 0; i++)
        if (m->loss[i])
            rc = find_turn(r, m, i);
    return rc;
}
