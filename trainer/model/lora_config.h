/* SPDX-License-Identifier: Apache-2.0
 *
 * lora_config.h: what a user says of adapters, and the adapter_config.json that PEFT reads and
 * writes.
 */
#ifndef NOJIT_TRAINER_LORA_CONFIG_H
#define NOJIT_TRAINER_LORA_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

/* The matrices of a layer that can have an adapter. */
enum lora_target { LORA_Q, LORA_K, LORA_V, LORA_O, LORA_GATE, LORA_UP, LORA_DOWN, LORA_TARGETS };

struct lora_config {
    int rank;       /* 0: no adapters */
    double alpha;   /* products are scaled by alpha / rank */
    double dropout; /* of an adapter's input, while training */
    bool target[LORA_TARGETS];
};

/* Adds to c->target what a list names: "q_proj,down_proj", "all-linear". */
int lora_targets_add(struct lora_config *c, const char *list);
/* The same list of what is in c->target. */
void lora_targets_text(const struct lora_config *c, char *out, size_t bytes);
/* DIR/adapter_config.json. What this program cannot apply is refused by name. */
int lora_config_read(const char *dir, struct lora_config *out);
/* Maps DIR/adapter_model.safetensors. */
struct tensors;
int lora_weights_open(const char *dir, struct tensors *out);
/* base: what the adapters call their model. */
int lora_config_write(const char *dir, const struct lora_config *c, const char *base);

#endif
