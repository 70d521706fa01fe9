/* SPDX-License-Identifier: Apache-2.0
 *
 * block_matrix.h: the matrices that a block of each kind multiplies with, and the norms before and after the block.
 */
#ifndef NOJIT_TRAINER_BLOCK_MATRIX_H
#define NOJIT_TRAINER_BLOCK_MATRIX_H

#include "model/tensor_names.h"

/* The kernel that writes x of a product y = x W^T. Norms and activations can write it as E4M3, others write T. */
enum x_writer { X_OTHER, X_NORM, X_ACTIVATION };

struct block_matrix {
    const char *name;             /* its name in lines and receipts: "gate_up" */
    enum tensor_role first, last; /* tensors that it consists of, one below the other */
    enum x_writer x;              /* writer of its x; an activation reads y of the matrix before */
    bool output;                  /* whether its y is the output of the block */
    enum tensor_role bias;        /* bias of its y; ROLE_EMBED: none, or kernels of heads add it */
    bool small;                   /* its products are always in T */
    bool of_experts;              /* it consists of a matrix of each expert */
    /* bit of the feature without which a block lacks this matrix and those behind it; 0: none */
    unsigned only;
};

enum { BLOCK_MATRICES_MOST = 6 };
struct block_matrices {
    enum tensor_role norm;       /* gain of the norm before the block, whose rows it multiplies */
    enum tensor_role norm_after; /* gain of the norm of its output */
    int count;
    struct block_matrix matrix[BLOCK_MATRICES_MOST];
};

/* Numbers of the matrices in a block of each kind. */
enum { ATTENTION_QKV, ATTENTION_O, ATTENTION_GATE };
enum { GLU_GATE_UP, GLU_DOWN };
enum {
    EXPERTS_ROUTER,
    EXPERTS_GATE_UP,
    EXPERTS_DOWN,
    EXPERTS_SHARED_GATE_UP,
    EXPERTS_SHARED_DOWN,
    EXPERTS_SHARED_SWITCH
};
enum { CONV_IN, CONV_OUT };
enum { DELTA_IN, DELTA_STEPS, DELTA_OUT };
extern const struct block_matrices block_matrices[BLOCK_KINDS];

/* Return the number of matrices of a block: the first ones of its kind. */
int block_matrix_count(const struct block *b);
/* Return the kernel that writes x of a matrix of a block. */
enum x_writer block_matrix_x(const struct block *b, int which);
/* Return the number of the matrix that a tensor of this role is a part of, in a block of *kind; -1: it is part of
 * none. */
int block_matrix_of(enum tensor_role role, enum block_kind *kind);

#endif
