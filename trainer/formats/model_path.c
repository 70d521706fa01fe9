/* SPDX-License-Identifier: Apache-2.0
 *
 * model_path.c: see model_path.h.
 */
#include "formats/model_path.h"

#include "formats/apr.h"
#include "formats/gguf.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "io/path.h"
#include "io/regular.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *ending, *remedy;
} foreign[] = {
    {".parquet", "Parquet holds data, not a model; give a model folder"},
    {".bin", "PyTorch pickles are not read; save the model with safetensors "
             "(save_pretrained(..., safe_serialization=True))"},
    {".pt", "PyTorch pickles are not read; save the model with safetensors"},
    {".pth", "PyTorch pickles are not read; save the model with safetensors"},
    {".safetensors", "give the folder that holds this file and config.json"},
};

static bool ends_in(const char *name, const char *ending)
{
    const size_t length = strlen(name), bytes = strlen(ending);
    return length > bytes && strcasecmp(name + length - bytes, ending) == 0;
}

static int refuse_foreign(const char *model)
{
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (ends_in(model, foreign[i].ending))
            return fail(NJ_E_UNSUPPORTED, "%s: %s", model, foreign[i].remedy);
    return 0;
}

/* Find the first file with this ending, in the order of names; "" if there is none. */
static void first_file(const char *dir, const char *ending, char *out, size_t bytes)
{
    const struct dirent *entry;
    DIR *d = opendir(dir);
    *out = '\0';
    while (d && (entry = readdir(d)) != NULL)
        if (ends_in(entry->d_name, ending) && (*out == '\0' || strcmp(entry->d_name, out) < 0))
            snprintf(out, bytes, "%s", entry->d_name);
    if (d)
        closedir(d);
}

/* Name the contents of a folder without config.json, if that is a model of another format. */
static int check_folder(const char *dir)
{
    static const struct {
        const char *ending, *what;
    } files[] = {{".gguf", "GGUF"}, {".apr", "APR"}};
    char path[PATH_BYTES], name[256];
    snprintf(path, sizeof path, "%s/config.json", dir);
    if (access(path, F_OK) == 0)
        return 0;
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    if (access(path, F_OK) == 0) /* the code that reads config.json reports it */
        return 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        first_file(dir, files[i].ending, name, sizeof name);
        if (*name)
            return fail(NJ_E_IO, "%s: holds %s files and no config.json; name the file: %s/%s", dir,
                        files[i].what, dir, name);
    }
    return 0;
}

/* Return whether this is ORG/NAME: one slash, with letters, digits, '.', '_' and '-' around it,
 * starting with a letter or digit. */
static int is_hub_name(const char *model)
{
    const char *slash = strchr(model, '/');
    if (!slash || strchr(slash + 1, '/') || !isalnum((unsigned char)model[0]) ||
        !isalnum((unsigned char)slash[1]))
        return 0;
    for (const char *c = model; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("./_-", *c))
            return 0;
    return 1;
}

/* Find the cache folder as huggingface_hub does, which expands a `~` that no shell has expanded;
 * "" if there is no home folder either. */
static void hub_cache(char *out, size_t bytes)
{
    const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    *out = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *value = getenv(places[i].variable), *home = getenv("HOME");
        if (!value || !*value)
            continue;
        const bool at_home = home && value[0] == '~' && (value[1] == '/' || value[1] == '\0');
        snprintf(out, bytes, "%s%s%s", at_home ? home : "", value + at_home, places[i].below);
        return;
    }
}

/* Read the first line of a file; "" if there is none. */
static int read_line(const char *path, char *out, size_t bytes)
{
    FILE *file;
    *out = '\0';
    const int rc = regular_open(path, 0, "fetch the model again", &file);
    if (rc != 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : rc;
    if (fgets(out, (int)bytes, file) == NULL)
        *out = '\0';
    fclose(file);
    out[strcspn(out, "\r\n")] = '\0';
    return 0;
}

static int is_shown_folder(const struct dirent *e)
{
    return e->d_name[0] != '.' && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN);
}

/* List the subfolders of a folder for a sentence. */
static const char *list_folders(const char *path, char *out, size_t bytes)
{
    struct dirent **entry = NULL;
    const int count = scandir(path, &entry, is_shown_folder, versionsort);
    size_t n = 0;
    snprintf(out, bytes, "no folders");
    for (int i = 0; i < count; i++) {
        if (n + strlen(entry[i]->d_name) + 3 < bytes)
            n += (size_t)snprintf(out + n, bytes - n, "%s%s", n > 0 ? ", " : "", entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return out;
}

static bool has_parent(const char *model)
{
    char parent[PATH_BYTES];
    const char *slash = strrchr(model, '/');
    return slash != NULL && slash - model < PATH_BYTES &&
           snprintf(parent, sizeof parent, "%.*s", (int)(slash - model), model) > 0 &&
           folder_is(parent);
}

/* Refuse a folder that does not exist although its parent does, as a checkpoint that was
 * removed. */
static int fail_beside(const char *model)
{
    char parent[PATH_BYTES], list[256];
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(model, '/') - model), model);
    return fail(NJ_E_IO, "%s: no such folder; %s has %s", model, parent,
                list_folders(parent, list, sizeof list));
}

static int resolve_hub(const char *model, char *out, size_t bytes)
{
    char cache[PATH_BYTES], base[PATH_BYTES + 256], path[PATH_BYTES + 512], revision[128];
    const char *slash = strchr(model, '/');
    hub_cache(cache, sizeof cache);
    snprintf(base, sizeof base, "%s/models--%.*s--%s", cache, (int)(slash - model), model,
             slash + 1);
    snprintf(path, sizeof path, "%s/refs/main", base);
    TRY(read_line(path, revision, sizeof revision));
    if (!*revision || strchr(revision, '/'))
        return has_parent(model) ? fail_beside(model)
                                 : fail(NJ_E_IO,
                                        "%s: neither a folder here nor in the Hugging Face cache "
                                        "(%s was tried); fetch "
                                        "it with `hf download %s`, nothing is downloaded here",
                                        model, path, model);
    int length = snprintf(path, sizeof path, "%s/snapshots/%s", base, revision);
    if (!folder_is(path))
        return fail(NJ_E_IO, "%s: the Hugging Face cache lacks %s; fetch the model again", model,
                    path);
    if (length >= (int)bytes)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", path);
    memcpy(out, path, (size_t)length + 1);
    return check_folder(out);
}

static int copy_path(const char *model, char *out, size_t bytes)
{
    if (snprintf(out, bytes, "%s", model) >= (int)bytes)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", model);
    return 0;
}

int model_resolve(const char *model, char *out, size_t bytes)
{
    if (folder_is(model)) {
        TRY(copy_path(model, out, bytes));
        return check_folder(out);
    }
    if (gguf_is(model) || apr_is(model))
        return copy_path(model, out, bytes);
    TRY(refuse_foreign(model));
    if (access(model, F_OK) == 0)
        return fail(
            NJ_E_IO,
            "%s: neither a folder nor a GGUF or APR file; give the folder of a Hugging Face model, "
            "or fetch the file again",
            model);
    if (is_hub_name(model))
        return resolve_hub(model, out, bytes);
    if (has_parent(model))
        return fail_beside(model);
    return fail(
        NJ_E_IO,
        "%s: no such folder or file; give the folder of a Hugging Face model, a GGUF or APR file, "
        "or ORG/NAME of a folder in the local cache",
        model);
}
