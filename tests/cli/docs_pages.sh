#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs_pages.sh: every link of a page leads to a file, and to a heading where it names one; the index names every page; no page counts the
# keys; tables and picture of scaling are those of their scripts; and the sentences that docs/troubleshooting.md quotes
# are those of the source.
set -eu
. tests/lib/lib.sh
pages=(*.md docs/*.md examples/*/README.md)

# anchors PAGE: what a forge makes of its headings
anchors() {
    awk '/^```/ { code = !code } /^#+ / && !code { sub(/^#+ /, ""); print tolower($0) }' "$1" | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}
# links PAGE: what stands in (...) behind [...]
links() { awk '/^```/ { code = !code } !code' "$1" | grep -oE '\]\([^) ]+\)' | sed -E 's/^\]\(//; s/\)$//' | grep -vE '^(https?|mailto):' || true; }
broken=
for page in "${pages[@]}"; do
    while IFS= read -r link; do
        path=${link%%#*}
        to=$page
        if [ -n "$path" ]; then to=$(dirname "$page")/$path; fi
        if ! [ -e "$to" ]; then
            broken+=" $page -> $link"
        elif [[ $link == *'#'* ]] && ! anchors "$to" | grep -qxF -- "${link#*#}"; then
            broken+=" $page -> $link (no such heading)"
        fi
    done < <(links "$page")
done
if [ -z "$broken" ]; then ok "links of ${#pages[@]} pages lead to files and headings"; else not_ok "links of ${#pages[@]} pages lead to files and headings" "$broken"; fi

unnamed=
for page in docs/*.md; do
    name=$(basename "$page")
    if [ "$name" != README.md ] && ! links docs/README.md | grep -qxF "$name"; then unnamed+=" $name"; fi
done
if [ -z "$unnamed" ]; then ok "the index names every page"; else not_ok "the index names every page" "lacks$unnamed"; fi

tables=$("${PYTHON:-python3}" bench/scaling.py)
if [ -n "$tables" ] && diff <(echo "$tables") <(grep -xF "$tables" docs/scaling.md) >"$scratch/diff"; then
    ok "tables of docs/scaling.md are those of their script"
else
    not_ok "tables of docs/scaling.md are those of their script" "$(head -n 3 "$scratch/diff")"
fi
succeeds "the picture of scaling is drawn" "${PYTHON:-python3}" bench/scaling_plot.py "$scratch/scaling.svg"
ok_if "docs/scaling.svg is the picture of its script" "python3 bench/scaling_plot.py docs/scaling.svg draws it anew" \
    cmp -s "$scratch/scaling.svg" docs/scaling.svg

# The number of keys changes with every contract: a page shows how to find it.
counts=$(grep -nE '\b[0-9]{2,3} (keys|kernels) (x [0-9]|for sm_|serve|loaded)|\b[0-9]+ of [0-9]+ (loaded|present)' "${pages[@]}" | grep -v '^CHANGELOG.md' || true)
if [ -z "$counts" ]; then ok "no page counts the keys"; else not_ok "no page counts the keys" "$counts"; fi

# One text literal per line, adjacent ones joined, with ... for each conversion. The compiler takes comments out.
literals() {
    find trainer runtime -name '*.c' -exec "${CC:-cc}" -fpreprocessed -dD -E -P {} + 2>"$scratch/warnings" |
        sed -zE 's/\\\\//g; s/\\"|\x27"\x27/\x27/g; s/(^|\n)#include[^\n]*//g; s/\\?\n/ /g' |
        sed -E 's/%" *PRI[a-zA-Z0-9]+ *"/.../g; s/%" *PRI[a-zA-Z0-9]+/..."/g; s/" *"//g' | grep -aoE '"[^"]*"' | sed -E 's/%[-+ #0-9.*]*(ll|l|h|z|t)?[a-zA-Z]/.../g; s/\.{3,}/.../g'
}
literals >"$scratch/literals"
sentences=$(sed -nE 's/^\| `([^`]+)` \|.*/\1/p' docs/troubleshooting.md)
missing=
while IFS= read -r sentence; do
    grep -qF -- "$sentence" "$scratch/literals" || missing+=" '$sentence'"
done <<<"$sentences"
if [ -z "$missing" ]; then ok "sentences quoted in docs/troubleshooting.md are messages of the source"; else not_ok "sentences quoted in docs/troubleshooting.md are messages of the source" "docs/troubleshooting.md quotes$missing; quote the new words"; fi
finish
