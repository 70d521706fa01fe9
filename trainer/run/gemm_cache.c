/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_cache.c: see gemm_cache.h.
 */
#include "run/gemm_cache.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* "NVIDIA H200" as part of a file's name. */
static void plain_name(const char *name, char *out, size_t bytes)
{
    size_t n = 0;
    for (; *name != '\0' && n + 1 < bytes; name++)
        out[n++] = isalnum((unsigned char)*name) ? *name : '-';
    out[n] = '\0';
}

static void cache_path(const struct nj_device_info *d, char *out, size_t bytes)
{
    char folder[3072], name[128];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    *out = '\0';
    if (cache != NULL && cache[0] == '/')
        n = snprintf(folder, sizeof folder, "%s", cache);
    else if (home != NULL && home[0] == '/')
        n = snprintf(folder, sizeof folder, "%s/.cache", home);
    if (n < 0 || n + 8 > (int)sizeof folder)
        return;
    mkdir(folder, 0777);
    snprintf(folder + n, sizeof folder - (size_t)n, "/nojit");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return;
    plain_name(d->name, name, sizeof name);
    snprintf(out, bytes, "%s/gemm-%s-sm_%d-%s-%zu.txt", folder, name, d->sm,
             d->lp_is_f16 ? "float16" : "bfloat16", d->gemm_version);
}

bool gemm_table_wanted(const char *wanted)
{
    return wanted != NULL && strcmp(wanted, "none") != 0;
}

void gemm_table_path(const char *wanted, const struct nj_device_info *d, char *out, size_t bytes)
{
    *out = '\0';
    if (!gemm_table_wanted(wanted) || d->sm == 0)
        return;
    if (strcmp(wanted, "auto") == 0)
        cache_path(d, out, bytes);
    else
        snprintf(out, bytes, "%s", wanted);
}
