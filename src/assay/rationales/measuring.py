"""Measures of selections: for the decision, faithfulness to the model, agreement with annotations, and collapse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay import progress
from assay.data.batches import Tokenised
from assay.explainers.baselines import Rationale
from assay.metrics import plausibility
from assay.metrics.intervals import measured as bounded
from assay.metrics.performance import macro_f1
from assay.metrics.plausibility import auprc
from assay.models.textmodel import groups
from assay.rationales.players import evaluating
from assay.rationales.rationaliser import VIEWS, Selecting
from assay.rationales.selection_stories import MEASURES as STORIES
from assay.types import Batch

Words = Bool[np.ndarray, "B T"]
Numbers = dict[str, Float[np.ndarray, " B"]]  # by measure

MEASURES = tuple(each.name for each in STORIES)


@dataclass(frozen=True)
class Selected:
    """The selection and prediction of the model for one text, with its measures.

    `numbers` are the measures of this text; nan stands for what it does not have. The `account` is what else the model
    tells of its decision.
    """

    row: Tokenised
    kept: Bool[np.ndarray, " T"]
    chance: Float[np.ndarray, " T"]
    probabilities: Float[np.ndarray, " C"]
    numbers: dict[str, float]
    account: dict[str, Any] = field(default_factory=dict)

    @property
    def predicted(self) -> int:
        return int(self.probabilities.argmax())


def selected(model: Selecting, rows: Sequence[Tokenised]) -> list[Selected]:
    """The selections of each text, in the order given."""
    found: dict[int, Selected] = {}
    with evaluating(model), progress.bar() as shown:
        task = shown.add_task("measuring", total=len(rows))
        for indices, batch in groups(model, rows):
            numbers = indices.tolist()
            found |= zip(numbers, _read(model, batch, [rows[index] for index in numbers]), strict=True)
            shown.advance(task, len(numbers))
    return [found[index] for index in range(len(rows))]


def measured(found: Sequence[Selected]) -> dict[str, dict[str, Any]]:
    """The mean of each measure over texts with its 95 % interval and count; undefined measures are left out."""
    values = np.array([[each.numbers[name] for name in MEASURES] for each in found])
    means = bounded(MEASURES, values)
    columns = zip(MEASURES, means.mean, means.low, means.high, means.n, strict=True)
    return {
        name: {"mean": float(mean), "low": float(low), "high": float(high), "n": int(n)}
        for name, mean, low, high, n in columns
        if n
    }


def pooled(found: Sequence[Selected], classes: int) -> dict[str, float]:
    """Measures that are no mean over texts: macro F1, and the pooled IOU F1 of DeYoung et al. (2020).

    That is the F1 of the mean precision and the mean recall of spans; texts without marks are left out.
    """
    labels, predicted = (
        np.array(each) for each in zip(*((each.row.label, each.predicted) for each in found), strict=True)
    )
    answer = {"macro_f1": macro_f1(labels, predicted, classes)}
    counts = [_spans(each.kept[None], truth[None]) for each in found if (truth := _truth(each.row)).any()]
    if counts:
        joined = plausibility.Counts(
            *(np.concatenate([getattr(each, name) for each in counts]) for name in ("hits", "predicted", "marked"))
        )
        answer["iou_f1_eraser"] = float(plausibility.macro_spans(joined).f1)
    return answer


def _read(model: Selecting, batch: Batch, rows: Sequence[Tokenised]) -> list[Selected]:
    """Selections and measures of a batch."""
    x = model.embed(batch)
    selection = model.selection(x, batch)
    decided = model(x, batch).probabilities.double().cpu().numpy()
    scores = Rationale()(model, batch, batch.labels).double().cpu().numpy()
    kept, chance = selection.kept.cpu().numpy(), selection.chance.double().cpu().numpy()
    mask, labels = batch.mask.cpu().numpy(), batch.labels.cpu().numpy()
    accounts = model.accounts(x, batch)
    numbers = {
        "accuracy": (decided.argmax(-1) == labels).astype(float),
        "size": kept.sum(-1) / mask.sum(-1),
        **_faithful(model, x, batch, decided.argmax(-1)),
        **_plausible(kept, scores, mask, rows),
        "query_f1": np.array([_asked(row, account) for row, account in zip(rows, accounts, strict=True)]),
    }
    found = []
    for index, row in enumerate(rows):
        own = {name: float(values[index]) for name, values in numbers.items()}
        words = slice(len(row.ids))
        found.append(Selected(row, kept[index, words], chance[index, words], decided[index], own, accounts[index]))
    return found


def _faithful(model: Selecting, x: Float[Tensor, "B T D"], batch: Batch, decided: Int[np.ndarray, " B"]) -> Numbers:
    """Probabilities of the predicted class with all words, the selected ones, or the rest.

    DeYoung et al. (2020), section 4.2: comprehensiveness p(all) − p(rest), sufficiency p(all) − p(selected).
    """
    # differs from DeYoung et al. (2020): the class is the model's decision, which it makes by the selected words
    p = {view: _probabilities(model.viewed(x, batch, view)) for view in VIEWS}
    of = {view: values[np.arange(len(decided)), decided] for view, values in p.items()}
    rest = _probabilities(model.complement(x, batch)) if model.critic else p["rest"]
    return {
        "comprehensiveness": of["all"] - of["rest"],
        "sufficiency": of["all"] - of["selected"],
        "complement_accuracy": (rest.argmax(-1) == batch.labels.cpu().numpy()).astype(float),
    }


def _probabilities(logits: Float[Tensor, "B C"]) -> Float[np.ndarray, "B C"]:
    found: np.ndarray = logits.double().softmax(-1).cpu().numpy()
    return found


def _plausible(
    kept: Words,
    scores: Float[np.ndarray, "B T"],
    mask: Words,
    rows: Sequence[Tokenised],
) -> Numbers:
    """Agreement with the annotated words; nan where there are none."""
    truth = np.zeros_like(mask)
    for index, row in enumerate(rows):
        truth[index, : len(row.ids)] = _truth(row)
    unmarked = ~truth.any(-1)
    counts = {"token_f1": plausibility.token_counts(kept, truth), "iou_f1": _spans(kept, truth)}
    found = {name: np.where(unmarked, np.nan, plausibility.scores(each).f1) for name, each in counts.items()}
    return found | {"auprc": auprc(scores, truth, mask)}


def _asked(row: Tokenised, account: dict[str, Any]) -> float:
    """The F1 of the query's aligned words; nan where none are aligned or annotated."""
    if "aligned" not in account or row.query_truth is None or not bool(row.query_truth.any()):
        return float("nan")
    kept = np.zeros((1, len(row.query_truth)), dtype=bool)
    kept[0, [pair["asked"] for pair in account["aligned"]]] = True
    return float(plausibility.scores(plausibility.token_counts(kept, row.query_truth.numpy()[None])).f1[0])


def _spans(kept: Words, truth: Words) -> plausibility.Counts:
    return plausibility.span_counts(plausibility.spans(kept), plausibility.spans(truth), len(kept))


def _truth(row: Tokenised) -> Bool[np.ndarray, " T"]:
    return np.zeros(len(row.ids), dtype=bool) if row.truth is None else row.truth.numpy()


MOST, LEAST = 0.95, 0.01
"""Shares of words from which on nearly all, or nearly none, are selected."""

ALIKE = 0.9  # of selected words stand at positions that are selected in as large a share of texts


def collapse(found: Sequence[Selected], shares: Sequence[float], majority: float) -> list[str]:
    """A sentence for each symptom of collapse in the selections of some texts.

    `shares` are those of words that were drawn in each epoch, and `majority` is how often the most frequent class is
    right.
    """
    told = []
    if shares and shares[-1] > MOST:
        told.append(f"Training collapsed: in its last epoch {shares[-1]:.0%} of all words were drawn.")
    if shares and shares[-1] < LEAST:
        told.append(f"Training collapsed: in its last epoch hardly any word was drawn ({shares[-1]:.1%}).")
    size = float(np.mean([each.kept.mean() for each in found]))
    if size > MOST:
        told.append(f"Nearly every word is selected ({size:.0%}), so the selection explains nothing.")
    if size < LEAST:
        told.append("Nearly no word is selected, so the decision rests on something else.")
    if LEAST <= size <= MOST:
        told += _repeated(found)
    right = np.array([each.predicted == each.row.label for each in found], dtype=float)
    if right.mean() <= majority + 2 * right.std() / np.sqrt(len(right)):
        told.append(f"The selected words decide no better than always guessing one class ({majority:.0%} right).")
    return told


def _repeated(found: Sequence[Selected]) -> list[str]:
    """Selections that are the same whatever the words."""
    for end, turn in (("start", slice(None)), ("end", slice(None, None, -1))):
        if _alike([each.kept[turn] for each in found]) > ALIKE:
            return [
                f"The same positions, counted from the {end}, are selected in nearly every text, whatever the words."
            ]
    words = Counter(word for each in found for word in each.row.ids.numpy()[each.kept].tolist())
    most = max(words.values(), default=0) / max(1, words.total())
    return [f"One word makes up {most:.0%} of all that is selected."] if most > ALIKE else []


def _alike(kept: Sequence[np.ndarray]) -> float:
    """The mean over selected words of the share of texts, as long or longer, that select the same position."""
    width = max(len(each) for each in kept)
    there, chosen = np.zeros(width), np.zeros(width)
    for each in kept:
        there[: len(each)] += 1
        chosen[: len(each)] += each
    shares = chosen / np.maximum(there, 1)
    return float((shares * chosen).sum() / max(1.0, chosen.sum())) if len(kept) > 1 else 0.0
