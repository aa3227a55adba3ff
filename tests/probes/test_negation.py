"""Words in scope: their most attended word is compared with the cue as counting by hand does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.data.annotated import Negated, Negation, written
from assay.errors import AssayError
from assay.probes.heads import negation, scopes
from tests import pretrained


def negated(text: str, *negations: Negation) -> Negated:
    words = tuple(text.split())
    return Negated(*written(words), words, negations)


SENTENCES = (
    negated("it is not a good film , is it ?", Negation((2,), (0, 1, 3, 4, 5))),
    negated("not fun , not long , a bad film", Negation((0,), (1,)), Negation((3,), (4, 7))),
    negated("unwatchable film", Negation((0,), (1,))),
)


def by_hand(sentences: tuple[Negated, ...]) -> np.ndarray:
    """Whether each word in scope attends most to its cue, for each head."""
    network, rows = pretrained.pretrained("bert"), []
    for sentence in sentences:
        weights = network.maps(pretrained.batch((sentence.text,)))[0].flatten(0, 1)
        assert weights.shape[-1] == len(sentence.words)
        weights[:, torch.arange(len(sentence.words)), torch.arange(len(sentence.words))] = 0
        for case in sentence.negations:
            rows += [[int(head[position].argmax()) in case.cue for head in weights] for position in case.scope]
    return np.array(rows)


def test_shares_are_what_counting_by_hand_gives() -> None:
    network, tokeniser = pretrained.pretrained("bert"), pretrained.tokeniser()
    dev, test = SENTENCES[:2], SENTENCES
    answer = negation(network, tokeniser, dev, test)
    head = int(by_hand(dev).mean(0).argmax())
    assert answer["layer"] * 4 + answer["head"] == head
    assert np.allclose(np.array(answer["every"]).ravel(), by_hand(test).mean(0), atol=1e-6)
    assert answer["accuracy"] == pytest.approx(by_hand(test)[:, head].mean())
    assert (answer["n"], answer["sentences"]) == (9, 3)
    # one word back stands the cue of "a", "fun", "long" and "film"
    assert (answer["offset"], answer["offset_accuracy"]) == (-1, pytest.approx(4 / 9))
    assert 0 <= answer["control_accuracy"] <= 1


def test_the_cue_of_the_control_is_another_word_and_the_same_for_a_scope() -> None:
    found = scopes(pretrained.pretrained("bert"), pretrained.tokeniser(), SENTENCES, "Negations")
    for seed in range(20):
        cue = found.other_cue(np.random.default_rng(seed))
        assert (cue.sum(1) == 1).all()
        assert not (cue & found.cue).any() and (cue <= found.real).all()
        assert (cue[:5] == cue[0]).all()


def test_without_any_scope_one_sentence_says_so() -> None:
    with pytest.raises(AssayError, match="has a word in the scope"):
        scopes(
            pretrained.pretrained("bert"), pretrained.tokeniser(), [negated("no !", Negation((0,), ()))], "Negations"
        )
