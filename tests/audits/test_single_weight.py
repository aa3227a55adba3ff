"""One item against another with plain loops, by the model's own decoder; what is drawn is drawn fairly."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from torch.nn.functional import pad

from assay.audits.cases import Case
from assay.audits.findings import summarise
from assay.audits.single_weight import SingleWeight
from tests import builders
from tests.audits import erased, small_resources

SUBJECTS = ("attention", "gradient", "product")
TABLE = ("both", "top_only", "other_only", "neither")
SHAPES = pytest.mark.parametrize("shape", ["flat", "hierarchical", "paired"])


def plain(text: erased.Text, subject: str) -> dict[str, float]:
    """Every measure of one text: its top item against the one with the largest random number among the others."""
    orders, weights, whole = text.rankings(), text.weights[0].tolist(), text.output()
    top, *rest = orders[subject]
    if not rest:
        return dict.fromkeys(("delta_js", "delta_weight", "smaller", *TABLE), math.nan)
    other = next(item for item in orders["random"] if item != top)
    apart = [jensenshannon(whole, text.output([item])) ** 2 for item in (top, other)]
    flipped = text.flips([top]), text.flips([other])
    cell = {(True, True): "both", (True, False): "top_only", (False, True): "other_only"}.get(flipped, "neither")
    return {
        "delta_js": apart[0] - apart[1],
        "delta_weight": weights[top] - weights[other],
        "smaller": float(apart[0] < apart[1]),
    } | {name: float(name == cell) for name in TABLE}


@SHAPES
@pytest.mark.parametrize("classes", [2, 4])
def test_every_measure_is_what_plain_loops_find(shape: str, classes: int) -> None:
    model, batch = erased.model(shape, classes), erased.batch()
    found = SingleWeight(seed=3)(Case(model, batch, {})).measures
    texts = [*erased.texts(model, batch, seed=3)]
    for subject in SUBJECTS:
        expected = [plain(text, subject) for text in texts]
        for measure in expected[0]:
            values = found[f"{measure}:{subject}"]
            assert values.dtype == np.float64
            np.testing.assert_allclose(values, [row[measure] for row in expected], atol=1e-12, err_msg=measure)
    assert len(found) == 7 * len(SUBJECTS)
    assert (np.isnan(found["delta_js:attention"]) == [len(text) == 1 for text in texts]).all()


def test_all_four_cells_and_both_signs_have_been_seen() -> None:
    """Without them, the comparison above would show little."""
    seen = dict.fromkeys((*TABLE, "smaller"), 0.0)
    for shape, classes in ((shape, classes) for shape in ("flat", "hierarchical", "paired") for classes in (2, 4)):
        found = SingleWeight(seed=3)(Case(erased.model(shape, classes), erased.batch(), {})).measures
        for name in seen:
            seen[name] += sum(np.nansum(found[f"{name}:{subject}"]) for subject in SUBJECTS)
    assert min(seen.values()) > 0


def test_the_other_item_is_each_of_the_others_equally_often_and_never_the_top_one() -> None:
    case = Case(builders.model(), builders.batch((5,) * 2000), {})
    drawn = SingleWeight()(case).measures["delta_weight:attention"]
    weights, top = case.weights.numpy(), case.weights.argmax(-1).numpy()
    chosen = np.abs(drawn[:, None] - (weights.max(-1, keepdims=True) - weights)).argmin(-1)
    assert (chosen != top).all()
    counts = np.bincount(chosen - (chosen > top))  # the place among the others
    assert (np.abs(counts - 500) < 100).all() and len(counts) == 4  # five standard deviations


@SHAPES
def test_neither_padding_nor_the_rest_of_the_batch_changes_anything(shape: str) -> None:
    model, batch = erased.model(shape, 3), erased.batch()
    together = SingleWeight(seed=5)(Case(model, batch, {})).measures
    for row in range(len(batch)):
        one = batch[torch.tensor([row])]
        wider = replace(one, **{part: pad(getattr(one, part), (0, 3)) for part in ("ids", "mask", "sentences")})
        for alone in (one, wider):
            for name, values in SingleWeight(seed=5)(Case(model, alone, {})).measures.items():
                np.testing.assert_allclose(values[0], together[name][row], atol=1e-12, err_msg=name)


def test_the_four_cells_are_shares_that_sum_to_one_in_the_findings() -> None:
    case = Case(erased.model("flat", 2), erased.batch(), {})
    found = summarise("single_weight", "sample", SingleWeight()(case).measures, case.predicted.numpy(), ("no", "yes"))
    for subject in SUBJECTS:
        cells = [each for each in found if each.measure in TABLE and each.subject == subject and each.group == "all"]
        assert sum(each.mean for each in cells) == pytest.approx(1)
        assert {each.undefined for each in cells} == {1}


def test_an_item_without_weight_does_exactly_nothing() -> None:
    """Rounding must not decide which of two idle items did less."""
    model, batch = builders.model(), builders.batch((6, 9, 12, 5))
    case = Case(model, batch, {})
    weights = torch.zeros_like(case.weights)
    weights[:, 0] = 0.7
    weights[:, 3] = 0.3
    vars(case)["weights"] = weights  # as if the model's attention were sparse
    found = [SingleWeight(seed)(case).measures for seed in range(20)]
    for one in found:
        for subject in SUBJECTS:
            idle = np.isclose(one[f"delta_weight:{subject}"], 0)
            assert (one[f"delta_js:{subject}"][idle] == 0).all()
            assert (one[f"smaller:{subject}"][idle] == 0).all()
    assert any(np.isclose(one["delta_weight:gradient"], 0).any() for one in found)


def test_a_model_that_does_not_pool_is_refused() -> None:
    assert "linear decoder" in str(SingleWeight().unfit(Case(small_resources.Foreign(), erased.batch(), {})))
    assert SingleWeight().unfit(Case(builders.model(), erased.batch(), {})) is None
