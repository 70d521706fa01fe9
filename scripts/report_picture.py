#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw the picture of a report page: report_picture.py PAGE.html OUT.svg [METRIC-TITLE...]

PAGE.html is a page of `nojit report`. Chromium runs its script; this takes the charts that the script drew, with the names of the runs, and
puts them side by side in one SVG file. Numbers, curves and colours are those of the page. Without titles it takes the first four charts.
docs/pictures/report.svg is of the runs `distilled` and `plain` of `make demo`. Needs chromium; otherwise the standard library only.
"""
import html
import re
import shutil
import subprocess
import sys
import tempfile

WIDTH, GAP, HEAD, TITLE = 440, 16, 44, 30
STYLE = """<style>
text { font: 11px system-ui, sans-serif; fill: #586574 } .title { font-size: 14px; font-weight: 600; fill: #16202c } .name { font-size: 13px; fill: #16202c }
.page { fill: #f5f6f8 } .card { fill: #fff; stroke: #dfe3e8 } .rule { stroke: #e9ecf0 } .axis { stroke: #dfe3e8 }
path { fill: none; stroke: var(--c); stroke-width: 1.75; stroke-linejoin: round } path.raw { stroke-width: 1 } circle { fill: var(--c) }
.c0 { --c: #1f5fd0 } .c1 { --c: #cf4a10 } .c2 { --c: #0b8065 } .c3 { --c: #8c35c4 }
@media (prefers-color-scheme: dark) {
text { fill: #9dabba } .title, .name { fill: #e8edf3 } .page { fill: #0e1319 } .card { fill: #171e27; stroke: #2b3542 } .rule { stroke: #242d39 } .axis { stroke: #2b3542 }
.c0 { --c: #6aa6ff } .c1 { --c: #ff9153 } .c2 { --c: #3fd0a8 } .c3 { --c: #cb93f5 }
}
</style>"""


def rendered(page):
    """Return the page after its script has run."""
    browser = shutil.which("chromium") or shutil.which("google-chrome") or sys.exit("report_picture: there is no chromium; apt install chromium")
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", f"--user-data-dir={profile}",
                   f"--window-size={2 * WIDTH + 100},1000", "--dump-dom", f"file://{page}"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def charts_of(dom):
    """Return (title, width, height, drawing) of each chart."""
    found = re.findall(r'<div class="chart"><h3>(.*?)</h3><svg[^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>(.*?)</svg>', dom, re.S)
    return [(title, float(w), float(h), drawing) for title, w, h, drawing in found]


def legend_of(dom):
    """Return (class, name) of each run."""
    legend = re.search(r'id="legend".*?</div>', dom, re.S).group(0)
    return [(kind, re.sub(r"<[^>]*>", "", name)) for kind, name in re.findall(r'<button[^>]*class="(c\d)"[^>]*>(.*?)</button>', legend, re.S)]


def picture(runs, charts):
    """Return the SVG: a line with the runs, then two charts in each row."""
    w, h = max(c[1] for c in charts), max(c[2] for c in charts)
    card_w, card_h = w + 2 * GAP, h + TITLE + GAP
    width, height = 2 * card_w + 3 * GAP, HEAD + (len(charts) + 1) // 2 * (card_h + GAP)
    label = html.escape("Charts of nojit report: " + ", ".join(html.unescape(c[0]) for c in charts))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{label}">', STYLE,
             '<rect class="page" width="100%" height="100%"/>', f'<text class="title" x="{GAP}" y="27">nojit report</text>']
    x = 130
    for kind, name in runs:
        parts.append(f'<g class="{kind}"><path d="M{x} 22.5h22"/></g><text class="name" x="{x + 29}" y="27">{name}</text>')
        x += 55 + 8 * len(name)
    for i, (title, _, _, drawing) in enumerate(charts):
        left, top = GAP + i % 2 * (card_w + GAP), HEAD + i // 2 * (card_h + GAP)
        parts += [f'<g transform="translate({left:.0f} {top:.0f})"><rect class="card" width="{card_w:.0f}" height="{card_h:.0f}" rx="10"/>',
                  f'<text class="title" x="{GAP}" y="22">{title}</text><g transform="translate({GAP} {TITLE})">{drawing}</g></g>']
    return "\n".join(parts + ["</svg>\n"])


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    page, out, *titles = sys.argv[1:]
    dom = rendered(subprocess.run(["realpath", "--", page], check=True, capture_output=True, text=True).stdout.strip())
    charts = charts_of(dom)
    chosen = [next((c for c in charts if html.unescape(c[0]) == t), None) or sys.exit(f"report_picture: {page} has no chart '{t}'") for t in titles]
    with open(out, "w", encoding="utf-8") as f:
        f.write(picture(legend_of(dom), chosen or charts[:4]))


if __name__ == "__main__":
    main()
