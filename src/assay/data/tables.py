"""Reads tables from files, and classes from their labels."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from assay.data.examples import is_cloze
from assay.errors import AssayError, reason

# Reads tables in the usual formats into columns of plain values

Columns = dict[str, Sequence[Any]]
SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet")


def table_suffix(path: Path) -> str | None:
    """The suffix of the format, without .gz, or None for an unknown format."""
    name = path.name.lower()
    text = next((suffix for suffix in SUFFIXES[:-1] if name.removesuffix(".gz").endswith(suffix)), None)
    return ".parquet" if name.endswith(".parquet") else text


def read_table(path: Path) -> Columns:
    """The columns of a csv, tsv, jsonl, json or parquet file; text formats may be compressed as .gz."""
    suffix = table_suffix(path)
    if path.is_dir():
        raise AssayError(f"{path} is a folder; name one file: {', '.join(SUFFIXES)}.")
    if suffix is None:
        raise AssayError(f"{path} has no suffix that assay reads; use one of {', '.join(SUFFIXES)} (.gz is fine).")
    if not path.is_file():
        raise AssayError(f"{path} does not exist; check the path.")
    columns = READERS[suffix](path)
    if not columns or not len(next(iter(columns.values()))):
        raise AssayError(f"{path} holds no rows; give a file with at least a few labelled texts.")
    return columns


def read_rows(path: Path, *names: str) -> list[tuple[Any, ...]]:
    """The cells of the named columns, row by row."""
    table = read_table(path)
    absent = [name for name in names if name not in table]
    if absent:
        raise AssayError(f"{path} has no column {absent[0]!r}; it is not the copy that was expected.")
    return list(zip(*(table[name] for name in names), strict=True))


def read_text(path: Path) -> str:
    """The content of a plain or .gz file in UTF-8, without a byte order mark."""
    try:
        data = path.read_bytes()
        if path.suffix.lower() == ".gz":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise AssayError(
            f"{path} is not UTF-8: byte {fault.start:,} (line {line:,}) cannot be read; save it as UTF-8."
        ) from fault
    except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
        raise AssayError(f"{path} is damaged or not a gzip file ({fault}); make or fetch it again.") from fault
    except OSError as fault:
        raise AssayError(f"{path} cannot be read ({fault.strerror}); check its permissions.") from fault


def read_texts(path: Path) -> list[str]:
    """The texts in a file: the lines of a .txt file, or the column "text" of a table; blank ones are left out."""
    if not path.is_file():
        raise AssayError(f"{path} does not exist; check the path.")
    plain = path.name.lower().removesuffix(".gz").endswith(".txt")
    cells = read_text(path).splitlines() if plain else [cell for (cell,) in read_rows(path, "text")]
    texts = [str(cell).strip() for cell in cells if cell is not None and str(cell).strip()]
    if not texts:
        raise AssayError(f"{path} holds no text; write one a line.")
    return texts


def separated_rows(text: str, delimiter: str, quoted: bool = True) -> list[list[str]]:
    """The rows of delimiter-separated text, without blank lines; quoted values may contain newlines."""
    csv.field_size_limit(2**31 - 1)  # a text may be longer than the 128 KiB that the module allows by default
    lines = io.StringIO(text, newline="")
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    try:
        return [row for row in reader if row]
    except csv.Error as fault:
        raise ValueError(f"line {reader.line_num:,}: {fault}") from fault


def read_csv(path: Path) -> Columns:
    """The columns of a csv file with a header row."""
    try:
        rows = separated_rows(read_text(path), ",")
    except ValueError as fault:
        raise AssayError(f"{path}, {fault}; quotes inside a quoted value must be doubled.") from fault
    return under_header(rows, path)


def read_tsv(path: Path) -> Columns:
    """The columns of a tab-separated file with a header row, quoted or not."""
    text = read_text(path)
    plain = separated_rows(text, "\t", quoted=False)
    try:
        rows = separated_rows(text, "\t")
    except ValueError:
        return under_header(plain, path)
    # Many such files do not quote: where stray quote marks would swallow rows that are whole without them,
    # they are mere characters.
    swallowed = len(rows) < len(plain) and len({len(row) for row in plain}) == 1
    return under_header(plain if swallowed else rows, path)


def under_header(rows: list[list[str]], path: Path) -> Columns:
    """Rows as columns named by the first row; all rows must have its length."""
    if len(rows) < 2:
        return {}
    header, *body = rows
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise AssayError(f"{path} names two columns {twice!r:.40}; rename one (is there a header row?).")
    uneven = next((number for number, row in enumerate(body, 1) if len(row) != len(header)), None)
    if uneven is not None:
        counts = f"{len(body[uneven - 1])} values under {len(header)} column names"
        raise AssayError(f"{path}, row {uneven:,} has {counts}; quote values that hold separators or newlines.")
    return dict(zip((name.strip() for name in header), zip(*body, strict=True), strict=True))


def read_json(path: Path) -> Columns:
    """The columns of JSON lines, or of one JSON list, whose items are objects; absent keys become None."""
    text = read_text(path)
    if text.lstrip().startswith("["):
        items = dict(enumerate(json_value(text, f"{path}"), 1))
    else:
        lines = {number: line for number, line in enumerate(text.split("\n"), 1) if line.strip()}
        items = {number: json_value(line, f"{path}, line {number:,}") for number, line in lines.items()}
    odd = next((number for number, item in items.items() if not isinstance(item, dict)), None)
    if odd is not None:
        raise AssayError(f"{path}, item {odd:,} is not a JSON object with named values; write one a line.")
    names = dict.fromkeys(name for item in items.values() for name in item)
    return {name: [item.get(name) for item in items.values()] for name in names}


def json_value(text: str, where: str) -> Any:
    """Parses JSON, with the location in the error message."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise AssayError(f"{where} is not valid JSON ({reason(fault)}); write one JSON object a line.") from fault


def read_parquet(path: Path) -> Columns:
    """The columns of a parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path.absolute()) as opened:
            table = opened.read()
        return {name: table[name].to_pylist() for name in table.column_names}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
        raise AssayError(f"{path} is not a readable parquet file ({reason(fault)}); write it again.") from fault


READERS: dict[str, Callable[[Path], Columns]] = {
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".jsonl": read_json,
    ".json": read_json,
    ".parquet": read_parquet,
}


# Parses labels and maps them to classes

MOST_CLASSES = 100
LONGEST = 200  # characters of the name of a class
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


class Label(NamedTuple):
    """A parsed label; sorting by its fields gives the natural order."""

    kind: str
    number: int
    name: str


def classes_of(values: Sequence[object], where: str, least: int = 2) -> tuple[list[int], tuple[str, ...]]:
    """The class index of each value, and at least `least` class names; `where` opens error messages."""
    labels = [parse(value, where) for value in values]
    present = sorted(set(labels))
    check(present, where, least)
    numbers = {label: number for number, label in enumerate(present)}
    return [numbers[label] for label in labels], tuple(label.name for label in present)


def missing(value: object) -> bool:
    """Whether a cell is empty: None, blank, or NaN."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def parse(value: object, where: str) -> Label:
    """Parses one label: a word, a whole number or a truth value."""
    if isinstance(value, bool):
        return Label("truth values", int(value), str(value).lower())
    if isinstance(value, str) and (len(value.strip()) > LONGEST or not NUMBER.fullmatch(value.strip())):
        return Label("words", 0, value.strip())
    if not isinstance(value, (str, int, float)):
        raise AssayError(f"{where} holds {value!r:.40}, which is no label; use words or whole numbers.")
    number = whole_number(value)
    if number is None:
        raise AssayError(f"{where} holds the rating {value}; turn ratings into a few classes first.")
    return Label("numbers", number, str(number))


def whole_number(value: str | int | float) -> int | None:
    """The whole number that `value` stands for, or None."""
    if isinstance(value, str) and "." in value:
        value = float(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return int(value)


def check(present: Sequence[Label], where: str, least: int = 2) -> None:
    """Raises an error for labels of several kinds, and for too few or too many classes."""
    kinds = {label.kind: label.name for label in present}
    if len(kinds) > 1:
        mixed = " and ".join(f"{kind} (such as {name!r:.40})" for kind, name in kinds.items())
        raise AssayError(f"{where} mixes {mixed}; use one kind throughout.")
    if not present:
        raise AssayError(f"{where} holds no label in any row that has a text; fill it in or name another column.")
    if (longest := max(present, key=lambda label: len(label.name)).name)[LONGEST:]:
        raise AssayError(
            f"{where} holds a label of {len(longest):,} characters, {longest!r:.40}…; at most {LONGEST} make sense: "
            "is it the right column?"
        )
    if len(present) < least:
        raise AssayError(f"{where} holds one class alone, {present[0].name!r:.40}; at least two are needed.")
    if len(present) > MOST_CLASSES and not is_cloze([label.name for label in present]):
        many = f"{len(present):,} different values"
        raise AssayError(f"{where} holds {many}; at most {MOST_CLASSES} classes make sense: is it the right column?")
