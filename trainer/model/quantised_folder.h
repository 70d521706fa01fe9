/* SPDX-License-Identifier: Apache-2.0
 *
 * quantised_folder.h: the weights of a Hugging Face folder, quantised or not.
 */
#ifndef NOJIT_TRAINER_QUANTISED_FOLDER_H
#define NOJIT_TRAINER_QUANTISED_FOLDER_H

#include "io/tensors.h"

#include <stdbool.h>

/* As st_open(); where config.json has a quantization_config, matrices that are quantised are of the types that their
 * numbers and scales fit in, at about the size that they have in the file. */
int folder_tensors(const char *dir, struct tensors *out);
/* Whether its config.json has one, and weights are there. */
int folder_is_quantised(const char *dir, bool *out);

#endif
