"""Each candidate once more with plain loops, by hand where a model is simple enough, and alone as in a batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from scipy.stats import weightedtau

from assay import costs
from assay.audits.cases import Case
from assay.data.examples import Corpus, Example
from assay.data.text import TextOptions
from assay.explainers.baselines import Random
from assay.explainers.gradients import input_x_gradient
from assay.models.config import Architecture, Training
from assay.models.erasure import kept_probabilities
from assay.models.recipes import Recipe, train
from assay.types import Batch, Edit, Model, Output
from studies.verdict.measures.draws import uniform
from studies.verdict.measures.fine_tuned_fidelity import FineTunedFidelity, fine_tuned, gapped, most
from studies.verdict.measures.several_out import SeveralOut, rank_biased_overlap, ridge, weighted_tau
from studies.verdict.measures.soft_erasure import SoftErasure, retained, scaled
from tests import builders, pretrained

KEY = 5


@dataclass(frozen=True)
class Bag:
    """A model of which every word adds a share of its number to the probability of class 1: no word meets another."""

    base: float = 0.55

    def embed(self, batch: Batch) -> torch.Tensor:
        return batch.ids.double()[..., None]

    def __call__(self, x: torch.Tensor, batch: Batch, edit: Edit | None = None) -> Output:
        sure = self.base + (x[..., 0] * batch.mask).sum(-1) / 2000
        return Output(torch.stack([1 - sure, sure], -1).log(), ())


@dataclass(frozen=True)
class Keyword:
    """A model with a weight on one word, in each of three dimensions: the log-odds of class 1 are 6 where it is."""

    size: int = 3

    def embed(self, batch: Batch) -> torch.Tensor:
        return (batch.ids == KEY).double()[..., None].expand(-1, -1, self.size)

    def __call__(self, x: torch.Tensor, batch: Batch, edit: Edit | None = None) -> Output:
        count = (x.mean(-1) * batch.mask).sum(-1)
        return Output(torch.stack([torch.zeros_like(count), 9 * count - 3], -1), ())


def texts(*words: list[int]) -> Batch:
    lengths = torch.tensor([len(each) for each in words])
    width = int(lengths.max())
    ids = torch.tensor([each + [0] * (width - len(each)) for each in words])
    return Batch(ids, torch.arange(width) < lengths[:, None], torch.ones(len(words), dtype=torch.long))


def explained(model: Model, batch: Batch) -> dict[str, torch.Tensor]:
    signed = input_x_gradient(model, batch, Case(model, batch, {}).predicted)
    return {"signed": signed, "rough": (signed * 50).round(), "random": Random(1)(model, batch, batch.labels)}


def sure(model: Model, batch: Batch, row: int, kept: list[int], label: int) -> float:
    """The probability of a class for these words of a text, read alone."""
    ids = batch.ids[row, kept] if kept else torch.zeros(1, dtype=torch.long)
    alone = Batch(ids[None], torch.full((1, len(ids)), bool(kept)), torch.tensor([0]))
    with torch.no_grad():
        return float(model(model.embed(alone), alone).probabilities[0, label])


# Agreement with leave-several-out


def rows(seed: int, tied: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    lengths = np.array([2, 3, 7, 20, 45])
    mask = np.arange(50) < lengths[:, None]
    x, y = random.normal(size=(2, 5, 50))
    return (np.round(x), np.round(2 * y), mask) if tied else (x, y, mask)


@pytest.mark.parametrize("tied", [False, True])
def test_weighted_tau_is_scipys_of_each_text_with_the_ranks_of_both_sides(tied: bool) -> None:
    for seed in range(4):
        x, y, mask = rows(seed, tied)
        with np.errstate(invalid="ignore"):
            expected = [weightedtau(a[m], b[m], rank=True).statistic for a, b, m in zip(x, y, mask, strict=True)]
        np.testing.assert_allclose(weighted_tau(x, y, mask), expected, atol=1e-12)


def test_weighted_tau_looks_at_the_top() -> None:
    mask = np.ones((3, 10), dtype=bool)
    truth = np.tile(np.arange(10.0, 0, -1), (3, 1))
    moved = truth.copy()
    moved[1, [0, 1]] = moved[1, [1, 0]]
    moved[2, [8, 9]] = moved[2, [9, 8]]
    same, first, last = weighted_tau(moved, truth, mask)
    assert same == 1 and first < last < 1
    assert math.isnan(weighted_tau(np.zeros((1, 4)), truth[:1, :4], mask[:1, :4])[0])


def overlap(first: list[int], second: list[int], p: float) -> float:
    """Webber et al. (2010), equation 30, from two lists."""
    k = len(first)
    shares = [len({*first[:d]} & {*second[:d]}) / d for d in range(1, k + 1)]
    return shares[-1] * p**k + (1 - p) / p * sum(share * p**d for d, share in enumerate(shares, start=1))


@pytest.mark.parametrize("depth", [None, 5])
@pytest.mark.parametrize("tied", [False, True])
def test_rank_biased_overlap_is_that_of_plain_lists(tied: bool, depth: int | None) -> None:
    x, y, mask = rows(0, tied)
    found = rank_biased_overlap(x, y, mask, 0.8, depth)
    for row, n in enumerate(mask.sum(-1)):
        lists = [sorted(range(n), key=lambda place: (-values[row, place], place))[:depth] for values in (x, y)]
        assert found[row] == pytest.approx(overlap(*lists, 0.8), abs=1e-12)


def test_rank_biased_overlap_by_hand() -> None:
    mask = np.array([[True] * 4, [True] * 4, [True] * 4, [False] * 4])
    truth = np.tile([4.0, 3, 2, 1], (4, 1))
    scores = np.array([[8.0, 7, 6, 5], [1, 2, 3, 4], [4, 1, 2, 3], [0, 0, 0, 0]])
    found = rank_biased_overlap(scores, truth, mask, 0.9)
    assert found[0] == pytest.approx(1) and math.isnan(found[3])
    top = rank_biased_overlap(scores, truth, mask, 0.9, depth=2)
    assert top[:2] == pytest.approx([1, 0])  # the highest two are the same, and none of them is
    # the first alone is common, and the second place of each is another: 1, then 1 / 2 for ever
    assert top[2] == pytest.approx(0.5 * 0.81 + 0.1 / 0.9 * (0.9 + 0.5 * 0.81))


def test_leave_several_out_finds_what_each_word_of_an_additive_model_adds() -> None:
    batch = texts([8, 30, 5, 12, 21], [9, 4], [7, 11, 10, 35, 6, 13, 17, 22])
    found = SeveralOut(versions=256, penalty=1e-6).effects(Case(Bag(), batch, {}))
    np.testing.assert_allclose(found, batch.ids.numpy() / 2000 * batch.mask.numpy(), atol=1e-7)
    shrunk = SeveralOut().effects(Case(Bag(), batch, {}))
    assert (shrunk[:, :2].argmax(-1) == batch.ids[:, :2].numpy().argmax(-1)).all()


def test_effects_are_those_of_a_plain_regression_on_the_same_versions() -> None:
    batch, measure = builders.batch((6, 1, 4)), SeveralOut(versions=40, share=0.4, penalty=0.5, seed=3)
    model = builders.model(classes=3)
    case = Case(model, batch, {})
    kept, found = measure.kept(case), measure.effects(case)
    for row, n in enumerate(batch.lengths.tolist()):
        label = int(case.predicted[row])
        there = [[place for place in range(n) if kept[row, version, place]] for version in range(40)]
        answers = np.array([sure(model, batch, row, words, label) for words in there])
        design = np.array([[1.0, *(place in words for place in range(n))] for words in there])
        penalty = np.diag([0.0, *[0.5 * 40 * 0.4 * 0.6] * n])
        coefficients = np.linalg.solve(design.T @ design + penalty, design.T @ answers)[1:]
        np.testing.assert_allclose(found[row, :n], coefficients, atol=1e-10)
        assert (found[row, n:] == 0).all()


def test_without_a_penalty_effects_are_weighted_banzhaf_values_in_the_mean() -> None:
    random = np.random.default_rng(0)
    present = (random.random((500, 64, 3)) > 0.3).astype(float)
    found = ridge(present, present[..., 0] * present[..., 1] + 0.2 * present[..., 2], 1e-9).mean(0)
    # with the chance .7 that the other word of the pair is there
    np.testing.assert_allclose(found, [0.7, 0.7, 0.2], atol=0.02)


def test_as_many_words_go_as_asked_and_other_seeds_take_others() -> None:
    batch = builders.batch((40, 30))
    case = Case(builders.model(), batch, {})
    kept = SeveralOut(versions=500, share=0.3).kept(case)
    assert kept[0].double().mean().item() == pytest.approx(0.7, abs=0.01)
    assert not torch.equal(kept, SeveralOut(versions=500, share=0.3, seed=1).kept(case))
    assert torch.equal(kept[:, :64], SeveralOut().kept(case))


def test_drawn_numbers_are_uniform_and_do_not_go_together() -> None:
    drawn = uniform(builders.batch((12, 12)), 0, 300, 12)
    assert float(drawn.min()) >= 0 and float(drawn.max()) < 1
    assert float(drawn.mean()) == pytest.approx(0.5, abs=0.02)
    places = np.corrcoef(torch.cat([drawn[0], drawn[1]], 1).T.numpy()) - np.eye(24)
    assert np.abs(places).max() < 0.25


# Soft erasure


def soft(batch: Batch, *scores: list[list[float]], **options: object) -> dict[str, np.ndarray]:
    """The measures for the model of one word; scores are padded as the texts are."""
    width = batch.ids.shape[1]
    tensors = [torch.tensor([each + [0.0] * (width - len(each)) for each in given]).double() for given in scores]
    named = {f"s{place}": each for place, each in enumerate(tensors)}
    return SoftErasure(**options)(Case(Keyword(), batch, named))  # type: ignore[arg-type]


def test_all_is_kept_where_every_score_is_one() -> None:
    found = soft(texts([8, KEY, 9], [KEY]), [[1, 1, 1], [1]])
    assert found["soft_sufficiency:s0"] == pytest.approx([1, 1])
    assert found["soft_comprehensiveness:s0"] == pytest.approx([1, 1])  # and nothing of it without them


def test_scores_of_nought_and_one_erase_words_whole() -> None:
    batch = texts([8, KEY, 9, 7], [8, KEY, KEY, 9])
    found = soft(batch, [[0, 1, 0, 0], [0, 1, 0, 0]], [[1, 0, 0, 1], [1, 0, 0, 1]], [[0, 3, -3, -3], [0, 3, 3, 0]])
    whole, one, none = (1 / (1 + math.exp(-odds)) for odds in (15, 6, -3))
    share = (whole - one) / (whole - none)
    assert found["soft_sufficiency:s0"] == pytest.approx([1, 1 - share])
    assert found["soft_comprehensiveness:s0"] == pytest.approx([1, share])
    assert found["soft_sufficiency:s1"] == pytest.approx([0, 0])
    assert found["soft_comprehensiveness:s1"] == pytest.approx([0, 0])
    assert found["soft_sufficiency:s2"] == pytest.approx([1, 1])


def test_soft_erasure_is_what_plain_loops_find() -> None:
    model, batch = builders.model(seed=1, classes=3, encoder="transformer"), builders.batch((6, 1, 4, 9))
    case = Case(model, batch, explained(model, batch))
    measure = SoftErasure(draws=3, shares=(0.2, 0.6), seed=5)
    found, checked = measure(case), 0
    for name, scores in case.scores.items():
        for row, n in enumerate(batch.lengths.tolist()):
            alone = replace(batch[torch.tensor([row])].narrowed(n), labels=batch.labels[row : row + 1])
            label, x = int(case.predicted[row]), model.embed(alone).detach()
            low, high = float(scores[row, :n].min()), float(scores[row, :n].max())
            given = (scores[row, :n].double() - low) / (high - low) if high > low else torch.ones(n).double()
            all_given = [given]
            for share in (0.2, 0.6):
                moved = retained(given.numpy()[None, None], np.ones((1, n), dtype=bool), share)
                all_given.append(torch.from_numpy(moved[0, 0]))

            def read(kept: torch.Tensor, x: torch.Tensor = x, alone: Batch = alone, label: int = label) -> float:
                with torch.no_grad():
                    return float(model(x * kept, alone).probabilities[0, label])

            whole, empty = read(torch.ones_like(x)), read(torch.zeros_like(x))
            kinds: dict[str, list[float]] = {"sufficiency": [], "comprehensiveness": []}
            baseline = 1 - max(0, whole - empty)
            for chance in all_given:
                drawn = [uniform(alone, 5 + draw, n, x.shape[2])[0] for draw in range(3)]
                kept = [read(numbers < chance[:, None]) for numbers in drawn]
                taken = [read(numbers < 1 - chance[:, None]) for numbers in drawn]
                s = sum(1 - max(0, whole - p) for p in kept) / 3
                kinds["sufficiency"].append((s - baseline) / (1 - baseline) if baseline < 1 else math.nan)
                c = sum(max(0, whole - p) for p in taken) / 3
                kinds["comprehensiveness"].append(c / (1 - baseline) if baseline < 1 else math.nan)
            for kind, (own, *moved) in kinds.items():
                if whole - empty < 0.1:
                    assert math.isnan(found[f"soft_{kind}:{name}"][row])
                    continue
                checked += 1
                assert found[f"soft_{kind}:{name}"][row] == pytest.approx(own, abs=1e-9)
                assert found[f"pi_soft_{kind}:{name}"][row] == pytest.approx(sum(moved) / 2, abs=1e-9)
    assert checked >= 6


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.5, 0.9])
def test_every_explanation_keeps_the_same_share_after_the_correction(share: float) -> None:
    random = np.random.default_rng(0)
    mask = np.arange(40) < np.array([1, 2, 5, 17, 40])[:, None]
    kinds = [random.normal(size=(5, 40)), random.pareto(0.2, (5, 40)), np.ones((5, 40)), np.zeros((5, 40))]
    sparse = np.where(np.arange(40) == 0, 1.0, 0.0) * np.ones((5, 1))
    scores = np.stack([*kinds, sparse, np.round(random.normal(size=(5, 40)))], 1)
    before = scaled(scores, mask)
    after = retained(before, mask, share)
    np.testing.assert_allclose(after.sum(-1) / mask.sum(-1)[:, None], share, atol=1e-9)
    assert (
        (after >= 0).all()
        and (after <= 1 + 1e-12).all()
        and not after[~np.broadcast_to(mask[:, None], after.shape)].any()
    )
    order = np.argsort(np.where(mask[:, None], before, -1), -1)
    assert (np.diff(np.take_along_axis(after, order, -1)) >= -1e-12).all()  # no word overtakes another


def test_the_share_that_masks_keep_is_the_one_that_was_expected() -> None:
    batch = builders.batch((30, 40))
    model = builders.model()
    measure = SoftErasure(shares=(0.3,))
    scores = Random(0)(model, batch, batch.labels).double().numpy()[:, None]
    chance = torch.from_numpy(measure.chances(scores, batch.mask.numpy())[:, 0, 1])
    kept = (uniform(batch, 0, 40, 200) < chance[..., None]).double().mean(-1)
    np.testing.assert_allclose(kept.sum(-1) / batch.lengths, [0.3, 0.3], atol=0.01)


def test_words_in_pieces_are_erased_piece_by_piece() -> None:
    model, batch = pretrained.pretrained("bert", initializer_range=0.3), pretrained.batch()
    assert batch.subwords is not None and batch.subwords.shape[2] > 1
    found = SoftErasure(draws=2)(Case(model, batch, {"random": Random(0)(model, batch, batch.labels)}))
    ones = torch.ones_like(batch.ids).double()
    assert {values.shape for values in found.values()} == {(len(batch),)}
    whole = SoftErasure(draws=1)(Case(model, batch, {"ones": ones}))["soft_sufficiency:ones"]
    assert np.isfinite(whole).any()
    np.testing.assert_allclose(whole[np.isfinite(whole)], 1, atol=1e-9)


# Fine-tuned fidelity


def test_fine_tuned_fidelity_is_what_plain_loops_find() -> None:
    model, tuned, batch = builders.model(classes=3), builders.model(seed=1, classes=3), builders.batch((9, 1, 4, 12))
    case = Case(model, batch, explained(model, batch))
    found = FineTunedFidelity(tuned, (0.2, 0.5), (0.5, 0.7), beta=0.3, draws=4, seed=2)(case)
    for name, scores in case.scores.items():
        for row, n in enumerate(batch.lengths.tolist()):
            label = int(case.predicted[row])
            drawn = uniform(batch[torch.tensor([row])], 2, 4, n)[0].tolist()
            order = sorted(range(n), key=lambda place: (-float(scores[row, place]), place))
            limit = min(max(int(0.3 * n + 1e-9), 1), n - 1)
            drops: dict[str, list[float]] = {"ffid_plus": [], "ffid_minus": []}
            for share in (0.2, 0.5):
                size = math.ceil(share * n - 1e-9)
                for key, side, alpha in (("ffid_plus", order[:size], 0.5), ("ffid_minus", order[size:], 0.7)):
                    gap = min(math.ceil(alpha * len(side) - 1e-9), limit)
                    for numbers in drawn:
                        gone = sorted(side, key=numbers.__getitem__)[:gap]
                        kept = [place for place in range(n) if place not in gone]
                        whole = sure(tuned, batch, row, list(range(n)), label)
                        drops[key].append(whole - sure(tuned, batch, row, kept, label))
            plus, minus = (sum(each) / len(each) for each in drops.values())
            values = [found[f"{key}:{name}"][row] for key in ("ffid_plus", "ffid_minus", "ffid")]
            np.testing.assert_allclose(values, [plus, minus, plus - minus], atol=1e-9)


def test_no_more_words_go_than_the_tuned_model_has_learnt_to_miss() -> None:
    batch = builders.batch((20, 10, 3, 1))
    order = np.tile(np.arange(20), (4, 1))[:, None]
    removed = FineTunedFidelity(builders.model(), beta=0.2).removed(batch, order)
    counts = removed.sum(-1).max((1, 2, 3, 4))
    assert counts.tolist() == [4, 2, 1, 0]
    assert most(np.array([20, 10, 3, 1, 0]), 0.2).tolist() == [4, 2, 1, 0, 0]
    top = np.arange(20) < np.array([2, 4, 6, 10])[:, None]
    assert not (removed[0, 0, 0] & ~top[:, None]).any()
    assert not (removed[0, 0, 1] & top[:, None]).any()


def test_an_explanation_with_the_deciding_word_on_top_is_more_faithful() -> None:
    batch = texts([8, 9, KEY, 7, 6, 11, 12, 13, 14, 15])
    right = (batch.ids == KEY).double()
    found = FineTunedFidelity(Keyword())(Case(Keyword(), batch, {"right": right, "wrong": -right}))
    assert found["ffid:right"][0] > 0.3 > 0 > found["ffid:wrong"][0]
    assert found["ffid_minus:right"][0] == 0 and found["ffid_plus:wrong"][0] == 0


def test_what_several_versions_leave_alike_is_read_once() -> None:
    model, batch = builders.model(), builders.batch((3, 4))
    case = Case(model, batch, explained(model, batch))
    assert case.predicted.shape == (2,)
    with costs.measured() as cost:
        FineTunedFidelity(model)(case)
    assert cost.forward <= 4 + 5  # each text whole, and without one of its words


def corpus() -> Corpus:
    fillers = ["the", "a", "film", "story", "actor", "scene", "with", "and", "of"]
    examples = tuple(
        Example(" ".join([*fillers[i % 5 :], ("bad", "good")[i % 2], *fillers[: i % 7]]), i % 2) for i in range(64)
    )
    return Corpus("words", ("bad", "good"), examples[:40], examples[40:52], examples[52:])


def test_fine_tuning_changes_a_copy_and_depends_on_its_seed_alone() -> None:
    parts = Architecture(embedding=8, hidden=8, alignment_size=4)
    model = train(corpus(), Recipe(parts, TextOptions(min_count=1), Training(epochs=2, batch_size=8)))
    before = {name: tensor.clone() for name, tensor in model.network.state_dict().items()}
    random = torch.random.get_rng_state()
    one, again, other = (fine_tuned(model, corpus(), seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), random)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.network.state_dict().items())
    weights = [torch.cat([each.flatten() for each in network.parameters()]) for network in (model.network, one, other)]
    assert not torch.equal(weights[0], weights[1]) and not torch.equal(weights[1], weights[2])
    assert torch.equal(weights[1], torch.cat([each.flatten() for each in again.parameters()]))
    assert not one.training


def test_random_gaps_are_of_every_size_up_to_their_share() -> None:
    torch.manual_seed(0)
    batch = builders.batch((10,) * 300 + (1, 2))
    short = gapped(batch, 0.3)
    found = short.lengths[:300]
    assert [int((found == size).sum()) for size in (7, 8, 9, 10)] == pytest.approx([75] * 4, abs=25)
    assert short.lengths[300] == 1 and short.lengths[301] in (1, 2)
    row, wanted = short.ids[0, : short.lengths[0]].tolist(), iter(batch.ids[0].tolist())
    assert all(word in wanted for word in row)  # in their order


# All of them

MEASURES: dict[str, Callable[[], Callable[[Case], dict[str, np.ndarray]]]] = {
    "several_out": lambda: SeveralOut(versions=24),
    "soft_erasure": lambda: SoftErasure(draws=2),
    "fine_tuned_fidelity": lambda: FineTunedFidelity(builders.model(seed=2, classes=3), draws=3),
}


@pytest.mark.parametrize("encoder", ["lstm", "transformer"])
@pytest.mark.parametrize("name", MEASURES)
def test_neither_padding_nor_the_rest_of_the_batch_changes_anything(name: str, encoder: str) -> None:
    model, batch = builders.model(seed=1, classes=3, encoder=encoder), builders.batch((7, 1, 4, 40))
    measure = MEASURES[name]()

    def measured(part: Batch) -> dict[str, np.ndarray]:
        return measure(Case(model, part, explained(model, part)))

    together = measured(batch)
    for row, n in enumerate(batch.lengths.tolist()):
        alone = batch[torch.tensor([row])]
        for part in (alone, alone.narrowed(n)):
            for key, values in measured(part).items():
                np.testing.assert_allclose(values[0], together[key][row], atol=1e-9, err_msg=key)


@pytest.mark.parametrize("name", MEASURES)
def test_a_missing_score_leaves_only_its_own_text_and_explainer_undefined(name: str) -> None:
    model, batch = builders.model(seed=1, classes=3, encoder="transformer"), builders.batch((4, 5))
    whole = Random(0)(model, batch, batch.labels)
    holed = whole.clone()
    holed[0, 2] = torch.nan
    holed[0, 4] = torch.nan  # padding
    found = MEASURES[name]()(Case(model, batch, {"whole": whole, "holed": holed}))
    assert len(found) >= 4 and any(np.isfinite(values[1]) for values in found.values())
    for key in [key for key in found if key.endswith(":holed")]:
        whole_values = found[key.replace("holed", "whole")]
        assert found[key].dtype == np.float64 and found[key].shape == (2,)
        assert math.isnan(found[key][0])
        np.testing.assert_array_equal(found[key][1], whole_values[1])


@pytest.mark.parametrize("name", MEASURES)
def test_no_explainer_gives_no_number(name: str) -> None:
    assert MEASURES[name]()(Case(builders.model(), builders.batch((4, 5)), {})) == {}


def test_kept_words_are_read_as_everywhere_else() -> None:
    """The one way in which words are removed; the loops above read each version alone."""
    batch, model = builders.batch((6, 4)), builders.model()
    case = Case(model, batch, {})
    kept = SeveralOut(versions=5).kept(case)
    answers = kept_probabilities(model, batch, kept)
    words = [place for place in range(6) if kept[0, 0, place]]
    assert float(answers[0, 0, 1]) == pytest.approx(sure(model, batch, 0, words, 1), abs=1e-12)
