/* SPDX-License-Identifier: Apache-2.0
 *
 * model_open.h: a model by its path: a Hugging Face folder, a GGUF file or an APR file.
 */
#ifndef NOJIT_TRAINER_SOURCE_H
#define NOJIT_TRAINER_SOURCE_H

#include "formats/tensors.h"
#include "model/config.h"

/* Read the configuration; refuse features that nojit does not compute. */
int source_config(const char *path, struct model_config *out);
/* Open the tensors under Hugging Face names. A tensor that the configuration asks for may be missing in a folder;
 * weights_check() looks. The checksum of a file that has one is verified, which reads the whole file. */
int source_tensors(const char *path, struct tensors *out);
/* Open them without verifying the checksum, for a model that has been read before. */
int source_tensors_again(const char *path, struct tensors *out);
/* Return whether the model has a config.json of its own, which may say more than struct model_config. */
bool source_is_folder(const char *path);
/* Write DIR/config.json of the model c, which is that of `path` or some of its layers, with weights of that dtype; a
 * folder's own config.json is the base, where there is one. */
int source_write_config(const char *path, const char *dir, const struct model_config *c,
                        const char *dtype);
/* Copy the files beside the weights into dir: tokenizer, chat template, generation settings. */
int source_side_files(const char *path, const char *dir);
/* Refuse what source_side_files() would refuse. */
int source_check_side_files(const char *path);
/* Find whether there are weights that source_types() should look at: those of a file, or of a folder whose
 * configuration says that they are quantized. */
int source_may_be_quantized(const char *path, bool *out);
/* Find the enum nj_tensor_type of each of tensor_specs(); free() it. NULL where nothing is quantized. Only headers are
 * read. */
int source_types(const char *path, const struct model_config *c, unsigned char **out);
/* Write the quantized types among the weights: "Q4_K, Q6_K", or "" where there are none. */
int source_quantized(const char *path, char *out, size_t bytes);

#endif
