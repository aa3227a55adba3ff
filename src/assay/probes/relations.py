"""Probes of syntax on a treebank: parts of speech, grammatical relations, pairs of words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from assay.models.logistic import fit
from assay.probes.observation import DRAWS, NONE, PerWord, TreebankView, WordHeads, grid, named, scored, spread

# Part-of-speech probe: the share of every head's attention that goes to each part of speech

SHUFFLES = 20
NEIGHBOURS = 16  # word types, alike in frequency, that exchange their tags


def speech(test: TreebankView, seed: int = 0) -> dict[str, Any]:
    """The share of attention between words that each head gives to each universal tag.

    Vig and Belinkov (2019), equation 2. Uniform attention would give each tag the share of words that have it. In
    the control, types of words that are about as frequent have exchanged their tags: what is left is what a head
    gives to frequent or to rare words of any kind.
    """
    tags, tag = np.unique(test.tag[test.there].astype(str), return_inverse=True)
    received = test.seen.received[test.there].astype(np.float64)
    types, word = np.unique(test.word[test.there].astype(str), return_inverse=True)
    random = np.random.default_rng([seed, 3])
    usual = _table(word, tag, np.ones((len(word), 1)), len(types), len(tags))[..., 0].argmax(1)
    shuffled = [_share(_exchanged(usual, word, random)[word], received, len(tags)) for _ in range(SHUFFLES)]
    return {
        "n": len(word),
        "tags": tags.tolist(),
        "share": _heads(_share(tag, received, len(tags)), test.seen.layers),
        "uniform": (np.bincount(tag, minlength=len(tags)) / max(1, len(tag))).tolist(),
        "control": _heads(np.mean(shuffled, axis=0), test.seen.layers),
    }


def _share(tag: PerWord, received: Float[np.ndarray, "N K"], kinds: int) -> Float[np.ndarray, "G K"]:
    """The share of each head's attention that goes to each tag."""
    member = (tag == np.arange(kinds)[:, None]).astype(np.float64)
    return np.asarray(member @ received / np.maximum(received.sum(0), np.finfo(np.float64).tiny))


def _table(
    word: PerWord, tag: PerWord, values: Float[np.ndarray, "N K"], types: int, kinds: int
) -> Float[np.ndarray, "V G K"]:
    """Sums of the values for each word type and tag."""
    sums = np.zeros((types * kinds, values.shape[1]))
    np.add.at(sums, word * kinds + tag, values)
    return sums.reshape(types, kinds, -1)


def _exchanged(usual: Int[np.ndarray, " V"], word: PerWord, random: np.random.Generator) -> Int[np.ndarray, " V"]:
    """The most frequent tags of all types, shuffled among neighbours in frequency."""
    order = np.argsort(-np.bincount(word, minlength=len(usual)), kind="stable")
    block = np.arange(len(usual)) // NEIGHBOURS
    moved = order[np.lexsort((random.random(len(usual)), block))]
    tags = np.empty_like(usual)
    tags[order] = usual[moved]
    return tags


def _heads(shares: Float[np.ndarray, "G K"], layers: int) -> list[list[list[float]]]:
    """The shares of all tags, layer by layer and head by head."""
    return [
        [list(head) for head in zip(*rows, strict=True)]
        for rows in zip(*(grid(each, layers) for each in shares), strict=True)
    ]


# Targets of the relation probe: the governor of each word, or its dependents, by dependency relation

ANY, MARKS = "any", "punct"


@dataclass(frozen=True)
class RelationTargets:
    """Targets in one direction for each relation, and for any but punctuation, which comes last.

    Towards the governor, every word in the relation is a query; towards the dependent, every word that governs one in
    it, and any such dependent is correct.
    """

    data: TreebankView
    names: tuple[str, ...]
    code: PerWord  # of each word's relation to its governor, -1 where it is not asked about
    governor: PerWord
    backwards: bool

    @classmethod
    def of(cls, data: TreebankView, names: Sequence[str], backwards: bool) -> RelationTargets:
        """The targets of the relations with these names."""
        numbers = {name: number for number, name in enumerate(names)}
        code = np.array([numbers.get(name, -1) for name in data.relation], dtype=np.int64)
        return cls(data, (*names, ANY), code, data.governor, backwards)

    def found(self, most: WordHeads) -> WordHeads:
        """The number of the relation between each word and the one it attends to most, -1 where none."""
        target = most + self.data.first[:, None]
        own = np.arange(len(self.code))[:, None]
        if self.backwards:
            return np.where((self.governor[target] == own) & (most >= 0), self.code[target], -1)
        return np.where((self.governor[:, None] == target) & (most >= 0), self.code[:, None], -1)

    def right(self, most: WordHeads) -> Int[np.ndarray, "R K"]:
        """The number of correct answers for each relation and head."""
        kinds, heads = len(self.names), most.shape[1]
        cells = (self.found(most) + 1) * heads + np.arange(heads)
        counts = np.bincount(cells.ravel(), minlength=kinds * heads).reshape(kinds, heads)[1:]
        return np.concatenate([counts, counts[self.counted].sum(0, keepdims=True)])

    def answers(self, most: PerWord, kind: int) -> Bool[np.ndarray, " n"]:
        """Whether each query of one relation is answered correctly."""
        found = self.found(most[:, None])[self.asked[kind], 0]
        last = kind == len(self.names) - 1
        return np.asarray((found >= 0) & self.counted[found] if last else found == kind)

    @property
    def asked(self) -> Bool[np.ndarray, "R N"]:
        """The words that are queries, for each relation."""
        some, about = self._pairs
        questions = np.zeros((len(self.names), len(self.code)), dtype=bool)
        questions[self.code[some], about] = True
        questions[-1] = questions[:-1][self.counted].any(0)
        return questions

    @property
    def chance(self) -> Float[np.ndarray, " R"]:
        """The accuracy of a uniformly random other word of the sentence."""
        some, about = self._pairs
        one = 1 / np.maximum(1, self.data.length[about] - 1)
        hits = np.bincount(self.code[some], one, minlength=len(self.names) - 1)
        hits = np.append(hits, hits[self.counted].sum())
        return np.asarray(hits / np.maximum(1, self.asked.sum(1)))

    @property
    def counted(self) -> Bool[np.ndarray, " r"]:
        """Which relations count towards "any"."""
        return np.array([name != MARKS for name in self.names[:-1]], dtype=bool)

    @property
    def _pairs(self) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """The dependents, and the query word of each."""
        some = np.flatnonzero(self.code >= 0)
        return some, self.governor[some] if self.backwards else some

    def control(self, fraction: Float[np.ndarray, " N"]) -> RelationTargets:
        """The same with random governors: the word at this fraction of the sentence's other words."""
        position = np.floor(fraction * (self.data.length - 1)).astype(np.int64)
        position = np.where(self.data.length > 1, position + (position >= self.data.position), 0)
        return replace(self, governor=self.data.first + position)


# Dependency probe: which head attends from a word to its governor, or back, for each relation

OFFSETS = (-3, -2, -1, 1, 2, 3)
DIRECTIONS = ("to governor", "to dependent")
MINIMUM = 30  # questions about a relation, in either set


def relations(dev: TreebankView, test: TreebankView, seed: int = 0, minimum: int = MINIMUM) -> list[dict[str, Any]]:
    """For each relation and direction the head that is best on dev, scored on test, beside an offset and a control.

    Clark et al. (2019), section 4.2. The surest gain over offset and control comes first.
    """
    # differs from Clark et al. (2019): they choose the head where they score it, and ask towards the dependent which
    # word attends to it most; here it is which word a governor attends to most.
    names = tuple(sorted({*dev.relation, *test.relation} - {NONE}))
    rows = [
        row
        for back, direction in zip((False, True), DIRECTIONS, strict=True)
        for row in _rows(
            RelationTargets.of(dev, names, back), RelationTargets.of(test, names, back), direction, seed, minimum
        )
    ]
    return sorted(rows, key=lambda row: float(max(row["offset_accuracy"], row["control_high"]) - row["low"]))


def _rows(
    dev: RelationTargets, test: RelationTargets, direction: str, seed: int, minimum: int
) -> Iterator[dict[str, Any]]:
    best, dev_share, share = _chosen(dev, test, dev.data.seen.most, test.data.seen.most)
    offset, _, offset_share = _chosen(dev, test, offsets(dev.data), offsets(test.data))
    controls = _controls(dev, test, seed)
    (n_dev, n), chance = (targets.asked.sum(1) for targets in (dev, test)), test.chance
    heads, layers = share.shape[1], test.data.seen.layers
    for kind, name in enumerate(test.names):
        if min(n_dev[kind], n[kind]) < minimum:
            continue
        head = int(best[kind])
        group = test.data.sentence[test.asked[kind]]
        control = spread(controls[:, kind])
        yield {
            "relation": name,
            "direction": direction,
            "n": int(n[kind]),
            "n_dev": int(n_dev[kind]),
            **named(head, heads, layers),
            **scored(test.answers(test.data.seen.most[:, head], kind), group),
            "dev_accuracy": float(dev_share[kind, head]),
            "offset": OFFSETS[int(offset[kind])],
            "offset_accuracy": float(offset_share[kind, offset[kind]]),
            "control_accuracy": control.share,
            "control_low": control.low,
            "control_high": control.high,
            "chance": float(chance[kind]),
            "every": grid(share[kind], layers),
        }


def _chosen(
    dev: RelationTargets, test: RelationTargets, dev_most: WordHeads, test_most: Int[np.ndarray, "M K"]
) -> tuple[Int[np.ndarray, " R"], Float[np.ndarray, "R K"], Float[np.ndarray, "R K"]]:
    """The best column on dev for each relation, and the accuracies of all on dev and on test."""
    shares = [
        targets.right(most) / np.maximum(1, targets.asked.sum(1))[:, None]
        for targets, most in ((dev, dev_most), (test, test_most))
    ]
    return shares[0].argmax(1), shares[0], shares[1]


def _controls(dev: RelationTargets, test: RelationTargets, seed: int) -> Float[np.ndarray, "draws R"]:
    """Scores of the heads that are best at random governors, for several draws.

    As in the control tasks of Hewitt and Liang (2019) what is asked for depends on the type of a word alone: where in
    the sentence its governor is said to stand.
    """
    types, numbers = np.unique(np.concatenate([dev.data.word, test.data.word]).astype(str), return_inverse=True)
    random = np.random.default_rng([seed, 2])
    cut = len(dev.data.word)
    scores = []
    for _ in range(DRAWS):
        fraction = random.random(len(types))[numbers]
        quizzes = dev.control(fraction[:cut]), test.control(fraction[cut:])
        best, _, share = _chosen(*quizzes, dev.data.seen.most, test.data.seen.most)
        scores.append(share[np.arange(len(best)), best])
    return np.stack(scores)


def offsets(data: TreebankView) -> Int[np.ndarray, "N O"]:
    """The position at each of the fixed offsets from each word, -1 beyond the sentence."""
    position = data.position[:, None] + np.array(OFFSETS)
    return np.where((position >= 0) & (position < data.length[:, None]), position, -1)


# Attention probe: predicts from all heads' attention between two words whether one governs the other, and how


def pairs(dev: TreebankView, test: TreebankView, seed: int = 0, minimum: int = MINIMUM) -> dict[str, Any]:
    """The attention probe of Reif et al. (2019): logistic regression on dev, scored on test.

    A pair of words is what all heads give from one to the other in both directions. The control has random labels
    that depend on the types of the two words alone (Hewitt and Liang 2019): what the probe gets there it has learnt
    from the words, or from nothing.
    """
    names = [data.relation[data.pairs[:, 0]] for data in (dev, test)]
    true = [data.pairs[:, 2] == 1 for data in (dev, test)]
    common, counts = np.unique(names[0][true[0]].astype(str), return_counts=True)
    classes = common[counts >= minimum].tolist()
    number = {name: index for index, name in enumerate(classes)}
    which = [np.array([number.get(name, -1) for name in each], dtype=np.int64) for each in names]
    related = [known & (label >= 0) for known, label in zip(true, which, strict=True)]
    everything = [np.ones_like(known) for known in true]
    binary = _probe((dev, test), everything, [known.astype(np.int64) for known in true], 2, seed)
    return {
        "binary": binary,
        "relations": {**_probe((dev, test), related, which, len(classes), seed), "classes": classes},
    }


def _probe(
    data: tuple[TreebankView, TreebankView], kept: list[np.ndarray], labels: list[np.ndarray], classes: int, seed: int
) -> dict[str, Any]:
    """The accuracy of one probe, beside the most frequent class and random labels."""
    dev, test = ([part.seen.between[keep], label[keep]] for part, keep, label in zip(data, kept, labels, strict=True))
    if not len(dev[1]) or not len(test[1]):
        return {"n": 0, **dict.fromkeys(("accuracy", "low", "high", "majority", "control"), None)}
    group = data[1].sentence[data[1].pairs[kept[1], 0]]
    usual = np.bincount(dev[1], minlength=classes)
    random = _by_type(data, kept, usual / usual.sum(), seed)
    control = fit(dev[0], random[0], classes)(test[0]) == random[1]
    return {
        "n": len(test[1]),
        **scored(fit(dev[0], dev[1], classes)(test[0]) == test[1], group),
        "majority": float((test[1] == usual.argmax()).mean()),
        "control": float(control.mean()),
    }


def _by_type(
    data: tuple[TreebankView, TreebankView], kept: list[np.ndarray], shares: Float[np.ndarray, " C"], seed: int
) -> list[np.ndarray]:
    """Random labels drawn with these shares, the same for all pairs of the same two word types."""
    types = [
        [f"{one}\t{other}" for one, other in zip(*(part.word[part.pairs[keep, side]] for side in (0, 1)), strict=True)]
        for part, keep in zip(data, kept, strict=True)
    ]
    unique, number = np.unique(np.array(types[0] + types[1]), return_inverse=True)
    drawn = np.random.default_rng([seed, 4]).choice(len(shares), size=len(unique), p=shares)[number]
    return [drawn[: len(types[0])], drawn[len(types[0]) :]]
