#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_tasks.sh: `nojit eval --tasks` has the numbers of lm-evaluation-harness, as a table, as JSON and in --task-log, for choices
# and for answers that the model writes; it refuses what it cannot score.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
python=${PYTHON:-python3}
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive
is() { # NAME GOT WANTED
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '${2:0:400}', expected '${3:0:400}'"; fi
}
"$python" tests/golden/make_tasks.py golden "$nojit" >"$scratch/verdicts" 2>"$scratch/err" || true
is "eval --tasks has the items and metrics of lm-evaluation-harness" "$(grep -c '^ok' "$scratch/verdicts") $(grep -v '^ok' "$scratch/verdicts" || true)" "76 "

"$python" tests/golden/make_tasks.py model qwen2 "$d/model"
cat >"$d/quiz.jsonl" <<'END'
{"context": "one two", "choices": [" three", " four"], "answer": 0, "id": "first"}
{"context": "one two", "choices": [" three", " four"], "answer": 1}
{"context": "one two", "choices": [" three", " four"], "answer": 1, "task": "another"}
{"prompt": "1 + 1 =", "answer": "(*) ", "until": ["\u03bf"], "id": 7}
{"messages": [{"role": "user", "content": "1 + 1"}], "answer": "x", "max_tokens": 3}
END
quiz() { "$nojit" eval --model "$d/model" --device cpu --tasks "$d/quiz.jsonl" --max-tokens 20 "$@" 2>"$scratch/said"; }
is "eval --tasks prints a table" "$(quiz --task-log "$d/log" | tr -s ' ')" "task metric value stderr items
quiz acc 0.5000 0.5000 2
quiz acc_norm 0.5000 0.5000 2
quiz exact_match 0.0000 0.0000 2
another acc 1.0000 - 1
another acc_norm 0.0000 - 1"
is "eval --tasks says how long it took" "$(sed -E 's/[0-9.]+ s$/T s/' "$scratch/said" | tail -n 1)" "5 items in T s"
is "eval --tasks --json has the numbers of the table" "$(quiz --json | sed -n 1,4p)" \
    '{"task": "quiz", "metric": "acc", "value": 0.5, "stderr": 0.5, "items": 2}
{"task": "quiz", "metric": "acc_norm", "value": 0.5, "stderr": 0.5, "items": 2}
{"task": "quiz", "metric": "exact_match", "value": 0.0, "stderr": 0.0, "items": 2}
{"task": "another", "metric": "acc", "value": 1.0, "stderr": null, "items": 1}'
is "--task-log has each item with its choices" "$(grep -oE '"(task|id|line|choice|answer|acc|acc_norm|exact_match)": [^,}]+' "$d/log" | sed 's/"//g; s/: /=/' | paste -sd' ')" \
    "task=quiz id=first line=1 choice=1 answer=0 acc=0 acc_norm=1 task=quiz id=null line=2 choice=1 answer=1 acc=1 acc_norm=0 \
task=another id=null line=3 choice=1 answer=1 acc=1 acc_norm=0 task=quiz id=7 line=4 answer=(*)  exact_match=0 task=quiz id=null line=5 \
answer=x exact_match=0"
log_of() { rm -f "$d/other" && quiz --task-log "$d/other" "$@" >"$scratch/table" && cat "$d/other"; }
scores() { grep -oE '"loglikelihoods": \[-[0-9]+\.[0-9]{3}'; }
is "--batch-size and --seq-len change no score of a task" "$(log_of --batch-size 1 --seq-len 30 | scores)" "$(scores <"$d/log")"
text_of() { log_of "$@" | sed -nE 's/.*"line": 4, "text": "(.*)", "answer".*/\1/p'; } # of the line without max_tokens
long=$(text_of)
short=$(text_of --max-tokens 4)
is "--max-tokens cuts answers to tasks" "${long:0:${#short}}, and shorter: $((${#short} < ${#long}))" "$short, and shorter: 1"
if command -v script >/dev/null; then
    TERM=xterm script -qec "stty cols 60; $nojit eval --model $d/model --device cpu --tasks $d/quiz.jsonl --max-tokens 20 >$scratch/table" \
        /dev/null </dev/null | tr -d '\r' >"$d/raw"
    is "eval --tasks shows its progress in a terminal" "$(grep -aoE '^scored: 0 of 6 choices' "$d/raw")" "scored: 0 of 6 choices"
fi
quiz --seq-len 4 --max-tokens 2 >"$scratch/table"
is "--seq-len cuts the beginning of prompts and says so" "$(head -n 1 "$scratch/said")" \
    "2 prompts are longer than 4 tokens with the answer; the beginning is left out"
printf '{"prompt": "a", "answer": "b", "max_tokens": 2, "task": "\\u001b[2Jx"}\n' >"$d/escape.jsonl"
is "escapes in names of tasks are not sent to the terminal" "$("$nojit" eval --model "$d/model" --device cpu --tasks "$d/escape.jsonl" 2>"$scratch/said" | sed -n '2s/ .*//p')" "?[2Jx"

evaluate() { "$nojit" eval --model "$d/model" --device cpu "$@"; }
refuses "a --task-log that exists is refused" 2 'log: it exists; remove it, or name another file' evaluate --tasks "$d/quiz.jsonl" --max-tokens 20 --task-log "$d/log"
refuses "--task-log without --tasks is refused" 2 '--task-log needs --tasks' evaluate --data "$d/quiz.jsonl" --task-log "$d/x"
refuses "eval with --data and --tasks is refused" 2 '--data and --tasks: give one' evaluate --data "$d/quiz.jsonl" --tasks "$d/quiz.jsonl"
refuses "eval --tasks with --teacher is refused" 2 'leave --teacher out' evaluate --teacher "$d/model" --tasks "$d/quiz.jsonl"
refuses "an answer without room for its prompt is refused" 2 'quiz.jsonl:4: an answer of 64 tokens leaves no room' evaluate --tasks "$d/quiz.jsonl" --max-tokens 64
refuses "eval --tasks with a --seq-len beyond the model is refused" 2 'pass --seq-len 64 or less' evaluate --tasks "$d/quiz.jsonl" --seq-len 65
refuses "a choice longer than a sequence is refused" 1 'quiz.jsonl:1: choice 0 has 2 tokens, and a sequence has 1' evaluate --tasks "$d/quiz.jsonl" --seq-len 1
echo '{"text": "x"}' >"$d/text.jsonl"
refuses "a line that is no task is refused" 1 'text.jsonl:1: a line must be an object with context, choices and answer' evaluate --tasks "$d/text.jsonl"
cp LICENSE "$d/quiz.txt"
refuses "tasks in another kind of file are refused" 1 'quiz.txt: tasks are read from .jsonl files' evaluate --tasks "$d/quiz.txt"
cp -r "$d/model" "$d/nan"
for at in 2 4 6 8 10 12; do printf '\300\177' | dd of="$d/nan/model.safetensors" bs=1 conv=notrunc status=none seek=$(($(stat -c %s "$d/nan/model.safetensors") - at)); done
refuses "eval --tasks refuses weights that are not finite" 1 'weight of the student [a-z0-9._]+ contains NaN or infinity' "$nojit" eval --model "$d/nan" --device cpu \
    --tasks "$d/quiz.jsonl" --max-tokens 20 --task-log "$d/broken"
if [ -e "$d/broken" ] || [ -e "$d/x" ]; then not_ok "a failed eval --tasks leaves no log" "$(ls "$d")"; else ok "a failed eval --tasks leaves no log"; fi
finish
