#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# dist.sh: B/dist/nojit-VERSION-HOST-ARCHS.tar.gz and its checksum in NAME.tar.gz.sha256. Holds the binary, first-run.sh, man page, licence,
# security policy, the SBOM and the licences of what is linked statically, checksums, for a DGX Spark its page. Same inputs, same bytes.
set -eu
export LC_ALL=C # the order of files
umask 022
: "${B:?}" "${VERSION:?}" "${ARCHS:?}" "${STATIC:?}" "${ONIG_SRC:?}" "${BLOBCHECK:=$B/blobcheck}" "${STRIP:=strip}" "${DOC:=/usr/share/doc}"
: "${SOURCE_DATE_EPOCH:=0}"
export SOURCE_DATE_EPOCH
host=$(${CC:-cc} -dumpmachine)
gcc=$(${CC:-cc} -dumpversion)
name=nojit-$VERSION-${host%%-*}-$(echo "$ARCHS" | tr ' ' '-')
dir=$B/dist/$name
rm -rf "$dir" "$dir.tar.gz" "$dir.tar.gz.sha256"
mkdir -p "$dir/licences"
cp "$B/nojit" "$dir/nojit"
"$STRIP" "$dir/nojit"
"$BLOBCHECK" "$dir/nojit" --quiet
scripts/sbom.sh "$dir/nojit" $STATIC >"$dir/nojit.spdx.json"

# licence NAME FILE...: the first that there is; Debian has the terms of each library beside its headers.
licence() {
    local name=$1 f
    shift
    for f; do
        if [ -f "$f" ]; then
            cp "$f" "$dir/licences/$name.txt"
            return
        fi
    done
    echo "dist: no licence of $name: there is no $1" >&2
    exit 1
}
for l in $STATIC; do
    case $l in
    gomp) ;; # with gcc
    onig) licence libonig "$ONIG_SRC/../COPYING" ;;
    z) licence libz "$DOC/zlib1g-dev/copyright" ;;
    *) licence "lib$l" "$DOC/lib$l-dev/copyright" "$DOC/lib$l"*-dev/copyright "$DOC/lib${l%-*}-dev/copyright" ;;
    esac
done
licence libgcc-libgomp "/usr/share/doc/libgcc-${gcc%%.*}-dev/copyright" "/usr/share/doc/libgcc-${gcc%%.*}-dev"*/copyright
licence GPL-3 /usr/share/common-licenses/GPL-3

files=("$B/nojit.1" LICENSE README.md SECURITY.md scripts/first-run.sh)
case "$host $ARCHS" in aarch64*sm_121*) files+=(docs/dgx-spark.md docs/two-dgx-sparks.md) ;; esac
cp "${files[@]}" "$dir/"
# Links of a page that lead to what is not packed become their words.
there=$(cd "$dir" && printf '%s|' *.md LICENSE)
for page in "$dir"/*.md; do
    sed -zE "s/\]\((https?:|mailto:|#|(${there%|})[)#])/]\x01\1/g; s/!?\[([^]]*)\]\([^)]*\)/\1/g; s/\x01/(/g" "$page" >"$page.part"
    mv "$page.part" "$page"
done
(cd "$dir" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
tar -C "$B/dist" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" |
    gzip -n9 >"$dir.tar.gz"
rm -r "$dir"
(cd "$B/dist" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$dir.tar.gz"
