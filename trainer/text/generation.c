/* SPDX-License-Identifier: Apache-2.0
 *
 * generation.c: see generation.h.
 */
#include "text/generation.h"

#include "formats/gguf.h"
#include "io/error.h"
#include "io/json_text.h"
#include "text/metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* One of a model's JSON files. */
struct file {
    char path[PATH_BYTES];
    json_t *root; /* contents; NULL: there is no such file */
};

/* Open a file; the caller frees f->root, after a failure, too. */
static int open_file(const char *dir, const char *name, struct file *f)
{
    f->root = NULL;
    if (snprintf(f->path, sizeof f->path, "%s/%s", dir, name) >= (int)sizeof f->path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    const int rc = json_read_optional(f->path, "fetch the model again", &f->root);
    if (rc != 0 || !f->root || json_is_object(f->root))
        return rc;
    return fail(NJ_E_FORMAT, "%s: the file must hold an object; fetch the model again", f->path);
}

/* Return a field, or NULL if it is absent or null. Of a model of text and images, its language model may have it. */
static json_t *field(const struct file *f, const char *name)
{
    json_t *value = json_object_get(f->root, name);
    if (!value || json_is_null(value))
        value = json_object_get(json_object_get(f->root, "text_config"), name);
    return json_is_null(value) ? NULL : value;
}

static int refuse(const struct file *f, const char *name, const json_t *value, const char *want)
{
    char *text = json_shown(value, JSON_COMPACT);
    const int rc = fail(NJ_E_FORMAT, "%s: %s is %.80s; %s", f->path, name, text ? text : "?", want);
    free(text);
    return rc;
}

/* ---- stop ids ---- */

bool generation_stops(const struct generation *g, int32_t id)
{
    for (int i = 0; i < g->stops; i++)
        if (g->stop[i] == id)
            return true;
    return false;
}

bool generation_add(struct generation *g, int32_t id)
{
    if (generation_stops(g, id))
        return true;
    if (g->stops == STOP_IDS_MOST)
        return false;
    g->stop[g->stops++] = id;
    return true;
}

static int read_stops(const struct file *f, int vocab_size, struct generation *out)
{
    static const char name[] = "eos_token_id";
    const json_t *value = field(f, name);
    const size_t count = json_is_array(value) ? json_array_size(value) : value != NULL;
    char want[128];
    snprintf(want, sizeof want, "it must be an id from 0 to %d, or a list of at most %d",
             vocab_size - 1, STOP_IDS_MOST);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_is_array(value) ? json_array_get(value, i) : value;
        const json_int_t number = json_integer_value(id);
        if (!json_is_integer(id) || number < 0 || number >= vocab_size ||
            !generation_add(out, (int32_t)number))
            return refuse(f, name, value, want);
    }
    return 0;
}

/* Read the end tokens of config.json, as transformers does if there is no
 * generation_config.json. */
static int read_stops_of_config(const char *dir, int vocab_size, struct generation *out)
{
    struct file f;
    int rc = open_file(dir, "config.json", &f);
    if (rc == 0)
        rc = read_stops(&f, vocab_size, out);
    json_decref(f.root);
    return rc;
}

/* Add the tokenizer's end tokens, which may include ids that the model does not have. */
static int add_tokenizer(const struct tokenizer *t, int vocab_size, struct generation *out)
{
    const int ids[] = {t->end_of_text, t->end_of_turn};
    for (int i = 0; i < 2; i++)
        if (ids[i] >= 0 && ids[i] < vocab_size && !generation_add(out, ids[i]))
            return fail(NJ_E_FORMAT,
                        "%s: more than %d tokens end a text: eos_token_id names %d, and the "
                        "tokenizer has others; remove some from generation_config.json",
                        t->dir, STOP_IDS_MOST, STOP_IDS_MOST);
    return 0;
}

/* Read the end tokens of a GGUF file, which has an id of its own for the end of a turn. */
static int read_stops_of_file(const char *path, int vocab_size, struct generation *out)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.eot_token_id"};
    struct gguf g;
    int rc = metadata_open(path, &g);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && rc == 0; i++) {
        int64_t id;
        rc = gguf_int(&g, keys[i], -1, &id);
        if (rc == 0 && id >= 0 && id < vocab_size)
            generation_add(out, (int32_t)id);
    }
    gguf_close(&g);
    return rc;
}

int generation_read(const char *dir, const struct tokenizer *t, int vocab_size,
                    struct generation *out)
{
    struct file f = {.root = NULL};
    int rc = 0;
    *out = (struct generation){0};
    if (metadata_is(dir)) {
        rc = read_stops_of_file(dir, vocab_size, out);
    } else {
        rc = open_file(dir, "generation_config.json", &f);
        if (rc == 0)
            rc = read_stops(&f, vocab_size, out);
        if (rc == 0 && out->stops == 0)
            rc = read_stops_of_config(dir, vocab_size, out);
        json_decref(f.root);
    }
    return rc != 0 ? rc : add_tokenizer(t, vocab_size, out);
}

/* ---- end tokens of a student ---- */

int generation_said(const char *dir, int vocab_size, struct generation *out)
{
    struct file f = {.root = NULL};
    *out = (struct generation){0};
    if (metadata_is(dir))
        return read_stops_of_file(dir, vocab_size, out);
    int rc = open_file(dir, "generation_config.json", &f);
    if (rc == 0)
        rc = f.root ? read_stops(&f, vocab_size, out) : read_stops_of_config(dir, vocab_size, out);
    json_decref(f.root);
    return rc;
}

/* Copy the fields that transformers takes from config.json if there is no
 * generation_config.json. */
static int take_tokens(const char *dir, json_t *to, bool *found)
{
    static const char *const names[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    struct file f;
    int rc = open_file(dir, "config.json", &f);
    *found = f.root != NULL;
    json_memory_begin();
    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++)
        if (field(&f, names[i]))
            json_object_set(to, names[i], field(&f, names[i]));
    if (json_memory_end() && rc == 0)
        rc = fail(NJ_E_NOMEM, "%s: out of memory", f.path);
    json_decref(f.root);
    return rc;
}

/* Make the configuration to write if DIR has no such file: that of the base, or a new one. */
static int make_config(const char *dir, const char *base, json_t **out)
{
    struct file f = {.root = NULL};
    bool found = false;
    int rc = metadata_is(base) ? 0 : open_file(base, "generation_config.json", &f);
    *out = f.root;
    if (rc != 0 || f.root)
        return rc;
    *out = json_object();
    if (!*out)
        return fail(NJ_E_NOMEM, "%s: out of memory", dir);
    rc = take_tokens(dir, *out, &found);
    return rc != 0 || found || metadata_is(base) ? rc : take_tokens(base, *out, &found);
}

static void add_id(json_t *root, int32_t id)
{
    json_t *value = json_object_get(root, "eos_token_id"), *list = json_array();
    size_t i;
    json_t *each;
    if (json_is_integer(value))
        json_array_append(list, value);
    json_array_foreach(value, i, each) json_array_append(list, each);
    json_array_append_new(list, json_integer(id));
    json_object_set_new(root, "eos_token_id", list);
}

int generation_add_stop(const char *dir, const char *base, int32_t id)
{
    struct file f;
    struct generation said = {0};
    int rc = open_file(dir, "generation_config.json", &f);
    if (rc == 0 && !f.root)
        rc = make_config(dir, base, &f.root);
    if (rc == 0)
        rc = read_stops(&f, INT32_MAX, &said);
    if (rc != 0 || generation_stops(&said, id)) {
        json_decref(f.root);
        return rc;
    }
    unlink(f.path); /* a copy of a read-only file could not be overwritten */
    json_memory_begin();
    add_id(f.root, id);
    return json_write_file(f.path, f.root, JSON_INDENT(2));
}
