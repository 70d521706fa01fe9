#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Open nojit's folders with transformers and PEFT, and make folders with them; needs torch, transformers, for adapters peft.

clients.py make OUT                          models with random weights, saved by transformers: OUT/SHAPE for all SHAPES
clients.py loss TEXT SEQ MODEL[:ADAPTER]...  a line each: held-out loss in nats, to compare with `nojit eval`
clients.py peft-make MODEL OUT               an adapter of every projection with random A and B, saved by PEFT
clients.py peft-names MODEL ADAPTER          fails unless the file holds what PEFT would save for its configuration
clients.py peft-merge MODEL ADAPTER MERGED   fails unless PEFT merges to the weights of `nojit merge`

DEVICE=cuda and DTYPE=bfloat16 are where and how losses are computed, else on the CPU in float32.
"""
import os
import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

SMALL = dict(vocab_size=264, num_hidden_layers=2, max_position_embeddings=512, bos_token_id=None, eos_token_id=256)
SCALED = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}


def sizes(hidden, intermediate, heads, kv_heads, head_dim, theta, tied):
    return SMALL | dict(
        hidden_size=hidden, intermediate_size=intermediate, num_attention_heads=heads, num_key_value_heads=kv_heads,
        head_dim=head_dim, rope_parameters={"rope_type": "default", "rope_theta": theta}, tie_word_embeddings=tied)


# Small models in the proportions of families: configuration, type of the weights, bytes of a shard.
SHAPES = {
    "qwen2": (Qwen2Config(**sizes(128, 96, 2, 1, 64, 1e6, True)), torch.bfloat16, "5GB"),
    "qwen3": (Qwen3Config(**sizes(72, 96, 2, 1, 128, 1e6, False)), torch.float16, "5GB"),
    "llama3": (LlamaConfig(**sizes(128, 192, 4, 2, 64, 5e5, False) | {"rope_parameters": SCALED}), torch.float32, "200KB"),
    "smollm2": (LlamaConfig(**sizes(192, 256, 3, 1, 64, 1e5, True)), torch.float32, "5GB"),
    "mistral": (LlamaConfig(**sizes(128, 448, 4, 1, 128, 1e6, False)), torch.bfloat16, "300KB"),
}


def make(out):
    for name, (config, dtype, shard) in SHAPES.items():
        torch.manual_seed(1)
        model = AutoModelForCausalLM.from_config(config)
        for parameter in model.parameters():  # gains and biases that differ, logits that are not flat
            parameter.data += 0.1 * torch.randn(parameter.shape)
        model.to(dtype).save_pretrained(f"{out}/{name}", max_shard_size=shard)


def base(folder, dtype=torch.float32):
    model, report = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"], report
    return model.eval()


def loss(text, seq, *models):
    """Bytes as tokens, one document that ends with 256, windows of SEQ + 1 tokens that share their border token."""
    device, dtype = os.environ.get("DEVICE", "cpu"), getattr(torch, os.environ.get("DTYPE", "float32"))
    ids, seq = torch.tensor(list(open(text, "rb").read()) + [256]), int(seq)
    for name in models:
        folder, _, adapter = name.partition(":")
        model = base(folder, dtype)
        if adapter:
            from peft import PeftModel

            model = PeftModel.from_pretrained(model, adapter).eval()
        model, total, count = model.to(device), 0.0, 0
        with torch.no_grad():
            for start in range(0, len(ids) - 1, seq):
                window = ids[start : start + seq + 1].to(device)
                logits = model(window[:-1][None]).logits[0].float()
                total += torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum").item()
                count += len(window) - 1
        print(f"{total / count:.9g}")


def peft_make(folder, out):
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(1)
    config = LoraConfig(r=4, lora_alpha=16, lora_dropout=0.1, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(base(folder), config)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.05)
    model.save_pretrained(out)


def peft_names(folder, adapter):
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict

    config = LoraConfig.from_pretrained(adapter)
    want = get_peft_model_state_dict(get_peft_model(base(folder), config))
    got = load_file(adapter + "/adapter_model.safetensors")
    shape = lambda tensors: {name: tuple(t.shape) for name, t in tensors.items()}
    assert shape(got) == shape(want), sorted(set(shape(got).items()) ^ set(shape(want).items()))[:4]
    print(f"{len(got)} tensors, as PEFT names them")


def peft_merge(folder, adapter, merged):
    from peft import PeftModel

    want = PeftModel.from_pretrained(base(folder), adapter).merge_and_unload().state_dict()
    got = base(merged).state_dict()
    worst = max((got[name] - tensor).abs().max().item() for name, tensor in want.items())
    assert got.keys() == want.keys() and worst < 1e-6, worst
    print(f"{len(got)} tensors, apart by {worst:.3g} at most")


COMMANDS = {"make": make, "loss": loss, "peft-make": peft_make, "peft-names": peft_names, "peft-merge": peft_merge}
COMMANDS[sys.argv[1]](*sys.argv[2:])
