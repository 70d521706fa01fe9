#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# chat_loop.sh: `nojit generate --chat` without a prompt answers the lines of standard input as one conversation. What fails if this does: an answer that
# does not see what was said before.
set -eu
. tests/lib/lib.sh
. tests/lib/chat_model.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1

turns_model "$d/new"
echo '{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "r"}, {"role": "assistant", "content": "no"}]}' >"$d/chats.jsonl"
"$nojit" train --student "$d/new" --data "$d/chats.jsonl" --packing bfd --seq-len 64 --batch-size 2 --lr 1e-2 --steps 60 --device cpu --out "$d/model" >"$d/err" 2>&1
chat() { "$nojit" generate --model "$d/model" --chat --temperature 0 --max-tokens 12 --device cpu "$@" 2>"$d/err"; }

printf 'q\n\nr\n' | chat >"$d/said"
ok_if "each line of standard input is answered" "$(cat "$d/said" "$d/err")" test "$(cat "$d/said")" = "$(printf 'yes\nno')"
echo '{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "q"}]}' >"$d/whole.jsonl"
whole=$("$nojit" generate --model "$d/model" --prompts "$d/whole.jsonl" --temperature 0 --max-tokens 12 --device cpu 2>/dev/null | sed -E 's/.*"text": "([^"]*)".*/\1/')
again=$(printf 'q\nq\n' | chat | sed -n 2p)
ok_if "an answer continues the whole conversation" "$again, not $whole" test "$again" = "$whole"
ok_if "an answer within a conversation is another one than at its start" "$again" test "$again" != yes
ok_if "/new begins a new conversation" "$(printf 'q\n/new\nq\n' | chat)" test "$(printf 'q\n/new\nq\n' | chat)" = "$(printf 'yes\nyes')"
ok_if "a last line without its end is answered" "" test "$(printf q | chat)" = yes
ok_if "nothing is asked for where there is no terminal" "$(cat "$d/err")" test "$(grep -c '> ' "$d/err")" = 0
ok_if "a blank line is no message" "$(printf 'q\n \t\n\nr\n' | chat)" test "$(printf 'q\n \t\n\nr\n' | chat)" = "$(printf 'yes\nno')"
printf 'q\n' | "$nojit" generate --model "$d/model" --chat --max-tokens 3 --ignore-eos --device cpu 2>"$d/err" >/dev/null
ok_if "an answer that --max-tokens cut is said to be" "$(cat "$d/err")" grep -qx '(cut at --max-tokens 3)' "$d/err"
printf 'q\n' | chat >/dev/null
ok_if "an answer that ended is not" "$(cat "$d/err")" test "$(grep -c 'cut at' "$d/err")" = 0
echo '{"messages": [{"role": "system", "content": "no yes r q"}, {"role": "user", "content": "q"}]}' >"$d/system.jsonl"
of_file=$("$nojit" generate --model "$d/model" --prompts "$d/system.jsonl" --temperature 0 --max-tokens 12 --device cpu 2>/dev/null | sed -E 's/.*"text": "([^"]*)".*/\1/')
said=$(printf 'q\n/new\nq\n' | chat --system 'no yes r q')
ok_if "--system stands before each conversation" "$said, not $of_file" test "$said" = "$of_file"$'\n'"$of_file"
ok_if "--system stands before a question alone, too" "$of_file" test "$(chat --system 'no yes r q' --prompt q)" = "$of_file"
ok_if "--system changes the answer" "$of_file" test "$of_file" != yes
refuses "--system without --chat is refused" 2 '--system is for --chat' "$nojit" generate --model "$d/model" --system no --prompt q
refuses "generate without anything to continue is refused" 2 '^nojit generate: --prompt, --prompts or --chat is needed$' "$nojit" generate --model "$d/model"
succeeds "an empty --prompt is one" "$nojit" generate --model "$d/model" --prompt '' --max-tokens 2 --device cpu
(printf 'q\n' && sleep 2) | NOJIT_WAIT_SECONDS=1 chat >/dev/null
ok_if "nothing is said while the user writes" "$(cat "$d/err")" test "$(grep -c 'so far' "$d/err")" = 0
ok_if "no line, no answer" "" test -z "$(chat </dev/null)"
long() { printf "q\nq\nq\nq\nq\nq\n" | "$nojit" generate --model "$d/model" --chat --max-tokens 12 --device cpu --seq-len 24 --ignore-eos; }
refuses "a conversation beyond --seq-len is refused" 2 'the conversation has [0-9]+ tokens, and --seq-len is 24; raise it, or begin a new one by /new' long

# ---- on a terminal
typed() { # ARGUMENT...: what a terminal shows of the lines of standard input
    TERM=xterm script -qec "$nojit generate --model $d/model --chat --temperature 0 --max-tokens 12 --device cpu $*" /dev/null | tr -d '\r'
}
if command -v script >/dev/null; then
    (sleep 1 && printf 'q\n/help\n/new\n/etc/q\nq\n' && sleep 3 && printf '\004') | typed >"$d/screen"
    ok_if "/new is confirmed on a terminal" "$(cat "$d/screen")" grep -q '^\(> \)*new conversation$' "$d/screen"
    ok_if "a command that does not exist is not sent" "$(cat "$d/screen")" grep -q '^\(> \)*no such command; /new begins a new conversation, Ctrl-D ends$' "$d/screen"
    ok_if "a line feed ends the last prompt" "$(cat -A "$d/screen")" test "$(tail -c 1 "$d/screen" | od -An -c | tr -d ' ')" = '\n'
    (sleep 1 && printf 'q\nq\nq\n/new\nq\n' && sleep 3 && printf '\004') | typed --seq-len 24 >"$d/screen"
    ok_if "a conversation that is too long continues without the last message" "$(cat "$d/screen")" \
        grep -q 'and --seq-len is 24; raise it, or begin a new one by /new; this message is left out$' "$d/screen"
    ok_if "/new begins another conversation after one that is too long" "$(cat "$d/screen")" test "$(grep -c '^\(> \)*yes$' "$d/screen")" = 2
else
    skip "a conversation on a terminal" "there is no \`script\`"
fi
finish
