"""Gauss–Newton influence in a random projection of the gradients, for more examples than memory holds."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay import progress
from assay.errors import AssayError
from assay.influence.damping import chosen_damping
from assay.influence.feature_store import FeatureChunk, FeatureStore, digest
from assay.influence.gradient_records import Record, Whole
from assay.influence.gradients import Gradients
from assay.influence.kernels import ComputedGradients
from assay.influence.metric import diagonal
from assay.influence.outputs import Outputs
from assay.influence.parameter_slices import sample_gradients, sample_rows
from assay.influence.primal import Primal
from assay.influence.products import Vectors
from assay.influence.projection import Projection
from assay.influence.projection_sides import sides
from assay.influence.setting import Influence, Setting
from assay.influence.stories import CHANGE
from assay.stories import with_story

PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}
ROWS = 8192  # of a part


@with_story("Projected Gauss–Newton influence", like=CHANGE)
@dataclass(frozen=True)
class ProjectedGaussNewton:
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

    def unfit(self, setting: Setting) -> str | None:
        """Nothing is too large."""
        return None

    def __call__(self, setting: Setting) -> Influence:
        """The scores of all training examples for the targets of all queries."""
        work = ProjectedSystem(self, setting)
        return Influence(work.scores(work.asked()), notes=work.notes)

    def solve(self, setting: Setting, vectors: Vectors) -> Float[np.ndarray, "Q N"]:
        """The scores for the given vectors in place of the gradients of targets."""
        work = ProjectedSystem(self, setting)
        return work.scores(work.given(vectors))

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
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
        self.labels = np.array([row.label for row in setting.train])
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

    def scores(self, asked: Float[Tensor, "Q S"]) -> Float[np.ndarray, "Q N"]:
        """Scores of all training examples for the features of queries."""
        solved = self.primal.solve(asked)
        found = np.zeros((len(asked), len(self.labels)))
        for part in self.kept.all(len(self.parts), self.device):
            scores = self.primal.scores(solved, part.features, self._outputs(part), self.method.leverage)
            found[:, part.indices.cpu().numpy()] = scores.cpu().numpy()
        return found

    def own(self) -> Float[np.ndarray, " N"]:
        """Scores for the loss of each training example itself."""
        primal, found = self.primal, np.zeros(len(self.labels))
        for part in self.kept.all(len(self.parts), self.device):
            own = primal.own(part.features, self._outputs(part), self.method.leverage)
            found[part.indices.cpu().numpy()] = own.cpu().numpy()
        return found

    def asked(self) -> Float[Tensor, "Q S"]:
        """The features of the targets of all queries."""
        return self._features(ComputedGradients.queries(self.setting))[0].squeeze(1)

    def given(self, vectors: Vectors) -> Float[Tensor, "Q S"]:
        """The features of vectors; a missing parameter counts as 0."""
        shapes, count = self.setting.reader.shapes, len(next(iter(vectors.values())))
        own = self.setting.parameters
        records: dict[str, list[Record]] = {
            name: [Whole(vectors[name] if name in vectors else own[name].new_zeros(count, *shape))]
            for name, shape in shapes.items()
        }
        return self.projection(Gradients(records, shapes, count), self._dtype)

    def _part(self, indices: Int[np.ndarray, " n"]) -> FeatureChunk:
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
        logits = torch.zeros(len(source.rows), classes, dtype=self._dtype, device=self.device)
        lower = PRECISIONS[self.method.precision]
        for indices, batch in self.setting.batches(source.rows):
            own = torch.from_numpy(indices).to(self.device)
            with nullcontext() if lower is None else torch.autocast(self.device.type, lower):
                reading = self.setting.reader.read(batch)
                reading = replace(reading, logits=reading.logits.to(self._dtype))
                logits[own] = reading.logits.detach()
                for direction, each in enumerate(source.logit_gradients(indices, batch, reading)):
                    features[own, direction] = projection(reading.gradients(each), self._dtype).to(self._kept_as)
        return features, logits

    def _outputs(self, part: FeatureChunk) -> Outputs:
        indices = part.indices.cpu().numpy()
        return Outputs.of(part.logits, self.labels[indices], self.setting.weights[indices] / len(self.labels))

    @property
    def _dtype(self) -> torch.dtype:
        """The precision in which features are summed."""
        kinds = {each.dtype for each in self.setting.parameters.values()}
        return torch.float64 if torch.float64 in kinds else torch.float32

    @property
    def _kept_as(self) -> torch.dtype:
        return PRECISIONS[self.method.precision] or self._dtype

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
