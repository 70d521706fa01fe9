/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_names.h: the tensors of a GGUF file: their names, which of the model's tensors they hold, and how.
 */
#ifndef NOJIT_TRAINER_GGUF_NAMES_H
#define NOJIT_TRAINER_GGUF_NAMES_H

#include "base/head_rows.h"
#include "model/gguf_archs.h"
#include "model/tensor_names.h"

#define GGUF_EMBED "token_embd.weight"
#define GGUF_HEAD "output.weight"

/* Return the architecture of a family's files; NULL: llama.cpp reads none of it. */
const struct gguf_arch *gguf_arch(const char *model_type);
/* Write the GGUF name of a tensor: "blk.3.attn_q.weight". Those of all experts are one tensor.
 * arch NULL: the usual name. */
void gguf_tensor_name(const struct gguf_arch *arch, const struct tensor_spec *spec, char out[128]);
/* Write the name of the tensor that may hold it, after those before it; return whether there is one. */
bool gguf_fused_name(const struct tensor_spec *spec, char out[128]);
/* Return whether heads of the family rotate neighboring elements in GGUF files, so that rows of queries and keys have
 * another order there; and the number of heads whose rows do so in one tensor (struct tensor's `pairs`). */
bool gguf_rotates_pairs(const struct model_config *c);
int gguf_pairs(const struct model_config *c, const struct tensor_spec *spec);
/* Return a tensor with the sizes that it has there. */
struct tensor_spec gguf_shape(const struct tensor_spec *spec);
/* Return the order that value heads of the delta rule have there in the rows and in the columns of a tensor: the first
 * one of each key head, then the second of each. */
struct head_tiles gguf_row_tiles(const struct model_config *c, const struct tensor_spec *spec);
struct head_tiles gguf_column_tiles(const struct model_config *c, const struct tensor_spec *spec);
/* Return whether -exp(x) stands there for each element x. */
bool gguf_negated_exp(const struct tensor_spec *spec);
/* Return the number that is added to the gains of a norm there; 0 for other tensors. */
float gguf_added(const struct model_config *c, const struct tensor_spec *spec);

/* Rows of one of the model's tensors, from `first` on, as a tensor of a file: its name, role and shape. */
struct gguf_part {
    struct tensor_spec spec;
    int64_t first;
};
enum { GGUF_PARTS_MOST = 2 };
/* List the tensors that hold one of the model's. Return their number. */
int gguf_parts(const struct model_config *c, const struct tensor_spec *spec,
               struct gguf_part out[GGUF_PARTS_MOST]);

#endif
