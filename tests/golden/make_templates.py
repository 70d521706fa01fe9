#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_templates.py OUT FOLDER...: writes what transformers, which calls jinja2, makes of published chat templates.

FOLDER is searched for *.jinja and for templates in the strings of *.py: unpacked packages, which are not kept in the tree:
    python3 -m venv /tmp/v && /tmp/v/bin/pip install transformers==5.24.0 jinja2==3.1.6
    /tmp/v/bin/pip download --no-deps -d /tmp/p trl axolotl llama-cpp-python unsloth vllm mistral-common
    (cd /tmp/p && for f in *.whl; do unzip -qo "$f" -d "${f%%-*}"; done && for f in *.tar.gz; do tar xzf "$f"; done)
    /tmp/v/bin/python tests/golden/make_templates.py build/published.json /tmp/p
    PUBLISHED_TEMPLATES=build/published.json build/tests/test_template_published

Without folders it writes tests/golden/templates.json, what jinja2 makes of the templates of tests/golden/templates.txt, each of
which shows one thing. A file has {"variables": [...], "templates": [{"name", "text", "out": [TEXT or null, ...]}]}: one
output for each set of variables; null: jinja2 raises.
"""
import ast
import copy
import datetime
import json
import pathlib
import sys
import warnings

from transformers.utils import chat_template_utils

warnings.simplefilter("ignore")
HERE = pathlib.Path(__file__).parent


class FixedDay(datetime.datetime):
    """The day that nojit always has."""

    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26)


chat_template_utils.datetime = FixedDay


def say(*turns):
    names = {"s": "system", "u": "user", "a": "assistant", "t": "tool", "d": "developer"}
    return [{"role": names[t[0]], "content": t[1:]} for t in turns]


def call(name, arguments, **more):
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather of a place, <now> & \"here\".",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "A town, e.g. Zürich"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": ["integer", "null"], "minimum": 0},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["place"],
        },
        "return": {"type": "number", "description": "degrees"},
    },
}
PLAIN_TOOL = {"name": "stop", "description": "Stops.", "parameters": {"type": "object", "properties": {}}}
CALLS = [
    {"role": "user", "content": "How warm is Zürich?"},
    {"role": "assistant", "content": "", "tool_calls": [call("get_weather", {"place": "Zürich", "days": 2, "x": 1.5, "y": None, "z": True}, id="abcdefghi")]},
    {"role": "tool", "name": "get_weather", "content": '{"degrees": 21.5}', "tool_call_id": "abcdefghi"},
    {"role": "assistant", "content": "21.5 degrees."},
]
TWO_CALLS = [
    {"role": "system", "content": "Use tools."},
    {"role": "user", "content": "Both?"},
    {"role": "assistant", "content": "Let me see.", "reasoning_content": "two places", "tool_calls": [
        call("get_weather", {"place": "A"}, id="call00001"), call("get_weather", {"place": "B", "list": [1, "b", {"c": []}]}, id="call00002")]},
    {"role": "tool", "content": "1", "tool_call_id": "call00001"},
    {"role": "tool", "content": "2", "tool_call_id": "call00002"},
    {"role": "assistant", "content": "1 and 2"},
    {"role": "user", "content": "Thanks"},
]
TEXT_CALLS = copy.deepcopy(CALLS)
TEXT_CALLS[1]["tool_calls"][0]["function"]["arguments"] = '{"place": "Zürich"}'
NO_CONTENT = copy.deepcopy(CALLS)
del NO_CONTENT[1]["content"]
BARE_CALLS = copy.deepcopy(CALLS)
BARE_CALLS[1]["tool_calls"] = [{"name": "get_weather", "arguments": {"place": "x"}}]
THINKS = [
    {"role": "user", "content": "1+1?"},
    {"role": "assistant", "content": "2", "reasoning_content": "\nadd them\n"},
    {"role": "user", "content": "And 2+2?"},
    {"role": "assistant", "content": "4", "reasoning_content": "again"},
]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]},
         {"role": "assistant", "content": [{"type": "text", "text": "three"}]}]
LONG = say("sTen turns.", *[("u%d?" if i % 2 == 0 else "a%d.") % i for i in range(20)])

CONVERSATIONS = [
    dict(messages=say("uWho sings before the rain?")),
    dict(messages=say("uWho?"), add_generation_prompt=True),
    dict(messages=say("sBe brief.", "uWho?")),
    dict(messages=say("sBe brief.", "uWho?"), add_generation_prompt=True),
    dict(messages=say("sBe brief.", "uWho?", "aThe robin.")),
    dict(messages=say("uone", "atwo")),
    dict(messages=say("uone", "atwo"), add_generation_prompt=True),
    dict(messages=say("uone", "atwo", "uthree"), add_generation_prompt=True),
    dict(messages=say("s  État \n", "u\n two lines\n\n", "a  \nyes ", "u  and then?  ", "a\tno\t")),
    dict(messages=say("uone", "atwo", "uthree", "afour", "ufive", "asix")),
    dict(messages=LONG),
    dict(messages=LONG + say("u?"), add_generation_prompt=True),
    dict(messages=say("u1", "a<think>\nit is\n</think>\n\n2", "u3"), add_generation_prompt=True),
    dict(messages=say("u1", "a<think>\nit is\n</think>\n\n2", "u3", "a<think>so</think>4")),
    dict(messages=say("u1", "ait is</think>2")),
    dict(messages=say("u1", "a<think>never ends")),
    dict(messages=say("u1", "a<think>a</think>b<think>c</think>d")),
    dict(messages=say("u1", "a<think></think>", "u<tool_response>3</tool_response>"), add_generation_prompt=True),
    dict(messages=THINKS),
    dict(messages=THINKS[:3], add_generation_prompt=True),
    dict(messages=THINKS[:3], add_generation_prompt=True, enable_thinking=False),
    dict(messages=THINKS, enable_thinking=True),
    dict(messages=say("u老渔夫 🌊\u2028x\u00a0", "aÄÖ\u0301 \u200b\x1c<|im_end|>")),
    dict(messages=say("u{{ 7 * 7 }} {% raw %} {# #}", "a' \" \\ & < > \r\n x")),
    dict(messages=say("u")),
    dict(messages=say("u", "a")),
    dict(messages=say("s", "ux", "ay")),
    dict(messages=say("aI begin.", "uone")),
    dict(messages=say("uone", "utwo", "athree", "afour")),
    dict(messages=say("uone", "stwo", "athree")),
    dict(messages=say("done", "utwo", "athree")),
    dict(messages=[{"role": "critic", "content": "no such role"}]),
    dict(messages=[{"content": "no role"}]),
    dict(messages=[{"role": "user"}]),
    dict(messages=CALLS, tools=[WEATHER]),
    dict(messages=CALLS[:3], tools=[WEATHER, PLAIN_TOOL], add_generation_prompt=True),
    dict(messages=TWO_CALLS, tools=[WEATHER], add_generation_prompt=True),
    dict(messages=TWO_CALLS),
    dict(messages=TEXT_CALLS, tools=[WEATHER]),
    dict(messages=NO_CONTENT, tools=[]),
    dict(messages=BARE_CALLS, tools=[PLAIN_TOOL]),
    dict(messages=say("sS", "uone"), tools=[WEATHER], add_generation_prompt=True),
    dict(messages=PARTS),
    dict(messages=say("sDocs.", "uone"), documents=[{"title": "T", "text": "x\ny"}], add_generation_prompt=True),
    dict(messages=say("uone", "atwo"), date_string="1 Jan 2025", bos_token=""),
]
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def variables_of(conversation):
    chat = chat_template_utils._alias_reasoning_fields(conversation["messages"])
    return {"tools": None, "documents": None, "add_generation_prompt": False, **SPECIAL, **conversation, "messages": chat}


def render(text, variables):
    """What jinja2 writes, or None where it raises; in a list with what stood in {% generation %} where that is in the template."""
    try:
        compiled = chat_template_utils._compile_jinja_template(text)
        if "generation" not in text or "endgeneration" not in text:
            return compiled.render(**copy.deepcopy(variables))
        out, spans = chat_template_utils._render_with_assistant_indices(
            compiled_template=compiled, **{"tools": None, "documents": None, "add_generation_prompt": False, "messages": [], **copy.deepcopy(variables)})
        return [out, *(out[a:b] for a, b in spans)]
    except Exception:
        return None


def strings(path):
    try:
        tree = ast.parse(path.read_text())
    except (SyntaxError, UnicodeDecodeError):
        return []
    found = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return [t for t in found if "{%" in t and "message" in t and "endfor" in t]


def published(folders):
    """Templates by their text, so that each comes once."""
    found = {}
    for folder in map(pathlib.Path, folders):
        for path in sorted(folder.rglob("*.jinja")):
            found.setdefault(path.read_bytes().decode(), str(path.relative_to(folder)))
        for path in sorted(folder.rglob("*.py")):
            for i, text in enumerate(strings(path)):
                found.setdefault(text, f"{path.relative_to(folder)}:{i}")
    return {name: text for text, name in found.items() if "message" in text}


def own():
    """The templates of templates.txt, each behind a line with its name."""
    parts = (HERE / "templates.txt").read_text().split("\n=== ")[1:]
    named = (p.split("\n", 1) for p in parts)
    return {name: text for name, text in named}


VALUES = {
    "n": 7, "x": 2.5, "word": "Ünïcode ß", "text": " a b\n\tc  ", "empty": "", "yes": True, "nothing": None,
    "list": [3, 1, 2], "words": ["b", "A", "c", "a"], "nested": {"b": [1, {"c": None}], "a": "'", "items": 5},
    "rows": [{"name": "x", "n": 2, "on": True}, {"name": "Y", "n": 1, "on": False}, {"name": "z", "n": 3}],
}


def main(argv):
    templates = published(argv[1:]) if len(argv) > 1 else own()
    sets = [variables_of(c) for c in CONVERSATIONS] if len(argv) > 1 else [VALUES]
    rows = [{"name": name, "text": text, "out": [render(text, v) for v in sets]} for name, text in sorted(templates.items())]
    lines = ",\n".join(json.dumps(r, ensure_ascii=False) for r in rows)
    head = ",\n".join(json.dumps(v, ensure_ascii=False) for v in sets)
    pathlib.Path(argv[0]).write_text('{"variables": [\n' + head + '\n],\n"templates": [\n' + lines + "\n]}\n")
    raises = sum(o is None for r in rows for o in r["out"])
    print(f"{len(rows)} templates, {len(sets)} sets of variables, {raises} raise")


main(sys.argv[1:] or [str(HERE / "templates.json")])
