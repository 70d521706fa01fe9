/* SPDX-License-Identifier: Apache-2.0
 *
 * block_matrix.c: see block_matrix.h.
 */
#include "net/block_matrix.h"

const struct block_matrices block_matrices[BLOCK_KINDS] = {
    [BLOCK_ATTENTION] =
        {
            .norm = ROLE_INPUT_NORM,
            .count = 2,
            .matrix = {[ATTENTION_QKV] = {"qkv", ROLE_Q_WEIGHT, ROLE_V_WEIGHT, X_NORM},
                       [ATTENTION_O] = {"o", ROLE_O_WEIGHT, ROLE_O_WEIGHT, X_ATTENTION}},
        },
    [BLOCK_GLU] =
        {
            .norm = ROLE_FFN_NORM,
            .count = 2,
            .matrix = {[GLU_GATE_UP] = {"gate_up", ROLE_GATE_WEIGHT, ROLE_UP_WEIGHT, X_NORM},
                       [GLU_DOWN] = {"down", ROLE_DOWN_WEIGHT, ROLE_DOWN_WEIGHT, X_ACTIVATION}},
        },
};

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
