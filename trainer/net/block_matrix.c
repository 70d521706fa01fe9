/* SPDX-License-Identifier: Apache-2.0
 *
 * block_matrix.c: see block_matrix.h.
 */
#include "net/block_matrix.h"

const struct block_matrices block_matrices[BLOCK_KINDS] = {
    [BLOCK_ATTENTION] =
        {
            .norm = ROLE_INPUT_NORM,
            .norm_after = ROLE_ATTENTION_POST_NORM,
            .count = 3,
            .last = FEATURE_BIT(FEATURE_GATE),
            .matrix = {[ATTENTION_QKV] = {"qkv", ROLE_QKV_WEIGHT, ROLE_V_WEIGHT, X_NORM},
                       [ATTENTION_O] = {"o", ROLE_O_WEIGHT, ROLE_O_WEIGHT, X_OTHER, true},
                       [ATTENTION_GATE] = {"gate", ROLE_ATTENTION_GATE, ROLE_ATTENTION_GATE,
                                           X_OTHER}},
        },
    [BLOCK_GLU] =
        {
            .norm = ROLE_FFN_NORM,
            .norm_after = ROLE_FFN_POST_NORM,
            .count = 2,
            .matrix = {[GLU_GATE_UP] = {"gate_up", ROLE_GATE_UP_WEIGHT, ROLE_UP_WEIGHT, X_NORM},
                       [GLU_DOWN] = {"down", ROLE_DOWN_WEIGHT, ROLE_DOWN_WEIGHT, X_ACTIVATION,
                                     true}},
        },
};

int block_matrix_count(const struct block *b)
{
    const struct block_matrices *all = &block_matrices[b->kind];
    return all->count - (all->last != 0 && (b->features & all->last) == 0);
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
