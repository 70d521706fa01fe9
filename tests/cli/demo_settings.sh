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
refuses "make demo refuses a text that is too short" 1 'demo: too little text: [0-9]+ bytes' demo TEXT=LICENSE
refuses "make demo refuses a TEXT that names no file" 2 'demo: TEXT=/none names no file' demo TEXT=/none
refuses "make demo refuses TEACHER_STEPS that are no number" 2 'demo: TEACHER_STEPS=1e3: give a number' demo TEACHER_STEPS=1e3
refuses "make demo refuses a SEED below 0" 2 'demo: SEED=-1: give a whole number' demo SEED=-1
refuses "make demo refuses an unknown DEVICE" 2 'demo: DEVICE=gpu: give auto, cpu or cuda' demo DEVICE=gpu
if [ -e "$scratch/demo/kept" ] && [ ! -e "$scratch/demo.new" ]; then
    ok "a refused make demo leaves the last demo"
else
    not_ok "a refused make demo leaves the last demo" "$(ls "$scratch" "$scratch/demo")"
fi
finish
