#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# teacher_shard_types.sh: a teacher of which each rank keeps a slice of each layer, in each form that a teacher can have, on simulated GPUs: teacher_shard.sh.
set -eu
. tests/lib/lib.sh
. tests/lib/ranks.sh
. tests/lib/shards.sh
. tests/lib/plant_nan.sh
"$nojit" export --model "$d/deep" --type q8_0 --out "$d/deep.gguf" >/dev/null
parts "a sharded quantized teacher teaches as a whole one" 3 1 --device cuda --teacher "$d/deep.gguf" --steps 2
parts "a sharded expanded teacher teaches as a whole one" 3 1 --device cuda --teacher "$d/deep.gguf" --teacher-dtype bfloat16 --steps 2
parts "a sharded float32 teacher of adapters with recomputation teaches as a whole one" 2 1 --device cuda --teacher "$d/deep" --dtype float32 --recompute block --lora-r 4 --steps 2
parts "a sharded teacher teaches a student with a bfloat16 state as a whole one" 2 1 --device cuda --teacher "$d/deep" --optimizer-state bf16 --grad-accum 2 --steps 2
head -c 700 LICENSE >"$d/text.txt" # what FP8 costs is measured on all of it
NOJIT_SIM_DEVICE=h100,h100 parts "a sharded fp8 teacher teaches as a whole one" 2 1 --device cuda --teacher-dtype fp8 --steps 2

"$nojit" init --preset nojit-tiny --dtype float32 --seed 3 --num-layers 5 --out "$d/planted" >/dev/null
plant_nan "$d/planted" 7 model.layers.3.mlp.up_proj.weight
refuses "a sharded fp8 teacher with a layer that is not finite is refused" 1 'tensor model.layers.3.mlp.up_proj.weight holds NaN' \
    env NOJIT_SIM_DEVICE=h100,h100 "$nojit" distill "${few[@]}" --device cuda --teacher "$d/planted" --teacher-dtype fp8 --gpus 2 --teacher-shard --out "$d/z"
finish
