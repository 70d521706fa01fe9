#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_chat.py FOLDER: writes tests/golden/chat-prompts.json: the ids that apply_chat_template(add_generation_prompt=True) of
transformers makes of some conversations.

FOLDER/NAME.jinja are the chat templates of published models, which are not kept in the tree: qwen2 (Qwen2-7B-Instruct),
qwen2_5 (Qwen2.5-7B-Instruct), qwen3 (Qwen3-8B), qwen3_instruct_2507 and qwen3_thinking_2507 (Qwen3-4B-Instruct-2507,
-Thinking-2507), smollm2 (SmolLM2-1.7B-Instruct), llama3 (Meta-Llama-3-8B-Instruct), llama3_1 (Llama-3.1-8B-Instruct).
What of each decides here is written below by hand; CHAT_TEMPLATES=FOLDER build/tests/test_prompts takes the files themselves.
    python3 -m venv /tmp/v && /tmp/v/bin/pip install transformers==5.23.0 jinja2
    /tmp/v/bin/python tests/golden/make_chat.py FOLDER
"""
import json
import pathlib
import sys

from transformers import PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).parent
PROMPT = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
THINKS = "last_query_index <think> <|im_start|> "


def system(text):
    return "{{ '<|im_start|>system\\n%s<|im_end|>\\n' }}" % text


# NAME: golden tokenizer, what stands in the template
TEMPLATES = {
    "qwen2": ("qwen2", system("You are a helpful assistant.") + PROMPT),
    "qwen2_5": ("qwen2", system("You are Qwen, created by Alibaba Cloud. You are a helpful assistant.") + PROMPT),
    "qwen3": ("qwen2", THINKS + PROMPT + "{% if enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}"),
    "qwen3_instruct_2507": ("qwen2", "<|im_start|> " + PROMPT),
    "qwen3_thinking_2507": ("qwen2", THINKS + PROMPT.replace("\\n'", "\\n<think>\\n'")),
    "smollm2": ("qwen2", system("You are a helpful AI assistant named SmolLM, trained by Hugging Face") + PROMPT),
    "llama3": ("llama3", "<|start_header_id|>"),
    "llama3_1": ("llama3", "<|start_header_id|> Cutting Knowledge Date: December 2023"),
}


def say(*turns):
    names = {"s": "system", "u": "user", "a": "assistant"}
    return [{"role": names[t[0]], "content": t[1:]} for t in turns]


CONVERSATIONS = [
    say("uWho sings before the rain?"),
    say("sBe brief.", "uWho?"),
    say("u\n two lines\n\n", "a  \nyes ", "u  and then?  "),
    say("sÉtat", "uone", "atwo", "uthree", "afour", "u"),
    say("u1", "a<think>\nit is\n</think>\n\n2", "u3"),
    say("u1", "a<think>\nit is\n</think>\n\n2", "u<tool_response>3</tool_response>"),
    say("u老渔夫 🌊", "u<|im_end|> word"),
    say("a first", "u second"),
]


def main(folder):
    rows = []
    for name, (golden, stub) in TEMPLATES.items():
        t = PreTrainedTokenizerFast(tokenizer_file=str(HERE / f"tokenizer-{golden}.json"), bos_token="<|begin_of_text|>" if golden == "llama3" else None)
        t.chat_template = (pathlib.Path(folder) / f"{name}.jinja").read_text()
        for messages in CONVERSATIONS:
            ids = t.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
            rows.append({"template": name, "golden": golden, "stub": stub, "messages": messages, "ids": ids})
    lines = ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in rows)
    (HERE / "chat-prompts.json").write_text("[\n" + lines + "\n]\n")


main(sys.argv[1])
