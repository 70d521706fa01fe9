/* SPDX-License-Identifier: Apache-2.0
 *
 * added_config.c: see added_config.h.
 */
#include "text/added_config.h"

#include "io/error.h"
#include "io/json_text.h"
#include "io/notes.h"
#include "io/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const named[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                    "pad_token", "cls_token", "mask_token"};
static const char *const extra[] = {"additional_special_tokens", "extra_special_tokens"};
#define ROWS(table) (sizeof(table) / sizeof *(table))

struct adding {
    const char *dir;
    json_t *list;    /* added_tokens of the tokenizer.json */
    json_t *there;   /* set of their texts */
    json_t *special; /* texts of the named special tokens */
    int fresh;
    char first[64]; /* first new token */
};

static const char *text_of(const json_t *token)
{
    const char *text =
        json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
    return text ? text : "";
}

static bool flag(const json_t *token, const char *name, bool missing)
{
    const json_t *value = json_object_get(token, name);
    return json_is_boolean(value) ? json_is_true(value) : missing;
}

/* Append an entry; for a text that is already there, the last entry's flags count. */
static void append(struct adding *a, const json_t *token, bool special)
{
    const char *text = text_of(token);
    special = special || flag(token, "special", false) || json_object_get(a->special, text);
    json_array_append_new(
        a->list, json_pack("{s:i,s:s,s:b,s:b,s:b,s:b,s:b}", "id", 0, "content", text, "single_word",
                           flag(token, "single_word", false), "lstrip",
                           flag(token, "lstrip", false), "rstrip", flag(token, "rstrip", false),
                           "normalized", flag(token, "normalized", !special), "special", special));
    if (json_object_get(a->there, text))
        return;
    json_object_set_new(a->there, text, json_true());
    if (a->fresh++ == 0)
        snprintf(a->first, sizeof a->first, "%s", text);
}

/* Append a special token, unless its text is that of an added one. */
static void append_special(struct adding *a, const json_t *token)
{
    const char *text = text_of(token);
    if (*text && !json_object_get(a->there, text))
        append(a, token, true);
}

/* ---- lists by id ---- */

struct numbered {
    long long id;
    const json_t *token;
};

static int compare(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Append the tokens of an object in the order of their ids: {id: token}, or {text: id} if
 * `by_text`. */
static int append_numbered(struct adding *a, json_t *object, bool by_text)
{
    const char *key;
    json_t *value;
    size_t n = 0;
    struct numbered *all = calloc(json_object_size(object) + 1, sizeof *all);
    json_t *texts = json_array();
    if (!all) {
        json_decref(texts);
        return NJ_E_NOMEM;
    }
    json_object_foreach(object, key, value)
    {
        json_t *text = by_text ? json_string(key) : NULL;
        all[n++] = (struct numbered){by_text ? json_integer_value(value) : atoll(key),
                                     by_text ? text : value};
        if (text)
            json_array_append_new(texts, text);
    }
    qsort(all, n, sizeof *all, compare);
    for (size_t i = 0; i < n; i++)
        if (*text_of(all[i].token))
            append(a, all[i].token, false);
    json_decref(texts);
    free(all);
    return 0;
}

/* ---- files ---- */

static int read(const char *dir, const char *name, json_t **out)
{
    char path[PATH_BYTES];
    *out = NULL;
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    return json_read_optional(path, "fetch the model again", out);
}

struct files {
    json_t *config, *map, *added;
    const json_t *defaults;
};

static int read_files(const char *dir, struct files *f)
{
    int rc = read(dir, "tokenizer_config.json", &f->config);
    if (rc != 0 || json_is_object(json_object_get(f->config, "added_tokens_decoder")))
        return rc;
    TRY(read(dir, "special_tokens_map.json", &f->map));
    return read(dir, "added_tokens.json", &f->added);
}

/* Return a field of the map, else of the configuration, else the default. */
static const json_t *setting(const struct files *f, const char *name)
{
    const json_t *const places[] = {f->map, f->config, f->defaults};
    const json_t *value = NULL;
    for (size_t i = 0; i < ROWS(places) && !value; i++)
        value = json_object_get(places[i], name);
    return value;
}

static int append_all(struct adding *a, const struct files *f)
{
    const json_t *token;
    size_t i;
    json_array_foreach(a->list, i, token)
        json_object_set_new(a->there, text_of(token), json_true());
    for (size_t k = 0; k < ROWS(named); k++)
        json_object_set_new(a->special, text_of(setting(f, named[k])), json_true());
    int rc = append_numbered(a, json_object_get(f->config, "added_tokens_decoder"), false);
    if (rc == 0)
        rc = append_numbered(a, f->added, true);
    for (size_t k = 0; k < ROWS(named); k++)
        append_special(a, setting(f, named[k]));
    for (size_t k = 0; k < ROWS(extra); k++)
        json_array_foreach(setting(f, extra[k]), i, token) append_special(a, token);
    return rc;
}

int added_config(const char *dir, json_t *tokenizer, const json_t *defaults)
{
    struct files f = {.defaults = defaults};
    struct adding a = {.dir = dir};
    int rc = read_files(dir, &f);
    if (rc == 0 && json_is_object(tokenizer) && (f.config || f.map || f.added || defaults)) {
        json_memory_begin();
        if (!json_is_array(json_object_get(tokenizer, "added_tokens")))
            json_object_set_new(tokenizer, "added_tokens", json_array());
        a.list = json_object_get(tokenizer, "added_tokens");
        a.there = json_object();
        a.special = json_object();
        rc = append_all(&a, &f);
        json_decref(a.there);
        json_decref(a.special);
        if (json_memory_end() || rc != 0)
            rc = fail(NJ_E_NOMEM, "%s: out of memory for its added tokens", dir);
    }
    if (rc == 0 && a.fresh > 0)
        note("%s: %d token%s that %s lacks %s added, as transformers does: %s%s", dir, a.fresh,
             a.fresh == 1 ? "" : "s", defaults ? "vocab.json" : "tokenizer.json",
             a.fresh == 1 ? "is" : "are", a.first, a.fresh == 1 ? "" : ", ...");
    json_decref(f.config);
    json_decref(f.map);
    json_decref(f.added);
    return rc;
}
