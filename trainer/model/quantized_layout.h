/* SPDX-License-Identifier: Apache-2.0
 *
 * quantized_layout.h: the parts in which formats of quantized safetensors files keep a matrix, and the blocks that are
 * made of them: the file's own numbers and scales, in the order of rows.
 */
#ifndef NOJIT_TRAINER_QUANTIZED_LAYOUT_H
#define NOJIT_TRAINER_QUANTIZED_LAYOUT_H

#include "formats/tensors.h"
#include "model/quantized_scheme.h"
#include "model/tensor_names.h"

struct quantized_matrix {
    const char *dir;
    const struct tensor_spec *spec;
    const struct quantized_scheme *scheme;
    const struct tensor *part[PACKED_PARTS]; /* parts of the matrix; NULL: absent */
};

struct quantized_layout {
    /* Names of the parts after the name of the module, in the order of struct packed. A matrix is quantized if the
     * first part is present and has a type that weights do not have. */
    const char *part[PACKED_PARTS];
    /* Check the parts against the matrix, so that p->block needs no checks. Set the type of t and all of p that is not
     * taken from the parts as they are. */
    int (*open)(const struct quantized_matrix *m, struct packed *p, struct tensor *t);
};

const struct quantized_layout *quantized_layout(enum quantized_format format);

#endif
