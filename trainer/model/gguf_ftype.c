/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_ftype.c: the types of tensors by llama.cpp's rule.
 */
#include "model/gguf_ftype.h"

#include "formats/tensors.h"
#include "model/gguf_names.h"

#include <string.h>

const struct gguf_ftype *gguf_ftype_find(const char *name)
{
    for (int i = 0; i < GGUF_FTYPES; i++)
        if (strcmp(gguf_ftypes[i].name, name) == 0)
            return &gguf_ftypes[i];
    return NULL;
}

static bool whole_blocks(enum nj_tensor_type type, const struct tensor_spec *spec)
{
    return spec->shape[1] % tensor_type_block(type) == 0;
}

/* Return whether a layer is one of the first and last eighth, or every third between. */
static bool layer_matters(int layer, int layers)
{
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

/* Return whether llama.cpp takes the model for one of 70B, whose few value heads cost little in more bits. It knows
 * such models of two architectures. */
static bool is_70b(const struct model_config *c)
{
    const struct gguf_arch *arch = gguf_arch(c->model_type);
    const struct block *b = arch_attention(&c->arch, c->layers);
    if (!arch || c->layers != 80)
        return false;
    return strcmp(arch->name, "qwen2") == 0 ||
           (strcmp(arch->name, "llama") == 0 && b->heads != b->kv_heads);
}

static enum nj_tensor_type wanted(const struct gguf_ftype *m, const struct model_config *c,
                                  const struct tensor_spec *spec)
{
    const bool head = spec->role == ROLE_HEAD || (spec->role == ROLE_EMBED && c->tied);
    const bool value = spec->role == ROLE_V_WEIGHT || spec->role == ROLE_QKV_WEIGHT;
    const bool down = spec->role == ROLE_DOWN_WEIGHT || spec->role == ROLE_EXPERT_DOWN_WEIGHT;
    if (head)
        return m->type == NJ_TYPE_Q8_0 || !whole_blocks(m->type, spec) ? NJ_TYPE_Q8_0
                                                                       : NJ_TYPE_Q6_K;
    if (m->more_bits && (value || down) && layer_matters(spec->layer, c->layers))
        return NJ_TYPE_Q6_K;
    return value && m->type == NJ_TYPE_Q4_K && is_70b(c) ? NJ_TYPE_Q5_K : m->type;
}

enum nj_tensor_type gguf_ftype_type(const struct gguf_ftype *m, const struct model_config *c,
                                    const struct tensor_spec *spec)
{
    static const enum nj_tensor_type smaller[NJ_TYPES] = {[NJ_TYPE_Q4_K] = NJ_TYPE_Q5_0,
                                                          [NJ_TYPE_Q5_K] = NJ_TYPE_Q5_1,
                                                          [NJ_TYPE_Q6_K] = NJ_TYPE_Q8_0};
    const bool steps = spec->role == ROLE_DELTA_B_WEIGHT || spec->role == ROLE_DELTA_A_WEIGHT;
    const bool taps = spec->role == ROLE_DELTA_TAPS || spec->role == ROLE_CONV_TAPS;
    const bool routes = spec->role == ROLE_ROUTER_WEIGHT || spec->role == ROLE_SHARED_SWITCH;
    if (spec->rank != 2 || routes || steps || taps)
        return NJ_TYPE_F32;
    if (tensor_type_block(m->type) == 1)
        return m->type;
    enum nj_tensor_type type = wanted(m, c, spec);
    if (!whole_blocks(type, spec))
        type = smaller[type];
    /* NJ_TYPE_F32 is 0, which stands for no smaller type */
    return type != NJ_TYPE_F32 && whole_blocks(type, spec) ? type : NJ_TYPE_F16;
}
