/* SPDX-License-Identifier: Apache-2.0
 *
 * library.c: where the driver and cuBLASLt come from. Neither is linked, so that a binary starts
 * anywhere and can say what is missing. Neither is closed again: both keep threads and exit
 * handlers of their own. To open a library is to run it, so each is looked at first
 * (library_file.c).
 */
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend.h"

#define DRIVER_NAME "libcuda.so.1"
#define CUBLASLT_NAME "libcublasLt.so.13"
enum { CUBLASLT_MAJOR = 13, WHY_BYTES = 900 };

struct symbol {
    const char *name;
    size_t offset; /* of the function pointer in the table */
};

static const struct symbol driver_symbols[] = {
#define NJ_ROW(result, name, symbol, params) {symbol, offsetof(struct nj_driver, name)},
    NJ_DRIVER_SYMBOLS(NJ_ROW)
#undef NJ_ROW
};
static const struct symbol cublaslt_symbols[] = {
#define NJ_ROW(result, name, symbol, params) {symbol, offsetof(struct nj_cublaslt, name)},
    NJ_CUBLASLT_SYMBOLS(NJ_ROW)
#undef NJ_ROW
};

/* Fills a table of function pointers. NULL, or the first symbol that the library lacks. */
static const char *resolve(void *library, const struct symbol *list, size_t count, void *table)
{
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, list[i].name);

        if (!function)
            return list[i].name;
        memcpy((char *)table + list[i].offset, &function, sizeof function);
    }
    return NULL;
}

/* Fills the table from cuBLASLt. False, and why not, if a function is missing or it is of another
 * major version, whose numbers for types and attributes may differ. */
static int resolve_cublaslt(void *library, struct nj_cublaslt *out, char *why, size_t bytes)
{
    const char *missing =
        resolve(library, cublaslt_symbols, sizeof cublaslt_symbols / sizeof *cublaslt_symbols, out);
    size_t version;

    if (missing) {
        snprintf(why, bytes, "has no function %s", missing);
        return 0;
    }
    version = out->cublasLtGetVersion();
    if (version / 10000 == CUBLASLT_MAJOR)
        return 1;
    snprintf(why, bytes, "is version %zu.%zu.%zu, not %d", version / 10000, version % 10000 / 100,
             version % 100, CUBLASLT_MAJOR);
    return 0;
}

static void *open_driver(char *why, size_t bytes)
{
    void *library =
        nj_loader_is_safe(why, bytes) ? dlopen(DRIVER_NAME, RTLD_NOW | RTLD_LOCAL) : NULL;

    if (!library && !why[0])
        snprintf(why, bytes, "%s", dlerror());
    return library;
}

int nj_cuda_open_driver(nj_context *ctx, struct nj_driver *out)
{
    char why[WHY_BYTES] = "";
    void *library = open_driver(why, sizeof why);
    int *version = &ctx->info.driver_version;
    const char *missing;

    if (!library)
        return nj_fail(ctx, NJ_E_DRIVER,
                       "the NVIDIA driver is not here (%.300s); install driver 580 or newer", why);
    /* The version first: an old driver lacks functions, and its age is the better answer. */
    missing = resolve(library, driver_symbols, 1, out);
    if (!missing && out->cuDriverGetVersion(version) == 0 && *version < NJ_CUDA_MIN_DRIVER)
        return nj_fail(
            ctx, NJ_E_DRIVER,
            "driver %s supports CUDA %d.%d, %d.%d is needed; install driver 580 or newer",
            ctx->info.driver, *version / 1000, *version % 1000 / 10, NJ_CUDA_MIN_DRIVER / 1000,
            NJ_CUDA_MIN_DRIVER % 1000 / 10);
    if (!missing)
        missing =
            resolve(library, driver_symbols, sizeof driver_symbols / sizeof *driver_symbols, out);
    if (missing)
        return nj_fail(ctx, NJ_E_DRIVER,
                       "%s of driver %s has no function %s; install driver 580 or newer",
                       DRIVER_NAME, ctx->info.driver, missing);
    return 0;
}

/* ---- places where cuBLASLt may be ---- */

/* Called for each place in order; nonzero ends the search. A path without a slash goes through the
 * loader. */
typedef int visit_fn(void *user, const char *path);

static const char *named_by_user(void)
{
    const char *named = getenv("NOJIT_CUBLASLT");

    return named && named[0] ? named : NULL;
}

/* In front of a pattern: a folder whose own name is none. */
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

/* Where pip puts the libraries that come with Python packages; lib is PREFIX/lib. */
static int visit_packages(const char *lib, visit_fn *visit, void *user)
{
    static const char *const package[] = {"cu13", "cublas"};
    char literal[2 * PATH_MAX], pattern[sizeof literal + 128];
    int stop = 0;

    put_literal(literal, sizeof literal, lib);
    for (size_t p = 0; p < sizeof package / sizeof *package && !stop; p++) {
        glob_t found;

        snprintf(pattern, sizeof pattern, "%s/python3*/*-packages/nvidia/%s/lib/" CUBLASLT_NAME,
                 literal, package[p]);
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        for (size_t i = 0; i < found.gl_pathc && !stop; i++)
            stop = visit(user, found.gl_pathv[i]);
        globfree(&found);
    }
    return stop;
}

/* A binary in PREFIX/bin has more places; those of Python packages are for one that pip put there. */
static int visit_beside_binary(visit_fn *visit, void *user)
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
        snprintf(path, sizeof path, "%s%s" CUBLASLT_NAME, binary, folder[i]);
        if (access(path, F_OK) == 0 && visit(user, path))
            return 1;
    }
    snprintf(path, sizeof path, "%s../lib", binary);
    return in_bin && visit_packages(path, visit, user);
}

/* Folders that an environment variable names. */
static int visit_variables(visit_fn *visit, void *user)
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
        snprintf(path, sizeof path, "%s/%s/" CUBLASLT_NAME, root, place[i][1]);
        if (access(path, F_OK) == 0 && visit(user, path))
            return 1;
    }
    return 0;
}

static int visit_wheels(visit_fn *visit, void *user)
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
        if (visit_packages(lib, visit, user))
            return 1;
    }
    return 0;
}

static void visit_places(visit_fn *visit, void *user)
{
    const char *wanted = named_by_user();
    char path[4096];

    if (wanted) { /* said outright: nothing else is tried */
        struct stat info;
        int folder = stat(wanted, &info) == 0 && S_ISDIR(info.st_mode);

        snprintf(path, sizeof path, "%s%s", wanted, folder ? "/" CUBLASLT_NAME : "");
        visit(user, path);
        return;
    }
    if (visit_beside_binary(visit, user) || visit(user, CUBLASLT_NAME) ||
        visit_variables(visit, user))
        return;
    visit_wheels(visit, user);
}

/* ---- what is there ---- */

/* False, and why, for what is not to be opened. Nothing of the library runs. *out is what it says of
 * itself, of a path that is not the loader's to find. */
static int may_open(const char *path, struct nj_library_file *out, char *why, size_t bytes)
{
    memset(out, 0, sizeof *out);
    if (!strchr(path, '/'))
        return nj_loader_is_safe(why, bytes);
    if (!nj_library_is_safe(path, named_by_user() != NULL, why, bytes))
        return 0;
    if (!nj_library_describe(path, out))
        return snprintf(why, bytes, "no library for this machine"), 0;
    if (strcmp(out->soname, CUBLASLT_NAME) == 0)
        return 1;
    return snprintf(why, bytes, "its SONAME is '%s'", out->soname), 0;
}

static void *open_cublaslt(const char *path, struct nj_cublaslt *out, char *why, size_t bytes)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        snprintf(why, bytes, "%s", dlerror());
        return NULL;
    }
    if (resolve_cublaslt(library, out, why, bytes))
        return library;
    dlclose(library);
    return NULL;
}

struct search {
    nj_context *ctx;
    struct nj_cublaslt *out;
    int found;
    char reason[WHY_BYTES + 320]; /* why the last one that is there did not do */
};

/* What the loader chose for a bare name, and which build it is. */
static void record(struct search *search, const void *function, const char *path)
{
    struct nj_device_info *info = &search->ctx->info;
    struct nj_library_file file;
    Dl_info at;

    if (dladdr(function, &at) && at.dli_fname)
        path = at.dli_fname;
    snprintf(info->gemm_library, sizeof info->gemm_library, "%s", path);
    nj_library_describe(path, &file);
    snprintf(info->gemm_build, sizeof info->gemm_build, "%s", file.build);
}

static int try_place(void *user, const char *path)
{
    struct search *search = user;
    struct nj_library_file file;
    char why[WHY_BYTES] = "";
    void *library = NULL;

    if (may_open(path, &file, why, sizeof why))
        library = open_cublaslt(path, search->out, why, sizeof why);
    if (library) {
        record(search, dlsym(library, cublaslt_symbols[0].name), path);
        search->found = 1;
    } else if (strchr(path, '/') || !search->reason[0]) {
        snprintf(search->reason, sizeof search->reason, "%.300s: %s", path, why);
    }
    return search->found;
}

int nj_cuda_open_cublaslt(nj_context *ctx, struct nj_cublaslt *out)
{
    struct search search = {.ctx = ctx, .out = out};

    visit_places(try_place, &search);
    if (search.found)
        return 0;
    return nj_fail(ctx, NJ_E_LIBRARY,
                   "cuBLASLt 13 cannot be opened (%.700s); install it (pip package nvidia-cublas, "
                   "or CUDA 13) and set NOJIT_CUBLASLT to the path of " CUBLASLT_NAME,
                   search.reason);
}

/* ---- doctor ---- */

struct report {
    void (*log)(void *user, const char *line);
    void *user;
    int driver, found, there; /* the driver; a cuBLASLt that is used; one that could be */
};

/* Of a library that is not opened: its version, as far as the name of its file tells, and its build. */
static void describe(const char *path, const struct nj_library_file *file, char *out, size_t bytes)
{
    char real[PATH_MAX];
    const char *version = realpath(path, real) ? strstr(real, ".so.") : NULL;

    snprintf(out, bytes, "version %.40s%s%s", version ? version + 4 : "13",
             file->build[0] ? ", build " : "", file->build);
}

static void judge(struct report *report, const char *path, char *out, size_t bytes)
{
    struct nj_library_file file;
    struct nj_cublaslt table;
    char known[160];
    size_t version;

    if (!may_open(path, &file, out, bytes))
        return;
    if (!strchr(path, '/'))
        snprintf(known, sizeof known, "where the loader finds it");
    else
        describe(path, &file, known, sizeof known);
    report->there |= strchr(path, '/') != NULL;
    if (!report->driver || report->found) {
        snprintf(out, bytes, "%s; not opened, %s", known,
                 report->found ? "since one is used" : "without a driver");
    } else if (open_cublaslt(path, &table, out, bytes)) {
        version = table.cublasLtGetVersion();
        report->found = 1;
        snprintf(out, bytes, "%zu.%zu.%zu, used", version / 10000, version % 10000 / 100,
                 version % 100);
    }
}

static int report_place(void *user, const char *path)
{
    struct report *report = user;
    char line[PATH_MAX + WHY_BYTES + 16], what[WHY_BYTES] = "";

    judge(report, path, what, sizeof what);
    snprintf(line, sizeof line, "cuBLASLt: %.*s: %s", PATH_MAX, path, what);
    report->log(report->user, line);
    return 0;
}

void nj_library_search(void (*log)(void *user, const char *line), void *user)
{
    struct report report = {.log = log, .user = user};
    char line[WHY_BYTES + 16], why[WHY_BYTES] = "";
    void *driver = open_driver(why, sizeof why);
    struct nj_driver table;
    int version = 0;

    report.driver = driver != NULL;
    if (!driver)
        snprintf(line, sizeof line, "driver: %s", why);
    else if (resolve(driver, driver_symbols, 1, &table) || table.cuDriverGetVersion(&version))
        snprintf(line, sizeof line, "driver: " DRIVER_NAME ": does not tell its version");
    else
        snprintf(line, sizeof line, "driver: " DRIVER_NAME ": CUDA %d.%d%s", version / 1000,
                 version % 1000 / 10, version < NJ_CUDA_MIN_DRIVER ? ", too old" : "");
    log(user, line);
    visit_places(report_place, &report);
    if (!(report.driver ? report.found : report.there))
        log(user, "cuBLASLt: none found; set NOJIT_CUBLASLT to the path of " CUBLASLT_NAME);
}
