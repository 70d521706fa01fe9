#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""saved_models.py BUILD WORK [MODEL...]: models that pass between nojit and transformers, PEFT and gguf, in both directions.

For each of MODELS (by name, else all) transformers makes a small model with random weights and saves it with a tokenizer; nojit reads it,
trains it and saves it in every form that it has. A line per check: "ok NAME", "FAIL NAME: WHY" or "skip NAME: WHY".

Logits are compared in float32, whatever type a file has: 16-bit and quantized weights are expanded on both sides, without another
rounding. Two programs sum the same products in different orders. A sum of n products is off by about sqrt(n) 2^-24 of its root mean
square; the longest path to a logit has 4 such sums in each of two layers and one at its end, of 512 products at most here, so two
programs differ by sqrt(2 * 9 * 512) 2^-24 = 5.7e-6 of it, and the largest of 60,000 differences is 4.4 times that: TIGHT.
"""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import gguf
import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel, AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaConfig, MistralConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen3Config,
)  # fmt: skip
from transformers.utils.logging import disable_progress_bar

TIGHT = 2.5e-5
TOKENS = 48
GOLDEN = pathlib.Path("tests/golden")
SCALED = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}  # fmt: skip
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")  # fmt: skip
PLAIN = ["The kettle sings before the rain begins.", "  two  spaces\n\n\nand 12345 digits", "süße Brötchen, größer als ein Fußball",
         "a<tool> b", "🐟 fish ⛵️ boats \u0001"]  # fmt: skip
FLAGS = ["a <left> b<right> c word <tool>"]  # tokens that take spaces with them, which GGUF has no place to say


def rope(theta):
    return {"rope_type": "default", "rope_theta": theta}


def sizes(vocab, hidden, inner, heads, kv_heads, parameters, tied, **more):
    return dict(vocab_size=vocab, hidden_size=hidden, intermediate_size=inner, num_attention_heads=heads, num_key_value_heads=kv_heads,
                num_hidden_layers=2, max_position_embeddings=512, rope_parameters=parameters, tie_word_embeddings=tied) | more  # fmt: skip


# Each family, with what differs inside it: heads of 64 and 128, as wide as the model or not, tied and untied, scaled positions, both forms
# of GELU, windows that hide nothing, vocabularies with and without padding, one and several ends of text.
# name: configuration, tokenizer, type of the weights, bytes of a shard.
MODELS = {
    "llama2": (LlamaConfig(**sizes(1005, 128, 96, 2, 2, rope(1e4), False, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2)),
               "llama2", torch.float16, "5GB"),
    "llama3": (LlamaConfig(**sizes(1280, 128, 192, 4, 2, SCALED, False, head_dim=64, bos_token_id=1257, eos_token_id=[1258, 1261])),
               "llama3", torch.bfloat16, "200KB"),
    "smollm2": (LlamaConfig(**sizes(1262, 192, 256, 3, 1, rope(1e5), True, bos_token_id=1256, eos_token_id=1256, pad_token_id=1256,
                                    initializer_range=0.041666666666666664)), "gpt2", torch.float32, "5GB"),
    "llama_gelu": (LlamaConfig(**sizes(1280, 64, 96, 1, 1, rope(1e4), True, head_dim=128, hidden_act="gelu_pytorch_tanh",
                                       eos_token_id=1256)), "gpt2", torch.float32, "5GB"),
    "mistral": (MistralConfig(**sizes(1005, 96, 448, 2, 1, rope(1e6), False, head_dim=128, sliding_window=None, rms_norm_eps=1e-5)),
                "llama2", torch.bfloat16, "300KB"),
    "mistral_window": (MistralConfig(**sizes(1280, 128, 96, 2, 2, rope(1e4), True, sliding_window=512, bos_token_id=1256, eos_token_id=1258)),
                       "llama3", torch.float16, "5GB"),
    "qwen2": (Qwen2Config(**sizes(1280, 128, 96, 2, 1, rope(1e6), True, eos_token_id=1256)), "qwen2", torch.bfloat16, "5GB"),
    "qwen2_untied": (Qwen2Config(**sizes(1264, 64, 96, 1, 1, rope(1e4), False, hidden_act="gelu", use_sliding_window=True,
                                         sliding_window=128, max_window_layers=2, eos_token_id=1256)), "qwen2", torch.float32, "5GB"),
    "qwen3": (Qwen3Config(**sizes(1280, 72, 96, 2, 1, rope(1e6), False, head_dim=128, bos_token_id=1256, eos_token_id=[1258, 1256])),
              "qwen2", torch.bfloat16, "100KB"),
    "qwen3_tied": (Qwen3Config(**sizes(1264, 256, 320, 2, 2, rope(1e4), True, head_dim=64, eos_token_id=1258)), "qwen2", torch.float16, "5GB"),
}  # fmt: skip
PRESETS = ["nojit-tiny", "nojit-tiny-llama", "nojit-tiny-qwen3"]
QUANTIZED = ["nf4", "nf4-nested", "gptq", "gptq-v2", "awq", "packed", "packed-zeros", "packed-bytes", "float-tensor", "float-channel", "fp8"]
MIXTURES = ["f32", "f16", "bf16", "q8_0", "q6_k", "q5_k_m", "q4_k_m"]

build, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def ids(vocab):
    return [i * 49 % vocab for i in range(TOKENS)]


# ---- verdicts ----


class Skipped(Exception):
    pass


def check(name, function, *arguments, **named):
    """A line for what the function raises, or does not."""
    try:
        function(*arguments, **named)
        print("ok", name, flush=True)
    except Skipped as e:
        print(f"skip {name}: {e}", flush=True)
    except Exception as e:  # of any library: the other checks go on
        print(f"FAIL {name}: {type(e).__name__}: {' '.join(str(e).split())[:300]}", flush=True)


def expect(condition, why):
    if not condition:
        raise AssertionError(why)


# ---- nojit ----


def nojit(*arguments, **environment):
    done = subprocess.run([build / "nojit", *map(str, arguments)], capture_output=True, text=True, env=os.environ | environment)
    expect(done.returncode == 0, f"nojit {arguments[0]}: {done.stderr.strip()[-250:]}")
    return done.stdout


def train(student, out, *more, steps=2, lr=3e-3, gpu=None):
    where = ["--gemm-table", "none"] if gpu else ["--device", "cpu"]
    simulated = dict(LD_LIBRARY_PATH=f"{build}/sim", NOJIT_CUBLASLT=f"{build}/sim", NOJIT_SIM_DEVICE=gpu or "") if gpu else {}
    nojit("train", "--student", student, "--data", work / "text.txt", "--out", out, "--seq-len", 32, "--batch-size", 2, "--steps", steps,
          "--lr", lr, *where, *more, **simulated)  # fmt: skip
    return out


def our_logits(model, vocab=1000, teacher=False):
    """Return the logits that tests/tools/logits_of.c prints: of a student, or of a teacher, whose quantized weights stay as they are."""
    done = subprocess.run([build / "logits-of", model, "1", *map(str, ids(vocab))], capture_output=True)
    expect(done.returncode == 0, done.stderr.decode()[-250:])
    both = np.frombuffer(done.stdout[:-4], np.float32)
    return both[teacher * both.size // 2 :][: both.size // 2].reshape(TOKENS, -1)


# ---- transformers ----


def load(folder, **how):
    """A model of which every weight was in the file, and every weight of the file in the model."""
    model, report = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True, **how)
    for key, found in report.items():
        expect(not found, f"{key}: {found}")
    return model.eval()


def their_logits(model, vocab=1000):
    with torch.no_grad():
        return model(torch.tensor(ids(vocab))[None]).logits[0].float().numpy()


def expect_equal(got, want, tight=TIGHT):
    expect(got.shape == want.shape, f"shapes {got.shape} and {want.shape}")
    apart = np.abs(got.astype(np.float64) - want).max() / np.sqrt(np.mean(want.astype(np.float64) ** 2))
    expect(apart < tight, f"logits are apart by {apart:.3g} of their size, {tight:g} is allowed")


def loads(folder, vocab=1000):
    expect_equal(our_logits(folder, vocab), their_logits(load(folder), vocab))


def random_model(config, dtype):
    """Logits of order 1, gains and biases that differ from each other."""
    torch.manual_seed(20251)
    model = AutoModelForCausalLM.from_config(config)
    for name, p in model.named_parameters():
        if p.dim() == 1:
            p.data = 0.3 * torch.randn(p.shape) + (0.0 if name.endswith("bias") else 1.0)
        else:
            p.data = torch.randn(p.shape) * (2.5 if "embed" in name or "lm_head" in name else 1.0) / p.shape[1] ** 0.5
    return model.to(dtype)


SPECIAL = {
    "llama2": dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>"),
    "llama3": dict(bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>"),
    "gpt2": dict(eos_token="<|endoftext|>", bos_token="<|endoftext|>", pad_token="<|endoftext|>"),
    "qwen2": dict(eos_token="<|endoftext|>", pad_token="<|endoftext|>"),
}


def make(name, folder):
    config, kind, dtype, shard = MODELS[name]
    model = random_model(config, dtype)
    model.generation_config = GenerationConfig(do_sample=True, temperature=0.7, top_p=0.8, eos_token_id=config.eos_token_id)
    model.save_pretrained(folder, max_shard_size=shard)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(GOLDEN / f"tokenizer-{kind}.json"), **SPECIAL[kind])
    if kind == "qwen2":
        tokenizer.chat_template = CHATML
    tokenizer.save_pretrained(folder)


# ---- folders ----

SPELLING = {"dtype", "torch_dtype", "transformers_version"}


def same_config(folder, original, but=()):
    """A configuration says what the model's own does, as transformers reads both."""
    got, want = (load_config(f) for f in (folder, original))
    differ = {k for k in got.keys() | want.keys() if got.get(k) != want.get(k)} - SPELLING - set(but)
    expect(not differ, "; ".join(f"{k}: {got.get(k)}, not {want.get(k)}" for k in sorted(differ)))


def load_config(folder):
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(folder).to_dict() | {"_name_or_path": None}


def same_files(folder, original):
    """Files beside the weights are those of the model; generation settings are read as such."""
    kept = {p.name for p in original.iterdir()} - {"config.json"} - {p.name for p in original.glob("model*")}
    for name in sorted(kept):
        expect((folder / name).read_bytes() == (original / name).read_bytes(), f"{name} is another")
    got, want = (GenerationConfig.from_pretrained(f).to_dict() for f in (folder, original))
    expect(got == want, f"{got}, not {want}")


def same_tokenizer(got, want, texts=PLAIN):
    for text in texts:
        expect(got(text)["input_ids"] == want(text)["input_ids"], f"ids of {text!r}: {got(text)['input_ids']}, not {want(text)['input_ids']}")
    for special in ("bos_token_id", "eos_token_id"):  # one that the tokenizer lacks, a file has from the configuration
        was, now = getattr(want, special), getattr(got, special)
        expect(was is None or now == was, f"{special} is {now}, not {was}")
    if want.chat_template:
        turns = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "word"}]
        render = lambda t: t.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
        expect(render(got) == render(want), "the chat template is another")


def our_ids(folder, texts=PLAIN + FLAGS):
    """Compare token ids with those of transformers for each text, and the token that ends it."""
    rows, out = folder.parent / "texts.jsonl", folder.parent / "ids.bin"
    rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    out.unlink(missing_ok=True)
    count = int(nojit("tokenize", "--model", folder, "--data", rows, "--out", out).split()[0])
    got, theirs = np.fromfile(out, np.int32, offset=1024)[:count].tolist(), AutoTokenizer.from_pretrained(folder)
    for text in texts:
        want = theirs(text)["input_ids"]
        expect(got[: len(want)] == want, f"ids of {text!r}: {got[: len(want)]}, not {want}")
        got = got[len(want) + 1 :]
    expect(not got, f"{len(got)} ids are left over")


def same_weights(folder, original):
    got, want = load(folder).state_dict(), load(original).state_dict()
    expect(got.keys() == want.keys(), got.keys() ^ want.keys())
    for name, tensor in want.items():
        expect(torch.equal(got[name], tensor), f"{name} differs by {(got[name] - tensor).abs().max().item():g}")


def same_type(folder, kind):
    """Weights have the type that the configuration says, in which transformers computes if it is not told another."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    types = {str(t.dtype) for f in folder.glob("*.safetensors") for t in load_file(f).values()}
    expect(types == {f"torch.{kind}"} == {str(model.dtype)}, f"{types} in the files, {model.dtype} of the model")


def version4(folder, original):
    """The same model as transformers 4 spelled its configuration."""
    shutil.copytree(original, folder)
    c = json.loads((folder / "config.json").read_text())
    parameters = c.pop("rope_parameters")
    c["rope_theta"] = parameters.pop("rope_theta")
    c["rope_scaling"] = parameters if parameters["rope_type"] != "default" else None
    c["torch_dtype"] = c.pop("dtype")
    c.pop("layer_types", None)
    (folder / "config.json").write_text(json.dumps(c))
    return folder


def headless(original, out):
    AutoModel.from_pretrained(original).save_pretrained(out)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(original / name, out)
    expect_equal(our_logits(out), their_logits(load(original)))


def headed(original, out):
    """The head that a file has counts, whatever its configuration says."""
    shutil.copytree(original, out)
    weights = load_file(out / "model.safetensors")
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"].flip(0).contiguous()
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    expect_equal(our_logits(out), their_logits(load(out)))


def folders(name, theirs, d):
    check(f"{name} of transformers has its logits here", loads, theirs)
    check(f"{name} of transformers 4 has its logits here", lambda: expect_equal(our_logits(version4(d / "v4", theirs)), their_logits(load(theirs))))
    check(f"{name}: ids of texts are those of transformers", our_ids, theirs)
    check(f"{name} is trained", train, theirs, d / "trained", "--save-every", 1)
    for part in ("", "/checkpoint-1"):
        saved, said = d / f"trained{part}", f"{name}, trained{' (checkpoint)' if part else ''}:"
        check(f"{said} transformers has its logits", loads, saved)
        check(f"{said} its configuration is the model's", same_config, saved, theirs)
        check(f"{said} files beside its weights are the model's", same_files, saved, theirs)
    check(f"{name}, trained: its tokenizer is the model's", lambda: same_tokenizer(*map(AutoTokenizer.from_pretrained, (d / "trained", theirs)), PLAIN + FLAGS))
    for gpu, kind, how in (("h100", "bfloat16", ["--optimizer-state", "bf16"]), ("t4", "float16", [])):
        out, said = d / f"trained-{kind}", f"{name}, trained in {kind}:"
        check(f"{said} it is written", train, theirs, out, *how, steps=1, gpu=gpu)
        check(f"{said} transformers has its logits", loads, out)
        check(f"{said} its type is said", same_type, out, kind)
        check(f"{said} its configuration is the model's", same_config, out, theirs)
    check(f"{name} is trained on", train, theirs, d / "trained", "--save-every", 1, "--resume", "auto", steps=3)
    check(f"{name}, trained on: transformers has its logits", loads, d / "trained")
    check(f"{name} is not changed by a learning rate near 0", lambda: same_weights(train(theirs, d / "kept", steps=1, lr=1e-30), theirs))
    for form, more in {"shards": ["--shard-bytes", 100000], "float32": ["--dtype", "float32"], "bfloat16": ["--dtype", "bfloat16"],
                       "float16": ["--dtype", "float16"]}.items():  # fmt: skip
        said, out = f"{name}, copied as {form}:", d / form
        check(f"{said} it is written", nojit, "init", "--like", theirs, "--layers", "0,1", "--out", out, *more)
        check(f"{said} transformers has its logits", loads, out)
        if form != "shards":
            check(f"{said} its type is said", same_type, out, form)
        check(f"{said} its configuration is the model's", same_config, out, theirs)
        check(f"{said} files beside its weights are the model's", same_files, out, theirs)
    if MODELS[name][0].tie_word_embeddings:
        check(f"{name} without a head, as AutoModel saves it, has its logits here", headless, theirs, d / "bare")
        check(f"{name} without a head is trained", train, d / "bare", d / "whole")
        check(f"{name} without a head, trained: transformers has its logits", loads, d / "whole")
        check(f"{name} with a head of its own has its logits here", headed, theirs, d / "own")
        check(f"{name} with a head of its own is trained", train, d / "own", d / "own-trained")
        check(f"{name} with a head of its own, trained: transformers has its logits", loads, d / "own-trained")
    check(f"{name}, copied as shards: its weights are the model's", same_weights, d / "shards", theirs)
    check(f"{name}, copied as shards: there are several", lambda: expect(len(list((d / "shards").glob("model-*.safetensors"))) > 1, "one"))
    check(f"{name}, its second layer: it is written", nojit, "init", "--like", theirs, "--layers", 1, "--out", d / "half")
    check(f"{name}, its second layer: transformers has its logits", loads, d / "half")
    check(f"{name}, its second layer: its configuration is the model's", same_config, d / "half", theirs,
          ["num_hidden_layers", "layer_types"])  # fmt: skip


# ---- adapters ----


def adapted(folder, adapter):
    """The model with adapters, as PEFT loads them; every tensor of the file is one of PEFT's."""
    model = PeftModel.from_pretrained(load(folder), adapter).eval()
    wanted = {n.replace(".default.", ".") for n in model.state_dict() if "lora_" in n}
    found = set(load_file(adapter / "adapter_model.safetensors"))
    expect(found == wanted, f"tensors {sorted(found ^ wanted)[:3]}")
    return model


def peft_adapter(folder, out):
    torch.manual_seed(1)
    config = LoraConfig(r=4, lora_alpha=16, lora_dropout=0.1, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(load(folder), config)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.05)
    model.save_pretrained(out)


def adapters(name, d):
    base = d / "float32"
    file = [] if no_file(*MODELS[name][:2]) else ["--export", "f32"]
    check(f"{name}: adapters are trained", train, base, d / "adapters", "--lora-r", 4, "--merge", *file)
    check(f"{name}: PEFT has the logits of adapters", lambda: expect_equal(our_logits(d / "adapters/merged"), their_logits(adapted(base, d / "adapters"))))
    check(f"{name}, merged: transformers has its logits", loads, d / "adapters/merged")
    check(f"{name}, merged: its configuration is the model's", same_config, d / "adapters/merged", base)
    check(f"{name}, merged: files beside its weights are the model's", same_files, d / "adapters/merged", base)
    if file:
        check(f"{name}, merged into a file: it has the logits", lambda: expect_equal(our_logits(d / "adapters/model-f32.gguf"), our_logits(d / "adapters/merged")))
    check(f"{name}: PEFT saves adapters", peft_adapter, base, d / "peft")
    check(f"{name}: adapters of PEFT are merged", nojit, "merge", "--model", base, "--adapter", d / "peft", "--out", d / "peft-merged")
    check(f"{name}: adapters of PEFT have their logits here", lambda: expect_equal(our_logits(d / "peft-merged"), their_logits(adapted(base, d / "peft"))))
    check(f"{name}: adapters of PEFT are trained on", train, base, d / "more", "--adapter", d / "peft", "--merge")
    check(f"{name}: PEFT has the logits of these", lambda: expect_equal(our_logits(d / "more/merged"), their_logits(adapted(base, d / "more"))))


# ---- GGUF ----

PARTS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}  # fmt: skip
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def name_of(name):
    part, _, kind = name.rpartition(".")
    if part in WHOLE:
        return f"{WHOLE[part]}.{kind}"
    _, layer, part = part.split(".", 2)
    return f"model.layers.{layer}.{PARTS[part]}.{kind}"


def expanded(path, config):
    """The weights of a file as gguf dequantizes them, with the names and the order of rows of transformers."""
    state, reader = {}, gguf.GGUFReader(path)
    for t in reader.tensors:
        if t.name == "rope_freqs.weight":
            continue
        x = torch.tensor(gguf.dequantize(t.data, t.tensor_type).astype(np.float32)).reshape([int(n) for n in reversed(t.shape)])
        name = name_of(t.name)
        if reader.fields["general.architecture"].contents() == "llama" and ("q_proj" in name or "k_proj" in name):
            x = x.reshape(-1, config.head_dim // 2, 2, *x.shape[1:]).transpose(1, 2).reshape(x.shape)
        state[name] = x
    return state


def gguf_logits(path, folder):
    """The file's weights in a model of transformers with the folder's configuration."""
    model = load(folder)
    state = expanded(path, model.config)
    if model.config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state)
    expect_equal(our_logits(path), their_logits(model))


def gguf_loads(path, config):
    """The loader of transformers, where it reads all that such a file says."""
    if config.rope_parameters["rope_type"] == "llama3":
        raise Skipped("transformers does not read rope_freqs")
    if config.model_type == "qwen2" and config.hidden_size != 64 * config.num_attention_heads:
        raise Skipped("transformers does not read key_length of this architecture")
    if config.model_type == "qwen3" and config.head_dim != 128:
        raise Skipped("transformers does not read key_length of this architecture")
    model = load(path.parent, gguf_file=path.name)
    expect_equal(our_logits(path), their_logits(model))


def gguf_tokenizer(path, theirs):
    same_tokenizer(AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name), AutoTokenizer.from_pretrained(theirs))


def no_file(config, kind):
    """Why a model has no GGUF file, as nojit says it; or None."""
    if kind == "llama2":
        return "its tokenizer cuts texts as none of llama.cpp's pre-tokenizers"
    return "llama.cpp computes silu" if config.hidden_act != "silu" else None


def refused(why, command, *arguments):
    done = subprocess.run([build / "nojit", command, *map(str, arguments)], capture_output=True, text=True)
    expect(done.returncode == 1 and why in done.stderr, f"status {done.returncode}, {done.stderr.strip()[-250:]}")


def files(name, d):
    config, kind = MODELS[name][:2]
    why = no_file(config, kind)
    if why:
        check(f"{name} as f32: it is refused", refused, why, "export", "--model", d / "trained", "--out", d / "f32.gguf", "--type", "f32")
        check(f"{name} as f32: it is refused before training", refused, why, "train", "--student", d / "trained", "--data", work / "text.txt",
              "--out", d / "none", "--device", "cpu", "--seq-len", 32, "--steps", 1, "--export", "f32")  # fmt: skip
        check(f"{name} as f32: nothing is left of it", lambda: expect(not (d / "f32.gguf").exists() and not (d / "none").exists(), "a file is"))
        return
    for mixture in MIXTURES:
        out, said = d / f"{mixture}.gguf", f"{name} as {mixture}:"
        check(f"{said} it is written", nojit, "export", "--model", d / "trained", "--out", out, "--type", mixture)
        check(f"{said} gguf's weights have its logits", gguf_logits, out, d / "trained")
        check(f"{said} transformers has its logits", gguf_loads, out, config)
    check(f"{name} as f32: its logits are the folder's", lambda: expect_equal(our_logits(d / "f32.gguf"), our_logits(d / "trained")))
    check(f"{name} as f32: its tokenizer is the model's", gguf_tokenizer, d / "f32.gguf", d / "trained")
    for mixture in ("f32", "q4_k_m"):
        said = f"{name}, a folder of {mixture}:"
        check(f"{said} it is written", nojit, "export", "--model", d / f"{mixture}.gguf", "--out", d / f"back-{mixture}", "--type", "hf")
        check(f"{said} transformers has its logits", loads, d / f"back-{mixture}")
        check(f"{said} its tokenizer is the model's", lambda: same_tokenizer(*map(AutoTokenizer.from_pretrained, (d / f"back-{mixture}", d / "trained"))))
        check(f"{said} ids of texts are those of transformers", our_ids, d / f"back-{mixture}")
        check(f"{said} it is trained", train, d / f"{mixture}.gguf", d / f"trained-{mixture}")
        check(f"{said} transformers has the logits of that", loads, d / f"trained-{mixture}")


# ---- folders that other programs quantized ----

GROUPS = {"group of 32": dict(num_bits=4, type="int", symmetric=True, strategy="group", group_size=32),
          "group of 64, asymmetric": dict(num_bits=4, type="int", symmetric=False, strategy="group", group_size=64),
          "row": dict(num_bits=4, type="int", symmetric=True, strategy="channel"),
          "FP8 tensor": dict(num_bits=8, type="float", symmetric=True, strategy="tensor"),
          "FP8 row": dict(num_bits=8, type="float", symmetric=True, strategy="channel")}  # fmt: skip


def nf4(source, out, nested):
    """The model with the numbers of the folder that bitsandbytes quantized into out."""
    from bitsandbytes.functional import dequantize_4bit
    from transformers import BitsAndBytesConfig

    how = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=nested)
    held = AutoModelForCausalLM.from_pretrained(source, quantization_config=how, device_map="cpu", dtype=torch.float32)
    held.save_pretrained(out)
    model, parts = load(source), dict(held.named_modules())
    for name, part in model.named_modules():
        if hasattr(getattr(parts[name], "weight", None), "quant_state"):
            part.weight.data = dequantize_4bit(parts[name].weight.data, parts[name].weight.quant_state).float()
    return model


def bounds(w, how):
    """The least and the largest number that share a scale."""
    if how["strategy"] == "tensor":
        return w.min().reshape(1), w.max().reshape(1)
    each = w.reshape(w.shape[0], -1, how.get("group_size", w.shape[1]))
    return each.amin(2), each.amax(2)


def compressed(source, out, how):
    """The same of compressed-tensors."""
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationConfig, QuantizationScheme, apply_quantization_config
    from compressed_tensors.quantization.lifecycle.forward import dequantize, quantize
    from compressed_tensors.quantization.utils import calculate_qparams

    held, model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16), load(source)
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**how))
    apply_quantization_config(held, QuantizationConfig(config_groups={"group_0": scheme}, ignore=["lm_head"]))
    parts = dict(model.named_modules())
    for name, part in held.named_modules():
        if not isinstance(part, torch.nn.Linear) or not hasattr(part, "quantization_scheme"):
            continue
        scale, zero = calculate_qparams(*bounds(part.weight.data, how), part.quantization_scheme.weights)
        part.weight_scale.data = scale.to(part.weight_scale.dtype).reshape(part.weight_scale.shape)
        held_zero = getattr(part, "weight_zero_point", None)
        if held_zero is not None:
            held_zero.data = zero.to(held_zero.dtype).reshape(held_zero.shape)
        numbers = quantize(part.weight.data, part.weight_scale, held_zero, part.quantization_scheme.weights)
        parts[name].weight.data = dequantize(numbers, part.weight_scale.float(), held_zero, part.quantization_scheme.weights, dtype=torch.float32)
    compressor = ModelCompressor.from_pretrained_model(held)
    compressor.compress_model(held)
    held.save_pretrained(out)
    compressor.update_config(out)
    return model


def quantizers(source, d):
    """Test folders that the quantizers themselves write: a teacher keeps the weights, a student expands them."""
    made = {f"bitsandbytes, {kind}": ("bitsandbytes", nf4, nested) for kind, nested in (("NF4", False), ("NF4, nested", True))}
    made |= {f"compressed-tensors, {kind}": ("compressed_tensors", compressed, how) for kind, how in GROUPS.items()}
    for i, (said, (package, function, how)) in enumerate(made.items()):
        if importlib.util.find_spec(package) is None:
            print(f"skip {said}: its teacher has the logits here: name a PYTHON with PyPI's {package.replace('_', '-')}", flush=True)
            continue
        out, want = d / f"theirs-{i}", []
        check(f"{said}: it is made", lambda: want.append(their_logits(function(source, out, how))))
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(source / name, out)
        check(f"{said}: its teacher has the logits here", lambda: expect_equal(our_logits(out, teacher=True), want[0]))
        check(f"{said}: a student of it is trained", train, out, d / f"ours-{i}", steps=1, lr=1e-30)
        check(f"{said}: transformers has the logits of the student", lambda: expect_equal(their_logits(load(d / f"ours-{i}")), want[0]))


# ---- quantized folders ----


def quantized(kind, d):
    source, vocab = GOLDEN / "quantized" / kind, 23

    def same(folder):
        expect_equal(our_logits(source, vocab, teacher=True), their_logits(load(folder), vocab))
        said = json.loads((folder / "config.json").read_text())
        expect("quantization_config" not in said, "its configuration says that it is quantized")

    tokens = ["--data", work / "tokens.bin"]
    how = ["--device", "cpu", "--seq-len", 32, "--batch-size", 2, "--steps", 1, "--lr", 1e-30]
    check(f"{kind} is trained", nojit, "train", "--student", source, *tokens, "--out", d / "trained", *how)
    check(f"{kind}, trained: transformers has the logits of the quantized model", same, d / "trained")
    check(f"{kind}: its layers are copied", nojit, "init", "--like", source, "--layers", 0, "--dtype", "float32", "--out", d / "layers")
    check(f"{kind}, copied: transformers has the logits of the quantized model", same, d / "layers")
    check(f"{kind}: adapters are trained", nojit, "train", "--student", source, *tokens, "--out", d / "adapters", *how, "--lora-r", 2)
    check(f"{kind}: adapters are merged", nojit, "merge", "--model", source, "--adapter", d / "adapters", "--out", d / "merged")
    check(f"{kind}, merged: transformers has its logits", loads, d / "merged", vocab)
    check(f"{kind}, merged: its configuration is that of the trained model", same_config, d / "merged", d / "trained")


def main():
    torch.set_num_threads(1)
    disable_progress_bar()
    (work / "text.txt").write_text("\n".join((PLAIN + FLAGS) * 25))
    with open(work / "tokens.bin", "wb") as f:  # llm.c: 2,048 ids below 23
        np.array([20240520, 1, 2048] + [0] * 253, np.int32).tofile(f)
        np.array([i * i * 7 % 23 for i in range(2048)], np.uint16).tofile(f)
    for name in sys.argv[3:] or [*PRESETS, *MODELS, *QUANTIZED]:
        d = work / name
        d.mkdir()
        if name in PRESETS:
            check(f"a new {name} is written", nojit, "init", "--preset", name, "--dtype", "float32", "--out", d / "new")
            check(f"a new {name}: transformers has its logits", loads, d / "new", 250)
            check(f"a new {name}: its generation settings are read", GenerationConfig.from_pretrained, d / "new")
            continue
        if name in QUANTIZED:
            quantized(name, d)
            continue
        check(f"{name} is made by transformers", make, name, d / "theirs")
        folders(name, d / "theirs", d)
        adapters(name, d)
        files(name, d)
        if name == "llama3":
            quantizers(d / "theirs", d)
        shutil.rmtree(d)


main()
