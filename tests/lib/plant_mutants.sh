# SPDX-License-Identifier: Apache-2.0
#
# Sourced by what plants mutants: copies of the tree and of its build, in which one edit rebuilds what depends on it and no more.
: "${BUILD:=build}"
BUILD=$(realpath "$BUILD")
check=$BUILD/contractcheck

# posix: tar's own format cuts times to seconds, and make would rebuild kernels
copy_tree() { # TREE
    mkdir -p "$1/build"
    tar -c --format=posix --exclude=./.git --exclude='./build*' . | tar -x -C "$1"
    tar -C "$BUILD" -c --format=posix --exclude=./{demo,foreign,gpu-mutants,harness,kbench,test-logs,tests} . | tar -x -C "$1/build"
}
plant() { # TREE ID
    touch -d '2 seconds ago' "$1.mark"
    (cd "$1" && "$check" --plant "$2")
}
# Restore the files of the copy that changed since plant: contents and times. A program that hangs may still be running.
restore() { # TREE
    local f from
    while IFS= read -r f; do
        from=${f#"$1"/}
        case $from in build/*) from=$BUILD/${from#build/} ;; esac
        if [ -e "$from" ]; then cp -p --remove-destination "$from" "$f"; else rm -f "$f"; fi
    done < <(find "$1" -newer "$1.mark" ! -type d)
}
