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
offers "completion offers commands" "distill" nojit dis
offers "completion offers commands to help" "report" nojit help rep
offers "completion offers options" "--teacher --teacher-dtype --teacher-prompt --teacher-shard" nojit distill --tea
offers "completion offers no options of other commands" "" nojit train --tea
offers "completion offers the choices of an option" "constant cosine" nojit train --lr-schedule co
offers "completion offers no file where a number is due" "" nojit train --steps ""
offers "completion offers no file where a list of numbers is due" "" nojit train --data-weights ""
mkdir "$scratch/files"
mkdir "$scratch/files/folder"
touch "$scratch/files/file.yaml"
cd_back=$PWD
cd "$scratch/files"
offers "completion offers folders where a folder is due" "folder" nojit train --out f
offers "completion offers files where a file is due" "file.yaml folder" nojit train --config f
cd "$cd_back"
for c in $("$nojit" --help | awk '/^  [a-z]/ { print $1 }'); do
    want=$("$nojit" "$c" --help | grep -oE '^  --[a-z0-9-]+' | tr -d ' ' | sort -u | tr '\n' ' ')
    COMP_WORDS=(nojit "$c" --)
    COMP_CWORD=2
    _nojit || true # compgen fails where nothing fits
    got=$(printf '%s\n' "${COMPREPLY[@]}" | grep -v '^--help$' | sort -u | tr '\n' ' ')
    if [ "$got" = "$want" ]; then ok "completion of $c has the options of its help"; else not_ok "completion of $c has the options of its help" "completion has '$got', help has '$want'"; fi
    missing=0
    for o in $want; do grep -q -- "'\**$o\[" "$scratch/_nojit" || missing=1; done
    if [ "$missing" = 0 ]; then ok "zsh's completion of $c has the options of its help"; else not_ok "zsh's completion of $c has the options of its help" "an option is missing"; fi
done
words=$(sed -n '/^        help)/,/;;$/s/.*1:command:(\(.*\)).*/\1/p' "$scratch/_nojit" | tr ' ' '\n' | sort)
if [ "$words" = "$("$nojit" --help | awk '/^  [a-z]/ { print $1 }' | sort)" ]; then ok "zsh's completion of help has every command"; else not_ok "zsh's completion of help has every command" "$words"; fi
if command -v zsh >/dev/null; then
    if zsh -n "$scratch/_nojit"; then ok "zsh can read the completion script"; else not_ok "zsh can read the completion script" "see above"; fi
fi
finish
