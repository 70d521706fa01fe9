/* SPDX-License-Identifier: Apache-2.0
 *
 * folder_experts.h: the weights of experts in a Hugging Face folder that holds those of all experts of a layer as one
 * tensor.
 */
#ifndef NOJIT_TRAINER_FOLDER_EXPERTS_H
#define NOJIT_TRAINER_FOLDER_EXPERTS_H

#include "formats/tensors.h"
#include "model/config.h"

/* Put the tensors of each expert, by the names of folders that have them apart, in the place of those of all experts of
 * a model. Return 0, NJ_E_FORMAT or NJ_E_NOMEM. */
int folder_experts_split(const char *dir, const struct model_config *c, struct tensors *w);

#endif
