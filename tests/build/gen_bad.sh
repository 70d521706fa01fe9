#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gen_bad.sh: gen refuses malformed contracts and commands with the file, the line and what was expected, and writes
# nothing then. Each defect is one edit of a good pair of contracts.
set -eu
cd "$(dirname "$0")/../.."
. tests/lib/lib.sh
GEN=${GEN:-$BUILD/gen-bin/gen}
good=$scratch/good
mkdir -p "$good/contracts" "$good/kernels/ref"
for op in first second; do
    : >"$good/kernels/$op.cu"
    : >"$good/kernels/ref/$op.c"
done

cat >"$good/contracts/first.yaml" <<'EOF'
op: first
summary: Scales rows.
equations: ["y[n,c] = a x[n,c]"]
source: definition
axes: {T: [lp, f32], D: [64, 128]}
args:
  - {name: y, dir: out, dtype: T,   shape: [N, C], align: 16, doc: scaled}
  - {name: x, dir: in,  dtype: T,   shape: [N, C], align: 16, doc: rows}
  - {name: k, dir: in,  dtype: i32, shape: [N], fill: id N, optional: true, doc: ids}
dims: {N: rows, C: channels}
scalars:
  - {name: a, dtype: f32, test: 0.5, doc: factor}
require: [N >= 1, C % D == 0]
launch: {threads: 128, grid: ["ceil_div(N, 8)"], smem: C * 4}
tolerance: {lp: 1e-2, f32: 1e-5}
tests:
  - {N: 3, C: 128}
  - {N: 5, C: 256, k: null, a: 2}
bench: {N: 64, C: 1024}
cost: {flops: N*C, bytes: 2*N*C*size(T)}
falsifiers:
  - {id: F-1, claim: it scales, test: harness first, mutant: {file: first.c, replace: "a *", with: ""}}
  - {id: F-2, claim: all rows, open: no test counts them yet}
EOF
cat >"$good/contracts/second.yaml" <<'EOF'
op: second
summary: Gradient of first.
backward_of: first
equations: ["z[n,c] = a y[n,c]"]
source: derivative of first
axes: {T: [lp, f32], D: [64, 128]}
args:
  - {name: z,     dir: out, dtype: T,   shape: [N, C], doc: gradient}
  - {name: y,     dir: in,  dtype: T,   shape: [N, C], fill: ref first, doc: from first}
  - {name: x,     dir: in,  dtype: T,   shape: [N, C], doc: rows}
  - {name: order, dir: in,  dtype: i32, shape: [N], fill: order ids, doc: sorted}
  - {name: ids,   dir: in,  dtype: i32, shape: [N], fill: id 7, doc: ids}
dims: {N: rows, C: channels}
scalars:
  - {name: a, dtype: f32, test: 0.5, doc: factor}
require: [N >= 1, C % D == 0]
launch: {threads: {"D=64": 64, "D=128": 128}, grid: [N], smem: 0}
tolerance: {lp: 1e-2, f32: 1e-5}
tests: [{N: 3, C: 128}]
cost: {flops: N*C, bytes: 2*N*C*size(T)}
EOF

# generate FOLDER OUT [ARGUMENT...]: gen over the contracts in FOLDER.
generate() {
    local folder=$1 out=$2
    shift 2
    "$GEN" --contracts "$folder/contracts" --kernels "$folder/kernels" \
        --archs-file contracts/archs.yaml --archs "sm_75 sm_90" --out "$out" "$@"
}

# bad NAME FILE:LINE PATTERN SED-SCRIPT: after the edit of that file gen must refuse it there, in those words.
bad() {
    local name=$1 place=$2 pattern=$3 edit=$4 folder=$scratch/bad
    rm -rf "$folder" "$scratch/none"
    cp -r "$good" "$folder"
    sed -i "$edit" "$folder/contracts/${place%%:*}"
    refuses "gen names file and line of the defect $name" 2 "/$place: .*$pattern" generate "$folder" "$scratch/none"
    [ ! -e "$scratch/none" ] || not_ok "gen names file and line of the defect $name" "something was written in spite of the error"
}

generate "$good" "$scratch/fine" && ok "gen accepts the good pair of contracts" || not_ok "gen accepts the good pair of contracts" "refused"

# ---- syntax and fields ----
bad yaml-syntax first.yaml:5 "not YAML" '5s/\]}/}/'
bad yaml-alias first.yaml:4 "aliases" '4s/definition/*other/'
bad unknown-field first.yaml:15 "unknown field 'tolerence'; did you mean 'tolerance'\?" '15s/tolerance/tolerence/'
bad missing-field first.yaml:1 "lacks the field 'summary'" 2d
bad duplicate-field first.yaml:3 "'summary' is given twice; it is on line 2" '3i summary: again'
bad field-kind first.yaml:2 "'summary' must be a single value" '2s/Scales rows./[a, b]/'
bad unknown-arg-field first.yaml:7 "unknown field 'shap'; did you mean 'shape'\?" '7s/shape/shap/'
bad op-not-file first.yaml:1 "op is 'frist' but the file is named 'first.yaml'" '1s/first/frist/'
bad missing-source first.yaml:1 "kernels/third.cu is missing" '1s/first/third/'
bad backward-of second.yaml:3 "backward_of names 'frist', an op that is not there" '3s/first/frist/'

# ---- axes, arguments, names ----
bad axis-empty first.yaml:5 "axis 'D' has no values" '5s/\[64, 128\]/[]/'
bad axis-twice first.yaml:5 "duplicate key: axis 'D' has the value 64 twice" '5s/128/64/'
bad axis-value first.yaml:5 "unknown value of T 'f64'; expected one of: lp, f32" '5s/f32/f64/'
bad axis-no-T first.yaml:5 "the first axis must be T" '5s/T: \[lp, f32\], //'
bad dtype first.yaml:7 "unknown dtype 'f16'; expected one of: T, lp, f32, i32, f8, bf16" '7s/dtype: T/dtype: f16/'
bad dir first.yaml:7 "unknown dir 'output'; expected one of: in, out, inout" '7s/dir: out/dir: output/'
bad align first.yaml:7 "align must be a power of two" '7s/16/12/'
bad name-twice first.yaml:8 "the name 'y' is used twice" '8s/name: x/name: y/'
bad name-taken first.yaml:8 "the name 'stream' is taken" '8s/name: x/name: stream/'

# ---- fills ----
bad fill-unknown first.yaml:9 "unknown fill 'idd'" '9s/fill: id/fill: idd/'
bad fill-type first.yaml:8 "fill 'id' is for i32 arguments" '8s/align: 16/fill: id N/'
bad fill-halves first.yaml:8 "fill 'halves' is for i32 arguments" '8s/align: 16/fill: halves/'
bad fill-halves-of first.yaml:9 "fill 'halves' takes" '9s/id N/halves N/'
bad fill-none first.yaml:9 "the i32 argument 'k' needs a fill" '9s/fill: id N, //'
bad fill-no-value first.yaml:9 "fill 'id' needs a number or an expression" '9s/id N/id/'
bad fill-ref-op second.yaml:9 "names an op that is not there" '9s/ref first/ref frist/'
bad fill-ref-output second.yaml:10 "has no output named 'x'" '10s/doc/fill: ref first, doc/'
bad fill-ref-input second.yaml:9 "fill 'ref first' needs an argument 'x' here" 10d
bad fill-ref-cycle second.yaml:9 "a cycle" '9s/ref first/ref second/;8s/dir: out/dir: inout/'
bad fill-order second.yaml:11 "names 'idx', an argument that is not there" '11s/order ids/order idx/'
bad fill-order-cycle second.yaml:11 "needs 'order' itself: a cycle" '12s/id 7/runs order/'

# ---- expressions ----
bad expr-syntax first.yaml:14 "expected '\)'" '14s/8)/8/'
bad expr-name first.yaml:7 "unknown name 'M'; known here: N, C, D" '7s/\[N, C\]/[M, C]/'
bad expr-zero first.yaml:14 "division by zero" '14s/(N, 8)/(N, 0)/'
bad expr-zero-value first.yaml:17 "has no value for .* division by zero" '14s/(N, 8)/(N, N - 3)/'
bad expr-overflow first.yaml:17 "does not fit 64 bits" '20s/N\*C,/N*9223372036854775807,/'
bad expr-condition first.yaml:13 "expected a condition" '13s/N >= 1/N/'
bad expr-number first.yaml:7 "expected a number, not a condition" '7s/\[N, C\]/[N >= 1, C]/'
bad row-bytes-one first.yaml:14 "row_bytes takes two values" '14s/C \* 4/row_bytes(C)/'
bad row-bytes-no-blocks first.yaml:17 "breaks the requirement 'row_bytes\(12, C\) > 0'" '13s/N >= 1/"row_bytes(12, C) > 0"/'
bad row-bytes-no-type first.yaml:17 "size 'row_bytes\(99, C\)' of line 7 is 0" '7s/\[N, C\]/["row_bytes(99, C)"]/'
bad row-bytes-overflow first.yaml:17 "of line 7 is 0" '7s/\[N, C\]/["row_bytes(0, C * 50000000000000000)"]/'

# ---- launch and tolerance ----
bad threads first.yaml:14 "threads is 100; it must be a multiple of 32 up to 1024" '14s/128/100/'
bad threads-many first.yaml:14 "threads is 2048" '14s/128/2048/'
bad threads-dim first.yaml:14 "unknown name 'N'" '14s/128/N/'
bad case-missing second.yaml:17 "no case for D=128" '17s/, "D=128": 128//'
bad case-unknown second.yaml:17 "'D=32' is not a value of an axis" '17s/D=64/D=32/'
bad smem-limit first.yaml:19 "needs 98304 bytes of shared memory \(line 14\); sm_75 has 65536" '14s/C \* 4/C * 96/'
bad tolerance first.yaml:15 "tolerance is missing for T = f32" '15s/, f32: 1e-5//'
bad tolerance-negative first.yaml:15 "tolerance must be a number, 0 or more" '15s/1e-5/-1e-5/'
bad tolerance-argument first.yaml:7 "an argument's tolerance must be a number above 0, not '0'" '7s/align: 16/tolerance: 0/'
bad only-unknown first.yaml:2 "only names 'sm_91', no architecture of the list" '2i only: sm_91'
bad when-unknown first.yaml:2 "unknown feature 'qk-norm'; expected one of: qkv_bias, qk_norm, silu, softcap, norm_before, norm_after, qk_norm_row, qk_gain_last, qk_no_gain, o_bias, sinks, output_gate, head_map, fused_qkv, gated_q, conv, delta_rule, grouped_delta, mlp_bias, fused_gate_up, experts, correction_bias, shared_expert, shared_gate" '2i when: qk-norm'
bad when-negated-twice first.yaml:2 "unknown feature 'not qk_norm'; expected one of" '2i when: not not qk_norm'
bad only-source first.yaml:1 "kernels/sm_90a/first.cu is missing" '2i only: sm_90a'
bad arch-smem-variant first.yaml:2 "arch_smem names 'lp.d96'; first has no such variant" '2i arch_smem: {"lp.d96 sm_75": 16}'
bad arch-smem-limit first.yaml:2 "arch_smem gives 65537 bytes of shared memory; sm_75 has 65536" '2i arch_smem: {"lp.d64 sm_75": 65537}'
bad spill-variant first.yaml:2 "first has no such variant" '2i allow_spill: {"lp.d96 sm_75": 16}'

# ---- what sm_90 brought: first, for sm_90a and 16 bits alone, with a tensor map of x and clusters ----
sm90='1s/$/\nonly: sm_90a/;5s/lp, f32/lp/;8s/align: 16/align: 16, tile: 128/;14s/grid: \[.*\]/cluster: 2, grid: [2 * N]/;15s/, f32: 1e-5//'
cp -r "$good" "$scratch/sm90"
mkdir "$scratch/sm90/kernels/sm_90a"
mv "$scratch/sm90/kernels/first.cu" "$scratch/sm90/kernels/sm_90a"
sed -i "$sm90" "$scratch/sm90/contracts/first.yaml"
sed -i '6s/lp, f32/lp/;18s/, f32: 1e-5//' "$scratch/sm90/contracts/second.yaml"
generate "$scratch/sm90" "$scratch/fine90" --archs sm_90a && ok "gen accepts tiles and clusters" || not_ok "gen accepts tiles and clusters" "refused"
good=$scratch/sm90
for tile in 0 257 x; do
    bad "tile $tile" first.yaml:9 "tile must be a number of rows, 1 to 256, not '$tile'" "9s/tile: 128/tile: $tile/"
done
for shape in '[N]' '[1, N, C]'; do
    bad "tile of $shape" first.yaml:9 "the argument 'x' has a tile and needs rows and columns" "9s/\[N, C\]/$shape/"
done
bad tile-f32 first.yaml:9 "the argument 'x' has a tile, so it must be lp" '9s/dtype: T/dtype: f32/'
bad tile-T first.yaml:9 "the argument 'x' has a tile, so it must be lp" '6s/lp/lp, f32/;16s/1e-2/1e-2, f32: 1e-5/'
bad tile-align first.yaml:9 "the argument 'x' has a tile and needs 'align: 16'" '9s/align: 16/align: 8/'
bad tile-name first.yaml:9 "the name 'x_tiles' is that of the tensor map" '10s/name: k/name: x_tiles/;19s/k: null/x_tiles: null/'
bad tile-everywhere first.yaml:8 "tile needs 'only:' with sm_90 or a later one" 2d
bad tile-early first.yaml:9 "tile needs 'only:' with sm_90 or a later one" '2s/sm_90a/sm_89/'
bad cluster-everywhere first.yaml:14 "cluster needs 'only:' with sm_90 or a later one" 2d
bad cluster-many first.yaml:15 "cluster must be a number of blocks, 1 to 8, not '9'" '15s/cluster: 2/cluster: 9/'
bad cluster-none first.yaml:15 "cluster must be a number of blocks, 1 to 8, not '0'" '15s/cluster: 2/cluster: 0/'
bad cluster-grid first.yaml:18 "the grid size 'N' is 3; it must be a multiple of the cluster" '15s/2 \* N/N/'
good=$scratch/good

# ---- tests ----
bad test-lacks first.yaml:17 "a test lacks the dim 'C'" '17s/, C: 128//'
bad test-unknown first.yaml:17 "names the unknown dim 'Q'; known: N, C" '17s/C: 128/C: 128, Q: 1/'
bad test-require first.yaml:17 "breaks the requirement 'C % D == 0' of line 13" '17s/128/100/'
bad test-shape first.yaml:17 "gives 'y' no elements: size 'N - 3' of line 7 is 0" '7s/\[N, C\]/[N - 3, C]/'
bad test-null first.yaml:18 "argument 'y' is null but not optional" '18s/k: null/y: null/'
bad test-not-null first.yaml:18 "argument 'k' can only be given as null" '18s/k: null/k: 3/'
bad test-not-a-position first.yaml:18 "argument 'k' can only be given as its first position" '9s/id N/position N/;18s/k: null/k: x/'
bad test-position first.yaml:18 "'k' is not a position; it must be from 0 to 2147483647" '9s/id N/position N/;18s/k: null/k: -1/'
bad test-not-a-frequency first.yaml:18 "argument 'k' can only be given as its first frequency of 0" '9s/i32/f32/;9s/id N/inv_freq/;18s/k: null/k: x/'
bad test-frequency first.yaml:18 "'k' is not the number of a pair, above 0; it must be from 1 to 2147483647" '9s/i32/f32/;9s/id N/inv_freq/;18s/k: null/k: 0/'
bad test-wide first.yaml:17 "dim 'N' must be a whole number of 32 bits" '17s/N: 3/N: 3000000000/'
bad test-none first.yaml:16 "tests is empty" '16s/$/ []/;17,18d'
bad grid-limit first.yaml:19 "grid size 'N' is 70000; it must be 1 to 65535" '14s/"ceil_div(N, 8)"/1, N/;19s/64/70000/'

# ---- falsifiers ----
bad falsifier-field first.yaml:22 "a falsifier lacks the field 'mutant'" '22s/, mutant: .*/}/'
bad falsifier-empty first.yaml:22 "'test' of a falsifier is empty" "22s/harness first/''/"
bad falsifier-open first.yaml:22 "unknown field 'test'" '22s/claim:/open: both, claim:/'
bad mutant-field first.yaml:22 "a mutant lacks the field 'replace'" '22s/ replace: "a \*",//'
bad mutant-empty first.yaml:22 "'replace' of a falsifier is empty" '22s/"a \*"/""/'
bad mutant-text first.yaml:22 "'mutant' must be a map" '22s/mutant: .*/mutant: no-scale}/'
bad falsifier-twice first.yaml:23 "the falsifier F-1 is in .*first.yaml:22 already" '23s/F-2/F-1/'

# ---- keys: "first" with an axis F of 32 is nj_first_lp_f32, as "first_lp" for f32 would be ----
rm -rf "$scratch/bad"
cp -r "$good" "$scratch/bad"
sed -i 's/\bD\b/F/g;s/\[64, 128\]/[32, 128]/' "$scratch/bad/contracts/first.yaml"
sed 's/^op: first/op: first_lp/;/^falsifiers/,$d' "$good/contracts/first.yaml" | sed 's/, D: \[64, 128\]//;s/, C % D == 0//' \
    >"$scratch/bad/contracts/first_lp.yaml"
cp "$good/kernels/first.cu" "$scratch/bad/kernels/first_lp.cu"
cp "$good/kernels/ref/first.c" "$scratch/bad/kernels/ref/first_lp.c"
refuses "gen refuses two keys of one name" 2 "first_lp.f32 .*have the same entry symbol nj_first_lp_f32" generate "$scratch/bad" "$scratch/none"

# ---- several problems, commands ----
rm -rf "$scratch/bad"
cp -r "$good" "$scratch/bad"
sed -i '2s/summary/sumary/;15s/lp/lb/' "$scratch/bad/contracts/first.yaml"
sed -i '18s/f32/f33/' "$scratch/bad/contracts/second.yaml"
generate "$scratch/bad" "$scratch/none" 2>"$scratch/err" || true
for place in first.yaml:2 first.yaml:15 second.yaml:18; do
    if grep -q "$place: " "$scratch/err"; then ok "gen reports every problem, that of $place too"; else not_ok "gen reports every problem, that of $place too" "no $place"; fi
done
sed -i 's/shape/shap/;s/dtype/dtyp/;s/doc/dok/' "$scratch"/bad/contracts/*.yaml
generate "$scratch/bad" "$scratch/none" 2>"$scratch/err" || true
if [ "$(wc -l <"$scratch/err")" = 21 ]; then ok "gen reports 20 problems and counts the rest"; else not_ok "gen reports 20 problems and counts the rest" "$(wc -l <"$scratch/err") lines"; fi

mkdir -p "$scratch/empty/contracts"
refuses "gen refuses a command without contracts" 2 "holds no contract" generate "$scratch/empty" "$scratch/none"
refuses "gen refuses an unknown arch" 2 "unknown architecture 'sm_91'; known: sm_75 sm_80" generate "$good" "$scratch/none" --archs sm_91
refuses "gen refuses an arch that is named twice" 2 "sm_90 is named twice" generate "$good" "$scratch/none" --archs "sm_90 sm_90"
refuses "gen refuses archs that shadow each other" 2 "sm_90 and sm_90a would shadow" generate "$good" "$scratch/none" --archs "sm_90 sm_90a"
refuses "gen refuses an arch of an unknown family" 2 "sm_120f and sm_120 would shadow" generate "$good" "$scratch/none" --archs "sm_120f sm_120"
refuses "gen refuses no archs" 2 "no architecture is named" generate "$good" "$scratch/none" --archs " "
archs() { # NAME SED-SCRIPT LINE REGEX: after that edit of the list of archs it is refused there
    sed "$2" contracts/archs.yaml >"$scratch/archs.yaml"
    refuses "$1" 2 "archs.yaml:$3: $4" generate "$good" "$scratch/none" --archs-file "$scratch/archs.yaml"
}
at=$(sed -n '/name: sm_120,/=' contracts/archs.yaml)
for release in 13 13.03.73 13.3.73.1 13.3.x v13.3.73 13.3. .3.73; do
    archs "gen refuses $release as a release of ptxas" "${at}s/ptxas: [0-9.]*/ptxas: $release/" "$at" "sm_120: '$release' is not a release of ptxas; expected one such as 13.3.73"
done
archs "gen refuses a release of ptxas that is cut short" "${at}s/ptxas: [0-9.]*/ptxas: 13.3/" "$at" "sm_120: '13.3' is not a release of ptxas; expected one such as 13.3.73"
archs "gen refuses a release of ptxas that is a list" "${at}s/ptxas: [0-9.]*/ptxas: [13.3.73]/" "$at" "'ptxas' must be a single value"
archs "gen refuses a flag of an arch that is neither true nor false" "${at}s/spare: true/spare: maybe/" "$at" "spare is 'maybe'; expected true or false"
archs "gen refuses an unknown field of an arch" "${at}s/ptxas:/ptxsa:/" "$at" "unknown field 'ptxsa'"
generate "$good" "$scratch/releases" --archs "sm_75 sm_120 sm_121f" && cp "$scratch/releases/list.mk" "$scratch/list.mk" || true
says_releases() {
    [ "$(grep -E '^NJ_(PTXAS_|SPARE)' "$scratch/list.mk")" = "$(printf 'NJ_SPARE_ARCHS := sm_120 sm_121f\nNJ_PTXAS_sm_120 := 13.3.73\nNJ_PTXAS_sm_121f := 13.3.73')" ] &&
        [ "$(cut -f1,6 "$scratch/releases/archs.txt" | tr '\t\n' '  ')" = "sm_75 0 sm_120 1 sm_121f 1 " ]
}
ok_if "gen passes on which release of ptxas an arch asks for" "$(head -n 8 "$scratch/list.mk")" says_releases
refuses "gen refuses --only that selects nothing" 2 "'thrid_\*' matches no op and no key; ops: first second" \
    generate "$good" "$scratch/none" --only 'thrid_*'
refuses "gen refuses an unknown command line" 2 "usage: gen" "$GEN" --contracts "$good/contracts"
finish
