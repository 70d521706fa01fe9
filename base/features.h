/* SPDX-License-Identifier: Apache-2.0
 *
 * features.h: features that a block of a model has or lacks. They describe the trainer's blocks, and the contract of an
 * op that only some models need names one (`when: qk_norm`).
 */
#ifndef NOJIT_FEATURES_H
#define NOJIT_FEATURES_H

#include <stddef.h>
#include <string.h>

enum feature {
    FEATURE_QKV_BIAS, /* the GEMMs of queries, keys and values add a bias */
    FEATURE_QK_NORM,  /* each query and key head is normalized before RoPE */
    FEATURE_SILU,     /* the activation of a gated MLP is SiLU */
    FEATURES
};

/* The bit of a feature in a set of features. */
#define FEATURE_BIT(feature) (1u << (feature))

static const char *const feature_names[FEATURES] = {
    [FEATURE_QKV_BIAS] = "qkv_bias", [FEATURE_QK_NORM] = "qk_norm", [FEATURE_SILU] = "silu"};

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
