"""Bits that states tell of words: against integrals, known codes, and another library's decoder."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from assay.metrics.information import Words


def channel(n, rates, centres, seed, scale=1.0):
    """Words drawn at these rates, and their centres with noise."""
    random = np.random.default_rng(seed)
    words = random.choice(len(rates), n, p=rates)
    return np.asarray(centres)[words] + scale * random.standard_normal((n, np.shape(centres)[1])), words


def truth(rates, centres):
    """h(X + noise) − h(noise) in bits, integrated; the words differ in the first number alone."""

    def density(x):
        return sum(rate * stats.norm.pdf(x, centre[0]) for rate, centre in zip(rates, centres, strict=True))

    places = [centre[0] for centre in centres]
    low, high = min(places) - 9, max(places) + 9
    entropy, _ = integrate.quad(lambda x: -density(x) * np.log2(density(x)), low, high, limit=200)
    return entropy - 0.5 * np.log2(2 * np.pi * np.e)


@pytest.mark.parametrize("gap", [0.5, 2.0, 4.0])
def test_the_bound_of_a_gaussian_channel_is_just_below_its_information(gap):
    rates, centres = (0.5, 0.3, 0.2), [[0.0, 0, 0], [gap, 0, 0], [3 * gap, 0, 0]]
    decoder = Words().fit(*channel(6_000, rates, centres, seed=0))
    states, words = channel(60_000, rates, centres, seed=1)
    found = decoder.rated(words).pointwise(states, words)
    error = 3 * found.std() / np.sqrt(len(found))
    assert truth(rates, centres) - 0.02 - error < found.mean() < truth(rates, centres) + error


def test_another_noise_leaves_the_bound_below():
    """Noise that is no Gaussian, and differs between words: the decoder is wrong, and only tells less."""
    random = np.random.default_rng(0)
    words = random.integers(0, 2, 40_000)
    states = np.where(words == 1, random.exponential(1.0, 40_000), -random.exponential(3.0, 40_000))[:, None]
    decoder = Words().fit(states[:4_000], words[:4_000])
    found = decoder.rated(words[4_000:]).pointwise(states[4_000:], words[4_000:]).mean()
    assert 0.2 < found < 1  # the sign tells the word, which is one bit


def test_states_that_know_nothing_give_nothing_or_less():
    random = np.random.default_rng(0)
    states, words = random.standard_normal((12_000, 20)), random.integers(0, 50, 12_000)
    decoder = Words().fit(states[:4_000], words[:4_000])
    found = decoder.rated(words[4_000:]).pointwise(states[4_000:], words[4_000:]).mean()
    assert -0.5 < found < 0.01
    shuffled = Words().fit(*channel(3_000, [0.5, 0.5], [[0.0], [9.0]], seed=0))
    states, words = channel(3_000, [0.5, 0.5], [[0.0], [9.0]], seed=1)
    assert shuffled.pointwise(states, random.permutation(words)).mean() < 0.01


@pytest.mark.parametrize("width", [1, 8])
def test_a_code_without_noise_tells_the_whole_entropy(width):
    """Each word has one state; the entropy is that of the tokens that were told, counted by hand."""
    random = np.random.default_rng(0)
    code = random.standard_normal((5, width))
    rates = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    words = random.choice(5, 4_000, p=rates)
    decoder = Words().fit(code[words[:2_000]], words[:2_000])
    found = decoder.rated(words[2_000:]).pointwise(code[words[2_000:]], words[2_000:]).mean()
    assert found == pytest.approx(stats.entropy(np.bincount(words[2_000:]), base=2), abs=1e-6)


def test_states_that_are_all_the_same_tell_nothing():
    words = np.arange(400) % 7
    found = Words().fit(np.ones((400, 3)), words).pointwise(np.ones((400, 3)), words)
    assert found == pytest.approx(np.zeros(400), abs=1e-9)


@pytest.mark.parametrize("shrinkage", [0.001, 0.1, 0.7])
def test_the_decoder_is_that_of_another_library(shrinkage):
    random = np.random.default_rng(0)
    mixing = random.standard_normal((6, 6))
    states, words = channel(900, [0.5, 0.2, 0.2, 0.1], 2 * random.standard_normal((4, 6)), seed=2)
    states = states @ mixing
    oracle = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(states, words)
    found = Words(shrinkages=(shrinkage,)).fit(states, words).log2(states)
    np.testing.assert_allclose(2**found, oracle.predict_proba(states), atol=1e-7)


def test_the_shrinkage_that_tells_most_of_the_tokens_left_out_is_taken():
    random = np.random.default_rng(0)
    states, words = channel(240, [0.25] * 4, random.standard_normal((4, 40)), seed=3)
    apart = np.arange(240) % 4 == 3
    several = (1e-4, 0.1, 0.9)
    told = {}
    for shrinkage in several:
        oracle = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(states[~apart], words[~apart])
        told[shrinkage] = oracle.predict_log_proba(states[apart])[np.arange(apart.sum()), words[apart]].sum()
    best = max(told, key=told.get)
    assert best != several[0]
    expected = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=best).fit(states, words).predict_proba(states)
    np.testing.assert_allclose(2 ** Words(shrinkages=several).fit(states, words).log2(states), expected, atol=1e-7)


def test_rare_words_are_left_out_and_have_no_bits():
    words = np.array([7, 7, 7, 2, 2, 9, 7, 2])
    decoder = Words(common=2).fit(np.random.default_rng(0).standard_normal((8, 2)), words)
    assert decoder.words.tolist() == [2, 7]
    bits = decoder.pointwise(np.zeros((4, 2)), np.array([9, 7, 1, 2]))
    assert np.isnan(bits).tolist() == [True, False, True, False]


def test_rates_are_those_of_the_tokens_with_their_weights():
    decoder = Words().fit(np.random.default_rng(0).standard_normal((60, 2)), np.arange(60) % 3)
    rated = decoder.rated(np.array([0, 0, 1, 2, 8]), np.array([1.0, 1.0, 4.0, 2.0, 9.0]))
    assert rated.rates == pytest.approx([0.25, 0.5, 0.25])
    state = np.zeros((1, 2))
    change = rated.pointwise(state, np.array([1])) - decoder.pointwise(state, np.array([1]))
    assert change == pytest.approx(-np.log2(0.5 / (1 / 3)))
    assert (2 ** decoder.log2(state)).sum() == pytest.approx(1)
