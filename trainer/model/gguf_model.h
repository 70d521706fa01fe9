/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_model.h: a GGUF file as a model: its metadata as a configuration, its tensors under the names of Hugging Face.
 * Writers of such files use the tables, too.
 */
#ifndef NOJIT_TRAINER_GGUF_MODEL_H
#define NOJIT_TRAINER_GGUF_MODEL_H

#include "formats/tensors.h"
#include "model/config.h"
#include "model/tensor_names.h"

/* Read the configuration, from the first part where the model is split. A feature that nojit does not compute is
 * refused by key and value. Return 0, NJ_E_IO, NJ_E_FORMAT, NJ_E_UNSUPPORTED or NJ_E_NOMEM. */
int gguf_config(const char *path, struct model_config *out);
/* Open the model's tensors and no others, each of the shape that its role has. */
int gguf_tensors(const char *path, struct tensors *out);

/* Return general.architecture of a family. */
const char *gguf_arch(const char *model_type);
/* Write the GGUF name of a tensor: "blk.3.attn_q.weight". */
void gguf_tensor_name(const struct tensor_spec *spec, char out[128]);
/* Return whether heads of the family rotate neighboring elements in GGUF files, so that rows of queries and keys have
 * another order there; and the number of heads whose rows do so in one tensor (struct tensor's `pairs`). */
bool gguf_rotates_pairs(const struct model_config *c);
int gguf_pairs(const struct model_config *c, const struct tensor_spec *spec);
/* The tensor rope_freqs.weight of a model whose positions are scaled: head_dim/2 divisors of its frequencies. */
#define GGUF_ROPE_FREQS "rope_freqs.weight"
void gguf_rope_freqs(const struct model_config *c, float *divisors);
/* Set the scaling of c from that tensor of w, if present; scaling by another rule is refused. */
int gguf_read_rope_freqs(const char *path, const struct tensors *w, struct model_config *c);

#endif
