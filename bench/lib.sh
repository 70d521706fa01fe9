# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts of this folder, which set $nojit and $DEVICE: what they say before they begin.
# shellcheck shell=bash disable=SC2154

give_help() { # ARGUMENT...: where one asks for it, the head of the script
    case " $* " in *" --help "* | *" -h "*) sed -n '3,/^set /s/^# \{0,1\}//p' "$0" && exit ;; esac
}
refuse() { # SENTENCE
    echo "$(basename "$0"): $1" >&2
    exit 2
}
needs_device() {
    local said
    said=$("$nojit" doctor --device "$DEVICE" 2>&1 >/dev/null) ||
        refuse "$(tail -n 1 <<<"$said" | grep . || echo "DEVICE=$DEVICE cannot be used; see $nojit doctor --device $DEVICE")"
}
