/* SPDX-License-Identifier: Apache-2.0
 *
 * config.h: the shape of a model, as read from a Hugging Face config.json.
 */
#ifndef NOJIT_TRAINER_CONFIG_H
#define NOJIT_TRAINER_CONFIG_H

#include "model/arch.h"

#include <stdbool.h>
#include <stdint.h>

/* The largest sizes that config_check() accepts. */
enum { CONFIG_SIZE_MOST = 1 << 24, CONFIG_LAYERS_MOST = LAYERS_MOST, CONFIG_HEADS_MOST = 1024 };
enum { CONFIG_HEAD_DIM_MOST = 256, CONFIG_CHANNELS_MOST = 1 << 18, CONFIG_TAPS_MOST = 8 };

struct model_config {
    char model_type[32]; /* "qwen2", "llama", ...: a row of families.h */
    int hidden_size, layers, vocab_size;
    int max_positions;
    int bos_id, eos_id; /* -1: none */
    float rms_eps;      /* number added to mean squares */
    float after_eps;    /* that of norms after blocks; 0: rms_eps */
    float gain_offset;  /* number added to the gain of the final norm */
    bool tied;          /* whether the LM head is the embedding table */
    bool embed_normed;  /* whether rows of the embedding are normed, without a gain */
    /* Factors of the embeddings, of what blocks add to the residual stream, and of the logits; 0 counts as 1. */
    float embedding_scale, residual_scale, logit_scale;
    float logit_cap; /* logits y become cap tanh(y / cap); 0: they stay */
    float balance;   /* coefficient of the loss that balances experts in training; 0: none */
    struct arch arch;
};

/* Initializers for a model whose layers are all alike. */
#define CONFIG_PLAIN(H, K, D, ffn, attention_features)                                             \
    .arch.kind = {LAYER_PLAIN(H, K, D, ffn, attention_features)}
#define CONFIG_ROPE(base) .arch.rope[0].theta = (base)
/* Llama 3's rule: factor, low_freq_factor, high_freq_factor, original positions. */
#define CONFIG_ROPE_SCALING(...)                                                                   \
    .arch.rope[0].rule = ROPE_LLAMA3, .arch.rope[0].scaling = {__VA_ARGS__}

/* Set the family of c, a row of families.h, and its layers, which are all alike: attention with the features of the
 * family, and a gated MLP, without experts. Return the two blocks, whose sizes are 0. */
enum { PLAIN_ATTENTION, PLAIN_GLU };
struct block *config_plain_layers(struct model_config *c, const char *model_type);

/* Read and check DIR/config.json. Every refusal names the file, the field, its value and the remedy. Return 0, NJ_E_IO,
 * NJ_E_FORMAT or NJ_E_UNSUPPORTED. */
int config_read(const char *dir, struct model_config *out);
/* Check the relations between fields (heads % kv_heads, size of heads, ...). where: the place that the message
 * names. */
int config_check(const struct model_config *c, const char *where);
/* Return the number of positions that can be computed: those of the model, or as many of the first ones. */
int config_positions(const struct model_config *c);
/* Refuse sequences longer than these positions. where: the place that the message names. */
int config_check_length(const struct model_config *c, int seq_len, const char *where);
/* Refuse two models whose vocabularies differ by more than padding. */
int config_check_pair(const struct model_config *student, const struct model_config *teacher);
/* Return the number of tokens that both models have; teacher: NULL without one. */
int config_common_vocab(const struct model_config *student, const struct model_config *teacher);
/* Write DIR/config.json in the form that transformers reads. dtype: "bfloat16", "float16", "float32". */
int config_write(const char *dir, const struct model_config *c, const char *dtype);
/* Copy a folder's config.json for the model c, whose weights are unquantized ones of that dtype: the folder's model, or
 * some of its layers. Other fields stay as they are. */
int config_copy(const char *from, const char *to, const struct model_config *c, const char *dtype);
/* Return a block whose heads a table serves; NULL: it is not used. */
const struct block *config_rotated_block(const struct model_config *c, int rope);
/* Return the index of the first frequency of a table among those of all, one for two elements of a padded head; for
 * ROPES_MOST the number of all. */
int config_frequencies(const struct model_config *c, int rope);
/* Fill them in, in radians per position, for sequences of at most that many positions. Those of pairs that do not
 * rotate are 0. */
void config_inv_freq(const struct model_config *c, int positions, float *inv_freq);
/* Return the factor of the embeddings. In 16 bits that of Gemma is rounded to bfloat16, the type in which transformers
 * multiplies and the models were trained. */
float config_embedding_scale(const struct model_config *c, bool in_16_bits);
/* Return the width of the MLPs of layers without experts. If all layers have experts, it is that of the experts that a
 * row takes, as in published files. */
int config_dense_size(const struct model_config *c);
/* Return the number of parameters, embeddings counted once if tied. */
int64_t config_parameters(const struct model_config *c);
/* Return the number of those that a token uses: of experts, as many as a row takes. */
int64_t config_active_parameters(const struct model_config *c);

#endif
