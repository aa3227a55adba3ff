"""Pronouns: the attention to names is gathered over their words, and texts are cut around them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.data.annotated import Pronoun
from assay.errors import AssayError
from assay.probes.heads import NameAttention, choices, coreference
from tests import pretrained


def pronoun(text: str, said: str, first: str, second: str, right: int) -> Pronoun:
    spans = [(text.index(each), text.index(each) + len(each)) for each in (said, first, second)]
    return Pronoun(text, spans[0], (spans[1], spans[2]), right)


TEXTS = (
    pronoun("good film, bad watch is it", "it", "good film", "watch", 0),
    pronoun("dull watch not film, it is fun", "it", "dull", "film", 1),
    pronoun("it is this long film not good fun", "it", "long film", "fun", 0),
)


def test_weights_are_sums_over_the_words_of_a_name() -> None:
    network, tokeniser = pretrained.pretrained("bert"), pretrained.tokeniser()
    found = choices(network, tokeniser, TEXTS, "Pronouns")
    cases = [(6, (0, 1), (4,)), (5, (0,), (3,)), (0, (3, 4), (7,))]
    for number, (said, first, second) in enumerate(cases):
        alone = network.maps(pretrained.batch((TEXTS[number].text,)))[0].flatten(0, 1)
        expected = torch.stack([alone[:, said, list(name)].sum(-1) for name in (first, second)], dim=-1)
        assert np.allclose(found.weights[number], expected.numpy(), atol=1e-6)
    assert found.nearer.tolist() == [1, 1, 0]
    assert found.right.tolist() == [0, 1, 0]


def test_right_answers_and_confusion_are_what_they_are_by_hand() -> None:
    weights = np.array([[[0.3, 0.1], [0.0, 0.0]], [[0.2, 0.2], [0.1, 0.4]]], dtype=np.float32)
    found = NameAttention(weights, np.array([0, 1]), np.array([0, 0]), 1)
    assert found.hits(found.right).tolist() == [[True, False], [False, True]]
    expected = [-(np.log(0.75) + np.log(0.5)) / 2, -(np.log(0.5) + np.log(0.8)) / 2]
    assert np.allclose(found.confusion, expected, atol=1e-6)


def test_a_long_text_is_cut_around_pronoun_and_names() -> None:
    network, tokeniser = pretrained.pretrained("bert"), pretrained.tokeniser()
    filler = "a very " * 40
    long = pronoun(f"{filler}good film, bad watch is it {filler}", "it", "good film", "watch", 0)
    far = pronoun(f"good film {filler} bad watch is it", "it", "good film", "watch", 0)
    found = choices(network, tokeniser, [long, far], "Pronouns")
    assert found.weights.shape == (1, 8, 2)  # what does not fit together is left out
    assert (found.weights > 0).all()
    with pytest.raises(AssayError, match="can read no text"):
        choices(network, tokeniser, [far], "Pronouns")


def test_the_head_is_chosen_on_dev_and_the_control_is_at_chance() -> None:
    network, tokeniser = pretrained.pretrained("bert"), pretrained.tokeniser()
    dev, test = TEXTS * 40, (*TEXTS[:2], *TEXTS) * 40
    answer = coreference(network, tokeniser, dev, test)
    chosen = choices(network, tokeniser, dev, "").hits(np.array([0, 1, 0] * 40)).mean(0).argmax()
    scored = choices(network, tokeniser, test, "")
    assert answer["layer"] * 4 + answer["head"] == chosen
    assert answer["accuracy"] == scored.hits(scored.right)[:, chosen].mean()
    assert answer["n"] == 200
    assert answer["control_accuracy"] == pytest.approx(0.5, abs=0.05)
    assert np.array(answer["every"]).shape == np.array(answer["confusion"]).shape == (2, 4)
    assert answer["nearest_accuracy"] == pytest.approx(3 / 5)
