/* SPDX-License-Identifier: Apache-2.0
 *
 * lora_config.h: the user's settings of adapters, and the adapter_config.json that PEFT reads and writes.
 */
#ifndef NOJIT_TRAINER_LORA_CONFIG_H
#define NOJIT_TRAINER_LORA_CONFIG_H

#include "model/tensor_names.h"

#include <stdbool.h>
#include <stddef.h>

/* The matrices of a layer that can have an adapter. */
enum lora_target { LORA_Q, LORA_K, LORA_V, LORA_O, LORA_GATE, LORA_UP, LORA_DOWN, LORA_TARGETS };
/* Largest number of adapters of a layer: the gate of attention's output has the name of LORA_GATE, and an adapter of
 * its own. */
enum { LORA_ADAPTERS = LORA_TARGETS + 1 };

struct lora_config {
    int rank;       /* 0: no adapters */
    double alpha;   /* numerator of the scale of products, alpha / rank */
    double dropout; /* dropout probability of an adapter's input, while training */
    bool target[LORA_TARGETS];
};

/* Return the target that a tensor of this role is, or -1; of several that it holds, the first. */
int lora_target_of(enum tensor_role role);
/* Return the number of a tensor's adapter in a layer: its target, or LORA_TARGETS for the gate of attention's output;
 * -1: it has none. */
int lora_adapter_of(enum tensor_role role);
/* Set *wanted to whether a tensor of this role, which is a target, has adapters. Return 0, or NJ_E_UNSUPPORTED if only
 * some of several targets that it holds are to have them. */
int lora_wants(const struct lora_config *c, enum tensor_role role, bool *wanted);
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
