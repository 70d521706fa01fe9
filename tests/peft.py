#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adapters of `nojit` in PEFT and the other way round; needs torch, transformers and peft.

peft.py eval MODEL ADAPTER TEXT SEQ   held-out loss with the adapter, to compare with `nojit eval --adapter`
peft.py make MODEL OUT                a PEFT adapter of every projection with random A and B, saved by PEFT
peft.py names MODEL ADAPTER           fails unless the file holds what PEFT would save for its configuration
peft.py merge MODEL ADAPTER MERGED    fails unless PEFT merges to the weights of `nojit merge`

Run it with a folder that holds no peft.py as the working directory: `python3 -P tests/peft.py`.
"""
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


def base(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def evaluate(folder, adapter, text, seq):
    model = PeftModel.from_pretrained(base(folder), adapter).eval()
    ids = torch.tensor(list(open(text, "rb").read()) + [256])
    total, count = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(ids) - 1, seq):
            window = ids[start : start + seq + 1]
            logits = model(window[:-1][None]).logits[0].float()
            total += torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum").item()
            count += len(window) - 1
    print(f"{total / count:.9g} {count}")


def make(folder, out):
    torch.manual_seed(1)
    config = LoraConfig(r=4, lora_alpha=16, lora_dropout=0.1, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(base(folder), config)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.05)
    model.save_pretrained(out)


def names(folder, adapter):
    config = LoraConfig.from_pretrained(adapter)
    want = get_peft_model_state_dict(get_peft_model(base(folder), config))
    got = load_file(adapter + "/adapter_model.safetensors")
    shape = lambda tensors: {name: tuple(t.shape) for name, t in tensors.items()}
    assert shape(got) == shape(want), sorted(set(shape(got).items()) ^ set(shape(want).items()))[:4]
    print(f"{len(got)} tensors, as PEFT names them")


def merge(folder, adapter, merged):
    want = PeftModel.from_pretrained(base(folder), adapter).merge_and_unload().state_dict()
    got = base(merged).state_dict()
    worst = max((got[name] - tensor).abs().max().item() for name, tensor in want.items())
    assert got.keys() == want.keys() and worst < 1e-6, worst
    print(f"{len(got)} tensors, apart by {worst:.3g} at most")


if sys.argv[1] == "eval":
    evaluate(*sys.argv[2:5], int(sys.argv[5]))
else:
    {"make": make, "names": names, "merge": merge}[sys.argv[1]](*sys.argv[2:])
