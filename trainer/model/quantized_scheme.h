/* SPDX-License-Identifier: Apache-2.0
 *
 * quantized_scheme.h: how the weights of a Hugging Face folder are quantised, by `quantization_config` of its
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
    int64_t rows, columns; /* so many share a scale; 0: all of them, or as the scales' shape says */
    bool ordered;   /* weights were quantised in another order of columns, which each has to tell */
    bool has_zeros; /* each has zero points */
    int zero_more;  /* what is added to the stored number that stands for 0 */
};

/* path: of the config.json; value: its quantization_config. What nojit does not read is refused by name. */
int quantised_scheme(const char *path, const json_t *value, struct quantised_scheme *out);

#endif
