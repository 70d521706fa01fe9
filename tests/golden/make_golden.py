#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden numbers that tests/unit/test_golden.c holds the trainer against: make_golden.py [OUT]

Needs torch and transformers, no GPU. Everything is computed in float64, by the model code of transformers, autograd,
torch.optim.AdamW and the schedule of transformers; a result is rounded to float32 once, when it is written. A dispatch
mode refuses any operation with a narrower result, so no float32 step of the library is left in between.

OUT (default: tests/golden/torch) receives

    MODEL/                for each of CONFIGS, with random weights, saved by save_pretrained(). Every weight is a bfloat16
                          number: the files are small, and float32 and bfloat16 start from the very same weights
    tokens.bin            a token file (LLM.Q form): documents that end with END_OF_TEXT, a fifth of the targets ignored
    batches.safetensors   what must be cut from it: ids, target, pos, doc_start, [windows, S] each
    cases.json            versions; for each case its pair, its options and the figures of each of ten optimizer steps;
                          the completions of the cases of ANSWERS, and, of the one step of each, the figures
    CASE.safetensors      logits of the first micro-batch: student.logits, teacher.logits, [rows, V], every ROW_STRIDE-th
                          row that has a target; and summaries of
                              student.all_logits, teacher.all_logits   logits of every row with a target
                              gradient/TENSOR                          gradient of the first step, before clipping
                              movement/STEP/TENSOR                     weights after STEP less the weights at first
                          of the cases of ANSWERS the gradient alone

A summary of a tensor x of n elements is one vector: its Euclidean norm; its largest magnitude; SIGNS sums
sum_i s_k(i) x_i with signs s_k(i) = bit k of SplitMix64's (i + 1)-th output (0: minus); then all of its elements if n
is at most WHOLE, else those at i = 0, stride, 2 stride, ... with stride = n // SAMPLES | 1. The sums of two tensors
differ by random projections of their difference d, and the mean of their squares has the expectation ||d||^2: so they
bound the distance of whole tensors that are not stored.
"""
import json
import math
import pathlib
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

VOCAB, PADDED_VOCAB, END_OF_TEXT, IGNORED = 300, 320, 299, -100
BATCH, SEQ, WINDOWS = 2, 96, 4
STEPS, KEPT_STEPS = 10, (1, 2, 5, 10)
SIGNS, WHOLE, SAMPLES, ROW_STRIDE = 16, 256, 32, 13

COMMON = dict(max_position_embeddings=256, bos_token_id=None, eos_token_id=END_OF_TEXT, num_hidden_layers=2)
CONFIGS = {
    # biases, tied embeddings, head size 64
    "qwen2": Qwen2Config(
        vocab_size=VOCAB, hidden_size=128, intermediate_size=80, num_attention_heads=2, num_key_value_heads=1,
        tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e4}, **COMMON),
    # norms of q and k, head size 128; a hidden size that is no multiple of 64
    "qwen3": Qwen3Config(
        vocab_size=VOCAB, hidden_size=72, intermediate_size=96, num_attention_heads=2, num_key_value_heads=1,
        head_dim=128, tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 1e6}, **COMMON),
    # scaled rotary positions, two query heads a key head; more rows of vocabulary than there are tokens
    "llama": LlamaConfig(
        vocab_size=PADDED_VOCAB, hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2,
        head_dim=64, tie_word_embeddings=False,
        rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 64}, **COMMON),
    # sliding windows: shorter than most documents, and than half of them
    "mistral": MistralConfig(
        vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_attention_heads=2, num_key_value_heads=1,
        head_dim=64, sliding_window=7, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}, **COMMON),
    "mistral_wide": MistralConfig(
        vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_attention_heads=1, num_key_value_heads=1,
        head_dim=128, sliding_window=20, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1e5}, **COMMON),
    # the two forms of GELU
    "qwen2_gelu": Qwen2Config(
        vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_attention_heads=1, num_key_value_heads=1,
        hidden_act="gelu", tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}, **COMMON),
    "llama_gelu_tanh": LlamaConfig(
        vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_attention_heads=1, num_key_value_heads=1,
        head_dim=64, hidden_act="gelu_pytorch_tanh", tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}, **COMMON),
}

# Names as in struct train_options. eps is of the size of a clipped gradient: the update is then a smooth function of
# the gradient (with 1e-8 it is its sign, so that rounding alone moves a weight either way), and a wrong place of eps
# shows.
OPTIONS = dict(
    batch_size=BATCH, seq_len=SEQ, grad_accum=1, steps=STEPS, warmup_steps=3, temperature=2.0, kd_ratio=0.5, objective="kl",
    beta=0.0, lr=2e-3, min_lr_ratio=0.1, weight_decay=0.1, beta1=0.9, beta2=0.95, eps=5e-3, max_grad_norm=1.0)
CASES = {
    "qwen2_forward": ("qwen2", "qwen3", {}),
    "qwen3_padded_teacher": ("qwen3", "llama", dict(temperature=1.5, kd_ratio=0.7, max_grad_norm=2.5)),
    "llama_mixed_accumulated": ("llama", "qwen2", dict(beta=0.5, kd_ratio=0.9, grad_accum=2, max_grad_norm=0.5)),
    "qwen2_reverse": ("qwen2", "llama", dict(beta=1.0, temperature=1.0)),
    "qwen3_distance": ("qwen3", "qwen2", dict(objective="tvd", kd_ratio=0.9, temperature=1.5)),
    "llama_without_teacher": ("llama", None, dict(max_grad_norm=0.0, weight_decay=0.0)),
    "mistral_windows": ("mistral", "mistral_wide", dict(kd_ratio=0.8)),
    "gelu_of_gelu_tanh": ("qwen2_gelu", "llama_gelu_tanh", {}),
    "gelu_tanh_of_gelu": ("llama_gelu_tanh", "qwen2_gelu", {}),
}
# Completions to learn from, as on-policy distillation has them: teacher_prompts, whether the teacher reads prompts of its own.
ANSWERS = {
    "answers_forward": ("qwen2", "qwen3", False, dict(beta=0.0)),
    "answers_mixed": ("qwen3", "llama", False, dict(beta=0.5)),
    "answers_reverse": ("llama", "qwen2", False, dict(beta=1.0)),
    "answers_teacher_prompts": ("qwen2", "llama", True, dict(beta=0.5)),
}
COMPLETIONS = 24


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


# ---- models and data ----


def random_weights(model):
    """Sizes that give logits of order 1, gains and biases that differ from each other; as bfloat16 numbers."""
    generator = torch.Generator().manual_seed(20251)
    for name, p in model.named_parameters():
        x = torch.randn(p.shape, generator=generator)
        if p.dim() == 1:
            x = 0.3 * x + (0.0 if name.endswith("bias") else 1.0)
        else:
            x *= (2.5 if "embed" in name or "lm_head" in name else 1.0) / math.sqrt(p.shape[1])
        p.data = x.bfloat16().double()


def save_models(out):
    for name, config in CONFIGS.items():
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").double()
        random_weights(model)
        model.bfloat16().save_pretrained(out / name)
        (out / name / "generation_config.json").unlink()


def load(folder):
    """The stored weights in a model that is built in float64, its rotary frequencies too."""
    config = transformers.AutoConfig.from_pretrained(folder)
    with Float64Only():
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float64, attn_implementation="eager")
    stored = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).state_dict()
    model.load_state_dict({name: x.double() for name, x in stored.items()})
    assert all(b.dtype == torch.float64 for b in model.buffers())
    return model.eval()


def write_tokens(path):
    rng = np.random.default_rng(7)
    count = WINDOWS * SEQ + 1
    ids = np.where(rng.random(count) < 0.5, rng.integers(0, 24, count), rng.integers(0, END_OF_TEXT, count))
    at = 0
    while (at := at + int(rng.integers(3, 60))) < count:
        ids[at] = END_OF_TEXT
    loss = rng.random(count) >= 0.2
    head = np.zeros(256, "<i4")
    head[:2] = struct.unpack("<2i", b"BIN.TOK\n")
    head[2:7] = 2, 4, count, VOCAB, 1
    path.write_bytes(head.tobytes() + ids.astype("<i4").tobytes() + np.packbits(loss, bitorder="little").tobytes())
    return ids, loss


def cut_windows(ids, loss):
    """docs/data.md in a few lines: a target is the next token of the same document, unless it has no loss."""
    first = np.concatenate([[True], ids[:-1] == END_OF_TEXT])
    rows = {name: np.zeros((WINDOWS, SEQ), np.int64) for name in ("ids", "target", "pos", "doc_start")}
    for w in range(WINDOWS):
        start = 0
        for i in range(SEQ):
            at = w * SEQ + i
            start = i if first[at] else start
            goes_on = loss[at + 1] and not first[at + 1]
            values = ids[at], ids[at + 1] if goes_on else IGNORED, i - start, start
            for name, value in zip(rows, values):
                rows[name][w, i] = value
    assert all(len(set(r)) > 2 for r in rows["doc_start"])
    return {name: torch.from_numpy(x) for name, x in rows.items()}


def micro_batch(rows, index):
    at = [(index * BATCH + b) % WINDOWS for b in range(BATCH)]
    return {name: x[at] for name, x in rows.items()}


def logits_of(model, batch):
    """transformers has no document boundaries of its own: a mask says which keys a query sees."""
    q, k = torch.arange(SEQ)[:, None], torch.arange(SEQ)[None, :]
    window = getattr(model.config, "sliding_window", None) or SEQ
    seen = (k <= q) & (k > q - window) & (k >= batch["doc_start"][:, :, None])
    mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float64).min)[:, None]
    logits = model(batch["ids"], attention_mask=mask, position_ids=batch["pos"], use_cache=False).logits
    return logits[batch["target"] != IGNORED]


def check_mask(model, batch):
    """The mask gives what every document gives that runs alone."""
    found = []
    for ids, target, start in zip(batch["ids"], batch["target"], batch["doc_start"]):
        for document in start.unique():
            here = start == document
            found.append(model(ids[here][None], use_cache=False).logits[0][target[here] != IGNORED])
    assert torch.allclose(torch.cat(found), logits_of(model, batch), rtol=1e-12, atol=1e-12)


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


def summary(x):
    x = x.detach().reshape(-1)
    n = x.numel()
    kept = x if n <= WHOLE else x[:: n // SAMPLES | 1]
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


def run_case(student, teacher, rows, o):
    first = micro_batch(rows, 0)
    vocab = min(model.config.vocab_size for model in (student, teacher) if model)
    tensors = {}
    for name, model in (("student", student), ("teacher", teacher)):
        if model:
            check_mask(model, first)
            logits = logits_of(model, first)[:, :vocab]
            tensors[f"{name}.logits"] = logits[::ROW_STRIDE]
            tensors[f"{name}.all_logits"] = summary(logits)
    at_first = {name: p.detach().clone() for name, p in student.named_parameters()}
    optimizer, rate = optimizer_of(student, o)
    figures = []
    for step in range(1, o["steps"] + 1):
        optimizer.zero_grad()
        batches = [micro_batch(rows, (step - 1) * o["grad_accum"] + i) for i in range(o["grad_accum"])]
        figures.append(backward_of_step(student, teacher, batches, o))
        if step == 1:
            tensors |= {f"gradient/{name}": summary(p.grad) for name, p in student.named_parameters()}
        limit = o["max_grad_norm"] or math.inf
        norm = torch.nn.utils.clip_grad_norm_(student.parameters(), limit, foreach=False).item()
        figures[-1] |= {"grad_norm": norm, "lr": o["lr"] * rate(step)}
        for group in optimizer.param_groups:
            group["lr"] = figures[-1]["lr"]
        optimizer.step()
        if step in KEPT_STEPS:
            for name, p in student.named_parameters():
                tensors[f"movement/{step}/{name}"] = summary(p.detach() - at_first[name])
    return tensors, figures


# ---- completions ----


def make_completions():
    """Prompts, prompts of the teacher and completions, of which every third one is truncated: it has no END_OF_TEXT."""
    rng = np.random.default_rng(11)
    draw = lambda least, most: [int(x) for x in rng.integers(0, 24, int(rng.integers(least, most + 1)))]
    rows = []
    for i in range(COMPLETIONS):
        end = [] if i % 3 == 0 else [END_OF_TEXT]
        rows.append({"prompt": draw(1, 9), "teacher_prompt": draw(1, 14), "completion": draw(1, 12) + end})
    return rows


def logits_and_labels(model, prompt, completion):
    """As trl.experimental.distillation has it: a label is -100 on the prompt, and logits predict the next token's."""
    ids = torch.tensor([prompt + completion])
    labels = torch.tensor([[IGNORED] * len(prompt) + completion])
    logits = model(ids, use_cache=False).logits[:, :-1]
    mask = labels[:, 1:] != IGNORED
    return logits[mask], labels[:, 1:][mask]


def generalized_jsd(student, teacher, beta):
    """Summed over tokens: the formula of TRL's GKDTrainer and DistillationTrainer, at temperature 1."""
    q, p = F.log_softmax(student, -1), F.log_softmax(teacher, -1)
    if beta == 0:
        return F.kl_div(q, p, reduction="none", log_target=True).sum()
    if beta == 1:
        return F.kl_div(p, q, reduction="none", log_target=True).sum()
    b = torch.tensor(beta)
    mixture = torch.logsumexp(torch.stack([q + torch.log1p(-b), p + torch.log(b)]), dim=0)
    of_teacher = F.kl_div(mixture, p, reduction="none", log_target=True)
    of_student = F.kl_div(mixture, q, reduction="none", log_target=True)
    return (b * of_teacher + (1 - b) * of_student).sum()


def run_answers(student, teacher, completions, teacher_prompts, o):
    """Loss and gradient of one step: a sum over its completions, over the tokens of all of them."""
    valid, total = sum(len(c["completion"]) for c in completions), {}
    for c in completions:
        with torch.no_grad():
            t, _ = logits_and_labels(teacher, c["teacher_prompt" if teacher_prompts else "prompt"], c["completion"])
        s, labels = logits_and_labels(student, c["prompt"], c["completion"])
        vocab = min(s.shape[-1], t.shape[-1])
        jsd = generalized_jsd(s[:, :vocab], t[:, :vocab], o["beta"])
        (jsd / valid).backward()
        with torch.no_grad():
            sums = sums_of(s, t, labels, o)
        assert torch.allclose(sums["kd_loss"], jsd, rtol=1e-12)
        for name, x in {"loss": jsd, **sums}.items():
            total[name] = total.get(name, 0.0) + x.item()
    norm = torch.stack([p.grad.norm() for p in student.parameters()]).norm().item()
    figures = {name: x / valid for name, x in total.items()} | {"valid_tokens": valid, "grad_norm": norm}
    return {f"gradient/{name}": summary(p.grad) for name, p in student.named_parameters()}, figures


def answer_cases(out, completions):
    cases = []
    for name, (student, teacher, teacher_prompts, changes) in ANSWERS.items():
        o = OPTIONS | dict(temperature=1.0, kd_ratio=1.0, grad_accum=2) | changes
        models = load(out / student), load(out / teacher)
        with Float64Only():
            tensors, figures = run_answers(*models, completions, teacher_prompts, o)
        figures["lr"] = o["lr"] / o["warmup_steps"]
        write_tensors(out / f"{name}.safetensors", tensors)
        cases.append({"name": name, "student": student, "teacher": teacher, "teacher_prompts": teacher_prompts,
                      "options": o, "steps": [figures]})
        print(f"{name}: loss {figures['loss']:.6f}, gradient norm {figures['grad_norm']:.3f}")
    return cases


def write_tensors(path, tensors):
    save_file({name: x.detach().to(FLOAT32).contiguous().clone() for name, x in tensors.items()}, path)


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "torch")
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # one order of sums
    transformers.utils.logging.disable_progress_bar()
    save_models(out)
    rows = cut_windows(*write_tokens(out / "tokens.bin"))
    write_tensors(out / "batches.safetensors", rows)
    widen()
    versions = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
    print(" ".join(f"{name} {version}" for name, version in versions.items()))
    cases = []
    for name, (student, teacher, changes) in CASES.items():
        o = OPTIONS | changes
        models = load(out / student), load(out / teacher) if teacher else None
        with Float64Only():
            tensors, figures = run_case(*models, rows, o)
        write_tensors(out / f"{name}.safetensors", tensors)
        cases.append({"name": name, "student": student, "teacher": teacher, "options": o, "steps": figures})
        norms = [f["grad_norm"] for f in figures]
        assert o["max_grad_norm"] < max(norms), "nothing would be clipped"
        print(f"{name}: loss {figures[0]['loss']:.6f} -> {figures[-1]['loss']:.6f}, gradient norms {min(norms):.3f} to "
              f"{max(norms):.3f}")
    completions = make_completions()
    cases += answer_cases(out, completions)
    with open(out / "cases.json", "w") as f:
        json.dump({"versions": versions, "cases": cases, "completions": completions}, f, indent=1)
        f.write("\n")


FLOAT32 = torch.float32
if __name__ == "__main__":
    main()
