"""Every number once more with plain loops over items and over all their subsets, by the model's own decoder."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from assay.audits.cases import Case
from assay.audits.findings import summarise
from assay.audits.minimal_set import Erased, MinimalSet
from assay.data.batches import by_tokens, collate, tokenise
from assay.data.corpora import corpus
from assay.data.text import TextOptions
from assay.intervene.pooled_attention import Pooling, flips, gradient, leave_one_out, ranked, smallest
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, train
from assay.models.store import Trained
from tests import builders
from tests.audits import erased, small_resources

RANKINGS = ("attention", "gradient", "product", "random", "leave_one_out")
SHAPES = pytest.mark.parametrize("shape", ["flat", "hierarchical", "paired"])


def needed(text: erased.Text, order: list[int]) -> float:
    """How many items go before the decision changes; infinitely many where it never does."""
    return next((k for k in range(1, len(order) + 1) if text.flips(order[:k])), math.inf)


def least(text: erased.Text) -> tuple[int, ...] | None:
    """A smallest set that changes the decision, by trying all of them."""
    items = range(len(text))
    sets = (each for size in range(1, len(text) + 1) for each in combinations(items, size))
    return next((each for each in sets if text.flips(each)), None)


def plain(text: erased.Text) -> dict[str, float]:
    """Every measure of one text but the optimum's mass, since there can be several smallest sets."""
    n, best = len(text), least(text)
    fewest = math.inf if best is None else len(best)
    found = {"items": n, "never:optimum": best is None, "erased:optimum": min(fewest, n) / n}
    counts = {}
    for name, order in text.rankings().items():
        counts[name] = count = needed(text, order)
        gone = n if count == math.inf else int(count)
        mass = float(text.weights[0, order[:gone]].sum())
        found |= {f"never:{name}": count == math.inf, f"erased:{name}": gone / n, f"erased_mass:{name}": mass}
        found |= {f"too_many:{name}": gone - fewest, f"optimal:{name}": count == fewest}
    for one, other in permutations(RANKINGS, 2):
        found[f"wins:{one}~{other}"] = counts[one] < counts[other]
    compared = ("too_many", "optimal", "wins")  # with a set that changes the decision, where there is one
    hidden = [name for name in found if n == 1 or (best is None and name.startswith(compared))]
    return {name: float(value) for name, value in found.items()} | dict.fromkeys(hidden, math.nan)


def unchanged(text: erased.Text, order: list[int], steps: int) -> list[bool]:
    """Whether the decision is still the first one in each of so many even steps from no items erased to all."""
    changed = [text.flips(order[:k]) for k in range(len(text) + 1)]
    return [not any(changed[: step * len(text) // steps + 1]) for step in range(steps)]


@SHAPES
@pytest.mark.parametrize("classes", [2, 4])
def test_every_measure_is_what_plain_loops_find(shape: str, classes: int) -> None:
    never, excess, missed = [], [], []
    for bias in (0.5, 2.0):
        model, batch = erased.model(shape, classes, bias), erased.batch()
        found = MinimalSet(seed=3)(Case(model, batch, {})).measures
        expected = [plain(text) for text in erased.texts(model, batch, seed=3)]
        assert {*found} == {*expected[0], "erased_mass:optimum"}
        for measure in expected[0]:
            assert found[measure].dtype == np.float64
            np.testing.assert_allclose(found[measure], [row[measure] for row in expected], atol=1e-9, err_msg=measure)
        never += found["never:optimum"].tolist()
        excess += found["too_many:random"].tolist()
        missed += [found[f"never:{name}"] > found["never:optimum"] for name in RANKINGS]
    assert 0.0 in never and 1.0 in never and np.isnan(never).any()  # else little has been shown
    assert np.nanmax(excess) > 0
    assert np.any(missed)  # a ranking that never changes a decision that some set does change


@SHAPES
def test_the_mean_share_is_the_area_over_the_curve_of_changed_decisions_of_all_texts(shape: str) -> None:
    model, batch = erased.model(shape, 3, 2.0), erased.batch()
    found = MinimalSet(seed=3)(Case(model, batch, {})).measures
    several = [text for text in erased.texts(model, batch, seed=3) if len(text) > 1]
    grid = math.lcm(*map(len, several))
    for name in RANKINGS:
        area = np.mean([unchanged(text, text.rankings()[name], grid) for text in several])
        assert np.nanmean(found[f"erased:{name}"]) == pytest.approx(area, abs=1e-12)
        assert np.isfinite(found[f"erased:{name}"]).sum() == len(several)  # the same texts for every ranking
        assert np.isfinite(found[f"too_many:{name}"]).sum() == (found["never:optimum"] == 0).sum()


def test_a_ranking_that_never_changes_the_decision_is_last_and_not_left_out() -> None:
    flipped = np.array([[True, False, True], [True, False, True], [False, False, False]])
    count = np.array([[2, 4, 1], [3, 5, 3], [4, 4, 4]], dtype=float)
    mass = np.where(flipped, 0.5, 1.0)
    found = Erased(["random", "attention", "optimum"], flipped, count, mass, np.array([4.0, 5.0, 4.0])).measures()
    means = [float(np.mean(found[f"erased:{name}"])) for name in ("random", "attention", "optimum")]
    assert means == pytest.approx([(2 / 4 + 3 / 5 + 1) / 3, 1, (1 / 4 + 3 / 5 + 1) / 3])
    assert found["never:attention"].tolist() == [1, 1, 1]
    np.testing.assert_array_equal(found["too_many:attention"], [3, 2, np.nan])  # all others went, and did not help
    np.testing.assert_array_equal(found["too_many:random"], [1, 0, np.nan])
    np.testing.assert_array_equal(found["optimal:attention"], [0, 0, np.nan])
    np.testing.assert_array_equal(found["wins:random~attention"], [1, 1, np.nan])


@SHAPES
def test_the_words_shown_are_those_of_a_smallest_set(shape: str) -> None:
    model, batch = erased.model(shape, 3, bias=0.5), erased.batch()
    case = Case(model, batch, {})
    answer = MinimalSet()(case)
    shown = answer.weights["smallest_set"]
    numbers = model.items(batch)
    sizes = set()
    for row, text in enumerate(erased.texts(model, batch)):
        assert {*shown[row].tolist()} <= {0.0, 1.0}
        assert not shown[row][~batch.mask[row].numpy()].any()
        chosen = {int(numbers[row, token]) for token in np.flatnonzero(shown[row])}
        for token in range(int(batch.lengths[row])):  # a sentence is in it with all its words
            assert shown[row, token] == (int(numbers[row, token]) in chosen)
        best = least(text)
        assert len(chosen) == len(best or ())
        if best is not None:
            assert text.flips(chosen)
            if len(text) > 1:
                mass = float(text.weights[0, sorted(chosen)].sum())
                assert answer.measures["erased_mass:optimum"][row] == pytest.approx(mass)
        elif len(text) > 1:
            assert answer.measures["erased_mass:optimum"][row] == pytest.approx(1)
        sizes.add(len(chosen))
    assert len(sizes) > 2


@SHAPES
def test_neither_padding_nor_the_rest_of_the_batch_changes_anything(shape: str) -> None:
    model, batch = erased.model(shape, 3), erased.batch()
    together = MinimalSet(seed=5)(Case(model, batch, {}))
    for row in range(len(batch)):
        one = batch[torch.tensor([row])]
        wider = replace(one, **{part: pad(getattr(one, part), (0, 3)) for part in ("ids", "mask", "sentences")})
        for alone in (one, wider):
            found = MinimalSet(seed=5)(Case(model, alone, {}))
            for name, values in found.measures.items():
                np.testing.assert_allclose(values[0], together.measures[name][row], atol=1e-12, err_msg=name)
            shown = found.weights["smallest_set"][0]
            np.testing.assert_array_equal(shown[:10], together.weights["smallest_set"][row])


def test_another_seed_changes_the_random_ranking_alone() -> None:
    model, batch = erased.model("flat", 3), erased.batch((12, 11, 10, 12, 9, 12))
    one, other = (MinimalSet(seed)(Case(model, batch, {})).measures for seed in (0, 1))
    changed = {name for name in one if not np.array_equal(one[name], other[name], equal_nan=True)}
    assert changed
    assert all("random" in name for name in changed)


def test_findings_tell_wins_over_all_texts_and_the_optimum_by_class() -> None:
    model, batch = erased.model("flat", 2, bias=2.0), erased.batch()
    case = Case(model, batch, {})
    found = summarise("minimal_set", "exact", MinimalSet()(case).measures, case.predicted.numpy(), ("no", "yes"))
    groups = {(each.measure, each.subject): set() for each in found}
    for each in found:
        groups[each.measure, each.subject].add(each.group)
    assert {subject for measure, subject in groups if measure == "wins"} == {
        f"{one}~{other}" for one, other in permutations(RANKINGS, 2)
    }
    assert all(own == {"all"} for (measure, _), own in groups.items() if measure == "wins")
    assert groups["erased", "optimum"] == {"all", "no", "yes"}
    assert {subject for measure, subject in groups if measure == "too_many"} == {*RANKINGS}
    counted = next(each for each in found if (each.measure, each.subject, each.group) == ("never", "optimum", "all"))
    assert (counted.n, counted.undefined) == (9, 1)


def test_a_model_that_does_not_pool_is_refused() -> None:
    assert "linear decoder" in str(MinimalSet().unfit(Case(small_resources.Foreign(), erased.batch(), {})))
    assert MinimalSet().unfit(Case(builders.model(), erased.batch(), {})) is None


def check_optimum(trained: Trained, examples: list) -> None:
    """No ranking of any text needs fewer items than the smallest set, whose erasure does change the decision."""
    rows, _ = tokenise(examples, trained.tokeniser, 999)
    seen = 0
    for group in by_tokens(np.array([len(row.ids) for row in rows]), 2048):
        case = Case(trained.network, collate([rows[place] for place in group]), {})
        pooling = Pooling.of(case.values, case.weights, case.items, case.empty)
        slope = gradient(pooling)
        scores = [pooling.weights, slope, slope * pooling.weights, torch.rand(slope.shape), leave_one_out(pooling)]
        down = flips(pooling, ranked(torch.stack([each.double() for each in scores], 1), pooling.mask))
        best = smallest(pooling)
        assert (best.flipped[:, None] >= down.flipped).all()
        assert (best.count[:, None] <= down.count).all()
        left = pooling.weights.masked_fill(best.erased, 0.0)
        assert torch.equal(pooling.under(left).argmax(-1) != case.predicted, best.flipped)
        assert torch.equal(best.erased.sum(-1), best.count.where(best.flipped, 0))
        seen += int(best.flipped.sum())
    assert seen > len(rows) / 10


def test_no_ranking_beats_the_optimum_on_a_planted_corpus() -> None:
    check_optimum(small_resources.model(), [*small_resources.corpus().train, *small_resources.corpus().test])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "shape", "texts"),
    [("sst", "flat", 2000), pytest.param("imdb", "hierarchical", 150, marks=pytest.mark.slow)],
)
def test_no_ranking_beats_the_optimum_on_real_texts(name: str, shape: str, texts: int) -> None:
    whole = corpus(name)
    recipe = Recipe(
        Architecture(encoder="conv", embedding=16, hidden=8, alignment_size=8, shape=shape),
        TextOptions(),
        Training(epochs=2, learning_rate=0.01),
    )
    some = replace(whole, train=whole.train[: 2 * texts], dev=whole.dev[:texts])
    check_optimum(train(some, recipe), [*whole.test[:texts], *some.dev])


def test_a_class_that_is_no_candidate_never_wins():
    batch = builders.structured(builders.batch())
    barred = replace(batch, candidates=torch.tensor([[True, False, True]]).expand(len(batch), 3))
    model = builders.model(shape="paired", classes=3)
    with torch.no_grad():
        model.decoder.bias.copy_(torch.tensor([0.0, 50.0, -1.0]))
    case = Case(model, barred, {})
    best = smallest(Pooling.of(case.values, case.weights, case.items, case.empty))
    assert (best.winner != 1).all()
    assert (case.empty[:, 1] < -1000).all()
