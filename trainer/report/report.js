// SPDX-License-Identifier: Apache-2.0
//
// report.js: draws the page from the JSON in #data. Plain SVG; a chart is redrawn whenever its width or a control
// changes.
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs;
const $ = (id) => document.getElementById(id);
const escapes = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"};
const esc = (s) => String(s).replace(/[&<>"']/g, (c) => escapes[c]);

// ---- numbers as text
function compact(v) {
    const a = Math.abs(v);
    if (v === 0) return "0";
    if (a >= 1e15 || a < 1e-3) return v.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
    for (const [size, suffix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]])
        if (a >= size) return +(v / (suffix === "k" ? 1e3 : size)).toPrecision(3) + suffix;
    return String(+v.toPrecision(a >= 1000 ? 4 : 3));
}
const exact = (v) => Number.isInteger(v) && Math.abs(v) < 1e15 ? v.toLocaleString("en-GB") : String(+v.toPrecision(6));
const bytesPower = (v) => v > 0 ? Math.min(4, Math.floor(Math.log2(v) / 10)) : 0;
function bytes(v) {
    const i = bytesPower(v);
    return +(v / 2 ** (10 * i)).toPrecision(3) + [" B", " KiB", " MiB", " GiB", " TiB"][i];
}
const four = (v) => Math.abs(v) >= 1e-3 && Math.abs(v) < 1e4 ? v.toPrecision(4) : compact(v);
const percent = (v, digits = 3) => +(100 * v).toPrecision(digits) + " %";

// Return the unit of a divergence: that of the objective, which runs in one chart share.
const units = new Map(Object.entries(data.units));
function divergenceUnit(name, group) {
    const run = runs[group.find((i) => runs[i].series.has(name))];
    return units.get(run.receipt?.applied?.objective ?? "kl") || "nats";
}

// ---- charts, in order: name of the metric, title, unit or a function that returns it; plain: never smoothed; log:
// always on a log scale
const groups = [
    ["Objective", [
        ["loss", "Loss", "nats"],
        ["kd_loss", "Divergence from the teacher", divergenceUnit],
        ["ce_loss", "Cross-entropy on the text", "nats", {answers: "Cross-entropy on answers"}],
        ["agreement", "Agreement with the teacher", "share of tokens", {text: percent}],
        ["teacher_entropy", "Entropy of the teacher", "nats"],
        ["balance_loss", "Imbalance of experts", "loss without its coefficient"]]],
    ["Held out", [
        ["eval_loss", "Held-out loss", "nats"],
        ["eval_ce_loss", "Held-out cross-entropy", "nats"],
        ["eval_kd_loss", "Held-out divergence", divergenceUnit],
        ["eval_perplexity", "Held-out perplexity", "perplexity", {log: true}],
        ["eval_agreement", "Held-out agreement", "share of tokens", {text: percent}],
        ["eval_teacher_entropy", "Held-out entropy of the teacher", "nats"]]],
    ["Answers", [
        ["forward_kl", "KL(teacher || student) on answers", "nats"],
        ["reverse_kl", "KL(student || teacher) on answers", "nats"],
        ["student_entropy", "Entropy of the student on answers", "nats"],
        ["rollout_length", "Length of an answer", "tokens"],
        ["rollout_truncated", "Answers that were cut", "share of answers", {text: percent}],
        ["rollout_seconds", "Time of writing answers", "seconds per step"],
        ["rollout_tokens_per_second", "Throughput of writing", "tokens/s"]]],
    ["Optimizer", [
        ["lr", "Learning rate", "learning rate", {plain: true}],
        ["grad_norm", "Gradient norm", "norm before clipping"],
        ["skipped_updates", "Skipped updates", "updates so far", {plain: true, ifNonzero: true}]]],
    ["Speed and memory", [
        ["tokens_per_second", "Throughput", "tokens/s", {answers: "Throughput, without writing answers"}],
        ["step_ms", "Time per step", "ms"],
        ["mfu_student", "Model FLOP utilisation, student", "share of peak", {text: percent}],
        ["mfu_teacher", "Model FLOP utilisation, teacher", "share of peak", {text: percent}],
        ["memory_bytes", "Memory", "device memory", {plain: true, text: bytes, zero: true}]]],
];
const hidden = new Set(["tokens", "valid_tokens", "eval_tokens", "rollout_tokens"]);
const known = new Set(groups.flatMap(([, rows]) => rows.map((r) => r[0])));
// A metric may have the name of something that every object has; a map has nothing of its own.
for (const run of runs) run.series = new Map(Object.entries(run.series));
const apart = new Map(Object.entries(data.apart));
const others = new Set(runs.flatMap((r) => [...r.series.keys()]).filter((n) => !known.has(n) && !hidden.has(n)));
if (others.size) groups.push(["Other", [...others].map((n) => [n, n.replaceAll("_", " "), "value"])]);

// ---- curves
const state = {smooth: 0.6, log: false, shown: runs.map(() => true)};
// A page that reloads itself keeps the user's choices; some browsers store nothing for files.
function recall() {
    try {
        const was = JSON.parse(sessionStorage.getItem("nojit " + location.pathname));
        if (was && was.shown.length === runs.length) Object.assign(state, was);
    } catch { /* the defaults */ }
}
function remember() {
    try { sessionStorage.setItem("nojit " + location.pathname, JSON.stringify(state)); } catch { /* not kept */ }
}
if (data.refresh) recall();
const colour = (i) => `c${i % 8}`;
const dash = (i) => ["", "6 3", "2 3"][Math.floor(i / 8) % 3];
const answers = (run) => run.series.has("rollout_tokens");
const last = (run, name) => run.series.has(name) ? run.series.get(name).y.at(-1) : undefined;

// Return the exponential mean over more points the more there are, so that long runs are smoothed like short ones.
function smoothed(y, amount) {
    const weight = 1 - 1 / Math.max(1 / (1 - amount), y.length * amount ** 3 / 30);
    let sum = 0, norm = 0;
    return y.map((v) => {
        sum = weight * sum + (1 - weight) * v;
        norm = weight * norm + 1 - weight;
        return sum / norm;
    });
}
function ticks(lo, hi, want) {
    const rough = (hi - lo) / want, size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((m) => m * size >= rough) * size;
    const out = [];
    for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + step * 1e-9; k++) out.push(+(k * step).toPrecision(12));
    return out;
}
function logTicks(lo, hi, want) {
    const decades = Math.log10(hi / lo), out = [];
    if (decades < 1) return ticks(lo, hi, want).filter((v) => v > 0);
    const skip = Math.max(1, Math.ceil(decades / want));
    for (let e = Math.floor(Math.log10(lo)); e <= Math.ceil(Math.log10(hi)); e++)
        for (const m of decades < 3 ? [1, 2, 5] : [1]) {
            const v = +(m * 10 ** e).toPrecision(3);
            if (e % skip === 0 && v >= lo * 0.999 && v <= hi * 1.001) out.push(v);
        }
    return out;
}

// Format the labels of an axis with as many digits as make them differ.
function labels(values, text) {
    const precise = new Map([
        [compact, (v, digits) => String(+v.toPrecision(digits))],
        [percent, (v, digits) => +(100 * v).toPrecision(digits) + " %"]]).get(text);
    let out = values.map((v) => text(v));
    for (let digits = 4; precise && digits < 10 && new Set(out).size < out.length; digits++)
        out = values.map((v) => precise(v, digits));
    return out;
}

const charts = [];
const cursor = {x: null, chart: null};

class Chart {
    // group: numbers of the runs that may be compared
    constructor(name, title, unit, how, parent, group) {
        const whose = group.length < runs.length ? ": " + group.map((i) => runs[i].name).join(", ") : "";
        const what = how && how.answers && group.some((i) => answers(runs[i])) ? how.answers : title;
        Object.assign(this, {name, title: what + whose, unit, how: how || {}, group});
        this.text = this.how.text || compact;
        this.box = document.createElement("div");
        this.box.className = "chart";
        this.box.innerHTML = `<h3>${esc(this.title)}</h3>` +
            `<svg tabindex="0" role="img"></svg><div class="tip" hidden></div>`;
        parent.append(this.box);
        this.svg = this.box.querySelector("svg");
        this.tip = this.box.querySelector(".tip");
        this.svg.addEventListener("pointermove", (e) => this.point(e.clientX));
        this.svg.addEventListener("pointerdown", (e) => this.point(e.clientX));
        this.svg.addEventListener("pointerleave", () => moveCursor(null, null));
        this.svg.addEventListener("blur", () => moveCursor(null, null));
        this.svg.addEventListener("keydown", (e) => this.key(e));
        new ResizeObserver(() => this.draw()).observe(this.svg);
    }
    get log() { return state.log || this.how.log; }
    // The curves that are shown, without the points that a log scale cannot show.
    curves() {
        return runs.flatMap((run, i) => {
            const s = run.series.get(this.name);
            if (!s || !state.shown[i] || !this.group.includes(i)) return [];
            const keep = s.y.map((v) => !this.log || v > 0);
            const x = s.x.filter((_, k) => keep[k]), raw = s.y.filter((_, k) => keep[k]);
            if (!x.length) return [];
            const soft = state.smooth > 0 && !this.how.plain && !this.name.startsWith("eval_") && raw.length >= 20;
            if (!soft) return [{i, x, raw, sx: x, y: raw}];
            return s.mean ? [{i, x, raw, sx: s.at, y: smoothed(s.mean, state.smooth), soft}] :
                [{i, x, raw, sx: x, y: smoothed(raw, state.smooth), soft}];
        });
    }
    range(curves) {
        let lo = Infinity, hi = -Infinity, x0 = Infinity, x1 = -Infinity;
        for (const c of curves) {
            for (const v of c.raw) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
            x0 = Math.min(x0, c.x[0]);
            x1 = Math.max(x1, c.x.at(-1));
        }
        if (this.how.zero && !this.log) lo = Math.min(lo, 0);
        if (this.log) {
            const pad = Math.max((hi / lo) ** 0.05, 1.05);
            lo /= pad;
            hi *= pad;
        } else {
            // Rounding noise is not blown up to the height of the chart.
            const least = 0.01 * Math.max(Math.abs(lo), Math.abs(hi)) || 1;
            const pad = Math.max(0.05 * (hi - lo), (least - (hi - lo)) / 2);
            lo = lo >= 0 && lo < pad ? 0 : lo - pad;
            hi += pad;
        }
        if (x1 === x0) { x0 -= 1; x1 += 1; }
        return {lo, hi, x0, x1};
    }
    draw() {
        const w = this.svg.clientWidth, h = this.svg.clientHeight;
        if (!w) return;
        this.drawn = this.curves();
        this.svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
        if (!this.drawn.length) {
            this.svg.innerHTML = `<text x="${w / 2}" y="${h / 2}" text-anchor="middle">nothing to draw</text>`;
            this.svg.setAttribute("aria-label", this.title + ": nothing to draw");
            return;
        }
        const r = this.range(this.drawn), map = this.log ? Math.log : (v) => v;
        const unit = this.text === bytes ? 2 ** (10 * bytesPower(r.hi)) : 1;
        const yt = (this.log ? logTicks : ticks)(r.lo / unit, r.hi / unit, 6).map((v) => v * unit);
        const names = labels(yt, this.text), left = 26 + 6.6 * Math.max(...names.map((n) => n.length));
        const right = w - 12, top = 10, bottom = h - 40, middle = (top + bottom) / 2;
        this.px = (x) => left + (right - left) * (x - r.x0) / (r.x1 - r.x0);
        this.py = (y) => bottom - (bottom - top) * (map(y) - map(r.lo)) / (map(r.hi) - map(r.lo));
        this.step = (px) => r.x0 + (r.x1 - r.x0) * (px - left) / (right - left);
        this.frame = {top, bottom, left, right};
        const xt = ticks(r.x0, r.x1, Math.max(2, Math.floor(w / 70))).filter(Number.isInteger);
        const across = (y, kind) => `<line class="${kind}" x1="${left}" x2="${right}" y1="${y}" y2="${y}"/>`;
        let out = yt.map((v, k) => across(this.py(v), "rule") +
            `<text x="${left - 7}" y="${this.py(v) + 4}" text-anchor="end">${names[k]}</text>`).join("");
        out += across(bottom, "axis") + xt.map((v) =>
            `<text x="${this.px(v)}" y="${bottom + 17}" text-anchor="middle">${compact(v)}</text>`).join("");
        out += `<text x="${(left + right) / 2}" y="${h - 5}" text-anchor="middle">step</text>` +
            `<text transform="translate(11 ${middle}) rotate(-90)" text-anchor="middle">` +
            `${esc(this.unit)}${this.log ? ", log scale" : ""}</text>`;
        for (const c of this.drawn) out += this.curve(c);
        this.svg.innerHTML = out + `<g></g>`;
        this.svg.setAttribute("aria-label", `${this.title} by step: ` + this.drawn.map((c) =>
            `${runs[c.i].name} from ${this.text(c.raw[0])} to ${this.text(c.raw.at(-1))}`).join("; "));
        if (cursor.x !== null) this.mark();
    }
    curve(c) {
        const line = (x, y) => "M" + y.map((v, k) => this.px(x[k]).toFixed(1) + " " + this.py(v).toFixed(1)).join("L");
        const few = c.x.length <= 40 && (this.name.startsWith("eval_") || c.x.length === 1);
        const dots = few ? c.x.map((x, k) => this.dot(x, c.raw[k], 3.5)).join("") : "";
        // Values that lie denser than pixels would cover what is below them.
        const faint = Math.min(0.28, 0.2 * (this.px(c.x.at(-1)) - this.px(c.x[0])) / c.raw.length);
        return `<g class="${colour(c.i)}">` +
            (c.soft ? `<path class="raw" opacity="${faint.toFixed(2)}" d="${line(c.x, c.raw)}"/>` : "") +
            `<path d="${line(c.sx, c.y)}" stroke-dasharray="${dash(c.i)}"/>${dots}</g>`;
    }
    dot(x, y, radius) {
        return `<circle cx="${this.px(x).toFixed(1)}" cy="${this.py(y).toFixed(1)}" r="${radius}"/>`;
    }
    point(clientX) {
        const box = this.svg.getBoundingClientRect();
        if (this.drawn && this.drawn.length) moveCursor(this.step(clientX - box.left), this);
    }
    key(e) {
        const way = {ArrowLeft: -1, ArrowRight: 1}[e.key];
        if (!way || !this.drawn.length) return;
        e.preventDefault();
        const xs = this.drawn[0].x, from = cursor.x === null ? (way > 0 ? -1 : xs.length) : nearest(xs, cursor.x);
        moveCursor(xs[Math.max(0, Math.min(xs.length - 1, from + way))], this);
    }
    // The cursor's line and points on every chart; the values only on the one that is pointed at.
    mark() {
        const layer = this.svg.querySelector(":scope > g:last-child");
        const here = cursor.chart === this;
        this.tip.hidden = !here;
        if (!layer || !this.drawn || !this.drawn.length) return;
        if (cursor.x === null) { layer.innerHTML = ""; return; }
        const f = this.frame, hits = this.drawn.map((c) => ({c, k: nearest(c.x, cursor.x)}));
        const main = hits.reduce((a, b) => Math.abs(b.c.x[b.k] - cursor.x) < Math.abs(a.c.x[a.k] - cursor.x) ? b : a);
        const at = main.c.x[main.k], px = this.px(at);
        if (px < f.left - 1 || px > f.right + 1) { layer.innerHTML = ""; return; }
        layer.innerHTML = `<line class="cursor" x1="${px}" x2="${px}" y1="${f.top}" y2="${f.bottom}"/>` +
            hits.map(({c, k}) => `<g class="${colour(c.i)}">${this.dot(c.x[k], c.raw[k], 4)}</g>`).join("");
        if (!here) return;
        const value = this.how.text || exact;
        this.tip.innerHTML = `<b>step ${exact(at)}</b>` + hits.map(({c, k}) => `<div class="${colour(c.i)}">` +
            `<span><i></i>${esc(runs[c.i].name)}${c.x[k] === at ? "" : " at " + exact(c.x[k])}</span>` +
            `<b>${value(c.raw[k])}</b></div>`).join("");
        const box = this.box.getBoundingClientRect(), svg = this.svg.getBoundingClientRect();
        const width = this.tip.offsetWidth, x = px + svg.left - box.left;
        this.tip.style.left = Math.max(8, x + 14 + width > this.box.clientWidth - 8 ? x - 14 - width : x + 14) + "px";
        this.tip.style.top = svg.top - box.top + 12 + "px";
    }
}

function nearest(xs, x) {
    let lo = 0, hi = xs.length - 1;
    while (hi - lo > 1) {
        const mid = (lo + hi) >> 1;
        if (xs[mid] <= x) lo = mid; else hi = mid;
    }
    return Math.abs(xs[lo] - x) <= Math.abs(xs[hi] - x) ? lo : hi;
}
function moveCursor(x, chart) {
    cursor.x = x;
    cursor.chart = chart;
    charts.forEach((c) => c.mark());
}
function redraw() {
    if (data.refresh) remember();
    charts.forEach((c) => c.draw());
}

// ---- the parts of the page
const when = (text) => text.replace("T", " ").replace(/:\d\d(\.\d+)?Z$/, " UTC");
// Quote a word for a shell.
const quoted = (word) => /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";

function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted[sorted.length >> 1];
}
function stats(run) {
    const speed = run.series.get("tokens_per_second"), memory = last(run, "memory_bytes"), r = run.receipt || {};
    const written = r.rollouts || {}, teacher = r.teacher_parameters > 0, loss = last(run, "loss"), onText = last(run, "ce_loss");
    return [
        ["Steps", run.steps, exact],
        [apart.has("loss") ? "Its own loss" : "Loss", loss === onText ? undefined : loss, four],
        [answers(run) ? "CE on answers" : "Cross-entropy", onText, four],
        ["Divergence", last(run, "kd_loss"), four],
        ["Held-out CE", last(run, "eval_ce_loss"), four, "held"],
        ["Answer length", written.length, compact],
        ["Answers cut", written.truncated, percent],
        ["Writing", written.share_of_time, (v) => percent(v) + " of the time"],
        [answers(run) ? "Tokens/s without writing" : "Tokens/s", speed && median(speed.y), compact],
        ["Memory", memory, bytes],
        ["Parameters", r.student_parameters, compact],
        ["Teacher", teacher ? r.teacher_parameters : undefined, compact],
    ].filter(([, v]) => v !== undefined && v !== null);
}
function drawRuns() {
    $("runs").innerHTML = runs.map((run, i) => {
        const r = run.receipt, d = r && r.device;
        const line = [r && r.command, d && d.name, r && r.applied && r.applied.dtype,
            r && r.started && when(r.started)].filter(Boolean).join(" · ");
        const words = r && r.command_line ? `<details class="words"><summary>Command line</summary><pre>` +
            `${esc(r.command_line.map(quoted).join(" "))}</pre></details>` : "";
        const values = stats(run).map(([name, v, text, mark]) => `<div><dt>${name}</dt><dd>${text(v)}` +
            `${mark && data.lowest.includes(i) ? '<span class="best">lowest</span>' : ""}</dd></div>`).join("");
        return `<article class="card ${colour(i)}"><h3>${esc(run.name)}</h3>` +
            `<p class="muted">${esc(line || run.path)}</p>` +
            run.notes.map((n) => `<p class="warn">${esc(n)}</p>`).join("") +
            `<dl class="stats">${values}</dl>${words}</article>`;
    }).join("");
    $("about").textContent = `${runs.length} run${runs.length > 1 ? "s" : ""}, ` +
        `${exact(runs.reduce((n, r) => n + r.rows, 0))} rows of metrics; written by nojit ${data.version}`;
    $("broken").innerHTML = data.broken.map((why) => `<p class="note">Left out: ${esc(why)}</p>`).join("");
    document.title = runs.map((r) => r.name).join(", ") + " - nojit report";
}
function drawLegend() {
    $("legend").innerHTML = runs.map((run, i) => `<button type="button" aria-pressed="${state.shown[i]}" class="${colour(i)}">` +
        `<svg viewBox="0 0 22 8" aria-hidden="true"><path d="M1 4H21" stroke="var(--c)" stroke-width="3" ` +
        `stroke-dasharray="${dash(i)}"/></svg>${esc(run.name)}</button>`).join("");
    [...$("legend").children].forEach((button, i) => button.addEventListener("click", () => {
        state.shown[i] = !state.shown[i];
        button.setAttribute("aria-pressed", state.shown[i]);
        redraw();
    }));
}
function drawCharts() {
    for (const [heading, rows] of groups) {
        const have = rows.filter(([name, , , how]) => runs.some((r) => {
            const s = r.series.get(name);
            return s && (!(how && how.ifNonzero) || s.y.some((v) => v !== 0));
        }));
        if (!have.length) continue;
        const section = document.createElement("section"), grid = document.createElement("div");
        section.innerHTML = `<h2>${heading}</h2>`;
        const why = new Set(have.flatMap(([name]) => apart.has(name) ? apart.get(name).why : []));
        if (why.size) section.innerHTML += `<p class="note">Drawn apart are runs whose numbers cannot be compared: ` +
            `${esc([...why].join("; "))}.</p>`;
        grid.className = "grid";
        section.append(grid);
        $("charts").append(section);
        for (const [name, title, unit, how] of have)
            for (const group of apart.has(name) ? apart.get(name).groups : [runs.map((_, i) => i)])
                charts.push(new Chart(name, title, unit.call ? unit(name, group) : unit, how, grid, group));
    }
}
// List a receipt as [group, name, value]; numbers and words of the top level are one group. The command line is on the
// card.
function flat(receipt) {
    const out = new Map();
    for (const [key, value] of Object.entries(receipt || {})) {
        if (value !== null && typeof value === "object" && !Array.isArray(value))
            for (const [name, v] of Object.entries(value)) out.set(key + "\n" + name, v);
        else if (key !== "command_line") out.set("run\n" + key, value);
    }
    return out;
}
const titles = new Map([["run", "Run"], ["options", "Options"], ["rollouts", "Answers"], ["applied", "Applied by the engine"], ["device", "Device"], ["compilations", "Compilations"]]);
function show(v) {
    if (v === undefined) return "–";
    if (v === "") return "";
    if (Array.isArray(v)) return v.map(show).join("\n");
    if (v !== null && typeof v === "object") return JSON.stringify(v);
    return typeof v === "number" ? exact(v) : String(v);
}
function drawReceipts() {
    const maps = runs.map((r) => flat(r.receipt));
    const keys = [...new Set(maps.flatMap((m) => [...m.keys()]))];
    if (!keys.length) { $("receipts").hidden = true; return; }
    const order = [...new Set(["run", ...keys.map((k) => k.split("\n")[0])])];
    let body = "", differences = 0;
    for (const group of order) {
        const rows = keys.filter((k) => k.split("\n")[0] === group);
        if (!rows.length) continue;
        body += `<tr class="group"><th scope="rowgroup" colspan="${runs.length + 1}">` +
            `${esc(titles.get(group) || group)}</th></tr>`;
        for (const key of rows) {
            const values = maps.map((m) => show(m.get(key)));
            const differs = new Set(values.filter((_, i) => runs[i].receipt)).size > 1;
            differences += differs;
            body += `<tr${differs ? ' class="differs"' : ""}><th scope="row">${esc(key.split("\n")[1])}</th>` +
                values.map((v) => `<td>${esc(v)}</td>`).join("") + "</tr>";
        }
    }
    const heads = runs.map((r) => `<th scope="col">${esc(r.name)}</th>`).join("");
    $("table").innerHTML = `<table><thead><tr><th></th>${heads}</tr></thead><tbody>${body}</tbody></table>`;
    if (runs.length > 1 && differences) {
        $("only").hidden = false;
        $("only").lastChild.textContent = ` Differences only (${differences})`;
        $("only").firstChild.addEventListener("change", (e) =>
            $("table").firstChild.classList.toggle("only", e.target.checked));
    }
}
// Draw the samples, grouped by prompt: the last one of each run, and earlier ones on demand.
function drawSamples() {
    const prompts = new Map();
    runs.forEach((run, i) => run.samples.filter((s) => s.answer === undefined).forEach((s) => {
        const of = prompts.get(s.prompt) || prompts.set(s.prompt, runs.map(() => [])).get(s.prompt);
        of[i].push(s);
    }));
    const one = (i, s) => `<p class="muted">${esc(runs[i].name)}${s.step === undefined ? "" : ", step " + exact(s.step)}</p>` +
        `<pre>${esc(s.text || "")}</pre>`;
    const card = (list, i) => list.length ? `<div class="sample ${colour(i)}">${one(i, list.at(-1))}` +
        (list.length > 1 ? `<details><summary>${list.length - 1} earlier</summary>` +
            list.slice(0, -1).reverse().map((s) => one(i, s)).join("") + "</details>" : "") + "</div>" : "";
    $("samples").hidden = !prompts.size;
    $("samples").lastChild.innerHTML = [...prompts].map(([prompt, of]) =>
        `<h3>${esc(prompt || "")}</h3><div class="grid">${of.map(card).join("")}</div>`).join("");
}
// Draw the answers of the last step that has any, and those of earlier steps on demand.
function drawAnswers() {
    const one = (s) => `<p class="muted">step ${exact(s.step)}${s.answer === "cut" ? ", cut" : ""}</p>` +
        `<pre class="asked">${esc(s.prompt || "")}</pre><pre>${esc(s.text || "")}</pre>`;
    const cards = runs.map((run, i) => {
        const answers = run.samples.filter((s) => s.answer !== undefined && s.step !== undefined);
        if (!answers.length) return "";
        const newest = answers.at(-1).step, before = answers.filter((s) => s.step !== newest).reverse();
        return `<div class="sample ${colour(i)}"><p>${esc(run.name)}</p>` +
            answers.filter((s) => s.step === newest).map(one).join("") + (before.length ?
            `<details><summary>${before.length} earlier</summary>${before.map(one).join("")}</details>` : "") + "</div>";
    }).join("");
    $("answers").hidden = !cards;
    $("answers").lastChild.innerHTML = `<div class="grid">${cards}</div>`;
}

document.querySelector("main").hidden = false;
drawRuns();
drawLegend();
drawCharts();
drawSamples();
drawAnswers();
drawReceipts();
const smoothText = () => state.smooth > 0 ? state.smooth.toFixed(2) : "off";
$("smooth").value = state.smooth;
$("smoothed").textContent = smoothText();
$("log").checked = state.log;
$("smooth").addEventListener("input", (e) => {
    state.smooth = +e.target.value;
    $("smoothed").textContent = smoothText();
    redraw();
});
$("log").addEventListener("change", (e) => {
    state.log = e.target.checked;
    redraw();
});
})();
