"""Cloze questions in folders, as those on CNN's and the Daily Mail's news are distributed."""

from __future__ import annotations

import re
from pathlib import Path

from assay.data.cloze import ENTITY, among_entities
from assay.data.examples import Corpus, Example
from assay.data.files import SPLITS, check_splits, given_splits
from assay.data.labels import classes_of
from assay.data.tables import read_text
from assay.errors import AssayError


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
