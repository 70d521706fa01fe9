/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_ftype.h: the types of the tensors of a GGUF file, as llama.cpp's quantizer chooses them: in Q4_K_M, for example,
 * most matrices are Q4_K, and some that matter more are Q6_K.
 */
#ifndef NOJIT_TRAINER_MIXTURE_H
#define NOJIT_TRAINER_MIXTURE_H

#include "base/tensor_type.h"
#include "model/tensor_names.h"

#include <stdbool.h>

static const struct gguf_ftype {
    const char *name;
    int file_type;            /* value of general.file_type */
    enum nj_tensor_type type; /* type of most matrices */
    bool more_bits;           /* whether the value and down projections of some layers are Q6_K */
} gguf_ftypes[] = {
    {"f32", 0, NJ_TYPE_F32, false},     {"f16", 1, NJ_TYPE_F16, false},
    {"bf16", 32, NJ_TYPE_BF16, false},  {"q8_0", 7, NJ_TYPE_Q8_0, false},
    {"q6_k", 18, NJ_TYPE_Q6_K, false},  {"q5_k_m", 17, NJ_TYPE_Q5_K, true},
    {"q4_k_m", 15, NJ_TYPE_Q4_K, true},
};
enum { GGUF_FTYPES = sizeof gguf_ftypes / sizeof *gguf_ftypes };

/* Return the file type of that name; NULL: there is none. */
const struct gguf_ftype *gguf_ftype_find(const char *name);
/* Return the type that quantize_rows() gives to one of the model's tensor_specs(). Norms and biases are F32; a matrix
 * whose columns are not whole blocks gets a type of smaller blocks, or F16 if there is none. */
enum nj_tensor_type gguf_ftype_type(const struct gguf_ftype *m, const struct model_config *c,
                                    const struct tensor_spec *spec);

#endif
