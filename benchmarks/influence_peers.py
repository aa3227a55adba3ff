"""Methods of influence of other packages, on our model through a small adapter; each package may be missing."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset

from assay.influence.setting import Influence, Setting
from assay.influence.targets import margin
from assay.models.walk import UnfusedOps
from assay.types import Batch

DAMPINGS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
Timed = dict[str, tuple[Influence, float]]


class Adapter(nn.Module):
    """Our network as others want it: padded word ids in, logits out; recurrence in operations that they can read."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.network = setting.network

    def forward(self, ids: Tensor) -> Tensor:
        batch = Batch(ids, ids != 0, ids.new_zeros(len(ids)))
        with UnfusedOps():
            logits: Tensor = self.network(self.network.embed(batch), batch).logits
        return logits


@dataclass(frozen=True)
class Given:
    """A setting as tensors."""

    model: Adapter
    train: TensorDataset
    queries: TensorDataset
    weights: Tensor  # of each class

    @classmethod
    def of(cls, setting: Setting) -> Given:
        texts = pad_sequence([row.ids for row in (*setting.train, *setting.queries)], batch_first=True)
        labels = torch.tensor([row.label for row in setting.train])
        weights = torch.ones(setting.network.classes)
        for place in range(len(weights)):
            weights[place] = float(setting.weights[(labels == place).numpy()].mean())
        count = len(setting.train)
        queries = TensorDataset(texts[count:], torch.from_numpy(setting.classes))
        return cls(Adapter(setting), TensorDataset(texts[:count], labels), queries, weights)

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The sum of the losses, as they count in training."""
        return nn.functional.cross_entropy(logits, labels, self.weights, reduction="sum")

    def share(self, names: set[str]) -> float:
        """The share of parameters that belong to these modules."""
        every = dict(self.model.named_parameters())
        own = sum(each.numel() for name, each in every.items() if name.rpartition(".")[0] in names)
        return own / sum(each.numel() for each in every.values())


def linear(model: nn.Module) -> set[str]:
    return {name for name, each in model.named_modules() if isinstance(each, nn.Linear)}


def kronfluence(setting: Setting, told: list[str], dampings: Sequence[float] = DAMPINGS) -> Timed:
    """EK-FAC as it comes, and with each of some dampings."""
    from kronfluence.analyzer import Analyzer, prepare_model
    from kronfluence.arguments import FactorArguments, ScoreArguments
    from kronfluence.task import Task

    given = Given.of(setting)

    class Question(Task):
        def compute_train_loss(self, batch, model, sample=False):  # type: ignore[no-untyped-def]
            logits = model(batch[0])
            if not sample:
                return given.loss(logits, batch[1])
            drawn = torch.multinomial(logits.softmax(-1).detach(), 1).flatten()
            return given.loss(logits, drawn)

        def compute_measurement(self, batch, model):  # type: ignore[no-untyped-def]
            return margin(model(batch[0]), batch[1]).sum()

    found: Timed = {}
    task, share = Question(), given.share(linear(given.model))
    model = prepare_model(deepcopy(given.model), task)
    with tempfile.TemporaryDirectory() as folder:
        analyzer = Analyzer("assay", model, task, cpu=True, output_dir=folder, disable_tqdm=True)
        begun = time.perf_counter()
        analyzer.fit_all_factors(
            "factors", given.train, per_device_batch_size=128, factor_args=FactorArguments(strategy="ekfac")
        )
        fitted = time.perf_counter() - begun
        for damping in (None, *dampings):
            begun = time.perf_counter()
            arguments = ScoreArguments() if damping is None else ScoreArguments(damping_factor=damping)
            name = "default" if damping is None else f"damping {damping:g}"
            analyzer.compute_pairwise_scores(
                scores_name=name.replace(" ", "_"),
                factors_name="factors",
                query_dataset=given.queries,
                train_dataset=given.train,
                per_device_query_batch_size=32,
                per_device_train_batch_size=256,
                score_args=arguments,
            )
            scores = analyzer.load_pairwise_scores(name.replace(" ", "_"))["all_modules"].double().numpy()
            found[f"kronfluence EK-FAC, {name}"] = (
                Influence(scores / len(scores[0]), covered=share),
                fitted + time.perf_counter() - begun,
            )
    return found


def dattri(setting: Setting, told: list[str], only: str = "") -> Timed:
    """Gradient dot product, EK-FAC with the damping that keeps it finite, and TRAK of one model; or `only` one."""
    from dattri.algorithm import IFAttributorEKFAC, TracInAttributor, TRAKAttributor
    from dattri.task import AttributionTask

    given = Given.of(setting)
    weights = {name: each.detach() for name, each in given.model.state_dict().items()}

    def answered(parameters: object, ids: Tensor) -> Tensor:
        logits: Tensor = torch.func.functional_call(given.model, parameters, (ids,))  # type: ignore[arg-type]
        return logits

    def loss(parameters: object, data: tuple[Tensor, Tensor]) -> Tensor:
        ids, labels = (each.unsqueeze(0) if data[1].dim() == 0 else each for each in data)
        return given.loss(answered(parameters, ids), labels)

    def asked(parameters: object, data: tuple[Tensor, Tensor]) -> Tensor:
        ids, labels = (each.unsqueeze(0) if data[1].dim() == 0 else each for each in data)
        return margin(answered(parameters, ids), labels).sum()

    def probability(parameters: object, data: tuple[Tensor, Tensor]) -> Tensor:
        ids, labels = (each.unsqueeze(0) if data[1].dim() == 0 else each for each in data)
        return torch.exp(-nn.functional.cross_entropy(answered(parameters, ids), labels))

    def mean_loss(parameters: object, data: tuple[Tensor, Tensor]) -> Tensor:
        return loss(parameters, data) / max(1, data[1].numel())

    def loader(rows: Dataset[object]) -> DataLoader[object]:
        return DataLoader(rows, batch_size=64)

    def dot() -> Tensor:
        task = AttributionTask(loss, given.model, weights, target_func=asked)
        method = TracInAttributor(task, weight_list=torch.ones(1), normalized_grad=False)
        return method.attribute(loader(given.train), loader(given.queries))

    def kronecker() -> Tensor:
        task = AttributionTask(mean_loss, given.model, weights, target_func=asked)
        method = IFAttributorEKFAC(task, "network.decoder", damping=1e-3)  # it fails on layers that read each word
        method.cache(loader(given.train))
        return method.attribute(loader(given.train), loader(given.queries))

    def trak() -> Tensor:
        task = AttributionTask(asked, given.model, weights)
        method = TRAKAttributor(task, probability, projector_kwargs={"proj_dim": 512, "device": "cpu"})
        method.cache(loader(given.train))
        return -method.attribute(loader(given.queries))  # theirs is what an example adds, not what its removal changes

    every = {"dattri Grad-Dot": (dot, 1.0), "dattri TRAK-1": (trak, 1.0)}
    every["dattri EK-FAC, damping 0.001"] = (kronecker, given.share({"network.decoder"}))
    found = {}
    for name, (run, share) in every.items():
        if not name.startswith(only):
            continue
        try:
            found[name] = measured(run, share)
        except Exception as fault:  # one fails, the others go on
            told.append(failure(name, fault))
    return found


def captum(setting: Setting, told: list[str]) -> Timed:
    """TracIn of the last layer, at the last checkpoint."""
    from captum.influence import TracInCPFast

    given = Given.of(setting)

    class Asked(nn.Module):
        reduction = "sum"

        def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
            return margin(logits, labels).sum()

    def run() -> Tensor:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model.pt")
            torch.save(given.model.state_dict(), path)
            method = TracInCPFast(
                given.model,
                given.model.network.decoder,
                DataLoader(given.train, batch_size=256),
                [path],
                loss_fn=nn.CrossEntropyLoss(given.weights, reduction="sum"),
                test_loss_fn=Asked(),
                batch_size=None,
            )
            return method.influence(given.queries.tensors).T

    return {"captum TracInCPFast": measured(run, given.share({"network.decoder"}))}


def measured(run: Callable[[], Tensor], share: float) -> tuple[Influence, float]:
    """What came out, [train, queries], as ours is; scales differ, and only ranks are compared."""
    begun = time.perf_counter()
    scores = run().detach().double().numpy().T
    return Influence(np.ascontiguousarray(scores), covered=share), time.perf_counter() - begun


PEERS: dict[str, Callable[[Setting, list[str]], Timed]] = {
    "kronfluence": kronfluence,
    "dattri": dattri,
    "captum": captum,
}


def failure(name: str, fault: Exception) -> str:
    return f"{name} failed: {type(fault).__name__}: {' '.join(str(fault).split())[:200]}"


def answers(setting: Setting) -> tuple[Timed, list[str]]:
    """All that the packages that are here say, and a sentence for each that is not or that failed."""
    found: Timed = {}
    told: list[str] = []
    for name, run in PEERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found |= run(setting, told)
        except ImportError as fault:
            told.append(f"{name} is left out: {fault}.")
        except Exception as fault:  # what a package raises on our model is a finding
            told.append(failure(name, fault))
    return found, told
