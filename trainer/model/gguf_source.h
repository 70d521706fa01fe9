/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_source.h: inside of gguf_config.h: values of a GGUF file's metadata on their way into the fields of a
 * config.json.
 */
#ifndef NOJIT_TRAINER_GGUF_SOURCE_H
#define NOJIT_TRAINER_GGUF_SOURCE_H

#include "formats/gguf.h"
#include "model/gguf_archs.h"

#include <jansson.h>

#define GGUF_CONVERT "fetch or convert the model again"

struct gguf_source {
    const struct gguf *g;
    const struct gguf_arch *arch;
    json_t *out; /* fields so far */
};

/* Write the key of a field: "llama.block_count". */
const char *gguf_key(const struct gguf_source *s, const char *name, char out[128]);
/* Read a whole number, or the one that all layers have; missing 0: the key is required. */
int gguf_whole(const struct gguf_source *s, const char *name, int64_t missing, int64_t *out);
/* Read a number above 0, in float32 too; missing NAN: the key is required. */
int gguf_positive(const struct gguf_source *s, const char *name, double missing, double *out);

#endif
