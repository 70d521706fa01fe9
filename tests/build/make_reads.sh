#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make_reads.sh: in a new clone make only reads: help, -n of any goal and refusals leave no file; set-up comes with what needs it,
# and says why it cannot. Jobs are as many as cores, or as many as are asked for; the demo is built
# for one architecture.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
apart
unset CI SETUP CC
files() { find . | sort; }
before=$(files)
left=
for goal in "help" "-n help" "-n" "-n all" "-n test" "-n demo" "-n compdb" "-n setup" "all SAN=memory" "clean"; do
    make $goal >"$scratch/out" 2>&1 || true
    [ "$(files)" = "$before" ] || left="$left make $goal: $(files | comm -13 <(echo "$before") - | head -n 1)"
done
if [ -z "$left" ]; then ok "make that only reads leaves no file"; else not_ok "make that only reads leaves no file" "$left"; fi
refuses "make -n before set-up leaves no file and says so" 2 "build is not set up, .*; run 'make setup' first" make -n all
refuses "make refuses an unknown compiler before set-up" 2 "^setup: CC=no-such-cc: there is no such compiler" make B="$scratch/b" CC=no-such-cc all

jobs_of() { printf 'include Makefile\nshow: ; @echo $(MAKEFLAGS)\n' | make -f - "$@" QUIET_GOALS=show show | grep -oE -- '-j[0-9]+' | head -n 1; }
equal() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "$2, expected $3"; fi; }
# Without a build folder: for the GPU that nvidia-smi names.
mkdir "$scratch/bin"
archs_of() { # WORDS OF NVIDIA-SMI, GOAL
    printf '#!/bin/sh\n%s\n' "$1" >"$scratch/bin/nvidia-smi"
    chmod +x "$scratch/bin/nvidia-smi"
    printf 'include Makefile\n$(info $(ARCHS))\n' | PATH="$scratch/bin:$PATH" make -n -f - "$2" QUIET_GOALS="$2" 2>/dev/null | head -n 1
}
equal "make demo builds for the GPU of this machine" "$(for c in 9.0 12.1 8.6 99.9; do archs_of "echo $c" demo; done | tr '\n' ' ')" "sm_90a sm_121 sm_86 sm_89 "
equal "make demo without a GPU builds for one arch" "$(archs_of 'exit 9' demo)" sm_89
equal "make all builds for all archs" "$(archs_of 'echo 9.0' all)" default
equal "make starts as many jobs as cores" "$(jobs_of)" "-j$(nproc)"
equal "make starts as many jobs as are asked for" "$(jobs_of -j3)" -j3
equal "make starts as many jobs as MAKEFLAGS says" "$(MAKEFLAGS=-j3 jobs_of)" -j3
finish
