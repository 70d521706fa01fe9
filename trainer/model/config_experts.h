/* SPDX-License-Identifier: Apache-2.0
 *
 * config_experts.h: inside of config_from(): which layers have experts, and how many.
 */
#ifndef NOJIT_TRAINER_CONFIG_EXPERTS_H
#define NOJIT_TRAINER_CONFIG_EXPERTS_H

#include "base/families.h"
#include "model/config_fields.h"

/* Make the block of experts of a family that has them from its dense MLP, and set which layers have it. c: the sizes of
 * the model. sparse: [c->layers]. */
int config_experts(const struct fields *f, const struct family *family,
                   const struct model_config *c, const struct block *mlp, struct block *out,
                   bool *sparse);
/* Read the coefficient of the loss that balances experts, which transformers adds if output_router_logits is true. */
int config_balance(const struct fields *f, float *out);
/* Return whether fields can say which layers have experts. */
bool config_experts_fit(const struct model_config *c, const struct family *family);
/* Set those fields of a config.json. */
void config_put_experts(json_t *root, const struct model_config *c, const struct family *family);

#endif
