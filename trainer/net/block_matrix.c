/* SPDX-License-Identifier: Apache-2.0
 *
 * block_matrix.c: see block_matrix.h.
 */
#include "net/block_matrix.h"

/* A matrix that consists of the tensors of a run of roles. */
#define MATRIX(name, first, last, x, ...)                                                          \
    {                                                                                              \
        name, ROLE_##first, ROLE_##last, x, __VA_ARGS__                                            \
    }

const struct block_matrices block_matrices[BLOCK_KINDS] = {
    [BLOCK_ATTENTION] =
        {
            .norm = ROLE_INPUT_NORM,
            .norm_after = ROLE_ATTENTION_POST_NORM,
            .count = 3,
            .matrix =
                {
                    [ATTENTION_QKV] = MATRIX("qkv", QKV_WEIGHT, V_WEIGHT, X_NORM, false),
                    [ATTENTION_O] = MATRIX("o", O_WEIGHT, O_WEIGHT, X_OTHER, true, ROLE_O_BIAS),
                    [ATTENTION_GATE] = MATRIX("gate", ATTENTION_GATE, ATTENTION_GATE, X_OTHER,
                                              false, .only = FEATURE_BIT(FEATURE_GATE)),
                },
        },
    [BLOCK_GLU] =
        {
            .norm = ROLE_FFN_NORM,
            .norm_after = ROLE_FFN_POST_NORM,
            .count = 2,
            .matrix =
                {
                    [GLU_GATE_UP] =
                        MATRIX("gate_up", GATE_UP_WEIGHT, UP_WEIGHT, X_NORM, false, ROLE_GATE_BIAS),
                    [GLU_DOWN] = MATRIX("down", DOWN_WEIGHT, DOWN_WEIGHT, X_ACTIVATION, true,
                                        ROLE_DOWN_BIAS),
                },
        },
    /* gate_up has the gates of all experts, then their ups; down has their outputs one below the other. Kernels of
     * experts multiply T alone. */
    [BLOCK_EXPERTS] =
        {
            .norm = ROLE_EXPERTS_NORM,
            .norm_after = ROLE_EXPERTS_POST_NORM,
            .count = 6,
            .matrix =
                {
                    [EXPERTS_ROUTER] = MATRIX("router", ROUTER_WEIGHT, ROUTER_WEIGHT, X_OTHER,
                                              false, .small = true),
                    [EXPERTS_GATE_UP] =
                        MATRIX("experts_gate_up", EXPERT_GATE_WEIGHT, EXPERT_UP_WEIGHT, X_OTHER,
                               false, .small = true, .of_experts = true),
                    [EXPERTS_DOWN] =
                        MATRIX("experts_down", EXPERT_DOWN_WEIGHT, EXPERT_DOWN_WEIGHT, X_OTHER,
                               true, .small = true, .of_experts = true),
                    [EXPERTS_SHARED_GATE_UP] =
                        MATRIX("shared_gate_up", SHARED_GATE_WEIGHT, SHARED_UP_WEIGHT, X_OTHER,
                               false, .only = FEATURE_BIT(FEATURE_SHARED_EXPERT)),
                    [EXPERTS_SHARED_DOWN] =
                        MATRIX("shared_down", SHARED_DOWN_WEIGHT, SHARED_DOWN_WEIGHT, X_OTHER,
                               true),
                    [EXPERTS_SHARED_SWITCH] =
                        MATRIX("shared_gate", SHARED_SWITCH, SHARED_SWITCH, X_OTHER,
                               false, .small = true, .only = FEATURE_BIT(FEATURE_SHARED_GATE)),
                },
        },
    [BLOCK_CONV] =
        {
            .norm = ROLE_CONV_NORM,
            .norm_after = ROLE_CONV_POST_NORM,
            .count = 2,
            .matrix =
                {
                    [CONV_IN] = MATRIX("conv_in", CONV_IN_WEIGHT, CONV_IN_WEIGHT, X_NORM, false),
                    [CONV_OUT] =
                        MATRIX("conv_out", CONV_OUT_WEIGHT, CONV_OUT_WEIGHT, X_OTHER, true),
                },
        },
    /* The steps b and a decide on decays over whole documents. They read the normed rows as T, and so does the other
     * matrix. */
    [BLOCK_DELTA] =
        {
            .norm = ROLE_DELTA_NORM,
            .norm_after = ROLE_DELTA_POST_NORM,
            .count = 3,
            .matrix =
                {
                    [DELTA_IN] =
                        MATRIX("delta_in", DELTA_QKV_WEIGHT, DELTA_Z_WEIGHT, X_OTHER, false),
                    [DELTA_STEPS] = MATRIX("delta_steps", DELTA_B_WEIGHT, DELTA_A_WEIGHT, X_OTHER,
                                           false, .small = true),
                    [DELTA_OUT] =
                        MATRIX("delta_out", DELTA_OUT_WEIGHT, DELTA_OUT_WEIGHT, X_OTHER, true),
                },
        },
};

int block_matrix_count(const struct block *b)
{
    const struct block_matrices *all = &block_matrices[b->kind];
    int count = 0;
    while (count < all->count && (all->matrix[count].only & ~b->features) == 0)
        count++;
    return count;
}

/* A gate reads the normed rows, too, as T. Biases of an MLP are gradients' sums over rows of T. */
enum x_writer block_matrix_x(const struct block *b, int which)
{
    const enum x_writer x = block_matrices[b->kind].matrix[which].x;
    const bool normed = block_has(b, FEATURE_NORM_BEFORE) && !block_has(b, FEATURE_GATE);
    if ((x == X_NORM && !normed) || (x == X_ACTIVATION && block_has(b, FEATURE_MLP_BIAS)))
        return X_OTHER;
    return x;
}

int block_matrix_of(enum tensor_role role, enum block_kind *kind)
{
    for (int k = 0; k < BLOCK_KINDS; k++)
        for (int i = 0; i < block_matrices[k].count; i++) {
            const struct block_matrix *m = &block_matrices[k].matrix[i];
            if (role >= m->first && role <= m->last) {
                *kind = (enum block_kind)k;
                return i;
            }
        }
    return -1;
}
