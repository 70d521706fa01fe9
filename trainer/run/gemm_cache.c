/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_cache.c: see gemm_cache.h.
 */
#include "run/gemm_cache.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "io/cache_folder.h"

/* Convert a name such as "NVIDIA H200" to a part of a file name. */
static void plain_name(const char *name, char *out, size_t bytes)
{
    size_t n = 0;
    for (; *name != '\0' && n + 1 < bytes; name++)
        out[n++] = isalnum((unsigned char)*name) ? *name : '-';
    out[n] = '\0';
}

static bool make_folder(char *folder)
{
    char *last = strrchr(folder, '/');
    *last = '\0';
    mkdir(folder, 0777);
    *last = '/';
    return mkdir(folder, 0700) == 0 || errno == EEXIST;
}

static void cache_path(const struct nj_device_info *d, char *out, size_t bytes)
{
    char folder[3072], name[128], why[4200];
    *out = '\0';
    cache_folder(folder, sizeof folder, why, sizeof why);
    if (folder[0] == '\0' || !make_folder(folder))
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
