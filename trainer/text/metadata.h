/* SPDX-License-Identifier: Apache-2.0
 *
 * metadata.h: metadata of a model's file on its tokenizer, under GGUF's keys, so that there is
 * one reader.
 */
#ifndef NOJIT_TRAINER_METADATA_H
#define NOJIT_TRAINER_METADATA_H

#include "formats/gguf.h"

#include <stdbool.h>

/* Return whether path is a GGUF or APR file. */
bool metadata_is(const char *path);
/* Open the metadata; of an APR file only the keys of its tokenizer are there. Close it with
 * gguf_close(). */
int metadata_open(const char *path, struct gguf *out);
/* Return the key that the file has for one of GGUF's, or would have. */
const char *metadata_name(const struct gguf *g, const char *key);

#endif
