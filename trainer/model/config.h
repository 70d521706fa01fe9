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
enum { CONFIG_HEAD_DIM_MOST = 128 };

struct rope_scaling { /* Llama 3: factor > 0 */
    float factor, low_freq_factor, high_freq_factor;
    int original_positions;
};

struct model_config {
    char model_type[32]; /* "qwen2", "llama", ...: a row of families.h */
    int hidden_size, intermediate_size, layers, heads, kv_heads, head_dim, vocab_size;
    int max_positions;
    int bos_id, eos_id; /* -1: none */
    float rms_eps;
    double rope_theta;
    struct rope_scaling rope_scaling;
    int hidden_act; /* a row of families.h; 0: silu */
    bool tied;      /* whether the LM head is the embedding table */
    bool qkv_bias;  /* whether queries, keys and values have biases, by family */
    bool qk_norm;   /* whether queries and keys are normed, by family */
    struct arch arch;
};

/* Initializers for a model whose layers are all alike, with H query heads, K key heads of size D, a gated MLP of SiLU,
 * and these features of attention. */
#define CONFIG_PLAIN(H, K, D, ffn, attention_features)                                             \
    .intermediate_size = (ffn), .heads = (H), .kv_heads = (K), .head_dim = (D),                    \
    .qkv_bias = ((attention_features)&FEATURE_BIT(FEATURE_QKV_BIAS)) != 0,                         \
    .qk_norm = ((attention_features)&FEATURE_BIT(FEATURE_QK_NORM)) != 0,                           \
    .arch = ARCH_PLAIN(H, K, D, attention_features, ffn, 0)

/* Set the family of c, a row of families.h, and the switches that it implies. */
void config_set_family(struct model_config *c, const char *model_type);
/* Set c->arch to layers that are all alike, attention and a gated MLP, by the sizes and switches of c. */
void config_plain_layers(struct model_config *c);

/* Read and check DIR/config.json. Every refusal names the file, the field, its value and the remedy. Return 0, NJ_E_IO,
 * NJ_E_FORMAT or NJ_E_UNSUPPORTED. */
int config_read(const char *dir, struct model_config *out);
/* Check the relations between fields (heads % kv_heads, head size 64 or 128, ...). where: the place that the message
 * names. */
int config_check(const struct model_config *c, const char *where);
/* Refuse sequences longer than the positions that the model knows. where: the place that the message names. */
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
/* Return frequency i < head_dim/2 in radians per position, without scaling, and the factor that Llama 3's rule
 * multiplies it by: waves longer than the original context are slowed down by `factor`, short ones stay, and those
 * between are blended by where they lie. */
double config_frequency(const struct model_config *c, int i);
double config_slowing(const struct model_config *c, int i);
/* Fill inv_freq[head_dim/2], with scaling applied. */
void config_inv_freq(const struct model_config *c, float *inv_freq);
/* Return the number of parameters, embeddings counted once if tied. */
int64_t config_parameters(const struct model_config *c);

#endif
