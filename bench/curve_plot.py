#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two programs' curves and their noise: curve_plot.py [--noise N] [--exact TORCH-FLOAT32] --svg FILE NOJIT NOJIT-HALVES TORCH TORCH-HALVES

Each folder has metrics.jsonl. Noise is by how much runs of one program differ that differ in rounding alone: with halves of the
batches. Draws both losses and their difference over the noise, prints the numbers, and says whether the mean difference of the
programs is at most N times the larger mean noise. Exit status 1 if it is not. --exact shows what 16 bits change: that is much more.
Standard library only.
"""
import argparse
import json
import os
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 560, 210, 62, 180, 8
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #586574 } .title { font-size: 14px; font-weight: 600; fill: #16202c }
.rule { stroke: #e9ecf0 } path { fill: none !important; stroke-width: 1.5 } rect { fill: #fff }
.nojit { stroke: #1f5fd0; fill: #1f5fd0 } .exact { stroke: #1d8a4e; fill: #1d8a4e } .torch { stroke: #cf4a10; fill: #cf4a10; stroke-dasharray: 5 4 }
.apart { stroke: #16202c; fill: #16202c } text.nojit, text.torch, text.apart, text.exact { stroke: none }
@media (prefers-color-scheme: dark) {
rect { fill: #171e27 } text { fill: #9dabba } .title { fill: #e8edf3 } .rule { stroke: #242d39 }
.nojit { stroke: #6aa6ff; fill: #6aa6ff } .torch { stroke: #ff9153; fill: #ff9153 } .apart { stroke: #e8edf3; fill: #e8edf3 }
}
</style>"""


def read(folder):
    """Losses by step."""
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    return [row["loss"] for row in rows if "loss" in row]


def apart(a, b):
    return [abs(x - y) for x, y in zip(a, b)]


def mean(values):
    return sum(values) / len(values)


def smooth(values, over=9):
    """Mean of the neighbours, for drawing."""
    half = over // 2
    return [mean(values[max(0, i - half) : i + half + 1]) for i in range(len(values))]


def ticks(low, high):
    step = 10.0 ** len(str(int(high - low))) if high - low >= 1 else 1.0
    while (high - low) / step < 3:
        step /= 2 if str(step)[0] in "1" else 2.5 if str(step)[0] == "5" else 2
    first = int(low / step)
    return [i * step for i in range(first, first + 12) if low <= i * step <= high]


def panel(x, title, curves, logarithmic=False):
    """Curves: (name, class, values)."""
    from math import floor, log10
    flat = [v for _, _, values in curves for v in values if v > 0 or not logarithmic]
    if logarithmic:
        def scale(v):
            return log10(max(v, floor_value))
        floor_value = 10.0 ** floor(log10(min(flat))) if flat else 1e-9
        marks = [10.0 ** e for e in range(floor(log10(floor_value)), floor(log10(max(flat or [1e-8]))) + 2)]
        low, high = scale(marks[0]), scale(marks[-1])
    else:
        def scale(v):
            return v
        low, high = min(flat), max(flat)
        high = high if high > low else low + 1
        marks = ticks(low, high)
    steps = len(curves[0][2])

    def at(i, v):
        return (LEFT + (WIDTH - LEFT) * i / max(1, steps - 1), BOTTOM - (BOTTOM - TOP) * (scale(v) - low) / (high - low))
    parts = [f'<g transform="translate({x} 36)">', f'<text class="title" x="0" y="-16">{title}</text>']
    for v in marks:
        y = at(0, v)[1]
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{v:.3g}</text>')
    for i in range(4):
        step = 1 + (steps - 1) * i // 3
        parts.append(f'<text x="{at(step - 1, marks[0])[0]:.1f}" y="{BOTTOM + 18}" text-anchor="middle">{step}</text>')
    for n, (name, kind, values) in enumerate(curves):
        points = " L".join("%.1f %.1f" % at(i, v) for i, v in enumerate(values))
        parts.append(f'<path class="{kind}" d="M{points}"/>')
        parts.append(f'<text class="{kind}" x="{LEFT + 125 * n}" y="{BOTTOM + 42}">{name}</text>')
    return "\n".join(parts + ["</g>"])


def write_svg(path, width, height, label, parts, style=STYLE):
    size = f'viewBox="0 0 {width} {height}" role="img" aria-label="{label}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', style, '<rect width="100%" height="100%"/>']
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(head + parts + ["</svg>\n"]))


def draw(path, nojit, torch, differences):
    left = panel(10, "Loss by step", [("nojit", "nojit", nojit), ("PyTorch", "torch", torch)])
    right = panel(620, "Differences of the loss by step, mean of 9",
                  [(name, kind, smooth(values)) for name, kind, values in differences], logarithmic=True)
    write_svg(path, 1200, HEIGHT + 60, "Loss of nojit and PyTorch by step, and their differences", [left, right])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--noise", type=float, default=2)
    parser.add_argument("--exact")
    parser.add_argument("--svg", required=True)
    parser.add_argument("runs", nargs=4)
    args = parser.parse_args()
    nojit, nojit_halves, torch, torch_halves, *exact = runs = [read(r) for r in args.runs + [args.exact] * bool(args.exact)]
    if len({len(r) for r in runs}) != 1 or not nojit:
        sys.exit(f"curve_plot: the runs have {', '.join(str(len(r)) for r in runs)} steps; they must have the same")
    differences = [("nojit - PyTorch", "apart", apart(nojit, torch)),
                   ("nojit, halves", "nojit", apart(nojit, nojit_halves)),
                   ("PyTorch, halves", "torch", apart(torch, torch_halves))]
    noises = differences[1:]
    differences = differences + [("PyTorch, float32", "exact", apart(torch, run)) for run in exact]
    draw(args.svg, nojit, torch, differences)
    print(f"{len(nojit)} steps, loss {nojit[0]:.4f} -> {nojit[-1]:.4f} (nojit), {torch[0]:.4f} -> {torch[-1]:.4f} (PyTorch)")
    print(f"{'absolute difference':25}  {'first':>9} {'mean':>9} {'largest':>9}  last tenth")
    if exact:
        differences.append(("nojit - PyTorch's float32", "", apart(nojit, exact[0])))
    for name, _, values in differences:
        tail = values[-max(1, len(values) // 10) :]
        print(f"{name:25}  {values[0]:9.2e} {mean(values):9.2e} {max(values):9.2e}  {mean(tail):.2e}")
    difference, noise = mean(differences[0][2]), max(mean(values) for _, _, values in noises)
    within = difference <= args.noise * noise
    print(f"verdict: nojit and PyTorch differ by {difference:.2e} on average, runs of one program by {noise:.2e} for rounding alone: "
          f"{'within' if within else 'BEYOND'} {args.noise:g} times the noise")
    sys.exit(0 if within else 1)


if __name__ == "__main__":
    main()
