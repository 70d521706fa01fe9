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
    echo "{\"command\": \"distill\", \"command_line\": [\"nojit\", \"distill\", \"it's\"], \"started\": \"2026-11-22T16:57:08Z\", \"tokenizer_hash\": \"01\", \"data_hash\": \"02\", \"eval_data_hash\": \"${held:-03}\", \"applied\": {\"temperature\": 1, \"beta\": 0, \"kd_ratio\": 0.8}, \"options\": {\"lr\": \"$2\", \"seed\": \"1\"}, \"device\": {\"name\": \"test\"}}" >"$d/$1/receipt.json"
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
check "report makes a page of two runs" "$nojit" report "$d/first" "$d/second" --out "$page" >"$scratch/log"
check "report says what it wrote" grep -q 'page.html: 2 runs' "$scratch/log"
check "a report fetches nothing" test "$(grep -ciE 'https?:|src=|href=|@import|url\(|fetch\(|XMLHttp' "$page")" = 0
check "a policy in a report forbids fetching" grep -q "default-src 'none'" "$page"
check "a report has the names of both runs" test "$(page_data | grep -o '"name":"\(first\|second\)"' | wc -l)" = 2
check "a report has all values of the loss" test "$(page_data | grep -o '"loss":{"x":\[[^]]*\]' | head -1 | tr ',' '\n' | wc -l)" = 40
check "a report leaves out values that are null" test "$(page_data | grep -c mfu_student)" = 0
check "a report shows numbers without scripts" grep -q '<tr><th>first</th><td>40</td><td>1.125</td><td>0.05</td><td></td><td>1.15</td><td>1040</td></tr>' "$page"
# The policy names this very script and style, so nothing else runs; a style attribute would not be allowed either.
allowed() { # script or style
    local text content hash
    text=$(cat "$page")
    content=${text#*"<$1>"}
    hash=$(printf %s "${content%%"</$1>"*}" | sha256sum | head -c 64 | tr a-f A-F | basenc --base16 -d | base64)
    grep -q "Content-Security-Policy.*$1-src 'sha256-$hash'[;\"]" "$page"
}
check "the policy of a report allows its script alone" allowed script
check "the policy of a report allows its style alone" allowed style
check "a report has no inline style or handler" test "$(grep -cE 'unsafe-inline|style=| on[a-z]+=' "$page")" = 0
check "a report has the date and command line of runs" grep -q '"started":"2026-11-22T16:57:08Z"' "$page"
cp "$page" "$scratch/again.html"
"$nojit" report "$d/first" "$d/second" --out "$page" >"$scratch/log"
check "the same runs make the same bytes of a report" cmp -s "$page" "$scratch/again.html"

# Runs that differ are not compared: r1 and r2 are, the others are not, each with its reason.
apart() { page_data | grep -o "\"$1\":{\"groups\":[^}]*" | cut -d: -f2-; } # METRIC: groups of runs and reasons
check "runs that are alike share a chart" test "$(page_data | grep -o '"apart":[^,]*')" = '"apart":{}'
check "the lowest of runs that are alike is marked" test "$(page_data | grep -o '"lowest":[^]]*')" = '"lowest":[0'
held=04 run other-text 0.001 40
run other-tokens 0.001 40
sed -i 's/"tokenizer_hash": "01"/"tokenizer_hash": "11"/' "$d/other-tokens/receipt.json"
run other-objective 0.001 40
sed -i 's/"beta": 0/"beta": 1/' "$d/other-objective/receipt.json"
run policy 0.001 40
sed -i 's/"loss"/"rollout_tokens": 9, "ce_loss": 2, "loss"/' "$d/policy/metrics.jsonl"
run unfinished 0.001 40
rm "$d/unfinished/receipt.json"
"$nojit" report "$d/first" "$d/second" "$d/other-text" --out "$page" >"$scratch/log"
check "other held-out text is drawn apart" test "$(apart eval_ce_loss)" = '{"groups":[[0,1],[2]],"why":["their held-out texts differ"]'
check "and takes no part in which is lowest" test "$(page_data | grep -o '"lowest":[^]]*')" = '"lowest":[0'
check "but its training is compared" test -z "$(apart loss)"
"$nojit" report "$d/other-tokens" "$d/first" "$d/other-objective" "$d/second" --out "$page" >"$scratch/log"
check "other tokens are drawn apart" test "$(apart eval_ce_loss)" = '{"groups":[[0],[1,2,3]],"why":["their tokenizers differ"]'
check "another divergence is, too" test "$(apart kd_loss)" = '{"groups":[[0],[1,3],[2]],"why":["their tokenizers differ","their divergences differ"]'
check "a divergence without a unit is called so" test -n "$(page_data | grep -o '"units":{"kl":"nats","tvd":"no unit"')"
"$nojit" report "$d/policy" "$d/policy" "$d/first" --out "$page" >"$scratch/log"
check "on-policy losses stand alone" test "$(apart loss)" = '{"groups":[[0],[1],[2]],"why":["an on-policy run is measured on answers of its own"]'
check "their held-out losses do not" test -z "$(apart eval_ce_loss)"
"$nojit" report "$d/unfinished" "$d/first" --out "$page" >"$scratch/log"
check "what an unfinished run reads is not known" test "$(apart loss)" = '{"groups":[[0],[1]],"why":["a run whose receipt is missing, or lacks a hash, does not say what it read"]'

# A long run: extremes stay, and the page stays small.
run long 0.001 40000
sed -i 's/{"step": 23456, "loss": [0-9.]*/{"step": 23456, "loss": 98765/' "$d/long/metrics.jsonl"
"$nojit" report "$d/long" --out "$page" >"$scratch/log"
check "a report of many rows loses no spike" grep -q '98765' "$page"
check "a report of a long run is small" test "$(wc -c <"$page")" -lt 600000

# Text of a run stays text.
run '<img onerror=x>' 0.001 5
printf '%s\n' '{"step": 2, "prompt": "</script><script>alert(1)</script>", "text": "before\u0000"}' \
    '{"step": 3, "prompt": "</script><script>alert(1)</script>", "text": "<!--<script>"}' >"$d/<img onerror=x>/samples.jsonl"
"$nojit" report "$d/<img onerror=x>" --out "$page" >"$scratch/log"
check "a sample cannot end the data of a report" test "$(grep -o '</script>' "$page" | wc -l)" = 2
check "markup in names is escaped in a report" test "$(grep -c '<img' "$page")" = 0
check "a report has samples" grep -q 'u003c!--' "$page"
check "a sample with NUL is kept in a report" grep -q '"text":"before.u0000"' "$page"

# A run whose values are of other types is drawn without them, and says so.
run odd 0.001 5
echo '{"command": [], "command_line": ["nojit", 1], "started": 5, "student_parameters": "x", "teacher_parameters": {}, "applied": 1,
    "device": {"name": null}, "options": {"data": ["a b", "c"], "old": "a b"}}' >"$d/odd/receipt.json"
printf '%s\n' '{"step": null, "text": "no step"}' '[1]' '{"step": 1, "prompt": 5}' '{"step": 1, "prompt": "p", "text": "kept"}' >"$d/odd/samples.jsonl"
echo '{"step": 6, "constructor": 1.5, "__proto__": 2.5, "loss": "x"}' >>"$d/odd/metrics.jsonl"
"$nojit" report "$d/odd" "$d/first" --out "$page" >"$scratch/log"
for field in 'command is not text' 'command_line is not a list of texts' 'started is not text' 'student_parameters is not a number' \
    'teacher_parameters is not a number' 'applied is not an object' 'device.name is not text'; do
    check "a report leaves out $field" grep -q "receipt.json: $field and is left out" "$page"
done
check "a report leaves out values of another type" test "$(page_data | grep -o '"receipt":{"device":{},"options"' | wc -l)" = 1
check "a report counts samples of another type" grep -q 'samples.jsonl: left out 3 rows that are not whole' "$page"
check "a report keeps samples beside those of another type" test "$(page_data | grep -o '"text":"[^"]*"')" = '"text":"kept"'

# Answers of --on-policy.
run answers 0.001 5
echo '{"step": 6, "loss": 1, "rollout_tokens": 40, "forward_kl": 0.25, "reverse_kl": 0.5, "student_entropy": 0.75, "rollout_truncated": 0.5}' >>"$d/answers/metrics.jsonl"
printf '%s\n' '{"step": 1, "prompt": "1+1=", "text": "3<b>", "answer": "cut"}' '{"step": 5, "prompt": "2+2=", "text": "4", "answer": "whole"}' \
    '{"step": 5, "prompt": "Hello", "text": "a sample"}' '{"step": 5, "prompt": "2+3=", "text": "5", "answer": 5}' >"$d/answers/samples.jsonl"
"$nojit" report "$d/answers" --out "$page" >"$scratch/log"
check "a report has answers" test "$(page_data | grep -oE '"answer":"(cut|whole)"' | wc -l)" = 2
check "a report counts answers of another type" grep -q 'samples.jsonl: left out 1 row that is not whole' "$page"
check "a report has the divergences of answers" test "$(page_data | grep -oE '"(forward_kl|reverse_kl|student_entropy)":\{"x":\[6\]' | wc -l)" = 3

# A resumed run, and damage.
run going 0.001 12
rm "$d/going/receipt.json"
printf '{"step": 13, "lo' >>"$d/going/metrics.jsonl"
check "report takes a run that goes on" "$nojit" report "$d/going" --out "$page" >"$scratch/log"
check "a report says that a run has not finished" grep -q 'the run has not finished.*is not whole' "$page"
refuses "report without a run is refused" 2 '^nojit report: the folder of a run is needed' "$nojit" report --out "$page"
program=$(realpath "$nojit")
(cd "$d" && "$program" report first >"$scratch/log")
check "report without --out writes report.html" grep -q 'id="data"' "$d/report.html"
"$nojit" report --help >"$scratch/log"
check "help of report says what a RUN is" grep -q '^RUN: the --out folder of' "$scratch/log"
check "help of report says where the page goes" grep -q 'HTML page to write.*\[report.html\]' "$scratch/log"
"$nojit" help --man >"$scratch/man"
check "the manual says what a RUN is" grep -q '^RUN: the' "$scratch/man"
refuses "report refuses an --out that is not .html" 2 'must end in .html' "$nojit" report "$d/first" --out "$d/first/receipt.json"
refuses "report refuses a folder that is not there" 1 'nowhere/metrics.jsonl' "$nojit" report "$d/nowhere" --out "$page"
refuses "report refuses an --out that cannot be written" 1 'nowhere/page.html: cannot be written' "$nojit" report "$d/first" --out "$d/nowhere/page.html"
run damaged 0.001 12
sed -i '7s/"loss"/loss/' "$d/damaged/metrics.jsonl"
refuses "report refuses a damaged row" 1 'metrics.jsonl:7: ' "$nojit" report "$d/damaged" --out "$d/new.html"
check "a refused report leaves nothing" test ! -e "$d/new.html"
: >"$d/damaged/metrics.jsonl"
refuses "report refuses a run without rows" 1 'no rows yet' "$nojit" report "$d/damaged" --out "$page"
run bad-receipt 0.001 12
echo '[1' >"$d/bad-receipt/receipt.json"
refuses "report refuses a damaged receipt" 1 'receipt.json:.*not a receipt' "$nojit" report "$d/bad-receipt" --out "$page"
rm -f "$d/new.html"
refuses "report with a broken run ends with an error" 1 '^nojit report: .*/bad-receipt/receipt.json:.*not a receipt' \
    "$nojit" report "$d/first" "$d/bad-receipt" "$d/nowhere" "$d/second" --out "$d/new.html"
check "report says which runs it lacks" grep -q '^nojit report: .*new.html lacks 2 runs that cannot be read$' "$scratch/err"
check "a report has the runs beside a broken one" test "$(grep -o '"rows":' "$d/new.html" | wc -l)" = 2
check "a report says why runs are missing" grep -q '"broken":."[^"]*not a receipt","[^"]*nowhere' "$d/new.html"
rm -f "$d/new.html"
refuses "report of broken runs alone is refused" 1 '^nojit report: no run can be read$' "$nojit" report "$d/nowhere" "$d/bad-receipt" --out "$d/new.html"
check "report of broken runs alone makes no page" test ! -e "$d/new.html"
mkdir -p "$d/same/first"
cp "$d/first"/* "$d/same/first/"
"$nojit" report "$d/first" "$d/same/first" --out "$page" >"$scratch/log"
check "a report names runs of one name by their paths" test "$(page_data | grep -o '"name":"[^"]*/first"' | sort -u | wc -l)" = 2

# ---- while a run goes on
check "a page is not loaded again without --follow" test "$(grep -c 'http-equiv="refresh"' "$page")" = 0
"$nojit" init --preset nojit-tiny --out "$d/model" >/dev/null
head -c 4000 LICENSE >"$d/text.txt"
OMP_NUM_THREADS=1 "$nojit" train --student "$d/model" --data "$d/text.txt" --seq-len 16 --batch-size 1 --steps 1000000 --log-every 1000000 \
    --device cpu --out "$d/live" >"$scratch/log" 2>&1 &
live=$!
for _ in $(seq 200); do
    [ -s "$d/live/metrics.jsonl" ] && break
    sleep 0.1
done
"$nojit" report "$d/live" --follow --out "$d/live.html" >"$scratch/follow" 2>&1 &
follows=$!
for _ in $(seq 200); do
    [ -s "$d/live.html" ] && break
    sleep 0.1
done
check "--follow: a page that a browser loads again" grep -q '<meta http-equiv="refresh" content="5">' "$d/live.html"
check "--follow: says what it does" grep -q 'live.html: 1 run; written again every 5 s until all have ended, or Ctrl-C$' "$scratch/follow"
kill -TERM "$live"
wait "$live" || true
check "--follow: ends with the run" wait "$follows"
check "--follow: its last page stays as it is" test "$(grep -c 'http-equiv="refresh"' "$d/live.html")$(grep -c 'has not finished' "$d/live.html")" = 00

# ---- in a browser
browser=$(command -v chromium || command -v google-chrome || true)
if [ -n "$browser" ]; then
    "$nojit" report "$d/first" "$d/second" "$d/<img onerror=x>" --out "$page" >"$scratch/log"
    render() {
        "$browser" --headless=new --no-sandbox --disable-gpu --virtual-time-budget=3000 --window-size=1280,1000 --enable-logging=stderr \
            --user-data-dir="$scratch/profile" --dump-dom "file://$page" >"$scratch/dom" 2>"$scratch/log" || true
        check "a browser runs the script of a report without an error, ${1:-two runs}" test "$(grep -c 'Uncaught' "$scratch/log")" = 0
    }
    render
    check "a browser draws the charts of a report" test "$(grep -o 'class="chart"' "$scratch/dom" | wc -l)" = 6
    check "a browser draws the curves of a report" test "$(grep -o '<path d="M' "$scratch/dom" | wc -l)" -ge 16
    check "a browser shows no NaN of its own in a report" test "$(grep -c 'NaN' "$scratch/dom")" = "$(grep -c 'NaN' "$page")"
    check "a browser marks settings that differ in a report" grep -q 'class="differs"><th scope="row">lr' "$scratch/dom"
    check "a browser does not mark settings that are equal in a report" grep -q '<tr><th scope="row">seed' "$scratch/dom"
    check "a sample stays text in a browser" grep -q '&lt;/script&gt;&lt;script&gt;alert' "$scratch/dom"
    check "a browser allows script and style of a report" test "$(grep -c 'Content Security Policy' "$scratch/log")" = 0
    check "a browser shows the command line as for a shell" grep -q "nojit distill 'it'...s'" "$scratch/dom"
    check "a browser shows the date of a run" grep -q '2026-11-22 16:57 UTC' "$scratch/dom"
    check "a browser shows the last sample of a prompt first" test "$(grep -oE 'step [0-9]+</p><pre>|>1 earlier<' "$scratch/dom" | tr '\n' ' ')" = "step 3</p><pre> >1 earlier< step 2</p><pre> "
    picture() { "${PYTHON:-python3}" scripts/report_picture.py "$page" "$scratch/picture.svg" && [ "$(grep -c 'class="card"' "$scratch/picture.svg")" = 4 ]; }
    check "scripts/report_picture.py draws four charts of a report" picture
    "$nojit" report "$d/odd" "$d/first" --out "$page" >"$scratch/log"
    render "odd values"
    check "a browser draws charts beside a run of odd values" test "$(grep -o 'class="chart"' "$scratch/dom" | wc -l)" = 10
    check "a browser draws a metric of any name" grep -q '<h3>constructor</h3>' "$scratch/dom"
    "$nojit" report "$d/answers" --out "$page" >"$scratch/log"
    render "answers"
    check "a browser shows answers of the last step first" test "$(grep -oE 'step [0-9](, cut)?</p><pre class="asked">[^<]*|>1 earlier<' "$scratch/dom" | tr '\n' ';')" = \
        'step 5</p><pre class="asked">2+2=;>1 earlier<;step 1, cut</p><pre class="asked">1+1=;'
    check "a browser shows answers apart from samples" test "$(grep -oE '<h3>(Hello|2[+]2=)' "$scratch/dom")" = '<h3>Hello'
    check "a browser draws a chart of shares, with percentages" grep -qE 'aria-label="Answers that were cut by step: [^"]*50 %' "$scratch/dom"
    check "a browser draws charts of answers" grep -q '<h3>KL(student || teacher) on answers</h3>' "$scratch/dom"
else
    skip "a browser draws the charts of a report" "there is no Chromium"
fi
finish
