"""Measures of a selection, worked out a second time by hand on tiny texts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.data.batches import Tokenised, collate
from assay.models.network import Classifier
from assay.models.recipes import drawn
from assay.rationales.measuring import MEASURES, Selected, measured, pooled, selected
from assay.rationales.players import Rules, assemble_players
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.units import Decoding
from tests.rationales.folders import OURS


def row(ids: list[int], label: int, truth: list[int] | None) -> Tokenised:
    size = len(ids)
    spans = torch.tensor([[2 * place, 2 * place + 1] for place in range(size)], dtype=torch.int32)
    marks = None if truth is None else torch.tensor([place in truth for place in range(size)])
    return Tokenised(0, torch.tensor(ids), spans, torch.zeros(size, dtype=torch.long), label, marks)


ROWS = [
    row([4, 5, 6, 7, 8], 0, [1, 2]),
    row([9, 4, 5], 1, None),
    row([6, 6, 7, 9, 5, 4, 8, 8, 9, 7], 1, [0, 8, 9]),
    row([5, 9], 0, []),
]


def model(critic: bool = False, rule: str = "top", reads: str = "selected") -> Rationaliser:
    names = ("predictor", "selector", *(["critic"] if critic else []))
    readers = {name: drawn(OURS.architecture, 12, 2, seed) for seed, name in enumerate(names)}
    assert all(isinstance(each, Classifier) for each in readers.values())
    torch.manual_seed(3)
    rules = Rules(decoding=Decoding(rule, 0.4), reads=reads)
    made = Rationaliser(assemble_players(rules, readers, (), 2), rules).double().eval()
    with torch.no_grad():  # sharp enough that answers differ
        for parameter in made.parameters():
            parameter.mul_(4.0)
    return made


def probability(reader, x, batch, kept) -> np.ndarray:
    """The answer of a reader to the words that are kept, the others being 0."""
    shown = x * kept[None, :, None]
    return reader(shown, batch).logits.softmax(-1)[0].detach().numpy()


@pytest.mark.parametrize(("critic", "reads"), [(False, "selected"), (True, "selected"), (False, "all")])
def test_each_measure_of_each_text_is_what_a_single_text_gives_by_hand(critic: bool, reads: str) -> None:
    made = model(critic, reads=reads)
    found = selected(made, ROWS)
    assert [each.row for each in found] == ROWS
    for each in found:
        batch = collate([each.row], 2)
        x = made.embed(batch)
        theta = made.players.theta(x, batch, made.rules.units(batch))[0, 0, :, 0].detach()
        size = len(each.row.ids)
        order = sorted(range(size), key=lambda place: -float(theta[place]))
        kept = torch.tensor([place in order[: math.ceil(0.4 * size)] for place in range(size)]).double()
        predictor = made.players.predictor
        p_all, p_kept, p_rest = (probability(predictor, x, batch, part) for part in (kept * 0 + 1, kept, 1 - kept))
        decided = int((p_all if reads == "all" else p_kept).argmax())
        rest = probability(made.players.reader("critic"), x, batch, 1 - kept) if critic else p_rest
        assert each.kept.tolist() == kept.bool().tolist() and each.predicted == decided
        assert each.numbers["accuracy"] == (decided == each.row.label)
        assert each.numbers["size"] == pytest.approx(float(kept.mean()))
        assert each.numbers["comprehensiveness"] == pytest.approx(p_all[decided] - p_rest[decided], abs=1e-9)
        assert each.numbers["sufficiency"] == pytest.approx(p_all[decided] - p_kept[decided], abs=1e-9)
        assert each.numbers["complement_accuracy"] == (int(rest.argmax()) == each.row.label)


def test_agreement_with_marks_is_counted_as_by_hand() -> None:
    for each in selected(model(), ROWS):
        truth = set() if each.row.truth is None else set(each.row.truth.nonzero()[:, 0].tolist())
        if not truth:
            assert all(math.isnan(each.numbers[name]) for name in ("token_f1", "iou_f1", "auprc"))
            continue
        kept = set(np.flatnonzero(each.kept).tolist())
        assert each.numbers["token_f1"] == pytest.approx(2 * len(kept & truth) / (len(kept) + len(truth)))
        hits = [any(len(a & b) >= 0.5 * len(a | b) for b in runs(truth)) for a in runs(kept)]
        precision, recall = sum(hits) / len(hits), min(sum(hits), len(runs(truth))) / len(runs(truth))
        by_hand = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        assert each.numbers["iou_f1"] == pytest.approx(by_hand)
        from sklearn.metrics import auc, precision_recall_curve

        scores = (each.kept + each.chance) / 2
        precisions, recalls, _ = precision_recall_curve([place in truth for place in range(len(scores))], scores)
        assert each.numbers["auprc"] == pytest.approx(auc(recalls, precisions), abs=1e-6)


def runs(places: set[int]) -> list[set[int]]:
    """Stretches of neighbouring places."""
    found: list[set[int]] = []
    for place in sorted(places):
        if found and place - 1 in found[-1]:
            found[-1].add(place)
        else:
            found.append({place})
    return found


def texts(*numbers: tuple[float, float]) -> list[Selected]:
    """Texts with an accuracy and a token F1, all else 0."""
    return [
        Selected(
            ROWS[0],
            np.array([True, False, False, False, False]),
            np.zeros(5),
            np.array([0.7, 0.3]),
            dict.fromkeys(MEASURES, 0.0) | {"accuracy": right, "token_f1": f1},
        )
        for right, f1 in numbers
    ]


def test_means_leave_out_what_texts_do_not_have_and_lie_in_their_intervals() -> None:
    nan = float("nan")
    answer = measured(texts((1.0, 0.5), (0.0, nan), (1.0, 1.0), (1.0, nan)))
    assert answer["accuracy"]["mean"] == 0.75 and answer["accuracy"]["n"] == 4
    assert answer["token_f1"]["mean"] == 0.75 and answer["token_f1"]["n"] == 2
    assert answer["accuracy"]["low"] <= 0.75 <= answer["accuracy"]["high"]
    assert "token_f1" not in measured(texts((1.0, nan)))


def test_the_pooled_iou_is_the_f1_of_mean_precision_and_mean_recall() -> None:
    one, other = texts((1.0, 0.0), (1.0, 0.0))
    # marks: 1–2, 0 and 8–9; the first selection hits both its spans' one mark, the second one of two
    one = replace(one, kept=np.array([False, True, True, False, True]))
    other = replace(other, row=ROWS[2], kept=np.array([True] + [False] * 9), chance=np.zeros(10))
    mean_precision, mean_recall = (0.5 + 1.0) / 2, (1.0 + 0.5) / 2
    expected = 2 * mean_precision * mean_recall / (mean_precision + mean_recall)
    assert pooled([one, other], 2)["iou_f1_eraser"] == pytest.approx(expected)
    assert pooled([one, other], 2)["macro_f1"] == pytest.approx((2 / 3 + 0) / 2)
    assert "iou_f1_eraser" not in pooled([replace(one, row=ROWS[1])], 2)
