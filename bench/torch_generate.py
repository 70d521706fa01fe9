#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time transformers' generate() on the prompts of bench/decode.sh: torch_generate.py MODEL PROMPTS.jsonl [--compile]

Bytes are tokens, as nojit has them where a model has no tokenizer. All prompts are one batch, padded on the left to the longest;
all get as many tokens as the longest answer has, since a batch of generate() ends as a whole. Prints "TOKENS SECONDS", where
TOKENS are those that the file asks for. A short batch goes before, so that nothing is compiled or allocated for the first time.
"""
import argparse
import json
import time

import torch
from transformers import AutoModelForCausalLM


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("prompts")
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    with open(a.prompts) as f:
        rows = [json.loads(line) for line in f]
    ids = [list(row["prompt"].encode()) for row in rows]
    most = max(row["max_tokens"] for row in rows)
    longest = max(map(len, ids))
    model = AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.bfloat16, attn_implementation="sdpa").cuda().eval()
    batch = torch.tensor([[0] * (longest - len(i)) + i for i in ids]).cuda()
    mask = torch.tensor([[0] * (longest - len(i)) + [1] * len(i) for i in ids]).cuda()

    def write(tokens):
        return model.generate(input_ids=batch, attention_mask=mask, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
                              min_new_tokens=tokens, max_new_tokens=tokens, cache_implementation="static",
                              disable_compile=not a.compile, pad_token_id=0, eos_token_id=None)

    with torch.no_grad():
        write(most if a.compile else 8)
        torch.cuda.synchronize()
        start = time.perf_counter()
        out = write(most)
        torch.cuda.synchronize()
    assert out.shape[1] == longest + most
    print(sum(row["max_tokens"] for row in rows), time.perf_counter() - start)


if __name__ == "__main__":
    main()
