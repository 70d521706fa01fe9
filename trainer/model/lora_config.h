/* SPDX-License-Identifier: Apache-2.0
 *
 * lora_config.h: the user's settings of adapters, and the adapter_config.json that PEFT reads and writes.
 */
#ifndef NOJIT_TRAINER_LORA_CONFIG_H
#define NOJIT_TRAINER_LORA_CONFIG_H

#include "model/tensor_names.h"

#include <stdbool.h>
#include <stddef.h>

/* The matrices of a layer that can have an adapter, by the names of their modules: those of attention and of the MLP,
 * those of the delta rule, and those of a convolution, whose last ones have one name. */
enum lora_target {
    LORA_Q,
    LORA_K,
    LORA_V,
    LORA_O,
    LORA_GATE,
    LORA_UP,
    LORA_DOWN,
    LORA_IN_QKV,
    LORA_IN_Z,
    LORA_IN_B,
    LORA_IN_A,
    LORA_IN,
    LORA_OUT,
    LORA_TARGETS
};
/* Largest number of adapters of a layer: those from LORA_Q to LORA_DOWN, and one more, of the gate of attention's
 * output or of the output of a recurrent block. */
enum { LORA_LAST = LORA_DOWN + 1, LORA_ADAPTERS };

struct lora_config {
    int rank;       /* 0: no adapters */
    double alpha;   /* numerator of the scale of products, alpha / rank */
    double dropout; /* dropout probability of an adapter's input, while training */
    bool target[LORA_TARGETS];
};

/* Return the number of a tensor's adapter in a layer, of a recurrent block one of those of attention's; -1: it has
 * none. Tensors of one matrix follow each other. */
int lora_adapter_of(enum tensor_role role);
/* Set *wanted to whether a tensor of this role, which is a target, has adapters in a model of a family. Return 0, or
 * NJ_E_UNSUPPORTED if only some of several targets that it holds are to have them. */
int lora_wants(const struct lora_config *c, const char *model_type, enum tensor_role role,
               bool *wanted);
/* Add to c->target the modules of a list: "q_proj,down_proj", "all-linear"; "qkv_proj" and "gate_up_proj", which some
 * models have, stand for their parts. */
int lora_targets_add(struct lora_config *c, const char *list);
/* Write the modules of c->target as such a list. */
void lora_targets_text(const struct lora_config *c, char *out, size_t bytes);
/* Read DIR/adapter_config.json. A feature that this program cannot apply is refused by name. */
int lora_config_read(const char *dir, struct lora_config *out);
/* Map DIR/adapter_model.safetensors. */
struct tensors;
int lora_weights_open(const char *dir, struct tensors *out);
/* Write DIR/adapter_config.json. base: the adapters' name for their model. */
int lora_config_write(const char *dir, const struct lora_config *c,
                      const struct model_config *model, const char *base);

#endif
