#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run of nojit once more, with PyTorch and transformers: torch_distill.py RUN OUT [--micro N] [--exact] [--device D]

RUN/receipt.json says what to do: models, a raw .u32 file of tokens without an end of text, --seed 0 (rows in the order of the
file), objective, schedule, clipping, AdamW. Writes OUT/metrics.jsonl with the fields of nojit's. Like nojit it keeps float32
master weights and moments; in bfloat16 the model computes with a rounded copy of them. --micro splits each batch into N parts
whose gradients are summed: the same step, rounded elsewhere. --exact computes in float32 whatever the run did (on a GPU with
products in TF32, whose rounding is an eighth of bfloat16's).
"""
import argparse
import copy
import json
import math
import os

import numpy
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM
from transformers.utils import logging


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("out")
    parser.add_argument("--micro", type=int, default=1)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def expect(what, got, wanted):
    if got != wanted:
        raise SystemExit(f"torch_distill: the run has {what} {got!r}; only {wanted!r} is done here")


def batches(options, applied):
    """Inputs and targets of each step: rows of the file, one after the other."""
    rows, length = applied["batch_size"] * applied["grad_accum"], applied["seq_len"]
    (path,) = options["data"]
    tokens = numpy.fromfile(path, dtype="<u4").astype("int64")
    if len(tokens) < applied["steps"] * rows * length + 1:
        raise SystemExit(f"torch_distill: {path}: too few tokens for the steps of the run")
    for step in range(applied["steps"]):
        first, count = step * rows * length, rows * length
        yield (torch.from_numpy(tokens[first : first + count]).view(rows, length),
               torch.from_numpy(tokens[first + 1 : first + count + 1]).view(rows, length))


def rate(step, a):
    """Learning rate of a step, counted from 1."""
    warm = a["warmup_steps"]
    if step < warm:
        return a["lr"] * step / warm
    passed = (step - warm) / (a["steps"] - warm) if a["steps"] > warm else 0
    floor = a["lr"] * a["min_lr_ratio"]
    return floor + (a["lr"] - floor) * 0.5 * (1 + math.cos(math.pi * passed))


def losses(student, teacher, targets, a):
    """Sums over tokens: cross-entropy, KL(teacher || student) at the temperature."""
    student, teacher = (x[..., : a["vocab"]].float().flatten(0, 1) for x in (student, teacher))
    tau = a["temperature"]
    cross = F.cross_entropy(student, targets.flatten(), reduction="sum")
    kl = F.kl_div(F.log_softmax(student / tau, -1), F.log_softmax(teacher / tau, -1), log_target=True, reduction="sum")
    return cross, kl


class Trainer:
    def __init__(self, options, applied, device, kind):
        self.a, self.device = applied, device

        def load(path):
            return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="sdpa").to(device)
        master = load(options["student"])
        self.teacher = load(options["teacher"]).to(kind).eval().requires_grad_(False)
        self.student = master if kind == torch.float32 else copy.deepcopy(master).to(kind)
        self.student.train()
        self.pairs = list(zip(self.student.parameters(), master.parameters()))
        decayed = [m for _, m in self.pairs if m.ndim >= 2]
        plain = [m for _, m in self.pairs if m.ndim < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": applied["weight_decay"]}, {"params": plain, "weight_decay": 0.0}],
            lr=applied["lr"], betas=(applied["beta1"], applied["beta2"]), eps=applied["eps"])

    def gradients(self, x, y, micro):
        a, sums = self.a, [0.0, 0.0]
        for part, target in zip(x.chunk(micro), y.chunk(micro)):
            part, target = part.to(self.device), target.to(self.device)
            with torch.no_grad():
                wanted = self.teacher(part, use_cache=False).logits
            cross, kl = losses(self.student(part, use_cache=False).logits, wanted, target, a)
            loss = (1 - a["kd_ratio"]) * cross + a["kd_ratio"] * a["temperature"] ** 2 * kl
            (loss / y.numel()).backward()
            sums[0] += cross.detach()
            sums[1] += kl.detach()
        return [float(s) / y.numel() for s in sums]

    def update(self, lr):
        """Clips and updates the masters; returns the norm of the gradient."""
        for used, master in self.pairs:
            if used is not master:
                master.grad, used.grad = used.grad.float(), None
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(m.grad) for _, m in self.pairs]))
        most = self.a["max_grad_norm"]
        if most > 0 and norm > most:
            for _, master in self.pairs:
                master.grad.mul_(most / norm)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for used, master in self.pairs:
                if used is not master:
                    used.copy_(master)
        return float(norm)


def main():
    args = arguments()
    logging.disable_progress_bar()
    with open(os.path.join(args.run, "receipt.json"), encoding="utf-8") as f:
        receipt = json.load(f)
    options, a = receipt["options"], receipt["applied"]
    for what, wanted in (("seed", 0), ("beta", 0), ("lr_schedule", "cosine"), ("packing", "wrapped"), ("lora_r", 0)):
        expect(what, a[what], wanted)
    expect("teacher_dtype", a["teacher_dtype"], a["dtype"])
    os.makedirs(args.out, exist_ok=True)
    if args.exact:
        torch.set_float32_matmul_precision("high")
    kind = torch.float32 if args.exact or a["dtype"] == "float32" else torch.bfloat16
    trainer = Trainer(options, a, args.device, kind)
    with open(os.path.join(args.out, "metrics.jsonl"), "w", encoding="utf-8") as out:
        for step, (x, y) in enumerate(batches(options, a), 1):
            lr = rate(step, a)
            cross, kl = trainer.gradients(x, y, args.micro)
            row = {"step": step, "loss": (1 - a["kd_ratio"]) * cross + a["kd_ratio"] * a["temperature"] ** 2 * kl,
                   "kd_loss": kl, "ce_loss": cross, "lr": lr, "grad_norm": trainer.update(lr)}
            print(json.dumps(row), file=out, flush=True)
    print(f"PyTorch {torch.__version__}, {kind}: step {step}, loss {row['loss']:.5f}; {args.out}/metrics.jsonl")


main()
