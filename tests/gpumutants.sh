#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpumutants.sh prepare DIR [ARCH]: builds what shows that the tests on a GPU notice mutations: programs with the machine code of ARCH
# (default sm_90a), sound and with each mutant of a claim that needs a GPU, in DIR and DIR.tar.xz. A faulty kernel is built alone, and its
# PTX must differ from the sound one; one harness holds a mutant of each op at most, and its test runs that op alone. MUTANTS (a pattern) takes the
# claims whose id matches.
# gpumutants.sh run DIR|DIR.tar.xz: on a machine with a GPU, without a compiler: each test must pass with the sound program and fail with
# the faulty one. Ends with `N killed of M`; fails unless they are equal. RECORD (default BUILD/mutants-cuda) has what was found; JOBS (8) run
# at a time, LIMIT (120) is the seconds a test may take.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
: "${BUILD:=build}" "${JOBS:=8}" "${LIMIT:=120}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

refuse() { # SENTENCE
    echo "gpumutants: $1" >&2
    exit 2
}

# ---- prepare
program_of() { # PROGRAM: its file in a build folder
    case $1 in
    gpu-harness | gpu-*check) echo harness ;;
    gpu-test_*) echo "tests/${1#gpu-}" ;;
    *) echo nojit ;;
    esac
}
keep() { # FILE FOLDER NAME: without debug information
    mkdir -p "$(dirname "$dir/$2/$3")"
    strip -o "$dir/$2/$3" "$1"
    if [ "$3" = nojit ] && [ -f "$BUILD/cupti_modules.so" ]; then cp "$BUILD/cupti_modules.so" "$dir/$2"; fi
}
ptx() { # BUILD-FOLDER: of a key, without the names that nvcc makes up for each compilation
    sed -E 's/_INTERNAL_[0-9a-f]{8}_[0-9]+_[a-z0-9_]+_cu_[0-9a-f]{8}//g' "$1/ptx/$key.$arch.ptx"
}
# kernel ID OP: the faulty cubins of an op go to the first harness that has none of it yet.
kernel() {
    local id=$1 op=$2 keys key n=1 differs=
    while [ -e "$scratch/harness-$n/ops/$op" ]; do n=$((n + 1)); done
    mkdir -p "$scratch/harness-$n/ops"
    touch "$scratch/harness-$n/ops/$op"
    [ -e "$scratch/harness-$n/cubin" ] || cp -r "$scratch/sound/cubin" "$scratch/harness-$n/cubin"
    keys=$(cut -f1 "$BUILD/gen/keys.txt" | grep "^$op\.")
    make --no-print-directory -s -C "$tree" B=build $(for key in $keys; do echo "build/cubin/$key.$arch.cubin"; done)
    for key in $keys; do
        cmp -s <(ptx "$tree/build") <(ptx "$BUILD") || differs="$differs $key"
        cp "$tree/build/cubin/$key.$arch".{cubin,log} "$scratch/harness-$n/cubin/"
    done
    [ -n "$differs" ] || {
        echo "gpumutants: $id leaves the PTX of $op as it was; plant another fault" >&2
        exit 1
    }
    into=harness-$n
    echo "$id:$differs"
}
prepare() {
    local line id file program name sound=()
    if [ -e "$1" ] && [ ! -f "$1/list" ] && [ -n "$(ls -A "$1")" ]; then
        refuse "$1 exists and holds no list of mutants, so it is not replaced; name a new or empty folder"
    fi
    . tests/lib/plant_mutants.sh
    . tests/lib/relink.sh
    arch=${2:-sm_90a} tree=$scratch/tree
    unset MAKEFLAGS MAKELEVEL MFLAGS CI
    "$check" --only "${MUTANTS:-*}" --device cuda --list >"$scratch/list"
    [ -s "$scratch/list" ] || refuse "no claim of cuda matches '$MUTANTS'"
    line=$(grep -P "^$arch\t" "$BUILD/gen/archs.txt") || {
        echo "gpumutants: $BUILD has no machine code for $arch" >&2
        exit 1
    }
    rm -rf "$1" "$1.tar.xz"
    mkdir -p "$1" "$scratch/sound/cubin"
    dir=$(realpath "$1")
    cp "$BUILD"/cubin/*."$arch".{cubin,log} "$scratch/sound/cubin"
    relink "$scratch/sound" "$arch" "$line"
    for name in $(cut -f3 "$scratch/list" | while read -r program; do program_of "$program"; done | sort -u); do
        sound+=("$scratch/sound/$name")
    done
    copy_tree "$tree"
    # Programs under their own names: make knows how a test is linked by its name.
    link_in() { # FOLDER BLOBS NAME
        make --no-print-directory -s -C "$tree" B=build BLOBS="$2" "build/$3" && keep "$tree/build/$3" "$1" "$3"
    }
    for name in "${sound[@]}"; do link_in sound "$scratch/sound/obj/blobs.o" "${name#"$scratch/sound/"}"; done
    while IFS=$'\t' read -r id file program name; do
        plant "$tree" "$id"
        case $(program_of "$program") in
        harness) kernel "$id" "$name" ;;
        *) into=$id && link_in "$id" "$scratch/sound/obj/blobs.o" "$(program_of "$program")" && echo "$id: $(program_of "$program")" ;;
        esac
        restore "$tree"
        printf '%s\t%s\t%s\t%s\n' "$id" "$into" "$program" "$name" >>"$dir/list"
    done <"$scratch/list"
    for name in "$scratch"/harness-*; do
        [ -e "$name" ] || continue
        relink "$name" "$arch" "$line"
        link_in "$(basename "$name")" "$name/obj/blobs.o" harness
    done
    tar -C "$dir" -c . | xz -2 --lzma2=preset=2,dict=128MiB >"$dir.tar.xz"
    echo "$dir: $(wc -l <"$dir/list") mutants, $(du -sm "$dir" | cut -f1) MiB; $dir.tar.xz: $(du -m "$dir.tar.xz" | cut -f1) MiB"
}

# ---- run
passes() { # FOLDER PROGRAM CHECK LOG
    BUILD=$dir/$1 timeout -k 5 "$LIMIT" bash tests/run_one.sh "$2" "$3" >"$4" 2>&1
}
try() { # ID FOLDER PROGRAM CHECK
    local started=$SECONDS word log=$scratch/log-$1
    if ! passes sound "$3" "$4" "$log"; then
        word=untried
        { echo "    it fails without the mutant:" && tail -n 8 "$log" | sed 's/^/    /'; } >"$log.why"
    elif passes "$2" "$3" "$4" "$log"; then
        word=survived
    else
        word=killed
    fi
    printf '%s\t%s\n' "$word" "$1" >>"$scratch/record"
    printf '%-9s %-36s %s (%d s)\n' "$word" "$1" "$3 $4" $((SECONDS - started))
    if [ "$word" = untried ]; then cat "$log.why"; fi
}
is_alone() { [ "$1" = gpu-plan_taken ]; } # other programs on the device take memory, too
run() {
    local id folder program name killed
    dir=$1
    if [ -f "$dir" ]; then
        dir=$scratch/prepared
        mkdir "$dir"
        tar -xJf "$1" -C "$dir" 2>/dev/null || refuse "$1 is no archive of \`prepare\`; give its DIR or DIR.tar.xz"
    fi
    [ -f "$dir/list" ] || refuse "$1 holds no list of mutants; give the DIR or DIR.tar.xz of \`prepare\`"
    dir=$(realpath "$dir")
    export OMP_NUM_THREADS=2
    while IFS=$'\t' read -r id folder program name; do
        if is_alone "$program"; then continue; fi
        while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n; done
        try "$id" "$folder" "$program" "$name" &
    done <"$dir/list"
    wait
    while IFS=$'\t' read -r id folder program name; do
        if is_alone "$program"; then try "$id" "$folder" "$program" "$name" </dev/null; fi
    done <"$dir/list"
    mkdir -p "$BUILD"
    cp "$scratch/record" "${RECORD:-$BUILD/mutants-cuda}"
    killed=$(grep -c '^killed' "$scratch/record" || true)
    echo "$killed killed of $(wc -l <"$dir/list")"
    [ "$killed" = "$(wc -l <"$dir/list")" ]
}

case ${1-}:${2-} in
prepare:?* | run:?*) "$@" ;;
*)
    echo "usage: gpumutants.sh prepare DIR [ARCH] | run DIR|DIR.tar.xz" >&2
    exit 2
    ;;
esac
