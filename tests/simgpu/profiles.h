/* SPDX-License-Identifier: Apache-2.0
 *
 * profiles.h: what simulated GPUs are.
 */
#ifndef NOJIT_SIM_PROFILES_H
#define NOJIT_SIM_PROFILES_H

#include <stdint.h>

struct sim_profile {
    const char *id, *name;
    int sm, multiprocessors, integrated;
    uint64_t memory_bytes;      /* as cuDeviceTotalMem tells */
    uint64_t free_bytes;        /* bytes that cuMemGetInfo tells before the first allocation */
    uint64_t device_bytes;      /* bytes at which cuMemAlloc stops */
    uint32_t shared_bytes;      /* shared memory of a block, with opt-in */
    uint32_t registers;         /* registers of an SM, and of a block */
    uint32_t threads_per_block; /* at most */
};

/* Fills *out by name ("gb10") or arch ("sm_86", and "sm_86-shared" for one that shares the
 * host's memory). Returns 0, or -1: neither. */
int sim_profile_find(const char *id, struct sim_profile *out);

#endif
