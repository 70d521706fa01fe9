#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rooms.sh: prints the rooms of trainer/ in their order, from the table of docs/architecture.md.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
rooms=$(sed -nE '/^\| room /,/^$/s/^\| `([a-z]+)\/` .*/\1/p' docs/architecture.md | paste -sd' ')
[ -n "$rooms" ] || { echo "rooms: docs/architecture.md has no table of rooms" >&2 && exit 1; }
echo "$rooms"
