/* SPDX-License-Identifier: Apache-2.0
 *
 * family.h: what a row of the table of families says.
 */
#ifndef NOJIT_FAMILY_H
#define NOJIT_FAMILY_H

#include "base/features.h"
#include "base/route.h"

#include <stdbool.h>

enum { RENAMES_MOST = 14 };

#define ALL_BIASES (FEATURE_BIT(FEATURE_QKV_BIAS) | FEATURE_BIT(FEATURE_O_BIAS))

/* Which layers have the window, unless layer_types lists them. */
enum window_rule {
    WINDOW_NONE,      /* no layer */
    WINDOW_ALL,       /* every layer, whatever layer_types says */
    WINDOW_EACH,      /* every layer */
    WINDOW_BUT_LAST,  /* all but the last of every `period` layers */
    WINDOW_BUT_FIRST, /* all but the first of every `period` layers */
    WINDOW_TO_LAST,   /* all but the last layer and those a multiple of `period` before it */
    WINDOW_FROM,      /* with use_sliding_window, those from max_window_layers on */
    WINDOW_UNROTATED  /* with use_sliding_window, those that do not rotate */
};

/* Which table of rotations a layer has. */
enum rotation_rule {
    ROTATION_ONE,       /* the same for all layers */
    ROTATION_BY_WINDOW, /* layers with the window have a table of their own */
    ROTATION_WINDOWED,  /* layers without the window do not rotate, if there is one */
    ROTATION_LISTED,    /* layers do not rotate where no_rope_layers has 0 */
    ROTATION_BASES,     /* layer_rope_theta has the base of each layer; 0: it does not rotate */
    /* layers do not rotate where layer_rope_theta has 0; without it, each `period`-th from the last one back */
    ROTATION_ZEROS,
    ROTATION_NAMED /* nothing rotates unless position_embedding_type is "rope" */
};

/* Groups of fields of config.json that only some families have. */
enum {
    FIELDS_MLP_BIAS = 1 << 0,    /* mlp_bias */
    FIELDS_PATTERN = 1 << 1,     /* sliding_window_pattern */
    FIELDS_ROTARY = 1 << 2,      /* partial_rotary_factor */
    FIELDS_LONGROPE = 1 << 3,    /* rope types "su" and "yarn" stand for longrope */
    FIELDS_BETA = 1 << 4,        /* llama_4_scaling_beta */
    FIELDS_GEMMA = 1 << 5,       /* query_pre_attn_scalar and others */
    FIELDS_MULTIPLIERS = 1 << 6, /* embedding_multiplier and others */
    FIELDS_HYBRID = 1 << 7, /* sizes of experts and recurrent layers, which a dense model lacks */
    FIELDS_UNROTATED = 1 << 8, /* no_rope_layers, no_rope_layer_interval */
    FIELDS_HUNYUAN = 1 << 9,   /* alpha of rope type "dynamic" and others */
    FIELDS_DEPTH = 1 << 10,    /* scale_emb, scale_depth, dim_model_base */
    FIELDS_BASES = 1 << 11,    /* layer_rope_theta */
    FIELDS_EXPERTS = 1 << 12,  /* moe_intermediate_size and others */
    FIELDS_MUSE = 1 << 13,     /* qk_scale_factor, output_multiplier, post_norm_eps */
    FIELDS_OSS = 1 << 14,      /* swiglu_limit and others; models that are read, not written */
    FIELDS_CONV = 1 << 15,     /* conv_L_cache, norm_eps and others */
    FIELDS_DELTA = 1 << 16,    /* linear_num_value_heads and others */
    FIELDS_SPARSE = 1 << 17, /* decoder_sparse_step, mlp_only_layers, intermediate_size of others */
    FIELDS_SHARED = 1 << 18, /* shared_expert_intermediate_size */
    FIELDS_ADJUST = 1 << 19, /* block_ff_dim, full_attn_idxs and others */
    FIELDS_LEADING =
        1 << 20, /* the number of first layers without experts, routed_scaling_factor */
    FIELDS_EXPERT_BIAS = 1 << 21, /* use_expert_bias */
    FIELDS_GLM = 1 << 22,         /* n_routed_experts, n_group and others */
};

/* A family of models: the facts that its name implies, and defaults for fields missing from config.json. */
struct family {
    const char *model_type, *architecture; /* names in transformers */
    const char *models;                    /* published models of the family, for people */
    const char *limits; /* conditions that models must meet to be read, for people; NULL: none */
    const char *tried; /* sizes that have run, beside small ones of every family; NULL: no others */
    const char *listed;      /* family of a file that has layer_types; NULL: this one */
    unsigned attention, mlp; /* features of its blocks of either kind */
    unsigned recurrent;      /* features of blocks in the place of attention; 0: it has none */
    const char *act;         /* activation; NULL: silu */
    unsigned biases;         /* features of attention that attention_bias switches */
    unsigned fields;         /* FIELDS_* that it has */
    float gain_offset;       /* number added to the gains of all norms */
    bool plain_final;        /* whether the final norm's gain has no such number */
    bool embed_root;         /* embeddings are multiplied by sqrt(hidden_size) */
    bool embed_normed;       /* embeddings are normed, without a gain */
    int head_dim;            /* 0: hidden_size / heads */
    int kv_heads;            /* 0: as many as heads */
    int max_positions;
    int original_positions; /* original_max_position_embeddings; 0: max_positions */
    double rms_eps, rope_theta;
    double window_theta;  /* base of the table of layers with the window; 0: rope_theta */
    double rotary;        /* partial_rotary_factor; 0: whole heads rotate */
    bool neighbors;       /* element 2i rotates with 2i + 1 */
    bool rope_needed;     /* a file must have rope_parameters */
    enum nj_route router; /* rule of its routers, if its layers have experts */
    bool renormalized;    /* norm_topk_prob */
    double route_eps;     /* number added to the sum that weights are divided by; 0: none */
    bool tied;
    enum window_rule windows;
    enum rotation_rule rotation;
    int window, period; /* sliding_window (0: none), sliding_window_pattern */
    /* Sizes of a model whose file leaves them out; 0: it must have them. */
    int hidden_size, ffn_size, layers, heads, vocab_size;
    int experts, experts_used, expert_size, shared_size, leading;
    /* Parts of the names of tensors that differ from those of tensor_names.c. */
    struct tensor_rename {
        const char *from, *to;
    } rename[RENAMES_MOST];
    /* Name in GGUF files, a row of gguf_archs.h; NULL: they are neither read nor written.
     * Whether RoPE there rotates neighbouring rows, so that the rows of a head's two halves alternate. */
    const char *gguf;
    bool gguf_pairs;
};

/* Return the field of config.json that names the activation. */
static inline const char *family_act_field(const struct family *f)
{
    return f->fields & (FIELDS_GEMMA | FIELDS_MUSE) ? "hidden_activation" : "hidden_act";
}
/* Return the one with the width of the MLP. */
static inline const char *family_ffn_field(const struct family *f)
{
    return f->fields & FIELDS_HYBRID ? "shared_intermediate_size" : "intermediate_size";
}
/* Return the one with the number that norms add to mean squares. */
static inline const char *family_eps_field(const struct family *f)
{
    return f->fields & FIELDS_CONV ? "norm_eps" : "rms_norm_eps";
}

/* Return the one with the number of experts. */
static inline const char *family_experts_field(const struct family *f)
{
    return f->fields & FIELDS_GLM ? "n_routed_experts" : "num_experts";
}
/* Return the one with the number of first layers without experts. */
static inline const char *family_leading_field(const struct family *f)
{
    return f->fields & FIELDS_GLM ? "first_k_dense_replace" : "num_dense_layers";
}

/* Return whether all layers of the family's models have experts, whose width is moe_intermediate_size. */
static inline bool family_has_no_dense(const struct family *f)
{
    return (f->fields & FIELDS_EXPERTS) != 0 && (f->fields & (FIELDS_SPARSE | FIELDS_LEADING)) == 0;
}

/* Return whether models of the family can only be teachers: their experts have biases, or there is one that all rows
 * take. */
static inline bool family_is_teacher_only(const struct family *f)
{
    const unsigned forward_only =
        FEATURE_BIT(FEATURE_CORRECTION) | FEATURE_BIT(FEATURE_SHARED_EXPERT);
    return (f->fields & FIELDS_OSS) != 0 || (f->mlp & forward_only) != 0;
}

#endif
