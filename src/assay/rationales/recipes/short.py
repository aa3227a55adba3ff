"""Sparsity and continuity penalties, shared by most recipes."""

from __future__ import annotations

from assay.rationales.schemes import Options
from assay.rationales.terms import Term
from assay.rationales.terms.sizes import Continuity, Size


def short(options: Options, kind: str = "text") -> tuple[tuple[float, Term], ...]:
    """Penalties on the distance from the rate, in each text or in a batch, and on breaks, with the chosen weights."""
    size = 5.0 if options.size is None else options.size
    continuity = 0.5 if options.continuity is None else options.continuity
    return (size, Size(options.rate, kind)), (continuity, Continuity())
