#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# on_policy.sh: distill --on-policy: who answers which prompts, at what length, what each model reads, what is recorded; and what is refused.
set -eu
. tests/lib/lib.sh
. tests/lib/answers.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

"$nojit" init --preset nojit-tiny --seed 1 --dtype float32 --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny-llama --seed 2 --dtype float32 --out "$d/teacher" >/dev/null
head -c 6000 /usr/share/common-licenses/GPL-3 >"$d/text.txt"
printf '{"prompt": "%s"}\n' a bc def ghij klmno >"$d/prompts.jsonl"
models=(--student "$d/student" --teacher "$d/teacher" --device cpu)
shape=(--seq-len 48 --batch-size 2 --steps 4 --lr 1e-2 --max-new 9)
command() { "$nojit" distill "${models[@]}" "${shape[@]}" "$@"; }
# In OUT, with each answer in a checkpoint: answers are kept where steps use them again.
distill() { # OUT OPTION...
    local out=$1
    shift
    rm -rf "${d:?}/$out"
    command --prompts "${prompts:-$d/prompts.jsonl}" --on-policy 1 --out "$d/$out" "$@" >"$d/$out.log" 2>&1 || not_ok "$out" "$(tail -n 1 "$d/$out.log")"
}
column() { grep -oE "\"$2\": [^,}]+" "$d/$1/metrics.jsonl" | cut -d' ' -f2; }
weights() { cksum <"$d/$1/model.safetensors"; }
written() { answers "$d/$1/checkpoint-${2:-1}/answers.bin"; }
part() { cut -d' ' -f"$1"; }
kept=(--save-every 1 --keep 9 --reuse 2) # of steps 1 and 3 there are answers in checkpoints

# ---- no data at all
distill run
ok_if "a run with --on-policy 1 needs no --data" "$(tail -n 1 "$d/run.log")" test -s "$d/run/model.safetensors"
ok_if "the loss of a run with --on-policy 1 is the divergence" "$(column run loss)" test "$(column run loss)" = "$(column run kd_loss)"
ok_if "every token of an answer has a loss, and no other token" "$(column run valid_tokens | tr '\n' ' ')" test "$(column run valid_tokens)" = "$(column run rollout_tokens)"
ok_if "a run says how many prompts it has and how they are answered" "$(cat "$d/run.log")" grep -qx \
    'on-policy: 5 prompts of at most 5 tokens; 3 answers per sequence, of at most 9 tokens, written 6 at a time' "$d/run.log"
ok_if "the receipt has the options of --on-policy" "$(grep -E 'on-policy|prompts|max-new' "$d/run/receipt.json")" \
    grep -qE '"on-policy": "1"' "$d/run/receipt.json"
ok_if "the receipt has the --kd-ratio that --on-policy applied" "$(grep kd.ratio "$d/run/receipt.json")" grep -qE '"kd_ratio": 1\.0' "$d/run/receipt.json"
ok_if "the receipt has the hash of the prompts" "$(grep hash "$d/run/receipt.json")" \
    grep -qE '"prompts_hash": "[0-9a-f]*[1-9a-f][0-9a-f]*"' "$d/run/receipt.json"
why=$(paste -d' ' <(column run rollout_tokens) <(column run rollout_length) <(column run rollout_truncated) <(column run rollout_seconds) \
    <(column run rollout_tokens_per_second) | awk '
    { off = $5 * $4 - $1; mean = $2 * 6 - $1 }
    $1 < 6 || $1 > 54 || mean * mean > 1e-12 || $3 < 0 || $3 > 1 || $4 <= 0 || off * off > 1e-4 { print }
    END { if (NR != 4) print NR " rows" }')
ok_if "rows of metrics.jsonl say how long answers are and took" "$why" test -z "$why"
ok_if "a line of a step says how long answers are, how many are cut, and what writing takes" "$(grep ^step "$d/run.log")" \
    test "$(grep -cE '^step [0-9]/4 .*  answers [0-9]+ tok  cut [0-9]+ %  writing [0-9]+ %  [0-9]+ tok/s  ' "$d/run.log")" = 4
ok_if "the last lines say how long all answers were, how many were cut, and what writing took" "$(tail -n 2 "$d/run.log")" \
    grep -qE '^24 answers of [0-9.]+ tokens in the mean, [0-9]+ % cut at their limit; writing them took [0-9]+ % of the time$' "$d/run.log"
why=$(paste -d' ' <(column run rollout_tokens) <(column run rollout_truncated) <(column run rollout_seconds) <(column run step_ms) | awk -v r="$(
    grep -A7 '"rollouts"' "$d/run/receipt.json" | grep -oE '[0-9.]+' | tr '\n' ' ')" '
    { tokens += $1; cut += 6 * $2; seconds += $3; trained += $4 / 1000 }
    function off(a, b) { return (a - b) ^ 2 > (1e-5 * b) ^ 2 }
    END { split(r, x, " ")
        if (x[1] != 24 || x[2] != tokens || off(x[3], tokens / 24) || (x[4] - cut / 24) ^ 2 > 1e-10 || off(x[5], seconds) || off(x[6], seconds / (seconds + trained)))
            print r ", of rows: " tokens " tokens, " cut " cut, " seconds " s, " trained " s" }')
ok_if "the receipt has the answers of all rows" "$why" test -z "$why"
distill short --max-new 3 --rollout-temperature 0
ok_if "a run whose answers are all cut says so once" "$(cat "$d/short.log")" \
    test "$(grep -cE '^all [0-9]+ answers so far were cut at --max-new 3: raise it, or check which tokens end' "$d/short.log")" = 1

# ---- what is measured of them
same() { # RUN FIELD RUN FIELD [STEPS]: within float32
    paste -d' ' <(column "$1" "$2") <(column "$3" "$4") | head -n "${5:-99}" | awk '
        { off = $1 - $2 } off * off > 1e-10 * $1 * $1 || $1 == 0 || $1 == "null" { bad = 1 } END { exit bad || !NR }'
}
both() { paste -d' ' <(column "$1" "$2") <(column "$3" "$4") | tr '\n' ';'; }
distill reverse --beta 1
distill warm --temperature 2
ok_if "forward_kl of answers is the loss of --beta 0" "$(both run kd_loss run forward_kl)" same run kd_loss run forward_kl
ok_if "reverse_kl of answers is the loss of --beta 1" "$(both reverse kd_loss reverse reverse_kl)" same reverse kd_loss reverse reverse_kl
ok_if "forward_kl of answers is taken at the temperature of the loss" "$(both warm kd_loss warm forward_kl)" same warm kd_loss warm forward_kl
distill packed --batch-size 1 --grad-accum 2
ok_if "student_entropy is a mean over all micro-batches" "$(both run student_entropy packed student_entropy)" same run student_entropy packed student_entropy 1
distill halves --on-policy 0.5 --data "$d/text.txt" --batch-size 1 --grad-accum 2 --seed 4 --steps 1 # one sequence of answers, one of text
distill alone --batch-size 1 --seed 4 --steps 1
ok_if "text beside answers does not count in forward_kl" "$(both alone forward_kl halves forward_kl) tokens $(column halves valid_tokens)" \
    test "$(column halves valid_tokens)" -gt "$(column halves rollout_tokens)" -a "$(column alone forward_kl)" = "$(column halves forward_kl)" \
    -a "$(column alone student_entropy)" = "$(column halves student_entropy)" -a "$(column halves kd_loss)" != "$(column halves forward_kl)"

# ---- which are shown
shown() { # RUN: a line per row: step, prompt, what is printable of the answer, whether it was cut
    sed -nE 's/^\{"step": ([0-9]+), "prompt": "([a-z]*)", "text": "(.*)", "answer": "(whole|cut)"\}$/\1 \2 \4 =\3/p' "$d/$1/samples.jsonl" |
        sed -E 's/\\(u[0-9A-F]{4}|.)//g' | LC_ALL=C sed 's/[^ -~]//g; s/ =/ /'
}
steps() { shown "$1" | cut -d' ' -f1 | uniq -c | tr -s ' \n' ' '; }
ok_if "samples.jsonl gets three answers at the first step and the last" "$(cat "$d/run/samples.jsonl")" test "$(steps run)" = " 3 1 3 4 "
distill often --save-every 3 --eval-every 2 --eval-data "$d/text.txt" --steps 7
ok_if "samples.jsonl gets answers before each measurement and checkpoint" "$(steps often)" test "$(steps often)" = " 3 1 3 2 3 3 3 4 3 6 3 7 "
distill later --save-every 4 --reuse 3 --steps 9
ok_if "samples.jsonl gets answers that steps share when they are written" "$(steps later)" test "$(steps later)" = " 3 1 3 4 3 7 "

# ---- which prompts
distill asked "${kept[@]}"
ids() { printf '%s' "$1" | od -An -v -tu1 -w1 | tr -d ' ' | paste -sd,; }
all=$(for p in a bc def ghij klmno; do ids "$p"; done | sort)
ok_if "student and teacher read the prompt" "$(written asked)" test "$(written asked | part 1)" = "$(written asked | part 2)"
ok_if "each prompt is answered once before any is answered again" "$(written asked)" \
    test "$(written asked | part 1 | sort -u | wc -l) $(written asked | wc -l)" = "5 6" -a -z "$(comm -13 <(echo "$all") <(written asked | part 1 | sort -u))"
ok_if "rows of steps that use answers again have no length of answers" "$(column asked rollout_length | tr '\n' ' ')" test "$(column asked rollout_length | sed -n '2p;4p' | tr '\n' ' ')" = "null null "
ok_if "a step that uses answers again has the same answers" "" cmp -s "$d/asked/checkpoint-1/answers.bin" "$d/asked/checkpoint-2/answers.bin"
ok_if "answers are replaced when the next ones are written" "the answers of steps 1 and 3 are the same" test "$(written asked 1)" != "$(written asked 3)"
distill once --save-every 4
ok_if "checkpoints keep no answers that no step uses again" "$(ls "$d/once/checkpoint-4")" test ! -e "$d/once/checkpoint-4/answers.bin" -a -e "$d/once/checkpoint-4/state.bin"
distill grouped "${kept[@]}" --group 3
ok_if "--group is the number of answers per prompt" "$(written grouped)" \
    test "$(written grouped | part 1 | uniq -c | tr -s ' ' | cut -d' ' -f2 | tr '\n' ' ')" = "3 3 "
ok_if "answers of a group differ" "$(written grouped)" test "$(written grouped | part 3 | sort -u | wc -l)" = 6
ok_if "one answer of a group is shown" "$(shown grouped)" test "$(shown grouped | cut -d' ' -f1,2 | sort -u | wc -l)" = 4 -a "$(steps grouped)" = " 2 1 2 3 "
# The answers' bytes that print, but quotes and backslashes, which are escaped.
printed() { # OUT [whole]: prompt and answer of step 1; whole: of those that token 256 ends
    written "$1" | awk -v q=34 -v how="${2:-cut}" '{ out = ""
        if ((how == "whole") != ($3 ~ /(^|,)256$/)) next
        for (part = 1; part <= 3; part += 2) {
            n = split($part, id, ",")
            for (i = 1; i <= n; i++) if (id[i] >= 32 && id[i] < 127 && id[i] != q && id[i] != 92) out = out sprintf("%c", id[i])
            out = out (part == 1 ? " " how " " : "")
        }
        print out }' | sort
}
ok_if "a shown answer has its prompt and its text" "$(shown asked | head -n 3); $(printed asked)" \
    test -z "$(comm -23 <(shown asked | sed -n 's/^1 //p' | sort) <(printed asked))" -a "$(shown asked | grep -c '^1 [a-z]* cut .')" = 3
distill ended "${kept[@]}" --seq-len 200 --max-new 180 --batch-size 3 --steps 1
ok_if "an answer that a token ends is whole" "$(shown ended); $(printed ended whole)" \
    test -z "$(comm -23 <(shown ended | sed -n 's/^1 \([a-z]* whole\)/\1/p' | sort) <(printed ended whole))" -a "$(shown ended | grep -c whole)" -gt 0
distill other "${kept[@]}" --seed 2
ok_if "another seed writes other answers" "they are the same" test "$(written other)" != "$(written asked)"

# ---- how many at a time
bad=
for rows in 1 2 5; do
    distill few "${kept[@]}" --rollout-batch $rows
    [ "$(written few)" = "$(written asked)" ] || bad+=" $rows at a time;"
    ok_if "--rollout-batch $rows gives the same model" "other weights" test "$(weights few)" = "$(weights asked)"
    ok_if "--rollout-batch $rows is said" "$(grep on-policy "$d/few.log")" grep -q "written $rows at a time\$" "$d/few.log"
done
ok_if "--rollout-batch changes no answer" "others$bad" test -z "$bad"

# In the activations lies the cache of the answers, which is more than they take themselves.
room() { command --prompts "$d/prompts.jsonl" --on-policy 1 --dry-run --seq-len 120 --max-new 100 --batch-size 1 --grad-accum 512 "$@" 2>&1 | sed -nE 's/^activations +([0-9.]+) MiB$/\1/p'; }
ok_if "--kv-dtype int8 makes a smaller cache of answers" "$(room), $(room --kv-dtype int8)" \
    awk "BEGIN { exit !($(room --kv-dtype int8) < 0.7 * $(room) && $(room --kv-dtype int8) > 0.2 * $(room)) }"

# ---- what a plan says of them
# OPTION...: the same of `nojit plan` and a dry run, and in $total what it is.
planned() {
    "$nojit" plan "${models[@]}" "${shape[@]}" "$@" >"$d/plan.txt" 2>&1
    command --dry-run "$@" >"$d/dry.txt" 2>&1
    total=$(grep '^device total' "$d/plan.txt")
    [ -n "$total" ] && [ "$(grep -E '^(device total|host total|on-policy)' "$d/plan.txt" | sort)" = "$(grep -E '^(device total|host total|on-policy)' "$d/dry.txt" | sort)" ]
}
long=(--prompts "$d/prompts.jsonl" --on-policy 1 --seq-len 120 --max-new 100 --batch-size 1 --grad-accum 512)
alike() { # NAME OPTION...
    if planned "${long[@]}" "${@:2}"; then ok "$1"; else not_ok "$1" "$(tail -n 4 "$d/plan.txt" "$d/dry.txt")"; fi
}
alike "plan and --dry-run agree on answers"
usual=$total
alike "plan and --dry-run agree on --kv-dtype" --kv-dtype int8
narrow=$total
alike "plan and --dry-run agree on --rollout-batch" --rollout-batch 3
few=$total
alike "plan and --dry-run agree on --teacher-prompt" --teacher-prompt "$(printf '%012d' 0)"
alike "plan and --dry-run agree on --writer teacher" --writer teacher
taught=$total
alike "plan and --dry-run agree on as many answers as fit" --memory-budget 0.0078
fitted=$total
ok_if "plans of different ways to write answers differ" "" test "$(printf '%s\n' "$usual" "$narrow" "$few" "$taught" "$fitted" | sort -u | wc -l)" = 5
ok_if "--on-policy 0.5 takes the memory of --on-policy 1" "" test "$("$nojit" plan "${models[@]}" "${shape[@]}" "${long[@]}" --on-policy 0.5 | grep '^device total')" = "$usual"
"$nojit" plan "${models[@]}" "${shape[@]}" "${long[@]:2}" --rollout-batch 7 >"$d/unknown.txt"
printf '{"prompt": "%020d"}\n' 1 >"$d/longest.jsonl"
planned "${long[@]:2}" --prompts "$d/longest.jsonl" --rollout-batch 7 || true
ok_if "a plan without --prompts takes them as long as they may be" "$(cat "$d/unknown.txt" "$d/plan.txt")" \
    test "$(grep 'device total' "$d/unknown.txt")" = "$total" -a "$(grep -c '^on-policy: prompts (none given) of at most 20 tokens; 1 answer per sequence' "$d/unknown.txt")" = 1
ok_if "plan --json has the answers at a time" "$("$nojit" plan --json "${models[@]}" "${long[@]:2}" --rollout-batch 7)" grep -q '"rollout_batch": 7, ' <("$nojit" plan --json "${models[@]}" "${long[@]:2}" --rollout-batch 7 2>"$d/err")
refuses "a plan of answers without a teacher is refused" 2 '^nojit plan: --on-policy needs --teacher, which the student learns from$' "$nojit" plan --student "$d/student" --seq-len 120 --max-new 100 --on-policy 1
refuses "a plan without room for prompts is refused" 2 '^nojit plan: --max-new 120 leaves no room for a prompt in --seq-len 120; lower the one or raise the other$' "$nojit" plan "${models[@]}" "${long[@]:2}" --max-new 120
refuses "a plan of --prompts without --on-policy is refused" 2 '^nojit plan: --prompts needs --on-policy' "$nojit" plan "${models[@]}" --seq-len 120 --prompts "$d/prompts.jsonl"

# ---- how they are sampled
distill greedy "${kept[@]}" --rollout-temperature 0 --group 3
ok_if "--rollout-temperature 0 makes the answers of a group equal" "$(written greedy)" test "$(written greedy | part 3 | sort -u | wc -l)" = 2
distill narrow "${kept[@]}" --rollout-top-p 1e-6 --group 3
ok_if "--rollout-top-p close to 0 takes only the most probable tokens" "$(written narrow)" test "$(written narrow)" = "$(written greedy)"
distill cold "${kept[@]}" --rollout-temperature 1e-3 --group 3
ok_if "--rollout-temperature close to 0 is close to greedy" "$(written cold)" test "$(written cold | part 3 | sort -u | wc -l)" = 2
distill short "${kept[@]}" --max-new 4
ok_if "--max-new limits the tokens of an answer" "$(written short)" test "$(written short | part 3 | awk -F, 'NF > n { n = NF } END { print n }')" = 4
distill growing --horizon 1 --max-new 10 --steps 4
why=$(column growing rollout_length | awk '{ most = 1 + int(9 * (NR - 1) / 3) } $1 > most || $1 < most / 2 { print "step " NR ": " $1 }')
ok_if "--horizon makes answers grow" "$why" test -z "$why" -a "$(column growing rollout_length | head -n 1)" = 1

# ---- who writes, and what the teacher reads
distill taught "${kept[@]}" --writer teacher --rollout-temperature 0
models=(--student "$d/teacher" --teacher "$d/student" --device cpu)
distill swapped "${kept[@]}" --rollout-temperature 0
models=(--student "$d/student" --teacher "$d/teacher" --device cpu)
ok_if "--writer teacher trains on answers of the teacher" "$(diff <(written taught) <(written swapped))" test "$(written taught)" = "$(written swapped)"
ok_if "entropies and KL of the teacher's answers are not exchanged" "$(both taught teacher_entropy swapped student_entropy)$(both taught reverse_kl swapped forward_kl)" \
    eval 'same taught teacher_entropy swapped student_entropy 1 && same taught reverse_kl swapped forward_kl 1'
ok_if "answers of --writer teacher are not the student's" "they are the same" test "$(written taught)" != "$(distill plain "${kept[@]}" --rollout-temperature 0 && written plain)"
distill context "${kept[@]}" --teacher-prompt $'Be brief.\n'
sed -E 's/"prompt": "([a-z]*)"/&, "teacher_prompt": "Be brief.\\n\1"/' "$d/prompts.jsonl" >"$d/own.jsonl"
prompts=$d/own.jsonl distill lines "${kept[@]}"
ok_if "--teacher-prompt is read by the teacher before the prompt" "$(written context)" \
    test "$(written context | part 2)" = "$(written context | part 1 | sed "s/^/$(ids $'Be brief.\n'),/")"
ok_if "--teacher-prompt is not read by the student" "$(written context)" test "$(written context | wc -l)" = 4 -a -z "$(comm -23 <(written context | part 1,3) <(written asked | part 1,3))"
ok_if "--teacher-prompt is teacher_prompt in every line" "other weights" test "$(weights context)" = "$(weights lines)"
ok_if "--teacher-prompt changes the model" "the same weights" test "$(weights context)" != "$(weights asked)"
prompts=$d/own.jsonl distill precedence "${kept[@]}" --teacher-prompt "Be long. "
ok_if "teacher_prompt of a line takes precedence over --teacher-prompt" "other weights" test "$(weights precedence)" = "$(weights lines)"
distill both "${kept[@]}" --teacher-prompt $'Be brief.\n' --writer teacher --rollout-temperature 0
sed -E 's/"prompt": "/&Be brief.\\n/' "$d/prompts.jsonl" >"$d/brief.jsonl"
prompts=$d/brief.jsonl distill whole "${kept[@]}" --writer teacher --rollout-temperature 0
ok_if "a teacher that writes reads its own prompt" "$(written both)" test "$(written both | part 2,3)" = "$(written whole | part 2,3)"

# ---- memory
# 8 MiB have room for the training, and for some of the 192 answers of a step at a time.
small=(--prompts "$d/prompts.jsonl" --on-policy 1 --batch-size 1 --grad-accum 64 --steps 0 --epochs 1 --memory-budget 0.0078 --dry-run)
fitted=$(command "${small[@]}" 2>&1 | sed -n 's/.*, written \([0-9]*\) at a time$/\1/p')
ok_if "as many answers are written at a time as fit beside training" "${fitted:-none}" test "${fitted:-0}" -gt 8 -a "${fitted:-0}" -lt 100
ok_if "one answer more at a time than fits is refused" "$(command "${small[@]}" --rollout-batch $((fitted + 1)) 2>&1 | tail -n 1)" \
    eval '! command "${small[@]}" --rollout-batch $((fitted + 1)) >/dev/null 2>&1'

# ---- beside text
distill mixed "${kept[@]}" --on-policy 0.5 --data "$d/text.txt" --steps 8
why=$(paste -d' ' <(column mixed valid_tokens) <(column mixed rollout_tokens) | awk '
    NR % 2 && $1 == $2 { answers++ }
    NR % 2 && $2 == 0 { text++ }
    NR % 2 && $1 > $2 { with++ }
    END { if (!with) print answers + 0 " steps of answers, " text + 0 " of text, " with + 0 " with both" }')
ok_if "--on-policy 0.5 trains on text and answers" "$why" test -z "$why"
distill none --on-policy 0.0001 --data "$d/text.txt"
ok_if "--on-policy of almost 0 trains on text" "$(column none valid_tokens | tr '\n' ' ')" test "$(column none valid_tokens | tr '\n' ' ')" = "96 96 96 96 "
command --data "$d/text.txt" --kd-ratio 1 --out "$d/text" >/dev/null 2>&1
ok_if "--on-policy of almost 0 gives the model of --kd-ratio 1" "other weights" test "$(weights none)" = "$(weights text)"
ok_if "a run without --on-policy has no fields of answers" "$(head -n 1 "$d/text/metrics.jsonl")" test -z "$(column text rollout_tokens)$(column text forward_kl)" -a ! -e "$d/text/samples.jsonl"
ok_if "a step without answers has no means of answers" "$(column none student_entropy)" test "$(column none student_entropy | sort -u)$(column none forward_kl | sort -u)" = nullnull
# Longer than answers with their prompts by more than the cache is rounded up to.
distill unsampled --seq-len 200
distill sampled --seq-len 200 --sample-prompt a --sample-tokens 180 --eval-data "$d/text.txt" --eval-every 2
ok_if "--sample-prompt changes no answer" "other weights" test "$(weights sampled)" = "$(weights unsampled)"
ok_if "samples of an on-policy run are as long as they may be" "$(cat "$d/sampled/samples.jsonl")" test "$(grep -c '"step": 4, "prompt": "a", .*"}$' <(grep -v '"answer"' "$d/sampled/samples.jsonl"))" = 1
distill epochs --steps 0 --epochs 4 --group 3
ok_if "--epochs counts passes over the prompts" "$(column epochs loss | wc -l)" test "$(column epochs loss | wc -l)" = 10 # 4 x 5 x 3 answers, 6 a step
distill named --kd-ratio 1 --steps 1 --save-every 1
distill unnamed --steps 1 --save-every 1
ok_if "--kd-ratio 1 with --on-policy changes nothing" "other settings" cmp -s "$d/named/checkpoint-1/settings.txt" "$d/unnamed/checkpoint-1/settings.txt"
distill sized --batch-size auto --memory-budget 0.1
ok_if "--batch-size auto takes at most the answers of all prompts" "$(cat "$d/sized.log")" grep -q '^batch size 2, ' "$d/sized.log"
distill rounded --teacher-dtype fp8
ok_if "a rounded teacher is measured without --data" "$(cat "$d/rounded.log")" \
    test "$(grep -cx 'fp8 teacher: accuracy check skipped: there is no --data' "$d/rounded.log")" = 1 -a -s "$d/rounded/model.safetensors"
printf '{"prompt": "%060d"}\n' 1 >>"$d/prompts.jsonl"
distill dropped
ok_if "prompts that are too long are left out and said" "$(cat "$d/dropped.log")" \
    grep -qx '1 prompt longer than the 39 tokens that --seq-len and --max-new leave: left out' "$d/dropped.log"
ok_if "prompts that are left out change nothing else" "other weights" test "$(weights dropped)" = "$(weights run)"
distill full --seq-len 512 --max-new 450 --batch-size 1 --steps 1
ok_if "--on-policy takes sequences as long as the model's maximum" "$(tail -n 1 "$d/full.log")" test -s "$d/full/model.safetensors"

# ---- what is refused
no() { # NAME REGEX OPTION...
    local name=$1 pattern=$2
    shift 2
    refuses "$name" 2 "^nojit distill: $pattern" command --out "$d/x" "$@"
}
asked=(--prompts "$d/prompts.jsonl")
no "--prompts without --on-policy is refused" '--prompts needs --on-policy, the share of sequences that are answers to them$' --data "$d/text.txt" "${asked[@]}"
no "--on-policy without --prompts is refused" '--on-policy needs --prompts to answer$' --on-policy 1
no "--on-policy 0.5 without --data is refused" '--on-policy 0.5 needs --data for the other sequences$' --on-policy 0.5 "${asked[@]}"
no "--on-policy above 1 is refused" '--on-policy 1.5: must lie between 0 and 1' --on-policy 1.5 "${asked[@]}"
no "--writer without --on-policy is refused" '--writer needs --on-policy and --prompts$' --data "$d/text.txt" --writer teacher
no "--teacher-prompt without --on-policy is refused" '--teacher-prompt needs --on-policy and --prompts$' --data "$d/text.txt" --teacher-prompt x
no "--horizon without --on-policy is refused" '--horizon needs --on-policy and --prompts$' --data "$d/text.txt" --horizon 3
no "--horizon above --max-new is refused" '--horizon 10 is more than --max-new 9; lower it$' --on-policy 1 "${asked[@]}" --horizon 10
no "--max-new that leaves no room for prompts is refused" '--max-new 48 leaves no room for a prompt in --seq-len 48; lower the one or raise the other$' --on-policy 1 "${asked[@]}" --max-new 48
no "--sample-prompt with --writer teacher is refused" "--sample-prompt needs the student's decoder, which --writer teacher does not allocate; leave --sample-prompt out\$" --on-policy 1 "${asked[@]}" \
    --writer teacher --sample-prompt a
ratio='--kd-ratio 0.8: with --on-policy the loss is the divergence alone, of text of --data too, as with 1; leave --kd-ratio out$'
no "--kd-ratio 0.8 with --on-policy 1 is refused" "$ratio" --on-policy 1 "${asked[@]}" --kd-ratio 0.8
no "--kd-ratio 0.8 with --on-policy 0.5 is refused" "$ratio" --on-policy 0.5 --data "$d/text.txt" "${asked[@]}" --kd-ratio 0.8
echo 'kd-ratio: 0.5' >"$d/ratio.yaml"
no "a --config with kd-ratio and on-policy is refused" '--kd-ratio 0.5: with --on-policy the loss' --on-policy 1 "${asked[@]}" --config "$d/ratio.yaml"
refuses "a plan with --kd-ratio and --on-policy is refused" 2 '^nojit plan: --kd-ratio 0: with --on-policy the loss' "$nojit" plan "${models[@]}" --seq-len 120 --max-new 9 --on-policy 1 --kd-ratio 0
no "--on-policy on several GPUs is refused" '--on-policy runs on one GPU; leave --gpus and the launcher out$' --on-policy 1 "${asked[@]}" --gpus 2 --grad-accum 2
no "an --out among the prompts is refused" "--out $d/in/x lies in $d/in, which --prompts reads" --on-policy 1 --prompts "$(mkdir "$d/in" && cp "$d/prompts.jsonl" "$d/in" && echo "$d/in")" \
    --out "$d/in/x"
printf '{"prompt": "%s"}\n' ab cd >"$d/long.jsonl"
asked=(--prompts "$d/long.jsonl")
refuses "prompts of which none fits are refused" 1 "^nojit distill: $d/long.jsonl: 2 prompts, and each is longer than this run allows \(1 token\); raise --seq-len, or lower the number of tokens that follow$" \
    command --out "$d/x" --on-policy 1 "${asked[@]}" --max-new 47
finish
