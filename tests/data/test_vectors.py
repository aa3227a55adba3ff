from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assay.data import published as vectors
from assay.data.fetch import Source
from assay.data.published import GLOVE, glove
from assay.errors import AssayError

KNOWN = ["the", ",", "soup", "größe", "ladle", "'s"]
TABLE = np.random.default_rng(0).normal(size=(len(KNOWN), 50)).astype(np.float32)
WANTED = ["ladle", "<pad>", "the", "größe", "ladle", "sou", "'s"]


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / GLOVE
    path.parent.mkdir()
    lines = [f"{word} {' '.join(map(str, row.tolist()))}\n" for word, row in zip(KNOWN, TABLE, strict=True)]
    path.write_bytes(gzip.compress("".join(lines).encode()))
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    return path


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def member(source: Source, name: str) -> Path:
        assert name in [listed.name for listed in source.members]
        return tmp_path / name

    np.save(tmp_path / "glove_6B_50d_emb.npy", TABLE)
    pq.write_table(pa.table({"index": KNOWN}), tmp_path / "glove_6B_index.parquet", row_group_size=2)
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    monkeypatch.setattr(vectors, "member", member)


@pytest.mark.parametrize("layout", ["local", "packaged"])
def test_each_word_gets_its_row_and_unknown_ones_get_zeros(layout: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(layout)
    rows, found = glove(WANTED)
    assert found.tolist() == [word in KNOWN for word in WANTED]
    expected = [TABLE[KNOWN.index(word)] if word in KNOWN else np.zeros(50) for word in WANTED]
    np.testing.assert_allclose(rows, expected, rtol=1e-6)
    assert rows.dtype == np.float32


@pytest.mark.parametrize("layout", ["local", "packaged"])
def test_no_words_and_no_known_words_are_fine(layout: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(layout)
    for words in ([], ["nobody", "knows"]):
        rows, found = glove(words)
        assert rows.shape == (len(words), 50)
        assert not rows.any() and not found.any()


@pytest.mark.parametrize(
    "damaged",
    [b"no gzip", gzip.compress(b"soup 1 2 3\n"), gzip.compress(b"soup x y\n"), gzip.compress(b"soup 1")[:-9]],
    ids=["no gzip", "too short", "no numbers", "cut"],  # not the bytes: they tell the time
)
def test_a_damaged_file_is_told(damaged: bytes, local: Path) -> None:
    local.write_bytes(damaged)
    with pytest.raises(AssayError, match="holds no GloVe vectors of 50 numbers"):
        glove(["soup"])


@pytest.mark.data
def test_real_vectors_put_like_words_together() -> None:
    rows, found = glove(["film", "movie", "hockey", "no such word"])
    assert found.tolist() == [True, True, True, False]
    unit = rows[:3] / np.linalg.norm(rows[:3], axis=1, keepdims=True)
    assert unit[0] @ unit[1] > 0.9 > 0.5 > unit[0] @ unit[2]
