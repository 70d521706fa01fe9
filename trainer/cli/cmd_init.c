/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_init.c: `nojit init`: a new model folder, its shape and weights.
 */
#include <stdlib.h>
#include <string.h>

#include "base/families.h"
#include "cli/commands.h"
#include "formats/model_path.h"
#include "io/error.h"
#include "io/notes.h"
#include "model/init.h"
#include "model/model_open.h"
#include "run/run.h"

enum { PRESETS_MOST = 64 };

static int list_presets(void)
{
    struct model_config c;
    notes_to(NULL); /* a list of shapes gives none */
    for (const struct preset *p = presets; p->name != NULL; p++) {
        TRY(preset_config(p, &c));
        printf("%-20s %8.1fM parameters  %s\n", p->name, 1e-6 * (double)config_parameters(&c),
               p->summary);
    }
    return 0;
}

static int refuse_preset(const char *name)
{
    const char *known[PRESETS_MOST];
    int count = 0;
    for (const struct preset *p = presets; p->name != NULL && count < PRESETS_MOST; p++)
        known[count++] = p->name;
    const char *near = word_near(name, known, count);
    return near != NULL ? fail(NJ_E_ARG, "--preset %s: unknown; did you mean %s?", name, near)
                        : fail(NJ_E_ARG,
                               "--preset %s: unknown; `nojit init --preset list` lists them", name);
}

/* Choose the shape. like: folder of a model to resemble, "" for a preset. */
static int choose_shape(const struct settings *s, struct model_config *out, char *like)
{
    *like = '\0';
    if (s->like != NULL && s->preset != NULL)
        return fail(NJ_E_ARG,
                    "--preset %s and --like %s: the shape is that of one of them; leave "
                    "the other out",
                    s->preset, s->like);
    if (s->like != NULL) {
        TRY(model_resolve(s->like, like, PATH_BYTES));
        return source_config(like, out);
    }
    const struct preset *p = preset_find(s->preset);
    if (p == NULL)
        return refuse_preset(s->preset);
    return preset_config(p, out);
}

/* ---- the options of a shape ---- */

static const struct shape_option {
    const char *name;
    size_t from; /* offset in struct settings, where 0 stands for an option that is not given */
    enum block_kind kind; /* kind of the blocks that it changes; BLOCK_KINDS: none */
    size_t to;            /* offset in struct model_config, or in struct block */
} shape_options[] = {
#define SHAPE(name, option, field)                                                                 \
    {                                                                                              \
        name, offsetof(struct settings, option), BLOCK_KINDS, offsetof(struct model_config, field) \
    }
#define IN_BLOCKS(name, option, kind, field)                                                       \
    {                                                                                              \
        name, offsetof(struct settings, option), kind, offsetof(struct block, field)               \
    }
    SHAPE("hidden-size", hidden_size, hidden_size),
    IN_BLOCKS("intermediate-size", intermediate_size, BLOCK_GLU, ffn_size),
    IN_BLOCKS("experts", experts, BLOCK_EXPERTS, experts),
    SHAPE("num-layers", num_layers, layers),
    IN_BLOCKS("heads", heads, BLOCK_ATTENTION, heads),
    IN_BLOCKS("kv-heads", kv_heads, BLOCK_ATTENTION, kv_heads),
    IN_BLOCKS("head-dim", head_dim, BLOCK_ATTENTION, head_dim),
    SHAPE("vocab-size", vocab_size, vocab_size),
#undef IN_BLOCKS
#undef SHAPE
};
enum { SHAPE_OPTIONS = sizeof shape_options / sizeof *shape_options };

static int64_t shape_value(const struct settings *s, const struct shape_option *o)
{
    return *(const int64_t *)(const void *)((const char *)s + o->from);
}

/* Return the first option of the shape that is given, or NULL; with --layers, one that weights do not allow. */
static const char *shape_given(const struct settings *s)
{
    const bool keeps = s->layers.count > 0;
    for (int i = 0; i < SHAPE_OPTIONS; i++)
        if (shape_value(s, &shape_options[i]) != 0 &&
            !(keeps && shape_options[i].kind == BLOCK_EXPERTS))
            return shape_options[i].name;
    return s->tie_embeddings != TIE_AUTO ? "tie-embeddings" : NULL;
}

static void set_size(void *at, size_t offset, int64_t value)
{
    *(int *)(void *)((char *)at + offset) = (int)value;
}

/* Set a size of all blocks of a kind. */
static void set_in_blocks(struct model_config *c, enum block_kind kind, size_t offset,
                          int64_t value)
{
    for (int k = 0; k < LAYER_KINDS_MOST; k++)
        for (int b = 0; b < c->arch.kind[k].blocks; b++)
            if (c->arch.kind[k].block[b].kind == kind)
                set_size(&c->arch.kind[k].block[b], offset, value);
}

/* Refuse an option that changes blocks which no layer has. */
static int check_option(const struct settings *s, const struct model_config *c,
                        const struct shape_option *o)
{
    if (shape_value(s, o) == 0 || o->kind == BLOCK_KINDS ||
        arch_first(&c->arch, c->layers, o->kind))
        return 0;
    if (o->kind == BLOCK_EXPERTS)
        return fail(NJ_E_ARG, "--%s: no layer of this model has experts; leave it out", o->name);
    return fail(NJ_E_ARG,
                "--%s: all layers of this model have experts, whose sizes are those of the "
                "preset; leave it out",
                o->name);
}

/* Fit the heads: if they made up the width, they still do, unless --head-dim sets another size. */
static int fit_heads(const struct settings *s, bool filled, struct model_config *c)
{
    const struct block *b = arch_attention(&c->arch, c->layers);
    if (s->head_dim == 0 && filled) {
        const int size = c->hidden_size / b->heads;
        set_in_blocks(c, BLOCK_ATTENTION, offsetof(struct block, head_dim), size);
        if (size * b->heads != c->hidden_size || !block_heads_fit(b))
            return fail(
                NJ_E_ARG,
                "hidden size %d / %d heads = %g; as head_dim, %s are supported: give --heads and "
                "--hidden-size that make one, or --head-dim",
                c->hidden_size, b->heads, (double)c->hidden_size / b->heads, block_head_sizes(b));
    }
    if (!block_heads_fit(b))
        return fail(NJ_E_ARG, "--head-dim %d: %s are supported", b->head_dim, block_head_sizes(b));
    if (b->heads % b->kv_heads != 0)
        return fail(NJ_E_ARG,
                    "%d query heads are not a multiple of %d key-value heads; give --heads and "
                    "--kv-heads that fit",
                    b->heads, b->kv_heads);
    return 0;
}

static void set_shape(const struct settings *s, struct model_config *c)
{
    for (int i = 0; i < SHAPE_OPTIONS; i++) {
        const struct shape_option *o = &shape_options[i];
        const int64_t value = shape_value(s, o);
        if (value != 0 && o->kind == BLOCK_KINDS)
            set_size(c, o->to, value);
        else if (value != 0)
            set_in_blocks(c, o->kind, o->to, value);
    }
    set_in_blocks(c, BLOCK_CONV, offsetof(struct block, channels), c->hidden_size);
    if (s->tie_embeddings != TIE_AUTO)
        c->tied = s->tie_embeddings == TIE_TRUE;
}

static int change_shape(const struct settings *s, struct model_config *c)
{
    const struct block *b = arch_attention(&c->arch, c->layers);
    const bool filled = b->heads * b->head_dim == c->hidden_size;
    const int layers = c->layers;
    if (shape_given(s) == NULL)
        return 0;
    for (int i = 0; i < SHAPE_OPTIONS; i++)
        TRY(check_option(s, c, &shape_options[i]));
    set_shape(s, c);
    arch_repeat(&c->arch, layers, c->layers);
    TRY(fit_heads(s, filled, c));
    return config_check(c, "the new model");
}

/* ---- layers that are kept ---- */

/* Append the layers of one word, which commas may separate; a model has `most`. */
static int add_layers(const char *word, int most, int *layers, int *count)
{
    for (const char *at = word;; at++) {
        char *end;
        const long layer = strtol(at, &end, 10);
        const int length = (int)strcspn(at, ",");
        if (end == at || end != at + length)
            return fail(NJ_E_ARG,
                        "--layers %s: '%.*s' is not the number of a layer; give numbers with "
                        "commas between, as 0,2,4",
                        word, length, at);
        if (layer < 0 || layer >= most)
            return fail(NJ_E_ARG, "--layers %s: there is no layer %.*s; --like has layers 0 to %d",
                        word, length, at, most - 1);
        for (int i = 0; i < *count; i++)
            if (layers[i] == layer)
                return fail(NJ_E_ARG, "--layers %s: layer %ld is named twice; name it once", word,
                            layer);
        layers[(*count)++] = (int)layer;
        at = end;
        if (*at == '\0')
            return 0;
    }
}

/* Keep the first --experts experts of each layer, of which it has so many. */
static int keep_experts(const struct settings *s, struct model_config *c, int experts)
{
    if (s->experts == 0)
        return 0;
    if (experts == 0)
        return fail(NJ_E_ARG, "--experts: no layer of --like has experts; leave it out");
    if (s->experts > experts)
        return fail(NJ_E_ARG, "--experts %lld: layers of --like have %d; give at most as many",
                    (long long)s->experts, experts);
    set_in_blocks(c, BLOCK_EXPERTS, offsetof(struct block, experts), s->experts);
    return config_check(c, "the new model");
}

static int keep_layers(const struct settings *s, struct model_config *c, const char *like,
                       const enum nj_tensor_type *dtype)
{
    const int most = c->layers;
    const char *const given = shape_given(s);
    if (like[0] == '\0')
        return fail(NJ_E_ARG, "--layers needs --like, the model whose layers are kept");
    if (given != NULL)
        return fail(NJ_E_ARG,
                    "--layers keeps weights, which --%s would make random; leave one of them out "
                    "(--num-layers N: N random layers)",
                    given);
    const struct block *b = arch_first(&c->arch, most, BLOCK_EXPERTS);
    const int experts = b ? b->experts : 0;
    TRY(keep_experts(s, c, experts));
    int *layers = calloc((size_t)most, sizeof *layers);
    if (layers == NULL)
        return fail(NJ_E_NOMEM, "out of memory for a list of %d layers", most);
    int rc = 0;
    c->layers = 0;
    for (size_t i = 0; i < s->layers.count && rc == 0; i++)
        rc = add_layers(s->layers.path[i], most, layers, &c->layers);
    if (rc == 0)
        arch_keep(&c->arch, layers, c->layers);
    if (rc == 0)
        rc = init_from_layers(s->out, c, like, layers, experts, dtype, s->shard_bytes);
    if (rc == 0)
        printf(
            "%s: %s, %.1fM parameters: %d of %d layers of %s, and its embeddings and final norm\n",
            s->out, c->model_type, 1e-6 * (double)config_parameters(c), c->layers, most, s->like);
    free(layers);
    return rc;
}

/* Refuse the shape of a family whose models are not written. */
static int check_written(const struct settings *s, const struct model_config *c)
{
    if (!(family_find(c->model_type)->fields & FIELDS_OSS))
        return 0;
    return fail(NJ_E_UNSUPPORTED,
                "%s %s: models of %s are read, not written; `nojit plan --teacher` takes it",
                s->preset != NULL ? "--preset" : "--like", s->preset != NULL ? s->preset : s->like,
                c->model_type);
}

int cmd_init(const struct settings *s)
{
    /* Types by enum dtype_choice; auto is the type of most Hugging Face folders. */
    static const enum nj_tensor_type stored[] = {NJ_TYPE_BF16, NJ_TYPE_F32, NJ_TYPE_BF16,
                                                 NJ_TYPE_F16};
    struct model_config c;
    char like[PATH_BYTES];
    if (s->preset != NULL && strcmp(s->preset, "list") == 0)
        return list_presets();
    const struct needed needed[] = {{"preset or --like", s->preset != NULL || s->like != NULL},
                                    {"out", s->out != NULL},
                                    {NULL}};
    TRY(run_needs("init", needed));
    TRY(choose_shape(s, &c, like));
    TRY(check_written(s, &c));
    if (s->layers.count > 0)
        return keep_layers(s, &c, like, s->dtype == DTYPE_AUTO ? NULL : &stored[s->dtype]);
    TRY(change_shape(s, &c));
    TRY(init_model(s->out, &c, (uint64_t)s->seed, stored[s->dtype], s->shard_bytes,
                   like[0] != '\0' ? like : NULL));
    printf("%s: %s, %.1fM random parameters\n", s->out, c.model_type,
           1e-6 * (double)config_parameters(&c));
    return 0;
}
