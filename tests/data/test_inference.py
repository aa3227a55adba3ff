"""Pairs of sentences, from invented local copies and from an invented package of the same."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from assay.data import fetch as indexes
from assay.data import published as inference
from assay.data.corpora import CORPORA, corpus, whereabouts
from assay.data.examples import Example
from assay.data.fetch import Member, Source, local_copy
from assay.data.published import RELATIONS

Pair = tuple[str, str, str]

KINDS = ("neutral", "entailment", "contradiction", "-")
TRAIN: list[Pair] = [
    (KINDS[row % 4], f'Cook {row // 3} says "soup",\tloudly.', f"Somebody is heard {row}.") for row in range(120)
]
DEV: list[Pair] = [("neutral", "A dog .", "A sad dog .")]
TEST: list[Pair] = [
    ("entailment", "A cat naps.", "A pet naps."),
    ("-", "Rain.", "Snow."),
    ("neutral", "Rain.", "Hail."),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of local copies, and an empty cache."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "data"


def write_local(folder: Path) -> None:
    for file, rows in zip(inference.SNLI_FILES, (TRAIN, DEV, TEST), strict=True):
        cells = [("id", label, premise.replace('"', '""'), hypothesis) for label, premise, hypothesis in rows]
        lines = [f'{name}\t{label}\t"{premise}"\t{hypothesis}\n' for name, label, premise, hypothesis in cells]
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(
            gzip.compress(f"pairID\tgold_label\tpremise\thypothesis\n{''.join(lines)}".encode())
        )


def json_lines(rows: Sequence[Pair]) -> bytes:
    objects = [
        {"gold_label": label, "pairID": "x", "sentence1": premise, "sentence1_parse": "(S)", "sentence2": hypothesis}
        for label, premise, hypothesis in rows
    ]
    return "".join(json.dumps(row) + "\n" for row in objects).encode()


@pytest.fixture
def package(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive in a folder that pip would look in, laid out as the real one."""
    files = {
        f"Invented-1.0/data/{name}": json_lines(rows)
        for name, rows in zip(inference.SNLI_PACKAGED, (TRAIN, TEST), strict=True)
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    (tmp_path / "Invented-1.0.tar.gz").write_bytes(buffer.getvalue())
    members = tuple(Member(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items())
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    source = Source("Invented", "1.0", "Invented-1.0.tar.gz", len(buffer.getvalue()), digest, "none", members)
    monkeypatch.setitem(inference.SOURCES, "snli", source)
    monkeypatch.setattr(indexes, "pip_options", lambda: {"find-links": str(tmp_path), "no-index": "1"})


def as_read(rows: Sequence[Pair]) -> list[Example]:
    return [Example(text, RELATIONS.index(label), query=query) for label, text, query in rows if label != "-"]


def test_the_premise_is_the_text_and_the_hypothesis_the_query(folder: Path) -> None:
    write_local(folder)
    loaded = corpus("snli")
    assert loaded.classes == RELATIONS
    assert [list(split) for split in (loaded.train, loaded.dev, loaded.test)] == list(map(as_read, (TRAIN, DEV, TEST)))
    assert loaded.skipped == {"annotators undecided": 31}


def test_packaged_pairs_equal_local_ones_but_for_a_dev_cut_from_train(folder: Path, package: None) -> None:
    packaged = corpus("snli")
    write_local(folder)
    local = corpus("snli")
    assert packaged.test == local.test
    assert Counter(packaged.train + packaged.dev) == Counter(local.train)
    assert packaged.dev and len(packaged.dev) < len(local.train) / 3
    assert not {example.text for example in packaged.train} & {example.text for example in packaged.dev}
    assert packaged.skipped == local.skipped


def test_two_of_three_local_files_are_not_enough(folder: Path, package: None) -> None:
    write_local(folder)
    (folder / inference.SNLI_FILES[1]).unlink()
    assert len(corpus("snli").dev) > len(DEV)


def test_joined_pairs_have_the_hypothesis_before_the_premise(folder: Path) -> None:
    write_local(folder)
    assert corpus("snli", joined=True).test[0] == Example("A pet naps.\nA cat naps.", RELATIONS.index("entailment"))


@pytest.mark.data
def test_the_real_pairs_have_the_published_counts() -> None:
    loaded = corpus("snli")
    assert whereabouts(CORPORA["snli"]) == "local copy" and local_copy(inference.SNLI_FILES[0])
    counts = [[sum(e.label == label for e in split) for label in range(3)] for split in (loaded.train, loaded.test)]
    assert counts == [[33311, 33385, 33194], [3237, 3368, 3219]]
    assert len(loaded.dev) == 9842
    assert loaded.skipped == {"annotators undecided": 286}
    assert all(e.text.strip() and e.query and e.query.strip() for e in (*loaded.train, *loaded.dev, *loaded.test))
