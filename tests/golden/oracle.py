#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""For make_golden.py and make_families.py: cases of training in float64, and what of them is kept.

Everything is computed in float64, by the model code of transformers, autograd, torch.optim.AdamW and the schedule of
transformers; a result is rounded to float32 once, when it is written. A dispatch mode refuses any operation with a
narrower result, so no float32 step of the library is left in between.

CASE.safetensors has

    student.logits, teacher.logits           logits of the first micro-batch, [rows, V]: every row_stride-th row that
                                             has a target
    student.all_logits, teacher.all_logits   summaries: logits of every row with a target
    gradient/TENSOR                          gradient of the first step, before clipping
    movement/STEP/TENSOR                     weights after STEP less the weights at first

A summary of a tensor x of n elements is one vector: its Euclidean norm; its largest magnitude; SIGNS sums
sum_i s_k(i) x_i with signs s_k(i) = bit k of SplitMix64's (i + 1)-th output (0: minus); then all of its elements if n
is at most `whole`, else those at i = 0, stride, 2 stride, ... with stride = n // SAMPLES | 1. The sums of two tensors
differ by random projections of their difference d, and the mean of their squares has the expectation ||d||^2: so they
bound the distance of whole tensors that are not stored.
"""
import math
import sys
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from torch.utils._python_dispatch import TorchDispatchMode

IGNORED = -100
BATCH, SEQ, WINDOWS = 2, 96, 4
SIGNS, SAMPLES = 16, 32
FLOAT32 = torch.float32


class Kept(NamedTuple):
    """What of a case is stored."""

    steps: tuple = (1, 2, 5, 10)
    row_stride: int = 13
    whole: int = 256


# ---- float64 throughout ----


class Float64Only(TorchDispatchMode):
    """Fails on any result of a narrower floating type."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for x in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(x, torch.Tensor) and x.is_floating_point() and x.dtype != torch.float64:
                raise TypeError(f"{function} made {x.dtype}")
        return out


def widen():
    """The models name torch.float32 for norms, rotary positions and softmax: let it mean float64 from here on."""
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double


# ---- data ----


def micro_batch(rows, index):
    at = [(index * BATCH + b) % WINDOWS for b in range(BATCH)]
    return {name: x[at] for name, x in rows.items()}


def masks_of(config, batch):
    """What each kind of layer sees: transformers has no document boundaries of its own."""
    q, k = torch.arange(SEQ)[:, None], torch.arange(SEQ)[None, :]
    masks = {}
    for kind, window in (("full_attention", None), ("sliding_attention", getattr(config, "sliding_window", None))):
        seen = (k <= q) & (k > q - (window or SEQ)) & (k >= batch["doc_start"][:, :, None])
        masks[kind] = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float64).min)[:, None]
    return masks if getattr(config, "layer_types", None) else masks["sliding_attention"]


def is_recurrent(config):
    return any(not kind.endswith("_attention") or kind.startswith("linear") for kind in getattr(config, "layer_types", None) or [])


def logits_of_documents(model, batch):
    """The logits of the rows with targets, of each document alone."""
    found = []
    for ids, target, start in zip(batch["ids"], batch["target"], batch["doc_start"]):
        for document in start.unique():
            here = start == document
            found.append(model(ids[here][None], use_cache=False).logits[0][target[here] != IGNORED])
    return torch.cat(found)


def logits_of(model, batch):
    if is_recurrent(model.config):  # no mask keeps documents apart
        return logits_of_documents(model, batch)
    mask = masks_of(model.config, batch)
    logits = model(batch["ids"], attention_mask=mask, position_ids=batch["pos"], use_cache=False).logits
    return logits[batch["target"] != IGNORED]


def balance_of(model, batch):
    """The loss that balances experts, over the rows of all layers. The model itself would take the masks for those of padding."""
    mask = masks_of(model.config, batch)
    inputs = dict(attention_mask=mask, position_ids=batch["pos"], use_cache=False, output_router_logits=True)
    logits = model.model(batch["ids"], **inputs).router_logits
    balancing = sys.modules[type(model).__module__].load_balancing_loss_func
    return balancing(logits, model.config.num_experts, model.config.num_experts_per_tok)


def check_masks(model, batch):
    """The masks give what every document gives that runs alone."""
    assert torch.allclose(logits_of_documents(model, batch), logits_of(model, batch), rtol=1e-12, atol=1e-12)


# ---- objective ----


def divergence(student, teacher, o):
    """Sum over the rows of D of docs/objective.md, as torch.nn.functional.kl_div has D_beta."""
    q, p, beta = F.log_softmax(student / o["temperature"], -1), F.log_softmax(teacher / o["temperature"], -1), o["beta"]
    if o["objective"] == "tvd":
        return (p.exp() - q.exp()).abs().sum() / 2
    kl = lambda a, b: F.kl_div(b, a, reduction="sum", log_target=True)
    if beta in (0, 1):
        return kl(p, q) if beta == 0 else kl(q, p)
    m = torch.logsumexp(torch.stack([p + math.log(beta), q + math.log1p(-beta)]), 0)
    return beta * kl(p, m) + (1 - beta) * kl(q, m)


def sums_of(student, teacher, target, o):
    """Sums over the rows of a micro-batch, as tensors."""
    vocab = min(x.shape[-1] for x in (student, teacher) if x is not None)
    s = student[:, :vocab]
    sums = {"class_loss": F.cross_entropy(s, target, reduction="sum")}
    zero = torch.zeros(())
    if teacher is None:
        return sums | {"kd_loss": zero, "teacher_entropy": zero, "agreement": zero}
    t = teacher[:, :vocab]
    p = F.log_softmax(t / o["temperature"], -1)
    return sums | {
        "kd_loss": divergence(s, t, o),
        "teacher_entropy": -(p.exp() * p).sum(),
        "agreement": (s.argmax(-1) == t.argmax(-1)).sum().double(),
    }


def backward_of_step(student, teacher, batches, o):
    """Leaves the gradient of one optimizer step in the student; returns its figures."""
    valid = sum(int((b["target"] != IGNORED).sum()) for b in batches)
    r, total = (o["kd_ratio"] if teacher else 0.0), {}
    for b in batches:
        with torch.no_grad():
            t = logits_of(teacher, b) if teacher else None
        sums = sums_of(logits_of(student, b), t, b["target"][b["target"] != IGNORED], o)
        loss = ((1 - r) * sums["class_loss"] + r * o["temperature"] ** 2 * sums["kd_loss"]) / valid
        if student.balance > 0:
            sums["balance_loss"] = balance_of(student, b) * valid / len(batches)
            loss = loss + student.balance * sums["balance_loss"] / valid
        loss.backward()
        for name, x in {"loss": loss * valid, **sums}.items():
            total[name] = total.get(name, 0.0) + x.item()
    return {name: x / valid for name, x in total.items()} | {"valid_tokens": valid}


# ---- summaries ----


def signs(n):
    with np.errstate(over="ignore"):
        x = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        x = x ^ x >> np.uint64(31)
    bits = x[None, :] >> np.arange(SIGNS, dtype=np.uint64)[:, None] & np.uint64(1)
    return torch.from_numpy(bits.astype(np.float64) * 2 - 1)


def in_files(named):
    """Tensors by the names of files, which hold the matrices of each expert by themselves."""
    for name, x in named:
        if name.endswith(".experts.gate_up_proj"):
            for e, both in enumerate(x):
                for part, half in zip(("gate_proj", "up_proj"), both.chunk(2)):
                    yield name.replace("gate_up_proj", f"{e}.{part}.weight"), half
        elif name.endswith(".experts.down_proj"):
            for e, its in enumerate(x):
                yield name.replace("down_proj", f"{e}.down_proj.weight"), its
        else:
            yield name, x


def summary(x, whole):
    x = x.detach().reshape(-1)
    n = x.numel()
    kept = x if n <= whole else x[:: n // SAMPLES | 1]
    return torch.cat([x.norm()[None], x.abs().max()[None], signs(n) @ x, kept])


# ---- a case ----


def optimizer_of(student, o):
    decayed = [p for p in student.parameters() if p.dim() > 1]
    others = [p for p in student.parameters() if p.dim() == 1]
    groups = [{"params": decayed, "weight_decay": o["weight_decay"]}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"], foreach=False)
    schedule = transformers.get_cosine_with_min_lr_schedule_with_warmup(
        optimizer, o["warmup_steps"], o["steps"], min_lr_rate=o["min_lr_ratio"])
    return optimizer, schedule.lr_lambdas[0]


def run_case(student, teacher, rows, o, kept=Kept(), check=check_masks):
    first = micro_batch(rows, 0)
    student.balance = student.config.router_aux_loss_coef if getattr(student.config, "output_router_logits", False) else 0
    student.config.output_router_logits = False
    vocab = min(model.config.vocab_size for model in (student, teacher) if model)
    tensors = {}
    for name, model in (("student", student), ("teacher", teacher)):
        if model:
            check(model, first)
            logits = logits_of(model, first)[:, :vocab]
            tensors[f"{name}.logits"] = logits[:: kept.row_stride]
            tensors[f"{name}.all_logits"] = summary(logits, kept.whole)
    at_first = {name: p.detach().clone() for name, p in student.named_parameters()}
    optimizer, rate = optimizer_of(student, o)
    figures = []
    for step in range(1, o["steps"] + 1):
        optimizer.zero_grad()
        batches = [micro_batch(rows, (step - 1) * o["grad_accum"] + i) for i in range(o["grad_accum"])]
        figures.append(backward_of_step(student, teacher, batches, o))
        if step == 1:
            found = in_files((name, p.grad) for name, p in student.named_parameters())
            tensors |= {f"gradient/{name}": summary(x, kept.whole) for name, x in found}
        limit = o["max_grad_norm"] or math.inf
        norm = torch.nn.utils.clip_grad_norm_(student.parameters(), limit, foreach=False).item()
        figures[-1] |= {"grad_norm": norm, "lr": o["lr"] * rate(step)}
        for group in optimizer.param_groups:
            group["lr"] = figures[-1]["lr"]
        optimizer.step()
        if step in kept.steps:
            for name, x in in_files((name, p.detach() - at_first[name]) for name, p in student.named_parameters()):
                tensors[f"movement/{step}/{name}"] = summary(x, kept.whole)
    return tensors, figures


def write_tensors(path, tensors):
    save_file({name: x.detach().to(FLOAT32).contiguous().clone() for name, x in tensors.items()}, path)

