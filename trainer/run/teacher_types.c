/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher_types.c: see teacher_types.h.
 */
#include "run/teacher_types.h"

#include "base/try.h"
#include "io/error.h"
#include "model/gguf_ftype.h"
#include "model/model_open.h"
#include "weights/packed_experts.h"

#include <stdlib.h>

/* Values of --teacher-dtype that quantize, with the files whose types they are. */
static const struct {
    const char *name, *ftype;
} quantized[] = {
    [TEACHER_FP8] = {"fp8", NULL},       [TEACHER_Q8_0] = {"q8_0", "q8_0"},
    [TEACHER_Q6_K] = {"q6_k", "q6_k"},   [TEACHER_Q5_K] = {"q5_k", "q5_k_m"},
    [TEACHER_Q4_K] = {"q4_k", "q4_k_m"},
};

bool run_rounds_teacher(const struct run *r)
{
    return r->s->teacher_dtype >= TEACHER_FP8;
}

const char *run_teacher_dtype(const struct run *r, const char *plain)
{
    if (run_rounds_teacher(r))
        return quantized[r->s->teacher_dtype].name;
    return r->teacher_types ? r->teacher_types_text : plain;
}

/* Return the type of a tensor in a file; m NULL: where experts are MXFP4, and other weights not quantized. */
static enum nj_tensor_type type_in(const struct gguf_ftype *m, const struct model_config *c,
                                   const struct tensor_spec *spec)
{
    if (m)
        return gguf_ftype_type(m, c, spec);
    return spec->rank == 2 && tensor_is_of_expert(spec->role) ? NJ_TYPE_MXFP4 : NJ_TYPE_BF16;
}

static int types_in(const struct gguf_ftype *m, const struct model_config *c, unsigned char **out)
{
    struct tensor_spec *spec;
    size_t count;
    *out = NULL;
    int rc = tensor_specs(c, &spec, &count);
    if (rc != 0)
        return rc;
    *out = calloc(count, sizeof **out);
    if (!*out)
        rc = fail(NJ_E_NOMEM, "out of memory for the types of %zu tensors", count);
    for (size_t i = 0; i < count && rc == 0; i++)
        (*out)[i] = (unsigned char)type_in(m, c, &spec[i]);
    free(spec);
    return rc;
}

int teacher_types_as(const struct model_config *c, enum teacher_dtype as, unsigned char **out)
{
    return types_in(gguf_ftype_find(quantized[as].ftype), c, out);
}

int teacher_types_mxfp4(const struct model_config *c, unsigned char **out)
{
    return types_in(NULL, c, out);
}

/* Find the types of a file. A folder whose configuration declares them is read only if its files are there: a plan
 * needs none. */
static int types_of_file(struct run *r, const struct model_config *c)
{
    bool may;
    int rc = source_may_be_quantized(r->teacher, &may);
    if (rc != 0 || !may)
        return rc;
    TRY(source_types(r->teacher, c, &r->teacher_types));
    if (r->teacher_types && run_rounds_teacher(r))
        return fail(NJ_E_UNSUPPORTED,
                    "--teacher-dtype %s: the weights of %s are quantized already; leave "
                    "--teacher-dtype out",
                    quantized[r->s->teacher_dtype].name, r->teacher);
    return source_quantized(r->teacher, r->teacher_types_text, sizeof r->teacher_types_text);
}

int run_teacher_types(struct run *r)
{
    const enum teacher_dtype wanted = (enum teacher_dtype)r->s->teacher_dtype;
    struct model_config c;
    if (r->teacher[0] == '\0' || wanted == TEACHER_BF16)
        return 0;
    int rc = source_config(r->teacher, &c);
    if (rc == 0)
        rc = types_of_file(r, &c);
    if (rc == 0 && wanted > TEACHER_FP8)
        rc = teacher_types_as(&c, wanted, &r->teacher_types);
    r->options.teacher_types = r->teacher_types;
    return rc;
}

int run_student_types(struct run *r)
{
    r->options.steps = 0;
    if (r->options.lora.rank > 0)
        return 0;
    TRY(packed_experts(r->ctx, r->student, r->options.dtype, &r->student_types));
    r->options.student_types = r->student_types;
    return 0;
}
