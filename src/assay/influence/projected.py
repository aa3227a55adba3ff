"""Gauss–Newton influence in a random projection of the gradients, for more examples than memory holds."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor

from assay import progress
from assay.errors import AssayError
from assay.files import write_text
from assay.influence.curvature import Outputs
from assay.influence.damping import chosen_damping, diagonal
from assay.influence.dual import ComputedGradients, sample_gradients, sample_rows
from assay.influence.projection import Projection, sides
from assay.influence.setting import Indices, Influence, PerExample, Scores, Setting, Texts, Unconditional
from assay.influence.stories import CHANGE
from assay.models.store import save_tensors
from assay.models.textmodel import TextModel
from assay.stories import with_story

IDENTITY = "features.json"


@dataclass(frozen=True)
class FeatureChunk:
    """Some examples: their indices, features for each direction of the logits, and logits."""

    indices: Int[Tensor, " n"]
    features: Float[Tensor, "n K S"]
    logits: Float[Tensor, "n C"]

    def to(self, device: torch.device | str) -> FeatureChunk:
        return FeatureChunk(self.indices.to(device), self.features.to(device), self.logits.to(device))

    @property
    def bytes(self) -> int:
        return self.features.numel() * self.features.element_size()


@dataclass
class FeatureStore:
    """Chunks by number: on the device up to `memory` bytes, the rest in files or in main memory."""

    folder: Path | None
    memory: int
    held: dict[int, FeatureChunk] = field(default_factory=dict)
    made: int = 0

    def stored(self, name: str) -> Any:
        """The value that the folder's identity file has under that name, or None."""
        path = None if self.folder is None else self.folder / IDENTITY
        return None if path is None or not path.exists() else json.loads(path.read_text(encoding="utf-8")).get(name)

    def claim(self, identity: dict[str, Any]) -> None:
        """Writes the identity into the folder; raises where it holds features of something else."""
        if self.folder is None:
            return
        path = self.folder / IDENTITY
        if not path.exists():
            write_text(path, json.dumps(identity, indent=2) + "\n")
        elif {name: self.stored(name) for name in identity} != json.loads(json.dumps(identity)):
            raise AssayError(f"{self.folder} holds features of another model, data or options; choose another folder.")

    def tensors(self, name: str, device: torch.device, make: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """Tensors that all chunks share, such as projections: stored on first use, read afterwards."""
        if self.folder is None:
            return make()
        path = self.folder / f"{name}.safetensors"
        if not path.exists():
            save_tensors(make(), path)
        return {key: each.to(device) for key, each in load_file(path).items()}

    def get(self, number: int, device: torch.device, make: Callable[[], FeatureChunk] | None = None) -> FeatureChunk:
        """The chunk of that number: from memory, from its file, or computed now."""
        if number in self.held:
            return self.held[number].to(device)
        path = None if self.folder is None else self.folder / f"{number:05d}.safetensors"
        if path is not None and path.exists():
            stored = load_file(path)
            part = FeatureChunk(stored["places"], stored["features"], stored["logits"]).to(device)
        elif make is not None:
            part = make()
            self.made += 1
            if path is not None:
                save_tensors({"places": part.indices, "features": part.features, "logits": part.logits}, path)
        else:
            raise AssayError(f"{path} has vanished; start again.")
        fits = sum(each.bytes for each in self.held.values()) + part.bytes <= self.memory
        if fits or path is None:
            self.held[number] = part if fits else part.to("cpu")
        return part

    def all(self, count: int, device: torch.device) -> Iterator[FeatureChunk]:
        """All chunks in order."""
        for number in range(count):
            yield self.get(number, device)


def digest(network: TextModel, rows: Texts) -> str:
    """A hash of a network with its texts and labels."""
    found = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    for row in rows:
        found.update(row.ids.numpy().tobytes())
        found.update(b"" if row.query is None else row.query.numpy().tobytes())
        found.update(str((len(row.ids), row.label)).encode())
    return found.hexdigest()


@dataclass(frozen=True)
class Primal:
    """The Cholesky factor of 1 + Φᵀ W Φ."""

    factor: Float[Tensor, "S S"]

    @staticmethod
    def add(gram: Float[Tensor, "S S"], features: Float[Tensor, "n K S"], outputs: Outputs) -> None:
        """Adds the curvature of some examples."""
        rooted = (outputs.roots @ features.to(gram)).flatten(0, 1)
        gram.addmm_(rooted.T, rooted)

    @classmethod
    def of(cls, gram: Float[Tensor, "S S"]) -> Primal:
        return cls(torch.linalg.cholesky(gram + torch.eye(len(gram)).to(gram)))

    def solve(self, asked: Float[Tensor, "Q S"]) -> Float[Tensor, "S Q"]:
        return torch.cholesky_solve(asked.to(self.factor).T, self.factor)

    def scores(
        self, solved: Float[Tensor, "S Q"], features: Float[Tensor, "n K S"], outputs: Outputs, leverage: bool
    ) -> Float[Tensor, "Q n"]:
        """Scores of some examples, for queries that were solved before."""
        features = features.to(solved)
        gradients = self.gradients(self.hat(features), outputs) if leverage else outputs.gradients
        return solved.T @ torch.einsum("nks,nk->sn", features, gradients * outputs.shares[:, None])

    def own(self, features: Float[Tensor, "n K S"], outputs: Outputs, leverage: bool) -> Float[Tensor, " n"]:
        """The predicted rise of the loss of some examples, each without itself."""
        hat = self.hat(features.to(self.factor))
        gradients = self.gradients(hat, outputs) if leverage else outputs.gradients
        return torch.einsum("nk,nkl,nl->n", outputs.gradients, hat, gradients) * outputs.shares

    def hat(self, features: Float[Tensor, "n K S"]) -> Float[Tensor, "n K K"]:
        """U_i G⁻¹ U_iᵀ of each example."""
        half: Tensor = torch.linalg.solve_triangular(self.factor, features.flatten(0, 1).T, upper=False)
        half = half.T.reshape(features.shape)
        return half @ half.mT

    @staticmethod
    def gradients(hat: Float[Tensor, "n K K"], outputs: Outputs) -> Float[Tensor, "n K"]:
        """Gradients by the outputs, as if each example were missing from the curvature."""
        half = outputs.roots @ hat
        kept = torch.eye(hat.shape[1]).to(hat) - half @ outputs.roots
        plain = outputs.gradients[..., None]
        rest: Tensor = torch.linalg.solve(kept, half @ plain)
        return (plain + outputs.roots @ rest).squeeze(-1)


PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}
ROWS = 8192  # of a part


@with_story("Projected Gauss–Newton influence", like=CHANGE)
@dataclass(frozen=True)
class ProjectedGaussNewton(Unconditional):
    """DualGaussNewton with each gradient projected to `size` numbers; the error falls with size.

    Each example is read once. In a folder what was read outlasts a stop, and serves other queries.
    """

    size: int = 4096
    side: int = 128  # of a matrix, after it is projected from both sides
    damping: float | None = None  # none given: chosen from the training
    leverage: bool = True
    precision: str = "float32"  # or bfloat16, in which the network reads and the numbers are kept
    memory: int = 8 * 2**30  # bytes of numbers that are held on the device
    folder: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise AssayError("The precision is float32 or bfloat16.")
        if min(self.size, self.side) < 1:
            raise AssayError("Sizes of projections are whole numbers from 1.")

    def __call__(self, setting: Setting) -> Influence:
        """The scores of all training examples for the targets of all queries."""
        work = ProjectedSystem(self, setting)
        return Influence(work.scores(work.asked()), notes=work.notes)

    def own(self, setting: Setting) -> PerExample:
        """The predicted rise of each training example's own loss if it were removed."""
        return ProjectedSystem(self, setting).own()


class ProjectedSystem:
    """The projected features of all training examples of one setting, and their curvature."""

    def __init__(self, method: ProjectedGaussNewton, setting: Setting) -> None:
        self.method, self.setting = method, setting
        self.device = setting.network.device
        self.kept = FeatureStore(method.folder, method.memory)
        given = self.kept.stored("damping") if method.damping is None else method.damping
        self.damping: float = chosen_damping(setting) if given is None else given
        self.labels = setting.labels
        order = np.argsort([len(row.ids) for row in setting.train], kind="stable")
        self.parts = np.split(order, range(ROWS, len(order), ROWS))
        self.read, self.seconds = 0, 0.0
        if method.folder is not None:
            self.kept.claim(self._identity())

    @property
    def notes(self) -> dict[str, Any]:
        """Options that were chosen, and the throughput."""
        speed = self.read / self.seconds if self.read else 0.0
        method = self.method
        chosen = {"damping": self.damping, "size": method.size, "side": method.side, "precision": method.precision}
        return chosen | {"read now": self.read, "examples per second": round(speed)}

    @cached_property
    def projection(self) -> Projection:
        """The projection, drawn once from sample gradients; a folder keeps its side matrices."""
        found = sample_gradients(self.setting, sample_rows(self.setting))
        drawn = self.kept.tensors("sides", self.device, lambda: sides(found, self.method.side, self.method.seed))
        factors = {name: float(each) ** -0.5 for name, each in diagonal(self.setting, "plain", self.damping).items()}
        return Projection.drawn(found, drawn, factors, self.method.size, self.method.seed)

    @cached_property
    def primal(self) -> Primal:
        """The curvature in feature space; chunks that are not stored yet are computed."""
        gram = torch.zeros(self.method.size, self.method.size, dtype=torch.float64, device=self.device)
        with progress.bar() as shown:
            task = shown.add_task("features", total=len(self.labels))
            for number, indices in enumerate(self.parts):
                part = self.kept.get(number, self.device, partial(self._part, indices))
                Primal.add(gram, part.features, self._outputs(part))
                shown.advance(task, len(indices))
        return Primal.of(gram)

    def scores(self, asked: Float[Tensor, "Q S"]) -> Scores:
        """Scores of all training examples for the features of queries."""
        solved = self.primal.solve(asked)
        found = np.zeros((len(asked), len(self.labels)))
        for part in self.kept.all(len(self.parts), self.device):
            scores = self.primal.scores(solved, part.features, self._outputs(part), self.method.leverage)
            found[:, part.indices.cpu().numpy()] = scores.cpu().numpy()
        return found

    def own(self) -> PerExample:
        """Scores for the loss of each training example itself."""
        primal, found = self.primal, np.zeros(len(self.labels))
        for part in self.kept.all(len(self.parts), self.device):
            own = primal.own(part.features, self._outputs(part), self.method.leverage)
            found[part.indices.cpu().numpy()] = own.cpu().numpy()
        return found

    def asked(self) -> Float[Tensor, "Q S"]:
        """The features of the targets of all queries."""
        return self._features(ComputedGradients.queries(self.setting))[0].squeeze(1)

    def _part(self, indices: Indices) -> FeatureChunk:
        rows = [self.setting.train[index] for index in indices]
        start = time.perf_counter()
        features, logits = self._features(replace(ComputedGradients.train(self.setting), rows=rows))
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        self.read, self.seconds = self.read + len(rows), self.seconds + time.perf_counter() - start
        return FeatureChunk(torch.from_numpy(indices).to(self.device), features, logits)

    def _features(self, source: ComputedGradients) -> tuple[Float[Tensor, "n K S"], Float[Tensor, "n C"]]:
        """The features and logits of some rows, by one pass over them."""
        projection, classes = self.projection, self.setting.network.classes
        features = torch.zeros(
            len(source.rows), source.width, self.method.size, dtype=self._kept_as, device=self.device
        )
        logits = torch.zeros(len(source.rows), classes, dtype=self.setting.dtype, device=self.device)
        lower = PRECISIONS[self.method.precision]
        for indices, batch in self.setting.batches(source.rows):
            own = torch.from_numpy(indices).to(self.device)
            with nullcontext() if lower is None else torch.autocast(self.device.type, lower):
                reading = self.setting.reader.read(batch)
                reading = replace(reading, logits=reading.logits.to(self.setting.dtype))
                logits[own] = reading.logits.detach()
                for direction, each in enumerate(source.logit_gradients(indices, batch, reading)):
                    features[own, direction] = projection(reading.gradients(each), self.setting.dtype).to(self._kept_as)
        return features, logits

    def _outputs(self, part: FeatureChunk) -> Outputs:
        indices = part.indices.cpu().numpy()
        return Outputs.of(part.logits, self.labels[indices], self.setting.shares[indices])

    @property
    def _kept_as(self) -> torch.dtype:
        return PRECISIONS[self.method.precision] or self.setting.dtype

    def _identity(self) -> dict[str, Any]:
        """Everything that the features depend on."""
        method = self.method
        options = {name: getattr(method, name) for name in ("size", "side", "precision", "seed")}
        return {
            "data": digest(self.setting.network, self.setting.train),
            "damping": self.damping,
            "decay": dict(self.setting.decay),
            "rows": ROWS,
        } | options
