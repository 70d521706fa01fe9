#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# dist.sh: B/dist/nojit-VERSION-HOST-ARCHS.tar.gz: binary, man page, licence, checksums, for a DGX Spark its page. Same inputs, same bytes.
set -eu
export LC_ALL=C # the order of files
: "${B:?}" "${VERSION:?}" "${ARCHS:?}" "${BLOBCHECK:=$B/blobcheck}" "${STRIP:=strip}"
host=$(${CC:-cc} -dumpmachine)
name=nojit-$VERSION-${host%%-*}-$(echo "$ARCHS" | tr ' ' '-')
dir=$B/dist/$name
rm -rf "$dir" "$dir.tar.gz"
mkdir -p "$dir"
cp "$B/nojit" "$dir/nojit"
"$STRIP" "$dir/nojit"
"$BLOBCHECK" "$dir/nojit" --quiet
files=("$B/nojit.1" LICENSE README.md)
case "$host $ARCHS" in aarch64*sm_121*) files+=(docs/dgx-spark.md) ;; esac
cp "${files[@]}" "$dir/"
(cd "$dir" && sha256sum -- * >SHA256SUMS)
tar -C "$B/dist" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - "$name" | gzip -n9 >"$dir.tar.gz"
rm -r "$dir"
echo "$dir.tar.gz"
