#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rows of scaling.py as a picture, share of linear measured and predicted: scaling_plot.py FILE."""
import sys

from curve_plot import STYLE, write_svg
from scaling import MEASURED, ROWS, of_linear, predicted

WIDTH, TOP, ROW, NAMES, COLUMN, GAP = 900, 66, 25, 196, 170, 30
LOW, HIGH = 94, 100  # per cent
OWN = """<style>
.measured { fill: #1f5fd0 } .predicted { fill: #fff; stroke: #586574; stroke-width: 1.5 }
.name, .value { fill: #16202c }
@media (prefers-color-scheme: dark) {
.measured { fill: #6aa6ff } .predicted { fill: #171e27; stroke: #9dabba } .name, .value { fill: #e8edf3 }
}
</style>"""


def text(x, y, words, kind="", anchor="start"):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def circle(x, y, kind):
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'


def column(n, gpus):
    """A panel with a line per row: measured filled, predicted hollow. The number is the measured one, if any."""
    left, bottom = NAMES + n * (COLUMN + GAP), TOP + ROW * len(ROWS)

    def at(percent):
        return left + COLUMN * (percent - LOW) / (HIGH - LOW)

    parts = [text(left, TOP - 18, f"{gpus} GPUs" + ("" if gpus in MEASURED else ", predicted"), "title")]
    for percent in range(LOW, HIGH + 1, 2):
        parts.append(f'<line class="rule" x1="{at(percent):.1f}" x2="{at(percent):.1f}" y1="{TOP - 6}" y2="{bottom}"/>')
        parts.append(text(at(percent), bottom + 16, f"{percent}", anchor="middle"))
    for i, row in enumerate(ROWS):
        y = TOP + ROW * (i + 0.5)
        share = 100 * row.ms[0] / predicted(row, gpus)
        parts.append(circle(at(share), y, "predicted"))
        if gpus in MEASURED:
            share = 100 * of_linear(row, MEASURED.index(gpus))
            parts.append(circle(at(share), y, "measured"))
        parts.append(text(at(share) - 9, y + 4, f"{share:.1f}", "value", "end"))
    return parts


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    bottom = TOP + ROW * len(ROWS)
    parts = [text(WIDTH - 10, TOP - 18, "tokens/s on 4", "title", "end")]
    for i, row in enumerate(ROWS):
        y = TOP + ROW * (i + 0.5) + 4
        parts += [text(10, y, row.name.replace("->", "→").replace(" x ", " × "), "name")]
        parts += [text(WIDTH - 10, y, f"{row.tokens[MEASURED.index(4)]:,}", "value", "end")]
    for n, gpus in enumerate((2, 4, 8)):
        parts += column(n, gpus)
    title = "Share of linear in per cent, H200 of one host, 8 × 1024 tokens per GPU unless noted"
    parts += [text(10, 22, title, "title")]
    parts += [circle(NAMES + 5, bottom + 38, "measured"), text(NAMES + 16, bottom + 42, "measured")]
    parts += [circle(NAMES + 95, bottom + 38, "predicted"), text(NAMES + 106, bottom + 42, "predicted")]
    label = "Share of linear on two, four and eight GPUs, measured and predicted"
    write_svg(sys.argv[1], WIDTH, bottom + 54, label, parts, STYLE + "\n" + OWN)


if __name__ == "__main__":
    main()
