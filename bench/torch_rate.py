#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time a step of distillation with PyTorch and transformers: torch_rate.py BATCH TOKENS STEPS NAME [TEACHER] STUDENT

bench/gpu.sh calls it (TORCH='python3 bench/torch_rate.py'). TEACHER and STUDENT are model folders, of which config.json alone is
read: weights are random, and made on the device. NAME is printed with the result, one line of JSON. It is PyTorch at its
fastest here: transformers' own modules with SDPA and, for experts, grouped_mm, bodies compiled by torch.compile, the head and the
loss compiled and computed 1,024 rows at a time with checkpointing, fused AdamW whose states are bfloat16 like the weights,
clipping. Tokens are random. --by-layer compiles each layer by itself, for models whose bodies take many minutes; --eager compiles
nothing; --device cpu is for a trial.
"""
import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM

TEMPERATURE, RATIO, ROWS, WARM = 2.0, 0.5, 1024, 3


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("batch", type=int)
    parser.add_argument("tokens", type=int)
    parser.add_argument("steps", type=int)
    parser.add_argument("name")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--by-layer", action="store_true")
    parser.add_argument("--device", default="cuda")
    return parser.parse_args()


class Model:
    """A model's body, which gives normed rows, and what its logits are made of."""

    def __init__(self, path, args):
        with torch.device(args.device):
            self.whole = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(path), dtype=torch.bfloat16, attn_implementation="sdpa")
        if hasattr(self.whole.config, "num_experts"):
            self.whole.set_experts_implementation("grouped_mm")
        self.whole.config.use_cache = False
        self.head = self.whole.lm_head.weight
        config = self.whole.config
        self.cap = getattr(config, "final_logit_softcapping", None)
        self.divisor = getattr(config, "logits_scaling", None) or 1.0
        self.body = self.whole.model
        if args.by_layer:
            for layer in self.body.layers:
                layer.compile()
        elif not args.eager:
            self.body = torch.compile(self.body)

    def rows(self, tokens):
        return self.body(tokens).last_hidden_state.flatten(0, 1)


def logits(rows, head, model):
    out = (rows @ head.t()).float() / model.divisor
    return model.cap * torch.tanh(out / model.cap) if model.cap else out


def main():
    args = arguments()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    student = Model(args.models[-1], args)
    teacher = Model(args.models[0], args) if len(args.models) > 1 else None
    vocab = min(m.head.shape[0] for m in (student, teacher) if m)
    if teacher:
        teacher.whole.eval().requires_grad_(False)
    student.whole.train()
    optimizer = torch.optim.AdamW(student.whole.parameters(), lr=1e-4, weight_decay=0.01, fused=args.device == "cuda")

    def chunk(x, target, head, known=None, known_head=None):
        y = logits(x, head, student)[:, :vocab]
        cross = F.cross_entropy(y, target, reduction="sum")
        if known is None:
            return cross
        wanted = logits(known, known_head, teacher)[:, :vocab]
        kl = F.kl_div(F.log_softmax(y / TEMPERATURE, -1), F.log_softmax(wanted / TEMPERATURE, -1), log_target=True, reduction="sum")
        return RATIO * TEMPERATURE**2 * kl + (1 - RATIO) * cross

    part = chunk if args.eager else torch.compile(chunk)
    tokens, targets = (torch.randint(0, vocab, (args.batch, args.tokens), device=args.device) for _ in range(2))

    def step():
        known = None
        if teacher:
            with torch.no_grad():
                known = teacher.rows(tokens)
        rows, target, total = student.rows(tokens), targets.flatten(), 0
        for i in range(0, len(rows), ROWS):
            more = (known[i : i + ROWS], teacher.head) if teacher else ()
            total = total + checkpoint(part, rows[i : i + ROWS], target[i : i + ROWS], student.head, *more, use_reentrant=False)
        loss = total / len(rows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.whole.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    started = time.time()
    loss = step()
    first = time.time() - started
    for _ in range(WARM):
        step()
    seconds = []
    for _ in range(args.steps):
        started = time.time()
        step()  # reads the loss, so the work is done
        seconds.append(time.time() - started)
    median = sorted(seconds)[len(seconds) // 2]
    peak = torch.cuda.max_memory_allocated() / 2**30 if args.device == "cuda" else 0
    print(json.dumps({"pair": args.name, "tok_s": round(args.batch * args.tokens / median), "ms": round(median * 1e3, 2),
                      "first_step_s": round(first, 2), "peak_gib": round(peak, 2), "loss": loss, "torch": torch.__version__}))


main()
