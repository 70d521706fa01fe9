#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several GPUs, measured and predicted: this prints the tables of docs/scaling.md, scaling_plot.py draws one."""

from collections import namedtuple

PARAMETERS = 494e6  # of the student, all trained
TEACHER = 0.36  # of a step on one GPU: the teacher's forward pass, 1.5B -> 0.5B
BACKWARD = 0.6  # of the rest of a step: the student's backward pass
AGREE = 0.6  # ms that ranks take to agree on the transfers that nothing hides
ENDS = 0.28  # of the parameters: the embedding, whose gradient is finished last

# name, links GB/s per GPU in each direction, memory GB/s, clip and AdamW on one GPU ms
H200 = ("H200, NVLink", 270, 4200, 3.98)
RTX4090 = ("RTX 4090, PCIe 4", 15, 920, 15.9)
SPARK = ("DGX Spark, two links of one cable", 22, 220, 66)

# machine, GPUs, ms of a step on one GPU, micro-batches of a GPU
CASES = [
    (H200, 8, 96.8, 1),
    (RTX4090, 8, 445, 1),
    (RTX4090, 8, 445, 8),
    (SPARK, 2, 856, 1),
]

# --teacher-shard: GEMMs in TFLOP/s, with bf16 weights
RATE = {H200: 797, RTX4090: 165, SPARK: 92}
PASS = 8192  # tokens that a teacher runs over at once

# name, layers, hidden, MLP, heads, KV heads, vocabulary; heads of 128, embedding and head of their own
TEACHERS = {
    "7B": (28, 3584, 18944, 28, 4, 152064),
    "32B": (64, 5120, 27648, 40, 8, 152064),
    "72B": (80, 8192, 29568, 64, 8, 152064),
}
SHARDED = [(H200, 2, "7B"), (H200, 8, "72B"), (RTX4090, 8, "7B"), (SPARK, 2, "32B")]

# Rows of bench/ranks.sh on one, two and four H200 of one host: name, parameters, share of the teacher's pass, ms of a
# step, tokens/s; whether kernels fill the GPU, so that copies beside them take time; and the teacher that is in parts.
Row = namedtuple("Row", "name parameters teacher ms tokens full parts", defaults=(True, None))
MEASURED = (1, 2, 4)
ROWS = [
    Row("1.5B -> 0.5B", 494e6, TEACHER, (96.81, 100.04, 99.49), (84374, 163665, 326829)),
    Row("1.5B -> 0.5B, FP8 teacher", 494e6, TEACHER, (83.70, 86.30, 85.63), (97593, 189260, 381808)),
    Row("0.5B alone", 494e6, 0, (53.23, 55.56, 54.86), (153715, 294202, 597195)),
    Row("Qwen3, 1.7B -> 0.6B", 596e6, TEACHER, (118.65, 122.50, 122.47), (68661, 133519, 267415)),
    Row("7B -> 0.5B", 494e6, TEACHER, (239.90, 243.56, 244.34), (34064, 67123, 133894)),
    Row("7B -> 0.5B, teacher in parts", 494e6, TEACHER, (241.76, 251.43, 251.23), (33792, 64924, 130394), parts="7B"),
    Row("1.5B -> 0.5B, 1 x 512", 494e6, TEACHER, (13.89, 14.47, 14.13), (36860, 70733, 144911), full=False),
]


def layer_of(name):
    """Parameters of a layer of a teacher, and of its embedding and head."""
    _, hidden, mlp, heads, kv, vocab = TEACHERS[name]
    return hidden * (128 * (2 * heads + 2 * kv) + 3 * mlp), 2 * vocab * hidden


def step(machine, gpus, one, micro, wire, parameters=PARAMETERS, teacher=TEACHER, full=True, parts=None):
    """ms of a step: what one GPU computes, less the update that the others take over, and what it waits for.

    Gradients of layers travel beside the backward pass of the last micro-batch, weights beside the update and the next forward passes.
    """
    _, link, memory, update = machine
    update *= parameters / PARAMETERS
    others = (gpus - 1) / gpus
    shard = parameters / gpus
    exchange = parameters * wire * others / link / 1e6
    if wire == 4:  # the sum is read, a part is read, the sum is written
        add = (gpus - 1) * 3 * 4 * shard / memory / 1e6
    else:  # all is rounded; then the same from zero, with parts of 2 bytes
        add = (parameters * 6 + shard * 4 + gpus * 10 * shard) / memory / 1e6
    gather = parameters * 2 * others / link / 1e6
    backward = BACKWARD * (1 - teacher) * one
    exchange = ENDS * exchange + max(0, (1 - ENDS) * exchange - backward)
    # copies read and write memory that kernels wait for: gradients sent, received, and a rank's own; weights sent and received
    copied = parameters * 2 * (wire + 2 * others)
    if parts:  # slices sent, received, and a rank's own, read and written
        copied += 2 * 2 * TEACHERS[parts][0] * layer_of(parts)[0]
    copied = copied / memory / 1e6 if full else 0
    computed = (one - update) * micro + update / gpus
    forward = teacher * one + (1 - BACKWARD) * (1 - teacher) * one
    return computed + AGREE + exchange + add + copied + max(0, gather - forward - update / gpus)


def sharded():
    print("| GPUs | teacher | hidden from, tokens | layer: sent, ms | computed, ms | pass: visible, ms | of it | on each GPU, GiB | whole |")
    print("|---|---|---|---|---|---|---|---|---|")
    for machine, gpus, name in SHARDED:
        layers = TEACHERS[name][0]
        layer, ends = layer_of(name)
        flops = RATE[machine] * 1e12
        others = (gpus - 1) / gpus
        sent, computed = layer * 2 * others / machine[1] / 1e6, 2 * layer * PASS / flops * 1e3
        visible = layers * max(0, sent - computed)
        held = [(ends + n * layer) * 2 / 2**30 for n in (layers / gpus + 2, layers)]
        share = visible / (visible + layers * computed)
        print(
            f"| {gpus} x {machine[0]} | {name} | {others * flops / machine[1] / 1e9:,.0f} | {sent:.2f} | {computed:.2f} | {visible:.0f} "
            f"| {100 * share:.0f} % | {held[0]:.1f} | {held[1]:.1f} |"
        )


def predicted(row, gpus):
    return step(H200, gpus, row.ms[0], 1, 4, row.parameters, row.teacher, row.full, row.parts)


def of_linear(row, i):
    return row.tokens[i] / (MEASURED[i] * row.tokens[0])


def rows():
    print("| H200 of one host | one, tokens/s | two, tokens/s | of linear | four, tokens/s | of linear |")
    print("|---|---|---|---|---|---|")
    for row in ROWS:
        cells = [f"{row.tokens[i]:,} | {100 * of_linear(row, i):.1f} %" for i in (1, 2)]
        print(f"| {row.name} | {row.tokens[0]:,} | {' | '.join(cells)} |")
    print("| ms of a step | one, measured | two, measured | predicted | four, measured | predicted ", end="")
    print("| eight, predicted | of linear |\n|---|---|---|---|---|---|---|---|")
    for row in ROWS:
        cells = [f"{row.ms[i]:.1f} | {predicted(row, MEASURED[i]):.1f}" for i in (1, 2)]
        eight = predicted(row, 8)
        print(f"| {row.name} | {row.ms[0]:.1f} | {' | '.join(cells)} | {eight:.1f} | {100 * row.ms[0] / eight:.0f} % |")


def main():
    rows()
    print("| GPUs | micro-batches per GPU | step on one, ms | f32: step, ms | of linear | bf16: step, ms | of linear |")
    print("|---|---|---|---|---|---|---|")
    for machine, gpus, one, micro in CASES:
        alone = (one - machine[3]) * micro + machine[3]
        cells = []
        for wire in (4, 2):
            ms = step(machine, gpus, one, micro, wire)
            cells.append(f"{ms:.1f} | {100 * alone / ms:.0f} %")
        print(f"| {gpus} x {machine[0]} | {micro} | {alone:.1f} | {cells[0]} | {cells[1]} |")
    sharded()


if __name__ == "__main__":
    main()
