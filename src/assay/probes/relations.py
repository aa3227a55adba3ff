"""Dependency probe: which head attends from a word to its governor, or back, for each relation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from assay.probes.relation_targets import RelationTargets
from assay.probes.scoring import DRAWS, grid, named, spread, wilson
from assay.probes.treebank_view import NONE, TreebankView

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
        score = wilson(test.answers(test.data.seen.most[:, head], kind), group)
        control = spread(controls[:, kind])
        yield {
            "relation": name,
            "direction": direction,
            "n": int(n[kind]),
            "n_dev": int(n_dev[kind]),
            **named(head, heads, layers),
            "accuracy": score.share,
            "low": score.low,
            "high": score.high,
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
    dev: RelationTargets, test: RelationTargets, dev_most: Int[np.ndarray, "N K"], test_most: Int[np.ndarray, "M K"]
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
