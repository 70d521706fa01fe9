#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Held-out loss by transformers, to compare with `nojit eval`: hf_loss.py MODEL TEXT SEQ [cuda]

Bytes as tokens, one document that ends with 256, windows of SEQ + 1 tokens that share their border token.
Prints the mean cross-entropy in nats.
"""
import sys

import torch
from transformers import AutoModelForCausalLM

folder, text, seq = sys.argv[1], sys.argv[2], int(sys.argv[3])
device = sys.argv[4] if len(sys.argv) > 4 else "cpu"
dtype = torch.bfloat16 if device == "cuda" and "--bf16" in sys.argv else torch.float32
model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device).eval()
ids = torch.tensor(list(open(text, "rb").read()) + [256])
total, count = 0.0, 0
with torch.no_grad():
    for start in range(0, len(ids) - 1, seq):
        window = ids[start : start + seq + 1].to(device)
        logits = model(window[:-1][None]).logits[0].float()
        total += torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum").item()
        count += len(window) - 1
print(f"{total / count:.9g} {count}")
