#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# setup_asks.sh: where packages are missing, root installs them; another user is told the command, unless he asked for it (`make setup`)
# or nobody can be asked (CI). With id, sudo, apt-get and cc of its own: nothing is installed.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
unset CI SETUP CC
CUDA_HOME=$(sed -n 's/^CUDA_DIR := //p' "$BUILD/setup.mk")
export CUDA_HOME
mkdir "$scratch/bin"
own() { # NAME SCRIPT
    printf '#!/bin/sh\n%s\n' "$2" >"$scratch/bin/$1"
    chmod +x "$scratch/bin/$1"
}
own id 'echo "$USER_ID"'
own cc 'exit 1'
own sudo 'echo "sudo $*" >>"$LOG"'
own apt-get 'echo "apt-get $*" >>"$LOG"'
setup() { # USER_ID SETTING...
    : >"$scratch/log"
    env PATH="$scratch/bin:$PATH" LOG="$scratch/log" USER_ID="$1" "${@:2}" scripts/setup.sh "$scratch/b"
}
called() { # NAME REGEX
    if grep -qE "$2" "$scratch/log"; then ok "$1"; else not_ok "$1" "$(cat "$scratch/log")"; fi
}
refuses "set-up tells a user the command" 1 "^setup: packages are missing; run 'make setup', .*'sudo apt-get update && sudo apt-get install " setup 1000
if [ -s "$scratch/log" ]; then not_ok "set-up for a user installs nothing" "$(cat "$scratch/log")"; else ok "set-up for a user installs nothing"; fi
refuses "set-up installs for a user who asked" 1 'packages were installed, yet' setup 1000 SETUP=setup
called "set-up of a user installs by sudo" '^sudo env .* apt-get install -y .*libyaml-dev'
refuses "set-up installs for a user in CI" 1 'packages were installed, yet' setup 1000 CI=true
called "set-up in CI installs by a sudo that does not ask" '^sudo -n env .* apt-get install -y .*libyaml-dev'
refuses "set-up installs for root" 1 'packages were installed, yet' setup 0
called "set-up of root installs without sudo" '^apt-get install -y .*libyaml-dev'
called "set-up of root installs the compiler of shaders" '^apt-get install -y .*libvulkan-dev glslc'
finish
