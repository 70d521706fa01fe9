/* SPDX-License-Identifier: Apache-2.0
 *
 * metadata.h: what a model's file says of its tokenizer, under GGUF's keys, so that there is one reader.
 */
#ifndef NOJIT_TRAINER_METADATA_H
#define NOJIT_TRAINER_METADATA_H

#include "formats/gguf.h"

#include <stdbool.h>

/* A GGUF or APR file. */
bool metadata_is(const char *path);
/* Of an APR file nothing but the keys of its tokenizer. gguf_close() it. */
int metadata_open(const char *path, struct gguf *out);
/* The key that the file has for one of GGUF's, or would have. */
const char *metadata_name(const struct gguf *g, const char *key);

#endif
