"""Aggregates numbers of examples to findings: means with intervals, over all and by predicted class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from assay.metrics.intervals import measured
from assay.records import Finding

SIGNIFICANT = 0.05
WHOLE = (
    *("overlap", "sign", "wins"),  # of pairs: too many to be told for each class
    *("uniform", "uniform_flips", "permuted", "permuted_flips"),  # of layers: so are these
)
COMPARING = ("frozen_uniform", "seed_variance", "guide", "trained_adversary", "deception", "word_level", "sparsity")
"""Audits of other models, which the classes that this one predicts say little of."""


def summarise(
    audit: str,
    kind: str,
    measures: Mapping[str, Float[np.ndarray, " N"]],
    predicted: Int[np.ndarray, " N"],
    classes: Sequence[str],
) -> list[Finding]:
    """One finding for each measure that some example has, over all examples and by predicted class.

    Measures at one of several thresholds ("name@threshold"), those in WHOLE and those of COMPARING are told over all
    examples alone. A gain ("name_gain") has the p-value, against no gain on average, that belongs to its interval.
    """
    named = [name for name in measures if not name.startswith("p:")]
    groups = {"all": (named, np.ones(len(predicted), dtype=bool))}
    by_class = [name for name in named if not (audit in COMPARING or _whole(name))]
    groups |= {name: (by_class, predicted == label) for label, name in enumerate(classes) if by_class}
    findings: list[Finding] = []
    for group, (names, chosen) in groups.items():
        values = np.stack([measures[name][chosen] for name in names], axis=1)
        interval = measured(names, values)
        for place, name in enumerate(names):
            measure, _, subject = name.partition(":")
            if interval.n[place] == 0:  # nothing was found
                continue
            findings.append(
                Finding(
                    audit=audit,
                    subject=subject or "attention",
                    measure=measure,
                    group=group,
                    mean=float(interval.mean[place]),
                    low=float(interval.low[place]),
                    high=float(interval.high[place]),
                    std=float(interval.std[place]),
                    n=int(interval.n[place]),
                    undefined=int(chosen.sum() - interval.n[place]),
                    significant=_significant(measures.get(f"p:{subject}"), chosen),
                    p_value=float(interval.p[place]) if measure.endswith("_gain") else None,
                    kind=kind,
                )
            )
    return findings


def _whole(name: str) -> bool:
    measure, _, _ = name.partition(":")
    return "@" in measure or measure in WHOLE


def _significant(p: Float[np.ndarray, " N"] | None, chosen: np.ndarray) -> float | None:
    if p is None:
        return None
    defined = p[chosen & np.isfinite(p)]
    return float((defined <= SIGNIFICANT).mean()) if len(defined) else None
