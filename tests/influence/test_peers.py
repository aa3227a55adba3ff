"""Beside other libraries, where they cover what we cover: captum in its slow mode, kronfluence on linear layers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

from assay.data.batches import Tokenised
from assay.influence.kronecker import Kronecker
from assay.influence.last_layer import TracInFast
from assay.influence.setting import Setting
from assay.influence.tracin import Checkpoint, TracIn, checkpoints
from assay.influence.training_run import TrainingRun
from assay.models.config import Training
from assay.models.textmodel import TextModel
from assay.types import Batch
from tests import builders
from tests.influence import small


class Read(nn.Module):
    """A network that takes texts of one length and gives logits."""

    def __init__(self, network: TextModel) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor) -> Tensor:
        batch = Batch(ids, torch.ones_like(ids, dtype=torch.bool), ids[:, 0] * 0)
        logits: Tensor = self.network(self.network.embed(batch), batch).logits
        return logits


def fours(rows: list[Tokenised]) -> list[Tokenised]:
    """The texts cut and repeated to four words."""
    long = [row.ids.repeat(4)[:4] for row in rows]
    spans = torch.arange(4, dtype=torch.int32)[:, None] + torch.tensor([0, 1], dtype=torch.int32)
    return [
        replace(row, ids=ids, spans=spans, sentences=torch.zeros(4).long(), query=None)
        for row, ids in zip(rows, long, strict=True)
    ]


def together(rows: list[Tokenised]) -> tuple[Tensor, Tensor]:
    return torch.stack([row.ids for row in rows]), torch.tensor([row.label for row in rows])


def trained(bias: bool) -> tuple[Setting, list[Checkpoint]]:
    """A recurrent model, whose last layer may have a bias that learns, and two checkpoints of its training."""
    rows = fours(small.texts(20, seed=1))
    training = Training(batch_size=8, learning_rate=5e-3, balanced=False)
    network = builders.model(dtype=torch.float32).train()
    network.decoder.bias.requires_grad_(bias)
    training_run = TrainingRun(network, rows[:16], training, 2)
    setting = Setting.of(training_run.learn(), rows[:16], rows[16:], "loss", training_run=training_run)
    return setting, checkpoints(training_run, 2)


@pytest.mark.parametrize("last", [False, True])
def test_tracin_answers_as_captum_in_its_slow_mode(last: bool) -> None:
    pytest.importorskip("captum")
    from captum.influence import TracInCP, TracInCPFast

    setting, passed = trained(bias=not last)  # their fast mode leaves biases out
    train, queries = list(setting.train), list(setting.queries)
    ours = (TracInFast(2, steps=False) if last else TracIn(2, steps=False))(setting)
    model = Read(deepcopy(setting.network))

    def load(model: nn.Module, path: str) -> float:
        model.network.load_state_dict(passed[int(path)].network.state_dict())
        return passed[int(path)].rate

    options: dict[str, Any] = {
        "train_dataset": TensorDataset(*together(train)),
        "checkpoints": ["0", "1"],
        "checkpoints_load_func": load,
        "batch_size": 4,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if last:
            theirs = TracInCPFast(model, model.network.decoder, loss_fn=nn.CrossEntropyLoss(reduction="sum"), **options)
        else:
            loss = nn.CrossEntropyLoss(reduction="none")
            theirs = TracInCP(model, loss_fn=loss, sample_wise_grads_per_batch=False, **options)
        expected = theirs.influence(together(queries)).numpy() / len(train)
    np.testing.assert_allclose(ours.scores, expected, rtol=2e-4, atol=1e-8)
    assert (ours.covered == 1) != last


class Layers(TextModel):
    """Two linear maps over the mean of embeddings that do not learn."""

    cascade = ("decoder", "embedding")

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(builders.WORDS, 6)
        self.embedding.weight.requires_grad_(False)
        self.hidden, self.decoder = nn.Linear(6, 5), nn.Linear(5, 3)

    classes = property(lambda self: 3)  # type: ignore[assignment]
    paired = property(lambda self: False)  # type: ignore[assignment]
    ordinary = property(lambda self: 4)  # type: ignore[assignment]
    facts = property(lambda self: {})  # type: ignore[assignment]

    def embed(self, batch: Batch) -> Tensor:
        embedded: Tensor = self.embedding(batch.ids)
        return embedded

    def forward(self, x: Tensor, batch: Batch, edit: Any = None) -> Any:
        from assay.types import Output

        return Output(self.decoder(self.hidden(x.mean(1)).tanh()), ())

    def part(self, name: str) -> nn.Module:
        return self.decoder if name == "decoder" else self.embedding


@pytest.fixture
def kronfluence(tmp_path: Path) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield pytest.importorskip("kronfluence")


def test_curvature_of_linear_layers_answers_as_kronfluence(kronfluence: Any, tmp_path: Path) -> None:
    from kronfluence.analyzer import Analyzer, prepare_model
    from kronfluence.arguments import FactorArguments, ScoreArguments
    from kronfluence.task import Task

    class Classify(Task):
        def compute_train_loss(self, batch: Any, model: nn.Module, sample: bool = False) -> Tensor:
            return F.cross_entropy(model(batch[0]), batch[1], reduction="sum")

        def compute_measurement(self, batch: Any, model: nn.Module) -> Tensor:
            return self.compute_train_loss(batch, model)

    torch.manual_seed(0)
    rows = fours(small.texts(36, seed=2, classes=3))
    network = Layers().eval()
    setting = Setting.of(network, rows[:30], rows[30:], "loss")
    ours = Kronecker("empirical", damping=1e-3)(setting).scores

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.hidden, self.decoder = network.embedding, network.hidden, network.decoder

        def forward(self, ids: Tensor) -> Tensor:
            found: Tensor = self.decoder(self.hidden(self.embedding(ids).mean(1)).tanh())
            return found

    task = Classify()
    analyzer = Analyzer("linear", prepare_model(Mixed(), task), task, cpu=True, output_dir=str(tmp_path))
    train, queries = TensorDataset(*together(rows[:30])), TensorDataset(*together(rows[30:]))
    factors = FactorArguments(strategy="ekfac", use_empirical_fisher=True, eigendecomposition_dtype=torch.float64)
    analyzer.fit_all_factors("all", train, factor_args=factors, per_device_batch_size=8)
    analyzer.compute_pairwise_scores(
        "scores",
        "all",
        queries,
        train,
        per_device_query_batch_size=6,
        per_device_train_batch_size=8,
        score_args=ScoreArguments(damping_factor=1e-3),
    )
    expected = analyzer.load_pairwise_scores("scores")["all_modules"].numpy() / 30
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
