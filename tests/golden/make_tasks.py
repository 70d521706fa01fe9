#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What lm-evaluation-harness makes of tests/golden/tasks/items.jsonl:

    make_tasks.py write [FOLDER]     writes model/ and golden.json of FOLDER (tests/golden/tasks), for test_tasks.c
    make_tasks.py check NOJIT        lets both run the items, and compares them: a verdict per line, for lm_eval_tasks.sh
    make_tasks.py golden NOJIT       the same with what golden.json holds of the harness, for cli_tasks.sh; needs no package
    make_tasks.py model NAME FOLDER  writes the model with the tokenizer of that name

    python3 -m venv /tmp/v && /tmp/v/bin/pip install 'lm_eval[hf]==0.4.13' && /tmp/v/bin/python tests/golden/make_tasks.py write

Needs no network and no GPU. The model is a small Llama with random weights, which are bfloat16 numbers; it is run in
float32, by HFLM with its defaults, once with each of the tokenizers: one that begins texts with a token, and one that does
not. Items of one name, delimiter and `until` are a task of the harness. Its batches have one prompt: in a larger one
it looks at the first alone to see whether prompts begin with the token that begins texts."""
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", DISABLE_MULTIPROC="1")
HERE = pathlib.Path(__file__).resolve().parent
VOCAB, POSITIONS = 1280, 64
TOKENIZERS = {
    "llama3": dict(bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>"),
    "qwen2": dict(eos_token="<|endoftext|>"),
}
END = {"llama3": 1258, "qwen2": 1256}


def write_model(folder):
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    config = LlamaConfig(
        vocab_size=VOCAB, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=1,
        num_key_value_heads=1, head_dim=64, max_position_embeddings=POSITIONS, tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=None, rope_parameters={"rope_type": "default", "rope_theta": 1e4})
    model = AutoModelForCausalLM.from_config(config)
    generator = torch.Generator().manual_seed(20261)
    for p in model.parameters():
        x = torch.randn(p.shape, generator=generator)
        p.data = 0.3 * x + 1 if p.dim() == 1 else x * (2 if len(p) == VOCAB else 1) / math.sqrt(p.shape[1])
    model.bfloat16().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)


def with_tokenizer(name, folder):
    """The model with a tokenizer, as transformers and nojit read it."""
    shutil.copytree(HERE / "tasks/model", folder)
    shutil.copy(HERE / f"tokenizer-{name}.json", folder / "tokenizer.json")
    config = json.loads((folder / "config.json").read_text())
    config.update(eos_token_id=END[name], dtype="float32")
    (folder / "config.json").write_text(json.dumps(config))
    tokens = dict(TOKENIZERS[name], tokenizer_class="PreTrainedTokenizerFast")
    (folder / "tokenizer_config.json").write_text(json.dumps(tokens))


def task_of(key, rows, folder):
    """A task of the harness; key: name, whether there are choices, delimiter, until, max_tokens."""
    name, choices, delimiter, until, most = key
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = dict(task=name, dataset_path="json", dataset_kwargs={"data_files": {"test": str(path)}}, test_split="test",
                  target_delimiter=delimiter)
    if choices:
        return dict(config, output_type="multiple_choice", doc_to_text="context", doc_to_choice="choices",
                    doc_to_target="answer", metric_list=[dict(metric=m, aggregation="mean", higher_is_better=True)
                                                         for m in ("acc", "acc_norm")])
    return dict(config, output_type="generate_until", doc_to_text="prompt", doc_to_target="answer",
                generation_kwargs=dict(until=json.loads(until), max_gen_toks=most, do_sample=False),
                metric_list=[dict(metric="exact_match", aggregation="mean", higher_is_better=True)])


def item_of(lm, doc, sample):
    if "choices" not in doc:
        return dict(text=sample["resps"][0][0], exact_match=int(sample["exact_match"]))
    tokens = []
    for choice in doc["choices"]:
        whole = doc.get("target_delimiter", "") + choice
        pair = lm._encode_pair(doc["context"], whole) if doc["context"] else (None, lm.tok_encode(whole, False))
        tokens.append(len(pair[1]) - (not doc["context"] and pair[1][0] == lm.prefix_token_id))
    scores = [float(r[0][0]) for r in sample["resps"]]
    return dict(loglikelihoods=scores, tokens=tokens, acc=int(sample["acc"]), acc_norm=int(sample["acc_norm"]))


def harness(model, scratch):
    """Per item, in their order, and per task and metric: value and standard error."""
    import lm_eval
    from lm_eval.models.huggingface import HFLM
    from lm_eval.api.task import ConfigurableTask

    docs = [json.loads(line) for line in (HERE / "tasks/items.jsonl").read_text().splitlines()]
    groups = {}
    for number, doc in enumerate(docs):
        key = (doc["task"], "choices" in doc, doc.get("target_delimiter", ""), json.dumps(doc.get("until", [])),
               doc.get("max_tokens", 256))
        groups.setdefault(key, []).append(number)
    assert len({key[0] for key in groups}) == len(groups), "items of a task must be alike"
    lm = HFLM(pretrained=str(model), device="cpu", dtype="float32", batch_size=1)
    tasks = [ConfigurableTask(config=task_of(key, [docs[i] for i in rows], scratch)) for key, rows in groups.items()]
    out = lm_eval.simple_evaluate(lm, tasks=tasks, num_fewshot=0, bootstrap_iters=100, log_samples=True)
    items = [None] * len(docs)
    metrics = []
    for key, rows in groups.items():
        for sample in out["samples"][key[0]]:
            number = rows[sample["doc_id"]]
            items[number] = item_of(lm, docs[number], sample)
        for metric in ("acc", "acc_norm") if key[1] else ("exact_match",):
            result = out["results"][key[0]]
            error = result[f"{metric}_stderr,none"]
            metrics.append(dict(task=key[0], metric=metric, value=float(result[f"{metric},none"]),
                                stderr=None if isinstance(error, str) else float(error), items=len(rows)))
    return dict(items=items, metrics=metrics)


def all_harness():
    out = {}
    for name in TOKENIZERS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            with_tokenizer(name, folder / "model")
            out[name] = harness(folder / "model", folder)
    return out


def write(folder):
    from importlib.metadata import version

    (folder / "model").mkdir(parents=True, exist_ok=True)
    write_model(folder / "model")
    versions = {p: version(p) for p in ("lm_eval", "transformers", "torch", "tokenizers")}
    (folder / "golden.json").write_text(json.dumps(dict(versions=versions, **all_harness()), indent=1) + "\n")


def close(a, b):
    if isinstance(a, str) and isinstance(b, str):  # of bytes that are no UTF-8, nojit shows each
        return re.sub("\ufffd+", "\ufffd", a) == re.sub("\ufffd+", "\ufffd", b)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return a is b if a is None or b is None else abs(a - b) <= 1e-4 * abs(b) + 1e-5


def differences(got, want):
    return [f"{name}: {got.get(name)}, expected {value}" for name, value in want.items() if not close(got.get(name), value)]


def check(nojit, expected):
    faults = 0
    for name in TOKENIZERS:
        want = expected[name]
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            with_tokenizer(name, folder / "model")
            run = subprocess.run([nojit, "eval", "--model", folder / "model", "--tasks", HERE / "tasks/items.jsonl", "--json",
                                  "--device", "cpu", "--task-log", folder / "log"], capture_output=True, text=True)
            if run.returncode:
                sys.exit(f"FAIL {name}: {run.stderr}")
            items = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
            metrics = [json.loads(line) for line in run.stdout.splitlines()]
        key = lambda m: (m["task"], m["metric"])
        pairs = [(f"{name} item {i + 1}", *both) for i, both in enumerate(zip(items, want["items"], strict=True))]
        pairs += [(f"{name} {g['task']} {g['metric']}", g, w) for g, w in
                  zip(sorted(metrics, key=key), sorted(want["metrics"], key=key), strict=True)]
        for what, got, value in pairs:
            wrong = differences(got, value)
            faults += bool(wrong)
            print(f"FAIL {what}: {'; '.join(wrong)}" if wrong else f"ok {what}")
    return faults


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "tasks")
    elif sys.argv[1:2] == ["check"] and len(sys.argv) == 3:
        sys.exit(1 if check(sys.argv[2], all_harness()) else 0)
    elif sys.argv[1:2] == ["golden"] and len(sys.argv) == 3:
        sys.exit(1 if check(sys.argv[2], json.loads((HERE / "tasks/golden.json").read_text())) else 0)
    elif sys.argv[1:2] == ["model"] and len(sys.argv) == 4:
        with_tokenizer(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        sys.exit(__doc__)
