#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# report_page.sh: `nojit report`: a page that needs no network, holds every run's values, and cannot be broken by what
# a run says. Where there is a Chromium, the page is opened in it.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
d=$scratch/work
page=$scratch/page.html
mkdir -p "$d"

# run NAME LR STEPS: a folder as a run leaves it.
run() {
    mkdir -p "$d/$1"
    awk -v n="$3" -v lr="$2" 'BEGIN { for (i = 1; i <= n; i++) {
        printf "{\"step\": %d, \"loss\": %.6f, \"kd_loss\": %.6f, \"lr\": %s, \"mfu_student\": null, \"tokens_per_second\": %d}\n",
            i, 5 / i + 1, 2 / i, lr, 1000 + i
        if (i % 10 == 0) printf "{\"step\": %d, \"eval_loss\": %.6f, \"eval_class_loss\": %.6f}\n", i, 6 / i + 1, 6 / i + 1 } }' \
        >"$d/$1/metrics.jsonl"
    echo "{\"command\": \"distill\", \"command_line\": [\"nojit\", \"distill\", \"it's\"], \"started\": \"2026-11-22T16:57:08Z\", \"options\": {\"lr\": \"$2\", \"seed\": \"1\"}, \"device\": {\"name\": \"test\"}}" >"$d/$1/receipt.json"
}
check() { # NAME CONDITION...
    local name=$1
    shift
    if "$@"; then ok "$name"; else not_ok "$name" "$*"; fi
}
# The JSON of the page, with its escapes of '<' undone.
page_data() { sed -n 's/.*id="data">\(.*\)<\/script>.*/\1/p' "$page" | sed 's/\\u003c/</g'; }

run first 0.001 40
run second 0.002 30
check "a page of two runs" "$nojit" report "$d/first" "$d/second" --out "$page" >"$scratch/log"
check "says what it wrote" grep -q 'page.html: 2 runs' "$scratch/log"
check "nothing is fetched" test "$(grep -ciE 'https?:|src=|href=|@import|url\(|fetch\(|XMLHttp' "$page")" = 0
check "a policy forbids fetching" grep -q "default-src 'none'" "$page"
check "names of both runs" test "$(page_data | grep -o '"name":"\(first\|second\)"' | wc -l)" = 2
check "40 values of the loss" test "$(page_data | grep -o '"loss":{"x":\[[^]]*\]' | head -1 | tr ',' '\n' | wc -l)" = 40
check "null is left out" test "$(page_data | grep -c mfu_student)" = 0
check "numbers without scripts" grep -q '<tr><th>first</th><td>40</td><td>1.125</td><td>0.05</td><td></td><td>1.15</td><td>1040</td></tr>' "$page"
# The policy names this very script and style, so nothing else runs; a style attribute would not be allowed either.
allowed() { # script or style
    local text content hash
    text=$(cat "$page")
    content=${text#*"<$1>"}
    hash=$(printf %s "${content%%"</$1>"*}" | sha256sum | head -c 64 | tr a-f A-F | basenc --base16 -d | base64)
    grep -q "Content-Security-Policy.*$1-src 'sha256-$hash'[;\"]" "$page"
}
check "the policy allows this script alone" allowed script
check "the policy allows this style alone" allowed style
check "no inline style or handler" test "$(grep -cE 'unsafe-inline|style=| on[a-z]+=' "$page")" = 0
check "date and command line are there" grep -q '"started":"2026-11-22T16:57:08Z"' "$page"
cp "$page" "$scratch/again.html"
"$nojit" report "$d/first" "$d/second" --out "$page" >"$scratch/log"
check "same runs, same bytes" cmp -s "$page" "$scratch/again.html"

# A long run: extremes stay, and the page stays small.
run long 0.001 40000
sed -i 's/{"step": 23456, "loss": [0-9.]*/{"step": 23456, "loss": 98765/' "$d/long/metrics.jsonl"
"$nojit" report "$d/long" --out "$page" >"$scratch/log"
check "a spike is not lost" grep -q '98765' "$page"
check "a long run makes a small page" test "$(wc -c <"$page")" -lt 600000

# Text of a run stays text.
run '<img onerror=x>' 0.001 5
printf '%s\n' '{"step": 2, "prompt": "</script><script>alert(1)</script>", "text": "before\u0000"}' \
    '{"step": 3, "prompt": "</script><script>alert(1)</script>", "text": "<!--<script>"}' >"$d/<img onerror=x>/samples.jsonl"
"$nojit" report "$d/<img onerror=x>" --out "$page" >"$scratch/log"
check "a sample cannot end the data" test "$(grep -o '</script>' "$page" | wc -l)" = 2
check "markup in names is escaped" test "$(grep -c '<img' "$page")" = 0
check "samples are there" grep -q 'u003c!--' "$page"
check "a sample may hold a zero" grep -q '"text":"before.u0000"' "$page"

# A run whose values are of other types is drawn without them, and says so.
run odd 0.001 5
echo '{"command": [], "command_line": ["nojit", 1], "started": 5, "student_parameters": "x", "teacher_parameters": {}, "applied": 1,
    "device": {"name": null}, "options": {"data": ["a b", "c"], "old": "a b"}}' >"$d/odd/receipt.json"
printf '%s\n' '{"step": null, "text": "no step"}' '[1]' '{"step": 1, "prompt": 5}' '{"step": 1, "prompt": "p", "text": "kept"}' >"$d/odd/samples.jsonl"
echo '{"step": 6, "constructor": 1.5, "__proto__": 2.5, "loss": "x"}' >>"$d/odd/metrics.jsonl"
"$nojit" report "$d/odd" "$d/first" --out "$page" >"$scratch/log"
for field in 'command is not text' 'command_line is not a list of texts' 'started is not text' 'student_parameters is not a number' \
    'teacher_parameters is not a number' 'applied is not an object' 'device.name is not text'; do
    check "receipt: $field" grep -q "receipt.json: $field and is left out" "$page"
done
check "values of another type are left out" test "$(page_data | grep -o '"receipt":{"device":{},"options"' | wc -l)" = 1
check "samples of another type are counted" grep -q 'samples.jsonl: left out 3 rows that are not whole' "$page"
check "the sample beside them stays" test "$(page_data | grep -o '"text":"[^"]*"')" = '"text":"kept"'

# Answers of --on-policy.
run answers 0.001 5
echo '{"step": 6, "loss": 1, "rollout_tokens": 40, "forward_kl": 0.25, "reverse_kl": 0.5, "student_entropy": 0.75}' >>"$d/answers/metrics.jsonl"
printf '%s\n' '{"step": 1, "prompt": "1+1=", "text": "3<b>", "answer": "cut"}' '{"step": 5, "prompt": "2+2=", "text": "4", "answer": "whole"}' \
    '{"step": 5, "prompt": "Hello", "text": "a sample"}' '{"step": 5, "prompt": "2+3=", "text": "5", "answer": 5}' >"$d/answers/samples.jsonl"
"$nojit" report "$d/answers" --out "$page" >"$scratch/log"
check "answers are there" test "$(page_data | grep -oE '"answer":"(cut|whole)"' | wc -l)" = 2
check "those of another type are counted" grep -q 'samples.jsonl: left out 1 row that is not whole' "$page"
check "so are their divergences" test "$(page_data | grep -oE '"(forward_kl|reverse_kl|student_entropy)":\{"x":\[6\]' | wc -l)" = 3

# A resumed run, and damage.
run going 0.001 12
rm "$d/going/receipt.json"
printf '{"step": 13, "lo' >>"$d/going/metrics.jsonl"
check "a resumed run" "$nojit" report "$d/going" --out "$page" >"$scratch/log"
check "says so" grep -q 'the run has not finished.*is not whole' "$page"
refuses "no run" 2 '^nojit report: the folder of a run is needed' "$nojit" report --out "$page"
program=$(realpath "$nojit")
(cd "$d" && "$program" report first >"$scratch/log")
check "without --out it is report.html" grep -q 'id="data"' "$d/report.html"
"$nojit" report --help >"$scratch/log"
check "help says what a RUN is" grep -q '^RUN: the --out folder of' "$scratch/log"
check "and where the page goes" grep -q 'HTML page to write.*\[report.html\]' "$scratch/log"
"$nojit" help --man >"$scratch/man"
check "so does the manual" grep -q '^RUN: the' "$scratch/man"
refuses "not a page" 2 'must end in .html' "$nojit" report "$d/first" --out "$d/first/receipt.json"
refuses "no folder" 1 'nowhere/metrics.jsonl' "$nojit" report "$d/nowhere" --out "$page"
refuses "cannot be written" 1 'nowhere/page.html: cannot be written' "$nojit" report "$d/first" --out "$d/nowhere/page.html"
run damaged 0.001 12
sed -i '7s/"loss"/loss/' "$d/damaged/metrics.jsonl"
refuses "damaged row" 1 'metrics.jsonl:7: ' "$nojit" report "$d/damaged" --out "$d/new.html"
check "nothing partial" test ! -e "$d/new.html"
: >"$d/damaged/metrics.jsonl"
refuses "no rows" 1 'no rows yet' "$nojit" report "$d/damaged" --out "$page"
run bad-receipt 0.001 12
echo '[1' >"$d/bad-receipt/receipt.json"
refuses "damaged receipt" 1 'receipt.json:.*not a receipt' "$nojit" report "$d/bad-receipt" --out "$page"
rm -f "$d/new.html"
refuses "a broken run does not keep the others from the page" 1 '^nojit report: .*/bad-receipt/receipt.json:.*not a receipt' \
    "$nojit" report "$d/first" "$d/bad-receipt" "$d/nowhere" "$d/second" --out "$d/new.html"
check "which lacks them, in so many words" grep -q '^nojit report: .*new.html lacks 2 runs that cannot be read$' "$scratch/err"
check "the runs beside a broken one are there" test "$(grep -o '"rows":' "$d/new.html" | wc -l)" = 2
check "and why two are not" grep -q '"broken":."[^"]*not a receipt","[^"]*nowhere' "$d/new.html"
rm -f "$d/new.html"
refuses "no run at all" 1 '^nojit report: no run can be read$' "$nojit" report "$d/nowhere" "$d/bad-receipt" --out "$d/new.html"
check "makes no page" test ! -e "$d/new.html"
mkdir -p "$d/same/first"
cp "$d/first"/* "$d/same/first/"
"$nojit" report "$d/first" "$d/same/first" --out "$page" >"$scratch/log"
check "runs of one name go by their paths" test "$(page_data | grep -o '"name":"[^"]*/first"' | sort -u | wc -l)" = 2

# ---- in a browser
browser=$(command -v chromium || command -v google-chrome || true)
if [ -n "$browser" ]; then
    "$nojit" report "$d/first" "$d/second" "$d/<img onerror=x>" --out "$page" >"$scratch/log"
    render() {
        "$browser" --headless=new --no-sandbox --disable-gpu --virtual-time-budget=3000 --window-size=1280,1000 --enable-logging=stderr \
            --user-data-dir="$scratch/profile" --dump-dom "file://$page" >"$scratch/dom" 2>"$scratch/log" || true
    }
    render
    check "charts are drawn" test "$(grep -o 'class="chart"' "$scratch/dom" | wc -l)" = 6
    check "each with its curves" test "$(grep -o '<path d="M' "$scratch/dom" | wc -l)" -ge 16
    check "no value is NaN" test "$(grep -c 'NaN' "$scratch/dom")" = "$(grep -c 'NaN' "$page")"
    check "differences are marked" grep -q 'class="differs"><th scope="row">lr' "$scratch/dom"
    check "equal settings are not" grep -q '<tr><th scope="row">seed' "$scratch/dom"
    check "a sample stays text in the browser" grep -q '&lt;/script&gt;&lt;script&gt;alert' "$scratch/dom"
    check "the script and style are allowed" test "$(grep -c 'Content Security Policy' "$scratch/log")" = 0
    check "the command line, as for a shell" grep -q "nojit distill 'it'...s'" "$scratch/dom"
    check "the date" grep -q '2026-11-22 16:57 UTC' "$scratch/dom"
    check "the last sample of a prompt is shown first" test "$(grep -oE 'step [0-9]+</p><pre>|>1 earlier<' "$scratch/dom" | tr '\n' ' ')" = "step 3</p><pre> >1 earlier< step 2</p><pre> "
    "$nojit" report "$d/odd" "$d/first" --out "$page" >"$scratch/log"
    render
    check "a run of odd values leaves the others their charts" test "$(grep -o 'class="chart"' "$scratch/dom" | wc -l)" = 8
    check "with a metric of any name" grep -q '<h3>constructor</h3>' "$scratch/dom"
    "$nojit" report "$d/answers" --out "$page" >"$scratch/log"
    render
    check "answers of the last step come first" test "$(grep -oE 'step [0-9](, cut)?</p><pre class="asked">[^<]*|>1 earlier<' "$scratch/dom" | tr '\n' ';')" = \
        'step 5</p><pre class="asked">2+2=;>1 earlier<;step 1, cut</p><pre class="asked">1+1=;'
    check "apart from samples" test "$(grep -oE '<h3>(Hello|2[+]2=)' "$scratch/dom")" = '<h3>Hello'
    check "with charts of their own" grep -q '<h3>KL(student || teacher) on answers</h3>' "$scratch/dom"
else
    skip "charts" "there is no Chromium"
fi
finish
