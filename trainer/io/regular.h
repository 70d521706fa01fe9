/* SPDX-License-Identifier: Apache-2.0
 *
 * regular.h: opens what must be a regular file, to read it.
 */
#ifndef NOJIT_TRAINER_REGULAR_H
#define NOJIT_TRAINER_REGULAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Pipes, devices and folders are refused, not waited for, and so is a file of more than `most` bytes (0:
 * any size). The sentence ends with the remedy. Returns 0, NJ_E_IO, with what open() said or 0 in errno, or,
 * where the file is too large, NJ_E_FORMAT. */
int regular_fd(const char *path, size_t most, const char *remedy, int *fd, size_t *bytes);
int regular_open(const char *path, size_t most, const char *remedy, FILE **out);
/* Whether a file's bytes are those of a Git LFS pointer, which stands for a file that was not fetched; and the
 * refusal of one. */
bool regular_is_pointer(const void *data, size_t bytes);
int regular_refuse_pointer(const char *path);

#endif
