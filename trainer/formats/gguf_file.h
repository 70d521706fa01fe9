/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_file.h: internals of gguf_open(): one file, which may be a part.
 */
#ifndef NOJIT_TRAINER_GGUF_FILE_H
#define NOJIT_TRAINER_GGUF_FILE_H

#include "formats/gguf.h"

/* Compare two strings as strcmp() does. */
int gguf_compare(struct gguf_text a, struct gguf_text b);
/* Open one file; its tensors are in file order. gguf_close() frees everything, after a failure,
 * too. remedy: for a file that cannot be opened. */
int gguf_file_open(const char *path, const char *remedy, struct gguf *g);

#endif
