/* SPDX-License-Identifier: Apache-2.0
 *
 * profiles.c: the GPUs that can be simulated, with the figures that deviceQuery prints for them. A
 * GB10 shares memory with the host: what counts as free is MemFree, without the page cache, and
 * cuMemAlloc stops long before the pool is used up. The names are not those of real ones: what is
 * timed on a GPU is kept under its name.
 */
#include "profiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB(n) ((uint64_t)(n) << 20)

static const struct sim_profile profiles[] = {
    {"t4", "Simulated Tesla T4", 75, 40, 0, MIB(15109), MIB(15006), MIB(15006), 65536, 65536, 1024},
    {"rtx4090", "Simulated NVIDIA GeForce RTX 4090", 89, 128, 0, MIB(24209), MIB(23795), MIB(23795),
     101376, 65536, 1024},
    {"h100", "Simulated NVIDIA H100 80GB HBM3", 90, 132, 0, MIB(81090), MIB(80570), MIB(80570),
     232448, 65536, 1024},
    {"b200", "Simulated NVIDIA B200", 100, 148, 0, MIB(183359), MIB(182642), MIB(182642), 232448,
     65536, 1024},
    {"b300", "Simulated NVIDIA B300", 103, 148, 0, MIB(275040), MIB(274200), MIB(274200), 232448,
     65536, 1024},
    {"thor", "Simulated NVIDIA Thor", 110, 20, 1, MIB(125771), MIB(9216), MIB(125771), 232448,
     65536, 1024},
    {"rtx5090", "Simulated NVIDIA GeForce RTX 5090", 120, 170, 0, MIB(32607), MIB(32110),
     MIB(32110), 101376, 65536, 1024},
    {"gb10", "Simulated NVIDIA GB10", 121, 48, 1, MIB(122571), MIB(9216), MIB(30720), 101376, 65536,
     1024},
};
enum { PROFILES = sizeof profiles / sizeof *profiles };

/* A GPU that no profile describes has the memory of a block of the nearest arch below. */
static void make_up(int sm, int shared, struct sim_profile *out)
{
    *out = profiles[0];
    for (int i = 1; i < PROFILES; i++)
        if (profiles[i].sm <= sm && !profiles[i].integrated)
            *out = profiles[i];
    out->id = "made up";
    out->name = "Simulated GPU";
    out->sm = sm;
    out->integrated = shared;
}

int sim_profile_find(const char *id, struct sim_profile *out)
{
    for (int i = 0; i < PROFILES; i++)
        if (strcmp(profiles[i].id, id) == 0) {
            *out = profiles[i];
            return 0;
        }
    if (strncmp(id, "sm_", 3) != 0)
        return -1;
    char *end;
    const long sm = strtol(id + 3, &end, 10);
    const int shared = strcmp(end, "-shared") == 0;
    if (sm < 10 || sm > 999 || (*end && !shared))
        return -1;
    make_up((int)sm, shared, out);
    return 0;
}
