/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_describe.h: a configuration as metadata of a GGUF file.
 */
#ifndef NOJIT_TRAINER_GGUF_DESCRIBE_H
#define NOJIT_TRAINER_GGUF_DESCRIBE_H

#include "formats/gguf_write.h"
#include "model/config.h"

/* Refuse a model that a GGUF file would describe wrongly. where: the place that the message names. */
int gguf_check_model(const struct model_config *c, const char *where);
/* Put the keys of a model that has passed that check. */
void gguf_describe(struct gguf_writer *w, const struct model_config *c);

#endif
