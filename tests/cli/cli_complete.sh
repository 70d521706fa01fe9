#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_complete.sh: the completion scripts offer what the options are; bash's is run, zsh's is read by zsh where it is
# installed.
set -eu
. tests/lib/lib.sh
nojit=$BUILD/nojit
"$nojit" help --bash >"$scratch/nojit.bash"
"$nojit" help --zsh >"$scratch/_nojit"
. "$scratch/nojit.bash"
offers() { # NAME WANTED WORDS...: completing the last word gives WANTED
    local name=$1 wanted=$2
    shift 2
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _nojit || true # compgen fails where nothing fits
    local got
    got=$(printf "%s\n" "${COMPREPLY[@]}" | sort | tr "\n" " ")
    if [ "${got% }" = "$wanted" ]; then ok "$name"; else not_ok "$name" "offered '$got', expected '$wanted'"; fi
}
offers "commands" "distill" nojit dis
offers "commands to be helped with" "report" nojit help rep
offers "an option" "--teacher --teacher-dtype --teacher-prompt --teacher-shard" nojit distill --tea
offers "options of this command alone" "" nojit train --tea
offers "choices" "constant cosine" nojit train --lr-schedule co
offers "no file where a number is due" "" nojit train --steps ""
offers "nor where a list of them is" "" nojit train --data-weights ""
mkdir "$scratch/files"
mkdir "$scratch/files/folder"
touch "$scratch/files/file.yaml"
cd_back=$PWD
cd "$scratch/files"
offers "folders" "folder" nojit train --out f
offers "files" "file.yaml folder" nojit train --config f
cd "$cd_back"
for c in $("$nojit" --help | awk '/^  [a-z]/ { print $1 }'); do
    want=$("$nojit" "$c" --help | grep -oE '^  --[a-z0-9-]+' | tr -d ' ' | sort -u | tr '\n' ' ')
    COMP_WORDS=(nojit "$c" --)
    COMP_CWORD=2
    _nojit || true # compgen fails where nothing fits
    got=$(printf '%s\n' "${COMPREPLY[@]}" | grep -v '^--help$' | sort -u | tr '\n' ' ')
    if [ "$got" = "$want" ]; then ok "$c"; else not_ok "$c" "completion has '$got', help has '$want'"; fi
    missing=0
    for o in $want; do grep -q -- "'\**$o\[" "$scratch/_nojit" || missing=1; done
    if [ "$missing" = 0 ]; then ok "$c in zsh"; else not_ok "$c in zsh" "an option is missing"; fi
done
words=$(sed -n '/^        help)/,/;;$/s/.*1:command:(\(.*\)).*/\1/p' "$scratch/_nojit" | tr ' ' '\n' | sort)
if [ "$words" = "$("$nojit" --help | awk '/^  [a-z]/ { print $1 }' | sort)" ]; then ok "commands to be helped with, in zsh"; else not_ok "commands to be helped with, in zsh" "$words"; fi
if command -v zsh >/dev/null; then
    if zsh -n "$scratch/_nojit"; then ok "zsh reads it"; else not_ok "zsh reads it" "see above"; fi
fi
finish
