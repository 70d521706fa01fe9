/* SPDX-License-Identifier: Apache-2.0
 *
 * model_folder.c: where models are found, and how output folders are checked and published.
 */
#include "io/model_folder.h"

#include "io/error.h"
#include "io/path.h"
#include "io/regular.h"
#include "io/temp.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* ---- finding a model ---- */

static const struct {
    const char *ending, *remedy;
} foreign[] = {
    {".gguf",
     "GGUF, llama.cpp's format, is not read; use the Hugging Face folder it was made from, or "
     "one that transformers makes of it (from_pretrained(DIR, gguf_file=NAME), then "
     "save_pretrained)"},
    {".apr", "an .apr file is not read; export the model to a Hugging Face folder (safetensors)"},
    {".parquet", "Parquet holds data, not a model; give a model folder"},
    {".bin", "PyTorch pickles are not read; save the model with safetensors "
             "(save_pretrained(..., safe_serialization=True))"},
    {".pt", "PyTorch pickles are not read; save the model with safetensors"},
    {".pth", "PyTorch pickles are not read; save the model with safetensors"},
    {".safetensors", "give the folder that holds this file and config.json"},
};

static int refuse_foreign(const char *model)
{
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        size_t length = strlen(model), ending = strlen(foreign[i].ending);
        if (length > ending && strcasecmp(model + length - ending, foreign[i].ending) == 0)
            return fail(NJ_E_UNSUPPORTED, "%s: %s", model, foreign[i].remedy);
    }
    return NJ_OK;
}

/* Says what a folder without config.json holds instead, if that is a model of another format. */
static int check_folder(const char *dir)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    int rc = NJ_OK;
    snprintf(path, sizeof path, "%s/config.json", dir);
    DIR *d = access(path, F_OK) == 0 ? NULL : opendir(dir);
    while (d && !rc && (entry = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        const char *dot = strrchr(entry->d_name, '.');
        if (dot && (strcasecmp(dot, ".gguf") == 0 || strcasecmp(dot, ".apr") == 0))
            rc = refuse_foreign(path);
    }
    if (d)
        closedir(d);
    return rc;
}

/* ORG/NAME: one slash, with letters, digits, '.', '_' and '-' around it, starting with a letter or
 * digit. */
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

/* The cache folder as huggingface_hub finds it; "" if there is no home either. */
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
        const char *value = getenv(places[i].variable);
        if (value && *value) {
            snprintf(out, bytes, "%s%s", value, places[i].below);
            return;
        }
    }
}

/* The first line of a file; "" where there is none. */
static int read_line(const char *path, char *out, size_t bytes)
{
    FILE *file;
    *out = '\0';
    const int rc = regular_open(path, 0, "fetch the model again", &file);
    if (rc)
        return errno == ENOENT || errno == ENOTDIR ? NJ_OK : rc;
    if (fgets(out, (int)bytes, file) == NULL)
        *out = '\0';
    fclose(file);
    out[strcspn(out, "\r\n")] = '\0';
    return NJ_OK;
}

static int resolve_hub(const char *model, char *out, size_t bytes)
{
    char cache[PATH_BYTES], base[PATH_BYTES + 256], path[PATH_BYTES + 512], revision[128];
    const char *slash = strchr(model, '/');
    hub_cache(cache, sizeof cache);
    snprintf(base, sizeof base, "%s/models--%.*s--%s", cache, (int)(slash - model), model,
             slash + 1);
    snprintf(path, sizeof path, "%s/refs/main", base);
    const int rc = read_line(path, revision, sizeof revision);
    if (rc)
        return rc;
    if (!*revision || strchr(revision, '/'))
        return fail(NJ_E_IO,
                    "%s: neither a folder here nor in the Hugging Face cache (%s was tried); fetch "
                    "it with `hf download %s`, nothing is downloaded here",
                    model, path, model);
    int length = snprintf(path, sizeof path, "%s/snapshots/%s", base, revision);
    if (!is_folder(path))
        return fail(NJ_E_IO, "%s: the Hugging Face cache lacks %s; fetch the model again", model,
                    path);
    if (length >= (int)bytes)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", path);
    memcpy(out, path, (size_t)length + 1);
    return check_folder(out);
}

int folder_resolve(const char *model, char *out, size_t bytes)
{
    if (is_folder(model)) {
        if (snprintf(out, bytes, "%s", model) >= (int)bytes)
            return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", model);
        return check_folder(out);
    }
    int rc = refuse_foreign(model);
    if (rc)
        return rc;
    if (access(model, F_OK) == 0)
        return fail(NJ_E_IO, "%s: a file; give the folder of a Hugging Face model", model);
    if (is_hub_name(model))
        return resolve_hub(model, out, bytes);
    return fail(
        NJ_E_IO,
        "%s: no such folder; give the folder of a Hugging Face model, or ORG/NAME of one in "
        "the local cache",
        model);
}

/* ---- output folders ---- */

/* Takes the last name off a path. */
static void go_up(char *place, size_t bytes)
{
    char *slash = strrchr(place, '/');
    if (!slash)
        snprintf(place, bytes, ".");
    else
        slash[slash == place] = '\0';
}

/* The nearest folder at or above path that exists. */
static int nearest(const char *path, char *place, size_t bytes)
{
    struct stat info;
    snprintf(place, bytes, "%s", path);
    while (stat(place, &info) != 0) {
        if ((errno != ENOENT && errno != ENOTDIR) || strcmp(place, ".") == 0)
            return fail(NJ_E_IO, "%s: cannot be looked up: %s", path, strerror(errno));
        go_up(place, bytes);
    }
    if (S_ISDIR(info.st_mode))
        return NJ_OK;
    if (strcmp(place, path) == 0)
        return fail(NJ_E_IO, "%s: is a file; name a folder", path);
    return fail(NJ_E_IO, "%s: %s is a file; name a folder", path, place);
}

/* Creates the folders above path. */
static int make_parents(const char *path)
{
    char copy[PATH_BYTES];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const int error = mkdir(copy, 0777) != 0 ? errno : 0;
        if (error != 0 && error != EEXIST && !is_folder(copy))
            return fail(NJ_E_IO, "%s: cannot create it: %s; choose another output folder", copy,
                        strerror(error));
        *slash = '/';
    }
    return NJ_OK;
}

/* Number of entries of a folder, 1 at most; -1 with errno if it cannot be read. */
static int has_entries(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    int found = 0;
    for (struct dirent *e; !found && (e = readdir(dir));)
        found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return found;
}

static int check_vacant(const char *path)
{
    int found = has_entries(path);
    if (found == 0 || (found < 0 && errno == ENOENT))
        return NJ_OK;
    if (found < 0)
        return fail(NJ_E_IO, "%s: cannot be an output folder: %s; choose another", path,
                    strerror(errno));
    return fail(NJ_E_IO, "%s: the folder is not empty; choose another or remove it", path);
}

void folder_unmake(const char *path, const char *before)
{
    char place[PATH_BYTES];
    snprintf(place, sizeof place, "%s", path);
    /* What is not there, and the end of "a/.", are names to take off. */
    while (strcmp(place, before) != 0 && (rmdir(place) == 0 || errno == ENOENT || errno == EINVAL))
        go_up(place, sizeof place);
}

static int refuse_name(const char *path)
{
    return fail(NJ_E_IO, "'%.80s': not usable as a folder name; choose another", path);
}

static int refuse_to_create(const char *path)
{
    return fail(NJ_E_IO, "%s: cannot create it: %s; choose another output folder", path,
                strerror(errno));
}

int folder_make(const char *path, char *before, size_t bytes)
{
    if (path[0] == '\0' || strlen(path) >= bytes)
        return refuse_name(path);
    int rc = nearest(path, before, bytes);
    if (rc || strcmp(before, path) == 0)
        return rc;
    rc = make_parents(path);
    if (!rc && mkdir(path, 0777) != 0 && errno != EEXIST)
        rc = refuse_to_create(path);
    if (rc)
        folder_unmake(path, before);
    return rc;
}

/* Makes f->temp, and the folders above it that are absent. */
static int make_temp(struct folder *f)
{
    char above[PATH_BYTES];
    snprintf(above, sizeof above, "%s", f->path);
    go_up(above, sizeof above);
    int rc = nearest(above, f->before, sizeof f->before);
    if (rc)
        return rc;
    rc = make_parents(f->path);
    if (!rc && temp_folder(f->path, f->temp, sizeof f->temp) != 0)
        rc = refuse_to_create(f->path);
    if (rc)
        folder_unmake(above, f->before);
    return rc;
}

int folder_begin(struct folder *f, const char *path)
{
    size_t length = strlen(path);
    memset(f, 0, sizeof *f);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length == 0 || length >= sizeof f->path)
        return refuse_name(path);
    memcpy(f->path, path, length);
    const int rc = check_vacant(f->path);
    return rc ? rc : make_temp(f);
}

/* A file or folder: 0, or -1 with errno. Some file systems cannot flush a folder (EINVAL, ENOTSUP): then
 * there is nothing to wait for. */
static int flush(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const int rc = fsync(fd), error = errno;
    close(fd);
    errno = error;
    return rc != 0 && (error == EINVAL || error == ENOTSUP) ? 0 : rc;
}

/* Called by nftw. */
static int flush_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)walk;
    return type == FTW_F || type == FTW_DP ? flush(path) : 0;
}

/* Called by nftw. */
static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

int folder_flush(const struct folder *f)
{
    if (nftw(f->temp, flush_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", f->path, strerror(errno));
    return NJ_OK;
}

int folder_flush_names(const char *dir)
{
    /* One that may be written but not read cannot be opened to be flushed. */
    if (flush(dir) == 0 || errno == EACCES)
        return NJ_OK;
    return fail(NJ_E_IO,
                "%s: cannot fsync the folder: %s; new entries may be lost on power failure", dir,
                strerror(errno));
}

int folder_commit(struct folder *f)
{
    char parent[PATH_BYTES];
    int rc = folder_flush(f);
    /* rename() also replaces an empty folder, which --out may be. */
    if (!rc && rename(f->temp, f->path) != 0)
        rc = fail(NJ_E_IO, "%s: cannot publish the folder: %s", f->path, strerror(errno));
    if (rc) {
        folder_abort(f);
        return rc;
    }
    f->temp[0] = '\0';
    snprintf(parent, sizeof parent, "%s", f->path);
    return folder_flush_names(dirname(parent));
}

void folder_abort(struct folder *f)
{
    if (!f->temp[0])
        return;
    (void)nftw(f->temp, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    folder_unmake(f->temp, f->before);
    f->temp[0] = '\0';
}

bool folder_holds(const char *dir, const char *path)
{
    char place[PATH_BYTES], in[PATH_BYTES], above[PATH_BYTES];
    snprintf(place, sizeof place, "%s", path);
    while (!is_folder(place) && strcmp(place, ".") != 0 && strcmp(place, "/") != 0)
        go_up(place, sizeof place);
    if (!realpath(place, in) || !realpath(dir, above) || !is_folder(above))
        return false;
    size_t length = strlen(above);
    length -= length == 1; /* of / */
    return strncmp(in, above, length) == 0 && (in[length] == '/' || in[length] == '\0');
}

int folder_check_place(const char *path)
{
    char place[PATH_BYTES], probe[PATH_BYTES + 8], temp[PATH_BYTES + 32];
    const int rc = nearest(path, place, sizeof place);
    if (rc != NJ_OK)
        return rc;
    snprintf(probe, sizeof probe, "%s/probe", place);
    if (temp_folder(probe, temp, sizeof temp) != 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    rmdir(temp);
    return NJ_OK;
}

static int check_space(const char *path, uint64_t bytes)
{
    char place[PATH_BYTES];
    struct statvfs info;
    /* On the same file system. */
    const int rc = nearest(path, place, sizeof place);
    if (rc != NJ_OK)
        return rc;
    if (statvfs(place, &info) != 0)
        return fail(NJ_E_IO, "%s: its file system cannot be asked for free space: %s", path,
                    strerror(errno));
    uint64_t free_bytes = (uint64_t)info.f_bavail * info.f_frsize;
    if (info.f_blocks > 0 && free_bytes < bytes) /* one without blocks does not say */
        return fail(NJ_E_IO, "%s: %.0f MiB are needed, %.0f MiB are free; choose another folder",
                    path, (double)bytes / 0x1p20, (double)free_bytes / 0x1p20);
    return NJ_OK;
}

int folder_check_model_space(const char *path, uint64_t weights)
{
    return check_space(path, weights + (weights >> 6)); /* what lies beside them is less */
}
