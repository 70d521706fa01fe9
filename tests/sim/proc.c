/* SPDX-License-Identifier: Apache-2.0
 *
 * meminfo.c: loaded before a program (LD_PRELOAD), gives it the file $NOJIT_SIM_MEMINFO for
 * /proc/meminfo: the host of a GPU that shares its memory.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) FILE *fopen(const char *path, const char *mode)
{
    FILE *(*real)(const char *, const char *);
    void *found = dlsym(RTLD_NEXT, "fopen");
    const char *other = getenv("NOJIT_SIM_MEMINFO");
    memcpy(&real, &found, sizeof real);
    return real(other && strcmp(path, "/proc/meminfo") == 0 ? other : path, mode);
}
