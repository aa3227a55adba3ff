"""From numbers for each example to findings: means with intervals, over all and by predicted class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from assay.metrics import bootstrap
from assay.records import Finding

SIGNIFICANT = 0.05


def summarise(
    audit: str,
    kind: str,
    measures: Mapping[str, Float[np.ndarray, " N"]],
    predicted: Int[np.ndarray, " N"],
    classes: Sequence[str],
) -> list[Finding]:
    """One finding for each measure that exists for some example, over all examples and for each predicted class."""
    named = [name for name in measures if not name.startswith("p:")]
    values = np.stack([measures[name] for name in named], axis=1)
    groups = {"all": np.ones(len(predicted), dtype=bool)}
    groups |= {name: predicted == label for label, name in enumerate(classes)}
    findings: list[Finding] = []
    for group, chosen in groups.items():
        interval = bootstrap.means(values[chosen])
        for place, name in enumerate(named):
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
                    kind=kind,
                )
            )
    return findings


def _significant(p: Float[np.ndarray, " N"] | None, chosen: np.ndarray) -> float | None:
    if p is None:
        return None
    defined = p[chosen & np.isfinite(p)]
    return float((defined <= SIGNIFICANT).mean()) if len(defined) else None
