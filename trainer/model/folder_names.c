/* SPDX-License-Identifier: Apache-2.0
 *
 * folder_names.c: see folder_names.h.
 */
#include "model/folder_names.h"

#include "base/families.h"
#include "base/try.h"
#include "formats/safetensors.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/notes.h"
#include "io/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prefixes that wrappers of a model put before its names, and infixes that some put in the middle. */
static const char *const before[] = {"module.", "base_model.model."};
static const char *const within[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                     "_checkpoint_wrapped_module."};
/* First words of the names of the base model, saved without its head. */
static const char *const bare[] = {"embed_tokens.", "layers.", "norm.", "embedding_norm."};
/* Ends of names of buffers: positions and rotations are computed, masked_bias is a constant. */
static const char *const buffers[] = {"rotary_emb.inv_freq",   "rotary_emb.original_inv_freq",
                                      "rotary_emb.cos_cached", "rotary_emb.sin_cached",
                                      "position_ids",          "attn.masked_bias"};
/* Names of the language model in a folder of a model of text and images or sound; the first row that fits counts. */
static const struct nested {
    const char *before, *after;
} nested[] = {
    {"model.language_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.lm_head.", "lm_head."},
    {"language_model.", "model."},
    {"backbone.", "model."},
};
/* Beginnings of names of its other parts: towers of images and sound, what joins them to the language model, and heads
 * that predict further tokens. */
static const char *const others[] = {
    "vision_tower.",
    "model.vision_tower.",
    "audio_tower.",
    "model.audio_tower.",
    "visual.",
    "model.visual.",
    "embed_vision.",
    "model.embed_vision.",
    "embed_audio.",
    "model.embed_audio.",
    "mtp.",
    "multi_modal_projector.",
    "model.multi_modal_projector.",
    "vision_adapter.",
    "model.vision_adapter.",
    "vision_projection.",
    "model.vision_projection.",
};
#define ROWS(table) (sizeof(table) / sizeof *(table))

/* Cut `part` out of the name at `at`. */
static void cut(char *at, const char *part)
{
    const size_t n = strlen(part);
    memmove(at, at + n, strlen(at + n) + 1);
}

static bool begins(const char *name, const char *part)
{
    return strncmp(name, part, strlen(part)) == 0;
}

/* Take wrappers off a name; return the last one, or NULL. */
static const char *unwrap(char *name)
{
    const char *found = NULL;
    char *at;
    for (size_t i = 0; i < ROWS(within); i++)
        while ((at = strstr(name, within[i])) != NULL)
            cut(at, found = within[i]);
    for (size_t i = 0; i < ROWS(before);) {
        const bool wrapped = begins(name, before[i]);
        if (wrapped)
            cut(name, found = before[i]);
        i = wrapped ? 0 : i + 1;
    }
    return found;
}

/* Put "model." before a name of a base model that was saved alone; return 1 if it did, -1 if there is no room. */
static int add_model(char *name, size_t bytes)
{
    static const char prefix[] = "model.";
    const size_t n = strlen(name), more = sizeof prefix - 1;
    bool is_bare = false;
    for (size_t i = 0; i < ROWS(bare); i++)
        is_bare = is_bare || begins(name, bare[i]);
    if (!is_bare)
        return 0;
    if (n + more >= bytes)
        return -1;
    memmove(name + more, name, n + 1);
    memcpy(name, prefix, more);
    return 1;
}

static bool ends(const char *name, const char *part)
{
    const size_t n = strlen(name), end = strlen(part);
    return n >= end && strcmp(name + n - end, part) == 0;
}

static bool is_buffer(const char *name)
{
    for (size_t i = 0; i < ROWS(buffers); i++)
        if (ends(name, buffers[i]))
            return true;
    return false;
}

static int sort(const char *dir, struct tensors *w)
{
    const struct tensor *twice = tensors_sort(w->tensor, w->count);
    if (twice)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s is there with a prefix and without; keep one of them", dir,
                    twice->name);
    return 0;
}

/* ---- models of text and images ---- */

/* Find whether config.json describes such a model, whose fields of text it has in an object. */
static int is_composite(const char *dir, bool *out)
{
    char path[PATH_BYTES];
    json_t *config;
    *out = false;
    if (snprintf(path, sizeof path, "%s/config.json", dir) >= (int)sizeof path)
        return 0;
    TRY(json_read_optional(path, "fetch the folder again", &config));
    *out = json_is_object(json_object_get(config, "text_config"));
    json_decref(config);
    return 0;
}

/* Give a tensor of the language model the name that it has alone. Return whether the name changed. */
static bool take_out(char *name)
{
    for (size_t i = 0; i < ROWS(nested); i++) {
        const size_t n = strlen(nested[i].before), after = strlen(nested[i].after);
        if (!begins(name, nested[i].before))
            continue;
        memmove(name + after, name + n, strlen(name + n) + 1);
        memcpy(name, nested[i].after, after);
        return true;
    }
    return false;
}

/* Number of tensors of other parts that were left out, by row of `others`. */
struct left_out {
    size_t of[ROWS(others)], all;
};

/* Return whether a tensor is of another part than the language model. */
static bool is_other(const char *name, struct left_out *l)
{
    size_t i = 0;
    while (i < ROWS(others) && !begins(name, others[i]))
        i++;
    if (i == ROWS(others))
        return false;
    l->of[i]++;
    l->all++;
    return true;
}

static void note_others(const char *dir, const struct left_out *l)
{
    char list[512] = "";
    for (size_t i = 0; i < ROWS(others); i++)
        if (l->of[i] > 0)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", list[0] ? ", " : "",
                     others[i]);
    if (l->all > 0)
        note("%s: of its tensors %zu are left out, which the language model does not use: those "
             "whose names begin with %s",
             dir, l->all, list);
}

/* ---- all names ---- */

int folder_names_settle(const char *dir, struct tensors *w)
{
    const char *wrapper = NULL;
    bool added = false, composite, moved = false;
    struct left_out left = {.all = 0};
    size_t kept = 0;
    TRY(is_composite(dir, &composite));
    for (size_t i = 0; i < w->count; i++) {
        struct tensor *t = &w->tensor[i];
        const char *found = unwrap(t->name);
        if (composite && is_other(t->name, &left))
            continue;
        moved = (composite && take_out(t->name)) || moved;
        const int more = add_model(t->name, sizeof t->name);
        if (more < 0)
            return fail(NJ_E_FORMAT, "%s: tensor %s has too long a name", dir, t->name);
        wrapper = found ? found : wrapper;
        added = added || more > 0;
        if (!is_buffer(t->name))
            w->tensor[kept++] = *t;
    }
    w->count = kept;
    if (wrapper)
        note("%s: names of tensors are read without the prefix %s", dir, wrapper);
    if (added)
        note("%s: names of tensors are read with the prefix model., which the file leaves out",
             dir);
    note_others(dir, &left);
    return wrapper || added || moved ? sort(dir, w) : 0;
}

/* Return whether a tensor of a model belongs to what predicts further tokens. */
static bool predicts(const struct model_config *c, unsigned fields, const char *name)
{
    static const char layers[] = "model.layers.";
    if (fields & FIELDS_DELTA)
        return begins(name, "mtp.");
    return (fields & FIELDS_GLM) && begins(name, layers) &&
           strtol(name + strlen(layers), NULL, 10) >= c->layers;
}

void folder_names_cut(const char *dir, const struct model_config *c, struct tensors *w)
{
    const unsigned fields = family_find(c->model_type)->fields;
    size_t kept = 0;
    for (size_t i = 0; i < w->count; i++)
        if (!predicts(c, fields, w->tensor[i].name))
            w->tensor[kept++] = w->tensor[i];
    if (kept < w->count)
        note("%s: of its tensors %zu are left out, which predict further tokens", dir,
             w->count - kept);
    w->count = kept;
}

int folder_names_share(const char *dir, struct tensors *w)
{
    const struct tensor *head = tensors_find(w, FOLDER_HEAD);
    if (!head || tensors_find(w, FOLDER_EMBED))
        return 0;
    struct tensor *t = &w->tensor[head - w->tensor];
    snprintf(t->name, sizeof t->name, "%s", FOLDER_EMBED);
    return sort(dir, w);
}

static bool same(const struct tensor *a, const struct tensor *b)
{
    return a->dtype == b->dtype && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

int folder_has_own_head(const char *dir, bool *out)
{
    struct tensors w;
    *out = false;
    int rc = st_open_parts(dir, &w);
    if (rc != 0)
        return rc;
    rc = folder_names_settle(dir, &w);
    const struct tensor *head = rc ? NULL : tensors_find(&w, FOLDER_HEAD);
    const struct tensor *embed = rc ? NULL : tensors_find(&w, FOLDER_EMBED);
    /* A head without elements is what ZeRO-3 leaves of a head that was not gathered. */
    *out = head && embed && head->bytes > 0 && !same(head, embed);
    tensors_close(&w);
    return rc;
}

int folder_names_check(const char *dir, const struct tensors *w)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct tensor *t = &w->tensor[i];
        if ((int)t->dtype < NJ_TYPES)
            continue;
        if (!strstr(t->name, "_proj.") && !ends(t->name, ".weight"))
            return fail(
                NJ_E_UNSUPPORTED,
                "%s: tensor %s, of type %s, is not a weight of a model that is supported; use "
                "another model",
                dir, t->name, st_type_name(t->dtype));
        return fail(NJ_E_UNSUPPORTED,
                    "%s: tensor %s is %s; F32, BF16 and F16 are supported: use an unquantized "
                    "release of the model",
                    dir, t->name, st_type_name(t->dtype));
    }
    return 0;
}
