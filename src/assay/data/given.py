"""Labelled texts in whatever form a person has them, as a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.data import corpora
from assay.data.examples import Corpus
from assay.data.files import Columns, read_columns
from assay.data.subsets import thinned
from assay.errors import AssayError

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
    if isinstance(data, str | Path):
        found = corpora.corpus(str(data), seed, named, joined, whole, parted)
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
