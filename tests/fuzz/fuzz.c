/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz.c: see fuzz.h.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fuzz_accepted;
static char folder[64];

void fuzz_broken(const char *file, int line, const char *promise)
{
    fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, promise);
    abort();
}

void fuzz_verdict(int accepted, const char *sentence)
{
    fuzz_accepted = accepted;
    FUZZ_CHECK(accepted || strlen(sentence) > 10);
}

static void remove_folder(void)
{
    DIR *dir = opendir(folder);
    char path[512];
    for (struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (*folder)
        return folder;
    snprintf(folder, sizeof folder, "%s/nojit-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    FUZZ_CHECK(mkdtemp(folder));
    atexit(remove_folder);
    return folder;
}

const char *fuzz_file(const char *name, const void *data, size_t bytes)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", fuzz_folder(), name);
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f);
    FUZZ_CHECK(fwrite(data, 1, bytes, f) == bytes);
    FUZZ_CHECK(fclose(f) == 0);
    return path;
}
