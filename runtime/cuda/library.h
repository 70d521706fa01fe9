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
    size_t offset; /* offset of the function pointer in the table */
    int later;     /* 1: newer than the oldest accepted version: may be missing, then NULL */
};
/* A library to look for. Versions are counted as the libraries do: 130100 = 13.1.0. */
struct nj_library {
    const char *title, *wanted; /* "NCCL", "2.27 or newer" */
    const char *file;           /* soname */
    const char *variable;       /* environment variable that names its path or folder */
    const char *packages[3];    /* folders in Python packages: nvidia/NAME/lib */
    const char *install;        /* how to install it */
    const char *use;            /* ", needed for ..."; "": every run needs it */
    const struct nj_library_symbol *symbols;
    size_t count;
    size_t (*version)(const void *table); /* returns the version from the filled table */
    size_t least, below;                  /* range of accepted versions */
};

/* Return the path that the user named, or NULL. */
const char *nj_library_named(const struct nj_library *of);
/* Visitor of places, called for each in order; a nonzero result ends the search. A path without a slash goes through
 * the loader. */
typedef int nj_place_fn(void *user, const char *path);
void nj_library_places(const struct nj_library *of, nj_place_fn *visit_place, void *user);

/* Check a library before its code runs. Returns false, and why, if others can write to the file or to a folder on
 * the way to it, or if its owner is neither root nor the user, unless the user named it. */
int nj_library_is_safe(const char *path, int named, char *why, size_t bytes);
/* Check in the same way the folders where the loader looks first, those of LD_LIBRARY_PATH. */
int nj_loader_is_safe(char *why, size_t bytes);
struct nj_library_file {
    /* soname; build id in hexadecimal; "" for what the file does not say */
    char soname[64], build[65];
};
int nj_library_describe(const char *path, struct nj_library_file *out); /* false: no library */

/* Write a version of cuBLASLt or NCCL as "13.1.0"; returns out. */
const char *nj_version_text(size_t version, char out[64]);
/* Write the known reports about this version of cuBLASLt on an arch, and what to do; "" if there are none. */
void nj_library_reports(size_t version, int sm, char *out, size_t bytes);

#endif
