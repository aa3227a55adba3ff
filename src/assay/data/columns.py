"""Corpora from the columns of a table, from files, and from folders of questions."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from assay.data.examples import ENTITY, Corpus, Example, Span, among_entities, is_cloze
from assay.data.tables import classes_of, missing, read_table, read_text
from assay.errors import AssayError

# Deterministic splits by a hash of each text: identical texts stay together

Examples = tuple[Example, ...]
Item = TypeVar("Item")


def fraction(text: str, seed: int) -> float:
    """A hash of text and seed as a uniform number in [0, 1)."""
    mark = hashlib.blake2b(f"{seed} {text.strip()}".encode(), digest_size=8).digest()
    return int.from_bytes(mark, "big") / 2**64


def lowest(
    items: Sequence[Item], texts: Sequence[str], share: float, seed: int
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """The items whose hash is at most `share`, at least one text, and the others."""
    fractions = [fraction(text, seed) for text in texts]
    limit = max(share, min(fractions, default=share))
    pairs = list(zip(items, fractions, strict=True))
    chosen = tuple(item for item, mark in pairs if mark <= limit)
    return chosen, tuple(item for item, mark in pairs if mark > limit)


def texts(examples: Sequence[Example]) -> list[str]:
    """The text of each example."""
    return [example.text for example in examples]


def train_dev(examples: Sequence[Example], seed: int = 0) -> tuple[Examples, Examples]:
    """Nine tenths to train on and one tenth to choose by."""
    dev, train = lowest(examples, texts(examples), 0.1, seed)
    return train, dev


def train_dev_test(examples: Sequence[Example], seed: int = 0) -> tuple[Examples, Examples, Examples]:
    """Eight tenths, one tenth and one tenth."""
    test, others = lowest(examples, texts(examples), 0.1, seed)
    dev, train = lowest(others, texts(others), 0.2, seed)
    return train, dev, test


# Reads a corpus from a user's table of labelled texts

USUAL_NAMES = {
    "text": ("text", "sentence", "review", "content", "premise", "context", "passage", "article"),
    "label": ("label", "class", "sentiment", "target", "category", "rating", "stars", "score", "gold_label", "answer"),
    "split": ("split", "exp_split"),
    "query": ("query", "question", "hypothesis"),
}
SPLITS = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
    "test": "test",
}

Row = dict[str, Any]  # the cells of one row, by what they are for: text, label, split, query, evidence


@dataclass(frozen=True)
class Columns:
    """The column names for each purpose; defaults also match the usual other names.

    An empty `query` stands for none: each text is read alone.
    """

    text: str = "text"
    label: str = "label"
    split: str | None = None
    query: str | None = None
    evidence: str | None = None


def read_file(path: Path, columns: Columns, seed: int, whole: bool = False) -> Corpus:
    """The corpus in a table; incomplete rows are left out and counted.

    Without a split column the seed and each text decide its split: 80, 10 and 10 %. As a `whole` it is not to be learnt
    from, and all of it is the test.
    """
    name = Path(path.name.removesuffix(".gz")).stem
    return read_columns(read_table(path), columns, name, str(path), seed, whole)


def read_columns(
    table: Mapping[str, Sequence[Any]], columns: Columns, title: str, path: str, seed: int, whole: bool = False
) -> Corpus:
    """The same from columns in memory, which come from `path`."""
    names = chosen_columns(columns, list(table), path)
    cells = zip(*(table[name] for name in names.values()), strict=True)
    rows = {number: dict(zip(names, values, strict=True)) for number, values in enumerate(cells, 1)}
    lacking = {number: lack(row) for number, row in rows.items()}
    kept = {number: row for number, row in rows.items() if lacking[number] is None}
    told = f"{path}, column {names['label']!r}"
    labels, classes = classes_of([row["label"] for row in kept.values()], told, least=1 if whole else 2)
    examples = [
        as_example(row, label, f"{path}, row {number:,}")
        for (number, row), label in zip(kept.items(), labels, strict=True)
    ]
    none: Examples = ()
    if "split" not in names and whole:
        train, dev, test = none, none, tuple(examples)
    elif "split" in names:
        where = f"{path}, column {names['split']!r}"
        train, dev, test = given_splits(examples, [row["split"] for row in kept.values()], where, seed)
    else:
        train, dev, test = train_dev_test(examples, seed)
    skipped = dict(Counter(reason for reason in lacking.values() if reason is not None))
    corpus = Corpus(title, classes, train, dev, test, skipped)
    corpus = among_entities(corpus) if is_cloze(classes) else corpus
    if not whole:
        check_splits(corpus.train, corpus.test, corpus.classes, path)
    return corpus


def chosen_columns(columns: Columns, there: Sequence[str], path: str) -> dict[str, str]:
    """The column for each purpose; a usual name never takes a column that was assigned explicitly."""
    chosen: dict[str, str] = {}
    given = {name for purpose, name in asdict(columns).items() if name != purpose}
    for purpose, wanted in asdict(columns).items():
        usual = USUAL_NAMES.get(purpose, ()) if wanted in (None, purpose) else ()
        by_lower = {name.lower(): name for name in reversed(there) if name not in given}
        exact = wanted if wanted and wanted in there else None
        found = exact or next((by_lower[name] for name in usual if name in by_lower), None)
        if found is not None:
            chosen[purpose] = found
        elif wanted:
            listed = ", ".join(f"{name!r:.40}" for name in there[:20])
            raise AssayError(f"{path} has no column {wanted!r} to take the {purpose} from; it has {listed}.")
    return chosen


def lack(row: Row) -> str | None:
    """Why a row cannot be used, or None."""
    needed = (purpose for purpose in row if purpose != "evidence")
    return next((f"no {purpose}" for purpose in needed if missing(row[purpose])), None)


def as_example(row: Row, label: int, where: str) -> Example:
    """One row as an example."""
    text = as_text(row["text"], where)
    query = as_text(row["query"], where) if "query" in row else None
    return Example(text, label, as_evidence(row.get("evidence"), len(text), where), query)


def as_text(value: object, where: str) -> str:
    """A cell that must hold text."""
    if not isinstance(value, str):
        raise AssayError(f"{where} holds {value!r:.40} instead of text; name another column or quote it.")
    try:
        value.encode()
    except UnicodeEncodeError as fault:
        raise AssayError(f"{where} holds half of a surrogate pair, which is not valid text; remove it.") from fault
    return value


def as_evidence(value: object, length: int, where: str) -> tuple[Span, ...] | None:
    """A list of [start, end] character spans, as such or as JSON, or None for an empty cell."""
    if missing(value):
        return None
    try:
        pairs = json.loads(value) if isinstance(value, str) else value
        spans = tuple((int(start), int(end)) for start, end in pairs)  # type: ignore[union-attr]
    except (TypeError, ValueError):
        spans = ((-1, -1),)
    if not all(0 <= start < end <= length for start, end in spans):
        raise AssayError(
            f"{where} holds the evidence {value!r:.40}; give [start, end] pairs of characters in the text."
        )
    return spans


def given_splits(
    examples: Iterable[Example], names: Sequence[object], where: str, seed: int
) -> tuple[Examples, Examples, Examples]:
    """Examples by the file's split column; without dev, a tenth of train becomes dev."""
    strange = next((name for name in names if str(name).strip().lower() not in SPLITS), None)
    if strange is not None:
        raise AssayError(f"{where} holds {strange!r:.40}; use train, dev and test, or rename the column.")
    parts: dict[str, list[Example]] = {"train": [], "dev": [], "test": []}
    for example, name in zip(examples, names, strict=True):
        parts[SPLITS[str(name).strip().lower()]].append(example)
    train, dev = (parts["train"], parts["dev"]) if parts["dev"] else train_dev(parts["train"], seed)
    return tuple(train), tuple(dev), tuple(parts["test"])


def check_splits(train: Examples, test: Examples, classes: Sequence[str], path: str) -> None:
    """Raises an error for a corpus that cannot be learnt or tested; dev and test may lack a class."""
    for name, part in (("train", train), ("test", test)):
        if not part:
            raise AssayError(f"{path} leaves no row to {name} on; give more rows, or a column 'split' with all three.")
    absent = [name for number, name in enumerate(classes) if number not in {example.label for example in train}]
    if absent:
        raise AssayError(f"{path} has no training example of {absent[0]!r:.40}; add some, or leave the class out.")


# Cloze questions in folders, as those on CNN's and the Daily Mail's news are distributed


def read_folder(path: Path, seed: int) -> Corpus:
    """The corpus in subfolders training, validation and test of *.question files (Hermann et al. 2015).

    Without validation a tenth of training becomes dev.
    """
    inner = path / "questions"  # as the archive is unpacked
    folders = [folder for folder in (inner if inner.is_dir() else path).iterdir() if folder.name.lower() in SPLITS]
    files = {file: folder.name for folder in sorted(folders) for file in sorted(folder.glob("*.question"))}
    if not files:
        raise AssayError(
            f"{path} is a folder; name one file, or a folder with training, validation and test in it, "
            "which hold *.question files."
        )
    rows = [read_question(file) for file in files]
    labels, classes = classes_of([answer for *_, answer in rows], f"{path}")
    examples = [Example(text, label, query=query) for (text, query, _), label in zip(rows, labels, strict=True)]
    train, dev, test = given_splits(examples, list(files.values()), f"{path}", seed)
    corpus = among_entities(Corpus(path.resolve().name, classes, train, dev, test))
    check_splits(corpus.train, corpus.test, corpus.classes, str(path))
    return corpus


def read_question(path: Path) -> tuple[str, str, str]:
    """The text, the question and the answer of one file: an address, these three and the names of the entities.

    There are blank lines between these parts; only the text may have some inside.
    """
    _, _, body = read_text(path).partition("\n")
    parts = [part.strip() for part in re.split(r"\n\s*\n", body.strip())]
    if re.match(rf"{ENTITY}:", parts[-1]):
        parts.pop()
    if len(parts) < 3 or not re.fullmatch(ENTITY, parts[-1]):
        raise AssayError(
            f"{path} is no cloze question: a text, a question and an answer such as @entity1 were expected."
        )
    *text, query, answer = parts
    return "\n".join(text), query, answer
