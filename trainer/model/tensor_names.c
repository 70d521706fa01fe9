/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_names.c: the list of tensors of a model, from a table of roles.
 */
#include "model/tensor_names.h"

#include "formats/tensors.h"
#include "io/error.h"

#include <stdio.h>
#include <stdlib.h>

/* A dimension is a product of sizes of the model; the table names which. */
enum dim { DIM_ONE, DIM_VOCAB, DIM_HIDDEN, DIM_INTERMEDIATE, DIM_Q, DIM_KV, DIM_HEAD };
enum presence { ALWAYS, WITH_BIAS, WITH_QK_NORM, UNTIED };

static const struct role_row {
    const char *name; /* after "model.layers.N." for tensors of a layer */
    int in_layer;
    int rank;
    enum dim rows, columns;
    enum presence presence;
} roles[ROLE_COUNT] = {
    [ROLE_EMBED] = {"model.embed_tokens.weight", 0, 2, DIM_VOCAB, DIM_HIDDEN, ALWAYS},
    [ROLE_INPUT_NORM] = {"input_layernorm.weight", 1, 1, DIM_HIDDEN, DIM_ONE, ALWAYS},
    [ROLE_Q_WEIGHT] = {"self_attn.q_proj.weight", 1, 2, DIM_Q, DIM_HIDDEN, ALWAYS},
    [ROLE_K_WEIGHT] = {"self_attn.k_proj.weight", 1, 2, DIM_KV, DIM_HIDDEN, ALWAYS},
    [ROLE_V_WEIGHT] = {"self_attn.v_proj.weight", 1, 2, DIM_KV, DIM_HIDDEN, ALWAYS},
    [ROLE_Q_BIAS] = {"self_attn.q_proj.bias", 1, 1, DIM_Q, DIM_ONE, WITH_BIAS},
    [ROLE_K_BIAS] = {"self_attn.k_proj.bias", 1, 1, DIM_KV, DIM_ONE, WITH_BIAS},
    [ROLE_V_BIAS] = {"self_attn.v_proj.bias", 1, 1, DIM_KV, DIM_ONE, WITH_BIAS},
    [ROLE_Q_NORM] = {"self_attn.q_norm.weight", 1, 1, DIM_HEAD, DIM_ONE, WITH_QK_NORM},
    [ROLE_K_NORM] = {"self_attn.k_norm.weight", 1, 1, DIM_HEAD, DIM_ONE, WITH_QK_NORM},
    [ROLE_O_WEIGHT] = {"self_attn.o_proj.weight", 1, 2, DIM_HIDDEN, DIM_Q, ALWAYS},
    [ROLE_POST_NORM] = {"post_attention_layernorm.weight", 1, 1, DIM_HIDDEN, DIM_ONE, ALWAYS},
    [ROLE_GATE_WEIGHT] = {"mlp.gate_proj.weight", 1, 2, DIM_INTERMEDIATE, DIM_HIDDEN, ALWAYS},
    [ROLE_UP_WEIGHT] = {"mlp.up_proj.weight", 1, 2, DIM_INTERMEDIATE, DIM_HIDDEN, ALWAYS},
    [ROLE_DOWN_WEIGHT] = {"mlp.down_proj.weight", 1, 2, DIM_HIDDEN, DIM_INTERMEDIATE, ALWAYS},
    [ROLE_FINAL_NORM] = {"model.norm.weight", 0, 1, DIM_HIDDEN, DIM_ONE, ALWAYS},
    [ROLE_HEAD] = {"lm_head.weight", 0, 2, DIM_VOCAB, DIM_HIDDEN, UNTIED},
};

/* The matrices of all layers, embedding and head; norms and biases are a part of what is left to 2^60. So
 * neither the elements of a model nor their bytes wrap in 64 bits, and place_rank() need not look. */
_Static_assert((int64_t)CONFIG_LAYERS_MOST *CONFIG_SIZE_MOST *(
                   3LL * CONFIG_SIZE_MOST + 4LL * CONFIG_HEADS_MOST * CONFIG_HEAD_DIM_MOST) +
                       2LL * CONFIG_SIZE_MOST * CONFIG_SIZE_MOST <
                   (int64_t)1 << 60,
               "a model has fewer than 2^60 elements");

static int64_t dim_size(const struct model_config *c, enum dim d)
{
    const int64_t size[] = {
        [DIM_ONE] = 1,
        [DIM_VOCAB] = c->vocab_size,
        [DIM_HIDDEN] = c->hidden_size,
        [DIM_INTERMEDIATE] = c->intermediate_size,
        [DIM_Q] = (int64_t)c->heads * c->head_dim,
        [DIM_KV] = (int64_t)c->kv_heads * c->head_dim,
        [DIM_HEAD] = c->head_dim,
    };
    return size[d];
}

static int is_present(const struct model_config *c, enum presence p)
{
    const int present[] = {
        [ALWAYS] = 1, [WITH_BIAS] = c->qkv_bias, [WITH_QK_NORM] = c->qk_norm, [UNTIED] = !c->tied};
    return present[p];
}

/* Appends the roles first..last that the model has. */
static struct tensor_spec *append(struct tensor_spec *to, const struct model_config *c, int first,
                                  int last, int layer)
{
    for (int r = first; r <= last; r++) {
        const struct role_row *row = &roles[r];
        if (!is_present(c, row->presence))
            continue;
        if (row->in_layer)
            snprintf(to->name, sizeof to->name, "model.layers.%d.%s", layer, row->name);
        else
            snprintf(to->name, sizeof to->name, "%s", row->name);
        to->rank = row->rank;
        to->shape[0] = dim_size(c, row->rows);
        to->shape[1] = dim_size(c, row->columns);
        to->role = (enum tensor_role)r;
        to->layer = layer;
        to++;
    }
    return to;
}

int tensor_specs(const struct model_config *c, struct tensor_spec **out, size_t *count)
{
    *out = NULL;
    *count = 0;
    size_t most = ((size_t)c->layers + 1) * ROLE_COUNT;
    struct tensor_spec *spec = calloc(most, sizeof *spec);
    if (!spec)
        return fail(NJ_E_NOMEM, "out of memory for the tensor list of %d layers", c->layers);

    struct tensor_spec *end = append(spec, c, ROLE_EMBED, ROLE_EMBED, -1);
    for (int layer = 0; layer < c->layers; layer++)
        end = append(end, c, ROLE_INPUT_NORM, ROLE_DOWN_WEIGHT, layer);
    end = append(end, c, ROLE_FINAL_NORM, ROLE_HEAD, -1);
    *out = spec;
    *count = (size_t)(end - spec);
    return NJ_OK;
}

int64_t tensor_elements(const struct tensor_spec *s)
{
    return s->shape[0] * s->shape[1];
}

static void shape_text(int rank, const int64_t *shape, char out[64])
{
    size_t used = (size_t)snprintf(out, 64, "[");
    for (int i = 0; i < rank && used < 64; i++)
        used +=
            (size_t)snprintf(out + used, 64 - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
    if (used < 64)
        snprintf(out + used, 64 - used, "]");
}

int weights_check(const char *dir, const struct tensor_spec *spec, const struct tensor *t)
{
    if (!t)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s is missing; the weights are not those of the model that the "
                    "configuration describes",
                    dir, spec->name);
    bool same = t->rank == spec->rank;
    for (int i = 0; same && i < spec->rank; i++)
        same = t->shape[i] == spec->shape[i];
    if (same)
        return 0;
    char found[64], wanted[64];
    shape_text(t->rank, t->shape, found);
    shape_text(spec->rank, spec->shape, wanted);
    return fail(
        NJ_E_FORMAT,
        "%s: tensor %s has shape %s, the configuration asks for %s; use weights and configuration "
        "of one model",
        dir, spec->name, found, wanted);
}
