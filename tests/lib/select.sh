# SPDX-License-Identifier: Apache-2.0
# Sourced by tests/run.sh: which tests run, and in what order.

# every_test: prints a line `NAME COMMAND` for each test there is.
every_test() {
    units
    echo "harness env -u OMP_NUM_THREADS $BUILD/harness --device cpu"
    echo "harness-selftest $BUILD/harness --self-test"
    local t
    for t in tests/{cli,device,build,durability,claims}/*.sh; do echo "$(basename "$t" .sh) bash $t"; done
}
units() {
    local t
    for t in "$BUILD"/tests/test_*; do
        if [ -x "$t" ] && [ -f "tests/unit/$(basename "$t").c" ]; then echo "$(basename "$t") $t"; fi
    done
    echo "fuzz_corpus bash tests/fuzz/fuzz_corpus.sh"
}

# of_tier TIER: passes on the tests of a tier. quick is part of test, and test of all; a test that tests/tiers.txt does not name is quick.
of_tier() {
    awk -v tier="$1" '
        BEGIN { within["quick"] = " quick "; within["test"] = " quick test "; within["all"] = " quick test all "; within["long"] = " long "; within["threads"] = " threads " }
        FNR == NR { if ($1 !~ /^#/) tiers[$1] = $0; next }
        {
            known[$1] = 1
            n = split($1 in tiers ? tiers[$1] : $1 " quick", own)
            for (i = 2; i <= n; i++)
                if (index(within[tier], " " own[i] " ")) { print; break }
        }
        END { for (name in tiers) if (!(name in known)) { print "tests/tiers.txt names " name ", which is no test" >"/dev/stderr"; exit 1 } }
        ' tests/tiers.txt -
}

# changed_tests COMMIT: the names of the tests of what changed since COMMIT: those of the claims whose mutation is in a changed file, those that are
# changed themselves, those of tests/changed.txt, and the quick ones of the tree as a whole.
changed_tests() {
    local files
    files=$({ git diff --name-only "$1" && git ls-files --others --exclude-standard; } | sort -u)
    "$BUILD/contractcheck" --list | awk -v files="$files" '
        BEGIN { n = split(files, f, "\n"); for (i = 1; i <= n; i++) changed[f[i]] = 1 }
        $2 in changed { print $3 }'
    sed -nE 's,^tests/(unit|cli|device|build|durability|claims)/([a-z0-9_]+)\.(c|sh)$,\2,p' <<<"$files"
    local pattern tests
    while read -r pattern tests; do
        [[ $pattern == \#* ]] && continue
        if grep -qE "^($pattern)" <<<"$files"; then tr ' ' '\n' <<<"$tests"; fi
    done <tests/changed.txt
}

# select_tests TIER COMMIT: prints a line `NAME COMMAND` for each test.
select_tests() {
    case $1 in
    units) units ;;
    quick-units)
        units >"$work/units"
        every_test | of_tier quick | awk 'FNR == NR { unit[$1] = 1; next } $1 in unit' "$work/units" -
        ;;
    quick | test | all | long | threads) every_test | of_tier "$1" ;;
    changed)
        changed_tests "$2" | sort -u >"$work/changed"
        every_test | awk 'FNR == NR { wanted[$1] = 1; next } $1 in wanted' "$work/changed" -
        ;;
    *)
        echo "usage: tests/run.sh units|quick-units|threads|quick|test|all|long|changed [COMMIT]" >&2
        return 2
        ;;
    esac
}

# longest_first: sorts by the seconds of tests/record.txt; a test that it does not know goes first.
longest_first() {
    awk 'FNR == NR { if ($1 !~ /^#/) seconds[$1] = $3; next } { print ($1 in seconds ? seconds[$1] : 1e6) "\t" $0 }' tests/record.txt - |
        sort -t "$(printf '\t')" -k1,1nr -s | cut -f 2
}
