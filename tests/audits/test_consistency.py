from __future__ import annotations

import numpy as np
import torch

from assay.audits.cases import Case
from assay.audits.pairwise import Consistency
from tests import builders


def test_every_two_explainers_are_compared_word_by_word() -> None:
    batch = builders.batch((10, 3, 1, 7))
    generator = torch.Generator().manual_seed(0)
    scores = {name: torch.randn(4, 10, generator=generator) * batch.mask for name in "abc"}
    scores["c"] = scores["c"].abs()
    found = Consistency()(Case(builders.model(), batch, scores)).measures
    assert {*found} == {f"{measure}:{pair}" for measure in ("overlap", "sign") for pair in ("a~b", "a~c", "b~c")}
    for row, n in enumerate(batch.lengths.tolist()):
        own = {name: values[row, :n].tolist() for name, values in scores.items()}
        k = max(1, round(0.2 * n))
        for one, other in ("ab", "ac", "bc"):
            tops = [{*sorted(range(n), key=lambda place: -own[name][place])[:k]} for name in (one, other)]
            assert found[f"overlap:{one}~{other}"][row] == len(tops[0] & tops[1]) / k
        same = [x * y > 0 for x, y in zip(own["a"], own["b"], strict=True)]
        signed = min(own["a"]) < 0 and min(own["b"]) < 0
        np.testing.assert_allclose(found["sign:a~b"][row], np.mean(same) if signed else np.nan)
    assert np.isfinite(found["sign:a~b"]).sum() >= 2
    assert np.isnan(found["sign:a~c"]).all()  # scores without a sign


def test_low_scores_are_not_high_ones() -> None:
    batch = builders.batch((5,))
    scores = {"one": torch.tensor([[-9.0, 1, 0, 0, 0]]), "other": torch.tensor([[9.0, -1, 0, 0, 0]])}
    assert Consistency()(Case(builders.model(), batch, scores)).measures["overlap:one~other"] == 0
    assert Consistency(share=0.4)(Case(builders.model(), batch, scores)).measures["overlap:one~other"] < 0.5


def test_one_explainer_contradicts_nobody() -> None:
    batch = builders.batch((5,))
    alone = Case(builders.model(), batch, {"one": torch.zeros(1, 5)})
    assert "two explainers" in Consistency().unfit(alone)
    assert (
        Consistency().unfit(Case(builders.model(), batch, {"one": alone.scores["one"]} | {"two": alone.scores["one"]}))
        is None
    )
