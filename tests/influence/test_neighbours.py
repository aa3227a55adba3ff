"""Representations of every layer, the nearest of them, and what a vote among them loses."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.influence.neighbours import DISTANCES, Neighbours, NeighbourShapley, Vectors, shapley
from assay.influence.representations import layers, read, representations, share_below
from assay.influence.setting import Setting
from assay.models.store import save_tensors
from tests import builders, pretrained
from tests.influence import signs

RANDOM = np.random.default_rng(0)


@pytest.fixture(scope="module")
def setting() -> Setting:
    rows = signs.rows(75)
    return Setting.of(signs.training_run(rows, 2, encoder="lstm").learn(), rows[:60], rows[60:], "probability")


@pytest.mark.parametrize("name", builders.KINDS)
def test_what_the_decoder_reads_gives_the_logits(name: str) -> None:
    network, batch = builders.kind(name), builders.structured(builders.batch())
    found = read(network, batch)
    assert tuple(found) == layers(network)
    torch.testing.assert_close(network.decoder(found["decoder"]), network(network.embed(batch), batch).logits)


READERS = ("bert", "roberta", "albert", "modernbert", "gpt2")
"""Transformers whose classifiers differ: a pooler, two maps, one layer many times, a mean, the last index."""


@pytest.mark.parametrize(
    "architecture",
    [pytest.param(each, marks=() if each in READERS else pytest.mark.slow) for each in pretrained.ARCHITECTURES],
)
def test_what_the_classifier_of_a_transformer_reads_gives_the_logits(architecture: str) -> None:
    network, batch = pretrained.pretrained(architecture), pretrained.batch()
    found = read(network, batch)
    assert tuple(found) == layers(network)
    maps = [part for part in network.part("classifier").modules() if isinstance(part, torch.nn.Linear)]
    (last,) = (part for part in maps if part.out_features == network.classes)
    torch.testing.assert_close(last(found["decoder"]), network(network.embed(batch), batch).logits)


@pytest.mark.parametrize("markers", [False, True])
def test_padding_changes_no_representation(markers: bool) -> None:
    network = builders.model(encoder="transformer", markers=markers)
    narrow, wide = (read(network, builders.batch((7, 1, 4), width=width)) for width in (None, 12))
    for name in layers(network):
        torch.testing.assert_close(narrow[name], wide[name])


def test_representations_are_kept_until_the_weights_or_the_texts_change(setting: Setting, tmp_path: Path) -> None:
    network, rows = setting.network, setting.train[:9]
    names = layers(network)
    found = representations(network, rows, names, tmp_path)
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == len(names) and all(each.dtype == np.float32 for each in found.values())
    for path in kept:
        save_tensors({"vectors": torch.from_numpy(2 * load_file(path)["vectors"])}, path)
    again = representations(network, rows, names, tmp_path)
    assert all(np.array_equal(again[name], 2 * found[name]) for name in names) and sorted(tmp_path.iterdir()) == kept
    representations(network, rows[::-1], ["states"], tmp_path)
    with torch.no_grad():
        network.decoder.bias += 1  # type: ignore[union-attr,operator]
    representations(network, rows, ["states"], tmp_path)
    with torch.no_grad():
        network.decoder.bias -= 1  # type: ignore[union-attr,operator]
    assert len(list(tmp_path.iterdir())) == len(kept) + 2
    with pytest.raises(AssayError, match="layer"):
        representations(network, rows, ["layer 1"])


def test_the_share_of_parameters_is_that_below_the_layer(setting: Setting) -> None:
    network, row = setting.network, setting.train[0]
    counts = {name: part.numel() for name, part in network.named_parameters()}
    total = sum(counts.values())
    above = sum(count for name, count in counts.items() if name.startswith("decoder."))
    assert share_below(network, row, "embedding") == counts["embedding.weight"] / total
    assert share_below(network, row, "decoder") == (total - above) / total


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_nearest_are_those_of_another_library(distance: str) -> None:
    vectors, queries = RANDOM.normal(size=(300, 12)).astype(np.float32), RANDOM.normal(size=(40, 12)).astype(np.float32)
    vectors[:, 3] *= 100  # one loud dimension must not decide alone
    found = Vectors(vectors, distance).nearest(queries, 15)
    own = (
        {"metric": "cosine"}
        if distance == "cosine"
        else {"metric": "seuclidean", "metric_params": {"V": vectors.var(0)}}
    )
    other = NearestNeighbors(n_neighbors=15, algorithm="brute", **own).fit(vectors.astype(float))
    expected, indices = other.kneighbors(queries.astype(float))
    size = 1 if distance == "cosine" else math.sqrt(2 * 12)
    assert np.array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, expected / size, rtol=1e-4, atol=1e-6)


def test_normalised_distances_have_a_mean_square_of_one() -> None:
    vectors = RANDOM.normal(size=(200, 30)) * np.geomspace(0.1, 50, 30)
    found = Vectors(vectors.astype(np.float32), "euclidean").nearest(vectors.astype(np.float32), 200)
    assert np.mean(found.distances**2) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("distance", DISTANCES)
def test_an_approximate_search_finds_nearly_all(distance: str) -> None:
    pytest.importorskip("usearch")
    vectors = RANDOM.normal(size=(2000, 48)).astype(np.float32)
    exact, walked = (Vectors(vectors, distance, approximate).nearest(vectors[:300], 20, np.arange(300))
                     for approximate in (False, True))  # fmt: skip
    same = [len(set(one) & set(other)) / 20 for one, other in zip(exact.indices, walked.indices, strict=True)]
    assert np.mean(same) >= 0.99
    assert not (walked.indices == np.arange(300)[:, None]).any()


def test_a_vector_is_not_its_own_neighbour_where_it_does_not_count() -> None:
    vectors = np.repeat(RANDOM.normal(size=(5, 4)), 2, axis=0).astype(np.float32)  # each has a twin
    found = Vectors(vectors).nearest(vectors, 1, np.arange(10))
    assert np.array_equal(found.indices[:, 0], np.arange(10) ^ 1)
    np.testing.assert_array_equal(found.distances, 0)
    with pytest.raises(AssayError, match="from 1 to 9, got 10"):
        Vectors(vectors).nearest(vectors, 10, np.arange(10))


@pytest.mark.parametrize("distance", DISTANCES)
def test_scores_are_what_a_vote_loses_when_an_example_is_removed(setting: Setting, distance: str) -> None:
    method = Neighbours("states", k=4, distance=distance)
    found = method(setting)
    stored = representations(setting.network, setting.train, ["states"])["states"]
    asked = representations(setting.network, setting.queries, ["states"])["states"]
    ready = Vectors(stored, distance)  # the scale stays that of all examples
    stored, asked = ready.ready(stored).numpy(), ready.ready(asked).numpy()
    labels = np.array([row.label for row in setting.train])

    def vote(kept: np.ndarray) -> np.ndarray:
        fitted = KNeighborsClassifier(4, algorithm="brute").fit(stored[kept], labels[kept])
        shares = np.zeros((len(asked), 2))
        shares[:, fitted.classes_] = fitted.predict_proba(asked)
        return shares[np.arange(len(asked)), setting.classes]

    every = np.arange(len(labels))
    expected = np.stack([vote(every[every != index]) - vote(every) for index in every], 1)
    np.testing.assert_allclose(found.scores, expected, atol=1e-12)
    assert np.any(found.scores) and method.unfit(setting) is None
    turned = method(Setting.of(setting.network, setting.train, setting.queries, "loss", setting.classes))
    np.testing.assert_array_equal(turned.scores, -found.scores)


def test_own_is_the_share_of_other_labels_around(setting: Setting) -> None:
    own = Neighbours(k=5).own(setting)
    stored = representations(setting.network, setting.train)["decoder"]
    labels = np.array([row.label for row in setting.train])
    _, indices = NearestNeighbors(n_neighbors=6, algorithm="brute", metric="cosine").fit(stored).kneighbors(stored)
    expected = [np.mean(labels[[one for one in row if one != index][:5]] != labels[index])
                for index, row in enumerate(indices)]  # fmt: skip
    np.testing.assert_allclose(own, expected)


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_shapley_values_are_means_over_all_orders(k: int) -> None:
    agree = np.random.default_rng(k).random((3, 7)) < 0.5

    def worth(row: np.ndarray, chosen: tuple[int, ...]) -> float:
        return float(row[sorted(chosen)[:k]].sum() / k)  # indices stand in the order of distance

    for row, found in zip(agree, shapley(agree, k), strict=True):
        expected = np.zeros(7)
        for index, size in itertools.product(range(7), range(7)):
            others = [each for each in range(7) if each != index]
            for chosen in itertools.combinations(others, size):
                gain = worth(row, (*chosen, index)) - worth(row, chosen)
                expected[index] += gain / (7 * math.comb(6, size))
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_shapley_values_sum_to_the_share_of_votes(setting: Setting) -> None:
    method = NeighbourShapley(k=5)
    stored = Vectors(representations(setting.network, setting.train)["decoder"])
    indices = stored.nearest(representations(setting.network, setting.queries)["decoder"], 5).indices
    shares = (np.array([row.label for row in setting.train])[indices] == setting.classes[:, None]).mean(1)
    np.testing.assert_allclose(-method(setting).scores.sum(1), shares)
    assert method.unfit(setting) is None and "no layer" in str(NeighbourShapley("layer 9").unfit(setting))
    assert "60 training" in str(Neighbours(k=60).unfit(setting))


def test_the_order_of_training_examples_changes_nothing(setting: Setting) -> None:
    order = np.random.default_rng(1).permutation(len(setting.train))
    rows: list[Tokenised] = [setting.train[index] for index in order]
    moved = Setting.of(setting.network, rows, setting.queries, "probability")
    for method in (Neighbours(k=6), NeighbourShapley(k=6)):
        np.testing.assert_allclose(method(moved).scores, method(setting).scores[:, order], atol=1e-12)
