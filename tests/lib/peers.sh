# SPDX-License-Identifier: Apache-2.0
#
# peers.sh: sourced by tests that hold nojit beside Python libraries. PYTHON is an interpreter that has them.

# compare_with SCRIPT MODULES PACKAGES ALL: run tests/lib/SCRIPT with the build and a folder, and give its verdicts, then that of ALL, which passes if
# the script came to its end. Where a module is absent everything is skipped, and PACKAGES says what to install.
compare_with() {
    local python=${PYTHON:-python3} got=0 line
    if ! "$python" -c "import $2" 2>"$scratch/log"; then
        skip "everything" "$(tail -n 1 "$scratch/log" | cut -c 1-100); name a PYTHON with PyPI's $3"
        return
    fi
    export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1
    mkdir "$scratch/work"
    "$python" "tests/lib/$1" "$BUILD" "$scratch/work" >"$scratch/verdicts" 2>"$scratch/err" || got=$?
    while IFS= read -r line; do
        case $line in
        "ok "*) ok "${line#ok }" ;;
        "skip "*) line=${line#skip } && skip "${line%%: *}" "${line#*: }" ;;
        *) line=${line#FAIL } && not_ok "${line%%: *}" "${line#*: }" ;;
        esac
    done <"$scratch/verdicts"
    ok_if "$4" "$(tail -n 3 "$scratch/err")" [ "$got" = 0 ]
}
