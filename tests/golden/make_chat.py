#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_chat.py FOLDER: writes tests/golden/chat-prompts.json: the ids that apply_chat_template(add_generation_prompt=True) of
transformers makes of some conversations.

FOLDER/NAME.jinja are the chat templates of published models, which are not kept in the tree: qwen2 (Qwen2-7B-Instruct),
qwen2_5 (Qwen2.5-7B-Instruct), qwen3 (Qwen3-8B), qwen3_instruct_2507 and qwen3_thinking_2507 (Qwen3-4B-Instruct-2507,
-Thinking-2507), smollm2 (SmolLM2-1.7B-Instruct), llama3 (Meta-Llama-3-8B-Instruct), llama3_1 (Llama-3.1-8B-Instruct).
A template that does the same here is written below by hand; CHAT_TEMPLATES=FOLDER build/tests/test_prompts takes the files themselves.
    python3 -m venv /tmp/v && /tmp/v/bin/pip install transformers==5.23.0 jinja2
    /tmp/v/bin/python tests/golden/make_chat.py FOLDER
"""
import json
import pathlib
import sys

from transformers import PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).parent
PROMPT = "{%% if add_generation_prompt %%}{{ '<|im_start|>assistant\\n%s' }}{%% endif %%}"
TURNS = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
# Thoughts are kept where they come after the last question.
THINKS = """{%- set ns = namespace(q=messages | length - 1) %}{%- for m in messages %}
{%- if m.role == 'user' and not m.content.startswith('<tool_response>') %}{%- set ns.q = loop.index0 %}{%- endif %}{%- endfor %}
{%- for m in messages %}{%- set thought = '' %}{%- set content = m.content %}
{%- if m.role == 'assistant' and '</think>' in content %}{%- set thought = content.split('</think>')[0].split('<think>')[-1] %}
{%- set content = content.split('</think>')[-1].lstrip('\\n') %}{%- endif %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'assistant' and loop.index0 > ns.q and (loop.last or thought) %}
{{- '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' }}{%- endif %}{{- content + '<|im_end|>\\n' }}{%- endfor %}"""
HEADERS = """{%- for m in messages %}
{{- '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + (date if m.role == 'system' else '') + m.content | trim + '<|eot_id|>' }}
{%- endfor %}{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""


def system(text):
    return "{%% if messages[0].role != 'system' %%}{{ '<|im_start|>system\\n%s<|im_end|>\\n' }}{%% endif %%}" % text


# NAME: golden tokenizer, a template that writes what the published one does for these conversations
TEMPLATES = {
    "qwen2": ("qwen2", system("You are a helpful assistant.") + TURNS + PROMPT % ""),
    "qwen2_5": ("qwen2", system("You are Qwen, created by Alibaba Cloud. You are a helpful assistant.") + TURNS + PROMPT % ""),
    "qwen3": ("qwen2", THINKS + PROMPT % ""),
    "qwen3_instruct_2507": ("qwen2", TURNS + PROMPT % ""),
    "qwen3_thinking_2507": ("qwen2", THINKS + PROMPT % "<think>\\n"),
    "smollm2": ("qwen2", system("You are a helpful AI assistant named SmolLM, trained by Hugging Face") + TURNS + PROMPT % ""),
    "llama3": ("llama3", "{{- bos_token }}{%- set date = '' %}" + HEADERS),
    "llama3_1": ("llama3", "{{- bos_token }}{%- if messages[0].role != 'system' %}{%- set messages = [{'role': 'system', 'content': ''}] + messages %}"
                 "{%- endif %}{%- set date = 'Cutting Knowledge Date: December 2023\\nToday Date: 26 Jul 2024\\n\\n' %}" + HEADERS),
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
