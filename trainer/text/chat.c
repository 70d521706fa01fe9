/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.c: the two formats of conversations that are known. Templates are programs and are not run:
 * what the published ones of Qwen2 to Qwen3, SmolLM2 and Llama 3 to 3.2 add to plain conversations is
 * found by its marks.
 */
#include "text/chat.h"

#include "io/error.h"
#include "io/json_text.h"
#include "io/path.h"
#include "io/regular.h"
#include "text/metadata.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct chat_format formats[] = {
    {.name = "ChatML",
     .mark = "<|im_start|>",
     .before_role = "<|im_start|>",
     .after_role = "\n",
     .end = "<|im_end|>",
     .after = "\n",
     .tokens = {"<|im_start|>", "<|im_end|>", NULL}},
    {.name = "Llama 3",
     .mark = "<|start_header_id|>",
     .before_role = "<|start_header_id|>",
     .after_role = "<|end_header_id|>\n\n",
     .end = "<|eot_id|>",
     .after = "",
     .tokens = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
     .trims = true},
};
enum { FORMATS = sizeof formats / sizeof *formats, TEMPLATE_MOST = 16 << 20 };

/* The text of a file; NULL where there is none, or nothing in it. */
static int read_file(const char *dir, const char *name, char **out)
{
    char path[PATH_BYTES];
    size_t room = 0;
    int rc = NJ_OK;
    *out = NULL;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file;
    if (access(path, F_OK) != 0)
        return NJ_OK;
    rc = regular_open(path, TEMPLATE_MOST, "fetch the model again", &file);
    if (rc)
        return rc;
    if (getdelim(out, &room, '\0', file) < 0) {
        if (!feof(file))
            rc = fail(errno == ENOMEM ? NJ_E_NOMEM : NJ_E_IO, "%s: %s", path, strerror(errno));
        free(*out);
        *out = NULL;
    }
    fclose(file);
    return rc;
}

/* The template, or the first of a list of named ones, that has the mark; NULL: none has. */
static const char *with_mark(const json_t *template, const char *mark)
{
    const json_t *each;
    size_t i;
    const char *text = json_string_value(template);
    if (text)
        return strstr(text, mark) ? text : NULL;
    json_array_foreach(template, i, each)
    {
        text = json_string_value(json_object_get(each, "template"));
        if (text && strstr(text, mark))
            return text;
    }
    return NULL;
}

/* What a template writes stands in it as a string, with escapes, or as it is. Returns a copy up to `end`,
 * NULL without memory. */
static char *literal(const char *text, const char *end)
{
    char *out = malloc((size_t)(end - text) + 1);
    char *to = out;
    for (; out && text < end; text++) {
        const bool escape = *text == '\\' && text + 1 < end && strchr("n\\'\"", text[1]);
        text += escape;
        *to++ = escape && *text == 'n' ? '\n' : *text;
    }
    if (out)
        *to = '\0';
    return out;
}

/* Whether a string of a template, or what stands there as it is, goes on up to `end`. */
static bool reaches(const char *text, const char *end, char stop)
{
    while (text < end && *text != stop)
        text += *text == '\\' ? 2 : 1;
    return text >= end;
}

/* The system message that a ChatML template has written out, for conversations without one. */
static int find_system(const char *template, char **out)
{
    static const char begin[] = "<|im_start|>system";
    const char *end = template, *next;
    for (const char *p = strstr(template, begin); p && end; p = next) {
        const char quote = p > template ? p[-1] : '\0';
        p += sizeof begin - 1;
        const size_t line_feed = *p == '\n' ? 1 : strncmp(p, "\\n", 2) == 0 ? 2 : 0;
        const char *text = p + line_feed;
        next = strstr(text, begin);
        if (end < text)
            end = strstr(text, "<|im_end|>");
        if (line_feed == 0 || !end || end <= text || (next && next < end) ||
            !reaches(text, end, quote == '\'' || quote == '"' ? quote : '{'))
            continue;
        *out = literal(text, end);
        return *out ? NJ_OK : fail(NJ_E_NOMEM, "out of memory for a chat template");
    }
    return NJ_OK;
}

/* Llama 3.1 and later put this before every system message, and write one where there is none. The
 * date is the template's own; that of the day, which 3.2 asks for, would make data of another day other
 * data. */
static const char llama_mark[] = "Cutting Knowledge Date: December 2023";
static const char llama_opening[] =
    "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";

/* Whether the template itself opens the think block of an answer that is to be generated, always, as that of Qwen3's
 * thinking models does. Qwen3's first template leaves that to the model. */
static bool opens_thought(const char *template)
{
    static const char *const begin[] = {"assistant\\n<think>\\n", "assistant\n<think>\n"};
    const char *at = template;
    for (const char *p; (p = strstr(at, "add_generation_prompt")) != NULL;)
        at = p + 1;
    for (int i = 0; i < 2 && at > template; i++) {
        const char *p = strstr(at, begin[i]);
        const char next = p ? p[strlen(begin[i])] : '\0';
        if (next == '\'' || next == '"' || next == '{')
            return true;
    }
    return false;
}

/* What the template adds to the format. */
static int read_template(const char *template, struct chat *c)
{
    c->before_answer = opens_thought(template) ? "<think>\n" : "";
    c->thinks = strstr(template, "last_query_index") && strstr(template, "<think>");
    if (!strstr(template, llama_mark))
        return find_system(template, &c->system);
    c->opening = llama_opening;
    c->system = strdup("");
    return c->system ? NJ_OK : fail(NJ_E_NOMEM, "out of memory for a chat template");
}

static bool has_tokens(const struct tokenizer *t, const struct chat_format *f)
{
    for (int i = 0; i < 3 && f->tokens[i]; i++)
        if (tokenizer_added(t, f->tokens[i]) < 0)
            return false;
    return true;
}

static int template_of_file(const char *path, json_t **out)
{
    struct gguf g;
    struct gguf_text text;
    int rc = metadata_open(path, &g);
    if (rc)
        return rc;
    rc = gguf_string(&g, "tokenizer.chat_template", &text);
    if (!rc && text.text && !(*out = json_text(text.text, text.bytes)))
        rc = fail(NJ_E_NOMEM, "%s: out of memory for its chat template", path);
    gguf_close(&g);
    return rc;
}

int chat_template(const char *dir, json_t **out)
{
    char path[PATH_BYTES];
    json_t *config;
    char *text;
    *out = NULL;
    if (metadata_is(dir))
        return template_of_file(dir, out);
    const int rc = read_file(dir, "chat_template.jinja", &text);
    if (rc)
        return rc;
    if (text) {
        *out = json_text(text, strlen(text));
        free(text);
        return *out ? NJ_OK : fail(NJ_E_NOMEM, "%s: out of memory for its chat template", dir);
    }
    snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    const int failed = json_read_optional(path, "fetch the model again", &config);
    if (failed)
        return failed;
    *out = json_incref(json_object_get(config, "chat_template"));
    json_decref(config);
    return NJ_OK;
}

static int no_format(const char *dir, bool has_template)
{
    return fail(NJ_E_UNSUPPORTED,
                "%s: %s; ChatML and Llama 3 are known: give texts instead of conversations", dir,
                has_template ? "its chat template is of no known format"
                             : "its tokenizer has no tokens for conversations");
}

int chat_find(const char *dir, const struct tokenizer *t, struct chat *out)
{
    json_t *template;
    *out = (struct chat){.opening = "", .before_answer = ""};
    int rc = chat_template(dir, &template);
    if (rc)
        return rc;
    for (int i = 0; i < FORMATS && !out->format && !rc; i++) {
        const char *text = with_mark(template, formats[i].mark);
        if (!has_tokens(t, &formats[i]) || (template && !text))
            continue;
        out->format = &formats[i];
        rc = text ? read_template(text, out) : NJ_OK;
    }
    const bool known = template != NULL;
    json_decref(template);
    if (rc || !out->format)
        return rc ? rc : no_format(dir, known);
    return NJ_OK;
}

int chat_check_end(const struct chat *c, const struct tokenizer *t)
{
    if (t->end_of_text != tokenizer_added(t, c->format->end))
        return NJ_OK;
    return fail(NJ_E_UNSUPPORTED,
                "%s: %s ends a turn and is the only token that could end a conversation; set "
                "eos_token_id of config.json to the one that ends documents",
                t->dir, c->format->end);
}

void chat_free(struct chat *c)
{
    free(c->system);
    *c = (struct chat){0};
}

/* ---- think blocks ---- */

struct chat_text chat_strip(struct chat_text t, bool both)
{
    for (; t.bytes > 0 && *t.text == '\n'; t.bytes--)
        t.text++;
    while (both && t.bytes > 0 && t.text[t.bytes - 1] == '\n')
        t.bytes--;
    return t;
}

/* What stands after the last `mark`, or all of it. */
static struct chat_text after_last(struct chat_text t, const char *mark)
{
    const size_t bytes = strlen(mark);
    for (const char *p; (p = memmem(t.text, t.bytes, mark, bytes)) != NULL; t.text = p + bytes)
        t.bytes -= (size_t)(p - t.text) + bytes;
    return t;
}

void chat_split(struct chat_text *content, struct chat_text *thought)
{
    static const char end[] = "</think>";
    const char *first = memmem(content->text, content->bytes, end, sizeof end - 1);
    *thought = (struct chat_text){content->text, 0};
    if (!first)
        return;
    thought->bytes = (size_t)(first - content->text);
    *thought = chat_strip(after_last(*thought, "<think>"), true);
    *content = chat_strip(after_last(*content, end), false);
}
