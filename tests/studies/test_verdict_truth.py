"""Truth is used only where interventions bear it out: a class that is told by absence has none."""

from __future__ import annotations

import torch
from torch import nn

from assay.data.batches import Tokenised, collate, tokenise
from assay.data.examples import Corpus, Example
from assay.data.text import TextOptions, Tokeniser
from assay.models.config import Architecture
from assay.models.network import Classifier
from assay.models.store import Opened
from assay.types import Batch
from studies.verdict.truth import natural, verified

FILLERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def corpus() -> Corpus:
    """Texts of fillers: those of the first class hold “alpha”, those of the second “beta”, marked as what decides."""
    rows = []
    for place in range(60):
        code = ("alpha", "beta")[place % 2]
        text = [FILLERS[(place * step) % 10] for step in range(1, 7)]
        text.insert(place % 6, code)
        start = len(" ".join(text[: text.index(code)])) + (text.index(code) > 0)
        rows.append(Example(" ".join(text), place % 2, ((start, start + len(code)),), planted=True))
    return Corpus("absence", ("alpha", "beta"), tuple(rows), (), tuple(rows))


def network(words: list[str], seen: dict[str, float]) -> Classifier:
    """A mean of words with a weight on those that are `seen`: above 0 for the first class, else the second."""
    model = Classifier(Architecture(encoder="none", embedding=2, projection="uniform"), len(words), 2)
    assert isinstance(model.decoder, nn.Linear)
    with torch.no_grad():
        model.embedding.weight.zero_()
        for word, weight in seen.items():
            model.embedding.weight[words.index(word), 0] = weight
        model.decoder.weight.copy_(torch.tensor([[50.0, 0.0], [-50.0, 0.0]]))
        model.decoder.bias.copy_(torch.tensor([-2.0, 2.0]) if len(seen) == 1 else torch.zeros(2))
    return model.eval()


def held(seen: dict[str, float]) -> list[bool]:
    given = corpus()
    tokeniser = Tokeniser.fit([each.text for each in given.test], TextOptions(min_count=1))
    model = Opened(network(tokeniser.vocabulary, seen), tokeniser, given.classes, {})
    rows, _ = tokenise(given.test, tokeniser, 100)
    answers = [model.network(model.network.embed(batch), batch).logits.argmax(-1) for batch in _batches(rows)]
    assert torch.cat(answers).tolist() == [row.label for row in rows]  # right on every text, both ways
    return verified(model, rows, natural(rows)).tolist()


def _batches(rows: list[Tokenised]) -> list[Batch]:

    return [collate(rows)]


def test_a_class_that_is_told_by_the_absence_of_the_other_is_caught() -> None:
    """“beta” stands in every text of its class and is marked, but the model never looks at it."""
    found = held({"alpha": 1.0})
    assert all(found[::2])
    assert not any(found[1::2])


def test_a_class_that_is_told_by_its_word_is_kept() -> None:
    """Without any of the two words the answer is a tie, which goes to the first class."""
    found = held({"alpha": 1.0, "beta": -1.0})
    assert all(found[1::2])
    assert not any(found[::2])
