/* SPDX-License-Identifier: Apache-2.0
 *
 * library.h: the libraries of the GPU that are looked for, and what the files that do it share.
 *
 *   library.c         opens them, and says what there is    library_places.c  where they may be
 *   library_file.c    who can change one, its names           library_known.c   what is reported of versions
 */
#ifndef NOJIT_CUDA_LIBRARY_H
#define NOJIT_CUDA_LIBRARY_H

#include <stddef.h>

struct nj_library_symbol {
    const char *name;
    size_t offset; /* of the function pointer in the table */
    int later;     /* than the oldest version that will do: may be missing, then NULL */
};
/* Versions are counted as their libraries do: 130100 = 13.1.0. */
struct nj_library {
    const char *title, *wanted; /* "NCCL", "2.27 or newer" */
    const char *file;           /* as the loader and it itself call it */
    const char *variable;       /* of the environment, that names its path or folder */
    const char *packages[3];    /* folders of Python packages: nvidia/NAME/lib */
    const char *install;        /* what brings it */
    const char *use;            /* ", needed for ..."; "": for every run */
    const struct nj_library_symbol *symbols;
    size_t count;
    size_t (*version)(const void *table); /* of the table that the symbols fill */
    size_t least, below;                  /* versions that will do */
};

/* The path that the user named, or NULL. */
const char *nj_library_named(const struct nj_library *of);
/* Called for each place in order; nonzero ends the search. A path without a slash goes through the
 * loader. */
typedef int nj_place_fn(void *user, const char *path);
void nj_library_places(const struct nj_library *of, nj_place_fn *visit_place, void *user);

/* Of a library whose code has not run. False, and why: others can write to the file or to a folder on
 * the way to it, or it has an owner who is neither root nor the user, unless the user named it. */
int nj_library_is_safe(const char *path, int named, char *why, size_t bytes);
/* The same of the folders where the loader looks first, those of LD_LIBRARY_PATH. */
int nj_loader_is_safe(char *why, size_t bytes);
struct nj_library_file {
    char soname[64], build[65]; /* build id in hexadecimal; "" for what it does not say */
};
int nj_library_describe(const char *path, struct nj_library_file *out); /* false: no library */

/* Write a version of cuBLASLt or NCCL as "13.1.0"; returns out. */
const char *nj_version_text(size_t version, char out[64]);
/* What is reported of this version of cuBLASLt on an arch, and what to do about it; "" for nothing. */
void nj_library_reports(size_t version, int sm, char *out, size_t bytes);

#endif
