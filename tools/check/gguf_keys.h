/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_keys.h: the fields of a GGUF file that decide which kernels its model needs.
 */
#ifndef NOJIT_TOOLS_GGUF_KEYS_H
#define NOJIT_TOOLS_GGUF_KEYS_H

#include <jansson.h>

#include "image/problems.h"

/* Return the fields that a config.json would have, or NULL with a sentence. */
json_t *gguf_keys_load(const char *path, char why[WHY_BYTES]);

#endif
