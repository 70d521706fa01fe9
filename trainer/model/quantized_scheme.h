/* SPDX-License-Identifier: Apache-2.0
 *
 * quantized_scheme.h: how the weights of a Hugging Face folder are quantized, by `quantization_config` of its
 * config.json.
 */
#ifndef NOJIT_TRAINER_QUANTIZED_SCHEME_H
#define NOJIT_TRAINER_QUANTIZED_SCHEME_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum quantized_format {
    QUANTIZED_NF4,
    QUANTIZED_GPTQ,
    QUANTIZED_AWQ,
    QUANTIZED_PACKED,
    QUANTIZED_FP8,
    QUANTIZED_MXFP4 /* experts alone; folder_experts.h reads them */
};

struct quantized_scheme {
    enum quantized_format format;
    /* rows and columns that share a scale; 0: all of them, or as the scales' shape says */
    int64_t rows, columns;
    /* whether weights were quantized in another order of columns, which each matrix has to give */
    bool ordered;
    bool has_zeros; /* whether each matrix has zero points */
    int zero_more;  /* number that is added to the stored zero point */
};

/* Read the scheme. path: path of the config.json; value: its quantization_config. A scheme that nojit does not read is
 * refused by name. */
int quantized_scheme(const char *path, const json_t *value, struct quantized_scheme *out);

#endif
