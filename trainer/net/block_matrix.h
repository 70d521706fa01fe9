/* SPDX-License-Identifier: Apache-2.0
 *
 * block_matrix.h: the matrices that a block of each kind multiplies with, and the norm before the block.
 */
#ifndef NOJIT_TRAINER_BLOCK_MATRIX_H
#define NOJIT_TRAINER_BLOCK_MATRIX_H

#include "model/tensor_names.h"

/* The kernel that writes x of a product y = x W^T. Norms and activations can write it as E4M3. */
enum x_writer { X_NORM, X_ACTIVATION, X_ATTENTION };

struct block_matrix {
    const char *name;             /* its name in lines and receipts: "gate_up" */
    enum tensor_role first, last; /* tensors that it consists of, one below the other */
    enum x_writer x;              /* writer of its x; an activation reads y of the matrix before */
};

enum { BLOCK_MATRICES_MOST = 2 };
struct block_matrices {
    enum tensor_role norm; /* gain of the norm, which the first matrix reads */
    int count;
    struct block_matrix matrix[BLOCK_MATRICES_MOST]; /* matrices in the order of use */
};

/* Numbers of the matrices in a block of each kind. */
enum { ATTENTION_QKV, ATTENTION_O };
enum { GLU_GATE_UP, GLU_DOWN };

extern const struct block_matrices block_matrices[BLOCK_KINDS];

/* Return the number of the matrix that a tensor of this role is a part of, in a block of *kind; -1: it is part of
 * none. */
int block_matrix_of(enum tensor_role role, enum block_kind *kind);

#endif
