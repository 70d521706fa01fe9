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
    ROLE_EMBED, /* [vocab, hidden] */
    /* attention */
    ROLE_INPUT_NORM, /* [hidden]; the norms of a block only if it has them */
    ROLE_QKV_WEIGHT, /* [(heads + 2 kv_heads) * head_dim, hidden]; in place of the three if they are fused */
    ROLE_Q_WEIGHT, /* [heads * head_dim, hidden] */
    ROLE_K_WEIGHT, /* [kv_heads * head_dim, hidden] */
    ROLE_V_WEIGHT, /* [kv_heads * head_dim, hidden] */
    ROLE_Q_BIAS,   /* [heads * head_dim]; the three only with qkv_bias */
    ROLE_K_BIAS,   /* [kv_heads * head_dim] */
    ROLE_V_BIAS,   /* [kv_heads * head_dim] */
    ROLE_Q_NORM, /* [head_dim], with qk_norm_row [heads * head_dim]; the two only with such a norm */
    ROLE_K_NORM,              /* [head_dim], with qk_norm_row [kv_heads * head_dim] */
    ROLE_ATTENTION_GATE,      /* [heads * head_dim, hidden]; only with output_gate */
    ROLE_SINKS,               /* [heads]; only with sinks */
    ROLE_O_WEIGHT,            /* [hidden, heads * head_dim] */
    ROLE_O_BIAS,              /* [hidden]; only with o_bias */
    ROLE_ATTENTION_POST_NORM, /* [hidden] */
    /* gated MLP */
    ROLE_FFN_NORM,       /* [hidden] */
    ROLE_GATE_UP_WEIGHT, /* [2 intermediate, hidden]; in place of the two if they are fused */
    ROLE_GATE_WEIGHT,    /* [intermediate, hidden] */
    ROLE_UP_WEIGHT,      /* [intermediate, hidden] */
    ROLE_GATE_BIAS,      /* [intermediate]; the biases only with mlp_bias */
    ROLE_UP_BIAS,        /* [intermediate] */
    ROLE_DOWN_WEIGHT,    /* [hidden, intermediate] */
    ROLE_DOWN_BIAS,      /* [hidden] */
    ROLE_FFN_POST_NORM,  /* [hidden] */
    /* mixture of experts; tensors of all experts come one after another, those of a role before those of the next */
    ROLE_EXPERTS_NORM,       /* [hidden] */
    ROLE_ROUTER_WEIGHT,      /* [experts, hidden] */
    ROLE_ROUTER_BIAS,        /* [experts]; this and the biases of the experts only with mlp_bias */
    ROLE_CORRECTION,         /* [experts]; only with correction_bias */
    ROLE_EXPERT_GATE_WEIGHT, /* [intermediate, hidden], for each expert */
    ROLE_EXPERT_UP_WEIGHT,   /* [intermediate, hidden] */
    ROLE_EXPERT_GATE_BIAS,   /* [intermediate] */
    ROLE_EXPERT_UP_BIAS,     /* [intermediate] */
    ROLE_EXPERT_DOWN_WEIGHT, /* [hidden, intermediate] */
    ROLE_EXPERT_DOWN_BIAS,   /* [hidden] */
    ROLE_SHARED_GATE_WEIGHT, /* [intermediate of the shared expert, hidden]; these only with one */
    ROLE_SHARED_UP_WEIGHT,   /* [intermediate of the shared expert, hidden] */
    ROLE_SHARED_DOWN_WEIGHT, /* [hidden, intermediate of the shared expert] */
    ROLE_SHARED_SWITCH,      /* [1, hidden]; only with a gate of the shared expert */
    ROLE_EXPERTS_POST_NORM,  /* [hidden] */
    /* gated short convolution */
    ROLE_CONV_NORM, /* [hidden] */
    ROLE_CONV_IN_WEIGHT, /* [3 channels, hidden]: gates before and behind the convolution, and its input */
    ROLE_CONV_TAPS,       /* [channels, 1, taps] */
    ROLE_CONV_OUT_WEIGHT, /* [hidden, channels] */
    ROLE_CONV_POST_NORM,  /* [hidden] */
    /* gated delta rule, of H value heads and K key heads of D elements */
    ROLE_DELTA_NORM,       /* [hidden] */
    ROLE_DELTA_QKV_WEIGHT, /* [(H + 2 K) D, hidden]: queries, keys, values */
    ROLE_DELTA_Q_WEIGHT, /* [K D, hidden]; with grouped_delta these three in place of the last one */
    ROLE_DELTA_K_WEIGHT,   /* [K D, hidden] */
    ROLE_DELTA_V_WEIGHT,   /* [H D, hidden] */
    ROLE_DELTA_Z_WEIGHT,   /* [H D, hidden] */
    ROLE_DELTA_B_WEIGHT,   /* [H, hidden] */
    ROLE_DELTA_A_WEIGHT,   /* [H, hidden] */
    ROLE_DELTA_TAPS,       /* [(H + 2 K) D, 1, taps] */
    ROLE_DELTA_LOG,        /* [H] logarithms of rates of decay */
    ROLE_DELTA_STEP,       /* [H] biases of steps */
    ROLE_DELTA_GAIN,       /* [D] gain of the norm of heads, without the offset of others */
    ROLE_DELTA_OUT_WEIGHT, /* [hidden, H D] */
    ROLE_DELTA_POST_NORM,  /* [hidden] */
    ROLE_FINAL_NORM,       /* [hidden] */
    ROLE_HEAD,             /* [vocab, hidden]; only if not tied */
    ROLE_COUNT
};

enum { TENSOR_NAME_BYTES = 128 };
struct tensor_spec {
    char name[TENSOR_NAME_BYTES];
    int rank;         /* 2: a matrix; 1; or 3: the taps of a convolution, which are no matrix */
    int64_t shape[3]; /* row-major; sizes beyond the rank are not used */
    enum tensor_role role;
    int layer;  /* number of the layer; -1 outside the layers */
    int expert; /* number of the expert; 0 for other tensors */
};

/* List the tensors in canonical order: embedding, layers from 0 on (each in role order), final norm, LM head. *out is
 * malloc()'d; free() it. The configuration must have passed config_check(). Return 0 or NJ_E_NOMEM. */
int tensor_specs(const struct model_config *c, struct tensor_spec **out, size_t *count);
/* Return the number of elements of all tensors of a model, which are its parameters. */
int64_t tensors_elements(const struct model_config *c);
/* Return the kind of the blocks that have tensors of a role; BLOCK_KINDS: it is outside of the layers. */
enum block_kind tensor_block(enum tensor_role role);
/* Return whether each expert of a block has a tensor of the role. */
bool tensor_is_of_expert(enum tensor_role role);
/* Return whether a tensor of the role is float32 whatever the type of the others: a bias of experts' scores, of which
 * 16 bits cannot hold the differences. */
bool tensor_is_wide(enum tensor_role role);
/* Return whether a tensor is the LM head: with tied embeddings that is the embedding. */
bool tensor_is_head(const struct model_config *c, const struct tensor_spec *s);
/* Return the name of a role's module ("q_proj"), and its length. */
const char *tensor_module(enum tensor_role role, int *length);
/* Write the name that a family has for it ("input_linear"). */
void tensor_module_of(const char *model_type, enum tensor_role role, char out[TENSOR_NAME_BYTES]);
/* Return the number of elements of one tensor. */
int64_t tensor_elements(const struct tensor_spec *s);
/* Check that t, found under the name of spec (NULL: it was not) in the model dir, is as spec says. Return 0 or
 * NJ_E_FORMAT. */
struct tensor;
int weights_check(const char *dir, const struct tensor_spec *spec, const struct tensor *t);

#endif
