/* SPDX-License-Identifier: Apache-2.0
 *
 * config_check.c: relations between the fields of a configuration, between two models, and between a model and the
 * length of its sequences.
 */
#include "base/families.h"
#include "base/try.h"
#include "io/error.h"
#include "model/config.h"
#include "model/config_fields.h"

#include <stdlib.h>

/* Return the block of a kind in a layer; what a layer lacks is right. */
static const struct block *block_or(const struct model_config *c, int layer, enum block_kind kind,
                                    const struct block *none)
{
    const struct block *b = arch_block(&c->arch, layer, kind);
    return b ? b : none;
}

static int check_head_dim(const struct block *b, const struct config_file *f)
{
    if (block_heads_fit(b))
        return 0;
    return fail(NJ_E_UNSUPPORTED, "%s: %s (or %s / %s) is %d; %s are supported: use another model",
                f->path, field_called(f, "head_dim").text, field_called(f, "hidden_size").text,
                field_called(f, "num_attention_heads").text, b->head_dim, block_head_sizes(b));
}

static int check_tokens(const struct model_config *c, const struct config_file *f)
{
    const bool begins = c->bos_id >= c->vocab_size;
    if (!begins && c->eos_id < c->vocab_size)
        return 0;
    return fail(NJ_E_FORMAT, "%s: %s is %d; it must be below %s %d", f->path,
                field_called(f, begins ? "bos_token_id" : "eos_token_id").text,
                begins ? c->bos_id : c->eos_id, field_called(f, "vocab_size").text, c->vocab_size);
}

/* Refuse biases and norms of outputs beside a factor of what blocks add to the stream, which a GEMM applies before
 * them. */
static int check_residual(const struct model_config *c, unsigned features,
                          const struct config_file *f)
{
    const unsigned biased = FEATURE_BIT(FEATURE_O_BIAS) | FEATURE_BIT(FEATURE_MLP_BIAS);
    if ((features & (biased | NORMED_AFTER)) == 0 || c->residual_scale == 0 ||
        c->residual_scale == 1)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: %s is %g, and outputs have %s; both together are not supported: use another "
                "model",
                f->path, field_called(f, "residual_multiplier").text, (double)c->residual_scale,
                features & biased ? "biases" : "norms");
}

/* Refuse heads that are mapped (arch_maps_heads()) where the kernels need those of the model. */
static int check_mapped(const struct model_config *c, const struct block *b,
                        const struct config_file *f)
{
    const bool fixed = block_has(b, FEATURE_QK_NORM) || block_has(b, FEATURE_GATE);
    if (!fixed || !arch_maps_heads(&c->arch, b))
        return 0;
    return fail(
        NJ_E_UNSUPPORTED,
        "%s: %s is %d, of which %d elements rotate; heads with norms or gates must have 64, "
        "128 or 256 elements that all rotate, the halves with each other: use another "
        "model",
        f->path, field_called(f, "head_dim").text, b->head_dim,
        rope_rotary(&c->arch.rope[b->rope], b->head_dim));
}

/* Refuse features of a layer that are not computed together. */
static int check_features(const struct model_config *c, const struct layer *layer,
                          const struct config_file *f)
{
    unsigned features = 0;
    for (int i = 0; i < layer->blocks; i++) {
        const struct block *b = &layer->block[i];
        features |= b->features;
        TRY(check_mapped(c, b, f));
        if (block_has(b, FEATURE_QK_NORM_ROW) && b->gain_offset != 0)
            return fail(NJ_E_UNSUPPORTED,
                        "%s: %s is %s, whose norms of whole rows have gains with an offset; they "
                        "are not supported: use another model",
                        f->path, field_called(f, "model_type").text, c->model_type);
    }
    return check_residual(c, features, f);
}

/* Check that groups of experts have one size, and that the chosen ones have as many experts as a row takes. */
static int check_groups(const struct block *b, const char *count, const struct config_file *f)
{
    enum { GROUPS_MOST = 32 }; /* most groups of expert_route */
    if (b->groups == 0)
        return 0;
    if (b->groups > GROUPS_MOST || b->experts % b->groups != 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is %d; up to %d are supported, of which %s %d is a multiple: use "
                    "another model",
                    f->path, field_called(f, "n_group").text, b->groups, GROUPS_MOST, count,
                    b->experts);
    if (b->groups_used <= b->groups && b->experts_used <= b->experts / b->groups * b->groups_used)
        return 0;
    return fail(NJ_E_FORMAT, "%s: %s is %d of %d, which have no %d experts; correct the file",
                f->path, field_called(f, "topk_group").text, b->groups_used, b->groups,
                b->experts_used);
}

/* Check the sizes of a block of experts, of which all together have no more rows than one MLP may have. */
static int check_experts(const struct block *b, const struct family *family,
                         const struct config_file *f)
{
    const char *where = f->path;
    const struct config_name count = field_called(f, family_experts_field(family));
    const struct config_name used = field_called(f, "num_experts_per_tok");
    const struct config_name size = field_called(f, "moe_intermediate_size");
    if (b->experts < 1 || b->experts > NJ_EXPERTS_MAX)
        return fail(NJ_E_UNSUPPORTED, "%s: %s is %d; 1 to %d are supported: use another model",
                    where, count.text, b->experts, NJ_EXPERTS_MAX);
    if (b->experts_used > NJ_CHOSEN_MAX)
        return fail(NJ_E_UNSUPPORTED, "%s: %s is %d; 1 to %d are supported: use another model",
                    where, used.text, b->experts_used, NJ_CHOSEN_MAX);
    if (b->experts_used < 1 || b->experts_used > b->experts)
        return fail(NJ_E_FORMAT, "%s: %s is %d; it must lie between 1 and %s %d", where, used.text,
                    b->experts_used, count.text, b->experts);
    if (b->ffn_size < 1 || b->ffn_size > CONFIG_SIZE_MOST / b->experts)
        return fail(NJ_E_FORMAT, "%s: %s is %d; it must lie between 1 and %d", where, size.text,
                    b->ffn_size, CONFIG_SIZE_MOST / b->experts);
    if (b->ffn_size % 8 != 0)
        return fail(NJ_E_UNSUPPORTED, "%s: %s is %d; it must be a multiple of 8", where, size.text,
                    b->ffn_size);
    TRY(check_groups(b, count.text, f));
    const int most = CONFIG_SIZE_MOST - b->experts * b->ffn_size;
    if (b->shared_size > most || b->shared_size % 8 != 0)
        return fail(NJ_E_UNSUPPORTED, "%s: %s is %d; multiples of 8 up to %d are supported here",
                    where, field_called(f, "shared_expert_intermediate_size").text, b->shared_size,
                    most);
    if (block_has(b, FEATURE_MLP_BIAS) && b->experts % 8 != 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is %d; where routers have biases it must be a multiple of 8", where,
                    count.text, b->experts);
    return 0;
}

/* Check the sizes of a convolution, which its kernels take. */
static int check_conv(const struct block *b, const struct config_file *f)
{
    if (b->taps < 2 || b->taps > CONFIG_TAPS_MOST)
        return fail(NJ_E_UNSUPPORTED, "%s: %s is %d; 2 to %d are supported: use another model",
                    f->path, field_called(f, "conv_L_cache").text, b->taps, (int)CONFIG_TAPS_MOST);
    if (b->channels < 8 || b->channels > CONFIG_CHANNELS_MOST || b->channels % 8 != 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is %d; convolutions of 8 to %d channels, multiples of 8, are "
                    "supported: use another model",
                    f->path, field_called(f, "hidden_size").text, b->channels,
                    (int)CONFIG_CHANNELS_MOST);
    return 0;
}

/* Check the sizes of a gated delta rule, which its kernels take; rows of its products come in multiples of 8. */
static int check_delta(const struct block *b, const struct config_file *f)
{
    const char *where = f->path;
    const struct config_name values = field_called(f, "linear_num_value_heads");
    const struct config_name keys = field_called(f, "linear_num_key_heads");
    if (b->taps < 2 || b->taps > CONFIG_TAPS_MOST)
        return fail(NJ_E_UNSUPPORTED, "%s: %s is %d; 2 to %d are supported: use another model",
                    where, field_called(f, "linear_conv_kernel_dim").text, b->taps,
                    (int)CONFIG_TAPS_MOST);
    if (b->head_dim != 64 && b->head_dim != 128)
        return fail(NJ_E_UNSUPPORTED, "%s: %s is %d; 64 and 128 are supported: use another model",
                    where, field_called(f, "linear_key_head_dim").text, b->head_dim);
    if (b->heads < 4 || b->heads > CONFIG_HEADS_MOST || b->heads % 4 != 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is %d; multiples of 4 up to %d are supported: use another model", where,
                    values.text, b->heads, (int)CONFIG_HEADS_MOST);
    if (b->kv_heads < 1 || b->heads % b->kv_heads != 0)
        return fail(NJ_E_FORMAT, "%s: %s is %d, no multiple of %s %d; correct the file", where,
                    values.text, b->heads, keys.text, b->kv_heads);
    return 0;
}

/* Check the sizes of the model and of one layer. */
static int check_layer(const struct model_config *c, int layer, const struct config_file *f)
{
    static const struct block neutral = {.heads = 1, .kv_heads = 1, .head_dim = 64, .ffn_size = 8};
    const struct block *experts = arch_block(&c->arch, layer, BLOCK_EXPERTS);
    const struct block *conv = arch_block(&c->arch, layer, BLOCK_CONV);
    const struct block *delta = arch_block(&c->arch, layer, BLOCK_DELTA);
    const struct block *b = block_or(c, layer, BLOCK_ATTENTION, &neutral);
    const int ffn_size = block_or(c, layer, BLOCK_GLU, &neutral)->ffn_size;
    const double theta = c->arch.rope[b->rope].theta;
    const struct family *family = family_find(c->model_type);
    const char *ffn = family ? family_ffn_field(family) : "intermediate_size";
    const struct {
        const char *name;
        int value;
    } sizes[] = {
        {"hidden_size", c->hidden_size},
        {ffn, ffn_size},
        {"num_hidden_layers", c->layers},
        {"num_attention_heads", b->heads},
        {"num_key_value_heads", b->kv_heads},
        {"vocab_size", c->vocab_size},
        {"max_position_embeddings", c->max_positions},
    };
    const char *where = f->path;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < 1 || sizes[i].value > CONFIG_SIZE_MOST)
            return fail(NJ_E_FORMAT, "%s: %s is %d; it must lie between 1 and %d", where,
                        field_called(f, sizes[i].name).text, sizes[i].value, CONFIG_SIZE_MOST);
    char supported[NAMES_BYTES];
    if (!family)
        return fail(NJ_E_UNSUPPORTED, "%s: model_type is %s; %s", where, c->model_type,
                    families_supported(supported));
    TRY(check_head_dim(b, f));
    TRY(check_features(c, arch_layer(&c->arch, layer), f));
    if (c->layers > CONFIG_LAYERS_MOST || b->heads > CONFIG_HEADS_MOST)
        return fail(NJ_E_FORMAT, "%s: %d layers with %d heads; at most %d and %d", where, c->layers,
                    b->heads, CONFIG_LAYERS_MOST, CONFIG_HEADS_MOST);
    if (b->heads % b->kv_heads != 0)
        return fail(NJ_E_FORMAT, "%s: %s is %d, no multiple of %s %d; %s", where,
                    field_called(f, "num_attention_heads").text, b->heads,
                    field_called(f, "num_key_value_heads").text, b->kv_heads,
                    field_remedy(f, "correct the file"));
    if (c->hidden_size % 8 != 0 || ffn_size % 8 != 0)
        return fail(NJ_E_UNSUPPORTED, "%s: %s is %d, %s is %d; both must be multiples of 8", where,
                    field_called(f, "hidden_size").text, c->hidden_size, field_called(f, ffn).text,
                    ffn_size);
    if (experts)
        TRY(check_experts(experts, family, f));
    if (conv)
        TRY(check_conv(conv, f));
    if (delta)
        TRY(check_delta(delta, f));
    TRY(check_tokens(c, f));
    if (!(c->rms_eps > 0) || !(theta > 0))
        return fail(NJ_E_FORMAT, "%s: %s is %g, %s is %g; both must be above 0", where,
                    field_called(f, family_eps_field(family)).text, (double)c->rms_eps,
                    field_called(f, "rope_theta").text, theta);
    return 0;
}

int config_check_file(const struct model_config *c, const struct config_file *f)
{
    TRY(check_layer(c, 0, f)); /* the number of layers, too */
    for (int l = 1; l < c->layers; l++)
        if (c->arch.kind_of[l] != c->arch.kind_of[l - 1])
            TRY(check_layer(c, l, f));
    if (arch_attention(&c->arch, c->layers))
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: no layer has attention; use a model in which at least one has it", f->path);
}

int config_check(const struct model_config *c, const char *where)
{
    return config_check_file(c, &(struct config_file){.path = where});
}

int config_positions(const struct model_config *c)
{
    const struct rope *r = &c->arch.rope[0];
    const int original = r->scaling.original_positions;
    return r->query_beta != 0 && original < c->max_positions ? original : c->max_positions;
}

int config_check_length(const struct model_config *c, int seq_len, const char *where)
{
    const int positions = config_positions(c);
    if (seq_len <= positions)
        return 0;
    return fail(NJ_E_ARG,
                "%s: the model has %d positions, the sequence length is %d; pass --seq-len %d "
                "or less",
                where, positions, seq_len, positions);
}

/* Vocabularies of one family differ by padding at most: the next multiple of 128, or what large
 * models add. */
enum { PADDING_ALWAYS = 127, PADDING_MOST = 1024, PADDING_PERCENT = 2 };

int config_common_vocab(const struct model_config *student, const struct model_config *teacher)
{
    return teacher && teacher->vocab_size < student->vocab_size ? teacher->vocab_size
                                                                : student->vocab_size;
}

int config_check_pair(const struct model_config *student, const struct model_config *teacher)
{
    const int s = student->vocab_size, t = teacher->vocab_size;
    const int larger = s > t ? s : t, apart = abs(s - t);
    if (apart <= PADDING_ALWAYS ||
        (apart <= PADDING_MOST && apart * 100LL <= PADDING_PERCENT * (int64_t)larger))
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "vocab_size is %d for the student and %d for the teacher, which is more than "
                "padding; use two models with one tokenizer",
                s, t);
}
