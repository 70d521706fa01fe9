#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# template_date.sh: the date that chat templates write: today, that of --template-date, or that of the run that goes on. What fails if this does: a run that is
# resumed on another day has other data, or a model is asked with a date long past.
set -eu
. tests/lib/lib.sh
. tests/lib/chat_model.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

chat_model "$d/new" <<'END'
{{ strftime_now('%a %d %b %Y %H:%M [%Z]') }}{% for m in messages %}{{ '<left>' + m.content + '<tool>' }}{% endfor %}
END
echo '{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}' >"$d/chats.jsonl"
show() { "$nojit" tokenize --model "$d/new" --data "$d/chats.jsonl" --show 1 "$@" 2>/dev/null; }
today=$(date +'%a %d %b %Y') shown=$(show)
[ "$today" = "$(date +'%a %d %b %Y')" ] || today=$(date +'%a %d %b %Y') shown=$(show) # midnight has passed
ok_if "a template writes today's date" "$shown" grep -qF "$today 00:00 []" <<<"$shown"
ok_if "--template-date is the date that a template writes" "$(show --template-date 2024-02-29)" grep -qF 'Thu 29 Feb 2024 00:00 []' <(show --template-date 2024-02-29)
for day in 2025-02-29 26.7.2024 2024-07-26x ''; do
    refuses "'$day' is no date of a template" 2 'there is no such day; write it as' "$nojit" tokenize --model "$d/new" --data "$d/chats.jsonl" --show 1 --template-date "$day"
done

train() { "$nojit" train --student "$d/new" --data "$d/chats.jsonl" --seq-len 64 --batch-size 1 --device cpu --out "$d/run" "$@" >"$d/out" 2>&1; }
field() { grep -o "\"$1\": \"[^\"]*\"" "$d/run/receipt.json" | cut -d'"' -f4; }
train --steps 2 --save-every 1 --template-date 2025-01-02
ok_if "a line says the date of a run" "$(cat "$d/out")" grep -qF 'the chat template writes the date, which is 2025-01-02 in this run' "$d/out"
ok_if "the receipt has the date of a run" "$(cat "$d/run/receipt.json")" test "$(field template_date)" = 2025-01-02
train --steps 3 --resume auto
ok_if "a resumed run keeps the date on which it began" "$(cat "$d/out")" test "$(field template_date)" = 2025-01-02
refuses "another date is refused when a run goes on" 2 'repeat the options of the run' \
    "$nojit" train --student "$d/new" --data "$d/chats.jsonl" --seq-len 64 --batch-size 1 --steps 4 --device cpu --out "$d/run" --resume auto --template-date 2025-01-03
"$nojit" generate --model "$d/new" --chat --prompt q --max-tokens 4 --temperature 0 --device cpu --template-date 2025-01-02 >"$d/one" 2>/dev/null
echo '{"prompt": [{"role": "user", "content": "q"}]}' >"$d/prompts.jsonl"
tokens() { "$nojit" generate --model "$d/new" --prompts "$d/prompts.jsonl" --max-tokens 4 --temperature 0 --device cpu "$@" 2>/dev/null; }
ok_if "prompts of generate have the date, too" "$(tokens --template-date 2025-01-02), $(tokens --template-date 2025-09-13)" \
    test "$(tokens --template-date 2025-01-02)" != "$(tokens --template-date 2025-09-13)"

finish
