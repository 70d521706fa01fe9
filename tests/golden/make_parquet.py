#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_parquet.py [FOLDER [SEED ROWS]]: one table in Parquet files of many writer settings, and its rows as pyarrow reads
them in rows.jsonl. Without arguments tests/golden/parquet, which test_parquet.c reads; for another folder set NOJIT_PARQUET
to it. Needs pyarrow (26.0.1 made what is there)."""
import json
import math
import random
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

words = "the quick brown fox jumps over a lazy dog été 東京 😀 \n \t".split(" ")


def text(rng, most=12):
    return " ".join(rng.choice(words) for _ in range(rng.randrange(most)))


def maybe(rng, value, share=0.2):
    return None if rng.random() < share else value


def conversation(rng):
    turn = [{"role": r, "content": maybe(rng, text(rng), 0.1)} for r in ("user", "assistant") * rng.randrange(3)]
    return maybe(rng, [maybe(rng, t, 0.05) for t in turn])


message = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
parts = pa.list_(pa.struct([("role", pa.string()), ("content", pa.list_(pa.struct([("type", pa.string()), ("text", pa.string())])))]))


def table(rng, rows):
    some = range(rows)
    column = {
        "text": pa.array([text(rng) for _ in some]),
        "maybe": pa.array([maybe(rng, text(rng)) for _ in some], pa.large_string()),
        "label": pa.array([maybe(rng, rng.choice(words)) for _ in some]).dictionary_encode(),
        "messages": pa.array([conversation(rng) for _ in some], message),
        "parts": pa.array([maybe(rng, [{"role": "user", "content": [{"type": "text", "text": text(rng)} for _ in range(rng.randrange(3))]}
                                       for _ in range(rng.randrange(3))]) for _ in some], parts),
        "lists": pa.array([maybe(rng, [maybe(rng, [maybe(rng, rng.randrange(9)) for _ in range(rng.randrange(3))])
                                       for _ in range(rng.randrange(3))]) for _ in some], pa.list_(pa.list_(pa.int32()))),
        "small": pa.array([maybe(rng, rng.randrange(-128, 128)) for _ in some], pa.int8()),
        "whole": pa.array([rng.randrange(-2**63, 2**63) for _ in some], pa.int64()),
        "counts": pa.array([i * 7 for i in some], pa.int64()),
        "unsigned": pa.array([rng.randrange(2**32) for _ in some], pa.uint32()),
        "real": pa.array([rng.choice([0.5, -1.25, math.nan, math.inf, 3e300]) for _ in some], pa.float64()),
        "single": pa.array([maybe(rng, rng.randrange(1000) / 8) for _ in some], pa.float32()),
        "flag": pa.array([maybe(rng, rng.random() < 0.5) for _ in some], pa.bool_()),
        "all": pa.array([rng.random() < 0.5 for _ in some], pa.bool_()),
        "when": pa.array([rng.randrange(10**15) for _ in some], pa.int64()).cast(pa.timestamp("us")),
        "bytes": pa.array([text(rng).encode() for _ in some], pa.binary()),
        "map": pa.array([maybe(rng, [(f"k{k}", maybe(rng, k)) for k in range(rng.randrange(3))]) for _ in some],
                        pa.map_(pa.string(), pa.int32())),
        "nothing": pa.nulls(rows, pa.string()),
    }
    fields = [pa.field(n, a.type, nullable=n not in ("text", "whole", "all")) for n, a in column.items()]
    return pa.table(list(column.values()), schema=pa.schema(fields))


def plain(value):
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {k: plain(v) for k, v in value}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def rows_of(path):
    t = pq.read_table(path)
    for i, f in enumerate(t.schema):
        if pa.types.is_timestamp(f.type):
            t = t.set_column(i, f.name, t.column(i).cast(pa.int64()))
        elif pa.types.is_map(f.type):
            empty = [{} if v == [] else v for v in t.column(i).to_pylist()]
            t = t.set_column(i, f.name, pa.array([json.dumps(plain(v)) for v in empty]))
    maps = [f.name for f in pq.read_schema(path) if pa.types.is_map(f.type)]
    for row in t.to_pylist():
        row = plain(row)
        for name in maps:
            row[name] = json.loads(row[name])
        yield row


strings = ["text", "maybe", "messages.list.element.content"]
ints = ["small", "whole", "counts", "unsigned", "lists.list.element.list.element"]
CASES = {
    "snappy": {},
    "none": {"compression": "none"},
    "gzip": {"compression": "gzip"},
    "zstd": {"compression": "zstd", "write_page_checksum": True},
    "lz4": {"compression": "lz4"},
    "plain": {"use_dictionary": False},
    "page_v2": {"data_page_version": "2.0"},
    "page_v2_plain": {"data_page_version": "2.0", "use_dictionary": False, "compression": "zstd"},
    "small_pages": {"data_page_size": 64, "write_batch_size": 3, "dictionary_pagesize_limit": 100},
    "small_groups": {"row_group_size": 7},
    "delta": {"use_dictionary": False, "data_page_size": 300, "write_batch_size": 40, "column_encoding":
              {**{c: "DELTA_BINARY_PACKED" for c in ints}, **{c: "DELTA_LENGTH_BYTE_ARRAY" for c in strings}}},
    "delta_bytes": {"use_dictionary": False, "data_page_version": "2.0", "column_encoding": {c: "DELTA_BYTE_ARRAY" for c in strings}},
    "split": {"use_dictionary": False, "column_encoding": {c: "BYTE_STREAM_SPLIT" for c in ("whole", "small", "real", "single")}},
    "rle_booleans": {"use_dictionary": False, "data_page_version": "2.0", "column_encoding": {"flag": "RLE", "all": "RLE"}},
    "old_lists": {"use_compliant_nested_type": False},
    "version_1": {"version": "1.0"},
    "statistics": {"write_statistics": True, "write_page_index": True, "store_schema": False},
}


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "parquet"
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    rows = int(sys.argv[3]) if len(sys.argv) > 3 else 16
    folder.mkdir(exist_ok=True)
    made = table(rng, rows)
    for name, settings in CASES.items():
        path = folder / f"{name}.parquet"
        pq.write_table(made, path, **settings)
        read = "".join(json.dumps(r) + "\n" for r in rows_of(path))
        if name == "snappy":
            (folder / "rows.jsonl").write_text(read)
        elif (folder / "rows.jsonl").read_text() != read:
            sys.exit(f"{name}: pyarrow reads other rows")


main()
