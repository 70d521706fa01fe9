/* SPDX-License-Identifier: Apache-2.0
 *
 * model_open.h: a model by the path of what holds it: a Hugging Face folder, a GGUF file or an APR file.
 */
#ifndef NOJIT_TRAINER_SOURCE_H
#define NOJIT_TRAINER_SOURCE_H

#include "formats/tensors.h"
#include "model/config.h"

/* Refuses what nojit does not compute. */
int source_config(const char *path, struct model_config *out);
/* Under Hugging Face names. What the configuration asks for may be missing in a folder; weights_check() looks. The
 * checksum of a file that has one is verified, which reads all of it. */
int source_tensors(const char *path, struct tensors *out);
/* The same without a look at the checksum, of a model that has been read. */
int source_tensors_again(const char *path, struct tensors *out);
/* Whether it has a config.json of its own, which may say more than struct model_config. */
bool source_is_folder(const char *path);
/* Writes DIR/config.json of the model c, which is that of `path` or some of its layers, with weights of that dtype:
 * with all that a folder's own says, where there is one. */
int source_write_config(const char *path, const char *dir, const struct model_config *c,
                        const char *dtype);
/* Copies what stands beside the weights into dir: tokenizer, chat template, generation settings. */
int source_side_files(const char *path, const char *dir);
/* Refuses what that would refuse. */
int source_check_side_files(const char *path);
/* Whether weights are there that source_types() should look at: of a file, or of a folder whose configuration
 * says that they are quantised. */
int source_may_be_quantised(const char *path, bool *out);
/* enum nj_tensor_type of each of tensor_specs(); free() it. NULL where nothing is quantised. Only headers are read. */
int source_types(const char *path, const struct model_config *c, unsigned char **out);
/* "Q4_K, Q6_K": the quantised types among the weights, "" where there are none. */
int source_quantised(const char *path, char *out, size_t bytes);

#endif
