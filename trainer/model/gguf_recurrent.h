/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_recurrent.h: the keys of models with recurrent layers in GGUF files: which layers these are, and their sizes.
 */
#ifndef NOJIT_TRAINER_GGUF_RECURRENT_H
#define NOJIT_TRAINER_GGUF_RECURRENT_H

#include "formats/gguf_write.h"
#include "model/config.h"
#include "model/gguf_source.h"

/* Set the fields of recurrent layers, the number of layers, and the number of key heads of those with attention. */
int gguf_put_recurrent(struct gguf_source *s);
/* Refuse sections of positions by which a head of a text would not rotate as a whole. */
int gguf_check_sections(const struct gguf_source *s);
/* Return what of a model's recurrent layers llama.cpp computes otherwise; NULL: nothing. */
const char *gguf_recurrent_differs(const struct gguf_arch *a, const struct model_config *c);
/* Write the keys of a model's recurrent layers. */
void gguf_describe_recurrent(struct gguf_writer *w, const struct gguf_arch *a,
                             const struct model_config *c);

#endif
