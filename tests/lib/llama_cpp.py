#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp, from the PyPI package xllamacpp, and ggml's own reader and writer of GGUF, gguf, beside nojit.

    llama_cpp.py folders OUT           Hugging Face folders of tiny models with random weights: OUT/llama, qwen2, qwen3, narrow
    llama_cpp.py requantize IN TYPE OUT    the matrices of an F32 file as blocks of ggml's own quantizer
    llama_cpp.py compare FILE LOGITS COUNT ID...    what `logits-of FILE COUNT ID...` wrote, with llama.cpp's logits
    llama_cpp.py split IN OUT          OUT-00001-of-0000N.gguf and so on, of five tensors each
    llama_cpp.py tokenizer PRE IN OUT  the tokenizer.json IN as models of that pre-tokenizer have it, without the added tokens whose
                                       flags GGUF has no place for
    llama_cpp.py rename IN OUT PRE     the same file, with the name of another pre-tokenizer
    llama_cpp.py tokens FILE TEXT      the ids that llama.cpp gives the text, one per line
    llama_cpp.py continue FILE PROMPT COUNT    the prompt, and COUNT tokens of greedy decoding after it, as text

compare, on a file of F32: two programs sum the same products in different orders, in float32. A sum of n products is off by
about sqrt(n) 2^-24 of its root mean square; the longest path to a logit has 4 such sums a layer and one at its end, of 512 products
at most here, so two of them differ by sqrt(2 * 9 * 512) 2^-24 = 5.7e-6 of it, and the largest of 20,000 differences is 4 times that:
TIGHT = 2.5e-5. A quantized file is expanded to F32 by gguf and compared in the same way, since nojit multiplies by the expanded
weights. llama.cpp itself, on the quantized file, rounds activations to 8 bits, which is another function: their divergence is held
below LOOSE nats, five times the most that was seen and a twentieth of what Q4_K itself costs such a model."""
import ctypes
import glob
import json
import os
import sys

import numpy as np

TIGHT, LOOSE = 2.5e-5, 1e-3
VOCAB = 300


# ---- models ----
def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for x in tensors.values():
            f.write(x.tobytes())


def folder(path, kind, seed, hidden=256, inner=512, layers=2, heads=4, kv_heads=2, head_dim=64, tied=False, **more):
    random = np.random.default_rng(seed)
    normal = lambda *shape: (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
    gain = lambda n: (1 + 0.2 * random.standard_normal(n)).astype(np.float32)
    q, k = heads * head_dim, kv_heads * head_dim
    w = {"model.embed_tokens.weight": normal(VOCAB, hidden) * np.float32(np.sqrt(hidden)), "model.norm.weight": gain(hidden)}
    for i in range(layers):
        shapes = {"self_attn.q_proj": (q, hidden), "self_attn.k_proj": (k, hidden), "self_attn.v_proj": (k, hidden),
                  "self_attn.o_proj": (hidden, q), "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden),
                  "mlp.down_proj": (hidden, inner)}
        for name, shape in shapes.items():
            w[f"model.layers.{i}.{name}.weight"] = normal(*shape)
        for name in ("input_layernorm", "post_attention_layernorm"):
            w[f"model.layers.{i}.{name}.weight"] = gain(hidden)
        if kind == "qwen2":
            for name, n in (("q", q), ("k", k), ("v", k)):
                w[f"model.layers.{i}.self_attn.{name}_proj.bias"] = (gain(n) - 1) * np.float32(2)
        if kind == "qwen3":
            for name in "qk":
                w[f"model.layers.{i}.self_attn.{name}_norm.weight"] = gain(head_dim)
    if tied:
        w["model.embed_tokens.weight"] /= np.float32(np.sqrt(hidden))
    else:
        w["lm_head.weight"] = normal(VOCAB, hidden)
    os.makedirs(path)
    write_safetensors(f"{path}/model.safetensors", w)
    with open(f"{path}/config.json", "w") as f:
        json.dump({"model_type": kind, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
                   "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim, "vocab_size": VOCAB,
                   "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
                   "tie_word_embeddings": tied, "torch_dtype": "float32", **more}, f)


def folders(out):
    # The original context is short, so that positions beyond it, which are scaled, are reached.
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    folder(f"{out}/llama", "llama", 1, rope_scaling=scaling)
    folder(f"{out}/qwen2", "qwen2", 2, tied=True)
    folder(f"{out}/qwen3", "qwen3", 3, head_dim=128, heads=3, kv_heads=1)
    folder(f"{out}/narrow", "qwen2", 4, hidden=320, inner=288, heads=5, kv_heads=1)  # mixtures fall back to smaller blocks


# ---- files, by gguf ----
def rewrite(source, out, convert, pre=None, **how):
    """The same metadata, but no tokenizer of bytes: the package writes no empty list of merges. convert(name, tensor) -> (array, type)."""
    import gguf
    reader = gguf.GGUFReader(source)
    merges = reader.fields.get("tokenizer.ggml.merges")
    dropped = ("GGUF.", "general.architecture") if merges and merges.contents() else ("GGUF.", "general.architecture", "tokenizer.")
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents(), **how)
    for key, field in reader.fields.items():
        if key.startswith(dropped):
            continue
        if key == "tokenizer.ggml.pre" and pre:
            writer.add_string(key, pre)
        elif field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), field.types[0])
    if "tokenizer." in dropped:
        writer.add_string("tokenizer.ggml.model", "no_vocab")
    for t in reader.tensors:
        data, kind = convert(t.name, t)
        writer.add_tensor(t.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def values_of(t):
    import gguf
    return np.asarray(gguf.dequantize(t.data, t.tensor_type), np.float32).reshape([int(n) for n in reversed(t.shape)])


def expand(source, out):
    import gguf
    rewrite(source, out, lambda name, t: (values_of(t), gguf.GGMLQuantizationType.F32))


def requantize(source, name, out):
    import gguf
    kind = gguf.GGMLQuantizationType[name]
    lib = library()
    lib.ggml_quantize_chunk.restype = ctypes.c_size_t
    lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]

    def convert(name, t):
        x = values_of(t)
        if x.ndim < 2:
            return x, gguf.GGMLQuantizationType.F32
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = np.empty((x.shape[0], x.shape[1] // elements * size), np.uint8)
        lib.ggml_quantize_chunk(kind.value, x.ctypes.data, blocks.ctypes.data, 0, *x.shape, None)
        return blocks, kind
    rewrite(source, out, convert)


def split(source, out):
    rewrite(source, f"{out}.gguf", lambda name, t: (t.data, t.tensor_type), split_max_tensors=5)


# ---- llama.cpp ----
class Blob(ctypes.Structure):  # parameters, which are passed by value: their words are those of the pinned version
    _fields_ = [("word", ctypes.c_int32 * 256)]


class Batch(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embedding", ctypes.c_void_p),
                ("pos", ctypes.POINTER(ctypes.c_int32)), ("sequences", ctypes.POINTER(ctypes.c_int32)),
                ("sequence", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))), ("logits", ctypes.POINTER(ctypes.c_int8))]


def library():
    import xllamacpp
    return ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(xllamacpp.__file__), "*.so"))[0])


N_CTX, N_BATCH, N_UBATCH, FLASH_ATTENTION, TYPE_K, TYPE_V = 0, 1, 2, 13, 26, 27
said = []


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def listen(level, text, user):
    said.append(text.decode(errors="replace"))


class Llama:
    def __init__(self, path):
        self.lib = lib = library()
        lib.llama_log_set(listen, None)
        for name in ("llama_model_default_params", "llama_context_default_params"):
            getattr(lib, name).restype = Blob
        lib.llama_model_load_from_file.restype = lib.llama_init_from_model.restype = ctypes.c_void_p
        lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Blob]
        lib.llama_init_from_model.argtypes = [ctypes.c_void_p, Blob]
        lib.llama_batch_init.restype = Batch
        lib.llama_decode.argtypes = [ctypes.c_void_p, Batch]
        lib.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
        lib.llama_get_logits_ith.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        lib.llama_backend_init()
        model = lib.llama_model_load_from_file(path.encode(), lib.llama_model_default_params())
        if not model:
            sys.exit(f"{path}: llama.cpp does not load it: {''.join(said)[-300:]}")
        p = lib.llama_context_default_params()
        if (p.word[FLASH_ATTENTION], p.word[TYPE_K], p.word[TYPE_V]) != (-1, 1, 1):
            sys.exit("xllamacpp: its parameters lie elsewhere in this version")
        p.word[N_CTX] = p.word[N_BATCH] = p.word[N_UBATCH] = 512
        p.word[FLASH_ATTENTION] = p.word[TYPE_K] = p.word[TYPE_V] = 0  # off; keys and values in F32
        self.context = lib.llama_init_from_model(model, p)
        self.at = 0
        lib.llama_model_get_vocab.restype = ctypes.c_void_p
        lib.llama_model_get_vocab.argtypes = lib.llama_vocab_n_tokens.argtypes = [ctypes.c_void_p]
        self.vocab = lib.llama_model_get_vocab(model)
        self.size = lib.llama_vocab_n_tokens(self.vocab)

    def text(self, token):
        self.lib.llama_token_to_piece.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_bool]
        out = ctypes.create_string_buffer(512)
        count = self.lib.llama_token_to_piece(self.vocab, token, out, len(out), 0, True)
        return out.raw[:count]

    def tokens(self, text):
        lib, room = self.lib, len(text) + 16
        lib.llama_tokenize.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32), ctypes.c_int32,
                                       ctypes.c_bool, ctypes.c_bool]
        out = (ctypes.c_int32 * room)()
        count = lib.llama_tokenize(self.vocab, text, len(text), out, room, True, True)
        return out[:count]

    def logits(self, ids):
        """[ids, vocabulary], of ids that continue those before."""
        b = self.lib.llama_batch_init(len(ids), 0, 1)
        b.count = len(ids)
        for i, token in enumerate(ids):
            b.token[i], b.pos[i], b.sequences[i], b.sequence[i][0], b.logits[i] = token, self.at + i, 1, 0, 1
        if self.lib.llama_decode(self.context, b) != 0:
            sys.exit("llama_decode failed")
        self.at += len(ids)
        return np.stack([np.ctypeslib.as_array(self.lib.llama_get_logits_ith(self.context, i), (self.size,)).copy() for i in range(len(ids))])

    def greedy(self, last, count):
        """The tokens that follow, from the logits of the last one on."""
        out = []
        for _ in range(count):
            out.append(int(last.argmax()))
            last = self.logits(out[-1:])[-1]
        return out


def log_softmax(x):
    x = x.astype(np.float64)
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def compare(path, logits, more, ids):
    import gguf
    quantized = any(t.tensor_type.name != "F32" for t in gguf.GGUFReader(path).tensors)
    exact = path + ".f32" if quantized else path
    if quantized:
        expand(path, exact)
    with open(logits, "rb") as f:
        data = f.read()
    half = len(ids) * VOCAB * 4
    student, teacher = (np.frombuffer(data[at:at + half], np.float32).reshape(len(ids), VOCAB) for at in (0, half))
    greedy = list(np.frombuffer(data[2 * half:], np.int32))
    model = Llama(exact)
    want = model.logits(ids)
    tight = TIGHT * np.sqrt(np.mean(want.astype(np.float64) ** 2))
    for name, got in (("student", student), ("teacher", teacher)):
        error = np.abs(got - want).max()
        if not error <= tight:
            sys.exit(f"{path}: the {name}'s logits are off by {error:.3g}, more than {tight:.3g}")
    text = model.greedy(want[-1], more)
    if greedy != text:
        sys.exit(f"{path}: greedy decoding gives {greedy}, llama.cpp {text}")
    summary = f"off by {np.abs(teacher - want).max():.2g} of {tight:.2g}"
    if quantized:
        p, q = log_softmax(Llama(path).logits(ids)), log_softmax(teacher)
        divergence = float((np.exp(p) * (p - q)).sum(-1).mean())
        if not divergence <= LOOSE:
            sys.exit(f"{path}: llama.cpp's logits of the file diverge by {divergence:.3g} nats, more than {LOOSE}")
        summary += f", llama.cpp's own rounding {divergence:.2g} nats"
    print(summary)


# ---- tokenizers ----
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
          r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
HAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
# The patterns of a file in turn.
PATTERNS = {
    "smaug-bpe": [WORDS], "tekken": [TEKKEN],
    "qwen35": [WORDS.replace(r"\p{N}{1,3}", r"\p{N}").replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"?[^\s\p{L}\p{N}]", r"?[^\s\p{L}\p{M}\p{N}]")],
    "gpt-4o": [TEKKEN.replace("|[^", CONTRACTIONS + "?|[^", 1).replace(r"*|\p{N}|", r"*" + CONTRACTIONS + r"?|\p{N}{1,3}|")],
    "deepseek-v3": [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
                    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN, r"\p{N}"],
    "minicpm5": [r"\p{N}{1,3}", WORDS.replace(r"\p{N}{1,3}", r"\p{N}+")],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
}


def split_parts(patterns):
    splits = [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False} for p in patterns]
    return {"type": "Sequence", "pretokenizers": [*splits, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                                                            "use_regex": False}]}


def tokenizer(pre, source, out):
    with open(source, encoding="utf-8") as f:
        root = json.load(f)
    flags = ("lstrip", "rstrip", "single_word", "normalized")
    root["added_tokens"] = [t for t in root["added_tokens"] if not any(t[flag] for flag in flags)]
    if pre == "smollm":
        digits = {"type": "Digits", "individual_digits": True}
        root["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, root["pre_tokenizer"]]}
    if pre == "olmo":
        root["normalizer"] = {"type": "NFC"}
    if pre in PATTERNS:
        root["pre_tokenizer"] = split_parts(PATTERNS[pre])
    if pre not in ("llama-bpe", "tekken", "qwen2", "gemma4"):
        root["model"]["ignore_merges"] = pre == "minicpm5"
        root["post_processor"] = None
    with open(out, "w", encoding="utf-8") as f:
        json.dump(root, f)


def rename(source, out, pre):
    rewrite(source, out, lambda name, t: (t.data, t.tensor_type), pre)


def tokens(path, text):
    with open(text, "rb") as f:
        print(*Llama(path).tokens(f.read()), sep="\n")


def carry_on(path, prompt, count):
    model = Llama(path)
    ids = model.tokens(prompt.encode())
    sys.stdout.buffer.write(b"".join(model.text(t) for t in ids + model.greedy(model.logits(ids)[-1], int(count))) + b"\n")


if __name__ == "__main__":
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "compare":
        compare(arguments[0], arguments[1], int(arguments[2]), [int(x) for x in arguments[3:]])
    else:
        {"folders": folders, "requantize": requantize, "split": split, "tokenizer": tokenizer, "rename": rename, "tokens": tokens,
         "continue": carry_on}[command](*arguments)
