#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/scaling.md predicts for several GPUs, as the tables that stand there: `bench/scaling.py`."""

PARAMETERS = 494e6  # of the student, all trained
TEACHER = 0.36  # of a step on one GPU: the teacher's forward pass, 1.5B -> 0.5B
BACKWARD = 0.6  # of the rest of a step: the student's backward pass
AGREE = 0.6  # ms that ranks take to agree on the transfers that nothing hides
ENDS = 0.28  # of the parameters: the embedding, whose gradient is finished last

# name, links GB/s per GPU in each direction, memory GB/s, clip and AdamW on one GPU ms
H200 = ("H200, NVLink", 270, 4200, 3.98)
H100 = ("H100, NVLink", 270, 2980, 5.62)
RTX4090 = ("RTX 4090, PCIe 4", 15, 920, 15.9)
SPARK = ("DGX Spark, two links of one cable", 22, 220, 66)

# machine, GPUs, ms of a step on one GPU, micro-batches of a GPU
CASES = [
    (H200, 2, 97.0, 1),
    (H200, 4, 97.0, 1),
    (H200, 8, 97.0, 1),
    (RTX4090, 8, 445, 1),
    (RTX4090, 8, 445, 8),
    (SPARK, 2, 856, 1),
]

# Rows of bench/ranks.sh on H100: name, parameters, ms on one GPU, share of the teacher's pass, ms measured on two
ROWS = [
    ("1.5B -> 0.5B, 8 x 1024", 494e6, 100.7, TEACHER, 102.6),
    ("with an FP8 teacher", 494e6, 87.9, TEACHER, 89.8),
    ("Qwen3, 1.7B -> 0.6B, 8 x 1024", 596e6, 121.3, TEACHER, 125.7),
    ("7B -> 0.5B, 8 x 1024", 494e6, 242.7, TEACHER, 244.7),
    ("0.5B alone, 8 x 1024", 494e6, 56.6, 0, 58.2),
    ("1.5B -> 0.5B, 1 x 512", 494e6, 15.9, TEACHER, 16.6),
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


def step(machine, gpus, one, micro, wire, parameters=PARAMETERS, teacher=TEACHER):
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
    copied = parameters * 2 * (wire + 2 * others) / memory / 1e6
    computed = (one - update) * micro + update / gpus
    forward = teacher * one + (1 - BACKWARD) * (1 - teacher) * one
    return computed + AGREE + exchange + add + copied + max(0, gather - forward - update / gpus)


def sharded():
    print("| GPUs | teacher | hidden from, tokens | layer: sent, ms | computed, ms | pass: visible, ms | of it | on each GPU, GiB | whole |")
    print("|---|---|---|---|---|---|---|---|---|")
    for machine, gpus, name in SHARDED:
        layers, hidden, mlp, heads, kv, vocab = TEACHERS[name]
        layer = hidden * (128 * (2 * heads + 2 * kv) + 3 * mlp)
        ends = 2 * vocab * hidden
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


def rows():
    print("| on H100 | one, ms | two, measured | two, ms | of linear | four, ms | of linear | eight, ms | of linear |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, parameters, one, teacher, measured in ROWS:
        cells = []
        for gpus in (2, 4, 8):
            ms = step(H100, gpus, one, 1, 4, parameters, teacher)
            cells.append(f"{ms:.1f} | {100 * one / ms:.0f} %")
        print(f"| {name} | {one:.1f} | {measured:.1f} | {' | '.join(cells)} |")


def main():
    print("| GPUs | micro-batches per GPU | step on one, ms | f32: step, ms | of linear | bf16: step, ms | of linear |")
    print("|---|---|---|---|---|---|---|")
    for machine, gpus, one, micro in CASES:
        alone = (one - machine[3]) * micro + machine[3]
        cells = []
        for wire in (4, 2):
            ms = step(machine, gpus, one, micro, wire)
            cells.append(f"{ms:.1f} | {100 * alone / ms:.0f} %")
        print(f"| {gpus} x {machine[0]} | {micro} | {alone:.1f} | {cells[0]} | {cells[1]} |")
    rows()
    sharded()


if __name__ == "__main__":
    main()
