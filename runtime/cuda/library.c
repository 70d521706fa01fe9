/* SPDX-License-Identifier: Apache-2.0
 *
 * library.c: where the driver, cuBLASLt, NCCL and NVML come from. None is linked, so that a binary starts
 * anywhere and can say what is missing. None is closed again: they keep threads and exit
 * handlers of their own. To open a library is to run it, so each is looked at first
 * (library_file.c).
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "library.h"

#define DRIVER_NAME "libcuda.so.1"
enum { WHY_BYTES = 900 };

static const struct nj_library_symbol driver_symbols[] = {
#define NJ_ROW(result, name, symbol, params) {symbol, offsetof(struct nj_driver, name), 0},
    NJ_DRIVER_SYMBOLS(NJ_ROW)
#undef NJ_ROW
};
static const struct nj_library_symbol cublaslt_symbols[] = {
#define NJ_ROW(result, name, symbol, params) {symbol, offsetof(struct nj_cublaslt, name), 0},
    NJ_CUBLASLT_SYMBOLS(NJ_ROW)
#undef NJ_ROW
};
static const struct nj_library_symbol nccl_symbols[] = {
#define NJ_ROW(result, name, symbol, params) {symbol, offsetof(struct nj_nccl, name), 0},
    NJ_NCCL_SYMBOLS(NJ_ROW)
#undef NJ_ROW
#define NJ_ROW(result, name, symbol, params) {symbol, offsetof(struct nj_nccl, name), 1},
        NJ_NCCL_LATER_SYMBOLS(NJ_ROW)
#undef NJ_ROW
};

static const struct nj_library_symbol nvml_symbols[] = {
#define NJ_ROW(result, name, symbol, params) {symbol, offsetof(struct nj_nvml, name), 0},
    NJ_NVML_SYMBOLS(NJ_ROW)
#undef NJ_ROW
};

static size_t cublaslt_version(const void *table)
{
    return ((const struct nj_cublaslt *)table)->cublasLtGetVersion();
}

static size_t nccl_version(const void *table)
{
    int version;

    return ((const struct nj_nccl *)table)->ncclGetVersion(&version) ? 0 : (size_t)version;
}

#define NJ_SYMBOLS(list) .symbols = (list), .count = sizeof(list) / sizeof *(list)
/* Accepted versions of cuBLASLt; another major version may number types and attributes differently. */
static const struct nj_library cublaslt = {
    .title = "cuBLASLt",
    .wanted = "13",
    .file = "libcublasLt.so.13",
    .variable = "NOJIT_CUBLASLT",
    .packages = {"cu13", "cublas"},
    .install = "pip package nvidia-cublas, or CUDA 13",
    .use = "",
    NJ_SYMBOLS(cublaslt_symbols),
    .version = cublaslt_version,
    .least = 130000,
    .below = 140000,
};
static const struct nj_library nccl = {
    .title = "NCCL",
    .wanted = "2.27 or newer",
    .file = "libnccl.so.2",
    .variable = "NOJIT_NCCL",
    .packages = {"nccl"},
    .install = "pip package nvidia-nccl-cu13",
    .use = ", needed for several GPUs only",
    NJ_SYMBOLS(nccl_symbols),
    .version = nccl_version,
    .least = 22700,
    .below = 30000,
};
static const struct nj_library *const searched[] = {&cublaslt, &nccl};

/* Fill a table of function pointers. Returns NULL, or the first symbol that the library lacks. */
static const char *resolve(void *library, const struct nj_library_symbol *list, size_t count,
                           void *table)
{
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, list[i].name);

        if (!function && !list[i].later)
            return list[i].name;
        memcpy((char *)table + list[i].offset, &function, sizeof function);
    }
    return NULL;
}

const char *nj_version_text(size_t version, char out[64])
{
    snprintf(out, 64, "%zu.%zu.%zu", version / 10000, version % 10000 / 100, version % 100);
    return out;
}

/* Fill the table. Returns false, and why, if a function is missing or the version is not accepted. */
static int resolve_library(const struct nj_library *of, void *library, void *table, char *why,
                           size_t bytes)
{
    const char *missing = resolve(library, of->symbols, of->count, table);
    char text[64];
    size_t version;

    if (missing) {
        snprintf(why, bytes, "has no function %s", missing);
        return 0;
    }
    version = of->version(table);
    if (version >= of->least && version < of->below)
        return 1;
    nj_version_text(version, text);
    snprintf(why, bytes, "is version %s, not %s", text, of->wanted);
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
    const int forbidden = nj_jit_is_forbidden();
    void *library = open_driver(why, sizeof why);
    int *version = &ctx->info.driver_version;
    const char *missing;

    ctx->info.jit_forbidden = forbidden;
    if (!library)
        return nj_fail(ctx, NJ_E_DRIVER,
                       "the NVIDIA driver is not here (%.300s); install driver 580 or newer", why);
    /* Check the version first: an old driver lacks functions, and its age is the better explanation. */
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

/* Open the management library, which comes with the driver, from the same place. */
int nj_cuda_open_nvml(struct nj_nvml *out)
{
    char why[WHY_BYTES] = "";
    void *library = nj_loader_is_safe(why, sizeof why)
                        ? dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)
                        : NULL;

    return library &&
                   !resolve(library, nvml_symbols, sizeof nvml_symbols / sizeof *nvml_symbols, out)
               ? 0
               : NJ_E_LIBRARY;
}

/* ---- report of the libraries found ---- */

/* Return false, and why, for a file that must not be opened. None of the library's code runs. *out describes the
 * library, if the path is not left to the loader. */
static int may_open(const struct nj_library *of, const char *path, struct nj_library_file *out,
                    char *why, size_t bytes)
{
    memset(out, 0, sizeof *out);
    if (!strchr(path, '/'))
        return nj_loader_is_safe(why, bytes);
    if (!nj_library_is_safe(path, nj_library_named(of) != NULL, why, bytes))
        return 0;
    if (!nj_library_describe(path, out))
        return snprintf(why, bytes, "no library for this machine"), 0;
    if (strcmp(out->soname, of->file) == 0)
        return 1;
    return snprintf(why, bytes, "its SONAME is '%s'", out->soname), 0;
}

static void *open_library(const struct nj_library *of, const char *path, void *table, char *why,
                          size_t bytes)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        snprintf(why, bytes, "%s", dlerror());
        return NULL;
    }
    if (resolve_library(of, library, table, why, bytes))
        return library;
    dlclose(library);
    return NULL;
}

struct search {
    const struct nj_library *of;
    nj_context *ctx;
    void *table;
    char *path, *build; /* fields of info that describe the library found */
    int found;
    char reason[WHY_BYTES + 320]; /* reason why the last library that exists was not taken */
};

/* Record the file that the loader chose for a bare name, and its build. */
static void record(struct search *search, const void *function, const char *path)
{
    struct nj_library_file file;
    Dl_info at;

    if (dladdr(function, &at) && at.dli_fname)
        path = at.dli_fname;
    snprintf(search->path, sizeof search->ctx->info.gemm_library, "%s", path);
    nj_library_describe(path, &file);
    snprintf(search->build, sizeof search->ctx->info.gemm_build, "%s", file.build);
}

static int try_place(void *user, const char *path)
{
    struct search *search = user;
    const struct nj_library *of = search->of;
    struct nj_library_file file;
    char why[WHY_BYTES] = "";
    void *library = NULL;

    if (may_open(of, path, &file, why, sizeof why))
        library = open_library(of, path, search->table, why, sizeof why);
    if (library) {
        record(search, dlsym(library, of->symbols[0].name), path);
        search->found = 1;
    } else if (strchr(path, '/') || !search->reason[0]) {
        snprintf(search->reason, sizeof search->reason, "%.300s: %s", path, why);
    }
    return search->found;
}

static int find_library(struct search *search)
{
    const struct nj_library *of = search->of;

    nj_library_places(of, try_place, search);
    if (search->found)
        return 0;
    return nj_fail(search->ctx, NJ_E_LIBRARY,
                   "%s %s cannot be opened (%.700s); install it (%s) and set %s to the path of %s",
                   of->title, of->wanted, search->reason, of->install, of->variable, of->file);
}

int nj_cuda_open_cublaslt(nj_context *ctx, struct nj_cublaslt *out)
{
    struct nj_device_info *info = &ctx->info;
    struct search search = {&cublaslt, ctx, out, info->gemm_library, info->gemm_build, 0, ""};

    return find_library(&search);
}

int nj_cuda_open_nccl(nj_context *ctx, struct nj_nccl *out)
{
    struct nj_device_info *info = &ctx->info;
    struct search search = {&nccl, ctx, out, info->comm_library, info->comm_build, 0, ""};

    return find_library(&search);
}

/* ---- doctor ---- */

struct report {
    void (*log)(void *user, const char *line);
    void *user;
    int driver;
    const struct nj_library *of;
    int found, there; /* whether one is used; whether one could be used */
};

/* Describe a library that is not opened: its version, as far as the file name tells, and its build. */
static void describe(const struct nj_library *of, const char *path,
                     const struct nj_library_file *file, char *out, size_t bytes)
{
    char real[PATH_MAX];
    const char *version = realpath(path, real) ? strstr(real, ".so.") : NULL;

    if (!version)
        version = strstr(of->file, ".so.");
    snprintf(out, bytes, "version %.40s%s%s", version + strlen(".so."),
             file->build[0] ? ", build " : "", file->build);
}

static void judge(struct report *report, const char *path, char *out, size_t bytes)
{
    const struct nj_library *of = report->of;
    struct nj_library_file file;
    union {
        struct nj_cublaslt lt;
        struct nj_nccl nccl;
    } table;
    char known[160], version[64];

    if (!may_open(of, path, &file, out, bytes))
        return;
    if (!strchr(path, '/'))
        snprintf(known, sizeof known, "where the loader finds it");
    else
        describe(of, path, &file, known, sizeof known);
    report->there |= strchr(path, '/') != NULL;
    if (!report->driver || report->found) {
        snprintf(out, bytes, "%s; not opened, %s", known,
                 report->found ? "since one is used" : "without a driver");
    } else if (open_library(of, path, &table, out, bytes)) {
        report->found = 1;
        nj_version_text(of->version(&table), version);
        snprintf(out, bytes, "%s, used", version);
    }
}

static int report_place(void *user, const char *path)
{
    struct report *report = user;
    char line[PATH_MAX + WHY_BYTES + 16], what[WHY_BYTES] = "";

    judge(report, path, what, sizeof what);
    snprintf(line, sizeof line, "%s: %.*s: %s", report->of->title, PATH_MAX, path, what);
    report->log(report->user, line);
    return 0;
}

static void report_library(struct report *report, const struct nj_library *of)
{
    char line[256];

    report->of = of;
    report->found = report->there = 0;
    nj_library_places(of, report_place, report);
    if (report->driver ? report->found : report->there)
        return;
    snprintf(line, sizeof line, "%s: none found%s; install it (%s) or set %s to the path of %s",
             of->title, of->use, of->install, of->variable, of->file);
    report->log(report->user, line);
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
        snprintf(line, sizeof line, "driver: " DRIVER_NAME ": does not report its version");
    else
        snprintf(line, sizeof line, "driver: " DRIVER_NAME ": CUDA %d.%d%s", version / 1000,
                 version % 1000 / 10, version < NJ_CUDA_MIN_DRIVER ? ", too old" : "");
    log(user, line);
    for (size_t i = 0; i < sizeof searched / sizeof *searched; i++)
        report_library(&report, searched[i]);
}
