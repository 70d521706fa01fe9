/* SPDX-License-Identifier: Apache-2.0
 *
 * config.c: the check of which models can be trained. The tables of families.h and the checks here decide; an accepted
 * model is computed exactly as its family defines it, everything else is refused by field and value.
 */
#include "model/config.h"

#include "base/check.h"
#include "base/families.h"
#include "base/float16.h"
#include "base/try.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/notes.h"
#include "io/path.h"
#include "model/config_composite.h"
#include "model/config_known.h"
#include "model/config_layers.h"
#include "model/config_numbers.h"
#include "model/config_recurrent.h"
#include "model/quantized_scheme.h"
#include "model/tensor_names.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- refusals ---- */

static void note_dropout(const struct fields *f)
{
    const double dropout = json_number_value(field_get(f, "attention_dropout"));
    if (dropout > 0)
        note("%s: %s is %g; training goes without it", f->file->path,
             field_called(f->file, "attention_dropout").text, dropout);
}

/* Refuse features that would change the computation and that nojit does not compute. */
static int refuse_features(const struct fields *f, const struct family *family)
{
    const json_t *quantized = field_get(f, "quantization_config");
    struct quantized_scheme scheme;
    TRY(config_refuse_values(f, family));
    note_dropout(f);
    if (!quantized)
        return 0;
    TRY(quantized_scheme(f->file->path, quantized, &scheme));
    if (scheme.format != QUANTIZED_MXFP4 || (family->fields & FIELDS_OSS) != 0)
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s: quantization_config: quant_method is \"mxfp4\", which is read of gpt_oss "
                "alone; use the bfloat16 release of the model, or a GGUF file of it",
                f->file->path);
}

/* Refuse experts, which a file of such a family has unless it says otherwise. */
static int refuse_experts(const struct fields *f)
{
    static const char name[] = "num_local_experts";
    json_t *experts = json_object_get(f->object, name);
    if (json_is_integer(experts) && json_integer_value(experts) == 0)
        return 0;
    if (experts)
        return field_refuse(
            f, NJ_E_UNSUPPORTED, name, experts,
            "mixtures of experts are not supported in this family; use a dense model");
    return fail(NJ_E_UNSUPPORTED,
                "%s: %s is missing, so there are experts, which are not supported; use a dense "
                "model",
                f->file->path, field_called(f->file, name).text);
}

/* ---- reading ---- */

static int read_hidden_act(const struct fields *f, const struct family *family, struct block *glu)
{
    char supported[NAMES_BYTES];
    const char *name = family_act_field(family);
    json_t *act = field_get(f, name);
    glu->act = json_is_string(act) ? hidden_act_find(json_string_value(act)) : -1;
    if (act && glu->act < 0)
        return field_refuse(f, NJ_E_UNSUPPORTED, name, act, hidden_acts_supported(supported));
    if (!act)
        glu->act = family->act ? hidden_act_find(family->act) : 0;
    return 0;
}

static void set_feature(struct block *b, unsigned features, bool on)
{
    b->features = on ? b->features | features : b->features & ~features;
}

static int read_biases(const struct fields *f, const struct family *family, struct block *blocks)
{
    bool on;
    if (family->biases != 0) {
        TRY(field_bool(f, "attention_bias", (family->attention & family->biases) != 0, &on));
        set_feature(&blocks[PLAIN_ATTENTION], family->biases, on);
    }
    if (!(family->fields & FIELDS_MLP_BIAS))
        return 0;
    TRY(field_bool(f, "mlp_bias", false, &on));
    set_feature(&blocks[PLAIN_GLU], FEATURE_BIT(FEATURE_MLP_BIAS), on);
    return 0;
}

static int read_sizes(const struct fields *f, const struct family *family, struct model_config *c,
                      struct block *blocks)
{
    struct block *attention = &blocks[PLAIN_ATTENTION];
    TRY(field_int(f, "hidden_size", family->hidden_size, &c->hidden_size));
    if (!family_has_no_dense(family))
        TRY(field_int(f, family_ffn_field(family), family->ffn_size, &blocks[PLAIN_GLU].ffn_size));
    TRY(field_int(f, "num_hidden_layers", family->layers, &c->layers));
    TRY(field_int(f, "num_attention_heads", family->heads, &attention->heads));
    TRY(field_int(f, "vocab_size", family->vocab_size, &c->vocab_size));
    TRY(field_int(f, "max_position_embeddings", family->max_positions, &c->max_positions));
    const int heads = attention->heads;
    /* Only an absent field has the value of the family; null stands for as many as heads. */
    const bool said = json_object_get(f->object, "num_key_value_heads") != NULL;
    const int kv_heads = family->kv_heads && !said ? family->kv_heads : heads;
    const int head_dim = family->head_dim ? family->head_dim : c->hidden_size / heads;
    if (head_dim == 0)
        return fail(NJ_E_FORMAT, "%s: %s is %d, less than %s %d", f->file->path,
                    field_called(f->file, "hidden_size").text, c->hidden_size,
                    field_called(f->file, "num_attention_heads").text, heads);
    TRY(field_int(f, "num_key_value_heads", kv_heads, &attention->kv_heads));
    return field_int(f, "head_dim", head_dim, &attention->head_dim);
}

/* Refuse models of text and images or sound, which keep the text model's fields in an object of their own. */
static int refuse_nested(const struct fields *f)
{
    static const char *const names[] = {"text_config", "vision_config", "audio_config"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *object = field_get(f, names[i]);
        if (object)
            return field_refuse(f, NJ_E_UNSUPPORTED, names[i], object,
                                "models of more than text are not supported; save the text model "
                                "alone, or use another");
    }
    return 0;
}

static int read_family(const struct fields *f, const struct family **out)
{
    char supported[NAMES_BYTES];
    json_t *type = field_get(f, "model_type");
    families_supported(supported);
    if (!json_is_string(type))
        return fail(NJ_E_FORMAT, "%s: model_type is missing; %s", f->file->path, supported);
    *out = family_find(json_string_value(type));
    if (!*out)
        return field_refuse(f, NJ_E_UNSUPPORTED, "model_type", type, supported);
    if ((*out)->listed && field_get(f, "layer_types"))
        *out = family_find((*out)->listed);
    return 0;
}

static int read_fields(const struct fields *f, struct model_config *c)
{
    const struct family *family;
    double eps;
    TRY(refuse_nested(f));
    TRY(read_family(f, &family));
    TRY(refuse_features(f, family));
    if (family->fields & FIELDS_HYBRID)
        TRY(refuse_experts(f));
    struct block *blocks = config_plain_layers(c, family->model_type);
    TRY(read_hidden_act(f, family, &blocks[PLAIN_GLU]));
    TRY(read_sizes(f, family, c, blocks));
    TRY(config_recurrent_sizes(f, family, &blocks[PLAIN_GLU]));
    TRY(read_biases(f, family, blocks));
    TRY(config_numbers(f, family, c, &blocks[PLAIN_ATTENTION]));
    TRY(field_number(f, family_eps_field(family), family->rms_eps, &eps));
    TRY(config_tied(f, family, &c->tied));
    TRY(field_token(f, "bos_token_id", &c->bos_id));
    TRY(field_token(f, "eos_token_id", &c->eos_id));
    TRY(config_layers(f, family, c));
    c->rms_eps = (float)eps;
    return config_check_file(c, f->file);
}

struct block *config_plain_layers(struct model_config *c, const char *model_type)
{
    const struct family *family = family_find(model_type);
    snprintf(c->model_type, sizeof c->model_type, "%s", family->model_type);
    c->arch = (struct arch){.kind = {LAYER_PLAIN(0, 0, 0, 0, 0)}};
    c->gain_offset = family->plain_final ? 0 : family->gain_offset;
    c->embed_normed = family->embed_normed;
    struct block *blocks = c->arch.kind[0].block;
    blocks[PLAIN_GLU].features = family->mlp & ~EXPERT_FEATURES;
    blocks[PLAIN_ATTENTION].features = family->attention;
    blocks[PLAIN_ATTENTION].gain_offset = blocks[PLAIN_GLU].gain_offset = family->gain_offset;
    return blocks;
}

int config_from(const struct config_file *f, json_t *object, struct model_config *out)
{
    const struct fields fields = {f, object};
    memset(out, 0, sizeof *out);
    return read_fields(&fields, out);
}

static bool holds_adapters(const char *dir)
{
    char path[PATH_BYTES];
    return snprintf(path, sizeof path, "%s/adapter_config.json", dir) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

/* Read the object of a config.json, and refuse a field in it that is not known. */
static int read_object(const struct config_file *f, json_t *object, struct model_config *out)
{
    TRY(config_from(f, object, out));
    return config_refuse_unknown(&(struct fields){f, object}, family_find(out->model_type));
}

static int read_root(const char *path, json_t *root, struct model_config *out)
{
    struct config_file file = {.path = path};
    json_t *text;
    if (!config_is_composite(root))
        return read_object(&file, root, out);
    TRY(config_text(&file, root, &text));
    file.name = config_text_name;
    file.of = root;
    const int rc = read_object(&file, text, out);
    if (rc == 0)
        note("%s: of %s, the language model alone is read, and saved as %s", path,
             json_string_value(json_object_get(root, "model_type")), out->model_type);
    json_decref(text);
    return rc;
}

int config_read(const char *dir, struct model_config *out)
{
    char path[PATH_BYTES];
    memset(out, 0, sizeof *out);
    if (snprintf(path, sizeof path, "%s/config.json", dir) >= (int)sizeof path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
    if (access(path, F_OK) != 0 && holds_adapters(dir))
        return fail(NJ_E_IO,
                    "%s: adapters, not a model; name the model they were trained on, and this "
                    "folder as --adapter",
                    dir);
    if (access(path, R_OK) != 0)
        return fail(NJ_E_IO, "%s: %s; a model folder holds config.json and model.safetensors", path,
                    strerror(errno));
    json_t *root;
    int rc = json_read_file(path, "fetch the model again", &root);
    if (rc != 0)
        return rc;
    rc = json_is_object(root)
             ? read_root(path, root, out)
             : fail(NJ_E_FORMAT, "%s: not a JSON object; fetch the file again", path);
    json_decref(root);
    return rc;
}

/* ---- derived ---- */

const struct block *config_rotated_block(const struct model_config *c, int rope)
{
    const struct block *found = NULL;
    for (int l = 0; l < c->layers; l++) {
        const struct block *b = arch_block(&c->arch, l, BLOCK_ATTENTION);
        if (!b || b->rope != rope)
            continue;
        CHECK(!found || found->head_dim == b->head_dim);
        found = b;
    }
    return found;
}

int config_frequencies(const struct model_config *c, int rope)
{
    int count = 0;
    for (int i = 0; i < rope; i++) {
        const struct block *b = config_rotated_block(c, i);
        count += b ? block_padded_dim(b) / 2 : 0;
    }
    return count;
}

void config_inv_freq(const struct model_config *c, int positions, float *inv_freq)
{
    for (int rope = 0; rope < ROPES_MOST; rope++) {
        const struct rope *r = &c->arch.rope[rope];
        const struct block *b = config_rotated_block(c, rope);
        for (int i = 0; b && i < block_padded_dim(b) / 2; i++)
            *inv_freq++ = i < rope_rotary(r, b->head_dim) / 2
                              ? (float)(rope_frequency(r, b->head_dim, i) *
                                        rope_slowing(r, b->head_dim, i, positions))
                              : 0;
    }
}

float config_embedding_scale(const struct model_config *c, bool in_16_bits)
{
    const struct family *family = family_find(c->model_type);
    const float scale = c->embedding_scale != 0 ? c->embedding_scale : 1;
    const bool rounded = in_16_bits && family && family->embed_root;
    return rounded ? f32_from_bf16(bf16_from_f32(scale)) : scale;
}

int config_dense_size(const struct model_config *c)
{
    const struct block *glu = arch_first(&c->arch, c->layers, BLOCK_GLU);
    const struct block *experts = arch_first(&c->arch, c->layers, BLOCK_EXPERTS);
    return glu ? glu->ffn_size : (int)block_ffn_used(experts);
}

int64_t config_parameters(const struct model_config *c)
{
    return tensors_elements(c);
}

int64_t config_active_parameters(const struct model_config *c)
{
    int64_t idle = 0;
    for (int l = 0; l < c->layers; l++) {
        const struct block *b = arch_block(&c->arch, l, BLOCK_EXPERTS);
        if (b)
            idle += (int64_t)(b->experts - b->experts_used) * 3 * b->ffn_size * c->hidden_size;
    }
    return config_parameters(c) - idle;
}
