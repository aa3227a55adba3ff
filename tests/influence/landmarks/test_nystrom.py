"""The space that landmarks span, against the kernel itself and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem

from assay.data.corpora import corpus
from assay.errors import AssayError
from assay.influence import landmark_classifier
from assay.influence.landmark_kernels import Spectrum, Subsequences

TEXTS = [example.text for example in corpus("planted:keyword").train[:40]]
LABELS = np.array([0] * 30 + [1] * 8 + [2] * 2)


@pytest.mark.parametrize("kernel", [Spectrum(), Spectrum(unit="character", shortest=3, longest=3), Subsequences()])
def test_with_all_texts_as_landmarks_the_kernel_is_the_kernel(kernel: Spectrum | Subsequences) -> None:
    gram = kernel.fit(TEXTS)(TEXTS, TEXTS)
    features = gram @ landmark_classifier.projection(gram, 1e-12)
    np.testing.assert_allclose(features @ features.T, gram, atol=1e-8)


def test_landmarks_that_are_some_of_the_texts_give_what_scikit_learn_gives() -> None:
    kernel = Spectrum().fit(TEXTS)
    gram, counts = kernel(TEXTS, TEXTS), kernel.features(TEXTS).toarray()
    directions = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    judge = Nystroem(kernel="linear", n_components=12, random_state=3).fit(directions)
    theirs, indices = judge.transform(directions), judge.component_indices_
    ours = gram[:, indices] @ landmark_classifier.projection(gram[np.ix_(indices, indices)])
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-8)
    assert np.abs(ours @ ours.T - gram).max() > 0.1, "twelve are too few to be exact"


def test_copies_among_landmarks_span_no_more() -> None:
    gram = Spectrum().fit(TEXTS)([*TEXTS[:5], *TEXTS[:5]], [*TEXTS[:5], *TEXTS[:5]])
    assert landmark_classifier.projection(gram).shape == (10, 5)
    with pytest.raises(AssayError, match="nothing in common"):
        landmark_classifier.projection(np.zeros((3, 3)))


def column(index: int) -> np.ndarray:
    kernel = Spectrum().fit(TEXTS)
    return kernel(TEXTS, TEXTS[index : index + 1])[:, 0]


@pytest.mark.parametrize("name", landmark_classifier.CHOICES)
def test_landmarks_are_different_texts_and_the_same_for_the_same_seed(name: str) -> None:
    found = [landmark_classifier.chosen(name, LABELS, 9, seed, column) for seed in (0, 0, 1)]
    assert len(set(found[0].tolist())) == 9
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].tolist() != found[2].tolist()
    assert landmark_classifier.chosen(name, LABELS, 100, 0, column).tolist() == list(range(40))


def test_balanced_landmarks_are_of_all_classes() -> None:
    found = landmark_classifier.chosen("balanced", LABELS, 12, 0, column)
    assert np.bincount(LABELS[found]).tolist() == [5, 5, 2]


def test_landmarks_that_are_spread_avoid_copies() -> None:
    groups = np.repeat(np.arange(4), 10)  # ten copies of each of four texts, unlike one another
    gram = (groups[:, None] == groups).astype(float)
    found = landmark_classifier.chosen("spread", groups, 4, 5, lambda index: gram[index])
    assert sorted(groups[found]) == [0, 1, 2, 3]
    assert len(landmark_classifier.chosen("spread", groups, 7, 5, lambda index: gram[index])) == 7


def test_an_unknown_choice_is_said() -> None:
    with pytest.raises(AssayError, match="choice of landmarks"):
        landmark_classifier.chosen("random", LABELS, 3, 0, column)
