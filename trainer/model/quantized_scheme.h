/* SPDX-License-Identifier: Apache-2.0
 *
 * quantized_scheme.h: how the weights of a Hugging Face folder are quantized, by `quantization_config` of its
 * config.json.
 */
#ifndef NOJIT_TRAINER_QUANTISED_SCHEME_H
#define NOJIT_TRAINER_QUANTISED_SCHEME_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum quantised_format {
    QUANTISED_NF4,
    QUANTISED_GPTQ,
    QUANTISED_AWQ,
    QUANTISED_PACKED,
    QUANTISED_F8
};

struct quantised_scheme {
    enum quantised_format format;
    /* rows and columns that share a scale; 0: all of them, or as the scales' shape says */
    int64_t rows, columns;
    /* whether weights were quantized in another order of columns, which each matrix has to give */
    bool ordered;
    bool has_zeros; /* whether each matrix has zero points */
    int zero_more;  /* number that is added to the stored zero point */
};

/* Read the scheme. path: path of the config.json; value: its quantization_config. A scheme that nojit does not read is
 * refused by name. */
int quantised_scheme(const char *path, const json_t *value, struct quantised_scheme *out);

#endif
