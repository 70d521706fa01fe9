/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_code.h: for which GPUs a library holds machine code, read from its file. What it holds of PTX does not count: the
 * driver would have to compile it.
 */
#ifndef TRAINER_GPU_CODE_H
#define TRAINER_GPU_CODE_H

#include <stdbool.h>
#include <stddef.h>

enum { GPU_CODE_ARCHS = 32 };
struct gpu_arch {
    int sm;
    char suffix; /* 0; 'a': for that SM alone; 'f': for its family */
};
struct gpu_code {
    int count; /* of different ones, in ascending order */
    struct gpu_arch arch[GPU_CODE_ARCHS];
};

/* Of an ELF file in memory: nothing is trusted. None is found in what is not one. */
void gpu_code_find(const void *file, size_t bytes, struct gpu_code *out);
/* The same of a file; one that cannot be read holds none. */
void gpu_code_read(const char *path, struct gpu_code *out);
/* The code that a GPU of this SM runs, or NULL. */
const struct gpu_arch *gpu_code_for(const struct gpu_code *c, int sm);
/* "sm_75 sm_90a"; cut at bytes. */
const char *gpu_code_text(const struct gpu_code *c, char *out, size_t bytes);

#endif
