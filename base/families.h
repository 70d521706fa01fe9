/* SPDX-License-Identifier: Apache-2.0
 *
 * families.h: the model families and the activations that are supported, a row each. The trainer and
 * blobcheck read these tables.
 */
#ifndef NOJIT_FAMILIES_H
#define NOJIT_FAMILIES_H

#include "base/activation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What a family implies, and what its fields are when config.json leaves them out. */
static const struct family {
    const char *model_type, *architecture;
    bool qkv_bias, qk_norm;
    int head_dim; /* 0: hidden_size / heads */
    int kv_heads; /* 0: as many as heads */
    int max_positions;
    double rms_eps, rope_theta;
    bool tied;
    int window; /* sliding_window where it is always on; 0: use_sliding_window switches it */
} families[] = {
    {"llama", "LlamaForCausalLM", false, false, 0, 0, 2048, 1e-6, 1e4, false, 0},
    {"mistral", "MistralForCausalLM", false, false, 0, 8, 131072, 1e-6, 1e4, false, 4096},
    {"qwen2", "Qwen2ForCausalLM", true, false, 0, 32, 32768, 1e-6, 1e4, false, 0},
    {"qwen3", "Qwen3ForCausalLM", false, true, 128, 32, 32768, 1e-6, 1e4, false, 0},
};

/* hidden_act, and the kernels that compute it. The first is the one of a config.json without it. */
static const struct hidden_act {
    const char *name;
    enum nj_activation kernels;
} hidden_acts[] = {
    {"silu", NJ_SILU},
    {"swish", NJ_SILU},
    {"gelu", NJ_GELU},
    {"gelu_python", NJ_GELU},
    {"gelu_pytorch_tanh", NJ_GELU_TANH},
    {"gelu_python_tanh", NJ_GELU_TANH},
    {"gelu_new", NJ_GELU_TANH},
};

enum {
    FAMILIES = sizeof families / sizeof *families,
    HIDDEN_ACTS = sizeof hidden_acts / sizeof *hidden_acts,
    NAMES_BYTES = 128
};

static inline const struct family *family_find(const char *model_type)
{
    for (int i = 0; i < FAMILIES; i++)
        if (strcmp(families[i].model_type, model_type) == 0)
            return &families[i];
    return NULL;
}

/* The row of a name, or -1. */
static inline int hidden_act_find(const char *name)
{
    for (int i = 0; i < HIDDEN_ACTS; i++)
        if (strcmp(hidden_acts[i].name, name) == 0)
            return i;
    return -1;
}

/* Appends the name of row i of so many: "a, b and c are supported". */
static inline void name_append(char out[NAMES_BYTES], const char *name, int i, int rows)
{
    const size_t used = strlen(out);
    snprintf(out + used, NAMES_BYTES - used, "%s%s", name,
             i + 2 < rows    ? ", "
             : i + 2 == rows ? " and "
                             : " are supported");
}

static inline const char *families_supported(char out[NAMES_BYTES])
{
    out[0] = '\0';
    for (int i = 0; i < FAMILIES; i++)
        name_append(out, families[i].model_type, i, FAMILIES);
    return out;
}

static inline const char *hidden_acts_supported(char out[NAMES_BYTES])
{
    out[0] = '\0';
    for (int i = 0; i < HIDDEN_ACTS; i++)
        name_append(out, hidden_acts[i].name, i, HIDDEN_ACTS);
    return out;
}

#endif
