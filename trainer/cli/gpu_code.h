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
    char suffix; /* 0; 'a': for that SM only; 'f': for its family */
};
struct gpu_code {
    int count; /* number of different architectures, which are in ascending order */
    struct gpu_arch arch[GPU_CODE_ARCHS];
};

/* Find the architectures in an ELF file in memory, whose contents are not trusted. A file of another format has
 * none. */
void gpu_code_find(const void *file, size_t bytes, struct gpu_code *out);
/* Find the architectures in a file; one that cannot be read has none. */
void gpu_code_read(const char *path, struct gpu_code *out);
/* Return the code that a GPU of this SM runs, or NULL. */
const struct gpu_arch *gpu_code_for(const struct gpu_code *c, int sm);
/* Write a list such as "sm_75 sm_90a", cut at bytes. */
const char *gpu_code_text(const struct gpu_code *c, char *out, size_t bytes);

#endif
