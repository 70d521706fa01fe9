/* SPDX-License-Identifier: Apache-2.0
 *
 * fileio.h: reads and writes whole files.
 */
#ifndef NOJIT_TOOLS_FILEIO_H
#define NOJIT_TOOLS_FILEIO_H

#include "image/problems.h"
#include "image/span.h"

/* Read a regular file; release *out with file_free(). A NUL follows the bytes. Return 0, or -1 with a sentence. */
int file_read(const char *path, struct span *out, char why[WHY_BYTES]);
void file_free(struct span *file);
/* Write a file atomically, and only if its contents differ. Return 0, or -1 with a sentence. */
int file_write(const char *path, struct span content, char why[WHY_BYTES]);

#endif
