"""The figures of audits about models, by their names; each takes a record and gives its figure, or None."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from assay.records import Record
from assay.report.canvas import Figure
from assay.report.compared import dots, lines, planes

FIGURES: dict[str, Callable[[Record], Figure | None]] = {
    "dispersion": partial(dots.draw, spec=dots.ENTROPIES),
    "sparsity": lines.sparsity,
    "sparsity_agreement": lines.sparsity_agreement,
    "word_level": lines.equivalents,
    **{name: partial(dots.draw, spec=spec) for name, spec in dots.LEVELS.items()},
    "frozen_uniform": partial(dots.draw, spec=dots.UNIFORM),
    "guide": partial(dots.draw, spec=dots.GUIDED),
    "tvd_jsd": planes.divergence,
    "deception": planes.deception,
}
