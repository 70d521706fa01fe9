#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden numbers that tests/unit/test_golden_families.c holds the trainer against: make_families.py [OUT [NAME...]]

Needs torch and transformers, no GPU. oracle.py has the computation, which is in float64. transformers has no class for MiniCPM,
whose code comes with its weights: it is Granite's class with the factors that MiniCPM's config.json implies. Nor has it one for
the text of Muse Glimmer with a head, which MuseForCausalLM adds.

OUT (default: tests/golden/families) receives

    MODEL.json            the config.json of each of MODELS and FORMS; the latter write the same model as published files do
    cases.json            versions; for each model the tensors of its file, [name, shape, mean, deviation]; for each form its model;
                          for each case its pair, its options and the figures of each optimizer step; texts that the student
                          continues
    CASE.safetensors      as oracle.py says; of the batches of torch/batches.safetensors. text.logits: of each text, the logits that
                          its last token is chosen from

Weights are stored nowhere: element i of a tensor is mean + deviation * (s - 131070) / 37837, rounded to float32 and then to
bfloat16, where s is the sum of the four 16-bit parts of SplitMix64's (i + 1)-th output from a seed, FNV-1a's 64-bit hash of
the tensor's name. s is close to normally distributed. Biases that decide on the choice of experts (WIDE) stay float32.
"""
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from oracle import Float64Only, Kept, check_masks, logits_of, run_case, widen, write_tensors
from safetensors import safe_open
from safetensors.torch import save_file
from transformers.models.muse_glimmer.configuration_muse_glimmer import MuseGlimmerTextConfig
from transformers.models.muse_glimmer.modeling_muse_glimmer import MuseGlimmerPreTrainedModel, MuseGlimmerTextModel

HERE = pathlib.Path(__file__).parent
VOCAB, END_OF_TEXT = 300, 299
KEPT = Kept(steps=(5,), row_stride=40, whole=64)

SLIDING, FULL, LINEAR = "sliding_attention", "full_attention", "linear_attention"
MIXED = [SLIDING, FULL, SLIDING]
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 1e4}


def sizes(hidden, heads, kv_heads, layers, **more):
    return dict(vocab_size=VOCAB, hidden_size=hidden, intermediate_size=96, num_attention_heads=heads, num_key_value_heads=kv_heads,
                num_hidden_layers=layers, max_position_embeddings=256, rms_norm_eps=1e-3, bos_token_id=None, eos_token_id=END_OF_TEXT,
                pad_token_id=None) | more  # fmt: skip


def with_convolutions(hidden, layer_types, **more):
    fields = sizes(hidden, 2, 1, len(layer_types), layer_types=layer_types, rope_parameters=PLAIN_ROPE, **more)
    return {name: x for name, x in fields.items() if name != "rms_norm_eps"} | dict(norm_eps=1e-3)


def with_delta(value_heads, key_heads, size, layer_types, head_dim, rotary, **more):
    return sizes(64, 2, 1, len(layer_types), head_dim=head_dim, layer_types=layer_types, linear_num_value_heads=value_heads,
                 linear_num_key_heads=key_heads, linear_key_head_dim=size, linear_value_head_dim=size,
                 rope_parameters=PLAIN_ROPE | {"partial_rotary_factor": rotary}, **more)  # fmt: skip


def without_dense(fields):
    return {name: x for name, x in fields.items() if name != "intermediate_size"}


def longrope(pairs, original):
    return {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": original,
            "short_factor": [1 + 0.05 * i for i in range(pairs)], "long_factor": [1.5 + 0.25 * i for i in range(pairs)]}  # fmt: skip


YARN = {"rope_type": "yarn", "rope_theta": 5e5, "factor": 8.0, "original_max_position_embeddings": 64, "beta_fast": 16.0, "beta_slow": 1.0}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 1e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}  # fmt: skip
GRANITE = dict(embedding_multiplier=3.0, residual_multiplier=0.6, attention_multiplier=0.2, logits_scaling=1.6)
DENSE_HYBRID = dict(num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=96, layer_types=[FULL, FULL], mamba_n_heads=4,
                    mamba_d_head=64)  # fmt: skip
EXPERTS = dict(num_experts=7, num_experts_per_tok=3, moe_intermediate_size=40, norm_topk_prob=False, mlp_only_layers=[1])
CHOSEN = dict(num_experts=9, num_experts_per_tok=3, moe_intermediate_size=40)
MINICPM = dict(scale_emb=6, scale_depth=1.4, dim_model_base=64)

# Name of the class, or of the family that is computed by another, and the fields of its configuration. Windows are shorter than
# most documents; every model with layers of two kinds has both.
MODELS = {
    # norms before and after both blocks, gains less 1, norms of q and k, a score factor that is not that of the head size, and tables
    # of which only the full layers' is slowed
    "gemma3": ("Gemma3", sizes(72, 2, 1, 3, head_dim=64, query_pre_attn_scalar=40, sliding_window=11, layer_types=MIXED,
                               rope_parameters={FULL: {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e5}, SLIDING: PLAIN_ROPE})),
    "gemma3_wide": ("Gemma3", sizes(64, 2, 1, 2, head_dim=256, query_pre_attn_scalar=256, sliding_window=20, layer_types=[SLIDING, FULL],
                                    rope_parameters={FULL: {"rope_type": "default", "rope_theta": 1e6}, SLIDING: PLAIN_ROPE})),
    # a layer that does not rotate
    "smollm3": ("SmolLM3", sizes(128, 2, 1, 3, no_rope_layers=[1, 0, 1], rope_parameters={"rope_type": "default", "rope_theta": 2e6},
                                 tie_word_embeddings=True)),
    # norms after both blocks alone; q and k normalized as whole rows
    "olmo2": ("Olmo2", sizes(128, 2, 1, 2, rope_parameters={"rope_type": "default", "rope_theta": 5e5})),
    "olmo3": ("Olmo3", sizes(128, 2, 1, 3, sliding_window=13, layer_types=MIXED,
                             rope_parameters={FULL: YARN, SLIDING: {"rope_type": "default", "rope_theta": 5e5}})),
    # factors of embeddings, scores, what blocks add, and logits
    "granite": ("Granite", sizes(128, 2, 1, 2, tie_word_embeddings=True, rope_parameters=PLAIN_ROPE, **GRANITE)),
    "granite_hybrid": ("GraniteMoeHybrid", sizes(128, 2, 1, 2, tie_word_embeddings=True, rope_parameters=PLAIN_ROPE,
                                                 position_embedding_type="rope", **DENSE_HYBRID, **GRANITE)),
    "granite_nope": ("GraniteMoeHybrid", sizes(128, 2, 1, 2, position_embedding_type=None, **DENSE_HYBRID, **GRANITE)),
    # sinks, windows of some layers, a layer that does not rotate; tables of two bases
    "granite_swa": ("GraniteSWA", sizes(128, 2, 1, 3, sliding_window=11, layer_types=[FULL, SLIDING, SLIDING], tie_word_embeddings=True,
                                        rope_parameters=PLAIN_ROPE, layer_rope_theta=[0, 1e4, 1e4], **GRANITE)),
    "granite_swa_two": ("GraniteSWA", sizes(128, 2, 1, 2, sliding_window=11, rope_parameters=PLAIN_ROPE, layer_rope_theta=[1e5, 1e3],
                                            attention_bias=True, **GRANITE | {"residual_multiplier": 1.0})),
    # gates, norms without gains of embeddings, q and k, norms after blocks with another eps, bounded logits
    "muse": ("MuseGlimmerText", sizes(64, 2, 1, 2, head_dim=64, sliding_window=9, post_norm_eps=1e-2, final_logit_softcapping=12.0,
                                      output_multiplier=1.5, qk_scale_factor=0.8, rope_parameters=PLAIN_ROPE)),
    # fused tensors; heads of 96, of which 72 elements rotate; divisors of each frequency, for short and for long sequences
    "phi3": ("Phi3", sizes(192, 2, 1, 2, sliding_window=20, original_max_position_embeddings=128,
                           rope_parameters=longrope(36, 128) | {"partial_rotary_factor": 0.75})),
    "phi3_long": ("Phi3", sizes(192, 2, 1, 2, original_max_position_embeddings=32, tie_word_embeddings=True,
                                rope_parameters=longrope(36, 32) | {"partial_rotary_factor": 0.75})),
    # neighbouring elements rotate, half of a head; biases of q, k and v; norms before and after
    "glm4": ("Glm4", sizes(64, 2, 1, 2, head_dim=64, attention_bias=True, rope_parameters=PLAIN_ROPE | {"partial_rotary_factor": 0.5})),
    "ministral": ("Ministral", sizes(64, 2, 1, 3, head_dim=64, sliding_window=9, layer_types=MIXED, rope_parameters=PLAIN_ROPE)),
    # another quotient of the two factors of YaRN's amplitude than 1
    "ministral3": ("Ministral3", sizes(64, 2, 1, 2, head_dim=64, rope_parameters=YARN | {
        "original_max_position_embeddings": 128, "mscale": 0.5, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1})),
    # norms after both blocks and of q and k; full layers do not rotate if others have windows
    "exaone4": ("Exaone4", sizes(64, 2, 1, 3, head_dim=64, sliding_window=9, layer_types=MIXED, rope_parameters=LLAMA3)),
    "exaone4_full": ("Exaone4", sizes(64, 2, 1, 2, head_dim=64, sliding_window=None, layer_types=[FULL, FULL], rope_parameters=LLAMA3,
                                      tie_word_embeddings=True)),
    # biases everywhere
    "llama_biases": ("Llama", sizes(64, 2, 1, 2, head_dim=64, attention_bias=True, mlp_bias=True, rope_parameters=PLAIN_ROPE)),
    # q and k normalized after they are rotated; a base that alpha raises
    "hunyuan": ("HunYuanDenseV1", sizes(64, 2, 1, 2, head_dim=64, tie_word_embeddings=True, rope_parameters={
        "rope_type": "dynamic", "rope_theta": 1e4, "alpha": 50.0, "factor": 1.0})),
    # experts in all layers but one, of which a row takes three, with weights that do not and that do sum to 1
    "qwen3": ("Qwen3", sizes(64, 2, 1, 2, head_dim=64, rope_parameters=PLAIN_ROPE)),
    "qwen3_moe": ("Qwen3Moe", sizes(64, 2, 1, 3, head_dim=64, rope_parameters=PLAIN_ROPE, **EXPERTS)),
    "qwen3_moe_tied": ("Qwen3Moe", sizes(64, 2, 1, 2, head_dim=64, rope_parameters=PLAIN_ROPE, tie_word_embeddings=True,
                                         **EXPERTS | dict(norm_topk_prob=True, mlp_only_layers=[]))),
    # experts that are balanced
    "qwen3_moe_balanced": ("Qwen3Moe", sizes(64, 2, 1, 2, head_dim=64, rope_parameters=PLAIN_ROPE,
                                             **EXPERTS | dict(mlp_only_layers=[], output_router_logits=True, router_aux_loss_coef=0.25))),
    # a router and experts with biases, the latter with bounds that are often reached; sinks; windows; frequencies of which none is rounded
    "gpt_oss": ("GptOss", sizes(64, 2, 1, 3, head_dim=64, intermediate_size=40, sliding_window=9, layer_types=MIXED, num_local_experts=8,
                                num_experts_per_tok=3, swiglu_limit=1.25, rope_parameters=YARN | {"truncate": False})),
    # gated convolutions in the place of attention; a width that a rule makes of the one in the file
    "lfm2": ("Lfm2", with_convolutions(128, ["conv", FULL, "conv"], block_multiple_of=40, block_ffn_dim_multiplier=1.1,
                                       tie_word_embeddings=True)),
    "lfm2_taps": ("Lfm2", with_convolutions(128, [FULL, "conv"], conv_L_cache=5, block_auto_adjust_ff_dim=False,
                                            tie_word_embeddings=False)),
    # the gated delta rule in the place of attention; queries and gates of each head in one tensor, and heads of which a part rotates
    "qwen3_5": ("Qwen3_5", with_delta(4, 2, 64, [LINEAR, FULL, LINEAR], 64, 0.25)),
    "qwen3_5_tied": ("Qwen3_5", with_delta(4, 4, 128, [FULL, LINEAR], 128, 0.5, linear_conv_kernel_dim=3, tie_word_embeddings=True)),
    # the same with experts, and one that all rows take, with a gate of each row
    "qwen3_5_moe": ("Qwen3_5Moe", without_dense(with_delta(4, 2, 64, [LINEAR, FULL, LINEAR], 64, 0.25, num_experts=7, num_experts_per_tok=3,
                                                           moe_intermediate_size=40, shared_expert_intermediate_size=72))),
    "qwen3_5_moe_tied": ("Qwen3_5Moe", without_dense(with_delta(4, 4, 128, [FULL, LINEAR], 128, 0.5, num_experts=6, num_experts_per_tok=1,
                                                                moe_intermediate_size=40, shared_expert_intermediate_size=24,
                                                                tie_word_embeddings=True))),
    # the same, but that files hold the rows of the delta rule's products by key head; a layer without experts
    "qwen3_next": ("Qwen3Next", with_delta(8, 2, 64, [LINEAR, FULL, LINEAR], 64, 0.25, shared_expert_intermediate_size=48, **EXPERTS)),
    "qwen3_next_tied": ("Qwen3Next", with_delta(4, 4, 64, [FULL, LINEAR], 128, 0.5, shared_expert_intermediate_size=24,
                                                tie_word_embeddings=True, **EXPERTS | dict(norm_topk_prob=True, mlp_only_layers=[]))),
    # convolutions and experts, whose choice a bias decides on that is large beside the differences of scores; then without that bias
    "lfm2_moe": ("Lfm2Moe", with_convolutions(128, ["conv", FULL, "conv"], num_dense_layers=1, routed_scaling_factor=1.75, **CHOSEN)),
    "lfm2_moe_taps": ("Lfm2Moe", with_convolutions(128, [FULL, "conv"], conv_L_cache=5, num_dense_layers=0, use_expert_bias=False,
                                                   tie_word_embeddings=False, routed_scaling_factor=0.5,
                                                   **CHOSEN | dict(norm_topk_prob=False))),
    # groups of experts of which a row may choose from two, the same bias, a shared expert without gates; biases and partial rotations
    "glm4_moe": ("Glm4Moe", sizes(64, 2, 1, 3, head_dim=64, attention_bias=True, n_routed_experts=12, n_group=4, topk_group=2, n_shared_experts=2,
                                  num_experts_per_tok=3, moe_intermediate_size=40, first_k_dense_replace=1, routed_scaling_factor=1.75,
                                  rope_parameters=PLAIN_ROPE | {"partial_rotary_factor": 0.5})),
    "glm4_moe_tied": ("Glm4Moe", sizes(64, 2, 1, 2, head_dim=64, n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=40,
                                       first_k_dense_replace=0, norm_topk_prob=False, routed_scaling_factor=0.25,
                                       tie_word_embeddings=True,
                                       rope_parameters=PLAIN_ROPE | {"partial_rotary_factor": 1.0})),
    "minicpm": ("MiniCPM", sizes(128, 2, 1, 2, rope_parameters=PLAIN_ROPE, **MINICPM)),
    "minicpm_tied": ("MiniCPM", sizes(128, 2, 1, 2, rope_parameters=longrope(32, 128), tie_word_embeddings=True, **MINICPM)),
}  # fmt: skip
# Models that are teachers in their case, and continue the texts of a case in the place of its student.
WRITERS = {name: name for name in ("qwen3_moe", "qwen3_moe_tied", "gpt_oss", "qwen3_5_moe", "qwen3_5_moe_tied", "qwen3_next",
                                "qwen3_next_tied", "lfm2_moe", "lfm2_moe_taps",
                                "glm4_moe", "glm4_moe_tied")}
# Fields of published files of older versions: model, fields that go, fields that come.
FORMS = {
    "gemma3_published": ("gemma3", ["layer_types", "rope_parameters"], dict(
        sliding_window_pattern=2, rope_theta=1e5, rope_local_base_freq=1e4, rope_scaling={"factor": 8.0, "rope_type": "linear"})),
    "smollm3_published": ("smollm3", ["layer_types", "rope_parameters"], dict(rope_theta=2e6, rope_scaling=None)),
    "olmo3_published": ("olmo3", ["rope_parameters"], dict(
        rope_theta=5e5, rope_scaling={name: x for name, x in YARN.items() if name != "rope_theta"})),
    "granite_hybrid_published": ("granite_hybrid", ["rope_parameters"], dict(layer_types=["attention", "attention"], rope_theta=1e4)),
    "phi3_published": ("phi3", ["rope_parameters"], dict(
        rope_theta=1e4, partial_rotary_factor=0.75,
        rope_scaling={"type": "longrope"} | {name: longrope(36, 128)[name] for name in ("short_factor", "long_factor")})),
    "glm4_published": ("glm4", ["rope_parameters"], dict(rope_theta=1e4, partial_rotary_factor=0.5)),
    "exaone4_published": ("exaone4", ["layer_types", "rope_parameters"], dict(
        sliding_window_pattern=2, rope_theta=1e5, rope_scaling={name: x for name, x in LLAMA3.items() if name != "rope_theta"})),
    "lfm2_published": ("lfm2", ["layer_types", "intermediate_size", "rope_parameters", "tie_word_embeddings"], dict(
        full_attn_idxs=[1], block_ff_dim=96, block_dim=128, block_norm_eps=1e-3, conv_dim=128, rope_theta=1e4, tie_embedding=True)),
    "qwen3_5_published": ("qwen3_5", ["layer_types"], dict(
        full_attention_interval=2, attn_output_gate=True, mamba_ssm_dtype="float32", mtp_num_hidden_layers=1,
        rope_parameters=PLAIN_ROPE | {"partial_rotary_factor": 0.25, "mrope_interleaved": True, "mrope_section": [4, 2, 2]})),
    "qwen3_5_moe_published": ("qwen3_5_moe", ["layer_types"], dict(
        full_attention_interval=2, attn_output_gate=True, mamba_ssm_dtype="float32", mtp_num_hidden_layers=1, mlp_only_layers=[],
        rope_parameters=PLAIN_ROPE | {"partial_rotary_factor": 0.25, "mrope_interleaved": True, "mrope_section": [4, 2, 2]})),
    "qwen3_next_published": ("qwen3_next", ["layer_types", "rope_parameters"], dict(
        full_attention_interval=2, rope_theta=1e4, rope_scaling=None, partial_rotary_factor=0.25)),
    "lfm2_moe_published": ("lfm2_moe", ["rope_parameters", "tie_word_embeddings"], dict(rope_theta=1e4, conv_bias=False)),
    "glm4_moe_published": ("glm4_moe", ["rope_parameters"], dict(
        rope_theta=1e4, rope_scaling=None, partial_rotary_factor=0.5, num_nextn_predict_layers=1, use_qk_norm=False)),
    "hunyuan_published": ("hunyuan", ["rope_parameters"], dict(
        rope_theta=1e4, rope_scaling={"alpha": 50.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                                      "type": "dynamic"})),
}  # fmt: skip

# Names as in struct train_options; make_golden.py says why eps is so large.
OPTIONS = dict(
    batch_size=2, seq_len=96, grad_accum=1, steps=5, warmup_steps=2, temperature=2.0, kd_ratio=0.5, objective="kl", beta=0.0, lr=2e-3,
    min_lr_ratio=0.1, weight_decay=0.1, beta1=0.9, beta2=0.95, eps=5e-3, max_grad_norm=1.0)  # fmt: skip
CASES = {
    "gemma3": ("gemma3", "gemma3_wide", {}),
    "gemma3_wide": ("gemma3_wide", "gemma3", dict(temperature=1.5)),
    "smollm3": ("smollm3", "llama_biases", {}),
    "olmo2": ("olmo2", "olmo3", dict(kd_ratio=0.8)),
    "olmo3": ("olmo3", "olmo2", dict(beta=1.0, temperature=1.0)),
    "granite": ("granite", "granite_hybrid", dict(beta=0.5, kd_ratio=0.9, max_grad_norm=0.2)),
    "granite_hybrid": ("granite_hybrid", "granite", {}),
    "granite_nope": ("granite_nope", "granite_hybrid", {}),
    "granite_swa": ("granite_swa", "granite_swa_two", {}),
    "granite_swa_two": ("granite_swa_two", "granite_swa", dict(grad_accum=2)),
    "muse": ("muse", "granite_swa", {}),
    "muse_distance": ("muse", "granite_swa_two", dict(objective="tvd", kd_ratio=0.9, temperature=1.5, max_grad_norm=0.5)),
    "phi3": ("phi3", "phi3_long", {}),
    "phi3_long": ("phi3_long", "phi3", dict(grad_accum=2)),
    "glm4": ("glm4", "ministral3", {}),
    "ministral": ("ministral", "glm4", {}),
    "ministral3": ("ministral3", "ministral", {}),
    "exaone4": ("exaone4", "hunyuan", {}),
    "exaone4_full": ("exaone4_full", "exaone4", {}),
    "llama_biases": ("llama_biases", "smollm3", {}),
    "hunyuan": ("hunyuan", "exaone4_full", {}),
    "qwen3_moe": ("qwen3", "qwen3_moe", {}),
    "qwen3_moe_tied": ("qwen3", "qwen3_moe_tied", dict(temperature=1.5, kd_ratio=0.9)),
    "qwen3_moe_student": ("qwen3_moe", "qwen3", dict(kd_ratio=0.9)),
    "qwen3_moe_balanced": ("qwen3_moe_balanced", "qwen3_moe_tied", dict(grad_accum=2)),
    "gpt_oss": ("qwen3", "gpt_oss", {}),
    "lfm2": ("lfm2", "lfm2_taps", {}),
    "lfm2_taps": ("lfm2_taps", "lfm2", dict(grad_accum=2)),
    "qwen3_5": ("qwen3_5", "qwen3_5_tied", {}),
    "qwen3_5_tied": ("qwen3_5_tied", "qwen3_5", dict(grad_accum=2)),
    "qwen3_5_moe": ("qwen3", "qwen3_5_moe", {}),
    "qwen3_5_moe_tied": ("qwen3", "qwen3_5_moe_tied", dict(temperature=1.5, kd_ratio=0.9)),
    "qwen3_next": ("qwen3", "qwen3_next", {}),
    "qwen3_next_tied": ("qwen3", "qwen3_next_tied", dict(temperature=1.5, kd_ratio=0.9)),
    "lfm2_moe": ("qwen3", "lfm2_moe", {}),
    "lfm2_moe_taps": ("qwen3", "lfm2_moe_taps", dict(temperature=1.5, kd_ratio=0.9)),
    "glm4_moe": ("qwen3", "glm4_moe", {}),
    "glm4_moe_tied": ("qwen3", "glm4_moe_tied", dict(temperature=1.5, kd_ratio=0.9)),
    "minicpm": ("minicpm", "minicpm_tied", {}),
    "minicpm_tied": ("minicpm_tied", "minicpm", {}),
}

# Texts that are continued greedily. A token is kept only if the next best is less likely by so much of the largest logit that no
# rounding of float32 makes it the better one, and a text only if the last logits of the same model in bfloat16 are within half of the
# bound for 16 bits in golden_case.h: attention of others amplifies roundings too much to compare anything.
TEXTS, LONGEST, GENERATED, MARGIN, NARROW = 4, 60, 40, 2e-3, 1.5e-2


# ---- models ----


class MuseForCausalLM(MuseGlimmerPreTrainedModel):
    """The head and the bound of logits that MuseGlimmerForConditionalGeneration has."""

    config_class, config = MuseGlimmerTextConfig, MuseGlimmerTextConfig

    def __init__(self, config):
        super().__init__(config)
        self.model = MuseGlimmerTextModel(config)
        self.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def forward(self, ids, **inputs):
        cap = self.config.final_logit_softcapping
        z = self.lm_head(self.model(ids, **inputs).last_hidden_state) * self.config.output_multiplier
        return transformers.modeling_outputs.CausalLMOutput(logits=torch.tanh(z / cap) * cap)


transformers.AutoModelForCausalLM.register(MuseGlimmerTextConfig, MuseForCausalLM, exist_ok=True)


def granite_of_minicpm(fields):
    """MiniCPM's remote code, modeling_minicpm.py: embeddings * scale_emb, what blocks add * scale_depth / sqrt(layers), and the last
    hidden state / (hidden_size / dim_model_base)."""
    scale = {"embedding_multiplier": float(fields["scale_emb"]), "attention_multiplier": 64**-0.5,
             "residual_multiplier": fields["scale_depth"] / fields["num_hidden_layers"] ** 0.5,
             "logits_scaling": fields["hidden_size"] / fields["dim_model_base"]}  # fmt: skip
    return transformers.GraniteConfig(**{name: x for name, x in fields.items() if name not in MINICPM} | scale)


def config_of(family, fields):
    if family == "MiniCPM":
        return granite_of_minicpm(fields)
    return getattr(transformers, family + ("Text" if family in ("Gemma3", "Qwen3_5", "Qwen3_5Moe") else "") + "Config")(**fields)


EAGER = dict(attn_implementation="eager", experts_implementation="eager")


def build(config):
    dtype = torch.get_default_dtype()
    return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, **EAGER).eval()


def config_file(family, fields, config):
    """What the model's config.json says."""
    said = json.loads(config.to_json_string(use_diff=family != "MiniCPM"))
    if family == "MiniCPM":
        said = {name: x for name, x in said.items() if "multiplier" not in name and name not in ("logits_scaling", "rope_parameters")}
        rope = dict(fields["rope_parameters"])
        said |= {"model_type": "minicpm", "rope_theta": rope.pop("rope_theta"), "hidden_act": "silu"}
        said |= {"rope_scaling": None if rope["rope_type"] == "default" else rope} | {name: fields[name] for name in MINICPM}
    return said | {"architectures": [family + ("Model" if family == "MuseGlimmerText" else "ForCausalLM")], "dtype": "bfloat16"}


WIDE = ("expert_bias", "e_score_correction_bias")


def value(name, shape, mean, deviation):
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    with np.errstate(over="ignore"):
        x = np.uint64(seed) + np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        x = x ^ x >> np.uint64(31)
    s = sum((x >> np.uint64(16 * part) & np.uint64(0xFFFF)).astype(np.float64) for part in range(4))
    x = torch.from_numpy((mean + deviation * ((s - 131070) / 37837)).astype(np.float32)).reshape(shape)
    return x if name.endswith(WIDE) else x.bfloat16()


def spread(name, tensor):
    """Sizes that give logits of order 1, gains and biases that differ from each other: mean and deviation. Experts add little, as
    rounding to 16 bits changes the choice of some rows."""
    if name.endswith(WIDE):
        return 7.0, 0.2
    if "A_log" in name:  # states that last for some documents
        return -3.0, 1.0
    if tensor.dim() == 1 or name.endswith("_bias"):
        return float(tensor.float().mean().round()), 1.0 if "sinks" in name else 0.03 if "down_proj_bias" in name else 0.3
    if tensor.dim() == 3 and ".experts." not in name:  # taps
        return 0.0, 0.5
    size = 2.5 if "embed" in name or "lm_head" in name else 0.1 if ".experts." in name and ("down_proj" in name or ".w2" in name) else 1.0
    return 0.0, round(size / tensor.shape[1] ** 0.5, 6)


def tensors_of(model):
    """The tensors of the file that save_pretrained() writes."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with safe_open(pathlib.Path(folder) / "model.safetensors", "pt") as file:
            at_first = {name: file.get_tensor(name) for name in file.keys()}
    return [[name, list(x.shape), *spread(name, x)] for name, x in at_first.items()]


def load(config, tensors):
    """The model with its weights, built in float64, its rotary frequencies too."""
    with Float64Only():
        model = build(config)
    stored = {name: value(name, *how) for name, *how in tensors}
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        save_file({name: x.bfloat16() for name, x in stored.items()}, pathlib.Path(folder) / "model.safetensors", metadata={"format": "pt"})
        read, report = type(model).from_pretrained(folder, dtype=torch.bfloat16, output_loading_info=True, **EAGER)
    assert not any(report.values()), report
    model.load_state_dict({name: x.double() for name, x in read.state_dict().items()})
    for name, x in stored.items():
        if name.endswith(WIDE):
            model.get_buffer(name).copy_(x.double())
    assert all(b.dtype == torch.float64 for b in model.buffers())
    return model.eval()


# ---- cases ----


def check(model, batch):
    """A sequence of nojit is long if its row is, one of transformers if its longest document is."""
    rope = getattr(model.config, "rope_parameters", None) or {}
    if rope.get("rope_type") != "longrope":
        return check_masks(model, batch)
    original, longest = rope["original_max_position_embeddings"], batch["pos"].max() + 1
    assert longest > original or batch["ids"].shape[1] <= original


def last_logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0, -1]


def follow(model, prompt):
    """Tokens, each the likeliest after all before it, and the logits that the last one is chosen from."""
    ids, last = [], None
    with Float64Only():
        while len(ids) < GENERATED:
            logits = last_logits(model, prompt + ids)
            best, second = logits.topk(2).values.tolist()
            if best - second < MARGIN * logits.abs().max():
                break
            last = logits
            ids.append(int(logits.argmax()))
    return ids, last


def continued(model, narrow, least):
    rng = np.random.default_rng(5)
    texts, logits = [], []
    while len(texts) < TEXTS:
        prompt = [int(x) for x in rng.integers(0, END_OF_TEXT, int(rng.integers(least, LONGEST + 1)))]
        ids, last = follow(model, prompt)
        if len(ids) < GENERATED // 2:
            continue
        apart = (last_logits(narrow, (prompt + ids)[:-1]).double() - last).abs().max() / last.abs().max()
        if apart < NARROW:
            texts.append({"prompt": prompt, "continued": ids})
            logits.append(last)
    return texts, torch.stack(logits)


def narrowed(model):
    """The model in bfloat16, but for what stays float32."""
    wide = {name: b.float() for name, b in model.named_buffers() if name.endswith(WIDE)}
    model.bfloat16()
    for name, b in wide.items():
        model.get_buffer(name).data = b
    return model


def check_form(name, form, wanted, batch):
    """transformers reads the published form as the same model."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(form))
        config = transformers.AutoConfig.from_pretrained(folder)
    with Float64Only():
        model = build(config)
        model.load_state_dict(wanted.state_dict())
        assert torch.allclose(logits_of(model.eval(), batch), logits_of(wanted, batch), rtol=1e-12, atol=1e-12), name


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def in_rows(said):
    """JSON with a line for each model and each case, so that a change of one is a change of a line."""
    def rows(v):
        if isinstance(v, dict):
            return "{\n" + ",\n".join(f"{compact(k)}:{compact(x)}" for k, x in v.items()) + "\n}"
        return "[\n" + ",\n".join(map(compact, v)) + "\n]"
    return "{" + ",\n".join(f"{compact(k)}:{rows(v)}" for k, v in said.items()) + "}\n"


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "families")
    chosen = sys.argv[2:] or CASES
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # one order of sums
    transformers.utils.logging.disable_progress_bar()
    with safe_open(HERE / "torch/batches.safetensors", "pt") as file:
        rows = {name: file.get_tensor(name).long() for name in file.keys()}
    tensors, files = {}, {}
    for name, (family, fields) in MODELS.items():
        config = config_of(family, fields)
        files[name] = config_file(family, fields, config)
        tensors[name] = tensors_of(build(config))
    for name, (model, gone, come) in FORMS.items():
        files[name] = {field: x for field, x in files[model].items() if field not in gone} | come
    for name, said in files.items():
        (out / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")
    widen()
    versions = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
    open_model = lambda name: load(config_of(*MODELS[name]), tensors[name])
    for name, (model, _, _) in FORMS.items():
        check_form(name, files[name], open_model(model), {k: x[:2] for k, x in rows.items()})
    cases = []
    for name in chosen:
        student, teacher, changes = CASES[name]
        o = OPTIONS | changes
        models = open_model(student), open_model(teacher)
        with Float64Only():
            kept, figures = run_case(*models, rows, o, KEPT, check)
        # transformers chooses the divisors of a long sequence by the sequence, nojit by what the decoder has room for
        least = 33 if student == "phi3_long" else 1
        writer = WRITERS.get(name, student)
        texts, last = continued(open_model(writer), narrowed(open_model(writer)), least)
        write_tensors(out / f"{name}.safetensors", kept | {"text.logits": last})
        cases.append({"name": name, "student": student, "teacher": teacher, "options": o, "steps": figures, "texts": texts}
                     | ({"writer": writer} if writer != student else {}))
        norms = [f["grad_norm"] for f in figures]
        print(f"{name}: loss {figures[0]['loss']:.6f} -> {figures[-1]['loss']:.6f}, gradient norms {min(norms):.3f} to {max(norms):.3f}, "
              f"logits up to {kept['student.all_logits'][1]:.1f}, {sum(len(t['continued']) for t in texts)} tokens")  # fmt: skip
        assert o["max_grad_norm"] < max(norms), "nothing would be clipped"
    said = {"versions": versions, "models": tensors, "forms": {name: form[0] for name, form in FORMS.items()}, "cases": cases}
    (out / "cases.json").write_text(in_rows(said))


if __name__ == "__main__":
    main()
