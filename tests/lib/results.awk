# SPDX-License-Identifier: Apache-2.0
#
# results.awk -v program=NAME [-v status=N] LOG: what a log says of each check, as lines `passed|failed|skipped, tab, NAME, tab, check`.
# Knows cmocka's lines, those of tests/lib/lib.sh and, of the harness, its ops; those of a harness under a tool have all failed if the
# tool says so by its exit status.
function say(verdict, check) { print verdict "\t" program "\t" check }
BEGIN { has_ops = program == "harness" || program ~ /^gpu-(harness|memcheck|racecheck|initcheck)$/ }
/^\[       OK \] / { say("passed", substr($0, 14)) }
/^\[  FAILED  \] [^0-9]/ { say("failed", substr($0, 14)) }
/^\[  SKIPPED \] [^0-9]/ && !skipped[$0]++ { say("skipped", substr($0, 14)) }
/^ok / { say("passed", substr($0, 4)) }
/^skip / {
    sub(/: .*/, "")
    say("skipped", substr($0, 6))
}
/^FAIL / {
    if (has_ops) {
        sub(/\..*/, "", $2)
        bad[$2] = 1
    } else {
        sub(/: .*/, "")
        say("failed", substr($0, 6))
    }
}
has_ops && / cases, worst error / { ran[$1] = 1 }
END { for (op in ran) say(op in bad || (program ~ /check$/ && status) ? "failed" : "passed", op) }
