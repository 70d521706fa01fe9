/* SPDX-License-Identifier: Apache-2.0
 *
 * nvml.c: a libnvidia-ml.so.1 that says of simulated GPUs what NOJIT_SIM_LINKS does, a comma between two of them:
 * NVLINKS:GENERATION:LANES:MOST:LANES, "18:5:16:5:16". NVLINKS with - before it are not supported. Without the
 * variable it does not start.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9 };
enum {
    NVLINKS,
    GENERATION,
    LANES,
    GENERATION_MOST,
    LANES_MOST,
    FIGURES,
    GPUS_MOST = 8,
    LINKS = 18
};

static int gpus, figure[GPUS_MOST][FIGURES];

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    const char *at = getenv("NOJIT_SIM_LINKS");
    gpus = 0;
    while (at && gpus < GPUS_MOST) {
        int *f = figure[gpus++];
        if (sscanf(at, "%d:%d:%d:%d:%d", &f[0], &f[1], &f[2], &f[3], &f[4]) != FIGURES)
            return DRIVER_NOT_LOADED;
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return gpus > 0 ? SUCCESS : DRIVER_NOT_LOADED;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *id, int **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, int **device)
{
    unsigned bus;
    if (sscanf(id, "0000:%x:00.0", &bus) != 1 || bus >= (unsigned)gpus)
        return NOT_FOUND;
    *device = figure[bus];
    return SUCCESS;
}

EXPORT int nvmlDeviceGetNvLinkState(const int *device, unsigned link, int *active);
int nvmlDeviceGetNvLinkState(const int *device, unsigned link, int *active)
{
    if (link >= LINKS)
        return INVALID_ARGUMENT;
    if (device[NVLINKS] < 0)
        return NOT_SUPPORTED;
    *active = (int)link < device[NVLINKS];
    return SUCCESS;
}

#define FIGURE(name, which)                                                                        \
    EXPORT int name(const int *device, unsigned *out);                                             \
    int name(const int *device, unsigned *out)                                                     \
    {                                                                                              \
        *out = (unsigned)device[which];                                                            \
        return SUCCESS;                                                                            \
    }
FIGURE(nvmlDeviceGetCurrPcieLinkGeneration, GENERATION)
FIGURE(nvmlDeviceGetCurrPcieLinkWidth, LANES)
FIGURE(nvmlDeviceGetMaxPcieLinkGeneration, GENERATION_MOST)
FIGURE(nvmlDeviceGetMaxPcieLinkWidth, LANES_MOST)
