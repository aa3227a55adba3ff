"""Concepts that are found by the class alone, on reviews whose two deciding words are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.explainers.baselines import ExplainingModel, OwnRelevance, Rationale
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe
from assay.models.store import Opened
from assay.models.textmodel import groups, predict
from assay.rationales import rationale_store as storing
from assay.rationales.learning import Options, learn
from assay.rationales.players import assemble_players
from assay.rationales.rationaliser import ConceptModel, answering
from assay.rationales.recipes import RECIPES
from assay.rationales.trainers import build_players
from assay.types import SelectingModel
from tests import pretrained
from tests.rationales.concepts.planted import CLASSES, split, tokeniser

WORDS = tokeniser()
ASKED = {"educe": Options(4, 0.8, concepts=8), "conrat": Options(4, 0.2, concepts=2)}
RECIPE = Recipe(Architecture(encoder="average", embedding=24, hidden=16, alignment_size=16))


def made(name: str, epochs: int = 0, seed: int = 0) -> ConceptModel:
    """A model for the reviews, trained for so many epochs."""
    scheme = RECIPES[name](ASKED[name])
    players = build_players(scheme, RECIPE, WORDS, 4)
    options = Training(epochs=max(1, epochs), patience=max(1, epochs), learning_rate=5e-3, batch_size=32, seed=seed)
    train = split(600 if epochs else 8, 0, WORDS)
    model, _ = learn(players, scheme, train, split(100 if epochs else 8, 1, WORDS), options)
    assert isinstance(model, ConceptModel)
    return model


def random_f1(sizes: np.ndarray, truth: np.ndarray, lengths: np.ndarray) -> float:
    """The expected F1 of as many words drawn at random from each text."""
    hits = (sizes * truth / lengths).sum()
    return float(2 * hits / (sizes.sum() + truth.sum()))


@pytest.mark.parametrize(("name", "epochs"), [("educe", 5), pytest.param("conrat", 14, marks=pytest.mark.slow)])
def test_concepts_are_found_on_the_deciding_words_and_their_presence_decides(name, epochs, tmp_path):
    model, rows = made(name, epochs), split(200, 2, WORDS)
    labels = np.array([row.label for row in rows])
    assert (predict(model, rows).argmax(-1) == labels).mean() >= 0.7
    counts = []
    for _, batch in groups(model, rows):
        x = model.embed(batch)
        found, kept = model.concepts(x, batch), model.selection(x, batch).kept
        assert torch.equal(found.contributions.sum(1), model(x, batch).logits)
        assert not found.contributions[~found.presence].any()
        assert torch.equal(kept, (found.masks & found.presence[..., None]).any(1))
        counts.append(torch.stack([(kept & batch.truth).sum(-1), kept.sum(-1), batch.truth.sum(-1), batch.lengths]))
    hits, sizes, truth, lengths = torch.cat(counts, 1).numpy()
    f1 = 2 * hits.sum() / (sizes.sum() + truth.sum())
    assert f1 >= random_f1(sizes, truth, lengths) + 0.2
    storing.save(Opened(model, WORDS, CLASSES), tmp_path)
    again = storing.load(tmp_path).network
    assert isinstance(again, ConceptModel)
    np.testing.assert_array_equal(predict(again, rows[:20]), predict(model, rows[:20]))


@pytest.mark.parametrize("name", ["educe", "conrat"])
def test_a_text_is_decided_by_its_selected_words_alone(name):
    model, rows = made(name), split(8, 2, WORDS)
    _, batch = next(groups(model, rows))
    x = model.embed(batch).detach()
    play = model.play(batch, x)
    masks, inferred = play.z > 0, play.concepts
    other = torch.where(masks.any(1)[..., None], x, torch.randn_like(x))
    again = model.players.extras["concepts"]
    shown = [torch.where(masks[:, k, :, None], other, 0.0) for k in range(masks.shape[1])]
    reader = model.players.predictor
    states = [reader.states(each, batch) for each in shown]
    features = torch.stack([(reader.attend(s, batch)[:, None] @ s).squeeze(1) for s in states], 1)
    read = torch.stack([reader.decode(s, reader.attend(s, batch)) for s in states], 1)
    torch.testing.assert_close(again(features, read, True).logits, inferred.logits)


@pytest.mark.parametrize("name", ["educe", "conrat"])
def test_words_share_the_contributions_of_their_concepts(name):
    model = made(name)
    _, batch = next(groups(model, split(6, 3, WORDS)))
    x = model.embed(batch)
    assert isinstance(model, ExplainingModel) and isinstance(model, SelectingModel)
    relevance, logits = model.relevance(x, batch), model(x, batch).logits
    torch.testing.assert_close(relevance.sum(1), logits)
    target = logits.argmax(-1)
    scores = OwnRelevance()(model, batch, target)
    torch.testing.assert_close(scores.sum(-1), logits.gather(1, target[:, None])[:, 0])
    kept = model.selection(x, batch).kept
    assert not scores[~kept].any()
    ranked = Rationale()(model, batch, target)
    assert all(ranked[row][kept[row]].min() >= ranked[row][~kept[row]].max() for row in range(6) if kept[row].any())
    torch.testing.assert_close(model.viewed(x, batch, "all"), logits)


@pytest.mark.parametrize("name", ["educe", "conrat"])
@pytest.mark.parametrize("reading", ["mask", "delete"])
def test_concepts_are_read_by_transformers_too_and_padding_changes_nothing(name, reading):
    scheme = RECIPES[name](Options(3, 0.5, reading=reading, concepts=2))
    readers = {"predictor": pretrained.attentive(), "selector": pretrained.attentive()}
    players = assemble_players(scheme.rules, readers, scheme.extras, 3).double()
    model = answering(players, scheme.rules).eval()
    assert isinstance(model, ConceptModel)
    batch = pretrained.batch()
    x = model.embed(batch)
    found = model.concepts(x, batch)
    assert torch.equal(found.contributions.sum(1), model(x, batch).logits)
    assert found.masks.any(-1).all() and not (found.masks & ~batch.mask[:, None]).any()
    alone = pretrained.batch(pretrained.TEXTS[:1])
    torch.testing.assert_close(model(model.embed(alone), alone).logits[0], model(x, batch).logits[0])


def test_a_model_of_concepts_has_no_attention_to_edit():
    model = made("educe")
    _, batch = next(groups(model, split(4, 3, WORDS)))
    with pytest.raises(AssayError, match="no attention to edit"):
        model(model.embed(batch), batch, lambda weights, mask: weights)
    assert model.part("concepts") is model.players.extras["concepts"]
    assert all(isinstance(model.part(name), torch.nn.Module) for name in model.cascade)
