/* SPDX-License-Identifier: Apache-2.0
 *
 * packed_experts.c: see packed_experts.h.
 */
#include "weights/packed_experts.h"

#include "base/try.h"
#include "formats/tensors.h"
#include "model/model_open.h"
#include "model/tensor_names.h"
#include "net/experts.h"

#include <stdlib.h>

/* Keep the types of quantized matrices of experts. Return whether there are some, and kernels for all of them. */
static bool keep_experts(const nj_context *ctx, const struct tensor_spec *spec, size_t count,
                         unsigned char *types)
{
    bool some = false, all = true;
    for (size_t i = 0; i < count; i++) {
        const enum nj_tensor_type type = (enum nj_tensor_type)types[i];
        if (spec[i].rank != 2 || !tensor_is_of_expert(spec[i].role) ||
            tensor_type_block(type) == 1) {
            types[i] = NJ_TYPE_F32;
            continue;
        }
        some = true;
        all = all && experts_read_blocks(ctx, type);
    }
    return some && all;
}

int packed_experts(const nj_context *ctx, const char *model, enum nj_dtype T, unsigned char **out)
{
    struct model_config c;
    struct tensor_spec *spec;
    size_t count;
    bool may;
    *out = NULL;
    TRY(source_config(model, &c));
    if (T != NJ_LP || !arch_first(&c.arch, c.layers, BLOCK_EXPERTS))
        return 0;
    TRY(source_may_be_quantized(model, &may));
    if (!may)
        return 0;
    TRY(source_types(model, &c, out));
    if (!*out)
        return 0;
    const int rc = tensor_specs(&c, &spec, &count);
    if (rc != 0 || !keep_experts(ctx, spec, count, *out)) {
        free(*out);
        *out = NULL;
    }
    if (rc == 0)
        free(spec);
    return rc;
}
