/* SPDX-License-Identifier: Apache-2.0
 *
 * compilers.c: whether this process could have compiled for a GPU. Each compiler of CUDA C, PTX, NVVM IR
 * and Tile IR is a library of its own, which the driver or a library opens when it is to compile.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Beginnings of the compilers' file names. */
static const char *const compilers[] = {
    "libnvidia-ptxjitcompiler.", /* the driver's compiler of PTX */
    "libnvidia-nvvm",      /* the driver's compiler of NVVM IR and LTO-IR: also libnvidia-nvvm70 */
    "libnvidia-tileiras.", /* the driver's compiler of Tile IR */
    "libnvrtc.",           /* compiler of CUDA C */
    "libnvvm.",
    "libnvJitLink.",
    "libnvptxcompiler.",
};

static int is_compiler(const char *file)
{
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++)
        if (strncmp(file, compilers[i], strlen(compilers[i])) == 0)
            return 1;
    return 0;
}

/* Return whether the list, separated by ", ", has the name. */
static int has_name(const char *names, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = names; (at = strstr(at, name)) != NULL; at += length)
        if ((at == names || at[-1] == ' ') && (at[length] == '\0' || at[length] == ','))
            return 1;
    return 0;
}

int nj_mapped_compilers(char *names, size_t bytes)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[PATH_MAX + 128];
    int found = 0;

    names[0] = '\0';
    if (!maps)
        return -1;
    while (fgets(line, sizeof line, maps)) {
        char *file = strrchr(line, '/');
        const size_t used = strlen(names);

        if (!file || !is_compiler(++file))
            continue;
        file[strcspn(file, " \n")] = '\0'; /* " (deleted)" */
        if (has_name(names, file))
            continue;
        found = 1;
        if (used + strlen(file) + 3 <= bytes)
            snprintf(names + used, bytes - used, "%s%s", used ? ", " : "", file);
    }
    fclose(maps);
    return found;
}
