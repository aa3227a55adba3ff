"""Training of writers: killed and begun again it comes to the same weights, and a folder brings them back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from assay.data.annotated import planted_explanations as planted
from assay.errors import AssayError
from assay.models.config import Training
from assay.models.recipes import CHECKPOINT
from assay.models.store import Checkpoint
from assay.rationales.sequences import Sizes
from assay.rationales.text_explanations import Task, explained_pairs, vocabulary
from assay.rationales.writers import Writer, WriterRecipe, load, save, train

CORPUS = planted(60)
PAIRS, DEV = (explained_pairs("joint_prefix", Task.of(CORPUS), items) for items in (CORPUS.train, CORPUS.dev))
TOKENISER = vocabulary(CORPUS)
RECIPE = WriterRecipe(
    Sizes(12, 6, 1, 0.2), Training(epochs=4, patience=4, batch_size=16, learning_rate=5e-3, decay=0.0)
)


@pytest.fixture(scope="module")
def whole() -> Writer:
    return train(RECIPE, PAIRS, DEV, TOKENISER)


def test_training_that_was_killed_goes_on_to_the_same_weights(
    whole: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Checkpoint.save

    def killed(self: Checkpoint, *given: Any) -> None:
        kept(self, *given)
        if given[-1]["epoch"] == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        train(RECIPE, PAIRS, DEV, TOKENISER, tmp_path)
    assert (tmp_path / CHECKPOINT).exists()
    monkeypatch.setattr(Checkpoint, "save", kept)
    torch.manual_seed(99)
    again = train(RECIPE, PAIRS, DEV, TOKENISER, tmp_path)
    assert not (tmp_path / CHECKPOINT).exists()
    assert again.history == whole.history
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(again.network.state_dict()[name], tensor)


def test_a_stored_writer_writes_the_same(whole: Writer, tmp_path: Path) -> None:
    save(whole, tmp_path / "writer")
    other = load(tmp_path / "writer")
    sources = [pair.source for pair in DEV]
    (texts, scores), (same, equal) = whole(sources), other(sources)
    assert texts == same and np.array_equal(scores, equal)
    assert np.array_equal(whole.first(sources, CORPUS.classes), other.first(sources, CORPUS.classes))


def test_the_best_epoch_is_kept_and_learning_has_lowered_the_loss(whole: Writer) -> None:
    course = whole.history
    assert course["best_dev"] == max(course["dev_scores"]) == course["dev_scores"][course["best_epoch"] - 1]
    assert course["losses"][-1] < course["losses"][0] - 0.5


def test_what_is_trained_is_only_read_and_other_pairs_are_refused(tmp_path: Path) -> None:
    quick = WriterRecipe(Sizes(4, 2, 0, 0.0), Training(epochs=1, batch_size=32))
    first = train(quick, PAIRS, DEV, TOKENISER, tmp_path)
    again = train(quick, PAIRS, DEV, TOKENISER, tmp_path)
    assert again.history == json.loads(json.dumps(first.history))
    with pytest.raises(AssayError, match="already holds a writer"):
        train(quick, PAIRS[1:], DEV, TOKENISER, tmp_path)
    (tmp_path / "weights.safetensors").write_bytes(b"no")
    with pytest.raises(AssayError, match="is damaged"):
        load(tmp_path)
    with pytest.raises(AssayError, match="holds no writer"):
        load(tmp_path / "nowhere")


def test_the_first_words_are_compared_among_themselves(whole: Writer) -> None:
    scores = whole.first([pair.source for pair in DEV], CORPUS.classes)
    np.testing.assert_allclose(np.exp(scores).sum(-1), 1.0, atol=1e-9)
    with pytest.raises(AssayError, match="lacks one of the words"):
        whole.first(["word1"], ("animal", "zebra"))
