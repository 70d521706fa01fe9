#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# locale_scripts.sh: scripts do the same under locales with a decimal comma (de_DE) and with letters of its own for i (tr_TR).
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
export OMP_WAIT_POLICY=passive
build=$(realpath "$BUILD")
awk 'BEGIN { for (x = i = 1; i <= 24000; i++) printf "%x%s", x = x * 16807 % 2147483647, i % 9 ? " " : "\n" }' >"$scratch/words.txt"
split -n l/20 "$scratch/words.txt" "$scratch/text"
mkdir "$scratch/b"
ln -s "$build/nojit" "$scratch/b/nojit"
demo() { env BUILD="$scratch/b" TEXT="$scratch/texta?" DEVICE=cpu TEACHER_STEPS=3 STUDENT_STEPS=2 "$@" bash scripts/demo.sh; }

for locale in de_DE tr_TR; do
    if ! localedef -i $locale -f UTF-8 "$scratch/$locale.UTF-8" >/dev/null 2>&1; then
        skip "scripts do the same under $locale" "localedef does not know it (package locales)"
        continue
    fi
    here=(env LOCPATH="$scratch" LC_ALL=$locale.UTF-8)
    if [ "$("${here[@]}" bash -c 'printf "%.1f" 2,5')" != 2,5 ]; then
        skip "scripts do the same under $locale" "bash does not follow it"
        continue
    fi
    if BUILD=$build "${here[@]}" bash tests/build/gen_same.sh >"$scratch/log" 2>&1; then
        ok "gen_same passes under $locale"
    else
        not_ok "gen_same passes under $locale" "$(grep FAIL "$scratch/log")"
    fi
    demo "${here[@]:1}" >"$scratch/log" 2>&1 || true # so few steps may leave the distilled student worse
    if [ "$(grep -cE '^  (teacher|student, (distilled|plain)) .* [0-9]\.[0-9]{4}$' "$scratch/log")" = 3 ] && ! grep -q '\.0000$' "$scratch/log" &&
        grep -qE '^The distilled student is [0-9]+\.[0-9] % ' "$scratch/log"; then
        ok "a demo of few steps runs under $locale"
    else
        not_ok "a demo of few steps runs under $locale" "$(tail -n 6 "$scratch/log")"
    fi
done
finish
