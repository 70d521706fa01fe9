# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the set-up scripts, whose standard output is for make: one word or the one sentence that says why not. $build is
# the folder for logs.

say() { echo "setup: $*" >&2; }
die() {
    echo "$*"
    exit 1
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
