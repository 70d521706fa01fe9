#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Continue prompts by llama.cpp: llama_cpp_answers.py MODEL.gguf TOKENS OUT PROMPT_FILE...

For each prompt: the greedy continuation of TOKENS tokens, and the log-probabilities that llama.cpp gives its tokens. OUT receives
items of `nojit eval --tasks`, one a prompt: the continuation is the first choice, a full stop the second, and
`llama_cpp` is the sum of the log-probabilities. Needs the package xllamacpp.
"""
import json
import pathlib
import sys

import xllamacpp


def main():
    model, tokens, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 2048
    params.n_gpu_layers = 0
    params.warmup = False
    server = xllamacpp.Server(params)
    with open(out, "w", encoding="utf-8") as f:
        for path in sys.argv[4:]:
            prompt = pathlib.Path(path).read_text(encoding="utf-8")
            answer = server.handle_completions({"prompt": prompt, "max_tokens": tokens, "temperature": 0, "logprobs": 1})
            choice = answer["choices"][0]
            total = sum(t["logprob"] for t in choice["logprobs"]["content"])
            item = {"task": "llama.cpp", "context": prompt, "choices": [choice["text"], "."], "answer": 0, "llama_cpp": total,
                    "tokens": len(choice["logprobs"]["content"])}
            print(json.dumps(item), file=f)


main()
