#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A step of on-policy distillation with transformers: torch_on_policy.py STUDENT TEACHER PROMPTS.jsonl TOKENS MICRO

The student answers all prompts (generate() with a static cache, end tokens ignored), TOKENS each; then, MICRO answers at a time, both
models read them and the reverse KL divergence over the whole vocabulary on the answers gives the gradient of one AdamW step. Bytes
are tokens, as in nojit where a model has no tokenizer. Prints "TRAINED GENERATION TRAINING": tokens of prompts and answers, and
seconds of the second of two steps; the first one's answers are short, so that nothing is allocated for the first time.
"""
import json
import sys
import time

import torch
from transformers import AutoModelForCausalLM


def load(path):
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16, attn_implementation="sdpa").cuda()


def reverse_kl(student, teacher, ids, prompt):
    with torch.no_grad():
        wanted = teacher(ids, use_cache=False).logits[:, prompt - 1 : -1].float().log_softmax(-1)
    got = student(ids, use_cache=False).logits[:, prompt - 1 : -1].float().log_softmax(-1)
    return (got.exp() * (got - wanted)).sum()


def step(student, teacher, optimizer, prompts, tokens, micro):
    torch.cuda.synchronize()
    start = time.perf_counter()
    student.eval()
    with torch.no_grad():
        ids = student.generate(input_ids=prompts, attention_mask=torch.ones_like(prompts), do_sample=True, temperature=1.0, top_k=0,
                               top_p=1.0, min_new_tokens=tokens, max_new_tokens=tokens, cache_implementation="static",
                               disable_compile=True, pad_token_id=0, eos_token_id=None)
    torch.cuda.synchronize()
    written = time.perf_counter()
    student.train()
    for part in ids.split(micro):
        (reverse_kl(student, teacher, part, prompts.shape[1]) / (len(ids) * tokens)).backward()
    torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    return ids.numel(), written - start, time.perf_counter() - written


def main():
    folder, teacher, prompts, tokens, micro = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
    with open(prompts) as f:
        ids = torch.tensor([list(json.loads(line)["prompt"].encode()) for line in f]).cuda()
    student, teacher = load(folder), load(teacher).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-6, fused=True)
    step(student, teacher, optimizer, ids, 8, micro)
    print(*step(student, teacher, optimizer, ids, tokens, micro))


if __name__ == "__main__":
    main()
