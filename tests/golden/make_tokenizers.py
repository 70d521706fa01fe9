#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/tokenizer-{qwen2,llama3,gpt2,llama2,gemma}.json, what each makes of some texts (-ids.json), and of others after
edits (tokenizer-cases.json).

The vocabularies are trained on the sentences below, the ids come from the `tokenizers` library:
    python3 -m venv /tmp/v && /tmp/v/bin/pip install tokenizers==0.23.3
    /tmp/v/bin/python tests/golden/make_tokenizers.py
The files are kept in the tree; neither build nor tests run this. `make_tokenizers.py cases` writes the ids after edits alone.
"""
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

SENTENCES = """
The kettle sings before the rain begins, and nobody in the house is ready for either of them.
She counted 12 boats, 345 gulls and 67890 grains of sand; then she'd had enough, hadn't she?
It's what they've said: we're late, I'm early, he'll wait, you'd better run. THEY'LL SEE, IT'S FINE.
Der Bäcker an der Ecke verkauft früh am Morgen süße Brötchen, größer als ein Fußball.
Le garçon a mangé une crêpe à côté de l'hôtel, où l'été s'achève sans bruit.
El niño pequeño preguntó: ¿cuándo llegará el pingüino? ¡Mañana por la mañana!
Žluťoučký kůň běží přes les, řeka šumí a tráva se třpytí.
Zażółć gęślą jaźń, powiedział wróbel, i odleciał na południe.
Старый моряк смотрел на море и считал волны, пока не стемнело.
Ο γέρος κοίταζε τη θάλασσα και μετρούσε τα κύματα ώσπου νύχτωσε.
老渔夫坐在岸边数着海浪，直到天黑。今天的风很大，船都没有出海。
年老いた漁師は岸辺に座り、日が暮れるまで波を数えていた。カモメが鳴く。
늙은 어부는 바닷가에 앉아 어두워질 때까지 파도를 세었다.
جلس الصياد العجوز على الشاطئ يعد الأمواج حتى حل الظلام.
הדייג הזקן ישב על החוף וספר גלים עד שירד החושך.
बूढ़ा मछुआरा किनारे पर बैठकर अँधेरा होने तक लहरें गिनता रहा।
ชาวประมงเฒ่านั่งนับคลื่นอยู่ริมฝั่งจนมืดค่ำ
Ngư dân già ngồi đếm sóng bên bờ biển cho đến khi trời tối.
🌊🌊 waves 🐟 fish ⛵️ boats 👩‍👩‍👧‍👦 family 🏳️‍🌈 flag 🇫🇷 👍🏽 ok
int main(void) { for (int i = 0; i < 1024; i++) total += values[i] * 0x7f; return total != 0; }
def wave(height, *, period=2.5):\n    if height > 3:\n        return "storm"\n    return f"{height:.2f} m"
<p class="note">x &lt; y &amp;&amp; y &gt; z</p>\t<!-- tabs\there -->\r\n{"key": [1, 2.5e-3, null], "path": "C:\\\\dir"}
SELECT name, COUNT(*) FROM boats WHERE length >= 12.5 GROUP BY name ORDER BY 2 DESC; -- 99%
a\u0301 e\u0308 n\u0303 o\u0302 are letters with marks of their own; \u212b and \u2126 are signs.
one  two   three    four     five\n\n\nsix \n \n seven\t\teight \u3000nine\u00a0ten
""".strip().replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r").replace("\\u0301", "\u0301")

TEXTS = [
    "", " ", "  ", "   ", "\n", "\r\n", "\n\n\n", " \n", "\n ", "  \n  \n  ", "\t", "\t\t\tx", "a ", " a", " a ", "  a", "   a  b   ",
    "x\n\ny", "x \n y", "x\r\n\r\ny", "x\r\ry", "x \t y", "x\u00a0y", "x\u00a0\u00a0y", "x\u3000y", "\u2003\u2003z", "x\u0085y",
    "x\u2028y\u2029z", "x\u180ey", "x\u200by", "\ufeffx", "x\u0000y", "\u0007\u001b[0m", "\x7f", "it's", "IT'S", "it'S fine", "we'LL go",
    "they'Ve I'M he'D", "'s", "''s", "'tis", "' s", "'\u017f", "a'\u017fb", "l'été", "rock'n'roll", "x'rex'vex'llx", "don't can't won't",
    "1", "12", "123", "1234", "12345678901", "3.14159", "1,000,000", "-1e-9", "0x7fff", "\u0661\u0662\u0663\u0664", "½⅓", "x²y³", "Ⅳ Ⅸ",
    "一二三", "①②③", "1a2b3c", "a1b22c333d4444", " 1", "  12", "\u00a01", "x1 2y", "२०२६", "!", "!!", " !", " !!\n", "!\n\n", "...\r\n...",
    "a.b", "a. b", "a .b", "(x)", "[[y]]", "{\n  \"k\": [1, 2]\n}", "if (a != b) {\n\treturn;\n}\n", "C:\\dir\\file.txt", "/usr/lib//x.so.1",
    "https://example.org/a?b=c&d=%20#e", "user@example.org", "snake_case camelCase SCREAMING_CASE", "a-b–c—d", "“quoted” ‘single’ «guillemets»",
    "¿qué? ¡no!", "süße Brötchen", "Größe", "crêpe", "garc\u0327on", "e\u0301te\u0301", "a\u0301\u0323", "a\u0323\u0301", "\u0301x", " \u0301",
    "\u212b \u2126 \u212a", "\u0958\u0959", "\u0bc6\u0bbe", "\u1100\u1161\u11a8", "\uac00\u11a8", "\ud55c\uad6d\uc5b4", "\u0344", "\u2adc",
    "\U0001d15e", "\ufb01 \ufb03", "\uf900", "q\u0307\u0323", "Ạ\u0302", "漁師は岸辺に", "直到天黑。", "今天，我们", "ชาวประมง", "मछुआरा", "हिन्दी में",
    "الصياد العجوز", "הדייג הזקן", "Ελλάδα", "Привет, мир!", "Žluťoučký kůň", "Zażółć gęślą", "🌊", "🌊🌊🌊", "a🌊b", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇫🇷🇩🇪", "👍🏽👍🏿",
    " 🐟 ", "⛵️", "☃\ufe0f", "\U0001f9d1\u200d\U0001f680", "𝒳𝓎 𝟙𝟚", "\U00010400\U00010428", "\U000e0001", "\ue000", "\U0010ffff", "\ufffd",
    "<|endoftext|>", "a<|endoftext|>b", "a <|endoftext|> b", "<|endoftext|><|endoftext|>", "<|endoftext|", "<|im_start|>user\nhi<|im_end|>\n",
    "<|im_start|>system<|im_end|>", "<|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>", "<left>x", "x  <left>  y", "x <right>  \n y",
    "<right>", "  <left><right>  ", "word", "a word here", "sword", "wordy", "word.", "_word", "9word", "é word", "wordé", "<é>", "<e\u0301>",
    "x<é>y", "<tool> a b</tool>", "aa", "aaa", "aaaa" * 40, "ab" * 300, "=" * 70, "-" * 33 + "\n", " " * 50 + "x", "\n" * 30, "0" * 50,
    "The kettle sings", "unreachable", " unreachable", "unreachable unreachable", "unReachable", "naïve façade — déjà vu", "tab\tsep\tvalues\n",
]


def noise(rng):
    """A text of odd neighbours."""
    parts = ["a", "Z", "é", "e\u0301", "1", "٣", "½", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u2028", "'s", "'LL", "'", ".", "!?", "_", "字", "ト",
             "가", "\u1100\u1161", "\u0302", "\u200d", "🌊", "<|endoftext|>", "<left>", "<right>", "word", "ſ", "हि", "\u0e33", "<é>", "\u0345"]
    return "".join(rng.choice(parts) for _ in range(rng.randint(3, 30)))


def added():
    return [
        AddedToken("<left>", lstrip=True, normalized=False),
        AddedToken("<right>", rstrip=True, normalized=False),
        AddedToken("word", single_word=True, normalized=True),
        AddedToken("<é>", normalized=True),
        AddedToken("<tool>", normalized=False),
    ]


def train(pre, special, normalizer=None):
    t = Tokenizer(models.BPE())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=1256, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    t.train_from_iterator([SENTENCES] * 3, trainer)
    t.add_special_tokens(special)
    t.add_tokens(added())
    return t


def split(digits):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(WORDS.replace("DIGITS", digits)), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def document(t):
    return json.loads(t.to_str())


def shift_added(d):
    """Makes room for a token of the vocabulary by moving the added ones up by one."""
    for a in d["added_tokens"]:
        a["id"] += 1


def make():
    out = {}
    out["qwen2"] = document(train(split(r"\p{N}"), ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], normalizers.NFC()))

    d = document(train(split(r"\p{N}{1,3}"), ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]))
    # A word that no merge makes: ignore_merges finds it all the same.
    shift_added(d)
    d["model"]["vocab"]["Ġunreachable"] = max(d["model"]["vocab"].values()) + 1
    d["model"]["ignore_merges"] = True
    begin = next(a["id"] for a in d["added_tokens"] if a["content"] == "<|begin_of_text|>")
    d["post_processor"] = {"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        {"type": "TemplateProcessing",
         "single": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
         "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
         "special_tokens": {"<|begin_of_text|>": {"id": "<|begin_of_text|>", "ids": [begin], "tokens": ["<|begin_of_text|>"]}}}]}
    out["llama3"] = d

    d = document(train(pre_tokenizers.ByteLevel(add_prefix_space=False), ["<|endoftext|>"]))
    d["model"]["merges"] = [" ".join(m) for m in d["model"]["merges"]]
    d["post_processor"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    out["gpt2"] = d
    out["llama2"] = spaces()
    out["gemma"] = gemma()
    return out


def spaces():
    """A tokenizer of the SentencePiece kind, as that of Llama 2: spaces are U+2581, unknown code points fall back to bytes."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")  # no merge reaches over a word
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=1000, special_tokens=special, limit_alphabet=200, show_progress=False)
    t.train_from_iterator([SENTENCES] * 3, trainer)
    t.add_tokens(added())
    d = document(t)
    d["pre_tokenizer"] = None
    d["added_tokens"] = [a for a in d["added_tokens"] if not a["content"].startswith("<0x")]
    d["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    return d


def gemma():
    """As Gemma's: nothing before a text, runs of spaces and of line feeds are tokens, which are merged first; always a token before a text."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Replace(" ", "\u2581")
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Metaspace(prepend_scheme="never")])
    special = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special, limit_alphabet=160, initial_alphabet=["\n", "\u2581"], show_progress=False)
    t.train_from_iterator([SENTENCES] * 3, trainer)
    d = document(t)
    vocab, merges = d["model"]["vocab"], []
    for part in ["\n", "\u2581"]:
        for n in range(2, 9):
            vocab[part * n] = len(vocab)
            merges += [[part * k, part * (n - k)] for k in range(1, n)]
    d["model"]["merges"] = merges + d["model"]["merges"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    d["added_tokens"] = [{"id": vocab[t], "content": t, **flags, "special": True} for t in special[:4]]
    d["added_tokens"] += [{"id": vocab[p * n], "content": p * n, **flags, "special": False} for p in ["\n", "\u2581"] for n in range(2, 9)]
    d["added_tokens"] += [{"id": len(vocab) + i, "content": t, **flags, "special": special} for i, (t, special) in enumerate(
        [("<start_of_turn>", True), ("<end_of_turn>", True), ("<tool>", False), ("<left>", False)])]
    d["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    d["post_processor"] = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}}}
    d["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]}
    return d


def variants(files):
    """Settings that test_tokenizer.c edits into the files, with their ids."""
    yield from files.items()
    text = json.dumps(files["gpt2"])
    d = json.loads(text)
    d["pre_tokenizer"]["add_prefix_space"] = True
    yield "gpt2-prefix", d
    d = json.loads(text)
    d["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, d["pre_tokenizer"]]}
    yield "gpt2-digits", d
    d = json.loads(json.dumps(files["qwen2"]))
    pattern = d["pre_tokenizer"]["pretokenizers"][0]["pattern"]
    pattern["Regex"] = pattern["Regex"].replace(r"?\p{L}+", r"?[\p{L}\p{M}]+")
    yield "qwen2-marks", d


# Patterns that other engines read otherwise than the library's; the fifth is Kimi K2's.
PATTERNS = [
    r"(?=(\d{3})+(?!\d))", r"[[:alpha:]]+|[[:digit:]]{1,2}|[[:^punct:]]|[[:punct:]x]+", r"\h+|\H", r"a{,2}|\p{L}{,3}",
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"^.|.$", r"(?m)e.", r"a*", "", r"\w+|\W", r"\b", r"t\Kh", r"\Gt|\Gh", r"(?i)SSE|ſ", r"(?~the)", r"[[:punct:]]", r"[[:^punct:]]+", r"(?<=t)\p{L}|(?<!1)\d",
]


def replaced(text, edits):
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def spaces_cases():
    prepend = '{"type":"Prepend","prepend":"\u2581"},'
    normalizer = '{"type":"Sequence","normalizers":[' + prepend + '{"type":"Replace","pattern":{"String":" "},"content":"\u2581"}]}'
    yield "llama2", []
    yield "llama2", [[prepend, ""]]
    yield "llama2", [[prepend, ""], ['"pre_tokenizer":null', '"pre_tokenizer":{"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false}']]
    for scheme in ["first", "always", "never"]:
        for cut in ["true", "false"]:
            yield "llama2", [[normalizer, "null"], ['"pre_tokenizer":null', '"pre_tokenizer":{"type":"Metaspace","replacement":"\u2581","prepend_scheme":"%s","split":%s}' % (scheme, cut)]]
    # A merge over the border of words; no bytes to fall back to; unknown code points apart.
    yield "llama2", [['"vocab":{', '"vocab":{"e\u2581":1000,'], ['"merges":[', '"merges":[["e","\u2581"],']]
    yield "llama2", [['"byte_fallback":true', '"byte_fallback":false']]
    yield "llama2", [['"byte_fallback":true', '"byte_fallback":false'], ['"fuse_unk":true', '"fuse_unk":false']]
    # As transformers 5 writes a tokenizer.model: U+2581 before each stretch of text, one that begins with U+2581 too; symbols apart.
    twice = '{"type":"Sequence","normalizers":[{"type":"Replace","pattern":{"String":" "},"content":"\u2581"},{"type":"Replace","pattern":{"Regex":"\\\\A\u2581"},"content":"\u2581\u2581"}]}'
    apart = '{"type":"Sequence","pretokenizers":[{"type":"Metaspace","replacement":"\u2581","prepend_scheme":"always","split":false},' \
            '{"type":"Split","pattern":{"Regex":"\\\\$5|he"},"behavior":"Isolated","invert":false}]}'
    yield "llama2", [[normalizer, twice], ['"pre_tokenizer":null', '"pre_tokenizer":' + apart], ['"ignore_merges":false', '"ignore_merges":true']]
    # A whole text that is a token, and words that are tokens without a merge.
    yield "llama2", [[prepend, ""], ['"vocab":{', '"vocab":{"naïve":1000,"▁theatre":1001,'], ['"ignore_merges":false', '"ignore_merges":true']]


def behaviors():
    """Splits by each behavior, with a pattern that has empty matches, too; and OLMo 2's, which keeps the matches."""
    level = '{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}'
    plain = json.loads(level.replace('"use_regex":true', '"use_regex":false'))
    rules = [(behavior, invert) for behavior in ["Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"] for invert in [False, True]]
    for i, (behavior, invert) in enumerate(rules):
        splits = [{"type": "Split", "pattern": p, "behavior": behavior, "invert": invert}
                  for p in [{"Regex": r"t*|\d{1,2}|\s"}, {"String": "$5." if i % 2 else "e"}][i % 3 == 0:]]
        yield "gpt2", [[level, json.dumps({"type": "Sequence", "pretokenizers": [*splits, plain]}, ensure_ascii=False, separators=(",", ":"))]]
    yield "llama3", [['"behavior":"Isolated","invert":false', '"behavior":"Removed","invert":true']]


def cases():
    """(golden file, edits of its text) that test_tokenizer.c makes, too."""
    level = '{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}'
    for pattern in PATTERNS:
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        both = {"type": "Sequence", "pretokenizers": [split, json.loads(level.replace('"use_regex":true', '"use_regex":false'))]}
        yield "gpt2", [[level, json.dumps(both, ensure_ascii=False, separators=(",", ":"))]]
    # As many patterns as DeepSeek Coder has; without a decoder.
    splits = [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False}
              for p in [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"]]
    many = {"type": "Sequence", "pretokenizers": [*splits, {"type": "Digits", "individual_digits": True},
                                                  json.loads(level.replace('"use_regex":true', '"use_regex":false'))]}
    yield "gpt2", [[level, json.dumps(many, ensure_ascii=False, separators=(",", ":"))],
                   ['"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}', '"decoder":null']]
    yield from behaviors()
    yield from spaces_cases()
    # With a token that is looked for in normalized text, too.
    normalized = '{"id":1300,"content":"\u2460","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,"special":false},'
    yield "qwen2", [['"type":"NFC"', '"type":"NFKC"']]
    yield "qwen2", [['"type":"NFC"', '"type":"NFKC"'], ['"added_tokens":[', '"added_tokens":[' + normalized]]
    # Bytes 4 and 5 without a token of their own: left out, or an unknown token for each, or for several.
    missing = [['"\u0104"', '"Ā4"'], ['"\u0105"', '"Ā5"']]
    yield "gpt2", missing
    yield "gpt2", missing + [['"unk_token":null', '"unk_token":"!"']]
    yield "gpt2", missing + [['"unk_token":null', '"unk_token":"!"'], ['"fuse_unk":false', '"fuse_unk":true']]
    # Added tokens whose ids the library changes; one that comes again with other flags; one of the vocabulary.
    fields = '"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false}'
    yield "gpt2", [['"added_tokens":[', '"added_tokens":[{"id":1300,"content":"Rain",%s,{"id":7,"content":"the",%s,' % (fields, fields)]]
    yield "gpt2", [['"added_tokens":[', '"added_tokens":[{"id":9,"content":"tt",%s,{"id":9,"content":"tt",%s,' % (fields, fields.replace('"rstrip":false', '"rstrip":true'))]]


def write_cases(texts):
    out = []
    for name, edits in cases():
        t = Tokenizer.from_str(replaced((HERE / f"tokenizer-{name}.json").read_text(), edits))
        rows = [json.dumps([x, t.encode(x, add_special_tokens=False).ids], separators=(",", ":")) for x in texts]
        head = json.dumps({"golden": name, "edits": edits}, separators=(",", ":"))
        out.append(head[:-1] + ',"rows":[\n' + ",\n".join(rows) + "\n]}")
    (HERE / "tokenizer-cases.json").write_text("[\n" + ",\n".join(out) + "\n]\n")


CASE_TEXTS = [
    "", "a", "aaaa", "the other theatre", "1234567", "12 3456 789012", "x1234567y", "deadbeef 0xFFz", "a\nb\n\nc", "\r\nthe end\r\n", "漢字とthe字",
    "直到天黑ABC", "It's $5.00 + 10% = ?", "^_^ `x` <y> ~z~ |w|", "© 2026 €9", "STRASSE straſse", "it's IT'S", "  two  spaces ", "the\u0301me",
    "house of the wise", "0 1 22 333 4444 55555", "naïve", "🌊 wave🌊s", "\u00a0x\u3000", "snake_case", "tttthhhh", "Žluťoučký kůň", "\x00a\x07", "ʰªⅷ²",
    "the\u2581other \u2581 the", "</s>the <left> the<right>  the", " </s> ", "<0x41> the", "<tool>the word sword word", "  the", "e e  e the <é>", "_the_ -- the", "e\ne \re", "th\u0004e", " += <  >= != ", "Rain tt the ttt tt  tt", "\u0004\u0005\u0006", "a\u0005\u0004b\u0006 the",
    "\ufb01ne \u2460\u212b\u00bd\u00b2 \u3322\uff8a\uff9f\uff21", "\u0385 \u03d3 \u1e9b \uc448\u11a7\u11a8 a\u00a8\u0323 \u32ff\u0301 \U0001e030\u0301",
]


def main():
    HERE.mkdir(exist_ok=True)
    rng = random.Random(7)
    texts = TEXTS + [noise(rng) for _ in range(60)]
    files = make()
    for name, d in files.items():
        (HERE / f"tokenizer-{name}.json").write_text(json.dumps(d, ensure_ascii=False, separators=(",", ":")) + "\n")
    for name, d in variants(files):
        t = Tokenizer.from_str(json.dumps(d))
        rows = [json.dumps([x, t.encode(x, add_special_tokens=False).ids], separators=(",", ":")) for x in texts]
        (HERE / f"tokenizer-{name}-ids.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")
    write_cases(CASE_TEXTS)


if __name__ == "__main__":
    if sys.argv[1:] == ["cases"]:
        write_cases(CASE_TEXTS)
    else:
        main()
