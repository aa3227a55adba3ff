"""A language model that is fitted once: kept in a folder, gone on with after a stop, and never one of other texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from assay.errors import AssayError
from assay.explainers.phrase_sampling import CARD, CHECKPOINT, Language, kept
from assay.models.store import Checkpoint
from tests.explainers.test_soc import SMALL, grammar

OPTIONS = replace(SMALL, epochs=3)


def made(folder: Path | None, data: str = "these", count: int = 40) -> Language:
    return kept(folder, lambda: grammar(count), 24, data, OPTIONS)


def same(one: Language, other: Language) -> bool:
    return all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in one.state_dict().items())


def test_it_is_fitted_once_and_read_back_without_the_texts(tmp_path: Path) -> None:
    first = made(tmp_path / "language")
    assert sorted(path.name for path in (tmp_path / "language").iterdir()) == [CARD, "language.safetensors"]

    def texts():
        raise AssertionError("nobody needs the texts again")

    for data in ("these", None):  # None: it is not known what the model learnt from
        assert same(first, kept(tmp_path / "language", texts, 24, data, OPTIONS))
    assert same(first, made(None))


def test_one_of_other_texts_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    with pytest.raises(AssayError, match="learnt from other texts than these"):
        made(tmp_path, data="those")
    (tmp_path / CARD).write_text("{}", encoding="utf-8")
    with pytest.raises(AssayError, match="damaged"):
        made(tmp_path)


@pytest.mark.parametrize("epochs", [1, 2])
def test_after_a_stop_it_goes_on_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epochs: int
) -> None:
    whole, written, left = made(None), Checkpoint.save, [epochs]

    def killed(self, *parts) -> None:
        written(self, *parts)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path)
    assert (tmp_path / CHECKPOINT).exists() and not (tmp_path / CARD).exists()
    monkeypatch.setattr(Checkpoint, "save", written)
    with pytest.raises(AssayError, match="other options or data"):
        made(tmp_path, data="those")
    assert same(made(tmp_path), whole)
    assert not (tmp_path / CHECKPOINT).exists()
