/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.c: the two formats of conversations that are known. Templates are programs and are not run:
 * what they add of their own (a system message nobody wrote, a date, tools) is not in the text.
 */
#include "chat.h"

#include "error.h"
#include "json_text.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
enum { FORMATS = sizeof formats / sizeof *formats };

/* The text of a file; NULL where there is none, or nothing in it. */
static int read_file(const char *dir, const char *name, char **out)
{
    char path[4096];
    size_t room = 0;
    int rc = NJ_OK;
    *out = NULL;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return NJ_OK;
    if (getdelim(out, &room, '\0', file) < 0) {
        if (!feof(file))
            rc = fail(errno == ENOMEM ? NJ_E_NOMEM : NJ_E_IO, "%s: %s", path, strerror(errno));
        free(*out);
        *out = NULL;
    }
    fclose(file);
    return rc;
}

/* Whether a template, or one of a list of named ones, has the mark. */
static bool has_mark(const json_t *template, const char *mark)
{
    const json_t *each;
    size_t i;
    if (json_is_string(template))
        return strstr(json_string_value(template), mark) != NULL;
    json_array_foreach(template, i, each)
    {
        const json_t *text = json_object_get(each, "template");
        if (json_is_string(text) && strstr(json_string_value(text), mark))
            return true;
    }
    return false;
}

static bool has_tokens(const struct tokenizer *t, const struct chat_format *f)
{
    for (int i = 0; i < 3 && f->tokens[i]; i++)
        if (tokenizer_added(t, f->tokens[i]) < 0)
            return false;
    return true;
}

/* The template of DIR as JSON, NULL without one. */
static int find_template(const char *dir, json_t **out)
{
    char path[4096];
    json_t *config;
    char *text;
    *out = NULL;
    const int rc = read_file(dir, "chat_template.jinja", &text);
    if (rc)
        return rc;
    if (text) {
        *out = json_text(text, strlen(text));
        free(text);
        return *out ? NJ_OK : fail(NJ_E_NOMEM, "%s: out of memory for its chat template", dir);
    }
    snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    if (json_read_file(path, 0, "", &config) == NJ_E_NOMEM)
        return NJ_E_NOMEM;
    *out = json_incref(json_object_get(config, "chat_template"));
    json_decref(config);
    return NJ_OK;
}

int chat_find(const char *dir, const struct tokenizer *t, const struct chat_format **out)
{
    json_t *template;
    *out = NULL;
    int rc = find_template(dir, &template);
    if (rc)
        return rc;
    for (int i = 0; i < FORMATS && !*out; i++)
        if (has_tokens(t, &formats[i]) && (!template || has_mark(template, formats[i].mark)))
            *out = &formats[i];
    const bool known = template != NULL;
    json_decref(template);
    if (!*out)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s; ChatML and Llama 3 are known: write conversations as prompt and "
                    "completion",
                    dir,
                    known ? "its chat template is of no known format"
                          : "its tokenizer has no tokens for conversations");
    if (t->end_of_text == tokenizer_added(t, (*out)->end))
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s ends a turn and is the only token that could end a conversation; set "
                    "eos_token_id of config.json to the one that ends documents",
                    dir, (*out)->end);
    return NJ_OK;
}
