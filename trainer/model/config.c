/* SPDX-License-Identifier: Apache-2.0
 *
 * config.c: the check of which models can be trained. The tables of families.h and the checks here decide; an accepted
 * model is computed exactly as its family defines it, everything else is refused by field and value.
 */
#include "model/config.h"

#include "base/check.h"
#include "base/families.h"
#include "base/try.h"
#include "io/error.h"
#include "io/json_text.h"
#include "io/notes.h"
#include "io/path.h"
#include "model/config_known.h"
#include "model/config_rope.h"
#include "model/quantized_scheme.h"
#include "model/tensor_names.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- refusals ---- */

static int refuse_layer_types(const struct fields *f)
{
    json_t *types = field_get(f, "layer_types");
    size_t i;
    json_t *type;
    json_array_foreach(types, i, type)
    {
        const char *text = json_string_value(type);
        if (!text || strcmp(text, "full_attention") != 0)
            return field_refuse(f, NJ_E_UNSUPPORTED, "layer_types", type,
                                "only full_attention is supported; use a model without sliding "
                                "windows");
    }
    return 0;
}

/* Read the window of a family whose window is always on. Only null is no window; an absent field has the family's
 * value. A window that no key falls out of is none. */
static int read_window(const struct fields *f, const struct family *family, int max_positions,
                       struct block *attention)
{
    const json_t *value = json_object_get(f->object, "sliding_window");
    if (family->window == 0 || json_is_null(value))
        return 0;
    const json_int_t window = value ? json_integer_value(value) : family->window;
    if (value && (!json_is_integer(value) || window < 1))
        return field_refuse(f, NJ_E_FORMAT, "sliding_window", value,
                            "it must be a whole number above 0, or null");
    attention->window = window < max_positions ? (int)window : 0;
    return 0;
}

/* Refuse a window that is switched on, which layers from max_window_layers on have. */
static int refuse_switched_window(const struct fields *f, const struct family *family,
                                  const struct model_config *c)
{
    enum { FIRST = 28 }; /* default of Qwen2 and Qwen3 */
    const json_t *window = json_object_get(f->object, "sliding_window");
    char remedy[REMEDY_BYTES];
    bool on;
    if (family->window > 0)
        return 0; /* its window is always on */
    int first = FIRST, rc = field_bool(f, "use_sliding_window", false, &on);
    const json_t *zero = field_get(f, "max_window_layers");
    if (rc == 0 && on && json_is_integer(zero) && json_integer_value(zero) == 0)
        first = 0;
    else if (rc == 0 && on)
        rc = field_int(f, "max_window_layers", FIRST, &first);
    if (rc != 0 || !on || json_is_null(window) || first >= c->layers ||
        field_get(f, "layer_types") ||
        (json_is_integer(window) && json_integer_value(window) >= c->max_positions))
        return rc;
    return field_refuse(f, NJ_E_UNSUPPORTED, "use_sliding_window", json_true(),
                        field_supported(f, "windows of some layers are not supported",
                                        "set it to false if sequences stay within the window",
                                        remedy));
}

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
    TRY(config_refuse_values(f, family->model_type));
    note_dropout(f);
    if (quantized)
        TRY(quantized_scheme(f->file->path, quantized, &scheme));
    TRY(config_check_rotary(f));
    return refuse_layer_types(f);
}

/* ---- reading ---- */

static int read_hidden_act(const struct fields *f, struct block *glu)
{
    char supported[NAMES_BYTES];
    json_t *act = field_get(f, "hidden_act");
    const int row = json_is_string(act) ? hidden_act_find(json_string_value(act)) : -1;
    if (act && row < 0)
        return field_refuse(f, NJ_E_UNSUPPORTED, "hidden_act", act,
                            hidden_acts_supported(supported));
    glu->act = act ? row : 0;
    return 0;
}

static int read_sizes(const struct fields *f, const struct family *family, struct model_config *c,
                      struct block *blocks)
{
    struct block *attention = &blocks[PLAIN_ATTENTION];
    TRY(field_int(f, "hidden_size", 0, &c->hidden_size));
    TRY(field_int(f, "intermediate_size", 0, &blocks[PLAIN_GLU].ffn_size));
    TRY(field_int(f, "num_hidden_layers", 0, &c->layers));
    TRY(field_int(f, "num_attention_heads", 0, &attention->heads));
    TRY(field_int(f, "vocab_size", 0, &c->vocab_size));
    TRY(field_int(f, "max_position_embeddings", family->max_positions, &c->max_positions));
    const int heads = attention->heads;
    const int kv_heads = family->kv_heads ? family->kv_heads : heads;
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
    return 0;
}

static int read_fields(const struct fields *f, struct model_config *c)
{
    const struct family *family;
    double eps;
    TRY(refuse_nested(f));
    TRY(read_family(f, &family));
    TRY(refuse_features(f, family));
    struct block *blocks = config_plain_layers(c, family->model_type);
    TRY(read_hidden_act(f, &blocks[PLAIN_GLU]));
    TRY(read_sizes(f, family, c, blocks));
    TRY(read_window(f, family, c->max_positions, &blocks[PLAIN_ATTENTION]));
    TRY(refuse_switched_window(f, family, c));
    TRY(field_number(f, "rms_norm_eps", family->rms_eps, &eps));
    TRY(field_bool(f, "tie_word_embeddings", family->tied, &c->tied));
    TRY(field_token(f, "bos_token_id", &c->bos_id));
    TRY(field_token(f, "eos_token_id", &c->eos_id));
    TRY(config_rope(f, family->rope_theta, &c->arch.rope[0]));
    c->rms_eps = (float)eps;
    return config_check_file(c, f->file);
}

struct block *config_plain_layers(struct model_config *c, const char *model_type)
{
    const struct family *family = family_find(model_type);
    snprintf(c->model_type, sizeof c->model_type, "%s", family->model_type);
    c->arch = (struct arch){.kind = {LAYER_PLAIN(0, 0, 0, 0, 0)}};
    c->gain_offset = family->gain_offset;
    struct block *blocks = c->arch.kind[0].block;
    blocks[PLAIN_GLU].features = family->mlp;
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
    const struct config_file file = {.path = path};
    rc = json_is_object(root)
             ? config_from(&file, root, out)
             : fail(NJ_E_FORMAT, "%s: not a JSON object; fetch the file again", path);
    if (rc == 0)
        rc = config_refuse_unknown(&(struct fields){&file, root});
    json_decref(root);
    return rc;
}

/* Return the block of a kind in a layer; what a layer lacks is right. */
static const struct block *block_or(const struct model_config *c, int layer, enum block_kind kind,
                                    const struct block *none)
{
    const struct block *b = arch_block(&c->arch, layer, kind);
    return b ? b : none;
}

/* Check the sizes of the model and of one layer. */
static int check_layer(const struct model_config *c, int layer, const struct config_file *f)
{
    static const struct block neutral = {.heads = 1, .kv_heads = 1, .head_dim = 64, .ffn_size = 8};
    const struct block *b = block_or(c, layer, BLOCK_ATTENTION, &neutral);
    const int ffn_size = block_or(c, layer, BLOCK_GLU, &neutral)->ffn_size;
    const double theta = c->arch.rope[b->rope].theta;
    const struct {
        const char *name;
        int value;
    } sizes[] = {
        {"hidden_size", c->hidden_size},
        {"intermediate_size", ffn_size},
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
    if (!family_find(c->model_type))
        return fail(NJ_E_UNSUPPORTED, "%s: model_type is %s; %s", where, c->model_type,
                    families_supported(supported));
    if (b->head_dim != 64 && b->head_dim != CONFIG_HEAD_DIM_MOST)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s (or %s / %s) is %d; 64 and 128 are supported: use another model", where,
                    field_called(f, "head_dim").text, field_called(f, "hidden_size").text,
                    field_called(f, "num_attention_heads").text, b->head_dim);
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
                    field_called(f, "hidden_size").text, c->hidden_size,
                    field_called(f, "intermediate_size").text, ffn_size);
    const bool begins = c->bos_id >= c->vocab_size;
    if (begins || c->eos_id >= c->vocab_size)
        return fail(NJ_E_FORMAT, "%s: %s is %d; it must be below %s %d", where,
                    field_called(f, begins ? "bos_token_id" : "eos_token_id").text,
                    begins ? c->bos_id : c->eos_id, field_called(f, "vocab_size").text,
                    c->vocab_size);
    if (!(c->rms_eps > 0) || !(theta > 0))
        return fail(NJ_E_FORMAT, "%s: %s is %g, %s is %g; both must be above 0", where,
                    field_called(f, "rms_norm_eps").text, (double)c->rms_eps,
                    field_called(f, "rope_theta").text, theta);
    return 0;
}

int config_check_file(const struct model_config *c, const struct config_file *f)
{
    TRY(check_layer(c, 0, f)); /* the number of layers, too */
    for (int l = 1; l < c->layers; l++)
        if (c->arch.kind_of[l] != c->arch.kind_of[l - 1])
            TRY(check_layer(c, l, f));
    return 0;
}

int config_check(const struct model_config *c, const char *where)
{
    return config_check_file(c, &(struct config_file){.path = where});
}

int config_check_length(const struct model_config *c, int seq_len, const char *where)
{
    if (seq_len <= c->max_positions)
        return 0;
    return fail(NJ_E_ARG,
                "%s: the model has %d positions, the sequence length is %d; pass --seq-len %d "
                "or less",
                where, c->max_positions, seq_len, c->max_positions);
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

/* ---- derived ---- */

/* Return a block whose heads a table serves; NULL: it is not used. */
static const struct block *rotated(const struct model_config *c, int rope)
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
        const struct block *b = rotated(c, i);
        count += b ? block_padded_dim(b) / 2 : 0;
    }
    return count;
}

void config_inv_freq(const struct model_config *c, int positions, float *inv_freq)
{
    for (int rope = 0; rope < ROPES_MOST; rope++) {
        const struct rope *r = &c->arch.rope[rope];
        const struct block *b = rotated(c, rope);
        for (int i = 0; b && i < block_padded_dim(b) / 2; i++)
            *inv_freq++ = i < rope_rotary(r, b->head_dim) / 2
                              ? (float)(rope_frequency(r, b->head_dim, i) *
                                        rope_slowing(r, b->head_dim, i, positions))
                              : 0;
    }
}

int64_t config_parameters(const struct model_config *c)
{
    return tensors_elements(c);
}
