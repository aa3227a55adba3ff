"""Corpora: by name, in a file, in a table, or in a list of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.data.columns import SPLITS, Columns, read_columns, read_file, read_folder
from assay.data.examples import Corpus, thinned
from assay.data.examples import joined as as_joined
from assay.data.examples import parted as as_parted
from assay.data.fetch import MEGABYTE, SOURCES, cached
from assay.data.published import CORPORA as CORPORA  # looked for here
from assay.data.published import Entry
from assay.data.tables import table_suffix
from assay.errors import AssayError, library_errors, unknown
from assay.plugins import loaded, offered

# Data sets of the Hugging Face hub or in local folders, by the `datasets` library

PREFIX = "hf:"


def published(name: str, columns: Columns, seed: int, whole: bool = False) -> Corpus:
    """The corpus "hf:NAME" or "hf:NAME:CONFIGURATION"; a folder of data may stand in place of the name.

    Where the data set numbers its classes and knows their names, the names are used.
    """
    path, _, configuration = name.removeprefix(PREFIX).partition(":")
    if not path:
        raise AssayError("Name a data set after hf:, such as hf:rotten_tomatoes, or a folder that holds one.")
    advice = "check its name and the network, or give a local folder"
    with library_errors(lambda reason: f"{name} could not be read ({reason}); {advice}."):
        table = _table(_loaded(path, configuration or None))
    if not table:
        raise AssayError(f"{name} has no split that is called {', '.join(sorted(SPLITS))}; name another data set.")
    return read_columns(table, columns, Path(path).name, name, seed, whole)


def _loaded(path: str, configuration: str | None) -> Mapping[str, Any]:
    """The splits by name; the library executes no code of a data set any more."""
    try:
        import datasets
    except ImportError as fault:
        raise AssayError("hf: needs the datasets library; install it: pip install 'assay[hf]'.") from fault

    shown = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        stored = any((Path(path) / each).is_file() for each in ("dataset_dict.json", "state.json"))
        held = datasets.load_from_disk(path) if stored else datasets.load_dataset(path, configuration)
    finally:
        if not shown:
            datasets.enable_progress_bars()
    return held if isinstance(held, Mapping) else {"train": held}


def _table(splits: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """All splits as one table, with a column for the split where there are several."""
    used = {name: each for name, each in splits.items() if name.lower() in SPLITS and len(each)}
    table: dict[str, list[Any]] = {}
    for split in used.values():
        for column in split.column_names:
            table.setdefault(column, []).extend(_with_names(split[column], split.features[column]))
    if len(used) > 1:
        table["split"] = [name for name, each in used.items() for _ in range(len(each))]
    widest = max(map(len, table.values()), default=0)
    return {name: cells for name, cells in table.items() if len(cells) == widest}


def _with_names(cells: Sequence[Any], feature: Any) -> list[Any]:
    """The cells with class names for class ids; negative ids are missing."""
    names = getattr(feature, "names", None)
    if not names:
        return list(cells)
    return [None if cell is None or cell < 0 else names[cell] for cell in cells]


# Loads corpora by name: from a local copy, the cache or a package index


@dataclass(frozen=True)
class Listed:
    """A row of the list of corpora."""

    name: str
    description: str
    classes: str
    size: str
    licence: str
    where: str


def _named(name: str, seed: int, columns: Columns, whole: bool = False) -> Corpus:
    """The corpus of that name, in that file, or "hf:NAME"."""
    from assay.data.coded import coded, rule_and_host
    from assay.data.planted import PLANTED

    if name.startswith(PREFIX):
        return published(name, columns, seed, whole)
    if name in CORPORA:
        return CORPORA[name].load()
    if name in PLANTED:
        return PLANTED[name](seed)
    if parts := rule_and_host(name):
        rule, host = parts
        return coded(rule, _named(host, seed, columns), seed)
    path = Path(name).expanduser()
    if not name.startswith("planted:") and (table_suffix(path) or path.exists()):
        return read_folder(path, seed) if path.is_dir() else read_file(path, columns, seed, whole)
    if name in offered("corpus"):
        return _of_package(name, seed)
    raise unknown("corpus", name, [*CORPORA, *PLANTED, *offered("corpus")])


def _of_package(name: str, seed: int) -> Corpus:
    """A corpus that another package offers, as such or as a function of the seed."""
    found = loaded("corpus", name)
    with library_errors(
        lambda why: f"The corpus {name!r} of another package cannot be made ({why}); update or uninstall it."
    ):
        found = found if isinstance(found, Corpus) else found(seed)
    if not isinstance(found, Corpus):
        raise AssayError(f"The corpus {name!r} of another package is no Corpus but {type(found).__name__}.")
    return found


def ours(name: str) -> bool:
    """Whether the name is one of assay's own corpora, the same everywhere, and not a file."""
    from assay.data.coded import RULES, rule_and_host
    from assay.data.planted import PLANTED

    rule, host = rule_and_host(name) or (None, name)
    return (rule is None or rule in RULES) and (host in CORPORA or host in PLANTED)


def about(corpus: Corpus, asked: str) -> dict[str, Any]:
    """The metadata of a corpus, for a record."""
    return {
        "name": corpus.name,
        "licence": CORPORA[asked].licence if asked in CORPORA else None,
        "train": len(corpus.train),
        "dev": len(corpus.dev),
        "test": len(corpus.test),
        "skipped": corpus.skipped,
    }


def listing() -> list[Listed]:
    """All corpora, with the location that each would be loaded from now."""
    from assay.data.coded import CLASSES, RULES
    from assay.data.planted import PLANTED

    rows = [
        Listed(name, entry.description, ", ".join(entry.classes), entry.size, entry.licence, whereabouts(entry))
        for name, entry in CORPORA.items()
    ]
    for name, generate in PLANTED.items():
        purpose = (generate.__doc__ or "").partition("\n")[0]
        rows.append(Listed(name, purpose, "", "", "Apache-2.0", "generated"))
    for name, rule in RULES.items():
        purpose = f"Code words in the texts of CORPUS: {(rule.__doc__ or '').partition(chr(10))[0]}"
        rows.append(
            Listed(f"planted:{name}/CORPUS", purpose, ", ".join(CLASSES), "", "that of CORPUS", "written into CORPUS")
        )
    return rows


def whereabouts(entry: Entry) -> str:
    """The location that a corpus would be loaded from now."""
    if entry.is_local:
        return "local copy"
    if not entry.sources:
        return f"needs a local copy ({' and '.join(entry.files)} in ASSAY_DATA)"
    absent = [SOURCES[name] for name in entry.sources if not cached(SOURCES[name])]
    return f"to be fetched, {sum(source.size for source in absent) / MEGABYTE:.0f} MB" if absent else "cached"


# Labelled texts in whatever form a person has them, as a corpus

TITLE = "the given table"


def corpus(
    data: Any,
    seed: int = 0,
    *,
    text_column: str = "text",
    label_column: str = "label",
    query_column: str | None = None,
    split_column: str | None = None,
    evidence_column: str | None = None,
    joined: bool = False,
    parted: bool = False,
    whole: bool = False,
    train_limit: int | None = None,
) -> Corpus:
    """The corpus of that name, in the file of that path, "hf:NAME", or in a table or a list of (text, label) pairs.

    A table is a DataFrame of pandas or polars, a table of pyarrow, a data set of Hugging Face, or a dict of columns.
    The seed decides what is generated or split. Pairs may be had `joined`, the question before the text, for models
    that read one text; texts of two lines may be had `parted`, the second one as the question of the first. Texts
    without splits may be had as a `whole`, all of it the test, for models that learn nothing from it; of the training
    texts a `train_limit` is drawn by the seed.
    """
    named = Columns(text_column, label_column, split_column, query_column, evidence_column)
    if joined and parted:
        raise AssayError("Texts are either joined or parted; leave one of the two out.")
    if isinstance(data, str | Path):
        found = _named(str(data), seed, named, whole)
        found = as_joined(found) if joined else as_parted(found) if parted else found
    elif joined or parted:
        raise AssayError("Only the texts of a corpus that is named are joined or parted; leave the option out.")
    elif isinstance(data, Corpus):
        found = data
    else:
        found = read_columns(columns(data), named, "given", TITLE, seed, whole)
    return found if train_limit is None else thinned(found, train_limit, seed)


def columns(data: Any) -> dict[str, Sequence[Any]]:
    """The cells of each column of a table, or the texts and labels of a list of pairs."""
    if isinstance(data, Mapping):
        return {str(name): _cells(column) for name, column in data.items()}
    names = getattr(data, "column_names", None) or getattr(data, "columns", None)
    if names is not None and hasattr(data, "__getitem__"):
        return {str(name): _cells(data[name]) for name in names}
    if not isinstance(data, Sequence):
        raise AssayError(
            f"Labelled texts are a name, a file, a table with columns or a list of (text, label) pairs, "
            f"not {type(data).__name__}."
        )
    if any(isinstance(each, str) for each in data):
        raise AssayError("Texts alone say no class; give (text, label) pairs, or explain them one by one.")
    if not all(isinstance(each, Sequence) and len(each) == 2 for each in data):
        raise AssayError("A list of texts holds (text, label) pairs; for more columns, give a table.")
    texts, labels = ([each[place] for each in data] for place in range(2))
    return {"text": texts, "label": labels}


def _cells(column: Any) -> list[Any]:
    """The cells of a column of any library, as values of Python."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)
