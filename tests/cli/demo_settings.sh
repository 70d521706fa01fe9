#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# demo_settings.sh: what the demo cannot use is refused, and the last demo stays.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
mkdir -p "$scratch/demo"
touch "$scratch/demo/kept"
ln -s "$(realpath "$BUILD/nojit")" "$scratch/nojit"
demo() { env BUILD="$scratch" DEVICE=cpu "$@" bash scripts/demo.sh; }
refuses "too little text" 1 'demo: too little text: [0-9]+ bytes' demo TEXT=LICENSE
refuses "no text" 2 'demo: TEXT=/none names no file' demo TEXT=/none
refuses "steps" 2 'demo: TEACHER_STEPS=1e3: give a number' demo TEACHER_STEPS=1e3
refuses "a seed" 2 'demo: SEED=-1: give a whole number' demo SEED=-1
refuses "a device" 2 'demo: DEVICE=gpu: give auto, cpu or cuda' demo DEVICE=gpu
if [ -e "$scratch/demo/kept" ] && [ ! -e "$scratch/demo.new" ]; then
    ok "the last demo stays"
else
    not_ok "the last demo stays" "$(ls "$scratch" "$scratch/demo")"
fi
finish
