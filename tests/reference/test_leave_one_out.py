"""τ of attention with leave-one-out against a plain loop in float64 over texts that are read one by one."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from assay.audits.cases import Case
from assay.audits.pairwise import Agreement
from assay.data.batches import collate, tokenise
from assay.data.corpora import corpus
from assay.data.examples import Corpus, Example
from assay.explainers import EXPLAINERS
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, preset, train
from assay.models.textmodel import doubled, in_double
from assay.run.auditing import audited
from assay.run.examination import AuditPlan
from assay.types import attended
from tests import builders

BAGS = ("average", "none", "paired-average", "structured")
"""Networks to which the order of words means nothing: equal words are alike wherever they stand."""


def bag(words):
    return tuple(sorted(words))


def windows(words, width=7):
    around = (0,) * (width // 2)
    padded = (*around, *words, *around)
    return bag(padded[start : start + width] for start in range(len(words)))


def known(kind, words, sentences):
    """All that the network can see of a text: two texts of which it is the same have the same answer."""
    if kind in BAGS:
        return bag(words)
    if kind == "cnn":
        return windows(words)
    if kind == "hierarchical-none":
        return bag(bag(word for word, each in zip(words, sentences, strict=True) if each == s) for s in set(sentences))
    return (*zip(words, sentences, strict=True),) if kind.startswith("hierarchical") else tuple(words)


def in_place(kind, words, sentences, place):
    """All that the network can see of one word of a text."""
    if kind in BAGS:
        return words[place]
    if kind == "hierarchical-none":
        return words[place], bag(w for w, each in zip(words, sentences, strict=True) if each == sentences[place])
    return place


@torch.no_grad()
def by_hand(kind, network, batch):
    """τ-b of each text of the batch; what must be equal is worked out once."""
    taus = []
    for row in range(len(batch)):
        count = int(batch.mask[row].sum())
        text = batch[torch.tensor([row])].narrowed(count)
        words = text.ids[0].tolist()
        sentences = text.sentences[0].tolist() if kind.startswith("hierarchical") else [0] * count
        weights = EXPLAINERS["attention"](network, text, torch.zeros(1).long())[0]
        whole = network(network.embed(text), text).logits.softmax(-1)
        seen, attention, scores = {}, {}, []
        for place in range(count):
            left = [other for other in range(count) if other != place]
            key = known(kind, [words[other] for other in left], [sentences[other] for other in left])
            if key not in seen:
                answer = network.decode(
                    network.states(network.embed(text), text), torch.zeros(attended(network, text).shape).double()
                )
                if left:
                    rest = replace(
                        text,
                        ids=text.ids[:, left],
                        mask=text.mask[:, left],
                        truth=None,
                        sentences=None if text.sentences is None else text.sentences[:, left],
                    )
                    answer = network(network.embed(rest), rest).logits
                seen[key] = float((answer.softmax(-1) - whole).abs().sum() / 2)
            scores.append(seen[key])
            attention.setdefault(in_place(kind, words, sentences, place), float(weights[place]))
        shown = [attention[in_place(kind, words, sentences, place)] for place in range(count)]
        taus.append(kendalltau(shown, scores).statistic if count > 1 else np.nan)
    return np.array(taus)


def stammering(lengths, seed):
    """Texts in which many words stand twice or three times in a row."""
    batch = builders.structured(builders.batch(lengths, seed=seed))
    generator = torch.Generator().manual_seed(seed)
    again = torch.rand(batch.ids.shape, generator=generator) < 0.4
    for place in range(1, batch.ids.shape[1]):
        batch.ids[:, place] = torch.where(again[:, place], batch.ids[:, place - 1], batch.ids[:, place])
    return replace(batch, ids=batch.ids * batch.mask)


def single(kind):
    """A network in float32, as it is stored."""
    return builders.kind(kind, dtype=torch.float32)


@pytest.mark.parametrize("kind", builders.KINDS)
def test_tau_is_that_of_a_plain_loop_with_true_ties_in_every_text(kind):
    network = doubled(single(kind))
    batch = stammering((40, 2, 17, 23, 30, 9, 12, 40), seed=3)
    target = torch.zeros(len(batch)).long()
    scores = {name: EXPLAINERS[name](network, batch, target) for name in ("attention", "leave_one_out")}
    found = Agreement()(Case(network, batch, scores)).measures["tau:attention~leave_one_out"]
    np.testing.assert_allclose(found, by_hand(kind, network, batch), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", builders.KINDS)
def test_neighbours_that_are_equal_have_the_very_same_score_in_single_precision_too(kind):
    network, batch = single(kind), stammering((40, 17, 23), seed=5)
    scores = EXPLAINERS["leave_one_out"](network, batch, torch.zeros(3).long())
    alike = (batch.ids[:, 1:] == batch.ids[:, :-1]) & batch.mask[:, 1:]
    alike &= batch.sentences[:, 1:] == batch.sentences[:, :-1]
    assert alike.sum() > 10
    assert torch.equal(scores[:, 1:][alike], scores[:, :-1][alike])


def test_a_nearly_certain_answer_has_effects_to_their_own_last_digits():
    # with p near 1 the plain difference p - p' is a multiple of 1.1e-16, and these effects are below 1e-13
    network = deepcopy(builders.kind("lstm"))
    with torch.no_grad():
        network.decoder.bias.copy_(torch.tensor([33.0, 0.0]))
    batch = builders.batch((12,))
    found = EXPLAINERS["leave_one_out"](network, batch, torch.zeros(1).long())[0]
    logits = []
    for places in [range(12), *([other for other in range(12) if other != place] for place in range(12))]:
        text = replace(batch, ids=batch.ids[:, list(places)], mask=batch.mask[:, list(places)])
        logits.append(network(network.embed(text), text).logits[0].detach())
    margin = torch.stack(logits) @ torch.tensor([1.0, -1.0]).double()
    small = 1 / (1 + np.exp(margin.numpy()))  # of the class that loses, to 16 digits of its own
    np.testing.assert_allclose(found.numpy(), abs(small[1:] - small[0]), rtol=1e-6)
    assert found.max() < 1e-13


@pytest.fixture(scope="module")
def learnt():
    """A network that has learnt from texts with repeated words, stored in float32 as every trained network is."""
    drawn = np.random.default_rng(0)
    words = np.array(["good", "fine", "bad", "poor", "very", "so", "the", "a", "film", "plot"])

    def texts(count):
        found = []
        for _ in range(count):
            chosen = words[drawn.integers(len(words), size=12)].repeat(drawn.integers(1, 3, size=12))
            label = int(np.isin(chosen, ["bad", "poor"]).sum() > np.isin(chosen, ["good", "fine"]).sum())
            found.append(Example(" ".join(chosen), label))
        return tuple(found)

    corpus = Corpus("stammer", ("good", "bad"), texts(200), texts(50), texts(60))
    small = Architecture(embedding=16, hidden=8, alignment_size=8)
    return corpus, train(corpus, Recipe(small, training=Training(epochs=4, learning_rate=5e-3)))


def test_an_audit_reads_a_network_of_ours_in_double_precision(learnt):
    corpus, model = learnt
    before = {name: weight.clone() for name, weight in model.network.state_dict().items()}
    record = audited(model, corpus.test, AuditPlan(explainers=("attention", "leave_one_out"), audits=("agreement",)))
    rows, _ = tokenise(corpus.test, model.tokeniser, model.tokeniser.options.longest)
    batch = collate(rows, 2)
    found = record.instances["tau:attention~leave_one_out"].to_numpy()
    np.testing.assert_allclose(found, by_hand("lstm", deepcopy(model.network).double(), batch), rtol=0, atol=1e-9)
    assert record.summary["audits"]["agreement"]["kind"] == "exact"
    assert not in_double(model.network)
    assert all(torch.equal(before[name], weight) for name, weight in model.network.state_dict().items())


def test_the_batch_that_a_text_is_read_in_changes_no_rank(learnt):
    corpus, model = learnt
    plan = AuditPlan(explainers=("attention", "gradient", "leave_one_out"), audits=("agreement",))
    taus = ["tau:attention~gradient", "tau:attention~leave_one_out", "tau:gradient~leave_one_out"]
    together = audited(model, corpus.test, plan).instances.select(taus).to_pandas().to_numpy()
    alone = [audited(model, [each], plan).instances.select(taus).to_pandas().to_numpy() for each in corpus.test[:8]]
    assert np.array_equal(together[:8], np.concatenate(alone))


@pytest.mark.data
@pytest.mark.parametrize("kind", [pytest.param("lstm", marks=pytest.mark.slow), "average"])
def test_tau_of_the_published_recipe_on_sst_is_that_of_a_plain_loop(kind):
    whole, recipe = corpus("sst"), preset("jain-wallace", "sst", kind)
    recipe = replace(
        recipe,
        architecture=replace(recipe.architecture, encoder=kind),
        training=replace(recipe.training, epochs=2),
    )
    model = train(replace(whole, train=whole.train[:300]), recipe)
    plan = AuditPlan(explainers=("attention", "leave_one_out"), audits=("agreement",))
    texts = whole.test[:40]
    found = audited(model, texts, plan).instances["tau:attention~leave_one_out"].to_numpy()
    rows, _ = tokenise(texts, model.tokeniser, model.tokeniser.options.longest)
    batch = collate(rows, 2)
    assert (batch.ids[:, 1:] == batch.ids[:, :-1])[batch.mask[:, 1:]].any()
    np.testing.assert_allclose(found, by_hand(kind, deepcopy(model.network).double(), batch), rtol=0, atol=1e-9)
