"""Similarity of explanations to human ones: BLEU and chrF, by sacrebleu (Post, 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.data.text import Tokeniser
from assay.errors import AssayError


def overlap(
    written: Sequence[str], references: Sequence[Sequence[str]], tokeniser: Tokeniser | None = None
) -> dict[str, float]:
    """Corpus BLEU (Papineni et al., 2002) and chrF (Popović, 2015) against all references, 0 to 100.

    With a tokeniser, references are cut into its words, as what it wrote is; case does not count. An item may have
    fewer references than others.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    except ImportError as fault:
        raise AssayError("BLEU and chrF need sacrebleu; install assay[text].") from fault
    if not written or len(written) != len(references):
        raise AssayError("Each explanation needs references, and there must be one at least.")
    known = [[_spaced(text, tokeniser) for text in each] for each in references]
    most = max(map(len, known))
    columns: list[list[Any]] = [[each[index] if index < len(each) else None for each in known] for index in range(most)]
    found = {"bleu": BLEU(lowercase=True, force=True), "chrf": CHRF(lowercase=True)}
    return {name: float(metric.corpus_score(list(written), columns).score) for name, metric in found.items()}


def _spaced(text: str, tokeniser: Tokeniser | None) -> str:
    """The text with one space between its words."""
    return text if tokeniser is None else " ".join(text[start:end] for start, end in tokeniser([text])[0].spans)
