# SPDX-License-Identifier: Apache-2.0
#
# plant_nan.sh: a weight that is no number, in one row of a matrix of a float32 model: by default in the embedding of a token.
plant_nan() { # MODEL ROW [TENSOR]
    local weights=$1/model.safetensors header entry width begin
    header=$(od -An -tu8 -N8 "$weights" | tr -d ' ')
    entry=$(head -c $((8 + header)) "$weights" | grep -oa "\"${3:-model.embed_tokens.weight}\":{[^}]*}")
    width=$(sed -E 's/.*"shape":\[[0-9]+,([0-9]+)\].*/\1/' <<<"$entry")
    begin=$(sed -E 's/.*"data_offsets":\[([0-9]+),.*/\1/' <<<"$entry")
    printf '\000\000\300\177' | dd of="$weights" bs=1 seek=$((8 + header + begin + 4 * ($2 * width + 3))) conv=notrunc status=none
}
