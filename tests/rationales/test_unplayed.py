"""Recipes without a game are used like all others: stored, gone on with, measured, drawn anew, and refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import assay
from assay.data.batches import collate, tokenise
from assay.errors import AssayError
from assay.models.recipes import CHECKPOINT
from assay.models.store import Checkpoint, Opened, fingerprint
from assay.models.textmodel import groups, predict
from assay.rationales import rationale_store as storing
from assay.rationales.rationaliser import VIEWS, Selecting
from assay.rationales.trainers import UNPLAYED, TransportRecipe, train_model
from assay.run.api import load
from assay.run.rationalising import chosen
from tests.rationales.folders import encoder, films, questions

TINY = {"encoder": "average", "embedding": 6, "hidden": 4, "epochs": 2, "batch_size": 8, "learning_rate": 1e-2}
EVERY = pytest.mark.parametrize("recipe", list(UNPLAYED))


def texts(recipe: str) -> assay.Corpus:
    return questions() if recipe == "transport" else films()


def trained(recipe: str, folder: Path | None = None, model: str | None = None, **options) -> Opened:
    own = {"epochs": 1, "batch_size": 8} if model else TINY
    wanted = chosen(recipe, model, **own | options)
    return train_model(texts(recipe), wanted, folder)


def same(one: Opened, other: Opened, examples) -> None:
    rows, again = (tokenise(examples, each.tokeniser, 100)[0] for each in (one, other))
    assert np.array_equal(predict(one.network, rows), predict(other.network, again))
    for _, batch in groups(one.network, rows):
        x = one.network.embed(batch)
        mine, theirs = one.network.selection(x, batch), other.network.selection(other.network.embed(batch), batch)
        assert torch.equal(mine.kept, theirs.kept) and torch.equal(mine.chance, theirs.chance)
        assert one.network.accounts(x, batch) == other.network.accounts(x, batch)
    assert (one.classes, fingerprint(one.network)) == (other.classes, fingerprint(other.network))
    assert one.network.selecting == other.network.selecting


@EVERY
def test_a_folder_holds_all_of_it_and_takes_no_other_options(recipe: str, tmp_path: Path) -> None:
    made = trained(recipe, tmp_path)
    opened = load(tmp_path)
    assert type(opened.network) is type(made.network) and opened.network is not made.network
    same(made, opened, texts(recipe).test)
    assert json.loads(json.dumps(made.history)) == opened.history
    assert not (tmp_path / CHECKPOINT).exists()
    assert not any(name.endswith((".bin", ".pt", ".pkl")) for name in map(str, tmp_path.rglob("*")))
    card = (tmp_path / storing.CARD).stat().st_mtime_ns
    assert fingerprint(trained(recipe, tmp_path).network) == fingerprint(made.network)
    assert (tmp_path / storing.CARD).stat().st_mtime_ns == card
    other = {"price": 0.5} if recipe == "transport" else {"width": 2}
    for options in (other, {"seed": 1}):
        with pytest.raises(AssayError, match="other options or data"):
            trained(recipe, tmp_path, **options)


@EVERY
def test_a_killed_training_goes_on_to_the_same_weights(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, written = trained(recipe), Checkpoint.save

    def killed(self, *parts) -> None:
        written(self, *parts)
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        trained(recipe, tmp_path)
    assert (tmp_path / CHECKPOINT).exists() and not storing.is_folder(tmp_path)
    monkeypatch.setattr(Checkpoint, "save", written)
    assert fingerprint(trained(recipe, tmp_path).network) == fingerprint(whole.network)


def test_a_pretrained_encoder_explains_itself_too(tmp_path: Path) -> None:
    made = trained("selfexplain", tmp_path / "model", encoder(tmp_path / "encoder"))
    same(made, load(tmp_path / "model"), films().test)
    assert (tmp_path / "model" / storing.ENCODER / "tokenizer.json").exists()


@EVERY
def test_weights_that_are_not_what_was_stored_are_noticed(recipe: str, tmp_path: Path) -> None:
    trained(recipe, tmp_path)
    card = json.loads((tmp_path / storing.CARD).read_text(encoding="utf-8"))
    (tmp_path / storing.CARD).write_text(json.dumps(card | {"sha256": "0" * 64}), encoding="utf-8")
    with pytest.raises(AssayError, match=r"damaged \(weights.safetensors is not what was stored\)"):
        load(tmp_path)
    (tmp_path / storing.CARD).write_text(json.dumps(card | {"kind": "poem"}), encoding="utf-8")
    with pytest.raises(AssayError, match="damaged"):
        load(tmp_path)


@EVERY
def test_views_of_a_text_are_answers_to_its_words_alone(recipe: str) -> None:
    model = trained(recipe, seed=3)
    network = model.network
    assert isinstance(network, Selecting)
    rows, _ = tokenise(texts(recipe).test, model.tokeniser, 100)
    for row in rows[:6]:  # one by one: the words that a view shows, as a text of their own
        batch = collate([row], len(model.classes))
        x = network.embed(batch)
        kept = network.selection(x, batch).kept[0]
        shown = {"selected": kept, "rest": ~kept, "all": torch.ones_like(kept)}
        for view in VIEWS:
            places = shown[view].nonzero()[:, 0]
            if len(places):
                ids = {"ids": row.ids[places], "spans": row.spans[places], "sentences": row.sentences[places]}
                alone = collate([replace(row, **ids, truth=None)])
                expected = network(network.embed(alone), alone).logits
                torch.testing.assert_close(network.viewed(x, batch, view), expected)
            assert network.viewed(x, batch, view).isfinite().all()


@EVERY
def test_padding_changes_no_selection_and_no_account(recipe: str) -> None:
    model = trained(recipe)
    network = model.network
    rows, _ = tokenise(texts(recipe).test, model.tokeniser, 100)
    batch = collate(rows, len(model.classes))
    kept = network.selection(network.embed(batch), batch).kept
    assert not kept[~batch.mask].any()
    accounts = network.accounts(network.embed(batch), batch)
    for place in (0, 1, 2):
        alone = collate([rows[place]], len(model.classes))
        x = network.embed(alone)
        assert torch.equal(network.selection(x, alone).kept[0], kept[place, : len(rows[place].ids)])
        assert rounded(network.accounts(x, alone)[0]) == rounded(accounts[place])


def rounded(value):
    """The same with numbers to five places."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return pytest.approx(value, abs=1e-5) if isinstance(value, float) else value


@EVERY
def test_it_is_audited_like_any_model_and_every_weight_can_be_drawn_anew(recipe: str) -> None:
    model = trained(recipe)
    fresh = dict(model.network.redrawn(5).named_parameters())
    same = [name for name, mine in model.network.named_parameters() if mine.ndim > 1 and torch.equal(mine, fresh[name])]
    assert same == []
    own = ["own_relevance", "attention"] if recipe == "selfexplain" else []
    result = assay.audit(model, texts(recipe), ["rationale", "random", "gradient", *own], ["erasure", "sanity"])
    assert {"rationale", "random", *own} <= set(result.record.summary["explainers"])
    assert {each.audit for each in result.record.findings} >= {"erasure", "sanity"}


def test_the_rule_of_alignment_is_named_with_its_limits() -> None:
    said = trained("transport", pairs=3).network.selecting["meaning"]
    assert said.endswith("at most 3 of them; a pair must say more than 20.0 % of what the strongest one says")


def test_a_corpus_without_questions_is_refused_and_one_of_two_lines_is_parted() -> None:
    with pytest.raises(AssayError, match="'films' has texts without one; choose a corpus of pairs"):
        assay.rationalise(films(), "transport", **TINY)
    one = {
        split: tuple(
            replace(each, text=f"{each.text}\n{each.query}", query=None) for each in getattr(questions(), split)
        )
        for split in ("train", "dev", "test")
    }
    parted = TransportRecipe().checked(replace(questions(), **one))
    assert parted.name == "questions+parted"
    assert [(each.text, each.query) for each in parted.test] == [(each.text, each.query) for each in questions().test]
    with pytest.raises(AssayError, match="classes of their own"):
        TransportRecipe().checked(
            replace(questions(), train=tuple(replace(each, candidates=(0,)) for each in questions().train))
        )


@pytest.mark.parametrize(
    ("recipe", "options", "said"),
    [
        ("transport", {"rate": 0.2}, "--rate does not fit the recipe 'transport', which takes --pairs and --price"),
        ("transport", {"units": "span"}, "--units does not fit"),
        ("transport", {"shape": "paired"}, "--shape does not fit"),
        ("transport", {"model": "minilm"}, "leave --model out"),
        ("transport", {"pairs": 0}, "whole numbers from 1"),
        ("transport", {"price": -1.0}, "The price of an aligned pair"),
        ("selfexplain", {"size": 0.2}, "which takes --rate, --width and --concepts"),
        ("selfexplain", {"width": 0}, "at least one word"),
        ("selfexplain", {"concepts": 0}, "number of stored phrases"),
        ("selfexplain", {"rate": 1.5}, "above 0 and at most 1"),
        ("lei", {"pairs": 3}, "--pairs does not fit the recipe 'lei'"),
    ],
)
def test_what_does_not_fit_a_recipe_is_said(recipe: str, options: dict, said: str) -> None:
    with pytest.raises(AssayError, match=said):
        chosen(recipe, **options)
