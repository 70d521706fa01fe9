#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# dist_package.sh: the tarball is the same bytes from another folder and umask, has a checksum beside it, and holds, for each library
# that is linked, its version and its licence.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
static=$(sed -n 's/^STATIC := //p' mk/trainer.mk)
build=$(realpath "$BUILD")
ONIG_SRC=$(sed -n 's/^ONIG_SRC := //p' "$BUILD/setup.mk")
export ONIG_SRC
dist() { # FOLDER [SETTING...]
    local b=$scratch/$1
    mkdir -p "$b"
    ln -sf "$build/nojit" "$b/nojit"
    "$b/nojit" help --man >"$b/nojit.1"
    env B="$b" VERSION=0 ARCHS="sm_1 sm_2" STATIC="$static" BLOBCHECK="$build/blobcheck" "${@:2}" scripts/dist.sh
}
package=nojit-0-$(uname -m)-sm_1-sm_2
again() { (umask 077 && dist b/c) && cmp "$scratch/a/dist/$package.tar.gz" "$scratch/b/c/dist/$package.tar.gz"; }
succeeds "make dist packs" dist a
succeeds "make dist packs the same bytes from another folder and umask" again
succeeds "the tarball has a checksum beside it" env -C "$scratch/a/dist" sha256sum -c $package.tar.gz.sha256
tar -xzf "$scratch/a/dist/$package.tar.gz" -C "$scratch"
cd "$scratch/$package"
succeeds "SHA256SUMS in the tarball are true" sha256sum -c SHA256SUMS
every_file() { [ "$(find . -type f | wc -l)" = $(($(wc -l <SHA256SUMS) + 1)) ] && [ -s SECURITY.md ] && [ -s LICENSE ] && [ -s nojit.1 ]; }
succeeds "SHA256SUMS in the tarball name every file" every_file
finds_program() { [ -x first-run.sh ] && NOJIT='' DEVICE=cuda ./first-run.sh "$scratch/first.tar.gz" | grep -q 'there is no device that nojit can use' && [ -s "$scratch/first.tar.gz" ]; }
succeeds "first-run.sh in the tarball finds the program beside it" finds_program
licensed() { for l in $static; do [ "$l" = gomp ] || [ -s "licences/lib$l.txt" ] || return 1; done && [ -s licences/libgcc-libgomp.txt ]; }
succeeds "the tarball has a licence of each library" licensed
links() { grep -ozE '\]\([^)]*\)' "$@" | tr '\0' '\n' | sed -E 's/^[^(]*\(//; s/\)$//' | grep -vE '^(https?:|mailto:|#)' || true; }
lead_somewhere() { # links of the packed pages
    local page link
    for page in *.md; do
        while IFS= read -r link; do [ -z "$link" ] || [ -e "${link%%#*}" ] || { echo "$page: $link" && return 1; }; done < <(links "$page")
    done
}
succeeds "links of the packed pages lead to packed files" lead_somewhere
keeps_words() { grep -q 'SECURITY.md](SECURITY.md)\|\](SECURITY.md)' README.md && ! grep -q '](docs/' README.md && grep -qE '^ *make demo' README.md; }
succeeds "a link to a packed file stays, others become their words" keeps_words
./nojit version --verbose >"$scratch/version"
listed() {
    local l version
    for l in $static gcc; do
        version=$(sed -n "s/^library   lib$l \([0-9][0-9.]*\), [A-Z].*/\1/p" "$scratch/version")
        [ -n "$version" ] && grep -q "\"name\": \"lib$l\", \"versionInfo\": \"$version\"" nojit.spdx.json || return 1
        grep -q "\"STATIC_LINK\", \"relatedSpdxElement\": \"SPDXRef-lib$l\"" nojit.spdx.json || return 1
    done
    grep -q "\"checksumValue\": \"$(sha256sum <nojit | cut -d' ' -f1)\"" nojit.spdx.json
}
succeeds "the SBOM has the version of each library" listed
if command -v python3 >/dev/null; then succeeds "the SBOM is JSON" python3 -m json.tool nojit.spdx.json; else skip "the SBOM is JSON" "there is no Python"; fi

assemblers() { # every release that the index names
    local r
    for r in $("$build/blobcheck" nojit --json | sed -n 's/.*"assembler": "ptxas \(.*\)",/\1/p' | sort -u); do
        grep -q "\"name\": \"ptxas[-0-9.]*\", \"versionInfo\": \"$r\"" nojit.spdx.json || { echo "no ptxas $r" && return 1; }
    done && [ -n "$r" ]
}
succeeds "the SBOM has every release of ptxas" assemblers

cd "$OLDPWD"
refuses "sbom.sh refuses a library that is linked and not named" 1 'and mk/trainer.mk links .*lz4' scripts/sbom.sh "$build/nojit" $static lz4
refuses "sbom.sh refuses a library that is named and not linked" 1 'names .*yaml' scripts/sbom.sh "$build/nojit" ${static/yaml/}
refuses "make dist refuses a library without a licence" 1 "no licence of lib.*: there is no $scratch/none" dist c DOC="$scratch/none"
finish
