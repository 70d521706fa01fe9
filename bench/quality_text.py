#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Text and tokenizer for quality.sh and defaults.sh: quality_text.py OUT VOCABULARY MEGABYTES FOLDER...

Collects documentation, source code and licence texts below the folders, writes OUT/train/*.txt and OUT/held-out/*.txt,
trains a byte-level BPE on a sample of the former, and writes OUT/shape-NAME/{config,tokenizer}.json for each of SHAPES.

A folder of files is held out as a whole (one in 40, by the hash of its path), so that what is held out is no neighbour
of what is trained on. Files that are equal are taken once, and so are files that share most lines with one before.
"""
import hashlib
import json
import os
import random
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

KINDS = (".py", ".pyi", ".rst", ".md", ".txt", ".h", ".hpp", ".cuh", ".c", ".cpp", ".cu", ".html")
SHAPES = {  # about 137 and 34, 37 and 9 million parameters with 16,384 tokens
    "teacher": dict(hidden_size=896, intermediate_size=2560, num_hidden_layers=14, num_attention_heads=14),
    "student": dict(hidden_size=512, intermediate_size=1408, num_hidden_layers=9, num_attention_heads=8),
    "small-teacher": dict(hidden_size=512, intermediate_size=1408, num_hidden_layers=10, num_attention_heads=8),
    "small-student": dict(hidden_size=256, intermediate_size=704, num_hidden_layers=6, num_attention_heads=4),
}


def digest(text):
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def files_below(folders):
    for folder in folders:
        for place, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                path = os.path.join(place, name)
                if (name.endswith(KINDS) or name == "copyright") and not os.path.islink(path):
                    yield place, path


def read(path):
    try:
        if 200 <= os.path.getsize(path) <= 400_000:
            return open(path, encoding="utf-8").read()
    except (OSError, UnicodeDecodeError):
        pass
    return None


def select(folders, limit):
    """Texts by side, at most `limit` bytes in all."""
    paths = list(files_below(folders))
    random.Random(1).shuffle(paths)
    seen, chosen, total = set(), {"train": [], "held-out": []}, 0
    for place, path in paths:
        text = read(path)
        if text is None or total > limit:
            continue
        lines = {digest(line.strip()) for line in text.splitlines() if len(line.strip()) > 12}
        if len(lines & seen) * 2 > len(lines):
            continue
        seen |= lines
        chosen["held-out" if digest(place) % 40 == 0 else "train"].append(text)
        total += len(text)
    return chosen


def train_tokenizer(texts, vocabulary):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def main():
    out, vocabulary, megabytes = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    chosen = select(sys.argv[4:], megabytes * 1e6)
    for side, texts in chosen.items():
        os.makedirs(f"{out}/{side}", exist_ok=True)
        for i, text in enumerate(texts):
            open(f"{out}/{side}/{i}.txt", "w", encoding="utf-8").write(text)
        print(f"{side}: {len(texts)} files, {sum(map(len, texts)) / 1e6:.1f} MB")
    tokenizer = train_tokenizer(chosen["train"][:: max(1, len(chosen["train"]) // 4000)], vocabulary)
    for name, shape in SHAPES.items():
        os.makedirs(f"{out}/shape-{name}", exist_ok=True)
        tokenizer.save(f"{out}/shape-{name}/tokenizer.json")
        config = dict(
            model_type="qwen2", architectures=["Qwen2ForCausalLM"], hidden_act="silu", num_key_value_heads=2,
            vocab_size=vocabulary, eos_token_id=0, rope_theta=10000.0, rms_norm_eps=1e-6, tie_word_embeddings=True,
            max_position_embeddings=1024, **shape)
        json.dump(config, open(f"{out}/shape-{name}/config.json", "w"), indent=2)


main()
