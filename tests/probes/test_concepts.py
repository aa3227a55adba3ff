"""Concepts as directions, beside finite differences and random texts."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest
import torch

import assay
from assay.data.batches import collate, tokenise
from assay.data.examples import Example
from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError
from assay.models import store
from assay.models.config import Architecture
from assay.models.networks import built
from assay.models.store import Trained
from assay.probes.concepts import (
    ConceptSensitivity,
    Tcav,
    concept,
    direction,
    levels,
    score,
    sensitivities,
    steered,
    tcav,
    vectors,
)
from assay.probes.heads import PROBES
from tests import builders, pretrained

WORDS = [f"w{place}" for place in range(30)]
MODELS = {
    **{name: lambda name=name: builders.kind(name, classes=3) for name in builders.KINDS},
    "attentive": pretrained.attentive,
    **{name: lambda name=name: pretrained.pretrained(name) for name in ("bert", "gpt2", "albert")},
}


@pytest.mark.parametrize("name", MODELS)
def test_directional_derivatives_are_those_of_finite_differences_at_every_level(name):
    network = MODELS[name]()
    batch = pretrained.batch() if name in ("attentive", "bert", "gpt2", "albert") else builders.texts()
    if not network.paired and batch.query is not None:
        batch = batch[:]
        batch = type(batch)(**{**vars(batch), "query": None})
    plain = network(network.embed(batch), batch).logits.detach()
    hooks = sum(len(part._forward_hooks) for part in network.modules())
    for level in levels(network):
        at = steered(network, batch, level)
        torch.testing.assert_close(at.logits.detach(), plain)
        towards = torch.randn(at.vectors.shape[-1], dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        (gradient,) = torch.autograd.grad(at.logits[:, 1].sum(), at.shift)
        step = 1e-6 * towards.expand(len(batch), -1)
        after, before = (steered(network, batch, level, sign * step).logits[:, 1] for sign in (1, -1))
        torch.testing.assert_close(gradient.sum(1) @ towards, ((after - before) / 2e-6).detach(), rtol=1e-4, atol=1e-6)
        assert not gradient[at.token_index < 0].any()
        there = at.token_index[0] >= 0
        torch.testing.assert_close(at.mean[0], at.vectors[0, there].mean(0))
    assert hooks == sum(len(part._forward_hooks) for part in network.modules())


@pytest.mark.parametrize("name", ["lstm", "transformer", "hierarchical-gru", "attentive", "bert"])
def test_words_share_the_derivative_of_a_text(name):
    network = MODELS[name]()
    batch = pretrained.batch() if name in ("attentive", "bert") else builders.texts()
    target = torch.ones_like(batch.labels)
    for level in levels(network):
        at = steered(network, batch, level)
        found = direction(np.random.default_rng(0).normal(size=(9, at.vectors.shape[-1])) + 1,
                          np.random.default_rng(1).normal(size=(9, at.vectors.shape[-1])), level, 1.0,
                          np.random.default_rng(2))  # fmt: skip
        (gradient,) = torch.autograd.grad(at.logits[:, 1].sum(), at.shift)
        scores = ConceptSensitivity(found)(network, batch, target)
        assert scores.shape == batch.ids.shape and not scores[~batch.mask].any()
        if not (name.startswith("hierarchical") and level == "hidden"):
            torch.testing.assert_close(scores.sum(-1), gradient.sum(1) @ found.vector)


def linear() -> Trained:
    """A network without an encoder, in which w0 to w4 lie in the direction that alone speaks for the second class."""
    tokeniser = Tokeniser.fit([" ".join(WORDS)], TextOptions(min_count=1))
    network = built(Architecture(encoder="none", embedding=8, alignment_size=4), len(tokeniser.vocabulary), 2).double()
    places = {word: place for place, word in enumerate(tokeniser.vocabulary)}
    with torch.no_grad():
        for parameter in network.alignment.parameters():
            parameter.zero_()
        network.embedding.weight.normal_(std=0.5, generator=torch.Generator().manual_seed(0))
        network.embedding.weight[[places[word] for word in WORDS[:5]], 0] += 6.0
        network.decoder.weight.zero_()
        network.decoder.weight[1, 0] = 1.0
    return Trained(network.eval(), tokeniser, ("no", "yes"))


def written(count: int, seed: int, needed: tuple[str, ...] = (), label: int = 1) -> list[Example]:
    """Texts of eight words by chance, three of them of those that are needed."""
    random = Random(seed)
    made = []
    for _ in range(count):
        words = random.choices(WORDS[5:], k=8)
        words[:3] = random.choices(needed, k=3) if needed else words[:3]
        made.append(Example(" ".join(words), label))
    return made


def test_a_planted_concept_has_the_score_1_and_passes_while_random_texts_do_not():
    model = linear()
    concepts = {"planted": written(30, 1, tuple(WORDS[:5])), "random": written(30, 2)}
    found = tcav(model, concepts, written(120, 3), written(20, 4, label=1), Tcav(runs=20))
    planted, random = found
    assert (planted.scores == 1.0).all() and planted.significant and planted.p < 0.01 and planted.accuracy > 0.95
    assert not random.significant and 0.2 < random.score < 0.8 and random.accuracy < 0.7
    assert set(np.unique(planted.random)) <= {0.0, 1.0}  # of a linear model all texts have one gradient
    with torch.no_grad():
        model.network.decoder.weight[0, 0] = -1.0
    (opposed,) = tcav(model, {"planted": concepts["planted"]}, written(120, 3), written(9, 4, label=0), Tcav(runs=10))
    assert (opposed.scores == 0.0).all() and opposed.significant


def rows(model: Trained, count: int):
    return tokenise(written(count, 7), model.tokeniser, 100)[0]


def test_the_gradients_of_a_linear_model_are_its_weights_and_its_direction_is_the_planted_one():
    model = linear()
    gradients = sensitivities(model.network, rows(model, 5), "hidden", 1)
    np.testing.assert_allclose(gradients, np.tile(np.eye(8)[0], (5, 1)), atol=1e-12)
    inside, _ = tokenise(written(60, 1, tuple(WORDS[:5])), model.tokeniser, 100)
    chance = np.random.default_rng(0)
    outside = rows(model, 60)
    found = direction(
        vectors(model.network, inside, "hidden"), vectors(model.network, outside, "hidden"), "hidden", 1.0, chance
    )
    assert found.vector[0] > 0.8 and float(found.vector.norm()) == pytest.approx(1)
    assert score(gradients, found) == 1.0
    by_hand = [model.network.embedding.weight[row.ids].mean(0).detach().numpy() for row in outside]
    np.testing.assert_allclose(vectors(model.network, outside, "hidden"), np.stack(by_hand))


def test_the_sensitivity_of_each_word_of_a_linear_model_is_its_share_of_the_direction():
    model = linear()
    found = concept(model, written(30, 1, tuple(WORDS[:5])), written(60, 3))
    batch = collate(rows(model, 4))
    scores = ConceptSensitivity(found)(model.network, batch, torch.ones_like(batch.labels))
    expected = found.vector[0] / batch.mask.sum(-1, keepdim=True) * batch.mask  # the logit is the mean of component 0
    torch.testing.assert_close(scores, expected.to(scores))


def test_a_probe_of_a_stored_model_finds_the_planted_concept(tmp_path):
    store.save(linear(), tmp_path / "model")
    texts = [
        {"text": each.text, "label": ("no", "yes")[each.label]} for each in (*written(90, 3), *written(90, 4, (), 0))
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, texts)))
    given = {"planted": [each.text for each in written(30, 1, tuple(WORDS[:5]))]}
    found = assay.probe(tmp_path / "model", concepts=given, corpus=tmp_path / "mine.jsonl")
    section = found.answer["sections"]["concepts"]
    yes = next(row for row in section["rows"] if row["class"] == "yes")
    assert (yes["score"], yes["significant"], section["level"]) == (1.0, True, "hidden")
    assert set(found.answer["left_out"]) == {*PROBES, "importance"}
    assert str(found).startswith("Which classes of ") and "Concepts in" in found.report(tmp_path / "p.html").read_text(
        "utf-8"
    )


def test_what_tcav_cannot_do_it_says():
    model = linear()
    with pytest.raises(AssayError, match="two examples of each concept"):
        tcav(model, {"few": written(1, 1)}, written(9, 2), written(3, 3))
    with pytest.raises(AssayError, match="Unknown level 'layer 9'"):
        tcav(model, {"some": written(4, 1)}, written(9, 2), written(3, 3), Tcav(level="layer 9"))
    with pytest.raises(AssayError, match="at least two runs"):
        Tcav(runs=1)
