/* SPDX-License-Identifier: Apache-2.0
 *
 * library_places.c: where a library of the GPU may be, in the order in which it is looked for.
 */
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library.h"

struct walk {
    const struct nj_library *of;
    nj_place_fn *visit;
    void *user;
};

const char *nj_library_named(const struct nj_library *of)
{
    const char *named = getenv(of->variable);

    return named && named[0] ? named : NULL;
}

static int visit(const struct walk *w, const char *path)
{
    return w->visit(w->user, path);
}

static int visit_file(const struct walk *w, const char *path)
{
    return access(path, F_OK) == 0 && visit(w, path);
}

/* Write a folder that precedes a pattern, escaped so that its own name is not a pattern. */
static void put_literal(char *out, size_t bytes, const char *folder)
{
    size_t n = 0;

    for (; *folder && n + 2 < bytes; folder++) {
        if (strchr("*?[\\", *folder))
            out[n++] = '\\';
        out[n++] = *folder;
    }
    out[n] = '\0';
}

/* Visit the folders where pip puts the libraries that come with Python packages; lib is PREFIX/lib. */
static int visit_packages(const struct walk *w, const char *lib)
{
    char literal[2 * PATH_MAX], pattern[sizeof literal + 128];
    int stop = 0;

    put_literal(literal, sizeof literal, lib);
    for (const char *const *package = w->of->packages; *package && !stop; package++) {
        glob_t found;

        snprintf(pattern, sizeof pattern, "%s/python3*/*-packages/nvidia/%s/lib/%s", literal,
                 *package, w->of->file);
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        for (size_t i = 0; i < found.gl_pathc && !stop; i++)
            stop = visit(w, found.gl_pathv[i]);
        globfree(&found);
    }
    return stop;
}

/* Visit more places next to a binary in PREFIX/bin; Python packages are only searched for a binary that pip
 * installed. */
static int visit_beside_binary(const struct walk *w)
{
    static const char *const folder[] = {"", "lib/", "../lib/"};
    char binary[3072], path[4096];
    ssize_t n = readlink("/proc/self/exe", binary, sizeof binary - 1);
    size_t count = sizeof folder / sizeof *folder;
    int in_bin;
    char *slash;

    if (n <= 0)
        return 0;
    binary[n] = '\0';
    slash = strrchr(binary, '/');
    if (!slash)
        return 0;
    slash[1] = '\0';
    in_bin = slash - binary >= 4 && strncmp(slash - 4, "/bin/", 5) == 0;
    for (size_t i = 0; i < count - !in_bin; i++) {
        snprintf(path, sizeof path, "%s%s%s", binary, folder[i], w->of->file);
        if (visit_file(w, path))
            return 1;
    }
    snprintf(path, sizeof path, "%s../lib", binary);
    return in_bin && visit_packages(w, path);
}

/* Visit folders that an environment variable names. */
static int visit_variables(const struct walk *w)
{
    static const char *const place[][2] = {
        {"CUDA_HOME", "lib64"}, {"CUDA_HOME", "lib"},    {"CUDA_PATH", "lib64"},
        {"CUDA_PATH", "lib"},   {"CONDA_PREFIX", "lib"},
    };
    char path[4096];

    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        const char *root = getenv(place[i][0]);

        if (!root || !root[0])
            continue;
        snprintf(path, sizeof path, "%s/%s/%s", root, place[i][1], w->of->file);
        if (visit_file(w, path))
            return 1;
    }
    return 0;
}

static int visit_wheels(const struct walk *w)
{
    static const char *const root[][2] = {
        {"VIRTUAL_ENV", "/lib"},  {"CONDA_PREFIX", "/lib"}, {"HOME", "/.local/lib"},
        {NULL, "/usr/local/lib"}, {NULL, "/usr/lib"},
    };
    char lib[PATH_MAX];

    for (size_t i = 0; i < sizeof root / sizeof *root; i++) {
        const char *prefix = root[i][0] ? getenv(root[i][0]) : "";

        if (!prefix || (root[i][0] && !prefix[0]))
            continue;
        snprintf(lib, sizeof lib, "%s%s", prefix, root[i][1]);
        if (visit_packages(w, lib))
            return 1;
    }
    return 0;
}

void nj_library_places(const struct nj_library *of, nj_place_fn *visit_place, void *user)
{
    const struct walk w = {of, visit_place, user};
    const char *wanted = nj_library_named(of);
    char path[4096];

    if (wanted) { /* the user named it: nothing else is tried */
        struct stat info;
        int folder = stat(wanted, &info) == 0 && S_ISDIR(info.st_mode);

        snprintf(path, sizeof path, "%s%s%s", wanted, folder ? "/" : "", folder ? of->file : "");
        visit(&w, path);
        return;
    }
    if (visit_beside_binary(&w) || visit(&w, of->file) || visit_variables(&w))
        return;
    visit_wheels(&w);
}
