"""Kernels over texts, against enumeration, closed forms and scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

from assay.data.batches import tokenise
from assay.data.corpora import corpus
from assay.data.text import Tokeniser
from assay.errors import AssayError
from assay.influence.landmark_kernels import (
    Represented,
    Spectrum,
    Subsequences,
    WordVectors,
    gap_weighted,
    units,
)
from assay.models.config import Architecture
from assay.models.recipes import Recipe, initialise
from assay.models.textmodel import groups

TEXTS = [example.text for example in corpus("planted:negation").train[:24]]
WORDS = tuple(sorted({str(word) for text in TEXTS for word in units(text)}))
TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 5))
KERNELS = {
    "words": Spectrum(),
    "counts": Spectrum(weighting="counts", longest=2),
    "presence": Spectrum(weighting="presence"),
    "characters": Spectrum(unit="character", shortest=2, longest=4),
    "vectors": WordVectors(words=WORDS, table=TABLE),
    "rbf": WordVectors(shape="rbf", width=0.5, words=WORDS, table=TABLE),
    "subsequences": Subsequences(),
    "long": Subsequences(length=4, decay=0.9),
    "character_subsequences": Subsequences(unit="character", length=3, longest=30),
    "like_words": Subsequences(smooth=True, sharpness=2.0, words=WORDS[:30], vectors=TABLE[:30]),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_is_positive_semidefinite_symmetric_and_one_for_a_text_and_itself(name: str) -> None:
    kernel = KERNELS[name].fit(TEXTS)
    gram = kernel(TEXTS, TEXTS)
    np.testing.assert_allclose(gram, gram.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(gram), 1.0, atol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] > -1e-10
    assert np.std(gram) > 1e-3, "it tells texts apart"


@pytest.mark.parametrize("name", KERNELS)
def test_how_alike_two_texts_are_does_not_depend_on_the_others(name: str) -> None:
    kernel = KERNELS[name].fit(TEXTS)
    whole = kernel(TEXTS[:6], TEXTS[3:])
    np.testing.assert_allclose(kernel(TEXTS[2:3], TEXTS[9:10]), whole[2:3, 6:7], atol=1e-12)
    assert kernel([], TEXTS).shape == (0, len(TEXTS))


@pytest.mark.parametrize("name", KERNELS)
def test_a_text_of_nothing_known_is_like_nothing(name: str) -> None:
    kernel = KERNELS[name].fit(TEXTS)
    found = kernel([""], TEXTS)
    expected = found if name == "rbf" else np.zeros_like(found)  # the distance from the origin is a likeness there
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(("longest", "unit"), [(1, "word"), (2, "word"), (4, "character")])
def test_rarity_is_that_of_scikit_learn(longest: int, unit: str) -> None:
    shortest = 2 if unit == "character" else 1
    analyzer = {"word": lambda text: [" ".join(map(str, each)) for each in _stretches(text, unit, shortest, longest)]}
    judge = TfidfVectorizer(
        analyzer=analyzer.get(unit, "char"), ngram_range=(shortest, longest) if unit == "character" else (1, 1)
    )
    known = judge.fit(TEXTS[:20])
    expected = cosine_similarity(known.transform(TEXTS[15:]), known.transform(TEXTS[:20]))
    kernel = Spectrum(unit=unit, shortest=shortest, longest=longest).fit(TEXTS[:20])
    np.testing.assert_allclose(kernel(TEXTS[15:], TEXTS[:20]), expected, atol=1e-12)


def _stretches(text: str, unit: str, shortest: int, longest: int) -> list[tuple[object, ...]]:
    row = units(text, unit)
    return [tuple(row[i : i + n]) for n in range(shortest, longest + 1) for i in range(len(row) - n + 1)]


def test_counts_without_a_cosine_are_inner_products() -> None:
    counts = CountVectorizer(analyzer=units).fit(TEXTS).transform(TEXTS)
    kernel = Spectrum(weighting="counts", cosine=False).fit(TEXTS)
    np.testing.assert_allclose(kernel(TEXTS, TEXTS), (counts @ counts.T).toarray())


def enumerated(left: list[int], right: list[int], length: int, decay: float, match: np.ndarray) -> float:
    """All pairs of subsequences, one after another."""
    total = 0.0
    for size in range(1, length + 1):
        for a in combinations(range(len(left)), size):
            for b in combinations(range(len(right)), size):
                skipped = (a[-1] - a[0] + 1 - size) + (b[-1] - b[0] + 1 - size)
                total += decay**skipped * float(np.prod([match[left[i], right[j]] for i, j in zip(a, b, strict=True)]))
    return total


@pytest.mark.parametrize("length", [1, 2, 3, 5])
@pytest.mark.parametrize("smooth", [False, True])
def test_subsequences_by_dynamic_programming_are_those_enumerated(length: int, smooth: bool) -> None:
    random = np.random.default_rng(length)
    vectors = random.normal(size=(4, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    match = np.exp(2.0 * (vectors @ vectors.T - 1)) if smooth else np.eye(4)
    rows = [random.integers(0, 4, size).tolist() for size in (1, 3, 5, 6)]
    texts = [" ".join("abcd"[unit] for unit in row) for row in rows]
    kernel = Subsequences(length=length, decay=0.7)
    if smooth:
        kernel = replace(kernel, smooth=True, sharpness=2.0, words=("a", "b", "c", "d"), vectors=vectors * 3)
    own = [enumerated(row, row, length, 0.7, match) for row in rows]
    expected = [
        [enumerated(a, b, length, 0.7, match) / np.sqrt(own[i] * own[j]) for j, b in enumerate(rows)]
        for i, a in enumerate(rows)
    ]
    np.testing.assert_allclose(kernel.fit(texts)(texts, texts), expected, rtol=1e-12)


def test_sums_over_single_places_and_next_neighbours_have_a_closed_form() -> None:
    matches = torch.ones(3, 4, 2, dtype=torch.float64)
    assert gap_weighted(matches, 1, 0.5).tolist() == [12, 12]
    # pairs of indices: with steps 1, 2 (times decay) on the left, 1, 2, 3 on the right
    pairs = (2 + 0.5) * (3 + 2 * 0.5 + 0.25)
    np.testing.assert_allclose(gap_weighted(matches, 2, 0.5), 12 + pairs)


def test_order_counts_for_subsequences_and_not_for_words() -> None:
    texts = ["not good but cheap", "good but not cheap"]
    assert Spectrum().fit(texts)(texts[:1], texts[1:])[0, 0] == pytest.approx(1)
    assert Subsequences()(texts[:1], texts[1:])[0, 0] < 0.9


def test_like_words_are_alike_only_where_it_is_smooth() -> None:
    vectors = np.array([[1.0, 0.1], [1.0, 0.0], [-1.0, 0.5]])
    smooth = Subsequences(smooth=True, words=("good", "fine", "bad"), vectors=vectors)
    fine, bad = smooth(["a good film"], ["a fine film", "a bad film"])[0]
    assert fine > bad + 0.1
    plain = Subsequences()(["a good film"], ["a fine film", "a bad film"])[0]
    assert plain[0] == plain[1]


def test_mean_vectors_are_those_of_scikit_learn() -> None:
    rows = [[WORDS.index(str(word)) for word in units(text)] for text in TEXTS]
    means = np.array([TABLE[row].mean(0) for row in rows])
    cosine, rbf = (KERNELS[name](TEXTS, TEXTS) for name in ("vectors", "rbf"))
    np.testing.assert_allclose(cosine, cosine_similarity(means), atol=1e-12)
    directions = means / np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(rbf, rbf_kernel(directions, gamma=2.0), atol=1e-12)


def test_representations_are_what_the_decoder_reads() -> None:
    examples = corpus("planted:negation").train[:9]
    recipe = Recipe(Architecture(encoder="lstm", embedding=8, hidden=4, alignment_size=4))
    tokeniser = Tokeniser.fit(TEXTS, recipe.text)
    rows, _ = tokenise(examples, tokeniser, 100)
    network = initialise(recipe, tokeniser, 2).double().eval()
    pooled = np.zeros((9, network.decoder.in_features))
    for indices, batch in groups(network, rows):
        states = network.states(network.embed(batch), batch)
        pooled[indices] = network.pooled(states, network.attend(states, batch)).detach().numpy()
    kernel = Represented(network)
    np.testing.assert_allclose(kernel(rows, rows[:3]), cosine_similarity(pooled, pooled[:3]), atol=1e-10)
    ids = Spectrum().fit(rows)
    np.testing.assert_allclose(np.diag(ids(rows, rows)), 1.0)
    with pytest.raises(AssayError, match="rows of word ids"):
        kernel(TEXTS, TEXTS)


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(AssayError, match="fit"):
        Spectrum()(TEXTS, TEXTS)
    with pytest.raises(AssayError, match="Unknown unit"):
        Spectrum(unit="letter")
    with pytest.raises(AssayError, match="Only words have vectors"):
        Subsequences(unit="character", smooth=True)
    with pytest.raises(AssayError, match="Unknown shape"):
        WordVectors(shape="round")


@pytest.mark.data
def test_glove_finds_like_words() -> None:
    texts = ["a good film", "a great movie", "a bad smell"]
    for kernel in (WordVectors(), Subsequences(smooth=True)):
        near, far = kernel.fit(texts)(texts[:1], texts[1:])[0]
        assert near > far
