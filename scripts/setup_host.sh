#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# setup_host.sh HOST BUILD: what it takes to build for a machine of another type: Debian's cross compiler and qemu-user, which
# runs what was built, are installed; static libraries and headers for HOST are unpacked under BUILD/host, from Debian's packages.
# Writes BUILD/setup.mk.
set -eu
export LC_ALL=C
host=${1:?usage: setup_host.sh HOST BUILD}
build=${2:?usage: setup_host.sh HOST BUILD}
. "$(dirname "$0")/apt.sh"

[ "$host" = aarch64-linux-gnu ] || die "HOST=$host is unknown; use HOST=aarch64-linux-gnu, or leave HOST out to build for this machine"
arch=arm64
emulator=qemu-aarch64
compiler_packages="gcc-$host libc6-dev-$arch-cross qemu-user"

mkdir -p "$build"
{ command -v "$host-gcc" && command -v $emulator; } >/dev/null 2>&1 || apt_install $compiler_packages
if [ "$(cat "$build/host/packages" 2>/dev/null)" != "$libraries $headers_only" ]; then
    apt_unpack $arch "$build/host" $libraries $headers_only
    find "$build/host" -name '*.so' -delete # of shared libraries that are not there
fi
cat >"$build/setup.mk.part" <<MK
OPENBLAS_DIR := $build/host/usr/lib/$host/openblas-openmp
EMULATOR := $emulator -L /usr/$host
MK
mv "$build/setup.mk.part" "$build/setup.mk"
