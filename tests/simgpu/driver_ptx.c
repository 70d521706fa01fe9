/* SPDX-License-Identifier: Apache-2.0
 *
 * driver_ptx.c: finds the PTX that machine code was assembled from, by the hash of the machine code:
 * in a table that the build writes, a line for each cubin: hash, tab, path from the table's folder.
 */
#define XXH_INLINE_ALL
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "driver.h"

static void table_path(char *out, size_t bytes)
{
    const char *named = sim_setting("NOJIT_SIM_PTX", NULL);
    Dl_info info;
    if (named) {
        snprintf(out, bytes, "%s", named);
        return;
    }
    const char *own = dladdr(&sim, &info) ? info.dli_fname : "";
    const char *slash = strrchr(own, '/');
    snprintf(out, bytes, "%.*sptx.txt", slash ? (int)(slash + 1 - own) : 0, own);
}

static char *read_text(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rbe");
    char *text = NULL;
    long end;
    if (!f)
        return NULL;
    if (fseek(f, 0, SEEK_END) == 0 && (end = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0 &&
        (text = malloc((size_t)end + 1)) != NULL) {
        *bytes = fread(text, 1, (size_t)end, f);
        text[*bytes] = '\0';
    }
    fclose(f);
    return text;
}

char *sim_ptx_of(const void *code, size_t bytes, size_t *text_bytes, char why[256])
{
    static char *table; /* read once: it does not change while a program runs */
    char path[1024], name[1300], hash[18], *line, *text, *slash;
    size_t table_bytes;
    table_path(path, sizeof path);
    if (!table)
        table = read_text(path, &table_bytes);
    if (!table) {
        snprintf(why, 256, "%.150s cannot be read; make it: `make build/sim/ptx.txt`", path);
        return NULL;
    }
    snprintf(hash, sizeof hash, "%016llx\t", (unsigned long long)XXH3_64bits(code, bytes));
    line = strstr(table, hash);
    if (!line) {
        snprintf(
            why, 256,
            "%.110s has no machine code of hash %.16s: a kernel is newer; make it again: `make "
            "build/sim/ptx.txt`",
            path, hash);
        return NULL;
    }
    line += strlen(hash);
    slash = strrchr(path, '/');
    snprintf(name, sizeof name, "%.*s%.*s", slash ? (int)(slash + 1 - path) : 0, path,
             (int)strcspn(line, "\n"), line);
    text = read_text(name, text_bytes);
    if (!text)
        snprintf(why, 256, "%.220s cannot be read", name);
    return text;
}
