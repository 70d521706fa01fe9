/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_names.c: the list of tensors of a model, from a table of roles.
 */
#include "model/tensor_names.h"

#include "base/families.h"
#include "formats/tensors.h"
#include "io/error.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Dimensions of tensors, each a product of sizes of the model. */
enum dim {
    DIM_ONE,
    DIM_VOCAB,
    DIM_HIDDEN,
    DIM_EXPERTS,
    DIM_FFN,
    DIM_SHARED,
    DIM_GATE_UP,
    DIM_HEADS,
    DIM_Q,
    DIM_KV,
    DIM_QKV,
    DIM_Q_NORM,
    DIM_K_NORM,
    DIM_CHANNELS,
    DIM_CONV_IN,
    DIM_TAPS,
    DIM_HEAD
};
/* The condition under which a tensor is present: a feature of its block, the lack of one, or one of these. */
enum presence { ALWAYS = -1, UNTIED = -2, QK_NORMED = -3, WITHOUT = 64 };

static const struct role_row {
    /* Part of the name after "model.layers.N." for tensors of a block; * stands for the number of an expert. */
    const char *name;
    int rank;
    enum dim rows, columns;
    int presence;
} roles[ROLE_COUNT] = {
    [ROLE_EMBED] = {"model.embed_tokens.weight", 2, DIM_VOCAB, DIM_HIDDEN, ALWAYS},
    [ROLE_INPUT_NORM] = {"input_layernorm.weight", 1, DIM_HIDDEN, DIM_ONE, FEATURE_NORM_BEFORE},
    [ROLE_QKV_WEIGHT] = {"self_attn.qkv_proj.weight", 2, DIM_QKV, DIM_HIDDEN, FEATURE_FUSED_QKV},
    [ROLE_Q_WEIGHT] = {"self_attn.q_proj.weight", 2, DIM_Q, DIM_HIDDEN,
                       WITHOUT + FEATURE_FUSED_QKV},
    [ROLE_K_WEIGHT] = {"self_attn.k_proj.weight", 2, DIM_KV, DIM_HIDDEN,
                       WITHOUT + FEATURE_FUSED_QKV},
    [ROLE_V_WEIGHT] = {"self_attn.v_proj.weight", 2, DIM_KV, DIM_HIDDEN,
                       WITHOUT + FEATURE_FUSED_QKV},
    [ROLE_Q_BIAS] = {"self_attn.q_proj.bias", 1, DIM_Q, DIM_ONE, FEATURE_QKV_BIAS},
    [ROLE_K_BIAS] = {"self_attn.k_proj.bias", 1, DIM_KV, DIM_ONE, FEATURE_QKV_BIAS},
    [ROLE_V_BIAS] = {"self_attn.v_proj.bias", 1, DIM_KV, DIM_ONE, FEATURE_QKV_BIAS},
    [ROLE_Q_NORM] = {"self_attn.q_norm.weight", 1, DIM_Q_NORM, DIM_ONE, QK_NORMED},
    [ROLE_K_NORM] = {"self_attn.k_norm.weight", 1, DIM_K_NORM, DIM_ONE, QK_NORMED},
    [ROLE_ATTENTION_GATE] = {"self_attn.gate_proj.weight", 2, DIM_Q, DIM_HIDDEN, FEATURE_GATE},
    [ROLE_SINKS] = {"self_attn.sinks", 1, DIM_HEADS, DIM_ONE, FEATURE_SINKS},
    [ROLE_O_WEIGHT] = {"self_attn.o_proj.weight", 2, DIM_HIDDEN, DIM_Q, ALWAYS},
    [ROLE_O_BIAS] = {"self_attn.o_proj.bias", 1, DIM_HIDDEN, DIM_ONE, FEATURE_O_BIAS},
    [ROLE_ATTENTION_POST_NORM] = {"post_self_attn_layernorm.weight", 1, DIM_HIDDEN, DIM_ONE,
                                  FEATURE_NORM_AFTER},
    [ROLE_FFN_NORM] = {"post_attention_layernorm.weight", 1, DIM_HIDDEN, DIM_ONE,
                       FEATURE_NORM_BEFORE},
    [ROLE_GATE_UP_WEIGHT] = {"mlp.gate_up_proj.weight", 2, DIM_GATE_UP, DIM_HIDDEN,
                             FEATURE_FUSED_GATE_UP},
    [ROLE_GATE_WEIGHT] = {"mlp.gate_proj.weight", 2, DIM_FFN, DIM_HIDDEN,
                          WITHOUT + FEATURE_FUSED_GATE_UP},
    [ROLE_UP_WEIGHT] = {"mlp.up_proj.weight", 2, DIM_FFN, DIM_HIDDEN,
                        WITHOUT + FEATURE_FUSED_GATE_UP},
    [ROLE_GATE_BIAS] = {"mlp.gate_proj.bias", 1, DIM_FFN, DIM_ONE, FEATURE_MLP_BIAS},
    [ROLE_UP_BIAS] = {"mlp.up_proj.bias", 1, DIM_FFN, DIM_ONE, FEATURE_MLP_BIAS},
    [ROLE_DOWN_WEIGHT] = {"mlp.down_proj.weight", 2, DIM_HIDDEN, DIM_FFN, ALWAYS},
    [ROLE_DOWN_BIAS] = {"mlp.down_proj.bias", 1, DIM_HIDDEN, DIM_ONE, FEATURE_MLP_BIAS},
    [ROLE_FFN_POST_NORM] = {"post_mlp_layernorm.weight", 1, DIM_HIDDEN, DIM_ONE,
                            FEATURE_NORM_AFTER},
    [ROLE_EXPERTS_NORM] = {"post_attention_layernorm.weight", 1, DIM_HIDDEN, DIM_ONE,
                           FEATURE_NORM_BEFORE},
    [ROLE_ROUTER_WEIGHT] = {"mlp.gate.weight", 2, DIM_EXPERTS, DIM_HIDDEN, ALWAYS},
    [ROLE_ROUTER_BIAS] = {"mlp.gate.bias", 1, DIM_EXPERTS, DIM_ONE, FEATURE_MLP_BIAS},
    [ROLE_CORRECTION] = {"mlp.gate.e_score_correction_bias", 1, DIM_EXPERTS, DIM_ONE,
                         FEATURE_CORRECTION},
    [ROLE_EXPERT_GATE_BIAS] = {"mlp.experts.*.gate_proj.bias", 1, DIM_FFN, DIM_ONE,
                               FEATURE_MLP_BIAS},
    [ROLE_EXPERT_UP_BIAS] = {"mlp.experts.*.up_proj.bias", 1, DIM_FFN, DIM_ONE, FEATURE_MLP_BIAS},
    [ROLE_EXPERT_DOWN_BIAS] = {"mlp.experts.*.down_proj.bias", 1, DIM_HIDDEN, DIM_ONE,
                               FEATURE_MLP_BIAS},
    [ROLE_EXPERT_GATE_WEIGHT] = {"mlp.experts.*.gate_proj.weight", 2, DIM_FFN, DIM_HIDDEN, ALWAYS},
    [ROLE_EXPERT_UP_WEIGHT] = {"mlp.experts.*.up_proj.weight", 2, DIM_FFN, DIM_HIDDEN, ALWAYS},
    [ROLE_EXPERT_DOWN_WEIGHT] = {"mlp.experts.*.down_proj.weight", 2, DIM_HIDDEN, DIM_FFN, ALWAYS},
    [ROLE_SHARED_GATE_WEIGHT] = {"mlp.shared_expert.gate_proj.weight", 2, DIM_SHARED, DIM_HIDDEN,
                                 FEATURE_SHARED_EXPERT},
    [ROLE_SHARED_UP_WEIGHT] = {"mlp.shared_expert.up_proj.weight", 2, DIM_SHARED, DIM_HIDDEN,
                               FEATURE_SHARED_EXPERT},
    [ROLE_SHARED_DOWN_WEIGHT] = {"mlp.shared_expert.down_proj.weight", 2, DIM_HIDDEN, DIM_SHARED,
                                 FEATURE_SHARED_EXPERT},
    [ROLE_SHARED_SWITCH] = {"mlp.shared_expert_gate.weight", 2, DIM_ONE, DIM_HIDDEN,
                            FEATURE_SHARED_GATE},
    [ROLE_EXPERTS_POST_NORM] = {"post_mlp_layernorm.weight", 1, DIM_HIDDEN, DIM_ONE,
                                FEATURE_NORM_AFTER},
    [ROLE_CONV_NORM] = {"input_layernorm.weight", 1, DIM_HIDDEN, DIM_ONE, FEATURE_NORM_BEFORE},
    [ROLE_CONV_IN_WEIGHT] = {"conv.in_proj.weight", 2, DIM_CONV_IN, DIM_HIDDEN, ALWAYS},
    [ROLE_CONV_TAPS] = {"conv.conv.weight", 3, DIM_CHANNELS, DIM_TAPS, ALWAYS},
    [ROLE_CONV_OUT_WEIGHT] = {"conv.out_proj.weight", 2, DIM_HIDDEN, DIM_CHANNELS, ALWAYS},
    [ROLE_CONV_POST_NORM] = {"post_self_attn_layernorm.weight", 1, DIM_HIDDEN, DIM_ONE,
                             FEATURE_NORM_AFTER},
    [ROLE_DELTA_NORM] = {"input_layernorm.weight", 1, DIM_HIDDEN, DIM_ONE, FEATURE_NORM_BEFORE},
    [ROLE_DELTA_QKV_WEIGHT] = {"linear_attn.in_proj_qkv.weight", 2, DIM_QKV, DIM_HIDDEN,
                               WITHOUT + FEATURE_GROUPED_DELTA},
    [ROLE_DELTA_Q_WEIGHT] = {"linear_attn.in_proj_q.weight", 2, DIM_KV, DIM_HIDDEN,
                             FEATURE_GROUPED_DELTA},
    [ROLE_DELTA_K_WEIGHT] = {"linear_attn.in_proj_k.weight", 2, DIM_KV, DIM_HIDDEN,
                             FEATURE_GROUPED_DELTA},
    [ROLE_DELTA_V_WEIGHT] = {"linear_attn.in_proj_v.weight", 2, DIM_Q, DIM_HIDDEN,
                             FEATURE_GROUPED_DELTA},
    [ROLE_DELTA_Z_WEIGHT] = {"linear_attn.in_proj_z.weight", 2, DIM_Q, DIM_HIDDEN, ALWAYS},
    [ROLE_DELTA_B_WEIGHT] = {"linear_attn.in_proj_b.weight", 2, DIM_HEADS, DIM_HIDDEN, ALWAYS},
    [ROLE_DELTA_A_WEIGHT] = {"linear_attn.in_proj_a.weight", 2, DIM_HEADS, DIM_HIDDEN, ALWAYS},
    [ROLE_DELTA_TAPS] = {"linear_attn.conv1d.weight", 3, DIM_QKV, DIM_TAPS, ALWAYS},
    [ROLE_DELTA_LOG] = {"linear_attn.A_log", 1, DIM_HEADS, DIM_ONE, ALWAYS},
    [ROLE_DELTA_STEP] = {"linear_attn.dt_bias", 1, DIM_HEADS, DIM_ONE, ALWAYS},
    [ROLE_DELTA_GAIN] = {"linear_attn.norm.weight", 1, DIM_HEAD, DIM_ONE, ALWAYS},
    [ROLE_DELTA_OUT_WEIGHT] = {"linear_attn.out_proj.weight", 2, DIM_HIDDEN, DIM_Q, ALWAYS},
    [ROLE_DELTA_POST_NORM] = {"post_self_attn_layernorm.weight", 1, DIM_HIDDEN, DIM_ONE,
                              FEATURE_NORM_AFTER},
    [ROLE_FINAL_NORM] = {"model.norm.weight", 1, DIM_HIDDEN, DIM_ONE, ALWAYS},
    [ROLE_HEAD] = {"lm_head.weight", 2, DIM_VOCAB, DIM_HIDDEN, UNTIED},
};

/* The run of roles that belong to a block of each kind. */
static const struct role_run {
    enum tensor_role first, last;
} before_layers = {ROLE_EMBED, ROLE_EMBED}, after_layers = {ROLE_FINAL_NORM, ROLE_HEAD},
  in_block[BLOCK_KINDS] = {
      [BLOCK_ATTENTION] = {ROLE_INPUT_NORM, ROLE_ATTENTION_POST_NORM},
      [BLOCK_GLU] = {ROLE_FFN_NORM, ROLE_FFN_POST_NORM},
      [BLOCK_EXPERTS] = {ROLE_EXPERTS_NORM, ROLE_EXPERTS_POST_NORM},
      [BLOCK_CONV] = {ROLE_CONV_NORM, ROLE_CONV_POST_NORM},
      [BLOCK_DELTA] = {ROLE_DELTA_NORM, ROLE_DELTA_POST_NORM},
};

/* The matrices of all layers, the embedding and the LM head; all experts of a layer, the shared one among them, have at
 * most as many rows as one MLP may have (config_check()), and a router and a gate no more than NJ_EXPERTS_MAX + 1; a
 * convolution has as many channels as all heads have elements, at most, and the delta rule no more rows than attention;
 * norms, biases and taps fit in the rest up to 2^60. So neither the number of elements of a model nor of their bytes
 * overflows 64 bits, and place() need not check. */
_Static_assert((int)CONFIG_CHANNELS_MOST <= CONFIG_HEADS_MOST * CONFIG_HEAD_DIM_MOST,
               "a convolution is no larger than attention");
_Static_assert((int64_t)CONFIG_LAYERS_MOST *CONFIG_SIZE_MOST *(3LL * CONFIG_SIZE_MOST +
                                                               NJ_EXPERTS_MAX + 1 +
                                                               4LL * CONFIG_HEADS_MOST *
                                                                   CONFIG_HEAD_DIM_MOST) +
                       2LL * CONFIG_SIZE_MOST * CONFIG_SIZE_MOST <
                   (int64_t)1 << 60,
               "a model has fewer than 2^60 elements");

static int64_t dim_size(const struct model_config *c, const struct block *b, enum dim d)
{
    const bool row = block_has(b, FEATURE_QK_NORM_ROW);
    const int64_t q = (int64_t)b->heads * b->head_dim, kv = (int64_t)b->kv_heads * b->head_dim;
    const int64_t size[] = {
        [DIM_ONE] = 1,
        [DIM_VOCAB] = c->vocab_size,
        [DIM_HIDDEN] = c->hidden_size,
        [DIM_EXPERTS] = b->experts,
        [DIM_FFN] = b->ffn_size,
        [DIM_SHARED] = b->shared_size,
        [DIM_GATE_UP] = 2 * (int64_t)b->ffn_size,
        [DIM_HEADS] = b->heads,
        [DIM_Q] = q,
        [DIM_KV] = kv,
        [DIM_QKV] = q + 2 * kv,
        [DIM_Q_NORM] = row ? q : b->head_dim,
        [DIM_K_NORM] = row ? kv : b->head_dim,
        [DIM_CHANNELS] = b->channels,
        [DIM_CONV_IN] = 3 * (int64_t)b->channels,
        [DIM_TAPS] = b->taps,
        [DIM_HEAD] = b->head_dim,
    };
    return size[d];
}

static bool is_present(const struct model_config *c, const struct block *b, int presence)
{
    if (presence == QK_NORMED)
        return (block_has(b, FEATURE_QK_NORM) || block_has(b, FEATURE_QK_NORM_ROW)) &&
               !block_has(b, FEATURE_QK_NO_GAIN);
    if (presence < 0)
        return presence == ALWAYS || !c->tied;
    if (presence >= WITHOUT)
        return !block_has(b, (enum feature)(presence - WITHOUT));
    return block_has(b, (enum feature)presence);
}

static const struct block outside; /* block of tensors outside the layers */

/* The state of listing or counting the tensors of a model. */
struct listing {
    const struct model_config *c;
    const struct family *family; /* NULL: names are Llama's */
    struct tensor_spec *to;      /* output; NULL: they are only counted */
    size_t count;
    int64_t elements;
};

/* Write the family's name of a tensor, after a prefix. */
static void name_in_family(const struct family *family, const char *prefix, const char *name,
                           char out[TENSOR_NAME_BYTES])
{
    for (int i = 0; family && i < RENAMES_MOST && family->rename[i].from; i++) {
        const struct tensor_rename *r = &family->rename[i];
        const size_t bytes = strlen(r->from);
        if (strncmp(name, r->from, bytes) == 0 && (name[bytes] == '.' || name[bytes] == '\0')) {
            snprintf(out, TENSOR_NAME_BYTES, "%s%s%s", prefix, r->to, name + bytes);
            return;
        }
    }
    snprintf(out, TENSOR_NAME_BYTES, "%s%s", prefix, name);
}

/* Write a role's name with the number of an expert in it. */
static void name_of_expert(const char *name, int expert, char out[TENSOR_NAME_BYTES])
{
    const int before = (int)strcspn(name, "*");
    if (name[before] == '\0')
        snprintf(out, TENSOR_NAME_BYTES, "%s", name);
    else
        snprintf(out, TENSOR_NAME_BYTES, "%.*s%d%s", before, name, expert, name + before + 1);
}

static void name_in_layer(const struct family *family, int layer, int expert, const char *name,
                          char out[TENSOR_NAME_BYTES])
{
    char prefix[32], own[TENSOR_NAME_BYTES];
    snprintf(prefix, sizeof prefix, "model.layers.%d.", layer);
    name_in_family(family, prefix, name, own);
    name_of_expert(own, expert, out);
}

static void list_tensor(struct listing *l, const struct block *b, int role, int layer, int expert)
{
    const struct role_row *row = &roles[role];
    struct tensor_spec spec = {
        .rank = row->rank,
        .shape = {dim_size(l->c, b, row->rows), dim_size(l->c, b, row->columns)},
        .role = (enum tensor_role)role,
        .layer = layer,
        .expert = expert};
    if (spec.rank == 3) {
        spec.shape[2] = spec.shape[1];
        spec.shape[1] = 1;
    }
    l->elements += tensor_elements(&spec);
    if (l->to) {
        struct tensor_spec *to = &l->to[l->count];
        *to = spec;
        if (layer >= 0)
            name_in_layer(l->family, layer, expert, row->name, to->name);
        else
            name_in_family(l->family, "", row->name, to->name);
    }
    l->count++;
}

static void list_run(struct listing *l, struct role_run run, const struct block *b, int layer)
{
    for (int role = (int)run.first; role <= (int)run.last; role++) {
        const int experts = tensor_is_of_expert((enum tensor_role)role) ? b->experts : 1;
        for (int e = 0; e < experts && is_present(l->c, b, roles[role].presence); e++)
            list_tensor(l, b, role, layer, e);
    }
}

static void list_all(struct listing *l)
{
    list_run(l, before_layers, &outside, -1);
    for (int i = 0; i < l->c->layers; i++) {
        const struct layer *layer = arch_layer(&l->c->arch, i);
        for (int b = 0; b < layer->blocks; b++)
            list_run(l, in_block[layer->block[b].kind], &layer->block[b], i);
    }
    list_run(l, after_layers, &outside, -1);
}

int tensor_specs(const struct model_config *c, struct tensor_spec **out, size_t *count)
{
    const struct family *family = family_find(c->model_type);
    struct listing size = {.c = c, .family = family}, list = size;
    assert(arch_layer(&c->arch, 0)->blocks > 0);
    *out = NULL;
    *count = 0;
    list_all(&size);
    list.to = calloc(size.count, sizeof *list.to);
    if (!list.to)
        return fail(NJ_E_NOMEM, "out of memory for the tensor list of %d layers", c->layers);
    list_all(&list);
    *out = list.to;
    *count = list.count;
    return 0;
}

int64_t tensors_elements(const struct model_config *c)
{
    struct listing l = {.c = c};
    list_all(&l);
    return l.elements;
}

enum block_kind tensor_block(enum tensor_role role)
{
    int kind = 0;
    while (kind < BLOCK_KINDS && !(role >= in_block[kind].first && role <= in_block[kind].last))
        kind++;
    return (enum block_kind)kind;
}

bool tensor_is_head(const struct model_config *c, const struct tensor_spec *s)
{
    return s->role == (c->tied ? ROLE_EMBED : ROLE_HEAD);
}

bool tensor_is_of_expert(enum tensor_role role)
{
    return strchr(roles[role].name, '*') != NULL;
}

bool tensor_is_wide(enum tensor_role role)
{
    return role == ROLE_CORRECTION;
}

const char *tensor_module(enum tensor_role role, int *length)
{
    const char *end = strrchr(roles[role].name, '.'), *name = end;
    while (name > roles[role].name && name[-1] != '.')
        name--;
    *length = (int)(end - name);
    return name;
}

void tensor_module_of(const char *model_type, enum tensor_role role, char out[TENSOR_NAME_BYTES])
{
    char name[TENSOR_NAME_BYTES];
    name_in_family(family_find(model_type), "", roles[role].name, name);
    *strrchr(name, '.') = '\0';
    const char *dot = strrchr(name, '.');
    snprintf(out, TENSOR_NAME_BYTES, "%s", dot ? dot + 1 : name);
}

int64_t tensor_elements(const struct tensor_spec *s)
{
    int64_t elements = 1;
    for (int i = 0; i < s->rank; i++)
        elements *= s->shape[i];
    return elements;
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
