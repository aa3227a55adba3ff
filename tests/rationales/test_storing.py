"""A folder holds all of a model that selects: read back it answers the same, and an interrupted training goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from assay.data.batches import tokenise
from assay.errors import AssayError
from assay.models.hf_finetuning import FineTuning
from assay.models.recipes import CHECKPOINT, train
from assay.models.store import Checkpoint, fingerprint
from assay.models.textmodel import groups, predict
from assay.rationales import rationale_store as storing
from assay.rationales.recipes import RECIPES
from assay.rationales.trainers import marked, train_model
from assay.run.api import load
from tests.rationales.folders import OURS, SHORT, encoder, films, phrases, wanted


def same(one, other, texts) -> None:
    rows, _ = tokenise(texts, one.tokeniser, one.tokeniser.options.longest)
    again, _ = tokenise(texts, other.tokeniser, other.tokeniser.options.longest)
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(rows, again, strict=True))
    assert np.array_equal(predict(one.network, rows), predict(other.network, again))
    for _, batch in groups(one.network, rows):
        kept, chance = (
            vars(one.network.selection(one.network.embed(batch), batch))[name] for name in ("kept", "chance")
        )
        found = other.network.selection(other.network.embed(batch), batch)
        assert torch.equal(found.kept, kept) and torch.equal(found.chance, chance)
    assert (one.classes, fingerprint(one.network)) == (other.classes, fingerprint(other.network))
    assert one.network.rules == other.network.rules and type(one.network) is type(other.network)


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_every_recipe_answers_the_same_when_it_is_read_back(recipe: str, tmp_path: Path) -> None:
    made = train_model(phrases(), wanted(recipe), tmp_path / "model")
    opened = load(tmp_path / "model")
    same(made, opened, phrases().test)
    assert json.loads(json.dumps(made.history)) == opened.history
    assert not (tmp_path / "model" / CHECKPOINT).exists()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> FineTuning:
    return FineTuning(encoder(tmp_path_factory.mktemp("encoder")), "attention", training=replace(SHORT, epochs=1))


@pytest.mark.parametrize("recipe", ["lei", "diffmask", "educe"])
def test_pretrained_players_are_stored_with_their_encoder(base: FineTuning, recipe: str, tmp_path: Path) -> None:
    made = train_model(films(), wanted(recipe, base), tmp_path / "model")
    opened = load(tmp_path / "model")
    same(made, opened, films().test)
    assert (tmp_path / "model" / storing.ENCODER / "tokenizer.json").exists()
    assert not any(name.endswith((".bin", ".pt", ".pkl")) for name in map(str, tmp_path.rglob("*")))


def test_a_killed_training_goes_on_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = train_model(phrases(), wanted())
    written = Checkpoint.save

    def killed(self, *parts) -> None:
        written(self, *parts)
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        train_model(phrases(), wanted(), tmp_path)
    assert (tmp_path / CHECKPOINT).exists() and not storing.is_folder(tmp_path)
    monkeypatch.setattr(Checkpoint, "save", written)
    assert fingerprint(train_model(phrases(), wanted(), tmp_path).network) == fingerprint(whole.network)


def test_a_finished_folder_is_returned_as_it_is_and_takes_no_other_options(tmp_path: Path) -> None:
    made = train_model(phrases(), wanted(), tmp_path)
    card = (tmp_path / storing.CARD).stat().st_mtime_ns
    assert fingerprint(train_model(phrases(), wanted(), tmp_path).network) == fingerprint(made.network)
    assert (tmp_path / storing.CARD).stat().st_mtime_ns == card
    for other in (wanted(rate=0.5), wanted(base=replace(OURS, training=replace(SHORT, seed=1)))):
        with pytest.raises(AssayError, match="other options or data"):
            train_model(phrases(), other, tmp_path)


def test_what_is_missing_or_damaged_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(AssayError, match="assay rationalise"):
        storing.load(tmp_path)
    train_model(phrases(), wanted(), tmp_path)
    card = json.loads((tmp_path / storing.CARD).read_text(encoding="utf-8"))
    (tmp_path / storing.CARD).write_text(json.dumps(card | {"readers": ["predictor"]}), encoding="utf-8")
    with pytest.raises(AssayError, match=r"damaged.*unknown"):
        storing.load(tmp_path)


def test_the_usual_rate_is_what_people_marked() -> None:
    made = train_model(films(), wanted())
    rows, _ = tokenise(films().train, made.tokeniser, 1000)
    by_hand = [1 / len(example.text.split()) for example in films().train]
    assert marked(rows) == pytest.approx(sum(by_hand) / len(by_hand))
    assert made.network.rules.decoding.rate == pytest.approx(marked(rows))
    assert marked([replace(row, truth=None) for row in rows]) == 0.2


def test_pairs_and_unknown_recipes_are_refused() -> None:
    asked = [replace(example, query="why?") for example in films().train]
    with pytest.raises(AssayError, match="--joined"):
        train_model(replace(films(), train=tuple(asked)), wanted())
    with pytest.raises(AssayError, match="did you mean 'lei'"):
        wanted("leih")


def test_a_folder_with_another_kind_of_model_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    train(films(), OURS, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(AssayError, match="already holds another model"):
        train_model(films(), wanted("rnp"), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
