/* SPDX-License-Identifier: Apache-2.0
 *
 * quantized_layout.h: the parts that formats of quantised safetensors files keep a matrix in, and the blocks that are
 * made of them: its own numbers and scales, in the order of rows.
 */
#ifndef NOJIT_TRAINER_QUANTISED_LAYOUT_H
#define NOJIT_TRAINER_QUANTISED_LAYOUT_H

#include "formats/tensors.h"
#include "model/quantized_scheme.h"
#include "model/tensor_names.h"

struct quantised_matrix {
    const char *dir;
    const struct tensor_spec *spec;
    const struct quantised_scheme *scheme;
    const struct tensor *part[PACKED_PARTS]; /* NULL: not there */
};

struct quantised_layout {
    /* Behind the name of the module, in the order of struct packed. A matrix is quantised if the first is there and
     * of a type that weights do not have. */
    const char *part[PACKED_PARTS];
    /* Checks the parts against the matrix: p->block needs to check nothing. Sets the type of t and all of p that is
     * not taken from the parts as they are. */
    int (*open)(const struct quantised_matrix *m, struct packed *p, struct tensor *t);
};

const struct quantised_layout *quantised_layout(enum quantised_format format);

#endif
