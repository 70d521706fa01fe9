# SPDX-License-Identifier: Apache-2.0
# chat_model DIR: makes a small model with Qwen2's tokens and the chat template on standard input. Needs $nojit.
chat_model() {
    "$nojit" init --preset nojit-tiny --tie-embeddings false --vocab-size 1264 --seed 3 --dtype float32 --out "$1" >/dev/null
    cp tests/golden/tokenizer-qwen2.json "$1/tokenizer.json"
    sed -i 's/"eos_token_id": 256/"eos_token_id": 1256/' "$1/config.json" "$1/generation_config.json"
    cat >"$1/chat_template.jinja"
}
# One whose turns end with a token that no name gives away.
turns_model() {
    chat_model "$1" <<'END'
{% for m in messages %}{{ '<left>' + m.role + '\n' + m.content + '<tool>' }}{% endfor %}{% if add_generation_prompt %}{{ '<left>assistant\n' }}{% endif %}
END
}
