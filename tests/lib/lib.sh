# SPDX-License-Identifier: Apache-2.0
# Sourced by every script test: counts, and prints the command that repeats a failure. $verdicts is a file that gets the verdicts, too.
export NOJIT_WAIT_SECONDS=${NOJIT_WAIT_SECONDS:-0} # no words about what takes long, as on a slow machine
# No self-test of simulated GPUs, which takes them seconds, but where it is what is tested.
[ "${DEVICE:-}" = cuda ] || export NOJIT_SELF_TEST=${NOJIT_SELF_TEST:-off}
export LC_ALL=C # numbers with a point, names in the order of their bytes
: "${BUILD:=build}" "${verdicts:=/dev/null}"
if grep -qsx 'ASSEMBLER := toolkit' "$BUILD/setup.mk"; then export ASSEMBLER=toolkit; fi # a build without the newer ptxas stays one
passed=0
failed=0
skipped=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The driver of a real GPU is hidden from a script, as a folder of that name cannot be loaded, unless DEVICE=cuda asks for the GPU.
no_driver=$scratch/no-driver
if [ "${DEVICE:-}" != cuda ]; then
    mkdir -p "$no_driver/libcuda.so.1"
    export LD_LIBRARY_PATH=$no_driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

ok() {
    passed=$((passed + 1))
    echo "ok $1" | tee -a "$verdicts"
}

not_ok() {
    failed=$((failed + 1))
    echo "FAIL $1: $2" | tee -a "$verdicts"
    echo "RERUN ${DEVICE:+DEVICE=$DEVICE }${SEED:+SEED=$SEED }BUILD=$BUILD bash $0"
}

# skip NAME WHY: a check that cannot be made on this machine.
skip() {
    skipped=$((skipped + 1))
    echo "skip $1: $2" | tee -a "$verdicts"
}

# ok_if NAME WHY CONDITION...: where the condition does not hold, WHY is said.
ok_if() {
    local name=$1 why=$2
    shift 2
    if "$@"; then ok "$name"; else not_ok "$name" "${why:0:400}"; fi
}

# succeeds NAME COMMAND...: else its last lines are said.
succeeds() {
    local name=$1
    shift
    if "$@" >"$scratch/out" 2>&1; then ok "$name"; else not_ok "$name" "$(tail -n 3 "$scratch/out")"; fi
}

# refuses NAME STATUS REGEX COMMAND...: the command exits with STATUS (a pattern) and says one sentence that matches REGEX.
refuses() {
    local name=$1 want=$2 pattern=$3 got=0
    shift 3
    "$@" >"$scratch/out" 2>"$scratch/err" || got=$?
    if ! [[ "$got" == $want ]]; then
        not_ok "$name" "exit status $got, expected $want: $(head -c 300 "$scratch/err")"
    elif ! grep -qE -- "$pattern" "$scratch/err"; then
        not_ok "$name" "no '$pattern' in: $(head -c 300 "$scratch/err")"
    else
        ok "$name"
    fi
}

# exact COMMAND...: what it prints is, byte for byte, what stands beside the script: NAME.stdout.exact and NAME.stderr.exact (no
# file: nothing). EXACT=write writes them anew.
exact() {
    local stream file
    "$@" >"$scratch/stdout" 2>"$scratch/stderr" || true
    for stream in stdout stderr; do
        file=${0%.sh}.$stream.exact
        if [ "${EXACT:-}" = write ]; then
            if [ -s "$scratch/$stream" ]; then cp "$scratch/$stream" "$file"; else rm -f "$file"; fi
        fi
        [ -e "$file" ] || file=/dev/null
        if diff "$file" "$scratch/$stream" >"$scratch/diff"; then
            ok "$stream of $(basename "$0" .sh) is exact"
        else
            not_ok "$stream of $(basename "$0" .sh) is exact" "$(head -n 20 "$scratch/diff"); after a change that is meant: EXACT=write bash $0"
        fi
    done
}

# needs KEY|ARCH...: in a build without one of them (ONLY, ARCHS) the script says so and ends.
needs() {
    local what lacks=""
    for what; do
        grep -q "^$what	" "$BUILD/gen/keys.txt" "$BUILD/gen/archs.txt" || lacks="$lacks $what"
    done
    [ -z "$lacks" ] && return
    skip "everything" "this build lacks$lacks"
    finish
    exit
}

# apart: goes into $tree, a copy of the tree, from where `make` of the CUDA of this build works, called from within a make or not.
apart() {
    unset MAKEFLAGS MAKELEVEL MFLAGS
    CUDA_HOME=$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")
    ONIG_SRC=$(sed -n 's/^ONIG_SRC := //p' "$BUILD/setup.mk")
    ASSEMBLER=$(sed -n 's/^ASSEMBLER := //p' "$BUILD/setup.mk")
    export CUDA_HOME ONIG_SRC ASSEMBLER
    tree=$scratch/tree
    mkdir "$tree"
    cp -r Makefile mk LICENSE base contracts gen kernels runtime scripts tests tools trainer bench "$tree"
    cd "$tree" || exit
}

finish() {
    echo "$(basename "$0" .sh): $passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}
