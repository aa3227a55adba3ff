"""The dual form against the inverse of the curvature over all parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from assay.data.batches import Tokenised, collate
from assay.errors import AssayError
from assay.influence.damping import adam_metric, chosen_damping, damping_of_each
from assay.influence.dual import Block, ComputedGradients, DualGaussNewton, GivenGradients, add_products, grouped
from assay.influence.gradient_records import Rows, TableGradients, add_kernel
from assay.influence.setting import Influence, Introspective, Method, Setting
from assay.influence.similarity import Vectors, query_gradients, train_products
from tests import builders, pretrained
from tests.influence import training_runs
from tests.influence.dense import Dense, rows, setting


def dual(damping: float | None = None, **options: Any) -> DualGaussNewton:
    """The method with one damping for all, and with leverage, unless told otherwise."""
    return DualGaussNewton(damping, **{"metric": "plain", "leverage": True, **options})


PLAIN = dual(1e-2, leverage=False)
FEW = [2, 11]
EXACT = {"rtol": 1e-8, "atol": 1e-12}


@pytest.mark.parametrize(
    ("encoder", "classes"),
    [
        *[("lstm", 2), ("gru", 3), ("cnn", 2), ("cnn", 3), ("transformer", 3)],
        *[pytest.param(*each, marks=pytest.mark.slow) for each in (("lstm", 3), ("gru", 2), ("transformer", 2))],
    ],
)
def test_scores_are_those_of_the_inverse_with_and_without_the_example_in_it(encoder: str, classes: int) -> None:
    given = setting(encoder, classes)
    dense = Dense(given)
    curvature = dense.curvature(1e-2)
    np.testing.assert_allclose(PLAIN(given).scores, dense.scores(curvature), **EXACT)
    found = dual(1e-2)(given)
    np.testing.assert_allclose(found.scores[:, FEW], dense.removed(curvature, dense.asked, FEW), **EXACT)
    assert found.covered == 1.0 and found.notes["passes"] == 1 and found.notes["damping"] == 1e-2


@pytest.mark.parametrize(("classes", "leverage"), [(2, False), (3, True)])
def test_own_influence_is_the_score_of_each_loss_for_itself_and_never_negative(classes: int, leverage: bool) -> None:
    given = setting("cnn", classes)
    dense = Dense(given)
    curvature = dense.curvature(1e-2)
    every = (
        dense.removed(curvature, dense.gradients, range(12)) if leverage else dense.scores(curvature, dense.gradients)
    )
    own = dual(1e-2, leverage=leverage).own(given)
    np.testing.assert_allclose(own, every.diagonal(), **EXACT)
    assert (own >= 0).all()
    asked = Setting.of(given.network, given.train, given.train, "loss")
    scores = dual(1e-2, leverage=leverage)(replace(given, queries=asked.queries, target="loss", classes=asked.classes))
    np.testing.assert_allclose(scores.scores.diagonal(), own, **EXACT)


def test_losses_influence_each_other_alike() -> None:
    train = rows(14, 3)
    given = Setting.of(builders.model(encoder="gru"), train, train, "loss")
    scores = PLAIN(given).scores
    np.testing.assert_allclose(scores, scores.T, rtol=1e-9)


def test_strong_damping_leaves_the_product_of_gradients() -> None:
    given = setting("transformer")
    expected = train_products(given, query_gradients(given)) * given.weights / len(given.train)
    found = [dual(each, leverage=False)(given).scores * each for each in (1e6, 1e7)]
    errors = [np.abs(each - expected).max() / np.abs(expected).max() for each in found]
    assert errors[1] < 1e-4 and 5 < errors[0] / errors[1] < 20


def test_memory_changes_the_number_of_passes_and_nothing_else() -> None:
    given = setting("lstm", 3)
    whole, held = dual(1e-2)(given), 5 * 8 * (12 * 2) ** 2
    less = dual(1e-2, memory=held + 12_000)(given)
    assert less.notes["passes"] > 3 > whole.notes["passes"]
    np.testing.assert_allclose(less.scores, whole.scores, rtol=1e-10, atol=1e-15)


def test_groups_hold_every_number_once_and_no_more_than_fits() -> None:
    shapes = {
        "table": torch.Size((50, 6)),
        "matrix": torch.Size((7, 5)),
        "bias": torch.Size((7,)),
        "one": torch.Size(()),
    }
    groups = grouped(shapes, {"table": 30}, 10, 200)
    for group in groups:
        held = sum((each.stop - each.start) * (30 if each.table else 10 * each.size) for each in group)
        assert held <= 200
    for name, shape in shapes.items():
        own = [each for group in groups for each in group if each.name == name]
        indices = (shape[-1] if name == "table" else shape[0]) if shape else 1
        assert [index for each in own for index in range(each.start, each.stop)] == list(range(indices))


def test_products_with_the_queries_add_up_over_the_parameters() -> None:
    given = setting("average")
    shapes = given.reader.shapes
    ones = {name: torch.ones((), dtype=torch.float64) for name in shapes}

    def cross(names: list[str]) -> torch.Tensor:
        ((*group,),) = grouped({name: shapes[name] for name in names}, {}, 1, 10**9)
        left, right = (
            each.block(group, ones) for each in (ComputedGradients.queries(given), ComputedGradients.train(given))
        )
        out = torch.zeros(len(left.dense), len(right.dense), dtype=torch.float64)
        add_products(out, left, right)
        return out

    parts = torch.stack([cross([name]) for name in shapes]).sum(0)
    torch.testing.assert_close(parts, cross(list(shapes)), rtol=1e-12, atol=1e-14)
    dense = Dense(given)
    margins = (dense.jacobian[:, 0] - dense.jacobian[:, 1]) / 2**0.5
    torch.testing.assert_close(parts, dense.asked @ margins.T, rtol=1e-9, atol=1e-12)


def test_a_symmetric_product_leaves_out_only_what_is_mirrored() -> None:
    random = torch.Generator().manual_seed(0)
    block = Block(torch.randn(600, 30, generator=random, dtype=torch.float64), {})
    out = torch.zeros(600, 600, dtype=torch.float64)
    add_products(out, block, block)
    torch.testing.assert_close(out.triu(), (block.dense @ block.dense.T).triu())
    assert float(out[-1, 0]) == 0


def test_rows_of_a_table_that_few_and_that_many_texts_share_are_compared_without_it() -> None:
    random = torch.Generator().manual_seed(0)
    common = torch.randint(0, 3, (90, 2), generator=random)
    rare = torch.randint(3, 200, (90, 4), generator=random)
    ids = torch.cat([common, rare], dim=1)
    both = [
        Rows(ids[part], torch.randn(len(ids[part]), 6, 3, generator=random).double(), torch.Size((200, 3)))
        for part in (slice(0, 60), slice(60, 90))
    ]
    lookups = [TableGradients.of(each, torch.arange(len(each.ids)), len(each.ids)) for each in both]
    for left, right in ((0, 0), (0, 1), (1, 0)):
        out = torch.zeros(len(both[left].ids), len(both[right].ids), dtype=torch.float64)
        add_kernel(out, lookups[left], lookups[right])
        torch.testing.assert_close(out, both[left].dense() @ both[right].dense().T)


def test_given_vectors_are_solved_as_gradients_of_targets_are() -> None:
    given = setting("transformer")
    vectors = query_gradients(given)

    def solved(vectors: Vectors) -> np.ndarray:
        return dual(1e-2).work(given, GivenGradients(vectors)).scores(leverage=True)

    np.testing.assert_allclose(solved(vectors), dual(1e-2)(given).scores, **EXACT)
    some = {name: vectors[name] for name in ("embedding.weight", "decoder.bias")}
    rest = {name: each for name, each in vectors.items() if name not in some}
    parts = [solved(each) for each in (some, rest)]
    np.testing.assert_allclose(parts[0] + parts[1], dual(1e-2)(given).scores, **EXACT)


def test_the_metric_of_adam_is_that_of_dense_matrices() -> None:
    given = setting("cnn", 3)
    dense = Dense(given)
    squares = (torch.from_numpy(given.weights)[:, None] * dense.gradients).square().mean(0)
    metric = (squares.sqrt() / squares.sqrt().mean()).clamp(min=1e-3)
    found = torch.cat([each.flatten() for each in adam_metric(given).values()])
    torch.testing.assert_close(found, metric, rtol=1e-8, atol=1e-12)
    curvature = dense.curvature(1e-2, metric)
    scores = dual(1e-2, metric="adam")(given).scores
    np.testing.assert_allclose(scores[:, FEW], dense.removed(curvature, dense.asked, FEW), **EXACT)


@pytest.mark.slow
def test_after_a_known_training_each_number_is_damped_by_itself() -> None:
    given = training_runs.setting(*training_runs.training_run("average"))
    dense = Dense(given)
    metric = torch.cat([each.flatten() for each in damping_of_each(given).values()])
    found = dual(metric="adam")(given)
    np.testing.assert_allclose(
        found.scores[:, FEW], dense.removed(dense.curvature(1.0, metric), dense.asked, FEW), **EXACT
    )
    assert found.notes["damping"] == pytest.approx(float(metric.mean()))
    assert dual()(given).notes["damping"] == pytest.approx(chosen_damping(given))


def test_the_same_example_twice_gets_the_same_score_and_order_does_not_matter() -> None:
    given = setting("lstm")
    train = [*given.train, given.train[4]]
    twice = replace(given, train=train, weights=np.append(given.weights, given.weights[4]))
    scores = dual(1e-2)(twice).scores
    np.testing.assert_allclose(scores[:, 4], scores[:, -1], rtol=1e-9)
    order = np.random.default_rng(0).permutation(len(train))
    mixed = replace(twice, train=[train[index] for index in order], weights=twice.weights[order])
    np.testing.assert_allclose(dual(1e-2)(mixed).scores, scores[:, order], **EXACT)


def test_batches_and_padding_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    given = setting("average")
    expected = dual(1e-2)(given)
    batches = given.batches
    monkeypatch.setattr(Setting, "batches", lambda self, rows: batches(rows, tokens=10))
    np.testing.assert_allclose(dual(1e-2)(given).scores, expected.scores, **EXACT)


def test_a_transformer_of_the_library_is_covered_whole() -> None:
    network = pretrained.pretrained("bert", classes=2)
    batch = pretrained.batch()
    train = [
        Tokenised(
            index,
            ids[mask],
            torch.zeros(int(mask.sum()), 2, dtype=torch.int32),
            ids[mask] * 0,
            index % 2,
            subwords=own[mask],
        )
        for index, (ids, mask, own) in enumerate(zip(batch.ids, batch.mask, batch.subwords, strict=True))
    ]
    assert collate(train).subwords is not None
    given = Setting.of(network, train, train[:2])
    vectors = {name: each.flatten(1) for name, each in query_gradients(given).items()}
    asked = torch.cat(list(vectors.values()), 1)
    every = query_gradients(Setting.of(network, train, train, "loss"))
    losses = torch.cat([each.flatten(1) for each in every.values()], 1)
    half = query_gradients(Setting.of(network, train, train, "margin", np.zeros(4, dtype=np.int64)))
    margins = torch.cat([each.flatten(1) for each in half.values()], 1)
    ((_, whole),) = given.batches(train)
    likely = network(network.embed(whole), whole).logits.softmax(-1).detach()
    order = next(given.batches(train))[0]
    curvature = likely.prod(-1)[np.argsort(order)] / 4
    small = torch.linalg.inv(torch.diag(1 / curvature) + margins @ margins.T / 1e-2)
    expected = asked @ losses.T / 1e-2 - asked @ margins.T @ small @ (margins @ losses.T) / 1e-4
    np.testing.assert_allclose(PLAIN(given).scores, expected / 4, rtol=1e-7, atol=1e-10)


def test_it_says_what_it_cannot_do() -> None:
    given = setting("cnn")
    assert isinstance(PLAIN, Method) and isinstance(PLAIN, Introspective)
    assert PLAIN.unfit(given) is None
    assert "projected" in str(dual(memory=1000).unfit(given))
    with pytest.raises(AssayError, match="damping"):
        dual(0.0)(given)
    with pytest.raises(AssayError, match="metric"):
        dual(1e-2, metric="other")(given)
    assert isinstance(dual()(given), Influence)
