"""The table of relations is what counting by hand gives."""

from __future__ import annotations

import numpy as np
import pytest

from assay.data.annotated import Sentence
from assay.probes.observation import TreebankView, view_treebank
from assay.probes.relations import OFFSETS, RelationTargets, offsets, relations
from tests import pretrained

TEXTS = ("this is not a good film", "it is long", "a dull film is bad", "very long film", "is it fun")
NAMES = ("nsubj", "det", "punct")


def sentences(seed: int, count: int = 40) -> list[Sentence]:
    """Sentences with random governors and relations."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        words = TEXTS[number % len(TEXTS)].split()
        starts = np.cumsum([0, *(len(word) + 1 for word in words)])
        governors = [
            int(random.choice([o for o in range(len(words)) if o != position])) for position in range(len(words))
        ]
        governors[0] = -1
        relations = ["root", *(str(name) for name in random.choice(NAMES, len(words) - 1))]
        spans = tuple((int(start), int(start) + len(word)) for start, word in zip(starts, words, strict=False))
        made.append(
            Sentence(" ".join(words), spans, tuple(words), ("X",) * len(words), tuple(governors), tuple(relations))
        )
    return made


@pytest.fixture(scope="module")
def both() -> tuple[TreebankView, TreebankView]:
    network, tokeniser = pretrained.pretrained("bert"), pretrained.tokeniser()
    return view_treebank(network, tokeniser, sentences(0)), view_treebank(network, tokeniser, sentences(1))


def by_hand(data: TreebankView, most: np.ndarray, relation: str, backwards: bool) -> list[tuple[int, bool]]:
    """The questions about a relation for one head: how many words were right, and whether the answer was."""
    found, start = [], 0
    for sentence in data.sentences:
        for position in range(len(sentence.words)):

            def counts(other: int, of: Sentence = sentence) -> bool:
                return of.relations[other] == relation or (
                    relation == "any" and of.relations[other] not in ("root", "punct")
                )

            if backwards:
                right = [o for o, governor in enumerate(sentence.governors) if governor == position and counts(o)]
            else:
                right = [sentence.governors[position]] if counts(position) else []
            if right:
                found.append((len(right) / (len(sentence.words) - 1), most[start + position] in right))
        start += len(sentence.words)
    return found


@pytest.mark.parametrize("direction", ["to governor", "to dependent"])
@pytest.mark.parametrize("relation", ["nsubj", "det", "punct", "any"])
def test_every_row_is_what_counting_by_hand_gives(
    relation: str, direction: str, both: tuple[TreebankView, TreebankView]
) -> None:
    (row,) = (each for each in relations(*both) if (each["relation"], each["direction"]) == (relation, direction))
    scores = []
    for data in both:
        questions = [by_hand(data, data.seen.most[:, head], relation, direction == "to dependent") for head in range(8)]
        scores.append([np.mean([hit for _, hit in each]) for each in questions])
    best = int(np.argmax(scores[0]))
    assert (row["layer"], row["head"]) == (best // 4, best % 4)
    assert row["accuracy"] == pytest.approx(scores[1][best])
    assert row["dev_accuracy"] == pytest.approx(scores[0][best])
    assert np.allclose(np.array(row["every"]).ravel(), scores[1], atol=1e-6)
    assert row["n"] == len(questions[0])
    assert row["chance"] == pytest.approx(np.mean([chance for chance, _ in questions[0]]))
    steps = [[np.mean([hit for _, hit in by_hand(data, offsets(data)[:, step], relation, direction == "to dependent")])
              for step in range(len(OFFSETS))] for data in both]  # fmt: skip
    step = int(np.argmax(steps[0]))
    assert (row["offset"], row["offset_accuracy"]) == (OFFSETS[step], pytest.approx(steps[1][step]))
    assert row["low"] <= row["accuracy"] <= row["high"]


def test_rare_relations_are_left_out(both: tuple[TreebankView, TreebankView]) -> None:
    assert relations(*both, minimum=10_000) == []


def test_a_control_governor_is_another_word_of_the_sentence_and_the_same_for_a_type(
    both: tuple[TreebankView, TreebankView],
) -> None:
    data = both[1]
    targets = RelationTargets.of(data, NAMES, False)
    for fraction in (0.0, 0.31, 0.999):
        governor = targets.control(np.full(len(data.position), fraction)).governor
        assert (data.sentence[governor] == data.sentence).all()
        assert (governor != np.arange(len(governor))).all()
    drawn = targets.control(np.random.default_rng(0).random(len(data.position))).governor
    assert len(set(zip((drawn - data.first).tolist(), data.position.tolist(), strict=True))) > 20


def test_the_same_seed_gives_the_same_table(both: tuple[TreebankView, TreebankView]) -> None:
    assert relations(*both, seed=3) == relations(*both, seed=3)
