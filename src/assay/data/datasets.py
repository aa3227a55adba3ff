"""Data sets of the Hugging Face hub or in local folders, by the `datasets` library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.data.examples import Corpus
from assay.data.files import SPLITS, Columns, read_columns
from assay.errors import AssayError, library_errors

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
            table.setdefault(column, []).extend(_named(split[column], split.features[column]))
    if len(used) > 1:
        table["split"] = [name for name, each in used.items() for _ in range(len(each))]
    widest = max(map(len, table.values()), default=0)
    return {name: cells for name, cells in table.items() if len(cells) == widest}


def _named(cells: Sequence[Any], feature: Any) -> list[Any]:
    """The cells with class names for class ids; negative ids are missing."""
    names = getattr(feature, "names", None)
    if not names:
        return list(cells)
    return [None if cell is None or cell < 0 else names[cell] for cell in cells]
