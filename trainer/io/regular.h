/* SPDX-License-Identifier: Apache-2.0
 *
 * regular.h: opens regular files for reading.
 */
#ifndef NOJIT_TRAINER_REGULAR_H
#define NOJIT_TRAINER_REGULAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Open a regular file. Pipes, devices and folders are refused, not waited for, and so is a file
 * of more than `most` bytes (0: any size). Error sentences end with the remedy. Return 0;
 * NJ_E_IO, with errno from open() or 0 in errno; or NJ_E_FORMAT if the file is too large. */
int regular_fd(const char *path, size_t most, const char *remedy, int *fd, size_t *bytes);
int regular_open(const char *path, size_t most, const char *remedy, FILE **out);
/* Return whether a file's bytes are those of a Git LFS pointer, which stands for a file that was
 * not fetched; refuse such a file. */
bool regular_is_pointer(const void *data, size_t bytes);
int regular_refuse_pointer(const char *path);

#endif
