"""Attention probe: predicts from all heads' attention between two words whether one governs the other, and how."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from assay.models.logistic import fit
from assay.probes.scoring import wilson
from assay.probes.treebank_view import TreebankView

MINIMUM = 30  # pairs of a relation to learn it from


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
    score = wilson(fit(dev[0], dev[1], classes)(test[0]) == test[1], group)
    usual = np.bincount(dev[1], minlength=classes)
    random = _by_type(data, kept, usual / usual.sum(), seed)
    control = fit(dev[0], random[0], classes)(test[0]) == random[1]
    return {
        "n": len(test[1]),
        "accuracy": score.share,
        "low": score.low,
        "high": score.high,
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
