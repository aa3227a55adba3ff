"""Turn-over dropout: masks, what a part of the network has not seen, and what leaks all the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.data.batches import collate
from assay.errors import AssayError
from assay.influence.retraining import Retrained
from assay.influence.targets import target
from assay.influence.training_run import TrainingRun
from assay.influence.turnover import TurnoverDropout, switched
from assay.metrics.performance import spearman
from assay.models.network import Network
from tests.influence.training_runs import HARD, setting, training_run

PLAIN = replace(HARD, epochs=3, decay=0.0, clip=None, balanced=False, learning_rate=0.05)


@pytest.mark.parametrize("keep", [0.3, 0.5])
def test_the_keep_rate_is_what_it_says(keep: float) -> None:
    masks = TurnoverDropout(keep).masks(np.arange(4000), 50)
    assert abs(masks.mean() - keep) < 4 * np.sqrt(keep * (1 - keep) / masks.size)
    for axis in (0, 1):
        count = masks.shape[axis]
        assert np.abs(masks.mean(axis) - keep).max() < 5.5 * np.sqrt(keep * (1 - keep) / count)
    correlations = np.corrcoef(masks.T) - np.eye(50)
    assert np.abs(correlations).max() < 5.5 / np.sqrt(4000)
    assert len(np.unique(masks, axis=0)) == 4000


def test_masks_belong_to_the_number_of_an_example_and_the_seed() -> None:
    method = TurnoverDropout()
    masks = method.masks(np.arange(30), 16)
    np.testing.assert_array_equal(method.masks(np.array([7, 3]), 16), masks[[7, 3]])
    assert (TurnoverDropout(seed=1).masks(np.arange(30), 16) != masks).any()


def moved(made: TrainingRun, trainable: tuple[str, ...] = ("decoder.weight",)) -> tuple[float, float]:
    """How far the logits of a text move in the part that has not seen the one training example, and in the other."""
    for name, each in made.network.named_parameters():
        each.requires_grad_(name in trainable)
    made = replace(made, rows=made.rows[:1])
    method = TurnoverDropout()
    network = method.train(made)
    on = torch.from_numpy(method.masks(np.arange(1), network.decoder.in_features))
    found = []
    for units in (~on, on):
        logits = [answers(each, made, units) for each in (network, made.network.eval())]
        found.append(float((logits[0] - logits[1]).abs().max()))
    return found[0], found[1]


def answers(network: Network, made: TrainingRun, units: torch.Tensor) -> torch.Tensor:
    batch = collate(made.rows)
    with switched(network.decoder, 2.0 * units), torch.no_grad():
        return network(network.embed(batch), batch).logits


def test_the_part_that_has_not_seen_an_example_is_the_same_to_the_last_bit() -> None:
    made, _ = training_run("none", training=PLAIN)
    unseen, seen = moved(made)
    assert unseen == 0.0 and seen > 0.01


def test_an_example_leaks_through_bias_decay_and_shared_layers() -> None:
    leaks = {
        "bias": moved(training_run("none", training=PLAIN)[0], ("decoder.weight", "decoder.bias")),
        "decay": moved(training_run("none", training=replace(PLAIN, decay=0.1))[0]),
        "embeddings": moved(training_run("none", training=PLAIN)[0], ("decoder.weight", "embedding.weight")),
    }
    for name, (unseen, _) in leaks.items():
        assert unseen > 1e-3, name
    assert leaks["bias"][0] > 0.05


def test_scores_are_what_the_switched_network_answers() -> None:
    made, asked = training_run("average")
    method = TurnoverDropout(keep=0.3)
    network = method.train(made)
    known = setting(made, asked)
    found = replace(method, network=network)(known)
    np.testing.assert_allclose(method(known).scores, found.scores)  # trains it by itself
    assert found.covered == network.decoder.weight.numel() / network.parameter_count
    masks = torch.from_numpy(method.masks(np.arange(len(made.rows)), network.decoder.in_features)).double()
    for index, batch in known.batches(asked, tokens=1):
        classes = torch.from_numpy(known.classes[index])
        for row, on in enumerate(masks):
            values = []
            for units in ((1 - on) / 0.7, on / 0.3):
                with switched(network.decoder, units), torch.no_grad():
                    logits = network(network.embed(batch), batch).logits
                values.append(float(target("margin")(logits, classes)))
            np.testing.assert_allclose(found.scores[index[0], row], values[0] - values[1], rtol=1e-9, atol=1e-12)


def test_an_example_supports_its_own_label() -> None:
    made, _ = training_run("none", rows=24, training=replace(PLAIN, epochs=8))
    known = setting(made, list(made.rows), "loss")
    scores = TurnoverDropout()(known).scores
    own, others = np.diag(scores), scores[~np.eye(len(scores), dtype=bool)]
    assert own.mean() > 0 and own.mean() > others.mean() + 2 * own.std() / np.sqrt(len(own))


@pytest.mark.slow
def test_the_example_that_its_own_loss_needs_most_is_found_better_by_more_networks() -> None:
    training = replace(HARD, epochs=10, batch_size=16, learning_rate=0.02, clip=5.0, decay=1e-5)
    made, _ = training_run("none", rows=64, training=training, embedding=32)
    known = setting(made, list(made.rows), "loss")
    changes = np.diag(Retrained(known, at_once=32).alone(range(64)))
    found = TurnoverDropout(networks=8)(known)
    assert found.errors is not None
    agreed = [
        spearman(np.diag(scores)[None], changes[None])[0] for scores in (TurnoverDropout()(known).scores, found.scores)
    ]
    assert agreed[1] > agreed[0] > 2 / np.sqrt(64)  # two standard errors of a rank correlation by chance


def test_what_it_needs_is_told() -> None:
    made, asked = training_run("average")
    known = setting(made, asked)
    assert TurnoverDropout().unfit(known) is None
    assert "not known" in str(TurnoverDropout().unfit(replace(known, training_run=None)))
    with pytest.raises(AssayError, match="between 0 and 1"):
        TurnoverDropout(keep=1.0)
