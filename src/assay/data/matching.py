"""Maps the classes of a corpus to those of a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.data.examples import Corpus, Example
from assay.errors import AssayError, unknown


def examples_for(corpus: Corpus, split: str, classes: Sequence[str]) -> tuple[Example, ...]:
    """The examples of a split, or of "all", with labels as class indices of the model."""
    splits = {"train": corpus.train, "dev": corpus.dev, "test": corpus.test}
    splits["all"] = corpus.train + corpus.dev + corpus.test
    if split not in splits:
        raise unknown("split", split, splits)
    if corpus.classes == tuple(classes):
        return splits[split]
    index = matched(corpus.classes, classes)
    return tuple(example.relabelled(index) for example in splits[split])


def matched(names: Sequence[str], known: Sequence[str]) -> list[int]:
    """The index of each class among a model's classes: by name, ignoring case, or by number."""
    if all(re.fullmatch(r"\d+", name) and int(name) < len(known) for name in names) and not set(names) & set(known):
        return [int(name) for name in names]
    lower = [name.lower() for name in known]
    indices = [known.index(name) if name in known else _place(name.lower(), lower) for name in names]
    strange = next((name for name, index in zip(names, indices, strict=True) if index is None), None)
    if strange is not None:
        raise AssayError(
            f"The corpus has the class {strange!r}; the model does not know it, only {', '.join(known)}. "
            "Rename it, or give the model's classes other names with --classes."
        )
    return [index for index in indices if index is not None]


def _place(name: str, known: Sequence[str]) -> int | None:
    return known.index(name) if known.count(name) == 1 else None
