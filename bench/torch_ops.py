#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's time for what kbench timed: kbench ... --torch, or torch_ops.py < kbench.json

Reads the rows that kbench wrote, does the same work at the same shapes with PyTorch, where it has an operation for it, and
prints both medians and their ratio. Work that PyTorch does in one operation and nojit in several (the gradient of
attention) is compared with their sum. What takes several operations there is compiled (torch.compile) on a GPU.
"""
import json
import sys
import time

import torch
import torch.nn.functional as F

RUNS, WARM_UPS, SECONDS = 50, 3, 0.5


class Maker:
    """Operands of one row, in the type of its key."""

    def __init__(self, device, key):
        self.device = device
        self.type = torch.bfloat16 if key.split(".")[1] == "lp" else torch.float32

    def __call__(self, *shape, dtype=None, grad=False):
        return torch.randn(*shape, device=self.device, dtype=dtype or self.type).requires_grad_(grad)

    def ids(self, count, below):
        return torch.randint(0, below, (count,), device=self.device)


def compiled(function, device):
    return torch.compile(function) if device == "cuda" else function


# ---- operations: (shape, maker) -> a function that does the work once ----

def heads(s, make, grad=False):
    q = make(s["B"], s["H"], s["S"], s["D"], grad=grad)
    k, v = (make(s["B"], s["K"], s["S"], s["D"], grad=grad) for _ in range(2))
    return q, k, v


def attention(q, k, v, causal=True):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)


def attn_fwd(s, make):
    q, k, v = heads(s, make)
    return lambda: attention(q, k, v)


def attn_bwd(s, make):
    inputs = heads(s, make, grad=True)
    out = attention(*inputs)
    gradient = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True)


def attn_decode(s, make):
    q = make(s["R"], s["H"], 1, s["D"])
    k, v = (make(s["R"], s["K"], s["P"], s["D"]) for _ in range(2))
    return lambda: attention(q, k, v, causal=False)


def of_two(function):
    def prepare(s, make):
        a, b = make(s["n"]), make(s["n"])
        return lambda: function(a, b)
    return prepare


def accumulate(s, make):
    total, x = make(s["n"], dtype=torch.float32), make(s["n"])
    return lambda: total.add_(x)


def cast(source, target):
    def prepare(s, make):
        x = make(s["n"], dtype=source or make.type)
        out = torch.empty_like(x, dtype=target or make.type)
        return lambda: out.copy_(x)
    return prepare


def rmsnorm_fwd(s, make):
    x, w = make(s["N"], s["C"]), make(s["C"])
    norm = compiled(lambda: F.rms_norm(x, (s["C"],), w, 1e-6), make.device)
    return norm


def add_rmsnorm_fwd(s, make):
    x, b, w = make(s["N"], s["C"]), make(s["N"], s["C"]), make(s["C"])

    def both(x, b):
        total = x + b
        return total, F.rms_norm(total, (s["C"],), w, 1e-6)
    both = compiled(both, make.device)
    return lambda: both(x, b)


def gradient_of(function, inputs, device):
    """The backward pass alone."""
    out = compiled(function, device)(*inputs)
    gradient = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True)


def rmsnorm_bwd(s, make):
    inputs = make(s["N"], s["C"], grad=True), make(s["C"], grad=True)
    return gradient_of(lambda x, w: F.rms_norm(x, (s["C"],), w, 1e-6), inputs, make.device)


def gated(s):
    """By the number that base/activation.h gives an activation; swiglu_* have none."""
    activation = {0: F.silu, 1: F.gelu, 2: lambda x: F.gelu(x, approximate="tanh")}[s.get("ACT", 0)]

    def of(x):
        gate, up = x.chunk(2, -1)
        return activation(gate) * up
    return of


def glu_fwd(s, make):
    x, f = make(s["N"], 2 * s["I"]), compiled(gated(s), make.device)
    return lambda: f(x)


def glu_bwd(s, make):
    return gradient_of(gated(s), (make(s["N"], 2 * s["I"], grad=True),), make.device)


def rope_fwd(s, make):
    half = s["D"] // 2
    x = make(s["N"], s["H"] + s["K"], s["D"])
    cosine, sine = make(s["N"], 1, half), make(s["N"], 1, half)

    def rotate(x):
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1)
    rotate = compiled(rotate, make.device)
    return lambda: rotate(x)


def row_gather(s, make):
    table, index = make(s["R"], s["C"]), make.ids(s["M"], s["R"])
    return lambda: table.index_select(0, index)


def embed_bwd(s, make):
    table, index = make(s["V"], s["C"], grad=True), make.ids(s["N"], s["V"])
    out = F.embedding(index, table)
    gradient = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, table, gradient, retain_graph=True)


def grad_sumsq(s, make):
    x = make(s["n"], dtype=torch.float32)
    return lambda: torch.linalg.vector_norm(x)


def adamw(s, make):
    weight = make(s["n"], dtype=torch.float32, grad=True)
    weight.grad = torch.randn_like(weight)
    optimizer = torch.optim.AdamW([weight], lr=1e-4, fused=True)
    return optimizer.step


def kd_head(s, make):
    """Both losses and the gradient of the student's logits; temperature 2, ratio 0.5."""
    student, teacher = make(s["M"], s["Vs"], grad=True), make(s["M"], s["Vt"])
    target = make.ids(s["M"], s["V"])

    def loss(student, teacher):
        a, b = student[:, : s["V"]].float(), teacher[:, : s["V"]].float()
        kl = F.kl_div(F.log_softmax(a / 2, -1), F.log_softmax(b / 2, -1), log_target=True, reduction="sum")
        return (0.5 * 4 * kl + 0.5 * F.cross_entropy(a, target, reduction="sum")) / s["M"]
    loss = compiled(loss, make.device)
    return lambda: torch.autograd.grad(loss(student, teacher), student)


# The comparisons: the ops of nojit whose times are summed, PyTorch's name for them, the function that does it there.
COMPARISONS = (
    (("attn_fwd",), "scaled_dot_product_attention", attn_fwd),
    (("attn_bwd_dq", "attn_bwd_dkv"), "gradient of attention", attn_bwd),
    (("attn_decode",), "scaled_dot_product_attention", attn_decode),
    (("kd_head",), "kl_div + cross_entropy + gradient", kd_head),
    (("rmsnorm_fwd",), "rms_norm", rmsnorm_fwd),
    (("rmsnorm_bwd",), "gradient of rms_norm", rmsnorm_bwd),
    (("add_rmsnorm_fwd",), "add, rms_norm", add_rmsnorm_fwd),
    (("swiglu_fwd",), "silu * up", glu_fwd),
    (("swiglu_bwd",), "gradient of silu * up", glu_bwd),
    (("glu_fwd",), "gelu * up", glu_fwd),
    (("glu_bwd",), "gradient of gelu * up", glu_bwd),
    (("rope_fwd",), "rotation by halves", rope_fwd),
    (("row_gather",), "index_select", row_gather),
    (("embed_bwd",), "gradient of embedding", embed_bwd),
    (("grad_sumsq",), "vector_norm", grad_sumsq),
    (("adamw",), "AdamW(fused), float32 alone", adamw),
    (("add",), "add", of_two(torch.add)),
    (("accumulate",), "add_", accumulate),
    (("cast_to_f32",), "copy_", cast(None, torch.float32)),
    (("cast_to_lp",), "copy_", cast(torch.float32, torch.bfloat16)),
)


def time_once(work, device):
    if device == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e6


def median(work, device):
    for _ in range(WARM_UPS):
        work()
    if device == "cuda":
        torch.cuda.synchronize()
    times, started = [], time.perf_counter()
    while len(times) < RUNS and (len(times) < 5 or time.perf_counter() - started < SECONDS):
        times.append(time_once(work, device))
    return sorted(times)[len(times) // 2]


def alike(row, other):
    """Same type, and same shape as far as both name it."""
    shared = row["shape"].keys() & other["shape"].keys()
    return row["key"].split(".")[1] == other["key"].split(".")[1] and all(
        row["shape"][n] == other["shape"][n] for n in shared)


def groups(rows):
    """(what, how, the rows of nojit that do it)."""
    for ops, what, prepare in COMPARISONS:
        for row in rows:
            if row["op"] == ops[0]:
                parts = [row] + [next((r for r in rows if r["op"] == op and alike(row, r)), None) for op in ops[1:]]
                if None not in parts:
                    yield what, prepare, parts


def main():
    measured = json.load(sys.stdin)
    device = measured["backend"]
    print(f"\nPyTorch {torch.__version__} on the same device; ratio: PyTorch's time over nojit's\n")
    table = [("nojit", "PyTorch", "shape", "nojit us", "PyTorch us", "ratio")]
    for what, prepare, rows in groups(measured["rows"]):
        shape = rows[0]["shape"]
        ours = sum(row["warm"]["us"] for row in rows)
        name = " + ".join(row["key"] for row in rows)
        text = " ".join(f"{n}={v}" for n, v in shape.items() if v is not None)
        try:
            theirs = median(prepare(shape, Maker(device, rows[0]["key"])), device)
            table.append((name, what, text, f"{ours:.1f}", f"{theirs:.1f}", f"{theirs / ours:.2f}"))
        except RuntimeError as error:  # memory, or what this PyTorch cannot compile
            table.append((name, what, text, f"{ours:.1f}", "-", str(error).split("\n")[0][:40]))
        if device == "cuda":
            torch.cuda.empty_cache()
    widths = [max(len(row[i]) for row in table) for i in range(6)]
    for row in table:
        print("  ".join(c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))))


main()
