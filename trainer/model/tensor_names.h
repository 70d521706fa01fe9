/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_names.h: the tensors of a model, their Hugging Face names and their sizes. This is the only such list:
 * initialization, loading, fused parameters and saving all walk it.
 */
#ifndef NOJIT_TRAINER_TENSOR_NAMES_H
#define NOJIT_TRAINER_TENSOR_NAMES_H

#include "model/config.h"

#include <stddef.h>
#include <stdint.h>

/* A role per matrix, bias or gain. Within a layer, specs come in this order; parts that a fused product reads one below
 * the other (q, k, v; gate, up) are neighbors, so a fused parameter is a run of specs. */
enum tensor_role {
    ROLE_EMBED,       /* [vocab, hidden] model.embed_tokens.weight */
    ROLE_INPUT_NORM,  /* [hidden]        input_layernorm.weight */
    ROLE_Q_WEIGHT,    /* [heads * head_dim, hidden] self_attn.q_proj.weight */
    ROLE_K_WEIGHT,    /* [kv_heads * head_dim, hidden] */
    ROLE_V_WEIGHT,    /* [kv_heads * head_dim, hidden] */
    ROLE_Q_BIAS,      /* [heads * head_dim]; the three only with qkv_bias */
    ROLE_K_BIAS,      /* [kv_heads * head_dim] */
    ROLE_V_BIAS,      /* [kv_heads * head_dim] */
    ROLE_Q_NORM,      /* [head_dim]; the two only with qk_norm */
    ROLE_K_NORM,      /* [head_dim] */
    ROLE_O_WEIGHT,    /* [hidden, heads * head_dim] self_attn.o_proj.weight */
    ROLE_POST_NORM,   /* [hidden] post_attention_layernorm.weight */
    ROLE_GATE_WEIGHT, /* [intermediate, hidden] mlp.gate_proj.weight */
    ROLE_UP_WEIGHT,   /* [intermediate, hidden] */
    ROLE_DOWN_WEIGHT, /* [hidden, intermediate] */
    ROLE_FINAL_NORM,  /* [hidden] model.norm.weight */
    ROLE_HEAD,        /* [vocab, hidden] lm_head.weight; only if not tied */
    ROLE_COUNT
};

struct tensor_spec {
    char name[128];
    int rank;         /* 1 or 2 */
    int64_t shape[2]; /* row-major; shape[1] is 1 for rank 1 */
    enum tensor_role role;
    int layer; /* number of the layer; -1 outside the layers */
};

/* List the tensors in canonical order: embedding, layers from 0 on (each in role order), final norm, LM head. *out is
 * malloc()'d; free() it. The configuration must have passed config_check(). Return 0 or NJ_E_NOMEM. */
int tensor_specs(const struct model_config *c, struct tensor_spec **out, size_t *count);
/* Return the number of elements of all tensors of a model, which are its parameters. */
int64_t tensors_elements(const struct model_config *c);
/* Return the name of a role's module ("q_proj"), and its length. */
const char *tensor_module(enum tensor_role role, int *length);
/* Return the number of elements of one tensor. */
int64_t tensor_elements(const struct tensor_spec *s);
/* Check that t, found under the name of spec (NULL: it was not) in the model dir, is as spec says. Return 0 or
 * NJ_E_FORMAT. */
struct tensor;
int weights_check(const char *dir, const struct tensor_spec *spec, const struct tensor *t);

#endif
