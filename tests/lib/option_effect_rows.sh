# SPDX-License-Identifier: Apache-2.0
#
# option_effect_rows.sh: the rows of option_effects.sh, in the order of `nojit distill --help`.
both="distill train"
for cmd in $both; do
    go --eval-data "$d/held.txt" || { echo "$cmd: $why" && exit 1; }
    mv "$d/run" "$d/$cmd"
    mv "$d/log" "$d/$cmd.log"
done

# ---- models and data
another_student() { go --student "$d/model2" --teacher_model "$d/model1" --eval-data "$d/held.txt" && starts_as "$d/model2"; }
starts_as() { near "$(first eval_ce_loss)" "$(eval_json --model "$1" | field ce_loss)"; }
effect distill student another_student
train_student() { go --student "$d/model2" --eval-data "$d/held.txt" && starts_as "$d/model2"; }
effect train student train_student
effect plan student compare 'a > 2 * b' "$(region student.weights --student "$d/larger" --teacher "$d/larger")" "$(region student.weights)"

# At temperature 1 the divergence of the model at the start is what `nojit eval` measures.
divergence() { # STUDENT TEACHER ARGUMENTS...: as of eval, with --beta 0
    eval_json --model "$1" --teacher "$2" | field kd_loss
}
other_teacher() {
    go --temperature 1 --teacher "$d/model1" --student "$d/model2" --eval-data "$d/held.txt" &&
        near "$(first eval_kd_loss)" "$(divergence "$d/model2" "$d/model1")"
}
effect distill teacher other_teacher
eval_teacher() {
    compare 'a ^ 2 < 1e-12 && b > 1e-4' "$(divergence "$d/model1" "$d/model1")" "$(divergence "$d/model1" "$d/model2")"
}
effect eval teacher eval_teacher
# The line that says how much there is to compute, before a cache is made.
count_of() { "$nojit" cache --teacher "$d/model1" --data "$d/text.txt" "${small[@]}" --dry-run "$@" 2>"$d/err" | grep ' to compute'; }
for option in teacher out store part eval-data batch-size shard-bytes dry-run; do effect cache $option elsewhere cached_teacher.sh; done
effect cache data differs "$(count_of)" "$(count_of --data "$d/held.txt")"
effect cache seq-len differs "$(count_of)" "$(count_of --seq-len 16)"
effect cache packing differs "$(count_of)" "$(count_of --packing none)"
effect plan teacher compare 'a > 2 * b && b > 0' "$(region teacher.weights --teacher "$d/larger")" "$(region teacher.weights)"
for option in acceptance prompts draft-tokens seed; do effect eval $option elsewhere cli_acceptance.sh; done
effect eval model differs "$(eval_json --model "$d/model1")" "$(eval_json --model "$d/model2")"
effect generate model differs "$(write_text)" "$(write_text --model "$d/model2")"
effect tokenize model elsewhere cli_tokenize.sh
effect merge model elsewhere lora_cli.sh
effect export model elsewhere export.sh

two_files() {
    local data=("$d/text.txt" "$d/held.txt")
    go && why="not 2902 tokens: $(cat "$d/log")" && grep -q '; 2902 tokens of text;' "$d/log" &&
        grep -q '; 2001 tokens of text;' "$d/$cmd.log"
}
effect "$both" data two_files
effect eval data is "$(eval_json | field tokens) $(eval_json --data "$d/text.txt" | field tokens)" "900 2900"
effect tokenize data elsewhere cli_tokenize.sh
for option in tasks task-log max-tokens; do effect eval $option elsewhere cli_tasks.sh; done
held_out() { near "$(first eval_ce_loss "$d/$cmd")" "$(eval_json | field ce_loss)"; }
effect "$both" eval-data held_out
trained_model() { go && eval_json --model "$d/run" | grep -q ce_loss && why="no receipt" && [ -s "$d/run/receipt.json" ]; }
effect "$both" out trained_model
effect tokenize out elsewhere cli_tokenize.sh
effect merge out elsewhere lora_cli.sh
effect export out elsewhere export.sh
effect "$both" export elsewhere export.sh
effect export type elsewhere export.sh
effect export tokenizer elsewhere export.sh
for option in out follow; do effect report $option elsewhere report_page.sh; done
new_model() { init && eval_json --model "$d/new" | grep -q ce_loss; }
effect init out new_model
self_distillation() {
    fails 2 'same weights' --teacher "$d/model1" && go --teacher "$d/model1" --allow-self-distillation &&
        compare 'a ^ 2 < 1e-12 && b == 1' "$(first kd_loss)" "$(first agreement)"
}
effect distill allow-self-distillation self_distillation
preset() { init --preset nojit-tiny-llama && is "$(field model_type <"$d/new/config.json")" '"llama"'; }
effect init preset preset
like() {
    rm -rf "$d/new" && "$nojit" init --like "$d/larger" --dtype float32 --out "$d/new" >/dev/null && why="another config.json" &&
        cmp "$d/new/config.json" "$d/larger/config.json"
}
effect init like like
for option in layers experts hidden-size intermediate-size num-layers heads kv-heads head-dim vocab-size tie-embeddings; do
    effect init $option elsewhere init_layers.sh
done
shards() {
    init --shard-bytes 200000 && why="$(ls -l "$d/new")" &&
        [ "$(ls "$d"/new/model-*.safetensors | wc -l)" -gt 1 ] && [ -f "$d/new/model.safetensors.index.json" ] &&
        is "$(eval_json --model "$d/new")" "$(init && eval_json --model "$d/new")"
}
effect init shard-bytes shards

# ---- objective
smaller_divergence() { go --temperature 4 && compare 'a < 0.5 * b' "$(first kd_loss)" "$(first kd_loss "$d/distill")"; }
effect distill temperature smaller_divergence
no_teacher() { go --kd-ratio 0 && is "$(weights_of "$d/run")" "$(weights_of "$d/train")"; }
effect distill kd-ratio no_teacher
effect distill beta trains_other --beta 1
distance() {
    fails 2 'beta 0.5 selects among the divergences of --objective kl' --objective tvd --beta 0.5 && trains_other --objective tvd
}
effect distill objective distance

balanced() {
    "$nojit" init --preset nojit-tiny-qwen3-moe --dtype float32 --out "$d/moe$cmd" >/dev/null && go --student "$d/moe$cmd" &&
        why="balance without a coefficient" && ! grep -q balance_loss "$d/run/metrics.jsonl" && local loss && loss=$(first loss) &&
        go --student "$d/moe$cmd" --router-aux-loss-coef 0.5 && near "$(first loss)" "$(awk -v a="$loss" -v b="$(first balance_loss)" 'BEGIN { print a + b / 2 }' OFMT=%.9g)"
}
effect "$both" router-aux-loss-coef balanced
balanced_plan() {
    "$nojit" init --preset nojit-tiny-qwen3-moe --out "$d/moe" >/dev/null &&
        compare 'a > b' "$(region activations --student "$d/moe" --router-aux-loss-coef 1)" "$(region activations --student "$d/moe")"
}
effect plan router-aux-loss-coef balanced_plan

# ---- on-policy distillation
for option in prompts on-policy max-new reuse group rollout-temperature rollout-top-p horizon teacher-prompt writer kv-dtype rollout-batch; do
    effect distill $option elsewhere on_policy.sh
done
for option in prompts on-policy max-new teacher-prompt writer kv-dtype rollout-batch; do
    effect plan $option elsewhere on_policy.sh
done
for setting in group=3 rollout-temperature=0 rollout-top-p=0.5 reuse=2 horizon=3; do
    effect plan "${setting%=*}" no_memory "${setting#*=}" --on-policy 1 --max-new 8
done

# ---- length
rows() { is "$(column loss | wc -l)" "$1"; }
steps() { go --steps 3 && rows 3; }
effect "$both" steps steps
epochs() { go --steps 0 --epochs 0.5 && rows 16; } # 2000 / 32 is 62 windows, two a step
effect "$both" epochs epochs
tokens_of() { # TOKENS ARGUMENTS...
    local want=$1
    shift
    go "$@" && is "$(first tokens)" "$want"
}
effect "$both" batch-size tokens_of 160 --batch-size 5
too_large() { fails 3 'this run needs .* are available' --memory-budget 0.001; }
effect "$both" memory-budget too_large
effect "$both" memory-budget go --memory-budget 0.1
effect plan memory-budget is "$(plan_json --memory-budget 2 | field budget_bytes)" 2147483648
effect plan data-tokens elsewhere plan_gpu.sh
effect plan gpu elsewhere plan_gpu.sh
effect models json elsewhere models.sh
effect "$both" seq-len tokens_of 48 --seq-len 24
accumulate() {
    go --batch-size 4 && local loss && loss=$(column loss) && tokens_of 128 --grad-accum 2 &&
        near "$(column loss | tail -n 1)" "$(tail -n 1 <<<"$loss")"
}
effect "$both" grad-accum accumulate
# A batch of 65,535 is 2 million rows: not in 2 GB of addresses.
large_batch() {
    local status=0
    near "$(eval_json --batch-size 5 | field ce_loss)" "$(eval_json | field ce_loss)" || return 1
    (ulimit -v 2000000 && eval_json --batch-size 65535 >/dev/null) || status=$?
    is "$status" 3
}
effect eval batch-size large_batch
effect eval seq-len differs "$(eval_json)" "$(eval_json --seq-len 16)"
effect plan batch-size compare 'a > 1.5 * b' "$(region activations --batch-size 4)" "$(region activations)"
effect plan seq-len compare 'a > 1.5 * b' "$(region activations --seq-len 64)" "$(region activations)"
effect plan grad-accum compare 'a == 3 * b' "$(region host.batches --grad-accum 3)" "$(region host.batches)"

# ---- optimizer
effect "$both" lr trains_other --lr 3e-2
schedules() { for s in linear constant wsd; do other_rates --lr-schedule $s || return 1; done; }
effect "$both" lr-schedule schedules
effect "$both" warmup-steps other_rates --warmup-steps 3
effect "$both" warmup-ratio other_rates --warmup-ratio 0.5
effect "$both" min-lr-ratio other_rates --min-lr-ratio 0.6
for setting in weight-decay=2 beta1=0.5 beta2=0.7 eps=1e-3 max-grad-norm=0.125; do
    effect "$both" "${setting%=*}" trains_other "--${setting%=*}" "${setting#*=}"
done
rounded() {
    local f32
    go --save-every 4 && f32=$(stat -c %s "$d/run/checkpoint-4/state.bin") && go --save-every 4 --optimizer-state bf16 &&
        compare 'a < b' "$(stat -c %s "$d/run/checkpoint-4/state.bin")" "$f32"
}
effect "$both" optimizer-state rounded
effect plan optimizer-state compare 'a > 0.49 * b && a < 0.51 * b' "$(region student.moment2 --optimizer-state bf16)" "$(region student.moment2)"
for setting in temperature=3 kd-ratio=0.2 objective=tvd beta=1 steps=9 epochs=3 lr=1 lr-schedule=wsd warmup-steps=3 warmup-ratio=0.2 \
    min-lr-ratio=1 weight-decay=1 beta1=0 beta2=0 eps=1 max-grad-norm=0 seed=7 reduce-dtype=bf16; do
    effect plan "${setting%=*}" no_memory "${setting#*=}"
done

# ---- adapters
rank() {
    local four
    go --lora-r 4 && four=$(field trained_parameters <"$d/run/receipt.json") && go --lora-r 8 &&
        is "$(field trained_parameters <"$d/run/receipt.json")" $((2 * four))
}
effect "$both" lora-r rank
alpha() { # the adapters' second matrices are zero, so at first only their gradient is scaled
    local norm
    go --lora-r 4 --lora-alpha 32 && norm=$(first grad_norm) && go --lora-r 4 --lora-alpha 128 &&
        near "$(first grad_norm)" "$(awk "BEGIN { print 4 * $norm }")"
}
effect "$both" lora-alpha alpha
dropout() {
    local loss norm
    go --lora-r 4 && loss=$(first loss) norm=$(first grad_norm) && go --lora-r 4 --lora-dropout 0.5 &&
        is "$(first loss)" "$loss" && differs "$(first grad_norm)" "$norm"
}
effect "$both" lora-dropout dropout
targets() {
    go --lora-r 4 --lora-target-modules q_proj up_proj &&
        is "$(grep -aoE '[a-z]+_proj\.lora_A' "$d/run/adapter_model.safetensors" | sort -u | tr '\n' ' ')" "q_proj.lora_A up_proj.lora_A "
}
effect "$both" lora-target-modules targets
effect "$both merge eval generate" adapter elsewhere lora_cli.sh
effect export adapter elsewhere export.sh
effect "$both" merge elsewhere lora_cli.sh
effect plan lora-r elsewhere lora_cli.sh
effect plan lora-alpha is "$(plan_json --lora-r 4 --lora-alpha 1)" "$(plan_json --lora-r 4)"
effect plan lora-dropout compare 'a > b' "$(region activations --lora-r 4 --lora-dropout 0.5)" "$(region activations --lora-r 4)"
effect plan lora-target-modules compare 'a < b' "$(plan_json --lora-r 4 --lora-target-modules q_proj | field total_bytes)" \
    "$(plan_json --lora-r 4 | field total_bytes)"

# ---- run
device() {
    why="$(head -n 3 "$d/$cmd.log")" && grep -q '^device .* (cpu), float32' "$d/$cmd.log" || return 1
    if [ "${DEVICE:-}" = cuda ]; then
        go --device cuda && grep -q '^device .* (cuda)' "$d/log"
    else
        fails 1 driver --device cuda
    fi
}
effect "$both" device device
no_gpu() { [ "${DEVICE:-}" = cuda ] || { ! "$@" --device cuda >/dev/null && why="$(cat "$d/err")" && grep -q driver "$d/err"; }; }
effect eval device no_gpu eval_json
effect cache device no_gpu count_of
effect generate device no_gpu write_text
effect plan device differs "$(plan_json)" "$(plan_json --device cuda)"
effect doctor device elsewhere device_misfit.sh
effect "$both" gpus elsewhere gpus.sh
effect "$both" virtual-ranks elsewhere gpus.sh
effect "$both" every-rank-reads elsewhere rank_files.sh
effect plan gpus compare 'a > b' "$(region student.gradients.received --gpus 2)" 0
effect plan virtual-ranks compare 'a > b' "$(region student.gradients.sum --virtual-ranks 2)" 0
effect "$both" dtype fails 2 'CPU runs float32 only' --dtype bfloat16
float32_only() { ! "$@" --dtype float16 >/dev/null && why="$(cat "$d/err")" && grep -q 'CPU runs float32 only' "$d/err"; }
effect eval dtype float32_only eval_json
effect cache dtype float32_only count_of
effect "distill eval plan" teacher-dtype elsewhere teacher_dtype.sh
effect "$both plan" student-dtype elsewhere student_dtype.sh
effect "$both" reduce-dtype elsewhere gpus.sh
effect distill teacher-shard elsewhere teacher_shard.sh
effect plan teacher-shard compare 'a < b' "$(region teacher.weights --gpus 2 --teacher-shard)" "$(region teacher.weights --gpus 2)"
effect doctor gpus elsewhere gpus.sh
effect generate dtype float32_only write_text
effect plan dtype compare 'a > 1.8 * b' "$(region activations)" "$(region activations --dtype bfloat16)"
stored() {
    init --dtype float32 && local size && size=$(stat -c %s "$d/new/model.safetensors") && init --dtype float16 &&
        compare 'a > 1.9 * b' "$size" "$(stat -c %s "$d/new/model.safetensors")" && grep -aq '"F16"' "$d/new/model.safetensors"
}
effect init dtype stored
order() {
    go --seed 1 && is "$(column loss)" "$(column loss "$d/$cmd")" && go --seed 5 && differs "$(column loss)" "$(column loss "$d/$cmd")"
}
effect "$both" seed order
drawn() {
    init && local one && one=$(weights_of "$d/new") && init --seed 1 && is "$(weights_of "$d/new")" "$one" && init --seed 2 &&
        differs "$(weights_of "$d/new")" "$one"
}
effect init seed drawn
same_training() { is "$(column loss)" "$(column loss "$d/$cmd")" && is "$(weights_of "$d/run")" "$(weights_of "$d/$cmd")"; }
measured() {
    go --eval-data "$d/held.txt" --eval-every 3 && is "$(grep eval_loss "$d/run/metrics.jsonl" | field step | tr '\n' ' ')" "0 3 4 " &&
        is "$(grep eval_loss "$d/$cmd/metrics.jsonl" | field step | tr '\n' ' ')" "0 4 " && same_training
}
effect "$both" eval-every measured
effect "$both" early-stop-patience elsewhere best_model.sh
effect "$both" keep-best elsewhere best_model.sh
effect "$both" first-step-timeout elsewhere device_broken.sh
effect "$both" resume elsewhere nothing_lost.sh
lines() { is "$(grep -c '^step ' "$d/$cmd.log")" 4 && go --log-every 3 && is "$(grep -oE '^step [0-9]+' "$d/log" | tr '\n' ' ')" "step 3 step 4 "; }
effect "$both" log-every lines
checkpoints() { # NAMES ARGUMENTS...
    local want=$1
    shift
    go "$@" && is "$(cd "$d/run" && echo checkpoint-*)" "$want"
}
effect "$both" save-every checkpoints "checkpoint-2 checkpoint-4" --save-every 2
effect "$both" keep checkpoints "checkpoint-4" --save-every 1 --keep 1
chunks() { # where micro-batches are added up: otherwise the student's logits lie in gradients
    go --grad-accum 2 && rm -rf "$d/usual" && cp -r "$d/run" "$d/usual" && go --grad-accum 2 --head-chunk 16 &&
        compare 'a < b' "$(first memory_bytes)" "$(first memory_bytes "$d/usual")" &&
        near "$(column loss | tail -n 1)" "$(column loss "$d/usual" | tail -n 1)"
}
effect "$both" head-chunk chunks
effect plan head-chunk compare 'a == b / 4' "$(region head.logits --grad-accum 2 --head-chunk 16)" "$(region head.logits --grad-accum 2)"
recomputed() { go --recompute block && compare 'a < b' "$(first memory_bytes)" "$(first memory_bytes "$d/$cmd")"; }
effect "$both" recompute recomputed
effect plan recompute compare 'a < b' "$(region activations --recompute block)" "$(region activations --recompute mlp)"
event_files() {
    why="no event file" && ! compgen -G "$d/$cmd/runs/*" && go --report-to tensorboard --eval-data "$d/held.txt" && same_training &&
        is "$(grep -aohE '(train|eval)/(loss|perplexity)' "$d/run/runs/"*tfevents* | sort -u | tr '\n' ' ')" "eval/loss eval/perplexity train/loss "
}
effect "$both" report-to event_files
copied() { rm -f "$d/lines" && go --log "$d/lines" && why="--log differs from the terminal" && cmp "$d/lines" "$d/log"; }
effect "$both" log copied
configured() {
    echo 'save-every: 2' >"$d/run.yaml" && checkpoints "checkpoint-2 checkpoint-4" --config "$d/run.yaml"
}
effect "$both" config configured
setting() { # LINE COMMAND... , whose --config of that line does what the option does
    echo "$1" >"$d/run.yaml"
    local name=${1%%:*} value=${1#*: }
    shift
    is "$("$@" --config "$d/run.yaml")" "$("$@" "--$name" "$value")" && differs "$("$@" --config "$d/run.yaml")" "$("$@")"
}
effect eval config setting "teacher: $d/model2" eval_json
effect cache config setting "packing: none" count_of
effect plan config setting "grad-accum: 4" plan_json
effect generate config setting "seed: 3" write_text
init_text() { init "$@" && weights_of "$d/new"; }
effect init config setting "seed: 3" init_text
echoed() { go --json && why="not the rows of metrics.jsonl: $(head -c 200 "$d/log")" && cmp "$d/log" "$d/run/metrics.jsonl"; }
effect "$both" json echoed
plain_eval() { "$nojit" eval --model "$d/model1" --data "$d/held.txt" "${small[@]}"; }
eval_text() { compare '(a - b) ^ 2 < 1e-11' "$(plain_eval | sed -nE 's/^ce_loss +([0-9.]+) nats/\1/p')" "$(eval_json | field ce_loss)"; }
effect eval json eval_text
plan_sum() { is "$(plan_json | grep -oE '"[a-z]+\.?[a-z0-9_]*": [0-9]+' | awk '/budget|batch_size/ { next } /_bytes/ { all += $2; next } { sum += $2 } END { print sum - all }')" 0; }
effect plan json plan_sum
for option in self-test report; do effect doctor $option elsewhere device_self_test.sh; done
effect doctor json is "$("$nojit" doctor --device cpu --json | grep -cE '^\{"version": .*"backend": "cpu".*"fits": true\}$')" 1
effect version json is "$("$nojit" version --json | grep -cE '^\{"version": .*"keys": [0-9]+,.*\}$')" 1
effect version verbose is "$("$nojit" version --verbose | grep -cE '^library   lib[a-z0-9-]+ [0-9.]+, [A-Z]')" "$("$nojit" version --verbose --json | sed -n 's/^{"version": .*"libraries": \(.*\)}$/\1/p' | grep -oE '"lib[a-z0-9-]+": "[0-9.]+"' | wc -l)"
dry() { go --dry-run && why="$(ls "$d")" && [ ! -e "$d/run" ] && grep -q '^device total ' "$d/log" && ! grep -q '^step ' "$d/log"; }
effect "$both" dry-run dry
effect "$both cache eval generate doctor" verbose elsewhere gpu.sh

effect "$both" data-weights elsewhere cli_data.sh
effect "$both" packing elsewhere cli_data.sh
effect "$both cache eval tokenize generate" template-date elsewhere template_date.sh
for cmd in $both cache eval generate tokenize plan; do effect $cmd tokenizer elsewhere tokenizer_bytes.sh; done
for option in overlong fields train-on-prompts skip-unusable split; do effect "$both cache" $option elsewhere cli_rows.sh; done
for option in fields split train-on-prompts skip-unusable show seq-len packing overlong; do effect tokenize $option elsewhere cli_rows.sh; done
for option in fields split train-on-prompts skip-unusable; do effect eval $option elsewhere cli_rows.sh; done
effect "$both" sample-prompt elsewhere cli_samples.sh
effect "$both" sample-tokens elsewhere cli_samples.sh
effect "$both" sample-temperature elsewhere cli_samples.sh
sample_of() { go --sample-prompt a --sample-tokens 12 "$@" && text=$(grep -oE '"text": .*' "$d/run/samples.jsonl"); }
top_sample() { local text top && sample_of --sample-temperature 0 && top=$text && sample_of --sample-min-p 1 && is "$text" "$top" && sample_of && differs "$text" "$top"; }
effect "$both" sample-min-p top_sample
effect "$both cache eval generate" gemm-table elsewhere gpu.sh

# ---- text
effect generate prompt is "$(write_text --prompt 'Some words' | head -c 10)" "Some words"
room() {
    is "$(write_text --seq-len 40)" "$(write_text)" && ! write_text --seq-len 20 && why="$(cat "$d/err")" &&
        grep -q 'make 21 tokens, more than --seq-len 20' "$d/err"
}
effect generate seq-len room
effect generate max-tokens is "$(write_text --temperature 0 --max-tokens 5 | wc -c) $(write_text --temperature 0 --max-tokens 9 | wc -c)" "7 11"
for option in prompts skip-unusable num-return-sequences chat batch-size ignore-eos seed temperature min-p top-k top-p stop repetition-penalty fields; do
    effect generate $option elsewhere generate_prompts.sh
done
effect generate system elsewhere chat_loop.sh
effect generate kv-dtype elsewhere on_policy.sh # what it does to the plan
