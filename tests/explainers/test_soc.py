"""Sampling and occlusion: closed forms, contexts that make no difference, and the language model beneath."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from assay.data.batches import Tokenised, collate
from assay.errors import AssayError
from assay.explainers.decomposition import ContextualDecomposition
from assay.explainers.phrase_sampling import Language, LanguageOptions, SampledDecomposition, SamplingOcclusion
from assay.explainers.phrases import PhraseScorer
from assay.models.erasure import baseline
from assay.types import BLANKS, Output
from tests import builders

CLOSE = {"atol": 1e-10, "rtol": 0}
SMALL = LanguageOptions(size=12, hidden=16, epochs=8, learning_rate=1e-2, batch_size=16, predicted=1.0)
FIRST = 4  # the first id of a word
TARGET = torch.tensor([0, 1, 1, 0])


def rows(texts):
    return [
        Tokenised(
            place, torch.tensor(ids), torch.zeros(len(ids), 2, dtype=torch.int32), torch.zeros(len(ids)).long(), 0
        )
        for place, ids in enumerate(texts)
    ]


def grammar(count=300, seed=0):
    """Texts of three pairs: a word from 4 to 11, and behind it the one that belongs to it, eight further."""
    random = np.random.default_rng(seed)
    return rows([[word + more for word in random.integers(4, 12, 3) for more in (0, 8)] for _ in range(count)])


@cache
def grammatical():
    return Language.fit(grammar(), 24, replace(SMALL, epochs=12), seed=1)


@cache
def random_words():
    """A language model of random texts in the words of the builders' models."""
    random = np.random.default_rng(5)
    texts = [random.integers(4, 30, int(random.integers(3, 10))).tolist() for _ in range(60)]
    return Language.fit(rows(texts), builders.WORDS, replace(SMALL, epochs=2), seed=0)


def scorer(**options):
    return SamplingOcclusion(**{"window": 2, "samples": 4, "language": random_words(), **options})


def phrases(batch, count=4):
    generator = torch.Generator().manual_seed(3)
    chosen = torch.rand(len(batch), count, batch.ids.shape[1], generator=generator) < 0.3
    chosen[:, 0] = False
    return chosen


def margin(model, x, batch, target):
    with torch.no_grad():
        logits = model(x, batch).logits
    chosen = logits.gather(1, target[:, None])[:, 0]
    return chosen - (logits.sum(-1) - chosen) / (logits.shape[1] - 1)


@pytest.mark.parametrize("kind", ["lstm", "transformer", "hierarchical-gru", "paired-lstm"])
def test_without_a_window_it_is_leaving_out_with_padding(kind):
    model, batch = builders.kind(kind, 3), builders.texts()
    chosen = phrases(batch)
    found = SamplingOcclusion(window=0).estimated(model, batch, TARGET, chosen)
    x = model.embed(batch).detach()
    for number in range(4):
        without = torch.where(chosen[:, number, :, None], baseline(model, batch, "pad"), x)
        expected = margin(model, x, batch, TARGET) - margin(model, without, batch, TARGET)
        torch.testing.assert_close(found.scores[:, number], expected, **CLOSE)
    assert (found.errors == 0).all()


def test_without_a_window_and_padding_words_are_deleted():
    model, batch = builders.kind("lstm"), builders.batch((4,))
    chosen = torch.tensor([[[False, True, True, False]]])
    found = SamplingOcclusion(window=0, removal="delete")(model, batch, torch.tensor([1]), chosen)
    shorter = replace(batch, ids=batch.ids[:, [0, 3]], mask=batch.mask[:, :2])
    whole, rest = (margin(model, model.embed(each), each, torch.tensor([1])) for each in (batch, shorter))
    torch.testing.assert_close(found[0], whole - rest, **CLOSE)


def test_of_a_linear_model_a_phrase_has_the_sum_of_its_words_weights_in_any_context():
    model, batch = builders.model(encoder="none", projection="uniform"), builders.batch()
    chosen = phrases(batch)
    with torch.no_grad():
        logits = model.embed(batch) @ model.decoder.weight.T
    signs = torch.where(TARGET == 1, 1.0, -1.0).double()[:, None]
    weights = (logits[..., 1] - logits[..., 0]) * signs * batch.mask / batch.lengths[:, None]
    expected = ((chosen & batch.mask[:, None]).double() @ weights[..., None])[..., 0]
    found = scorer().estimated(model, batch, TARGET, chosen)
    torch.testing.assert_close(found.scores, expected, **CLOSE)
    torch.testing.assert_close(found.errors, torch.zeros_like(expected), **CLOSE)


def test_where_all_around_a_phrase_is_sampled_its_context_makes_no_difference():
    model, batch = builders.kind("lstm"), builders.batch((8, 8))
    ids = batch.ids.clone()
    ids[:, 3:5] = torch.tensor([7, 21])
    batch, chosen = replace(batch, ids=ids), torch.zeros(2, 1, 8, dtype=torch.bool)
    chosen[:, :, 3:5] = True
    target = torch.tensor([1, 1])
    one, other = scorer(window=8)(model, batch, target, chosen)[:, 0]
    assert one == other
    near, far = scorer(window=1)(model, batch, target, chosen)[:, 0]
    assert (near - far).abs() > 1e-3
    sampled = SampledDecomposition(window=8, samples=3, language=random_words())
    assert torch.equal(sampled.versions(batch, chosen)[0], sampled.versions(batch, chosen)[1])


class Either(nn.Module):
    """The logit of class 1 is 4 where one of the words 10 and 11 is there and the other is not: a + b − 2ab."""

    def __init__(self, product):
        super().__init__()
        self.vectors = torch.zeros(builders.WORDS, 2, dtype=torch.float64)
        self.vectors[10, 0] = self.vectors[11, 1] = 1.0
        self.product, self.ordinary = product, 4

    def embed(self, batch):
        return self.vectors[batch.ids]

    def blank(self, name):
        assert name in BLANKS
        return self.vectors[0]

    def __call__(self, x, batch, edit=None):
        first, second = (x * batch.mask[..., None]).amax(1).unbind(-1)
        score = 4 * (first + second - self.product * first * second)
        return Output(torch.stack([torch.zeros_like(score), score], dim=-1), ())


@pytest.mark.parametrize(("product", "together"), [(0, 0.0), (2, 4.0)])
def test_words_that_exclude_each_other_are_more_than_their_sum(product, together):
    batch = builders.batch((6,))
    batch = replace(batch, ids=torch.tensor([[5, 10, 11, 6, 7, 8]]))
    chosen = torch.zeros(1, 3, 6, dtype=torch.bool)
    chosen[0, 0, 1:3], chosen[0, 1, 1], chosen[0, 2, 2] = True, True, True
    both, first, second = SamplingOcclusion(window=0)(Either(product), batch, torch.tensor([1]), chosen)[0]
    assert both - first - second == pytest.approx(2 * together)
    sampled = scorer(window=3, samples=8)(Either(product), batch, torch.tensor([1]), chosen)[0]
    assert (abs(sampled[0] - sampled[1] - sampled[2]) > 1) == (product == 2)


@pytest.mark.parametrize("method", [scorer(), SampledDecomposition(window=2, samples=3, language=random_words())])
def test_padding_order_and_size_of_the_batch_change_nothing(method):
    assert isinstance(method, PhraseScorer)
    model, batch, wide = builders.kind("gru"), builders.texts(), builders.texts(width=15)
    chosen = phrases(batch)
    found = method(model, batch, TARGET, chosen)
    assert (found[:, 0] == 0).all()
    assert (found[3, 1:] != 0).all()
    longer = torch.cat([chosen, torch.ones(4, 4, 3, dtype=torch.bool)], dim=-1)
    torch.testing.assert_close(method(model, wide, TARGET, longer), found, **CLOSE)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(method(model, batch[order], TARGET[order], chosen[order]), found[order], **CLOSE)
    alone = [method(model, batch[row : row + 1], TARGET[row : row + 1], chosen[row : row + 1]) for row in range(4)]
    torch.testing.assert_close(torch.cat(alone), found, **CLOSE)
    assert torch.equal(method(model, batch, TARGET, chosen), found)
    assert not torch.equal(replace(method, seed=9)(model, batch, TARGET, chosen), found)


def test_only_words_within_the_window_are_written_anew():
    batch, chosen = builders.batch((9, 4)), torch.zeros(2, 1, 9, dtype=torch.bool)
    chosen[0, 0, 4] = chosen[1, 0, 3] = True
    method = scorer(window=2, samples=30)
    versions = method.versions(batch, chosen)[:, 0]
    changed = (versions != batch.ids[:, None]).any(1)
    assert changed.tolist() == [
        [False, False, True, True, False, True, True, False, False],
        [False, True, True, False, False, False, False, False, False],
    ]


def test_standard_errors_tell_how_far_seeds_are_apart():
    model, batch = builders.kind("lstm"), builders.batch((7,))
    chosen = torch.zeros(1, 1, 7, dtype=torch.bool)
    chosen[0, 0, 3] = True
    found = [scorer(samples=16, window=3, seed=seed).estimated(model, batch, TARGET[:1], chosen) for seed in range(24)]
    spread = torch.stack([each.scores for each in found]).std()
    stated = torch.stack([each.errors for each in found]).mean()
    assert 0.6 < float(spread / stated) < 1.7


def test_over_contexts_that_are_the_text_itself_all_words_have_everything():
    model, batch = builders.kind("lstm", 3), builders.texts()
    chosen = phrases(batch)
    chosen[:, 1] = True
    found = SampledDecomposition(window=0).divided(model, batch, chosen)
    torch.testing.assert_close(found.rest[:, 1], torch.zeros_like(found.rest[:, 1]), **CLOSE)
    assert (found.relevant[:, 0] == 0).all()
    plain = ContextualDecomposition().divided(model, batch, chosen)
    assert (found.relevant[3, 2:] - plain.relevant[3, 2:]).abs().max() > 1e-4


def test_a_grammar_is_learnt_from_both_sides():
    texts = collate(grammar(40, seed=7))
    hidden = torch.zeros_like(texts.mask)
    hidden[:, 2] = True  # told by the word behind it alone
    behind = grammatical().surprise(texts.ids, texts.mask, hidden)[:, 2].mean()
    hidden[:, 2], hidden[:, 3] = False, True  # told by the word before it
    before = grammatical().surprise(texts.ids, texts.mask, hidden)[:, 3].mean()
    unigram = np.log(16)
    assert behind < 0.5 * unigram
    assert before < 0.5 * unigram
    hidden[:, 2] = True  # of the pair nothing is told but that it is one
    both = grammatical().surprise(texts.ids, texts.mask, hidden)[:, 2:4].sum(-1).mean()
    assert np.log(8) * 0.8 < both < np.log(8) * 1.5


def test_what_is_written_is_grammatical_and_only_where_it_is_hidden():
    texts = collate(grammar(50, seed=8))
    hidden = torch.zeros_like(texts.mask)
    hidden[:, 1:4] = True
    noise = torch.rand(texts.ids.shape, generator=torch.Generator().manual_seed(0))
    written = grammatical().write(texts.ids, texts.mask, hidden, noise)
    assert torch.equal(written[~hidden], texts.ids[~hidden])
    told = (written[:, 1] == texts.ids[:, 0] + 8).float().mean()
    pairs = (written[:, 3] == written[:, 2] + 8).float().mean()
    assert told > 0.8
    assert pairs > 0.8
    assert len(written[:, 2].unique()) >= 6
    assert written.min() >= FIRST


def test_a_language_model_is_the_same_again_and_as_it_was_stored(tmp_path):
    options = replace(SMALL, epochs=1)
    first, again, other = (Language.fit(grammar(40), 24, options, seed=seed) for seed in (0, 0, 1))
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])
    assert not torch.equal(first.embedding.weight, other.embedding.weight)
    first.save(tmp_path)
    loaded = Language.load(tmp_path)
    assert loaded.options == options
    assert all(torch.equal(tensor, loaded.state_dict()[name]) for name, tensor in first.state_dict().items())
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".safetensors"]


def test_padding_tells_the_language_model_nothing():
    texts = collate(grammar(5))
    hidden = torch.zeros_like(texts.mask)
    hidden[:, 2:5] = True
    wide = [torch.nn.functional.pad(each, (0, 3)) for each in (texts.ids, texts.mask, hidden)]
    found = grammatical().surprise(*wide)[:, :6]
    torch.testing.assert_close(found, grammatical().surprise(texts.ids, texts.mask, hidden))


def test_what_is_missing_is_said(tmp_path):
    model, batch = builders.kind("lstm"), builders.batch()
    with pytest.raises(AssayError, match="call fit with training texts first"):
        SamplingOcclusion()(model, batch, TARGET, phrases(batch))
    with pytest.raises(AssayError, match="other words than the model"):
        scorer(language=grammatical())(model, batch, TARGET, phrases(batch))
    with pytest.raises(AssayError, match="Unknown removal"):
        SamplingOcclusion(removal="pat")
    with pytest.raises(AssayError, match="samples at least 1"):
        SamplingOcclusion(samples=0)
    with pytest.raises(AssayError, match="has no language model"):
        Language.load(tmp_path)
    with pytest.raises(AssayError, match="at least one training text"):
        Language.fit([], 10)
    (tmp_path / "language.json").write_text("{}")
    with pytest.raises(AssayError, match="damaged"):
        Language.load(tmp_path)


def test_fitting_returns_a_scorer_with_a_language_model():
    method = SamplingOcclusion(window=1, samples=2)
    fitted = method.fit(grammar(30), 24, replace(SMALL, epochs=1))
    assert method.language is None
    assert fitted == method
    assert fitted.language is not None
    assert fitted.language.words == 24
