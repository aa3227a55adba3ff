"""Objectives besides the right class: each formula computed again in plain Python, and what training with it does."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from assay.data.text import SPECIAL, UNKNOWN
from assay.errors import AssayError
from assay.models import objectives as regularisers
from assay.models import recipes
from assay.models.config import Training
from assay.models.objectives import (
    Labels,
    Learning,
    Read,
    avoidance,
    conicity,
    diversity,
    heads,
    masked_words,
    regularised,
    tying,
)
from assay.models.recipes import train
from tests import builders
from tests.models.test_training import SMALL, corpus

SHAPES = {
    "flat-lstm": {"encoder": "lstm"},
    "flat-gru": {"encoder": "gru", "alignment": "dot", "concat": True},
    "flat-cnn": {"encoder": "cnn"},
    "flat-transformer": {"encoder": "transformer"},
    "paired-lstm": {"shape": "paired", "encoder": "lstm", "concat": True},
    "paired-cnn": {"shape": "paired", "encoder": "cnn"},
    "hierarchical-gru": {"shape": "hierarchical", "encoder": "gru"},
    "hierarchical-cnn": {"shape": "hierarchical", "encoder": "cnn", "concat": True},
}
EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)
REGULARISERS = pytest.mark.parametrize("name", regularisers.REGULARISERS)


def network(shape="flat-lstm", **options):
    """States and embeddings of one size, as tying needs them."""
    return builders.model(embedding=8, **({"hidden": 4} | SHAPES[shape] | options))


def read(model, batch):
    x = model.embed(batch)
    states = model.states(x, batch)
    return Read(model, x, batch, states, model.attend(states, batch))


def vectors(found):
    """The encodings and embeddings of the real words of each text, as lists."""
    for row, length in enumerate(found.batch.lengths.tolist()):
        yield found.encodings[row, :length].tolist(), found.x[row, :length].tolist()


def cosine(one, other):
    product = sum(a * b for a, b in zip(one, other, strict=True))
    lengths = math.hypot(*one) * math.hypot(*other)
    return product / lengths if lengths else 0.0


def by_hand(name, found):
    numbers = []
    for states, embeddings in vectors(found):
        count = len(states)
        if name == "tying":
            numbers.append(sum(math.dist(h, e) for h, e in zip(states, embeddings, strict=True)) / count)
        elif name == "conicity":
            centre = [sum(column) / count for column in zip(*states, strict=True)]
            numbers.append(sum(cosine(h, centre) for h in states) / count)
        else:
            pairs = [cosine(states[s], states[t]) ** 2 for s in range(count) for t in range(count) if s != t]
            numbers.append(sum(pairs) / max(len(pairs), 1))
    return numbers


@REGULARISERS
@EVERY_SHAPE
def test_each_number_is_that_of_a_plain_loop_over_the_words(name, shape):
    found = read(network(shape), builders.texts((7, 1, 4, 12)))
    assert regularisers.REGULARISERS[name](found).tolist() == pytest.approx(by_hand(name, found), abs=1e-12)


@REGULARISERS
@EVERY_SHAPE
def test_padding_changes_nothing(name, shape):
    model = network(shape)
    narrow, wide = (regularisers.REGULARISERS[name](read(model, builders.texts(width=width))) for width in (None, 19))
    torch.testing.assert_close(narrow, wide, atol=1e-12, rtol=0)


@REGULARISERS
@EVERY_SHAPE
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_gradient_is_finite(name, shape, dtype):
    """Also where a convolution with ReLU gives a word the state 0, and on padding."""
    model = network(shape).to(dtype)
    regularisers.REGULARISERS[name](read(model, builders.texts())).sum().backward()
    gradients = [part.grad for part in model.parameters() if part.grad is not None]
    assert gradients and all(torch.isfinite(gradient).all() for gradient in gradients)


def fixed(encodings, x, batch):
    """A network that was told what it makes of each word."""
    model = network()
    model.encodings = lambda x, batch, states: encodings
    return Read(model, x, batch, encodings, encodings[..., 0])


def given(states):
    """One text with these encodings, and some padding."""
    encodings = F.pad(torch.tensor(states, dtype=torch.float64)[None], (0, 0, 0, 2))
    batch = builders.batch((len(states),), width=len(states) + 2)
    return fixed(encodings, encodings, batch)


def test_conicity_and_diversity_of_known_states():
    alike = given([[3.0, 4.0, 0.0]] * 5)
    apart = given([[2.0, 0, 0], [0, 2.0, 0], [0, 0, 2.0]])
    opposed = given([[1.0, 1, 0], [-1.0, -1, 0]])
    assert conicity(alike).item() == pytest.approx(1)
    assert conicity(apart).item() == pytest.approx(1 / math.sqrt(3))
    assert conicity(opposed).item() == pytest.approx(0)
    assert diversity(alike).item() == pytest.approx(1)
    assert diversity(apart).item() == pytest.approx(0)
    assert diversity(opposed).item() == pytest.approx(1)
    assert tying(alike).item() == 0


@EVERY_SHAPE
def test_tying_moves_the_encoder_and_no_embedding_of_a_word(shape):
    """Neither as what is read nor as what is aimed at; the gradient in the encoder is that of finite differences."""
    model, batch = network(shape), builders.texts((3, 5))
    tying(read(model, batch)).sum().backward()
    gradients = model.embedding.weight.grad
    assert gradients is None or (gradients == 0).all()
    name, part = max(model.words_encoder.named_parameters(), key=lambda each: each[1].grad.abs().max())
    place = divmod(int(part.grad.abs().reshape(len(part), -1).argmax()), part[0].numel())
    sides, step = [], 1e-6
    for sign in (1, -1):
        with torch.no_grad():
            part.reshape(len(part), -1)[place] += sign * step
            sides.append(sum(by_hand("tying", read(model, batch))))
            part.reshape(len(part), -1)[place] -= sign * step
    gradient = part.grad.reshape(len(part), -1)[place].item()
    assert gradient == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=1e-5), name


def test_frozen_embeddings_need_no_second_reading(monkeypatch):
    model, batch = network(), builders.batch()
    expected = tying(read(model, batch))
    model.embedding.weight.requires_grad_(False)
    found = read(model, batch)
    monkeypatch.setattr(Read, "reread", lambda *_: pytest.fail("read again"))
    torch.testing.assert_close(tying(found), expected)


@pytest.mark.parametrize("encoder", ["lstm", "gru"])
def test_strong_tying_makes_words_decodable_from_their_states(encoder):
    torch.manual_seed(0)
    model = recipes.drawn(replace(SMALL.architecture, encoder=encoder, embedding=16), builders.WORDS, 2, seed=0)
    batch = builders.batch((9,) * 16)
    options = Training(tying=10.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)

    def looked_up():
        found = read(model, batch)
        nearest = torch.cdist(found.encodings.reshape(-1, 16), model.embedding.weight).argmin(-1)
        return tying(found).mean().item(), (nearest == batch.ids.flatten()).double().mean().item()

    before, table = looked_up(), model.embedding.weight.detach().clone()
    for _ in range(150):
        optimiser.zero_grad()
        regularised(read(model, batch), options, nn.ModuleDict()).mean().backward()
        optimiser.step()
    after = looked_up()
    assert after[0] < before[0] / 5
    assert before[1] < 0.3 and after[1] > 0.95
    assert torch.equal(model.embedding.weight, table)  # they neither become one nor run away


def everything(monkeypatch):
    monkeypatch.setattr(regularisers, "MASKED", 1.1)


@EVERY_SHAPE
def test_masked_words_by_hand(shape, monkeypatch):
    """The same draw, the masked texts read again one by one, and a softmax over the words with loops."""
    monkeypatch.setattr(regularisers, "MASKED", 0.4)
    model, batch = network(shape), builders.texts((7, 1, 4, 12))
    head = heads(model, Training(mlm=1.0))["mlm"]
    torch.manual_seed(3)
    found = masked_words(read(model, batch), head)
    torch.manual_seed(3)
    hidden = (torch.rand(batch.ids.shape) < 0.4) & batch.mask
    assert 0 < hidden.sum() < batch.mask.sum()
    masked = replace(batch, ids=torch.where(hidden, SPECIAL.index(UNKNOWN), batch.ids))
    expected = []
    for row in range(len(batch)):
        states = read(model, masked[row : row + 1]).encodings[0]
        losses = []
        for place in hidden[row].nonzero().flatten().tolist():
            wanted = (head.weight @ states[place] + head.bias).tolist()
            scores = {
                word: sum(a * b for a, b in zip(wanted, model.embedding.weight[word].tolist(), strict=True))
                for word in range(len(SPECIAL), builders.WORDS)
            }
            norm = math.log(sum(map(math.exp, scores.values())))
            losses.append(norm - scores[int(batch.ids[row, place])])
        expected.append(sum(losses) / max(len(losses), 1))
    assert found.tolist() == pytest.approx(expected)


@EVERY_SHAPE
def test_masked_words_are_hidden_from_the_encoder(shape, monkeypatch):
    """With all words masked, no number depends on their embeddings but by the output, which shares these."""
    everything(monkeypatch)
    model, batch = network(shape), builders.texts()
    head = heads(model, Training(mlm=1.0))["mlm"]
    found = read(model, batch)
    x = found.x.detach().requires_grad_()
    masked_words(replace(found, x=x), head).sum().backward()
    assert (x.grad == 0).all()
    assert model.embedding.weight.grad[len(SPECIAL) :].abs().sum() > 0
    assert model.embedding.weight.grad[SPECIAL.index(UNKNOWN)].abs().sum() > 0


@EVERY_SHAPE
@pytest.mark.parametrize("rate", [0.0, 1.1])
def test_with_no_word_or_every_word_masked_all_is_finite(shape, rate, monkeypatch):
    monkeypatch.setattr(regularisers, "MASKED", rate)
    model, batch = network(shape), builders.texts((1, 1, 3))
    head = heads(model, Training(mlm=1.0))
    found = masked_words(read(model, batch), head["mlm"])
    assert torch.isfinite(found).all() and bool((found > 0).all()) == (rate > 1)
    (found.sum() + 0 * model.embedding.weight.sum()).backward()
    assert all(part.grad is None or torch.isfinite(part.grad).all() for part in model.parameters())


def test_unknown_words_and_markers_are_neither_masked_nor_guessed(monkeypatch):
    everything(monkeypatch)
    model, batch = network(), builders.batch((4, 2))
    unknown = SPECIAL.index(UNKNOWN)
    head = heads(model, Training(mlm=1.0))["mlm"]
    strange = replace(batch, ids=torch.where(batch.mask, unknown, 0))
    assert masked_words(read(model, strange), head).tolist() == [0, 0]
    masked_words(read(model, batch), head).sum().backward()
    others = [place for place in range(len(SPECIAL)) if place != unknown]
    assert (model.embedding.weight.grad[others] == 0).all()


def test_the_padding_keeps_its_embedding_of_zero():
    sized = replace(SMALL, architecture=replace(SMALL.architecture, hidden=4))
    trained = train(corpus(), replace(sized, training=replace(SMALL.training, mlm=1.0, tying=1.0)))
    assert (trained.network.embedding.weight[0] == 0).all()


def test_masked_words_are_learnt(monkeypatch):
    """Of texts in which each word tells the next, masked words are guessed better than by how frequent they are."""
    torch.manual_seed(0)
    starts = torch.randint(0, 36, (32, 1))
    ids = (starts + torch.arange(8)) % 36 + 4
    batch = builders.Batch(ids, torch.ones_like(ids).bool(), torch.zeros(32).long())
    model = recipes.drawn(replace(SMALL.architecture, embedding=16), builders.WORDS, 2, seed=0)
    learning = Learning(Training(mlm=1.0), heads(model, Training(mlm=1.0)))
    parts = [*model.parameters(), *learning.heads.parameters()]
    optimiser = torch.optim.Adam(parts, lr=0.02)
    for _ in range(120):
        optimiser.zero_grad()
        Labels().losses(model, batch, learning).mean().backward()
        optimiser.step()
    monkeypatch.setattr(regularisers, "MASKED", 0.3)
    with torch.no_grad():
        found = masked_words(read(model, batch), learning.heads["mlm"])
    assert found[found > 0].mean() < math.log(36) / 3


@EVERY_SHAPE
def test_avoidance_is_minus_the_logarithm_of_the_attention_elsewhere(shape):
    model, batch = network(shape), builders.texts((7, 2, 12))
    found = read(model, batch)
    avoided = tuple(set(batch.ids[0, :3].tolist() + batch.ids[2, 4:6].tolist()))
    within = model.within(found.x, batch)
    items = model.items(batch)
    expected = []
    for row, length in enumerate(batch.lengths.tolist()):
        shares = [(found.weights[row, items[row, t]] * within[row, t]).item() for t in range(length)]
        assert sum(shares) == pytest.approx(1)
        mass = sum(share for t, share in enumerate(shares) if int(batch.ids[row, t]) in avoided)
        expected.append(-math.log1p(-mass))
    assert avoidance(found, avoided).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("score", [0.0, 5.0, 30.0, 200.0])
def test_avoidance_is_finite_at_all_and_at_nothing(dtype, score):
    """Of all, of nothing, and of nearly all the attention; where something is left, its gradient asks for more."""
    scores = torch.tensor([[score, 0, 0]] * 3, dtype=dtype, requires_grad=True)
    batch = builders.batch((3, 3, 3))
    batch = replace(batch, ids=torch.tensor([[5, 6, 7], [5, 5, 5], [8, 9, 10]]))
    model = network().to(dtype)
    found = avoidance(Read(model, model.embed(batch), batch, scores[..., None], scores.softmax(-1)), (5,))
    found.sum().backward()
    assert torch.isfinite(found).all() and torch.isfinite(scores.grad).all()
    assert abs(found[2].item()) <= torch.finfo(dtype).eps and found[0].item() > 0
    if 0 < score < 10 * (1 if dtype is torch.bfloat16 else 3.1):
        assert scores.grad[0, 0] > 0 and scores.grad[0, 1] < 0
    if dtype is not torch.bfloat16 and score <= 30:
        assert found[0].item() == pytest.approx(math.log(math.exp(score) / 2 + 1), rel=1e-5)


@EVERY_SHAPE
def test_all_that_is_asked_for_is_added(shape):
    model, batch = network(shape), builders.texts()
    options = Training(tying=0.5, conicity=2.0, diversity=3.0, mlm=0.7)
    found, learning = read(model, batch), heads(model, options)
    torch.manual_seed(1)
    total = regularised(found, options, learning)
    torch.manual_seed(1)
    guessed = masked_words(found, learning["mlm"])
    torch.testing.assert_close(total, 0.5 * tying(found) + 2 * conicity(found) + 3 * diversity(found) + 0.7 * guessed)
    assert regularised(found, Training(), nn.ModuleDict()) == 0


def test_the_seed_decides_the_head_and_other_random_numbers_are_left_alone():
    model, before = network(), torch.random.get_rng_state()
    one, again, other = (heads(model, Training(mlm=1.0, seed=seed))["mlm"].weight for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert not heads(model, Training(tying=1.0))


@pytest.mark.parametrize("name", ["tying", "mlm", "conicity", "diversity", "deceive"])
@pytest.mark.parametrize("strength", [math.nan, math.inf, -0.1])
def test_strengths_that_cannot_be_are_refused_in_one_sentence(name, strength):
    with pytest.raises(AssayError, match=f"The strength of '{name}' must be at least 0, got"):
        Training(**{name: strength})


def test_words_to_avoid_and_how_strongly_come_together():
    for half in ({"avoid": ("good",)}, {"deceive": 1.0}):
        with pytest.raises(AssayError, match="name the words to --avoid and how strongly to --deceive"):
            Training(**half)


@pytest.mark.parametrize(("parts", "words"), [({}, "one size, not 16 and 8"), ({"encoder": "none"}, "nothing to tie")])
def test_states_that_cannot_be_tied_are_refused_before_training(parts, words, monkeypatch):
    monkeypatch.setattr(recipes, "fit", lambda *_: pytest.fail("training has begun"))
    changed = replace(SMALL, architecture=replace(SMALL.architecture, **parts))
    with pytest.raises(AssayError, match=words):
        train(corpus(), replace(changed, training=replace(SMALL.training, tying=1.0)))
