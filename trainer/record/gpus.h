/* SPDX-License-Identifier: Apache-2.0
 *
 * gpus.h: GPUs as the vendors' data sheets describe them: the one table for MFU and for plans.
 */
#ifndef NOJIT_TRAINER_GPUS_H
#define NOJIT_TRAINER_GPUS_H

#include <stdbool.h>
#include <stddef.h>

struct gpu {
    const char *name;   /* name as --gpu takes it */
    const char *device; /* words of the name that the driver gives it */
    int sm;
    double gib;        /* memory of the whole GPU in GiB */
    double tflops;     /* dense TFLOP/s in 16 bits, with sums in float32 */
    double fp8_tflops; /* the same in FP8 (E4M3); 0: none */
    double f32_tflops; /* TFLOP/s in float32, without tensor cores */
    double bandwidth;  /* bandwidth of its memory in GB/s */
    bool shared;       /* whether its memory is the host's */
    bool measured;     /* whether nojit has been timed on it */
};

/* The table, ended by a row whose name is NULL. */
extern const struct gpu gpu_table[];

/* Return the GPU whose words are in the driver's name; NULL: none of the table. */
const struct gpu *gpu_of_device(const char *device);
/* Return the GPU with this name, in any case, with or without spaces and dashes; NULL: none. */
const struct gpu *gpu_named(const char *name);
/* Write the architecture of contracts/archs.yaml to build for it, "sm_89"; return out. */
const char *gpu_arch(const struct gpu *g, char *out, size_t bytes);
/* Write all names, "t4, rtx4090"; return out. */
const char *gpu_names(char *out, size_t bytes);
/* Return the number of bytes that a run can have on a GPU that nobody else uses. */
size_t gpu_budget(const struct gpu *g);

#endif
