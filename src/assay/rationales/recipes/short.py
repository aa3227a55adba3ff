"""What nearly every recipe asks of a selection: few words, and these together."""

from __future__ import annotations

from assay.rationales.schemes import Options
from assay.rationales.terms import Term
from assay.rationales.terms.sizes import Continuity, Size


def short(options: Options, kind: str = "text") -> tuple[tuple[float, Term], ...]:
    """The costs of being far from the rate, in each text or in a batch, and of breaks, as strong as was asked for."""
    size = 5.0 if options.size is None else options.size
    continuity = 0.5 if options.continuity is None else options.continuity
    return (size, Size(options.rate, kind)), (continuity, Continuity())
