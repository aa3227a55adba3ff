"""Ground truth of influence: the training repeated without some examples."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay import progress
from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.files import write_text
from assay.influence.replay import learn_together
from assay.influence.setting import Setting
from assay.influence.targets import target
from assay.influence.training_run import TrainingRun
from assay.models import store
from assay.models.network import Network
from assay.models.recipes import drawn
from assay.models.textmodel import TextModel
from assay.types import Batch

AT_ONCE = 16  # networks of ours that learn together


def subsets(count: int, rows: int, share: float, seed: int = 0) -> Bool[np.ndarray, "S N"]:
    """Random subsets of examples to remove, all of one size."""
    size = round(share * rows)
    if not 0 < size < rows:
        raise AssayError(f"A share of {share:g} of {rows} examples leaves nothing to remove or to learn from.")
    random = np.random.default_rng(seed)
    removed = np.zeros((count, rows), dtype=bool)
    for own in removed:
        own[random.permutation(rows)[:size]] = True
    return removed


def seeded(training_run: TrainingRun, seed: int) -> TrainingRun:
    """The same training with another seed: other initial weights, order and dropout."""
    network = training_run.network
    if not isinstance(network, Network):
        raise AssayError("Only a network that was made here can be trained from other random weights.")
    table = network.embedding.weight
    other = drawn(network.architecture, len(table), network.classes, seed)
    if network.architecture.vectors != "random":
        other.embedding.weight.data.copy_(table.data)
    other.embedding.weight.requires_grad_(table.requires_grad)
    return replace(training_run, network=other.to(table), training=replace(training_run.training, seed=seed))


@dataclass(frozen=True)
class Retrained:
    """The targets of all queries after trainings without some examples, cached in a folder."""

    setting: Setting
    folder: Path | None = None
    at_once: int | None = None  # trainings; None: some for a network of ours, one by one for others

    @property
    def training_run(self) -> TrainingRun:
        return self.setting.repeatable_training()

    def whole(self) -> Float[np.ndarray, " Q"]:
        """The targets with nothing removed."""
        return np.asarray(self.targets(np.zeros((1, len(self.training_run.rows)), dtype=bool))[0])

    def alone(self, rows: Sequence[int]) -> Float[np.ndarray, "R Q"]:
        """The change of the targets by the removal of each of some examples alone."""
        removed = np.zeros((len(rows), len(self.training_run.rows)), dtype=bool)
        removed[np.arange(len(rows)), rows] = True
        return np.asarray(self.targets(removed) - self.whole())

    def targets(self, removed: Bool[np.ndarray, "S N"]) -> Float[np.ndarray, "S Q"]:
        """The targets after the training without each set of examples."""
        found = np.full((len(removed), len(self.setting.queries)), np.nan)
        paths = self._paths(removed)
        waiting = []
        for index, path in enumerate(paths):
            if path is not None and path.exists():
                found[index] = json.loads(path.read_text(encoding="utf-8"))["targets"]
            else:
                waiting.append(index)
        together = isinstance(self.training_run.network, Network) and not self.training_run.training.mlm
        step = self.at_once or (AT_ONCE if together else 1)
        with progress.bar() as shown:
            task = shown.add_task(
                "trainings without some examples", total=len(removed), completed=len(paths) - len(waiting)
            )
            for start in range(0, len(waiting), step):
                indices = waiting[start : start + step]
                found[indices] = self._trained(1.0 - removed[indices])
                for index in indices:
                    if (path := paths[index]) is not None:
                        kept = {"removed": int(removed[index].sum()), "targets": found[index].tolist()}
                        write_text(path, json.dumps(kept) + "\n")
                shown.advance(task, len(indices))
        return found

    def _trained(self, shares: Float[np.ndarray, "S N"]) -> Float[np.ndarray, "S Q"]:
        if len(shares) > 1:
            return _targets(self.setting, learn_together(self.training_run, shares).logits, len(shares))
        return measured(self.training_run.learn(shares[0]), self.setting)[None]

    def _paths(self, removed: Bool[np.ndarray, "S N"]) -> list[Path | None]:
        """Cache files of the trainings; each name is a hash of all that decides the result."""
        if self.folder is None:
            return [None] * len(removed)
        identity = self._identity()
        names = [hashlib.sha256(identity + np.packbits(own).tobytes()).hexdigest()[:32] for own in removed]
        return [self.folder / f"{name}.json" for name in names]

    def _identity(self) -> bytes:
        training_run, setting = self.training_run, self.setting
        about: dict[str, Any] = {
            "network": store.fingerprint(training_run.network),
            "training": asdict(training_run.training),
            "lesson": training_run.lesson.identity,
            "epochs": training_run.epochs,
            "rows": [_values(row) for row in training_run.rows],
            "queries": [_values(row) for row in setting.queries],
            "classes": setting.classes.tolist(),
            "target": setting.target,
        }
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).digest()


def measured(network: TextModel, setting: Setting) -> Float[np.ndarray, " Q"]:
    """The targets of all queries in another network."""
    found = _targets(setting, lambda batch: network(network.embed(batch), batch).logits[None], 1)
    return np.asarray(found[0])


@torch.no_grad()
def _targets(setting: Setting, read: Callable[[Batch], Float[Tensor, "S B C"]], count: int) -> Float[np.ndarray, "S Q"]:
    """The targets of all queries in so many networks, by their logits of a batch."""
    found = np.zeros((count, len(setting.queries)))
    for indices, batch in setting.batches(setting.queries):
        logits = read(batch).double()
        classes = torch.from_numpy(setting.classes[indices]).to(logits.device).repeat(count)
        found[:, indices] = target(setting.target)(logits.flatten(0, 1), classes).view(count, -1).cpu().numpy()
    return found


def _values(row: Tokenised) -> list[Any]:
    query = None if row.query is None else row.query.tolist()
    return [row.ids.tolist(), row.label, row.sentences.tolist(), query, row.candidates]
