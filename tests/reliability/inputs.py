"""What loaders may be given: files of every kind, whole, odd and damaged, as hypothesis draws them."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

ODD = [
    "",
    " ",
    "\x00",
    "\ufeff",
    '"',
    '""',
    "'",
    "a\nb",
    "a\r\nb",
    "\t",
    ",",
    "\\",
    "💥",
    "\u202e",
    "NaN",
    "null",
    "-0",
]
ODD += [
    "1e999",
    "1_000",
    "½",
    "٣",
    "9" * 5000,
    "x" * 200_000,
    "=1+1",
    "<script>",
    "@entity1",
    "@placeholder",
    "[[0, 1]]",
]
ODD += ["[[5, 2]]", "train", "test", "dev", "TRAIN ", "true", "1.5", "4.0"]
CELLS = st.sampled_from(ODD) | st.text(max_size=12) | st.sampled_from(["good film", "bad film", "yes", "no", "0", "1"])
COLUMNS = ["text", "label", "split", "query", "evidence", "Text", "", "rating", "text ", "\ufefftext", "answer", "id"]
CODECS = ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252", "utf-7"]

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | CELLS
JSON = st.recursive(
    PLAIN, lambda each: st.lists(each, max_size=4) | st.dictionaries(CELLS, each, max_size=4), max_leaves=12
)


@st.composite
def damaged(draw: st.DrawFn, contents: st.SearchStrategy[bytes]) -> bytes:
    """Bytes as they were, or cut, with some flipped, doubled, or zeroed."""
    content = bytearray(draw(contents))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, max(0, len(content) - 1)))
        match draw(st.sampled_from(["flip", "cut", "drop", "insert", "zero"])):
            case "flip" if content:
                content[place] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del content[place:]
            case "drop":
                del content[place : place + draw(st.integers(1, 64))]
            case "insert":
                content[place:place] = draw(st.binary(max_size=16))
            case "zero":
                content[place : place + 8] = b"\0" * 8
    return bytes(content)


@st.composite
def separated(draw: st.DrawFn, delimiter: str) -> bytes:
    """A table of odd cells, quoted well, badly or not at all, in some encoding."""
    header = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4) | st.just(["text", "label"]))
    rows = draw(st.lists(st.lists(CELLS, min_size=len(header), max_size=len(header)), max_size=12))
    quote = draw(st.sampled_from([lambda cell: cell, lambda cell: '"' + cell.replace('"', '""') + '"', repr]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
    text = end.join(delimiter.join(map(quote, row)) for row in [header, *rows])
    content = text.encode(draw(st.sampled_from(CODECS)), errors="replace")
    return gzip.compress(content) if draw(st.integers(0, 9)) == 0 else content


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """JSON lines, or one list, of objects that have some of the columns, or of anything."""
    row = st.dictionaries(st.sampled_from(COLUMNS), JSON, max_size=4) | JSON
    rows = draw(st.lists(row | st.fixed_dictionaries({"text": CELLS, "label": PLAIN}), max_size=10))
    if draw(st.booleans()):
        return json.dumps(rows).encode()
    return draw(st.sampled_from(["\n", "\r\n", "\n\n"])).join(map(json.dumps, rows)).encode()


TYPES = [
    st.lists(CELLS | st.none(), min_size=6, max_size=6),
    st.lists(st.integers(-9, 9) | st.none(), min_size=6, max_size=6),
    st.lists(st.floats(width=32), min_size=6, max_size=6),
    st.lists(st.binary(max_size=4), min_size=6, max_size=6),
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.lists(st.dates(), min_size=6, max_size=6),
    st.lists(st.decimals(0, 9, places=2), min_size=6, max_size=6),
    st.lists(st.lists(st.integers(0, 3), max_size=2), min_size=6, max_size=6),
    st.lists(st.fixed_dictionaries({"a": st.integers(0, 3)}), min_size=6, max_size=6),
    st.just([None] * 6),
]


@st.composite
def parquet(draw: st.DrawFn) -> bytes:
    """A parquet file with columns of any type."""
    names = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4, unique=True) | st.just(["text", "label"]))
    table = pa.table({name: pa.array(draw(st.one_of(TYPES))) for name in names})
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()


TABLES = {
    ".csv": separated(","),
    ".tsv": separated("\t"),
    ".jsonl": lines(),
    ".json": lines(),
    ".parquet": parquet(),
    ".csv.gz": separated(",").map(gzip.compress),
}


def toml(value: Any) -> str:
    """A value as TOML writes it; None, which it has no word for, is left out by the caller."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value) if value == value and abs(value) != float("inf") else "nan" if value != value else "inf"
    return json.dumps(value).replace("\x7f", "\\u007f") if not isinstance(value, Bare) else str(value)


class Bare(str):
    """What stands in TOML without quotes, such as a date."""


ENTRIES = ["name", "corpora", "seeds", "data_seed", "models", "audits", "questions", "corpus", "encoder", "hidden"]
ENTRIES += [
    "embedding",
    "epochs",
    "train",
    "base",
    "path",
    "explainers",
    "limit",
    "epsilon",
    "audit",
    "measure",
    "avoid",
]
ENTRIES += [
    "seed",
    "sha256",
    "joined",
    "shown",
    "preset",
    "projection",
    "shape",
    "against",
    "subjects",
    "dropout_words",
]
VALUES = (
    st.booleans()
    | st.integers(-3, 2**70)
    | st.floats()
    | st.sampled_from([Bare("2020-01-01"), Bare("07:32:00"), "planted:keyword", "attention", "lstm", "lime(samples=1)"])
    | st.sampled_from(["erasure", "softmax", "sparsegen(", "sst", ".", "../..", "plan.toml", "\x00", "minilm", ""])
    | st.text(max_size=8)
)
TREES = st.recursive(
    VALUES,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(ENTRIES), each, max_size=3),
    max_leaves=10,
)
USUAL: dict[str, Any] = {
    "corpora": ["planted:keyword"],
    "seeds": [0],
    "models": {"one": {"encoder": "lstm", "hidden": 8}},
    "audits": {"explainers": ["attention"], "audits": ["truth"], "limit": 4},
}


@st.composite
def plans(draw: st.DrawFn) -> bytes:
    """A plan with some entries changed, left out or added, some levels down."""
    plan = json.loads(json.dumps(USUAL))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.sampled_from([plan, plan["models"], plan["models"]["one"], plan["audits"]]))
        place[draw(st.sampled_from([*place, *ENTRIES] if place else ENTRIES))] = draw(TREES)
        if not all(isinstance(plan.get(name), dict) for name in ("models", "audits")):
            break
        if not isinstance(plan["models"].get("one"), dict):
            break
    return "\n".join(f"{name} = {toml(value)}" for name, value in plan.items()).encode(errors="replace")


@st.composite
def lying(draw: st.DrawFn) -> bytes:
    """A safetensors file whose header does not keep to the truth."""
    size = st.integers(0, 9) | st.sampled_from([-1, 2**31, 2**63, 2**64, 10**30])
    entry = st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["F32", "F64", "I64", "BOOL", "Q9", ""]),
            "shape": st.lists(size, max_size=3),
            "data_offsets": st.lists(size, min_size=2, max_size=2) | JSON,
        }
    )
    header = json.dumps(draw(st.dictionaries(CELLS | st.just("embedding.weight"), entry | JSON, max_size=3))).encode()
    length = draw(st.just(len(header)) | st.integers(0, 2**64 - 1))
    return length.to_bytes(8, "little") + header + draw(st.binary(max_size=64))


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """A JSON value with one part, some levels down, in place of which anything stands, or nothing."""
    if not value or not isinstance(value, dict | list) or draw(st.integers(0, 3)) == 0:
        return draw(JSON)
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    key = draw(st.sampled_from(sorted(copy)) if isinstance(copy, dict) else st.integers(0, len(copy) - 1))
    if draw(st.integers(0, 5)) == 0:
        del copy[key]
    else:
        copy[key] = draw(changed(copy[key]))
    return copy
