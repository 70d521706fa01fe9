#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden numbers that tests/unit/test_golden.c holds the trainer against: make_golden.py [OUT]

Needs torch and transformers, no GPU. oracle.py has the computation, which is in float64.

OUT (default: tests/golden/torch) receives

    MODEL/                for each of CONFIGS, with random weights, saved by save_pretrained(). Every weight is a bfloat16
                          number: the files are small, and float32 and bfloat16 start from the very same weights
    tokens.bin            a token file (LLM.Q form): documents that end with END_OF_TEXT, a fifth of the targets ignored
    batches.safetensors   what must be cut from it: ids, target, pos, doc_start, [windows, S] each
    cases.json            versions; for each case its pair, its options and the figures of each of ten optimizer steps;
                          the completions of the cases of ANSWERS, and, of the one step of each, the figures
    CASE.safetensors      as oracle.py says; of the cases of ANSWERS the gradient alone
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
from oracle import BATCH, IGNORED, SEQ, WINDOWS, Float64Only, Kept, run_case, sums_of, summary, widen, write_tensors
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

VOCAB, PADDED_VOCAB, END_OF_TEXT = 300, 320, 299
STEPS = 10

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
    return {f"gradient/{name}": summary(p.grad, Kept().whole) for name, p in student.named_parameters()}, figures


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


if __name__ == "__main__":
    main()
