/* SPDX-License-Identifier: Apache-2.0
 *
 * fileio.h: whole files in and out.
 */
#ifndef NOJIT_TOOLS_FILEIO_H
#define NOJIT_TOOLS_FILEIO_H

#include "image/problems.h"
#include "image/span.h"

/* Reads a regular file; release *out with file_free(). A NUL follows the bytes. Returns 0 or -1
 * with a sentence. */
int file_read(const char *path, struct span *out, char why[WHY_BYTES]);
void file_free(struct span *file);
/* Writes atomically, and only if the content differs. Returns 0 or -1 with a sentence. */
int file_write(const char *path, struct span content, char why[WHY_BYTES]);

#endif
