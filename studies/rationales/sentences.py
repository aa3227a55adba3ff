"""How well selected sentences meet what people marked, as Paranjape et al. (2020) count it in their published code.

    ASSAY_DATA=folder python -m studies.rationales.sentences [--draws 50] [--rate 0.4]

Prints what sentences and words that are drawn at random reach on the test reviews, where as large a share is drawn as
people marked, or as is asked for: whoever selects on purpose must do better.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
from jaxtyping import Bool, Int

from assay.data.batches import Tokenised, tokenise
from assay.data.corpora import corpus
from assay.metrics import plausibility
from assay.rationales.bases import OURS, marked, tokeniser_of
from assay.rationales.measuring import Selected, pooled

OVERLAPS = (0.5, 0.1)  # of the union; their code prints the F1 for both


def iou_f1(found: Sequence[Selected], overlap: float) -> float | None:
    """The F1 of mean precision and mean recall over texts with marks, where each selected sentence is a span.

    As in ERASER, two sentences that meet one marked span both count for recall. None, where nothing is marked.
    """
    marked = [each for each in found if each.row.truth is not None and bool(each.row.truth.any())]
    if not marked:
        return None
    counts = [_counts(each, overlap) for each in marked]
    joined = (np.concatenate([getattr(each, field.name) for each in counts]) for field in fields(plausibility.Counts))
    return float(plausibility.macro_spans(plausibility.Counts(*joined), clipped=False).f1)


def spans(kept: Bool[np.ndarray, " T"], sentences: Int[np.ndarray, " T"]) -> plausibility.Spans:
    """The selected words of each sentence as a span of its own, of document 0."""
    found = plausibility.spans(kept & (sentences == np.arange(sentences.max() + 1)[:, None]))
    found[:, 0] = 0
    return found


def _counts(each: Selected, overlap: float) -> plausibility.Counts:
    assert each.row.truth is not None
    truth = plausibility.spans(each.row.truth.numpy()[None])
    return plausibility.span_counts(spans(each.kept, each.row.sentences.numpy()), truth, 1, overlap)


def at_random(rows: Sequence[Tokenised], rate: float, units: str, generator: np.random.Generator) -> list[Selected]:
    """The share `rate` of the words or sentences of each text, rounded up, drawn at random."""
    return [_drawn(row, rate, units, generator) for row in rows]


def _drawn(row: Tokenised, rate: float, units: str, generator: np.random.Generator) -> Selected:
    owner = row.sentences.numpy() if units == "sentence" else np.arange(len(row.ids))
    there = np.unique(owner)
    kept = np.isin(owner, generator.permutation(there)[: int(np.ceil(rate * len(there) - 1e-9))])
    return Selected(row, kept, kept.astype(float), np.array([0.5, 0.5]), {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--rate", type=float, help="share of words, or of sentences; without it, as people marked")
    options = parser.parse_args()
    given = corpus("movies")
    tokeniser = tokeniser_of(given, replace(OURS, text=replace(OURS.text, longest=4000)))
    (train, _), (test, _) = (tokenise(texts, tokeniser, 4000) for texts in (given.train, given.test))
    rate, generator = options.rate or marked(train), np.random.default_rng(0)
    print(f"{len(test)} texts, a share of {rate:.3f}, {options.draws} draws, mean and standard deviation over draws")
    for units in ("word", "sentence"):
        drawn = [at_random(test, rate, units, generator) for _ in range(options.draws)]
        measures = {"ERASER, runs, 0.5": [pooled(found, 2)["iou_f1_eraser"] for found in drawn]}
        if units == "sentence":
            measures |= {
                f"sentence by sentence, {by:g}": [iou_f1(found, by) or 0.0 for found in drawn] for by in OVERLAPS
            }
        told = ", ".join(f"{name}: {np.mean(each):.4f} ± {np.std(each):.4f}" for name, each in measures.items())
        print(f"IOU F1 of {units}s at random: {told}")


if __name__ == "__main__":
    main()
