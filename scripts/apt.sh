# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the set-up scripts. $build is the folder for logs.

# Debian's packages with the libraries that nojit is linked with, but for Oniguruma, and with headers of those that it opens.
# shellcheck disable=SC2034 # for those who source this
headers_only="libvulkan-dev"
# shellcheck disable=SC2034
libraries="libxxhash-dev libyaml-dev libopenblas-openmp-dev libjansson-dev libzstd-dev zlib1g-dev libutf8proc-dev"

say() { echo "setup: $*" >&2; }
die() {
    say "$*"
    exit 1
}

# apt_unpack ARCH FOLDER PACKAGE...: contents of Debian's packages, without those they depend on, in FOLDER. apt checks their
# signatures with lists of its own under $build/apt: nothing is installed, and this machine stays of one type.
apt_unpack() {
    local arch=$1 folder=$2 apt p
    shift 2
    command -v apt-get >/dev/null 2>&1 || die "packages of $arch (Debian's names) are needed and there is no apt-get: $*"
    mkdir -p "$build/apt"
    apt=$(cd "$build/apt" && pwd) # options of apt name whole paths
    local options=(-qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o Dir::State="$apt/state"
        -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root)
    say "fetching packages of $arch into $folder: $*"
    rm -rf "$folder" "$folder.part" "${apt:?}"/*
    mkdir -p "$folder.part" "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/debs"
    : >"$apt/status"
    # Sources that fail may be others than those of these packages.
    { apt-get "${options[@]}" update; (cd "$apt/debs" && apt-get "${options[@]}" download "$@"); } >"$build/apt.log" 2>&1 ||
        die "packages of $arch could not be fetched (see $build/apt.log); the sources of apt must have $arch, as Debian's do"
    for p in "$apt"/debs/*.deb; do dpkg-deb -x "$p" "$folder.part"; done
    echo "$*" >"$folder.part/packages"
    mv "$folder.part" "$folder"
    rm -rf "$apt"
}

# Root installs; others where they asked for it (`make setup` sets SETUP) or where nobody can be asked (CI).
apt_install() {
    local sudo="" install="apt-get install -y --no-install-recommends $*"
    command -v apt-get >/dev/null 2>&1 || die "packages (Debian's names) are needed and there is no apt-get: $*"
    if [ "$(id -u)" != 0 ]; then
        [ -n "${SETUP:-}${CI:-}" ] ||
            die "packages are missing; run 'make setup', which installs them by sudo, or 'sudo apt-get update && sudo $install', then make again"
        sudo="sudo${CI:+ -n}"
        $sudo true 2>/dev/null ||
            die "packages are missing and this user may not install them; run 'sudo apt-get update && sudo $install', then make again"
    fi
    say "installing packages: $*"
    { $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive $install -qq; } >"$build/apt.log" 2>&1 ||
        die "apt-get failed (see $build/apt.log); run '${sudo:+sudo }apt-get update && ${sudo:+sudo }$install', then make again"
}
