/* SPDX-License-Identifier: Apache-2.0
 *
 * jsonl.c: a file with a document as a JSON object in each line, in one of three forms:
 *   messages: a conversation; what the assistant says, and the token that ends its turn, has a loss
 *   prompt, completion: the completion has a loss
 *   text: all of it has a loss
 * Where several are there, the first of this list counts; other fields are not looked at. What has
 * a loss is encoded apart from what stands before it, as it is when the model generates.
 */
#include "data/token_files.h"

#include "io/error.h"
#include "io/json_text.h"
#include "text/bpe.h"
#include "text/chat.h"
#include "text/unicode.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_BYTES = 1 << 22 };

/* A stretch of a document. */
struct part {
    size_t begin, end;                 /* in reader.text */
    bool loss, starts, ends, end_loss; /* starts, ends: a document; end_loss: end of text has one */
};

struct reader {
    struct segment *segment;
    const struct tokenizer *tokenizer;
    struct chat chat; /* found when the first conversation comes */
    long line;
    char *text; /* of the parts, one after the other */
    size_t bytes, capacity;
    struct part *part;
    size_t parts, part_capacity;
    size_t told; /* bytes of the file that were said to be encoded */
};

static int bad_line(const struct reader *r, const char *what)
{
    return fail(NJ_E_FORMAT, "%s:%ld: %s", r->segment->path, r->line, what);
}

static int no_memory(const struct reader *r)
{
    return fail(NJ_E_NOMEM, "%s:%ld: out of memory", r->segment->path, r->line);
}

/* ---- parts ---- */

static int add_text(struct reader *r, const char *text, size_t bytes)
{
    if (r->capacity - r->bytes < bytes) {
        const size_t grown = 2 * (r->bytes + bytes) + 4096;
        char *more = realloc(r->text, grown);
        if (!more)
            return no_memory(r);
        r->text = more;
        r->capacity = grown;
    }
    if (bytes > 0)
        memcpy(r->text + r->bytes, text, bytes);
    r->bytes += bytes;
    return NJ_OK;
}

/* Ends the part that began at `begin`. */
static int add_part(struct reader *r, size_t begin, bool loss)
{
    if (r->parts == r->part_capacity) {
        const size_t grown = 2 * r->part_capacity + 64;
        struct part *more = realloc(r->part, grown * sizeof *more);
        if (!more)
            return no_memory(r);
        r->part = more;
        r->part_capacity = grown;
    }
    r->part[r->parts++] = (struct part){.begin = begin, .end = r->bytes, .loss = loss};
    return NJ_OK;
}

static int add_value(struct reader *r, const json_t *value, bool loss)
{
    const size_t begin = r->bytes;
    int rc = add_text(r, json_string_value(value), json_string_length(value));
    return rc ? rc : add_part(r, begin, loss);
}

/* Whether a value is this string, with no NUL and more behind it. */
static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && json_string_length(value) == strlen(text) &&
           strcmp(json_string_value(value), text) == 0;
}

/* ---- the three forms ---- */

static int add_plain(struct reader *r, const json_t *text)
{
    return json_is_string(text) ? add_value(r, text, true) : bad_line(r, "text must be a string");
}

static int add_pair(struct reader *r, const json_t *prompt, const json_t *completion)
{
    if (!json_is_string(prompt) || !json_is_string(completion))
        return bad_line(r,
                        "prompt and completion must be strings; write a conversation as messages");
    int rc = add_value(r, prompt, false);
    return rc ? rc : add_value(r, completion, true);
}

/* What a template's trim takes away: white space as Python sees it. */
static bool white(uint32_t cp)
{
    return (unicode_class[cp] & UNICODE_SPACE) || (cp >= 0x1c && cp <= 0x1f);
}

/* The content without the white space around it, where the format wants that. */
static void trim(const struct chat_format *f, const char **text, size_t *bytes)
{
    uint32_t cp;
    size_t n;
    unicode_prepare();
    while (f->trims && *bytes > 0) {
        n = utf8_next((const unsigned char *)*text, *bytes, &cp);
        if (!white(cp))
            break;
        *text += n;
        *bytes -= n;
    }
    while (f->trims && *bytes > 0) {
        n = utf8_before((const unsigned char *)*text, *bytes, &cp);
        if (!white(cp))
            break;
        *bytes -= n;
    }
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
        rc = add_text(r, header[i], strlen(header[i]));
    if (!rc && t->loss) {
        rc = add_part(r, *begin, false);
        *begin = r->bytes;
    }
    const struct chat_text said[] = {{"<think>\n", t->thinks ? 8 : 0},
                                     {thought.text, t->thinks ? thought.bytes : 0},
                                     {"\n</think>\n\n", t->thinks ? 11 : 0},
                                     content,
                                     {f->end, strlen(f->end)}};
    for (int i = 0; i < 5 && !rc; i++)
        rc = add_text(r, said[i].text, said[i].bytes);
    if (!rc && t->loss) {
        rc = add_part(r, *begin, true);
        *begin = r->bytes;
    }
    return rc ? rc : add_text(r, f->after, strlen(f->after));
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

/* Refuses what a template would write in a way of its own. */
static int check_fields(const struct reader *r, const json_t *turn)
{
    static const char *const calls[] = {"tool_calls", "function_call"};
    for (int i = 0; i < 2; i++)
        if (is_given(json_object_get(turn, calls[i])))
            return fail(NJ_E_FORMAT,
                        "%s:%ld: %s of messages cannot be written as the model's template does; "
                        "write the conversation as prompt and completion",
                        r->segment->path, r->line, calls[i]);
    if (!r->chat.thinks && is_given(json_object_get(turn, "reasoning_content")))
        return bad_line(r, "reasoning_content of messages has no place in this model's "
                           "conversations; put it into content, or leave it out");
    return NJ_OK;
}

static int read_role(const struct reader *r, const json_t *turn, struct turn *out)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    const json_t *role = json_object_get(turn, "role");
    int known = 0;
    while (known < 3 && !is_text(role, roles[known]))
        known++;
    if (known == 3)
        return bad_line(r, "a role of messages must be system, user or assistant");
    out->role = roles[known];
    out->assistant = known == 2;
    return NJ_OK;
}

/* What is said and, in a format that has think blocks, what was thought before. */
static int read_content(const struct reader *r, const json_t *turn, struct turn *out)
{
    const json_t *content = json_object_get(turn, "content");
    const json_t *thought = json_object_get(turn, "reasoning_content");
    if (!json_is_string(content))
        return bad_line(r, "content of messages must be a string");
    out->content = (struct chat_text){json_string_value(content), json_string_length(content)};
    trim(r->chat.format, &out->content.text, &out->content.bytes);
    if (r->chat.thinks && out->assistant && json_is_string(thought))
        out->thought = (struct chat_text){json_string_value(thought), json_string_length(thought)};
    else if (r->chat.thinks && out->assistant)
        chat_split(&out->content, &out->thought);
    return NJ_OK;
}

/* weight: 0 takes the loss from what an assistant says, as in files for OpenAI and Axolotl. */
static int read_weight(const struct reader *r, const json_t *turn, struct turn *out)
{
    const json_t *weight = json_object_get(turn, "weight");
    const double value = json_is_number(weight) ? json_number_value(weight) : 1;
    if ((is_given(weight) && !json_is_number(weight)) || (value != 0 && value != 1))
        return bad_line(r, "weight of messages must be 0 (no loss) or 1");
    out->loss = out->assistant && value != 0;
    return NJ_OK;
}

static int read_turn(const struct reader *r, const json_t *turn, struct turn *out)
{
    *out = (struct turn){.opening = ""};
    int rc = read_role(r, turn, out);
    if (!rc)
        rc = check_fields(r, turn);
    if (!rc)
        rc = read_content(r, turn, out);
    return rc ? rc : read_weight(r, turn, out);
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

/* Where the last question stands: think blocks are of the turns after it. */
static size_t last_question(const json_t *messages)
{
    const size_t n = json_array_size(messages);
    for (size_t i = n; i-- > 0;)
        if (is_question(json_array_get(messages, i)))
            return i;
    return n - 1;
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

static int add_turns(struct reader *r, const json_t *messages)
{
    const size_t count = json_array_size(messages), question = last_question(messages);
    size_t begin = r->bytes;
    bool spoke = false;
    int rc = add_system(r, messages, &begin);
    for (size_t i = 0; i < count && !rc; i++) {
        struct turn t;
        rc = read_turn(r, json_array_get(messages, i), &t);
        if (rc)
            return rc;
        t.thinks = r->chat.thinks && t.assistant && i > question &&
                   (i == count - 1 || t.thought.bytes > 0);
        if (i == 0 && !t.assistant && *t.role == 's')
            t.opening = r->chat.opening;
        spoke = spoke || t.loss;
        rc = add_turn(r, &t, &begin);
    }
    if (!rc && !spoke)
        return bad_line(r, "no turn of messages is the assistant's with a weight above 0, so "
                           "nothing has a loss");
    return rc ? rc : add_part(r, begin, false);
}

static int add_messages(struct reader *r, const json_t *object, const json_t *messages)
{
    if (!json_is_array(messages))
        return bad_line(r, "messages must be a list of {role, content}");
    if (is_given(json_object_get(object, "tools")))
        return bad_line(r,
                        "tools cannot be written as the model's template does; leave them out, or "
                        "write the conversation as prompt and completion");
    int rc = r->chat.format ? NJ_OK : chat_find(r->tokenizer->dir, r->tokenizer, &r->chat);
    if (rc)
        return fail(rc, "%s:%ld: messages: %s", r->segment->path, r->line, fail_text());
    return add_turns(r, messages);
}

/* ---- lines ---- */

static int add_document(struct reader *r, const json_t *object)
{
    const json_t *messages = json_object_get(object, "messages");
    const json_t *completion = json_object_get(object, "completion");
    const json_t *prompt = json_object_get(object, "prompt");
    const json_t *text = json_object_get(object, "text");
    const size_t first = r->parts;
    int rc;
    if (messages)
        rc = add_messages(r, object, messages);
    else if (prompt && completion)
        rc = add_pair(r, prompt, completion);
    else if (text)
        rc = add_plain(r, text);
    else
        rc = bad_line(r, json_is_object(object)
                             ? "the object has neither text, nor prompt and completion, nor "
                               "messages; rename its fields"
                             : "a line must be an object with text, prompt and completion, or "
                               "messages");
    if (rc)
        return rc;
    r->part[first].starts = true;
    r->part[r->parts - 1].ends = true;
    r->part[r->parts - 1].end_loss = !messages;
    return NJ_OK;
}

/* What Python reads and Jansson refuses: a number that is too large, of which 2 stays: no field that counts
 * is a number but a weight, which may not be 2 either; half of a surrogate pair, in whose place U+FFFD
 * comes. Lengths stay. */
static void mend_number(char *text, size_t bytes)
{
    errno = 0;
    const bool whole = strspn(text, "+-0123456789") >= bytes;
    const double value = strtod(text, NULL);
    if (whole)
        (void)strtoll(text, NULL, 10);
    if (whole ? errno != ERANGE : fabs(value) <= DBL_MAX)
        return;
    memset(text, ' ', bytes);
    text[0] = '2';
}

/* The value of \uXXXX, or -1. */
static long escaped(const char *text)
{
    char digits[5] = "", *end;
    if (text[0] != '\\' || text[1] != 'u')
        return -1;
    strncpy(digits, text + 2, 4);
    const long value = strtol(digits, &end, 16);
    return end == digits + 4 && isxdigit((unsigned char)digits[0]) ? value : -1;
}

/* text: at a backslash within a string. Returns how many bytes belong together. */
static size_t mend_escape(char *text)
{
    const long first = escaped(text);
    const bool high = first >= 0xd800 && first < 0xdc00;
    const long second = high ? escaped(text + 6) : -1;
    if (second >= 0xdc00 && second < 0xe000)
        return 12;
    if (first >= 0xd800 && first < 0xe000)
        memcpy(text + 2, "fffd", 4);
    return text[1] == '\0' ? 1 : 2;
}

static void mend(char *line)
{
    bool string = false;
    for (size_t i = 0; line[i] != '\0';) {
        const size_t number = string ? 0 : strspn(line + i, "0123456789+-.eE");
        if (number > 0)
            mend_number(line + i, number);
        string = string != (line[i] == '"');
        i += number > 0 ? number : string && line[i] == '\\' ? mend_escape(line + i) : 1;
    }
}

/* A line that Jansson refuses is mended and read again. */
static json_t *read_object(const char *line, size_t bytes, json_error_t *error)
{
    json_t *object = json_loadb(line, bytes, JSON_ALLOW_NUL, error);
    char *copy = object ? NULL : malloc(bytes + 1);
    if (!copy)
        return object;
    memcpy(copy, line, bytes);
    copy[bytes] = '\0';
    mend(copy);
    object = json_loadb(copy, bytes, JSON_ALLOW_NUL, error);
    free(copy);
    return object;
}

static int add_line(struct reader *r, const char *line, size_t bytes)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of byte order, which Windows puts before a text */
    const size_t marked = r->line == 1 && bytes >= 3 && memcmp(line, mark, 3) == 0 ? 3 : 0;
    size_t blank = marked;
    while (blank < bytes && memchr(" \t\r", line[blank], 3))
        blank++;
    if (blank == bytes)
        return NJ_OK;
    json_error_t error;
    json_memory_begin();
    json_t *object = read_object(line + marked, bytes - marked, &error);
    int rc = NJ_OK;
    if (json_memory_end())
        rc = no_memory(r);
    else if (!object)
        rc = fail(NJ_E_FORMAT, "%s:%ld: column %d: %s; %s", r->segment->path, r->line, error.column,
                  error.text,
                  json_error_code(&error) == json_error_invalid_utf8
                      ? "not UTF-8; convert it with iconv"
                      : "each line must be one JSON object");
    else
        rc = add_document(r, object);
    json_decref(object);
    return rc;
}

/* ---- encoding ---- */

static int store_part(struct reader *r, const struct part *p, const struct span *ids)
{
    const int32_t begin = tokenizer_begin_of_text(r->tokenizer), end = r->tokenizer->end_of_text;
    int rc = NJ_OK;
    if (p->starts && begin >= 0)
        rc = segment_add(r->segment, &begin, 1, true);
    if (!rc)
        rc = segment_add(r->segment, ids->ids, ids->count, p->loss);
    if (!rc && p->ends)
        rc = segment_add(r->segment, &end, 1, p->end_loss);
    return rc;
}

/* Encodes the parts read so far and forgets them. */
static int flush(struct reader *r)
{
    if (r->parts == 0)
        return NJ_OK;
    struct span *spans = calloc(r->parts, sizeof *spans);
    if (!spans)
        return no_memory(r);
    for (size_t i = 0; i < r->parts; i++) {
        spans[i].text = r->text ? r->text + r->part[i].begin : ""; /* no part has a byte */
        spans[i].bytes = r->part[i].end - r->part[i].begin;
    }
    int rc = tokenizer_encode_spans(r->tokenizer, spans, r->parts);
    if (rc)
        rc = fail(rc, "%s: up to line %ld: %s", r->segment->path, r->line, fail_text());
    for (size_t i = 0; i < r->parts; i++) {
        if (!rc)
            rc = store_part(r, &r->part[i], &spans[i]);
        free(spans[i].ids);
    }
    free(spans);
    r->parts = r->bytes = 0;
    const size_t read = r->segment->file.at - r->segment->file.have;
    if (!rc && r->tokenizer->encoded)
        r->tokenizer->encoded(r->tokenizer->user, read - r->told);
    r->told = read;
    return rc;
}

/* The next line of the file, without its end; f->have is 0 if there is none. */
static int next_line(struct data_file *f, size_t *bytes)
{
    const char *end = NULL;
    int rc = f->have > 0 ? NJ_OK : data_file_fill(f, BATCH_BYTES);
    while (!rc && f->have > 0) {
        end = memchr(f->text, '\n', f->have);
        if (end || f->at == f->bytes)
            break;
        rc = data_file_fill(f, f->have + (f->have > BATCH_BYTES ? f->have : BATCH_BYTES));
    }
    *bytes = end ? (size_t)(end - f->text) : f->have;
    return rc;
}

static int read_lines(struct reader *r, struct data_file *f)
{
    size_t bytes;
    int rc = next_line(f, &bytes);
    while (!rc && f->have > 0) {
        r->line++;
        rc = add_line(r, f->text, bytes);
        data_file_skip(f, bytes + (bytes < f->have));
        if (!rc && r->bytes >= BATCH_BYTES)
            rc = flush(r);
        if (!rc)
            rc = next_line(f, &bytes);
    }
    return rc ? rc : flush(r);
}

int open_jsonl(struct segment *s, const struct tokenizer *t)
{
    struct reader r = {.segment = s, .tokenizer = t};
    int rc = segment_begin_text(s, t);
    if (!rc)
        rc = read_lines(&r, &s->file);
    free(r.text);
    free(r.part);
    chat_free(&r.chat);
    return rc;
}
