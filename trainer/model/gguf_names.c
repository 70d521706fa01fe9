/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_names.c: see gguf_names.h. Names are those of the Python package gguf.
 */
#include "model/gguf_names.h"

#include "base/families.h"

#include <stdio.h>
#include <string.h>

/* Names of tensors, after "blk.N." for those of a layer. */
static const struct role_name {
    const char *name;
    const char *fused; /* tensor that may hold it, after those before it */
    bool norm;         /* it is the gain of a norm */
} names[ROLE_COUNT] = {
    [ROLE_EMBED] = {GGUF_EMBED, NULL, false},
    [ROLE_INPUT_NORM] = {"attn_norm.weight", NULL, true},
    [ROLE_QKV_WEIGHT] = {"attn_qkv.weight", NULL, false},
    [ROLE_Q_WEIGHT] = {"attn_q.weight", "attn_qkv.weight", false},
    [ROLE_K_WEIGHT] = {"attn_k.weight", "attn_qkv.weight", false},
    [ROLE_V_WEIGHT] = {"attn_v.weight", "attn_qkv.weight", false},
    [ROLE_Q_BIAS] = {"attn_q.bias", "attn_qkv.bias", false},
    [ROLE_K_BIAS] = {"attn_k.bias", "attn_qkv.bias", false},
    [ROLE_V_BIAS] = {"attn_v.bias", "attn_qkv.bias", false},
    [ROLE_Q_NORM] = {"attn_q_norm.weight", NULL, true},
    [ROLE_K_NORM] = {"attn_k_norm.weight", NULL, true},
    [ROLE_ATTENTION_GATE] = {"attn_gate.weight", NULL, false},
    [ROLE_SINKS] = {"attn_sinks.weight", NULL, false},
    [ROLE_O_WEIGHT] = {"attn_output.weight", NULL, false},
    [ROLE_O_BIAS] = {"attn_output.bias", NULL, false},
    [ROLE_ATTENTION_POST_NORM] = {"post_attention_norm.weight", NULL, true},
    [ROLE_FFN_NORM] = {"ffn_norm.weight", NULL, true},
    [ROLE_GATE_UP_WEIGHT] = {"ffn_up.weight", NULL, false},
    [ROLE_GATE_WEIGHT] = {"ffn_gate.weight", NULL, false},
    [ROLE_UP_WEIGHT] = {"ffn_up.weight", NULL, false},
    [ROLE_GATE_BIAS] = {"ffn_gate.bias", NULL, false},
    [ROLE_UP_BIAS] = {"ffn_up.bias", NULL, false},
    [ROLE_DOWN_WEIGHT] = {"ffn_down.weight", NULL, false},
    [ROLE_DOWN_BIAS] = {"ffn_down.bias", NULL, false},
    [ROLE_FFN_POST_NORM] = {"post_ffw_norm.weight", NULL, true},
    [ROLE_EXPERTS_NORM] = {"ffn_norm.weight", NULL, true},
    [ROLE_ROUTER_WEIGHT] = {"ffn_gate_inp.weight", NULL, false},
    [ROLE_ROUTER_BIAS] = {"ffn_gate_inp.bias", NULL, false},
    [ROLE_EXPERT_GATE_BIAS] = {"ffn_gate_exps.bias", NULL, false},
    [ROLE_EXPERT_UP_BIAS] = {"ffn_up_exps.bias", NULL, false},
    [ROLE_EXPERT_DOWN_BIAS] = {"ffn_down_exps.bias", NULL, false},
    [ROLE_EXPERT_GATE_WEIGHT] = {"ffn_gate_exps.weight", NULL, false},
    [ROLE_EXPERT_UP_WEIGHT] = {"ffn_up_exps.weight", NULL, false},
    [ROLE_EXPERT_DOWN_WEIGHT] = {"ffn_down_exps.weight", NULL, false},
    [ROLE_EXPERTS_POST_NORM] = {"post_ffw_norm.weight", NULL, true},
    [ROLE_CONV_NORM] = {"attn_norm.weight", NULL, true},
    [ROLE_CONV_IN_WEIGHT] = {"shortconv.in_proj.weight", NULL, false},
    [ROLE_CONV_TAPS] = {"shortconv.conv.weight", NULL, false},
    [ROLE_CONV_OUT_WEIGHT] = {"shortconv.out_proj.weight", NULL, false},
    [ROLE_CONV_POST_NORM] = {"post_attention_norm.weight", NULL, true},
    [ROLE_DELTA_NORM] = {"attn_norm.weight", NULL, true},
    [ROLE_DELTA_QKV_WEIGHT] = {"attn_qkv.weight", NULL, false},
    [ROLE_DELTA_Z_WEIGHT] = {"attn_gate.weight", NULL, false},
    [ROLE_DELTA_B_WEIGHT] = {"ssm_beta.weight", NULL, false},
    [ROLE_DELTA_A_WEIGHT] = {"ssm_alpha.weight", NULL, false},
    [ROLE_DELTA_TAPS] = {"ssm_conv1d.weight", NULL, false},
    [ROLE_DELTA_LOG] = {"ssm_a", NULL, false},
    [ROLE_DELTA_STEP] = {"ssm_dt.bias", NULL, false},
    [ROLE_DELTA_GAIN] = {"ssm_norm.weight", NULL, false}, /* no offset is added to it */
    [ROLE_DELTA_OUT_WEIGHT] = {"ssm_out.weight", NULL, false},
    [ROLE_DELTA_POST_NORM] = {"post_attention_norm.weight", NULL, true},
    [ROLE_FINAL_NORM] = {"output_norm.weight", NULL, true},
    [ROLE_HEAD] = {GGUF_HEAD, NULL, false},
};

const struct gguf_arch *gguf_arch(const char *model_type)
{
    const struct family *family = family_find(model_type);
    for (int i = 0; family && family->gguf && i < GGUF_ARCHS; i++)
        if (strcmp(gguf_archs[i].name, family->gguf) == 0)
            return &gguf_archs[i];
    return NULL;
}

static void name_in_layer(int layer, const char *name, char out[128])
{
    if (layer >= 0)
        snprintf(out, 128, "blk.%d.%s", layer, name);
    else
        snprintf(out, 128, "%s", name);
}

void gguf_tensor_name(const struct gguf_arch *arch, const struct tensor_spec *spec, char out[128])
{
    const char *name = names[spec->role].name;
    if (arch && arch->ffn_norm && (spec->role == ROLE_FFN_NORM || spec->role == ROLE_EXPERTS_NORM))
        name = arch->ffn_norm;
    if (arch && arch->final_norm && spec->role == ROLE_FINAL_NORM)
        name = arch->final_norm;
    name_in_layer(spec->layer, name, out);
}

bool gguf_fused_name(const struct tensor_spec *spec, char out[128])
{
    const char *fused = names[spec->role].fused;
    if (fused)
        name_in_layer(spec->layer, fused, out);
    return fused != NULL;
}

bool gguf_rotates_pairs(const struct model_config *c)
{
    const struct family *family = family_find(c->model_type);
    return family && family->gguf_pairs;
}

int gguf_pairs(const struct model_config *c, const struct tensor_spec *spec)
{
    const bool q = spec->role == ROLE_Q_WEIGHT || spec->role == ROLE_Q_BIAS;
    const bool k = spec->role == ROLE_K_WEIGHT || spec->role == ROLE_K_BIAS;
    if (!(q || k) || !gguf_rotates_pairs(c))
        return 0;
    const struct block *b = arch_block(&c->arch, spec->layer, BLOCK_ATTENTION);
    return q ? b->heads : b->kv_heads;
}

struct tensor_spec gguf_shape(const struct tensor_spec *spec)
{
    struct tensor_spec out = *spec;
    if (out.rank == 3) { /* the taps of a convolution, [channels, 1, taps] */
        out.rank = 2;
        out.shape[1] = out.shape[2];
    }
    return out;
}

/* ---- value heads ---- */

static const struct block *delta_of(const struct model_config *c, const struct tensor_spec *spec)
{
    return tensor_block(spec->role) == BLOCK_DELTA ? arch_block(&c->arch, spec->layer, BLOCK_DELTA)
                                                   : NULL;
}

/* Return the order of value heads of D elements behind `before` others. */
static struct head_tiles tiles_of(const struct block *b, int D, int64_t before)
{
    return (struct head_tiles){b->kv_heads, b->heads / b->kv_heads, D, before};
}

struct head_tiles gguf_row_tiles(const struct model_config *c, const struct tensor_spec *spec)
{
    const struct block *b = delta_of(c, spec);
    switch (b ? (int)spec->role : -1) {
    case ROLE_DELTA_QKV_WEIGHT:
    case ROLE_DELTA_TAPS:
        return tiles_of(b, b->head_dim, 2 * (int64_t)b->kv_heads * b->head_dim);
    case ROLE_DELTA_Z_WEIGHT:
        return tiles_of(b, b->head_dim, 0);
    case ROLE_DELTA_B_WEIGHT:
    case ROLE_DELTA_A_WEIGHT:
    case ROLE_DELTA_LOG:
    case ROLE_DELTA_STEP:
        return tiles_of(b, 1, 0);
    default:
        return (struct head_tiles){0};
    }
}

struct head_tiles gguf_column_tiles(const struct model_config *c, const struct tensor_spec *spec)
{
    const struct block *b = delta_of(c, spec);
    return b && spec->role == ROLE_DELTA_OUT_WEIGHT ? tiles_of(b, b->head_dim, 0)
                                                    : (struct head_tiles){0};
}

bool gguf_negated_exp(const struct tensor_spec *spec)
{
    return spec->role == ROLE_DELTA_LOG;
}

float gguf_added(const struct model_config *c, const struct tensor_spec *spec)
{
    if (!names[spec->role].norm)
        return 0;
    if (spec->layer < 0)
        return c->gain_offset;
    return arch_block(&c->arch, spec->layer, tensor_block(spec->role))->gain_offset;
}

/* ---- tensors of which others are made ---- */

/* Set the part that holds `rows` rows, from `first` on, as a role. Return the row after them. */
static int64_t set_part(struct gguf_part *part, const struct gguf_arch *arch,
                        const struct tensor_spec *of, enum tensor_role role, int64_t first,
                        int64_t rows)
{
    *part = (struct gguf_part){gguf_shape(of), first};
    part->spec.role = role;
    part->spec.shape[0] = rows;
    gguf_tensor_name(arch, &part->spec, part->spec.name);
    return first + rows;
}

int gguf_parts(const struct model_config *c, const struct tensor_spec *spec,
               struct gguf_part out[GGUF_PARTS_MOST])
{
    const struct gguf_arch *arch = gguf_arch(c->model_type);
    if (!arch->apart || spec->role != ROLE_GATE_UP_WEIGHT) {
        set_part(&out[0], arch, spec, spec->role, 0, spec->shape[0]);
        return 1;
    }
    const int64_t half = spec->shape[0] / 2;
    set_part(&out[1], arch, spec, ROLE_UP_WEIGHT,
             set_part(&out[0], arch, spec, ROLE_GATE_WEIGHT, 0, half), half);
    return 2;
}
