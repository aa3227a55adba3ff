"""Structured attention, attention over spans and by aspect, against plain readings of one text at a time."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch

from assay.audits.cases import Case
from assay.audits.minimal_set import MinimalSet
from assay.data.batches import collate, tokenise
from assay.data.examples import Corpus, Example
from assay.data.planted import ASPECTS, PLANTED
from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.needs import unfit
from assay.intervene.edits import uniform
from assay.models import store
from assay.models.config import Architecture, Training
from assay.models.encoders import ENCODERS
from assay.models.networks import built, inside
from assay.models.objectives import Labels, Learning
from assay.models.projections import projection
from assay.models.recipes import Recipe, preset, suited, train
from assay.types import token_logits
from tests import builders

SHAPES = ("structured", "spans", "aspect")
EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)
EVERY_ENCODER = pytest.mark.parametrize("encoder", ENCODERS)
EVERY_PROJECTION = pytest.mark.parametrize("name", ["softmax", "sparsemax", "sparsegen(0.5)", "uniform"])
SPARSE = {"projection": "sparsegen(0.9)"}


def read(model, batch, row):
    """The encoded words of one text by itself, as the model's encoder reads them, with what is beside them."""
    words = model.embedding(batch.ids[row, : int(batch.mask[row].sum())])
    if model.architecture.shape == "aspect":
        words = torch.cat([words, asked(model, batch, row).expand_as(words)], dim=-1)
    return model.encoder(words[None], torch.ones(1, len(words), dtype=torch.bool))[0]


def asked(model, batch, row):
    names = [word for word, there in zip(batch.query.ids[row], batch.query.mask[row], strict=True) if there]
    return sum(model.embedding.weight[word] for word in names) / len(names)


def weighed(model, scores):
    return projection(model.architecture.projection)(scores, torch.ones_like(scores, dtype=torch.bool))


def plain_rows(model, states):
    """The R × T matrix A, a row and a word at a time."""
    first, second = model.alignment.project.weight, model.alignment.score.weight
    scores = [torch.stack([vector @ (first @ state).tanh() for state in states]) for vector in second]
    return torch.stack([weighed(model, row) for row in scores])


def plain_structured(model, batch, row):
    """The logits of M = A H, flattened, and the sum over rows, normalised."""
    states = read(model, batch, row)
    rows = plain_rows(model, states)
    logits = model.decoder((rows @ states).reshape(-1))
    return logits, rows.sum(0) / rows.sum()


def spans_of(model, states):
    """All spans by brute force: first word, last word and vector."""
    parts, found = model.composition, []
    for first in range(len(states)):
        for last in range(first, min(len(states), first + model.architecture.longest_span)):
            one, two = states[first], states[last]
            vector = parts.start(one) + parts.end(two) + parts.apart(one - two) + parts.product(one * two)
            found.append((first, last, vector.tanh()))
    return found


def plain_spans(model, batch, row):
    """The logits of the mean span, and what each word has of the weights."""
    states = read(model, batch, row)
    found = spans_of(model, states)
    weights = weighed(model, model.alignment(torch.stack([vector for _, _, vector in found])))
    shown = torch.zeros(len(states), dtype=states.dtype)
    for (first, last, _), weight in zip(found, weights, strict=True):
        shown[first : last + 1] += weight / (last - first + 1)
    mean = sum(weight * vector for (_, _, vector), weight in zip(found, weights, strict=True))
    return model.decoder(mean), shown


def plain_aspect(model, batch, row):
    states, aspect = read(model, batch, row), asked(model, batch, row)
    scores = [model.alignment(torch.cat([state, aspect])[None])[0] for state in states]
    weights = weighed(model, torch.stack(scores))
    return model.decoder(weights @ states), weights


PLAIN = {"structured": plain_structured, "spans": plain_spans, "aspect": plain_aspect}


def check_against_plain(model, batch):
    output = model(model.embed(batch), batch)
    for row in range(len(batch)):
        logits, weights = PLAIN[model.architecture.shape](model, batch, row)
        torch.testing.assert_close(output.logits[row], logits, atol=1e-10, rtol=1e-10)
        torch.testing.assert_close(output.attention[-1][row, : len(weights)], weights, atol=1e-10, rtol=1e-10)


def contributions(model, batch, row):
    """What each word adds to what the decoder reads: its column of A times h, its part of each span, or α h."""
    states, shape = read(model, batch, row), model.architecture.shape
    if shape == "structured":
        return torch.stack(
            [torch.outer(a, h).reshape(-1) for a, h in zip(plain_rows(model, states).T, states, strict=True)]
        )
    if shape == "aspect":
        return plain_aspect(model, batch, row)[1][:, None] * states
    found, parts = spans_of(model, states), torch.zeros_like(states)
    weights = weighed(model, model.alignment(torch.stack([vector for _, _, vector in found])))
    for (first, last, vector), weight in zip(found, weights, strict=True):
        parts[first : last + 1] += weight * vector / (last - first + 1)
    return parts


@torch.no_grad()
def fewest(model, batch, row):
    """The size of the smallest set of words without which the decision is another, by trying all of them."""
    parts, (_, weights) = contributions(model, batch, row), PLAIN[model.architecture.shape](model, batch, row)

    def decided(gone):
        left = [word for word in range(len(parts)) if word not in gone]
        share = weights[left].sum()
        return int(model.decoder(parts[left].sum(0) / (share if share > 0 else 1)).argmax())

    sizes = range(1, len(parts) + 1)
    flips = (n for n in sizes for gone in combinations(range(len(parts)), n) if decided(gone) != decided(()))
    return next(flips, float("nan"))


@EVERY_SHAPE
@pytest.mark.parametrize("options", [{}, SPARSE], ids=["dense", "sparse"])
def test_the_smallest_set_of_words_is_that_of_brute_force(shape, options):
    found, expected = [], []
    for seed in range(6):
        model, batch = builders.model(seed, shape=shape, classes=3, **options), builders.texts((7, 3, 6, 5))
        answer = MinimalSet()(Case(model, batch, {})).measures
        sizes = answer["erased:optimum"] * batch.lengths.numpy()
        found += np.where(answer["never:optimum"] == 1, np.nan, sizes).tolist()
        expected += [fewest(model, batch, row) for row in range(len(batch))]
    assert found == pytest.approx(expected, nan_ok=True)
    assert len({each for each in expected if each == each}) > 1  # sets of several sizes


@EVERY_SHAPE
@EVERY_ENCODER
def test_a_text_is_read_as_the_formulas_say(shape, encoder):
    check_against_plain(builders.model(shape=shape, encoder=encoder, classes=3), builders.texts())


@EVERY_SHAPE
@EVERY_PROJECTION
def test_any_projection_makes_the_weights(shape, name):
    check_against_plain(builders.model(shape=shape, encoder="gru", classes=3, projection=name), builders.texts())


@pytest.mark.parametrize("options", [{"rows": 1}, {"rows": 9}])
def test_there_are_as_many_rows_as_asked_for(options):
    model, batch = builders.model(shape="structured", **options), builders.texts()
    check_against_plain(model, batch)
    states = model.states(model.embed(batch), batch)
    assert model.rows(states).shape == (4, options["rows"], 12)


@pytest.mark.parametrize("options", [{"longest_span": 1}, {"longest_span": 40}, {"alignment": "dot"}])
def test_spans_are_as_long_as_asked_for(options):
    check_against_plain(builders.model(shape="spans", **options), builders.texts())


@EVERY_SHAPE
@pytest.mark.parametrize("options", [{}, SPARSE], ids=["dense", "sparse"])
def test_the_weighted_states_are_all_that_the_decoder_reads(shape, options):
    """So every exact intervention on the weights holds: the logits are linear in them."""
    model, batch = builders.model(shape=shape, classes=3, **options), builders.texts()
    states = model.states(model.embed(batch), batch)
    weights, alone = model.attend(states, batch), token_logits(model, states)
    assert ((weights == 0) & batch.mask).any() == bool(options)
    for shown, edit in ((weights, None), (uniform(weights, batch.mask), uniform)):
        found = model(model.embed(batch), batch, edit).logits
        torch.testing.assert_close(found, (shown[:, None] @ alone)[:, 0], atol=1e-10, rtol=1e-10)


def test_the_weighted_states_of_words_sum_to_the_rows_times_the_encodings():
    model, batch = builders.model(shape="structured", projection="sparsemax"), builders.texts()
    states = model.states(model.embed(batch), batch)
    shown = model.attend(states, batch)
    own = torch.stack([model.pooled(states[:, [t]], shown.new_ones(4, 1)) for t in range(12)], dim=1)
    for row in range(4):
        encoded = read(model, batch, row)
        matrix = plain_rows(model, encoded) @ encoded
        torch.testing.assert_close((shown[row, :, None] * own[row]).sum(0), matrix.reshape(-1))


def test_a_word_that_no_row_attends_to_has_equal_rows():
    model, batch = builders.model(shape="structured", **SPARSE), builders.texts()
    states = model.states(model.embed(batch), batch)
    row, word = ((model.attend(states, batch) == 0) & batch.mask).nonzero()[0].tolist()
    expected = model.decoder(states[row, word, : model.encoder.size].repeat(model.architecture.rows))
    torch.testing.assert_close(token_logits(model, states)[row, word], expected)


def test_a_word_whose_spans_have_no_weight_stands_by_itself():
    model, batch = builders.model(shape="spans", **SPARSE), builders.texts()
    states = model.states(model.embed(batch), batch)
    row, word = ((model.attend(states, batch) == 0) & batch.mask).nonzero()[0].tolist()
    alone = next(vector for first, last, vector in spans_of(model, read(model, batch, row)) if first == last == word)
    torch.testing.assert_close(token_logits(model, states)[row, word], model.decoder(alone))


def test_disjoint_rows_of_one_word_each_have_no_penalty_and_equal_ones_most():
    model, batch = builders.model(shape="structured", rows=3), builders.texts((5, 5))
    states = model.states(model.embed(batch), batch).detach().clone()
    states[0, :, -3:] = torch.eye(5)[:, 1:4]
    states[1, :, -3:] = torch.eye(5)[:, [1, 1, 1]]
    torch.testing.assert_close(model.penalty(states, batch), torch.tensor([0.0, 6.0], dtype=torch.float64))


@EVERY_PROJECTION
def test_the_penalty_of_rows_is_that_of_the_formula(name):
    model, batch = builders.model(shape="structured", projection=name), builders.texts()
    found = model.penalty(model.states(model.embed(batch), batch), batch)
    for row in range(4):
        rows = plain_rows(model, read(model, batch, row))
        expected = torch.linalg.matrix_norm(rows @ rows.T - torch.eye(len(rows)), "fro") ** 2
        torch.testing.assert_close(found[row], expected)


def test_the_penalty_of_spans_is_lowest_where_one_has_all_the_weight():
    model, batch = builders.model(shape="spans"), builders.texts()
    states = model.states(model.embed(batch), batch)
    found = model.penalty(states, batch)
    for row in range(4):
        vectors = [vector for _, _, vector in spans_of(model, read(model, batch, row))]
        expected = weighed(model, model.alignment(torch.stack(vectors))).square().sum()
        torch.testing.assert_close(found[row], -expected)
    torch.testing.assert_close(found[1], torch.tensor(-1.0, dtype=torch.float64))  # one word is one span
    assert (found[[0, 2, 3]] > -1).all()


@pytest.mark.parametrize("options", [{}, SPARSE, {"encoder": "transformer"}], ids=["dense", "sparse", "transformer"])
def test_the_weights_of_spans_sum_to_one_and_none_touches_padding(options):
    model, batch = builders.model(shape="spans", longest_span=3, **options), builders.texts()
    spans, shown = model(model.embed(batch), batch).attention
    assert spans.shape == (4, 12, 3) and shown.shape == (4, 12)
    torch.testing.assert_close(spans.sum((1, 2)), torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(shown.sum(-1), torch.ones(4, dtype=torch.float64))
    for row, count in enumerate(batch.lengths.tolist()):
        for first in range(12):
            for length in range(1, 4):
                assert bool(inside(batch.mask, 3)[row, first, length - 1]) == (first + length <= count)
                assert first + length <= count or spans[row, first, length - 1] == 0


def test_the_heaviest_spans_are_those_with_most_weight():
    model, batch = builders.model(shape="spans", longest_span=4), builders.texts()
    first, last, weights = model.heaviest(batch, count=3)
    for row in range(4):
        found = spans_of(model, read(model, batch, row))
        every = weighed(model, model.alignment(torch.stack([vector for _, _, vector in found])))
        best = every.argsort(descending=True)[:3].tolist()
        expected = [(*found[place][:2], float(every[place].detach())) for place in best]
        shown = list(zip(first[row].tolist(), last[row].tolist(), weights[row].tolist(), strict=True))
        assert [span[:2] for span in shown[: len(expected)]] == [span[:2] for span in expected]
        assert [span[2] for span in shown] == pytest.approx([*(s[2] for s in expected), 0, 0][:3], abs=1e-12)


@EVERY_SHAPE
@pytest.mark.parametrize("markers", [False, True])
def test_padding_order_and_company_change_nothing(shape, markers):
    model = builders.model(shape=shape, markers=markers, projection="sparsemax")
    narrow, wide = builders.texts(), builders.texts(width=20)
    expected = model(model.embed(narrow), narrow)
    found = model(model.embed(wide), wide)
    torch.testing.assert_close(found.logits, expected.logits)
    torch.testing.assert_close(found.attention[-1][:, :12], expected.attention[-1])
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(model(model.embed(narrow[order]), narrow[order]).logits, expected.logits[order])


def test_markers_are_read_and_not_attended():
    for shape in SHAPES:
        model, batch = builders.model(shape=shape, markers=True), builders.texts()
        without = built(replace(model.architecture, markers=False), builders.WORDS, 2).double().eval()
        without.load_state_dict(model.state_dict())
        found, other = (each(each.embed(batch), batch) for each in (model, without))
        assert not torch.allclose(found.logits, other.logits)
        torch.testing.assert_close(found.attention[-1].sum(-1), torch.ones(4, dtype=torch.float64))


@EVERY_SHAPE
@pytest.mark.parametrize("options", [{}, SPARSE], ids=["dense", "sparse"])
def test_a_text_of_one_word_has_all_attention_there_and_an_empty_one_none(shape, options):
    model, batch = builders.model(shape=shape, **options), builders.texts((1, 6))
    empty = replace(batch, mask=batch.mask & torch.tensor([[True], [False]]))
    output = model(model.embed(empty), empty)
    assert float(output.attention[-1][0, 0].detach()) == pytest.approx(1.0)
    assert (output.attention[-1][1] == 0).all()
    torch.testing.assert_close(output.logits[1], model.decoder.bias)
    output.logits.sum().backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


@EVERY_SHAPE
def test_slopes_are_those_of_small_steps_and_of_no_weight_infinite(shape):
    model, batch = builders.model(shape=shape, encoder="average"), builders.texts((5, 3))
    x = model.embed(batch).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda vectors: model(vectors, batch).logits, (x,))
    with torch.no_grad():  # all but one weight vanish, in single precision below what it can hold
        model.alignment.score.weight.mul_(1e3)
    model.float()
    states = model.states(model.embed(batch), batch)
    loss = model.decode(states, model.attend(states, batch)).sum()
    loss = loss + sum(part.sum() for part in [model.penalty(states, batch)] if part is not None)
    loss.backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


@EVERY_SHAPE
def test_encodings_are_what_the_encoder_makes_of_the_words(shape):
    model, batch = builders.model(shape=shape, concat=True), builders.texts()
    x = model.embed(batch)
    found = model.encodings(x, batch, model.states(x, batch))
    for row, count in enumerate(batch.lengths.tolist()):
        torch.testing.assert_close(found[row, :count], read(model, batch, row))


@EVERY_SHAPE
def test_explainers_that_do_not_know_a_shape_say_so(shape):
    model = builders.model(shape=shape)
    refused = {name: reason for name, each in EXPLAINERS.items() if (reason := unfit(each, model)) is not None}
    assert {"lrp", "attnlrp", "deeplift", "rollout"} <= set(refused)
    assert "attention" not in refused and "leave_one_out" not in refused


def test_only_where_layers_give_the_pooled_states_can_they_be_followed():
    layers = {shape: builders.model(shape=shape, encoder="transformer").layers for shape in SHAPES}
    assert layers == {"structured": 2, "spans": 0, "aspect": 2}


def test_an_aspect_is_demanded_and_moves_the_attention():
    model, batch = builders.model(shape="aspect"), builders.texts()
    other = replace(batch, query=batch.query[torch.tensor([1, 0, 3, 2])])
    one, two = (model(model.embed(batch), each).attention[-1] for each in (batch, other))
    assert (one - two)[batch.lengths > 1].abs().amax(-1).min() > 1e-3
    with pytest.raises(AssayError, match="a text and an aspect"):
        model(model.embed(batch), replace(batch, query=None))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shape": "structured", "rows": 0}, "must be at least 1"),
        ({"shape": "spans", "longest_span": 0}, "must be at least 1"),
        ({"shape": "structured", "alignment": "dot"}, "is additive"),
        ({"shape": "aspect", "alignment": "dot"}, "is additive"),
    ],
)
def test_what_cannot_be_built_is_refused(options, said):
    with pytest.raises(AssayError, match=said):
        Architecture(**options)


def test_an_architecture_says_what_it_is():
    assert "7 rows of attention" in str(Architecture(shape="structured", rows=7))
    assert "spans of up to 5 words" in str(Architecture(shape="spans", longest_span=5))
    assert "given the aspect" in str(Architecture(shape="aspect"))


@EVERY_SHAPE
def test_there_is_a_preset_of_the_shape(shape):
    recipe = preset(shape)
    assert recipe.architecture.shape == shape and recipe.training.penalty == 1
    assert Recipe.of({name: vars(part) for name, part in vars(recipe).items()}) == recipe


def small(pairs):
    examples = tuple(Example(f"word {n} here", n % 2, query="word" if pairs else None) for n in range(4))
    return Corpus("small", ("no", "yes"), examples, examples, examples)


@pytest.mark.parametrize(
    ("shape", "pairs", "said"),
    [
        ("structured", True, "--joined"),
        ("spans", True, "--joined"),
        ("aspect", False, "has no questions"),
        ("aspect", True, None),
        ("spans", False, None),
    ],
)
def test_an_explicit_shape_is_kept_or_refused(shape, pairs, said):
    recipe = Recipe(Architecture(shape=shape))
    if said is None:
        assert suited(recipe, small(pairs)) == recipe
    else:
        with pytest.raises(AssayError, match=said):
            suited(recipe, small(pairs))


@EVERY_SHAPE
def test_a_stored_model_is_the_same_when_it_is_loaded(shape, tmp_path):
    model, batch = builders.model(shape=shape, dtype=torch.float32, rows=3, longest_span=2), builders.texts()
    tokeniser = Tokeniser.fit([" ".join(f"w{n}" for n in range(36))], TextOptions(min_count=1))
    store.save(store.Trained(model, tokeniser, ("no", "yes"), {}), tmp_path)
    loaded = store.load(tmp_path).network
    assert loaded.architecture == model.architecture
    assert torch.equal(loaded(loaded.embed(batch), batch).logits, model(model.embed(batch), batch).logits)


@EVERY_SHAPE
def test_the_penalty_is_learnt_with_the_labels_as_strongly_as_asked(shape):
    model, batch = builders.model(shape=shape), builders.texts()
    plain, doubled = (
        Labels().losses(model, batch, Learning(Training(penalty=strength), torch.nn.ModuleDict()))
        for strength in (0.0, 2.0)
    )
    penalty = model.penalty(model.states(model.embed(batch), batch), batch)
    assert (penalty is None) == (shape == "aspect")
    torch.testing.assert_close(doubled, plain if penalty is None else plain + 2 * penalty)


@pytest.fixture(scope="module")
def reviewer():
    """A model that has read reviews of several aspects for a few seconds."""
    parts = Architecture(shape="aspect", encoder="cnn", embedding=32, hidden=32, alignment_size=16)
    corpus = PLANTED["planted:aspect"](0)
    return train(corpus, Recipe(parts, training=Training(epochs=12, patience=12, batch_size=64, learning_rate=0.01)))


def test_the_aspect_flips_the_answer_and_where_the_model_looks(reviewer):
    texts = [
        f"The {one} was {liked}, but the {two} was {not_liked}."
        for one, two in pairwise(ASPECTS)
        for liked, not_liked in (("good", "poor"), ("awful", "lovely"))
    ]
    examples = [Example(text, 0, query=name) for text in texts for name in (text.split()[1], text.split()[6])]
    batch = collate(tokenise(examples, reviewer.tokeniser, 1000)[0], 2)
    network = reviewer.network
    output = network(network.embed(batch), batch)
    decided = output.logits.argmax(-1).reshape(-1, 2)
    highest = output.attention[-1].argmax(-1).reshape(-1, 2)
    expected = torch.tensor([[1, 0], [0, 1]]).repeat(len(ASPECTS) - 1, 1)
    assert (decided == expected).float().mean() >= 0.9
    comma = 4
    assert ((highest[:, 0] < comma) & (highest[:, 1] > comma)).float().mean() >= 0.8
