/* SPDX-License-Identifier: Apache-2.0
 *
 * config_numbers.h: inside of config_from(): numbers that a family multiplies with, or bounds its logits by.
 */
#ifndef NOJIT_TRAINER_CONFIG_NUMBERS_H
#define NOJIT_TRAINER_CONFIG_NUMBERS_H

#include "base/families.h"
#include "model/config_fields.h"

/* Read factors of embeddings, scores, the residual stream and logits, and the bound of the logits. Sizes have been
 * read. */
int config_numbers(const struct fields *f, const struct family *family, struct model_config *c,
                   struct block *attention);

#endif
