/* SPDX-License-Identifier: Apache-2.0
 *
 * process.c: what concerns the whole process: switches that the driver reads from the environment
 * when it starts, and how much memory the host has.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

static const char *const setting[][2] = {
    {"CUDA_DISABLE_PTX_JIT", "1"},              /* PTX from any source is refused */
    {"CUDA_CACHE_DISABLE", "1"},                /* no compiled code is stored or found */
    {"CUDA_FORCE_PRELOAD_LIBRARIES", "0"},      /* the driver's compiler is not even mapped */
    {"VK_LOADER_LAYERS_DISABLE", "~implicit~"}, /* some layers open sockets */
};
/* Number of settings that forbid the JIT, the first two: without them the driver may compile, or use code that it
 * compiled before. */
enum { FORBIDDING = 2 };

int nj_forbid_jit(void)
{
    for (size_t i = 0; i < sizeof setting / sizeof *setting; i++)
        if (setenv(setting[i][0], setting[i][1], 1) != 0)
            return NJ_E_ARG;
    return 0;
}

int nj_jit_is_forbidden(void)
{
    for (size_t i = 0; i < FORBIDDING; i++) {
        const char *value = getenv(setting[i][0]);

        if (!value || strcmp(value, setting[i][1]) != 0)
            return 0;
    }
    return 1;
}

size_t nj_meminfo(const char *field)
{
    FILE *f = fopen("/proc/meminfo", "re");
    size_t length = strlen(field), bytes = 0;
    char line[256];

    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, field, length) == 0 && line[length] == ':') {
            bytes = (size_t)strtoumax(line + length + 1, NULL, 10) * 1024;
            break;
        }
    }
    fclose(f);
    return bytes;
}
