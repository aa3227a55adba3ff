"""How well selected sentences meet what people marked, as Paranjape et al. (2020) count it in their published code.

    ASSAY_DATA=folder python -m studies.rationales.sentences [--draws 50] [--folder results]

Prints what words and sentences that are drawn at random reach on the test reviews, and keeps it for the page: whoever
selects on purpose must do better.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int

from assay.data.batches import Tokenised, tokenise
from assay.data.corpora import corpus
from assay.files import write_text
from assay.metrics import plausibility
from assay.rationales.measuring import Selected, pooled
from assay.rationales.trainers import OURS, marked, tokeniser_of

FILE = "movies-at-random.json"
SHARE = 0.4  # of the sentences: what Paranjape et al. (2020) ask for on these reviews
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


def measured(found: Sequence[Selected]) -> dict[str, float]:
    """The measures that need no model, as they stand in the tables."""
    counts = [
        plausibility.token_counts(each.kept[None], each.row.truth.numpy()[None])
        for each in found
        if each.row.truth is not None and bool(each.row.truth.any())
    ]
    return {
        "size": float(np.mean([each.kept.mean() for each in found])),
        "token_f1": float(np.mean([plausibility.scores(each).f1 for each in counts])),
        "iou_f1": pooled(found, 2)["iou_f1_eraser"],
        **{f"iou_f1_sentences_{overlap:g}": iou_f1(found, overlap) or 0.0 for overlap in OVERLAPS},
    }


def kept(folder: Path) -> Mapping[str, Mapping[str, float]]:
    """What was reached at random, by kind of units; nothing, where it was not tried."""
    path = folder / FILE
    found: Mapping[str, Mapping[str, float]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    given = corpus("movies")
    tokeniser = tokeniser_of(given, replace(OURS, text=replace(OURS.text, longest=4000)))
    (train, _), (test, _) = (tokenise(texts, tokeniser, 4000) for texts in (given.train, given.test))
    generator, answer = np.random.default_rng(0), {}
    for name, units, rate in (
        ("word", "word", marked(train)),
        ("few sentences", "sentence", marked(train)),
        ("sentence", "sentence", SHARE),
    ):
        draws = [measured(at_random(test, rate, units, generator)) for _ in range(options.draws)]
        columns = {measure: np.array([each[measure] for each in draws]) for measure in draws[0]}
        answer[name] = {measure: round(float(each.mean()), 6) for measure, each in columns.items()} | {"rate": rate}
        told = ", ".join(f"{measure} {each.mean():.4f} ± {each.std():.4f}" for measure, each in columns.items())
        print(f"{units}s, a share of {rate:.3f}, mean and standard deviation over {options.draws} draws: {told}")
    write_text(options.folder / FILE, json.dumps(answer, indent=1) + "\n")


if __name__ == "__main__":
    main()
