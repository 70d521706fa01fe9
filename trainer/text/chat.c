/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.c: finds the chat template of a model, and the special tokens that it may write.
 */
#include "text/chat.h"

#include "io/error.h"
#include "io/json_text.h"
#include "io/path.h"
#include "io/regular.h"
#include "text/metadata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEMPLATE_MOST = 16 << 20 };

static int no_memory(const char *dir)
{
    return fail(NJ_E_NOMEM, "%s: out of memory for its chat template", dir);
}

/* ---- reading ---- */

/* Read a file as text; *out is NULL if there is none, or if it is empty. */
static int read_file(const char *dir, const char *name, json_t **out)
{
    char path[PATH_BYTES], *text = NULL;
    size_t room = 0;
    int rc = 0;
    *out = NULL;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file;
    if (access(path, F_OK) != 0)
        return 0;
    rc = regular_open(path, TEMPLATE_MOST, "fetch the model again", &file);
    if (rc != 0)
        return rc;
    const ssize_t bytes = getdelim(&text, &room, '\0', file);
    if (bytes < 0 && !feof(file))
        rc = fail(errno == ENOMEM ? NJ_E_NOMEM : NJ_E_IO, "%s: %s", path, strerror(errno));
    else if (bytes > 0 && !(*out = json_text(text, (size_t)bytes)))
        rc = no_memory(dir);
    free(text);
    fclose(file);
    return rc;
}

/* Read a JSON file; *out is NULL if there is none. Numbers of any size are accepted: none of
 * them is used here. */
static int read_config(const char *dir, const char *name, json_t **out)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return json_read_optional(path, "fetch the model again", out);
}

static int template_of_file(const char *path, json_t **out)
{
    struct gguf g;
    struct gguf_text text;
    TRY(metadata_open(path, &g));
    int rc = gguf_string(&g, "tokenizer.chat_template", &text);
    if (rc == 0 && text.text && !(*out = json_text(text.text, text.bytes)))
        rc = no_memory(path);
    gguf_close(&g);
    return rc;
}

/* Read the field of a JSON file. */
static int template_of_config(const char *dir, const char *name, json_t **out)
{
    json_t *config;
    const int rc = read_config(dir, name, &config);
    json_t *found = json_object_get(config, "chat_template");
    if (rc == 0 && !json_is_null(found))
        *out = json_incref(found);
    json_decref(config);
    return rc;
}

int chat_template(const char *dir, json_t **out)
{
    static const char *const configs[] = {"tokenizer_config.json", "chat_template.json"};
    *out = NULL;
    if (metadata_is(dir))
        return template_of_file(dir, out);
    TRY(read_file(dir, "chat_template.jinja", out));
    for (int i = 0; i < 2 && !*out; i++)
        TRY(template_of_config(dir, configs[i], out));
    return 0;
}

/* ---- tokens ---- */

/* Set a variable to a token's text, unless it is set. */
static int set_token(struct chat *c, const char *name, const char *text, size_t bytes)
{
    if (json_object_get(c->tokens, name))
        return 0;
    json_t *value = json_text(text, bytes);
    return value && json_object_set_new_nocheck(c->tokens, name, value) == 0
               ? 0
               : fail(NJ_E_NOMEM, "out of memory for the special tokens of the chat template");
}

/* Read the tokens of a file. A token is its text, or an object that has it as its content. */
static int tokens_of_config(const char *dir, const char *file, struct chat *c)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    json_t *config;
    int rc = read_config(dir, file, &config);
    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++) {
        const json_t *token = json_object_get(config, names[i]);
        if (json_is_object(token))
            token = json_object_get(token, "content");
        if (json_is_string(token))
            rc = set_token(c, names[i], json_string_value(token), json_string_length(token));
    }
    json_decref(config);
    return rc;
}

static int set_id(struct chat *c, const struct tokenizer *t, const char *name, int64_t id)
{
    size_t bytes;
    bool special;
    const char *text =
        id >= 0 && id <= INT32_MAX ? tokenizer_token(t, (int32_t)id, &bytes, &special) : NULL;
    return text ? set_token(c, name, text, bytes) : 0;
}

static int tokens_of_file(const char *path, const struct tokenizer *t, struct chat *c)
{
    static const char *const names[][2] = {{"bos_token", "tokenizer.ggml.bos_token_id"},
                                           {"eos_token", "tokenizer.ggml.eos_token_id"},
                                           {"unk_token", "tokenizer.ggml.unknown_token_id"},
                                           {"pad_token", "tokenizer.ggml.padding_token_id"}};
    struct gguf g;
    int rc = metadata_open(path, &g);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++) {
        int64_t id;
        rc = gguf_int(&g, names[i][1], -1, &id);
        if (rc == 0)
            rc = set_id(c, t, names[i][0], id);
    }
    gguf_close(&g);
    return rc;
}

static int read_tokens(const char *dir, const struct tokenizer *t, struct chat *c)
{
    c->tokens = json_object();
    if (!c->tokens)
        return no_memory(dir);
    if (metadata_is(dir))
        return tokens_of_file(dir, t, c);
    TRY(tokens_of_config(dir, "tokenizer_config.json", c));
    return tokens_of_config(dir, "special_tokens_map.json", c);
}

/* ---- models without a template ---- */

static const struct {
    const char *tokens[3];
    const char *text;
} built_in[] = {
    {{"<|im_start|>", "<|im_end|>", NULL},
     "{{ bos_token }}{% for m in messages %}"
     "{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"},
    {{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
     "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role + "
     "'<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}{% endfor %}"
     "{% if add_generation_prompt %}"
     "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"},
};

static bool has_tokens(const struct tokenizer *t, const char *const tokens[3])
{
    for (int i = 0; i < 3 && tokens[i]; i++)
        if (tokenizer_added(t, tokens[i]) < 0)
            return false;
    return true;
}

/* Choose the format whose tokens the tokenizer has. It begins with the token that begins texts. */
static int parse_built_in(const char *dir, const struct tokenizer *t, struct chat *out)
{
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) {
        if (!has_tokens(t, built_in[i].tokens))
            continue;
        json_object_del(out->tokens, "bos_token");
        TRY(set_id(out, t, "bos_token", tokenizer_begin_of_text(t)));
        return template_parse(dir, built_in[i].text, strlen(built_in[i].text), &out->plain);
    }
    return fail(NJ_E_UNSUPPORTED,
                "%s: it has no chat template, and its tokenizer has neither the tokens of ChatML "
                "nor those of Llama 3; put its template beside it as chat_template.jinja, or give "
                "texts instead of conversations",
                dir);
}

/* ---- parsing ---- */

static int parse(const char *dir, const json_t *text, struct template **out)
{
    char name[PATH_BYTES + 32];
    snprintf(name, sizeof name, "chat template of %s", dir);
    return template_parse(name, json_string_value(text), json_string_length(text), out);
}

static const json_t *named(const json_t *list, const char *name)
{
    size_t i;
    const json_t *each;
    json_array_foreach(list, i, each)
    {
        const char *its = json_string_value(json_object_get(each, "name"));
        const json_t *text = json_object_get(each, "template");
        if (its && strcmp(its, name) == 0 && json_is_string(text))
            return text;
    }
    return NULL;
}

/* Parse several templates: default is for plain conversations and tool_use for those with tools,
 * as in transformers. */
static int parse_named(const char *dir, const json_t *list, struct chat *out)
{
    const json_t *plain = named(list, "default"), *tools = named(list, "tool_use");
    if (!plain)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: none of its chat templates is called default; put the one to use beside "
                    "it as chat_template.jinja",
                    dir);
    const int rc = parse(dir, plain, &out->plain);
    return rc != 0 || !tools ? rc : parse(dir, tools, &out->tools);
}

/* Parse the template of the model, and one for tools that may be in a file beside it. */
static int parse_text(const char *dir, const json_t *text, struct chat *out)
{
    json_t *tools = NULL;
    int rc = parse(dir, text, &out->plain);
    if (rc == 0 && !metadata_is(dir))
        rc = read_file(dir, "additional_chat_templates/tool_use.jinja", &tools);
    if (rc == 0 && tools)
        rc = parse(dir, tools, &out->tools);
    json_decref(tools);
    return rc;
}

int chat_find(const char *dir, const struct tokenizer *t, struct chat *out)
{
    json_t *template;
    *out = (struct chat){0};
    int rc = chat_template(dir, &template);
    if (rc == 0)
        rc = read_tokens(dir, t, out);
    if (rc == 0 && json_is_string(template))
        rc = parse_text(dir, template, out);
    else if (rc == 0 && json_is_array(template))
        rc = parse_named(dir, template, out);
    else if (rc == 0 && template)
        rc = fail(NJ_E_FORMAT, "%s: chat_template must be a text or a list of named ones", dir);
    else if (rc == 0)
        rc = parse_built_in(dir, t, out);
    json_decref(template);
    return rc;
}

const struct template *chat_template_for(const struct chat *c, bool tools)
{
    return tools && c->tools ? c->tools : c->plain;
}

int chat_writes_day(const char *dir, bool *out)
{
    json_t *template;
    const int rc = chat_template(dir, &template);
    char *text = template ? json_dumps(template, JSON_ENCODE_ANY) : NULL;
    *out = text && strstr(text, "strftime_now") != NULL;
    const bool lost = template && !text;
    free(text);
    json_decref(template);
    return rc != 0 || !lost ? rc : no_memory(dir);
}

void chat_free(struct chat *c)
{
    template_free(c->plain);
    template_free(c->tools);
    json_decref(c->tokens);
    *c = (struct chat){0};
}
