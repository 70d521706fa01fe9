/* SPDX-License-Identifier: Apache-2.0
 *
 * data_paths.c: the files that a --data list names. Folders are walked in the order of their names, so that the stream
 * of tokens does not depend on the file system.
 */
#include "base/grow.h"
#include "base/plural.h"
#include "data/file_kinds.h"
#include "data/token_files.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "io/path.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int add_path(struct file_list *list, const char *path)
{
    if (!GROW(list->path, list->capacity, list->count + 1))
        return fail(NJ_E_NOMEM, "%s: out of memory for %zu paths", path, list->count + 1);
    char *copy = strdup(path);
    if (!copy)
        return fail(NJ_E_NOMEM, "%s: out of memory", path);
    list->path[list->count++] = copy;
    return 0;
}

static void pass_over(struct passed_over *p, const char *path)
{
    const char *ending = extension_of(path);
    size_t k = 0;
    p->files++;
    while (k < p->kinds && strncasecmp(p->kind[k].ending, ending, sizeof p->kind->ending - 1) != 0)
        k++;
    if (k == sizeof p->kind / sizeof *p->kind)
        return;
    if (k == p->kinds)
        snprintf(p->kind[p->kinds++].ending, sizeof p->kind->ending, "%s", ending);
    p->kind[k].files++;
}

const char *passed_over_text(const struct passed_over *p, char *out, size_t bytes)
{
    if (p->files == 0)
        return NULL;
    size_t n =
        (size_t)snprintf(out, bytes, "%zu file%s skipped", p->files, plural((long long)p->files));
    for (size_t k = 0; k < p->kinds && n < bytes; k++)
        n += (size_t)snprintf(out + n, bytes - n, "%s%s %zu", k > 0 ? ", " : " (",
                              p->kind[k].ending[0] ? p->kind[k].ending : "without an ending",
                              p->kind[k].files);
    if (n < bytes)
        snprintf(out + n, bytes - n, "%s)%s",
                 p->kinds == sizeof p->kind / sizeof *p->kind ? ", ..." : "",
                 p->jsonl_alone ? "" : "; name a file to have it read as text");
    return out;
}

struct walk {
    const struct split_choice *split;
    struct file_list *list;
    struct passed_over *passed;
};

static int add_folder(const struct walk *w, const char *dir, int depth);

/* Take an entry of a folder: folders are walked, data files taken, others counted, hidden ones ignored. */
static int add_entry(const struct walk *w, const char *dir, const char *name, int depth)
{
    char path[PATH_BYTES];
    struct stat info;
    if (name[0] == '.')
        return 0;
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", path);
    if (stat(path, &info) != 0)
        return fail(NJ_E_IO, "%s: %s; check the folder", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return add_folder(w, path, depth + 1);
    if (path_is_data(path))
        return add_path(w->list, path);
    pass_over(w->passed, path);
    return 0;
}

static int add_folder(const struct walk *w, const char *dir, int depth)
{
    struct dirent **entry;
    if (depth > 32)
        return fail(NJ_E_IO, "%s: folders lie more than 32 deep; check for links in a circle", dir);
    int count = scandir(dir, &entry, NULL, alphasort);
    if (count < 0)
        return fail(NJ_E_IO, "%s: %s; check the folder", dir, strerror(errno));
    int rc = 0;
    for (int i = 0; i < count; i++) {
        if (rc == 0)
            rc = add_entry(w, dir, entry[i]->d_name, depth);
        free(entry[i]);
    }
    free(entry);
    return rc;
}

static int add_path_or_folder(const struct walk *w, const char *path)
{
    struct stat info;
    char passed[256];
    if (strcmp(path, "-") == 0)
        return fail(NJ_E_ARG,
                    "-: standard input is not read, since a run goes through its data more "
                    "than once; write it to a file");
    if (stat(path, &info) != 0)
        return fail(NJ_E_IO, "%s: %s; check the path; nothing is downloaded", path,
                    strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return add_path(w->list, path);
    const size_t before = w->list->count;
    const int rc = add_folder(w, path, 0);
    if (rc != 0 || w->list->count > before)
        return rc != 0 ? rc : splits_choose(path, w->list, before, w->split, w->passed);
    return fail(NJ_E_FORMAT,
                "%s: the folder holds no .txt, .jsonl, .parquet, .bin, .u16 or .u32 file%s%s", path,
                w->passed->files > 0 ? "; " : "",
                w->passed->files > 0 ? passed_over_text(w->passed, passed, sizeof passed) : "");
}

/* Return whether a path is a pattern. An existing file is itself, even if its name looks like one. */
static bool is_pattern(const char *path)
{
    struct stat info;
    return strpbrk(path, "*?[") && stat(path, &info) != 0;
}

static int add_glob(const struct walk *w, const char *pattern)
{
    glob_t found;
    int rc = glob(pattern, GLOB_ERR, NULL, &found);
    if (rc == GLOB_NOMATCH)
        return fail(NJ_E_IO, "%s: no file matches; check the pattern", pattern);
    if (rc != 0)
        return fail(NJ_E_IO, "%s: the pattern cannot be resolved: %s", pattern,
                    rc == GLOB_NOSPACE ? "out of memory" : "a folder is not readable");
    rc = 0;
    for (size_t i = 0; i < found.gl_pathc && rc == 0; i++)
        rc = add_path_or_folder(w, found.gl_pathv[i]);
    globfree(&found);
    return rc;
}

int files_collect(const char *const *given, size_t count, const struct split_choice *split,
                  struct file_list *out, struct passed_over *passed)
{
    struct passed_over unasked = {0};
    const struct walk w = {split, out, passed ? passed : &unasked};
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        const int rc =
            is_pattern(given[i]) ? add_glob(&w, given[i]) : add_path_or_folder(&w, given[i]);
        if (rc != 0) {
            files_free(out);
            return rc;
        }
    }
    return 0;
}

static int check_apart(const char *dir, const char *option, const char *out)
{
    if (!folder_holds(dir, out))
        return 0;
    return fail(NJ_E_ARG,
                "--out %s lies in %s, which %s reads, so a later run would take its files for "
                "data; name a place outside of it",
                out, dir, option);
}

int data_check_output(const char *const *given, size_t count, const char *option, const char *out)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        glob_t found = {.gl_pathc = 0};
        if (!is_pattern(given[i]))
            rc = check_apart(given[i], option, out);
        else if (glob(given[i], 0, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc && rc == 0; k++)
                rc = check_apart(found.gl_pathv[k], option, out);
        globfree(&found);
    }
    return rc;
}

void files_free(struct file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->path[i]);
    free(list->path);
    memset(list, 0, sizeof *list);
}
