/* SPDX-License-Identifier: Apache-2.0
 *
 * features.h: the features that a block of a model has or lacks. The trainer's blocks are described by them, and the
 * contract of an op that only some models need names one (`when: qk_norm`).
 */
#ifndef NOJIT_FEATURES_H
#define NOJIT_FEATURES_H

#include <stddef.h>
#include <string.h>

enum feature {
    FEATURE_QKV_BIAS, /* the products of queries, keys and values add a bias */
    FEATURE_QK_NORM,  /* each query and key head is normed before it is rotated */
    FEATURE_SILU,     /* the activation of a gated MLP is SiLU */
    FEATURES
};

/* The bit of a feature in a set of them. */
#define FEATURE_BIT(feature) (1u << (feature))

static const char *const feature_names[FEATURES] = {
    [FEATURE_QKV_BIAS] = "qkv_bias", [FEATURE_QK_NORM] = "qk_norm", [FEATURE_SILU] = "silu"};

/* Return the feature of that name, or -1. */
static inline int feature_find(const char *name)
{
    for (int i = 0; i < FEATURES; i++)
        if (strcmp(feature_names[i], name) == 0)
            return i;
    return -1;
}

/* Return whether a set of features meets a contract's `when`: a feature that it has, or "not " and one that it lacks.
 * An unknown name is met by none. */
static inline int features_meet(unsigned set, const char *when)
{
    static const char not_[] = "not ";
    const size_t skip = strncmp(when, not_, sizeof not_ - 1) == 0 ? sizeof not_ - 1 : 0;
    const int feature = feature_find(when + skip);
    return feature >= 0 && ((set & FEATURE_BIT(feature)) != 0) == (skip == 0);
}

#endif
