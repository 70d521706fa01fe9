#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# setup_host.sh HOST BUILD: what it takes to build for a machine of another type: Debian's cross compiler and qemu-user, which
# runs what was built, are installed; static libraries and headers for HOST are unpacked under BUILD/host, from Debian's
# packages, whose signatures apt checks with lists of its own under BUILD/apt: this machine stays of one type.
# Writes BUILD/setup.mk. Standard output is for make, as that of setup.sh.
set -eu
export LC_ALL=C
host=${1:?usage: setup_host.sh HOST BUILD}
build=${2:?usage: setup_host.sh HOST BUILD}
. "$(dirname "$0")/apt.sh"

[ "$host" = aarch64-linux-gnu ] || die "HOST=$host is unknown; use HOST=aarch64-linux-gnu, or leave HOST out to build for this machine"
arch=arm64
emulator=qemu-aarch64
compiler_packages="gcc-$host libc6-dev-$arch-cross qemu-user"
packages="libxxhash-dev libyaml-dev libopenblas-openmp-dev libjansson-dev libzstd-dev libutf8proc-dev libpcre2-dev"

fetch_packages() {
    local p apt
    mkdir -p "$build/apt"
    apt=$(cd "$build/apt" && pwd) # options of apt name whole paths
    local options=(-qq -o APT::Architecture=$arch -o APT::Architectures=$arch -o Dir::State="$apt/state"
        -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root)
    command -v apt-get >/dev/null 2>&1 || die "packages of $arch (Debian's names) are needed and there is no apt-get: $packages"
    say "fetching libraries of $arch into $build/host: $packages"
    rm -rf "$build/host" "$build/host.part" "${apt:?}"/*
    mkdir -p "$build/host.part" "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/debs"
    : >"$apt/status"
    # Sources that fail may be others than those of these packages.
    { apt-get "${options[@]}" update; (cd "$apt/debs" && apt-get "${options[@]}" download $packages); } >"$build/apt.log" 2>&1 ||
        die "packages of $arch could not be fetched (see $build/apt.log); the sources of apt must have $arch, as Debian's do"
    for p in "$apt"/debs/*.deb; do dpkg-deb -x "$p" "$build/host.part"; done
    find "$build/host.part" -name '*.so' -delete # of shared libraries that are not there
    echo "$packages" >"$build/host.part/packages"
    mv "$build/host.part" "$build/host"
    rm -rf "$apt"
}

mkdir -p "$build"
{ command -v "$host-gcc" && command -v $emulator; } >/dev/null 2>&1 || apt_install $compiler_packages
[ "$(cat "$build/host/packages" 2>/dev/null)" = "$packages" ] || fetch_packages
cat >"$build/setup.mk.part" <<MK
OPENBLAS_DIR := $build/host/usr/lib/$host/openblas-openmp
EMULATOR := $emulator -L /usr/$host
MK
cmp -s "$build/setup.mk.part" "$build/setup.mk" && rm "$build/setup.mk.part" || mv "$build/setup.mk.part" "$build/setup.mk"
echo ready
