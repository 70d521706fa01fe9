/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_model.h: a GGUF file as a model: what its metadata says as a configuration, its tensors under the names
 * of Hugging Face. The tables serve those who write such a file as well.
 */
#ifndef NOJIT_TRAINER_GGUF_MODEL_H
#define NOJIT_TRAINER_GGUF_MODEL_H

#include "formats/tensors.h"
#include "model/config.h"
#include "model/tensor_names.h"

/* Of the first part, where the model is split. What nojit does not compute is refused by key and value. Returns 0,
 * NJ_E_IO, NJ_E_FORMAT, NJ_E_UNSUPPORTED or NJ_E_NOMEM. */
int gguf_config(const char *path, struct model_config *out);
/* The model's tensors and no others, each of the shape that its role has. */
int gguf_tensors(const char *path, struct tensors *out);

/* general.architecture of a family. */
const char *gguf_arch(const char *model_type);
/* "blk.3.attn_q.weight" */
void gguf_tensor_name(const struct tensor_spec *spec, char out[128]);
/* Return whether heads of the family rotate neighbours in GGUF files, so that rows of queries and keys lie in another
 * order there; and the number of heads whose rows do so in one tensor (struct tensor's `pairs`). */
bool gguf_rotates_pairs(const struct model_config *c);
int gguf_pairs(const struct model_config *c, const struct tensor_spec *spec);
/* rope_freqs.weight of a model whose positions are scaled: head_dim/2 divisors of its frequencies. */
#define GGUF_ROPE_FREQS "rope_freqs.weight"
void gguf_rope_freqs(const struct model_config *c, float *divisors);
/* Sets the scaling of c that the tensor of w is of, if it is there; that of another rule is refused. */
int gguf_read_rope_freqs(const char *path, const struct tensors *w, struct model_config *c);

#endif
