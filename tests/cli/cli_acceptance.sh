#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_acceptance.sh: `nojit eval --acceptance` gives the rate at which drafts of a model are accepted by its teacher, by the formula and,
# with --prompts, counted; of two models whose rate is known both are that rate. What it cannot count it refuses.
set -eu
. tests/lib/lib.sh
. tests/lib/eval_text.sh
nojit=$BUILD/nojit
d=$scratch/work
mkdir "$d"
"$nojit" init --preset nojit-tiny --out "$d/student" >/dev/null
"$nojit" init --preset nojit-tiny --seed 2 --out "$d/teacher" >/dev/null
head -c 3000 LICENSE >"$d/text.txt"
eval_of() { "$nojit" eval --model "$d/student" --data "$d/text.txt" --seq-len 64 --device cpu "$@" 2>/dev/null; }

# ---- acceptance: (1 - a^(k+1)) / (1 - a) tokens for drafts of k
eval_of --json --teacher "$d/teacher" --acceptance >"$scratch/json"
eval_of --teacher "$d/teacher" --acceptance >"$scratch/text"
line "line about acceptance" '^acceptance' acceptance
if diff <(sed 's/, "acceptance".*/}/' "$scratch/json") <(eval_of --json --teacher "$d/teacher") >"$scratch/differ"; then
    ok "--acceptance leaves the other figures as they are"
else
    not_ok "--acceptance leaves the other figures as they are" "$(cat "$scratch/differ")"
fi
yields=$(sed -nE 's/.*"tokens_per_verification": \[([^]]*)\].*/\1/p' "$scratch/json" | tr -d ,)
if awk -v a="$(value acceptance)" -v said="$yields" -v printed="$(sed -n 's/^  tokens.verify//p' "$scratch/text")" 'BEGIN {
        n = split(said, t, " "); m = split(printed, p, " ")
        for (k = 1; k <= n; k++) {
            want = (1 - a ^ (k + 1)) / (1 - a)
            bad += (t[k] - want) ^ 2 > 1e-12 || (p[k] - want) ^ 2 > 1e-8
        }
        exit !(n == 8 && m == 8 && !bad)
    }'; then
    ok "tokens per verification follow from the acceptance rate"
else
    not_ok "tokens per verification follow from the acceptance rate" "$yields: $(cat "$scratch/text")"
fi
if eval_of --json --teacher "$d/student" --acceptance | grep -q '"acceptance": 1, "tokens_per_verification": \[2, 3, 4, 5, 6, 7, 8, 9\]}$'; then
    ok "acceptance of the teacher itself is 1"
else
    not_ok "acceptance of the teacher itself is 1" "$(eval_of --json --teacher "$d/student" --acceptance)"
fi
# One model with all weights 0 is uniform over V tokens. Another has embeddings and last norm of 1 and in its LM head one
# weight of 4: its logits are 4 and 0, its probabilities e^4 / (e^4 + V - 1) and 1 / (e^4 + V - 1), the last less than 1 / V.
"$nojit" init --preset nojit-tiny --tie-embeddings false --dtype float32 --out "$d/uniform" >/dev/null
file=$d/uniform/model.safetensors
bytes=$(od -An -tu8 -N8 "$file" | tr -d ' ')
size=$(stat -c %s "$file")
header=$(head -c $((8 + bytes)) "$file" | tail -c +9)
truncate -s $((8 + bytes)) "$file"
truncate -s "$size" "$file"
cp -r "$d/uniform" "$d/peaked"
put() { # TENSOR COUNT BYTES: its first elements
    local at
    at=$(sed -E "s/.*\"$1\":[^[]*\[[0-9,]*\],\"data_offsets\":\[([0-9]+),.*/\1/" <<<"$header")
    for ((i = 0; i < $2; i++)); do printf '%b' "$3"; done |
        dd of="$d/peaked/model.safetensors" bs=4096 oflag=seek_bytes seek=$((8 + bytes + at)) conv=notrunc status=none
}
V=$(sed -nE 's/.*"vocab_size": ([0-9]+).*/\1/p' "$d/uniform/config.json")
put model.embed_tokens.weight $((V * 64)) '\0\0\0200\077'
put model.norm.weight 64 '\0\0\0200\077'
put lm_head.weight 1 '\0\0\0200\0100'
acceptance_of() { "$nojit" eval --json --model "$d/$1" --teacher "$d/$2" --data "$d/text.txt" --seq-len 64 --device cpu --acceptance 2>/dev/null; }
by_hand() { # NAME MODEL TEACHER
    acceptance_of "$2" "$3" >"$scratch/json"
    if awk -v v="$V" -v a="$(value acceptance)" 'BEGIN { exit !((a - 1 / v - (v - 1) / (exp(4) + v - 1)) ^ 2 < 1e-12) }'; then
        ok "$1"
    else
        not_ok "$1" "$(cat "$scratch/json")"
    fi
}
by_hand "the acceptance of two known models is that of the formula" uniform peaked
by_hand "the acceptance of the same models is that of the formula with their parts exchanged" peaked uniform

# ---- the same counted: of these two models every position has that rate, whatever stands before it
for prompt in a bcd 'efg hij'; do printf '{"prompt": "%s"}\n' "$prompt"; done >"$d/prompts.jsonl"
counts() { # MODEL TEACHER ARGUMENTS...
    "$nojit" eval --model "$d/$1" --teacher "$d/$2" --acceptance --prompts "$d/prompts.jsonl" --device cpu --max-tokens 40 "${@:3}"
}
spec() { counts "$@" 2>"$scratch/said"; }
of_json() { spec "$@" --json >"$scratch/json"; }
holds() { # NAME CONDITION: of t(okens), turns, d(rafted), n (tested), y (accepted), s(hare), e(rror), a(cceptance), m (tokens per turn), p(redicted), v(ocabulary)
    if awk -v v="$V" -v t="$(value tokens)" -v turns="$(value turns)" -v d="$(value drafted)" -v n="$(value tested)" -v y="$(value accepted)" \
        -v s="$(value accepted_share)" -v e="$(value accepted_share_stderr)" -v a="$(value acceptance)" -v m="$(value tokens_per_turn)" \
        -v p="$(value tokens_per_turn_predicted)" "function is(x, y) { return (x - y) ^ 2 < 1e-12 } BEGIN { exit !($2) }"; then
        ok "$1"
    else
        not_ok "$1" "$(cat "$scratch/json" "$scratch/said")"
    fi
}
of_json uniform peaked
holds "--acceptance --prompts counts at the rate of every position" 'is(a, 1 / v + (v - 1) / (exp(4) + v - 1))'
holds "drafts are accepted about as often as the rate says" 's < 1 && is(s, y / n) && is(e, sqrt(a * (1 - a) / n)) && (s - a) ^ 2 < (3 * e) ^ 2 && n > 50'
holds "counted tokens per turn are tokens by turns" 't == 120 && is(m, t / turns) && y == t - turns && n <= d'
counted=$(cat "$scratch/json")
spec uniform peaked >"$scratch/text"
line "line about counted acceptance" '^texts' texts tokens
line "line about counted acceptance" '^turns' turns
line "line about counted acceptance" '^draft tokens' drafted tested accepted
line "line about counted acceptance" '^accepted share' accepted_share accepted_share_stderr
line "line about counted acceptance" '^acceptance' acceptance
sed -nE 's/^tokens.verify//p' "$scratch/text" >"$scratch/pair"
if read -r said _ predicted _ <"$scratch/pair" && awk -v m="$(value tokens_per_turn)" -v p="$(value tokens_per_turn_predicted)" -v said="$said" \
    -v predicted="$predicted" 'BEGIN { exit !((m - said) ^ 2 < 1e-8 && (p - predicted) ^ 2 < 1e-8) }'; then
    ok "counted and predicted tokens per verification are those of the JSON"
else
    not_ok "counted and predicted tokens per verification are those of the JSON" "$(cat "$scratch/text")"
fi
of_json uniform peaked --draft-tokens 1 --max-tokens 2
holds "one token is drafted with --draft-tokens 1" 'd == 3 && n == 3 && is(p, (3 * (1 + a) + turns - 3) / turns) && t == 6'
of_json uniform peaked --draft-tokens 3 --max-tokens 4
holds "tokens per turn are predicted from the drafts of each turn" 'p > 1 && p <= (1 - a ^ 4) / (1 - a) && t == 12'
of_json peaked peaked --draft-tokens 3 --max-tokens 8
holds "a teacher accepts all of its own drafts" 'turns == 6 && d == 18 && n == 18 && y == 18 && is(s, 1) && e == 0 && is(a, 1) && is(m, 4) && is(p, 4)'
same() { # NAME GOT WANTED
    if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi
}
same "--batch-size changes nothing in counted acceptance" "$(spec uniform peaked --json --batch-size 2 | cut -d, -f1-7)" "$(cut -d, -f1-7 <<<"$counted")"
same "--seed 1 is the default of counted acceptance" "$(spec uniform peaked --json --seed 1)" "$counted"
if [ "$(spec uniform peaked --json --seed 2)" != "$counted" ]; then ok "another seed counts other acceptance"; else not_ok "another seed counts other acceptance" "$counted"; fi
same "the number of counted texts is said" "$(sed -E 's/[0-9.]+ s$/T s/' "$scratch/said")" "3 texts in T s"
if command -v script >/dev/null; then
    TERM=xterm script -qec "stty cols 60; $nojit eval --model $d/uniform --teacher $d/peaked --acceptance --prompts $d/prompts.jsonl --device cpu >$scratch/text" \
        /dev/null </dev/null | tr -d '\r' >"$scratch/raw"
    same "counting acceptance shows its progress in a terminal" "$(grep -aoE '[0-9] of 3 texts' "$scratch/raw" | head -n 1)" "0 of 3 texts"
fi
for model in uniform peaked; do
    cp -r "$d/$model" "$d/$model-ends"
    echo '{"eos_token_id": 0}' >"$d/$model-ends/generation_config.json"
done
same "a token that ends texts of the draft model alone ends no counted text" "$(spec uniform-ends peaked --json)" "$counted"
of_json uniform peaked-ends
holds "a token that ends texts of the teacher ends counted texts" 't < 60'
refuses "eval with --data and --prompts is refused" 2 '^nojit eval: --data and --prompts: give one of them$' counts uniform peaked --data "$d/text.txt"
refuses "eval with --tasks and --prompts is refused" 2 '^nojit eval: --tasks and --prompts: give one of them$' counts uniform peaked --tasks "$d/text.txt"
refuses "eval --prompts without --acceptance is refused" 2 '^nojit eval: --prompts is for --acceptance; add it$' \
    "$nojit" eval --model "$d/uniform" --teacher "$d/peaked" --prompts "$d/prompts.jsonl"
refuses "--draft-tokens without --prompts is refused" 2 '^nojit eval: --draft-tokens is for --acceptance with --prompts; add them$' \
    "$nojit" eval --model "$d/uniform" --teacher "$d/peaked" --data "$d/text.txt" --draft-tokens 2
refuses "--acceptance --prompts without --teacher is refused" 2 '^nojit eval: --acceptance needs --teacher$' "$nojit" eval --model "$d/uniform" --prompts "$d/prompts.jsonl" --acceptance
refuses "prompts without room for a draft token are refused" 2 '^nojit eval: no text has room for a draft token' counts uniform peaked --max-tokens 1
refuses "prompts beyond --seq-len are refused" 2 'make 47 tokens, more than --seq-len 46; raise the one or lower the other$' counts uniform peaked --seq-len 46
refuses "--acceptance without --teacher is refused" 2 '^nojit eval: --acceptance needs --teacher$' "$nojit" eval --model "$d/student" --data "$d/text.txt" --acceptance
cp -r "$d/student" "$d/short"
sed -i 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 96/' "$d/short/config.json"
refuses "prompts beyond what the teacher takes are refused" 2 'make 97 tokens, and .*/short takes 96 at most; shorten the prompt, or lower --max-tokens and max_tokens of its line$' counts student short --max-tokens 90
finish
