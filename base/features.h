/* SPDX-License-Identifier: Apache-2.0
 *
 * features.h: features that a model has or lacks, most of them in its blocks. They describe the trainer's blocks, and
 * the contract of an op that only some models need names one (`when: qk_norm`).
 */
#ifndef NOJIT_FEATURES_H
#define NOJIT_FEATURES_H

#include <stddef.h>
#include <string.h>

enum feature {
    FEATURE_QKV_BIAS, /* the GEMMs of queries, keys and values add a bias */
    FEATURE_QK_NORM,  /* each query and key head is normalized before RoPE */
    FEATURE_SILU,     /* the activation of a gated MLP is SiLU */
    FEATURE_SOFTCAP,  /* logits are bounded by a hyperbolic tangent */
    /* norms of a block */
    FEATURE_NORM_BEFORE, /* its input is normalized */
    FEATURE_NORM_AFTER,  /* its output is normalized before it is added to the stream */
    /* attention */
    FEATURE_QK_NORM_ROW, /* all queries of a row are normalized together before RoPE, and all keys */
    FEATURE_QK_GAIN_LAST, /* with qk_norm: the gain multiplies the rotated head */
    FEATURE_QK_NO_GAIN,   /* with qk_norm: the offset of gains is the gain */
    FEATURE_O_BIAS,       /* the output GEMM adds a bias */
    FEATURE_SINKS,        /* each query head has one more score, without a value */
    FEATURE_GATE,         /* the output is multiplied by the sigmoid of a product with the input */
    FEATURE_HEAD_MAP,     /* heads are padded or reordered for the kernels */
    FEATURE_FUSED_QKV,    /* files hold queries, keys and values as one tensor */
    /* With output_gate: files hold the gate's rows of each head behind its queries. The rows of heads are read in the
     * order of kernels, of which a part may rotate. */
    FEATURE_GATED_Q,
    /* recurrent layers */
    FEATURE_CONV,  /* causal convolution over the rows of a document, each channel by itself */
    FEATURE_DELTA, /* the gated delta rule */
    FEATURE_GROUPED_DELTA, /* with delta_rule: files hold the rows of its products by key head */
    /* gated MLP */
    FEATURE_MLP_BIAS,      /* its GEMMs add biases */
    FEATURE_FUSED_GATE_UP, /* files hold gate and up as one tensor */
    /* experts: gated MLPs of which a router chooses some for each row */
    FEATURE_EXPERTS,
    FEATURE_CORRECTION,    /* a bias decides on their choice, and not on their weights */
    FEATURE_SHARED_EXPERT, /* one more, which all rows take */
    FEATURE_SHARED_GATE,   /* with shared_expert: a gate of each row multiplies its output */
    FEATURES
};

/* The bit of a feature in a set of features. */
#define FEATURE_BIT(feature) (1u << (feature))
#define NORMED_BEFORE FEATURE_BIT(FEATURE_NORM_BEFORE)
#define NORMED_AFTER FEATURE_BIT(FEATURE_NORM_AFTER)
/* Features of experts, which the dense MLPs of a model lack. */
#define EXPERT_FEATURES                                                                            \
    (FEATURE_BIT(FEATURE_EXPERTS) | FEATURE_BIT(FEATURE_CORRECTION) |                              \
     FEATURE_BIT(FEATURE_SHARED_EXPERT) | FEATURE_BIT(FEATURE_SHARED_GATE))

static const char *const feature_names[FEATURES] = {
    [FEATURE_QKV_BIAS] = "qkv_bias",
    [FEATURE_QK_NORM] = "qk_norm",
    [FEATURE_SILU] = "silu",
    [FEATURE_SOFTCAP] = "softcap",
    [FEATURE_NORM_BEFORE] = "norm_before",
    [FEATURE_NORM_AFTER] = "norm_after",
    [FEATURE_QK_NORM_ROW] = "qk_norm_row",
    [FEATURE_QK_GAIN_LAST] = "qk_gain_last",
    [FEATURE_QK_NO_GAIN] = "qk_no_gain",
    [FEATURE_O_BIAS] = "o_bias",
    [FEATURE_SINKS] = "sinks",
    [FEATURE_GATE] = "output_gate",
    [FEATURE_HEAD_MAP] = "head_map",
    [FEATURE_FUSED_QKV] = "fused_qkv",
    [FEATURE_GATED_Q] = "gated_q",
    [FEATURE_CONV] = "conv",
    [FEATURE_DELTA] = "delta_rule",
    [FEATURE_GROUPED_DELTA] = "grouped_delta",
    [FEATURE_MLP_BIAS] = "mlp_bias",
    [FEATURE_FUSED_GATE_UP] = "fused_gate_up",
    [FEATURE_EXPERTS] = "experts",
    [FEATURE_CORRECTION] = "correction_bias",
    [FEATURE_SHARED_EXPERT] = "shared_expert",
    [FEATURE_SHARED_GATE] = "shared_gate",
};

/* Return the feature with that name, or -1. */
static inline int feature_find(const char *name)
{
    for (int i = 0; i < FEATURES; i++)
        if (strcmp(feature_names[i], name) == 0)
            return i;
    return -1;
}

/* Return whether a set of features meets a contract's `when`: the name of a feature that the set has, or "not " and the
 * name of one that it lacks. No set meets an unknown name. */
static inline int features_meet(unsigned set, const char *when)
{
    static const char not_[] = "not ";
    const size_t skip = strncmp(when, not_, sizeof not_ - 1) == 0 ? sizeof not_ - 1 : 0;
    const int feature = feature_find(when + skip);
    return feature >= 0 && ((set & FEATURE_BIT(feature)) != 0) == (skip == 0);
}

#endif
