"""Contextual decomposition: identities for every network, and β and γ re-derived number by number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.data.batches import collate, tokenise
from assay.data.planted import PLANTED
from assay.errors import AssayError
from assay.explainers import decomposition
from assay.explainers.baselines import Random
from assay.explainers.decomposition import ContextualDecomposition, WordDecomposition, decomposed
from assay.metrics.plausibility import average_precision
from assay.models import budget
from assay.models.config import Architecture, Training
from assay.models.encoders import positions
from assay.models.recipes import Recipe, train
from tests import builders
from tests.explainers import decomposition_by_hand as by_hand

SERVED = [name for name in builders.KINDS if name not in ("structured", "spans")]
KIND = pytest.mark.parametrize("kind", SERVED)
CLOSE = {"atol": 1e-10, "rtol": 0}


def sets(batch, count=4, seed=3):
    """No words, all words, and random words of each text."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.rand(len(batch), count, batch.ids.shape[1], generator=generator) < 0.4
    chosen[:, 0], chosen[:, 1] = False, True
    return chosen


def answers(model, batch):
    with torch.no_grad():
        return model(model.embed(batch), batch).logits - model.decoder.bias


@KIND
@pytest.mark.parametrize("markers", [False, True])
def test_beta_and_gamma_are_the_logits_without_their_bias(kind, markers):
    model, batch = builders.kind(kind, 3, markers=markers and kind in builders.MARKED), builders.texts()
    found = decomposed(model, batch, sets(batch))
    expected = answers(model, batch)[:, None]
    torch.testing.assert_close(found.relevant + found.rest, expected.expand_as(found.relevant), **CLOSE)
    assert (found.relevant[:, 0] == 0).all()
    assert (found.relevant[:, 2:].abs().amax(-1) > 1e-6).any()


@pytest.mark.parametrize("kind", [kind for kind in SERVED if not kind.startswith(("paired", "aspect"))])
def test_where_all_words_are_chosen_nothing_is_left_for_the_rest(kind):
    model, batch = builders.kind(kind, 3), builders.texts()
    found = decomposed(model, batch, sets(batch))
    torch.testing.assert_close(found.rest[:, 1], torch.zeros_like(found.rest[:, 1]), **CLOSE)
    assert found.rest[:, 2:].abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["lstm", "paired-average", "aspect"])
def test_markers_and_a_question_are_no_part_of_any_phrase(kind):
    model, batch = builders.kind(kind, 3, markers=True), builders.texts()
    found = decomposed(model, batch, sets(batch))
    assert found.rest[:, 1].abs().max() > 1e-3


def hand(model, batch, row, chosen, states):
    """β and γ of the logits of a text, given those of its states [T, 2, M]: attention is that of the whole."""
    with torch.no_grad():
        weights = model(model.embed(batch), batch).attention[-1][row, : len(states)].numpy()
    pooled = np.einsum("t,tpm->pm", weights, states)
    return pooled @ model.decoder.weight.detach().numpy().T


def embedded(model, batch, row):
    length = int(batch.lengths[row])
    return model.embed(batch)[row, :length].detach().numpy(), length


STATES = {
    "lstm": by_hand.bidirectional,
    "gru": by_hand.bidirectional,
    "cnn": by_hand.convolved,
    "average": lambda encoder, words, chosen: by_hand.alone(
        by_hand.proportional(
            encoder.projection.weight.detach().numpy(),
            encoder.projection.bias.detach().numpy(),
            np.array([words * chosen[:, None], words * ~chosen[:, None]]),
        )
    ).transpose(1, 0, 2),
    "none": lambda encoder, words, chosen: np.stack([words * chosen[:, None], words * ~chosen[:, None]], axis=1),
    "transformer": lambda encoder, words, chosen: by_hand.transformed(
        encoder, words, chosen, positions(len(words), encoder.size).numpy()
    ),
}


@pytest.mark.parametrize("encoder", STATES)
def test_every_number_is_that_of_the_rules_written_out(encoder):
    model, batch = builders.model(encoder=encoder, classes=3), builders.batch((5, 1, 3))
    chosen = sets(batch, 5)
    found = decomposed(model, batch, chosen)
    for row in range(3):
        words, length = embedded(model, batch, row)
        for number in range(5):
            inside = chosen[row, number, :length].numpy()
            relevant, rest = hand(model, batch, row, inside, STATES[encoder](model.encoder, words, inside))
            np.testing.assert_allclose(found.relevant[row, number].numpy(), relevant, atol=1e-11)
            np.testing.assert_allclose(found.rest[row, number].numpy(), rest, atol=1e-11)


@pytest.mark.parametrize("encoder", ["lstm", "gru"])
def test_over_sampled_contexts_every_number_is_that_of_the_rules_written_out(encoder):
    model, batch = builders.model(encoder=encoder, classes=3), builders.batch((4, 2))
    chosen = sets(batch, 3)
    generator = torch.Generator().manual_seed(7)
    versions = torch.randint(4, builders.WORDS, (2, 3, 3, 4), generator=generator)
    versions = torch.where(chosen[:, :, None], batch.ids[:, None, None], versions)
    found = decomposed(model, batch, chosen, versions)
    for row in range(2):
        words, length = embedded(model, batch, row)
        for number in range(3):
            inside = chosen[row, number, :length].numpy()
            others = [model.embedding(version[:length]).detach().numpy() for version in versions[row, number]]
            states = by_hand.bidirectional(model.encoder, words, inside, others)
            relevant, rest = hand(model, batch, row, inside, states)
            np.testing.assert_allclose(found.relevant[row, number].numpy(), relevant, atol=1e-11)
            np.testing.assert_allclose(found.rest[row, number].numpy(), rest, atol=1e-11)


def test_of_a_linear_model_a_phrase_has_the_sum_of_its_words_weights():
    model, batch = builders.model(encoder="none", projection="uniform", classes=2), builders.batch()
    chosen, target = sets(batch), torch.tensor([0, 1, 1, 0])
    with torch.no_grad():
        logits = model.embed(batch) @ model.decoder.weight.T  # [B, T, C]
    weights = logits.gather(2, target[:, None, None].expand(4, 12, 1)).squeeze(2) * 2 - logits.sum(-1)
    each = weights * batch.mask / batch.lengths[:, None]
    expected = (chosen & batch.mask[:, None]).double() @ each[..., None]
    torch.testing.assert_close(ContextualDecomposition()(model, batch, target, chosen), expected[..., 0], **CLOSE)


@pytest.mark.parametrize("kind", ["lstm", "cnn", "transformer-sparse", "hierarchical-gru", "aspect"])
def test_padding_order_and_the_size_of_what_is_read_at_once_change_nothing(kind, monkeypatch):
    model, batch, wide = builders.kind(kind), builders.texts(), builders.texts(width=17)
    chosen = sets(batch, 6)
    scorer, target = ContextualDecomposition(), torch.tensor([0, 1, 1, 0])
    found = scorer(model, batch, target, chosen)
    longer = torch.cat([chosen, torch.ones(4, 6, 5, dtype=torch.bool)], dim=-1)
    torch.testing.assert_close(scorer(model, wide, target, longer), found, **CLOSE)
    order = torch.tensor([3, 1, 0, 2])
    torch.testing.assert_close(scorer(model, batch[order], target[order], chosen[order]), found[order], **CLOSE)
    monkeypatch.setitem(budget.ROOM, "decomposition", (12 * 7, 0))
    torch.testing.assert_close(scorer(model, batch, target, chosen), found, **CLOSE)


def test_each_word_is_a_phrase_of_its_own():
    model, batch = builders.kind("lstm", 3), builders.texts()
    target = torch.tensor([2, 0, 1, 2])
    words = WordDecomposition()(model, batch, target)
    for place in (0, 2, 11):
        chosen = torch.zeros(4, 1, 12, dtype=torch.bool)
        chosen[:, :, place] = True
        alone = ContextualDecomposition()(model, batch, target, chosen)[:, 0]
        torch.testing.assert_close(words[:, place], alone * batch.mask[:, place])


def test_a_phrase_can_be_more_than_its_words():
    model, batch = builders.kind("lstm"), builders.batch((6,))
    chosen = torch.zeros(1, 3, 6, dtype=torch.bool)
    chosen[0, 0, 1:3], chosen[0, 1, 1], chosen[0, 2, 2] = True, True, True
    both, first, second = ContextualDecomposition()(model, batch, batch.labels, chosen)[0]
    assert (both - first - second).abs() > 1e-3


def test_a_class_that_cannot_be_right_does_not_count():
    model, batch = builders.kind("paired-average", 4), builders.texts()
    allowed = torch.tensor([[True, True, False, True]]).expand(4, 4)
    target, chosen = torch.tensor([0, 1, 3, 0]), sets(batch)
    found = ContextualDecomposition()(model, replace(batch, candidates=allowed), target, chosen)
    relevant = decomposed(model, batch, chosen).relevant[..., [0, 1, 3]]
    fewer = torch.tensor([0, 1, 2, 0])
    expected = decomposition.margins(relevant, model, batch, fewer)
    torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize("kind", ["structured", "spans"])
def test_a_shape_without_rules_is_refused(kind):
    model, batch = builders.kind(kind), builders.texts()
    with pytest.raises(AssayError, match="contextual decomposition is known for"):
        ContextualDecomposition()(model, batch, batch.labels, sets(batch))


@pytest.mark.slow
def test_on_a_planted_corpus_the_words_that_decide_have_the_most():
    corpus = PLANTED["planted:negation"](0)
    architecture = Architecture(encoder="lstm", embedding=64, hidden=64, alignment_size=32)
    training = Training(epochs=40, patience=15, learning_rate=3e-3)
    model = train(corpus, Recipe(architecture=architecture, training=training))
    texts, _ = tokenise(corpus.test[:200], model.tokeniser, 1000)
    batch = collate(texts, 2)
    with torch.no_grad():
        target = model.network(model.network.embed(batch), batch).logits.argmax(-1)
    assert (target == batch.labels).float().mean() > 0.95

    def precision(scores):
        return average_precision(scores.abs().double().numpy(), batch.truth.numpy(), batch.mask.numpy()).mean()

    chance = precision(Random()(model.network, batch, target))
    assert precision(WordDecomposition()(model.network, batch, target)) > 0.65 > chance + 0.3
