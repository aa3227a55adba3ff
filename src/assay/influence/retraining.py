"""What really happens when examples are removed: the training gone through again without them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
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
from assay.influence import stacked
from assay.influence.course import Course
from assay.influence.setting import Setting
from assay.influence.targets import target
from assay.models import store
from assay.models.network import Network
from assay.models.recipes import drawn
from assay.models.textmodel import TextModel

AT_ONCE = 16  # networks of ours that learn together


def subsets(count: int, rows: int, share: float, seed: int = 0) -> Bool[np.ndarray, "S N"]:
    """Random sets of examples to remove, each of the same size."""
    size = round(share * rows)
    if not 0 < size < rows:
        raise AssayError(f"A share of {share:g} of {rows} examples leaves nothing to remove or to learn from.")
    random = np.random.default_rng(seed)
    removed = np.zeros((count, rows), dtype=bool)
    for own in removed:
        own[random.permutation(rows)[:size]] = True
    return removed


def seeded(course: Course, seed: int) -> Course:
    """The same training from other random weights, in another order and with other dropout."""
    network = course.network
    if not isinstance(network, Network):
        raise AssayError("Only a network that was made here can be trained from other random weights.")
    table = network.embedding.weight
    other = drawn(network.architecture, len(table), network.classes, seed)
    if network.architecture.vectors != "random":
        other.embedding.weight.data.copy_(table.data)
    other.embedding.weight.requires_grad_(table.requires_grad)
    return replace(course, network=other.to(table), training=replace(course.training, seed=seed))


@dataclass(frozen=True)
class Retrained:
    """The targets of all queries after trainings without some examples; what is kept in a folder is not done again."""

    setting: Setting
    folder: Path | None = None
    at_once: int | None = None  # trainings; None: some for a network of ours, one by one for others

    @property
    def course(self) -> Course:
        course = self.setting.course
        if course is None:
            raise AssayError("How the model was trained is not known, so it cannot be trained without some examples.")
        if len(course.rows) != len(self.setting.train):
            raise AssayError("The model was trained on other examples than those that are asked about.")
        return course

    def whole(self) -> Float[np.ndarray, " Q"]:
        """The targets when nothing is removed."""
        return np.asarray(self.targets(np.zeros((1, len(self.course.rows)), dtype=bool))[0])

    def alone(self, rows: Sequence[int]) -> Float[np.ndarray, "R Q"]:
        """How the targets change when each of some examples is removed alone."""
        removed = np.zeros((len(rows), len(self.course.rows)), dtype=bool)
        removed[np.arange(len(rows)), rows] = True
        return np.asarray(self.targets(removed) - self.whole())

    def targets(self, removed: Bool[np.ndarray, "S N"]) -> Float[np.ndarray, "S Q"]:
        """The targets after each training."""
        found = np.full((len(removed), len(self.setting.queries)), np.nan)
        paths = self._paths(removed)
        waiting = []
        for place, path in enumerate(paths):
            if path is not None and path.exists():
                found[place] = json.loads(path.read_text(encoding="utf-8"))["targets"]
            else:
                waiting.append(place)
        together = isinstance(self.course.network, Network) and not self.course.training.mlm
        step = self.at_once or (AT_ONCE if together else 1)
        with progress.bar() as shown:
            task = shown.add_task(
                "trainings without some examples", total=len(removed), completed=len(paths) - len(waiting)
            )
            for start in range(0, len(waiting), step):
                places = waiting[start : start + step]
                found[places] = self._trained(1.0 - removed[places])
                for place in places:
                    if (path := paths[place]) is not None:
                        kept = {"removed": int(removed[place].sum()), "targets": found[place].tolist()}
                        write_text(path, json.dumps(kept) + "\n")
                shown.advance(task, len(places))
        return found

    def _trained(self, shares: Float[np.ndarray, "S N"]) -> Float[np.ndarray, "S Q"]:
        if len(shares) > 1:
            return self._asked(stacked.learn(self.course, shares))
        return measured(self.course.learn(shares[0]), self.setting)[None]

    def _asked(self, networks: stacked.Stacked) -> Float[np.ndarray, "S Q"]:
        parts = np.zeros((networks.count, len(self.setting.queries)))
        for places, batch in self.setting.batches(self.setting.queries):
            for own, logits in zip(parts, networks.logits(batch), strict=True):
                own[places] = _targets(self.setting, places, logits)
        return parts

    def _paths(self, removed: Bool[np.ndarray, "S N"]) -> list[Path | None]:
        """Where the targets after each training are kept; the name stands for all that decides them."""
        if self.folder is None:
            return [None] * len(removed)
        identity = self._identity()
        names = [hashlib.sha256(identity + np.packbits(own).tobytes()).hexdigest()[:32] for own in removed]
        return [self.folder / f"{name}.json" for name in names]

    def _identity(self) -> bytes:
        course, setting = self.course, self.setting
        about: dict[str, Any] = {
            "network": store.fingerprint(course.network),
            "training": asdict(course.training),
            "lesson": course.lesson.identity,
            "epochs": course.epochs,
            "rows": [_told(row) for row in course.rows],
            "queries": [_told(row) for row in setting.queries],
            "classes": setting.classes.tolist(),
            "target": setting.target,
        }
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).digest()


@torch.no_grad()
def measured(network: TextModel, setting: Setting) -> Float[np.ndarray, " Q"]:
    """The targets of all queries in another network."""
    found = np.zeros(len(setting.queries))
    for places, batch in setting.batches(setting.queries):
        found[places] = _targets(setting, places, network(network.embed(batch), batch).logits)
    return found


def _targets(setting: Setting, places: np.ndarray, logits: Tensor) -> Float[np.ndarray, " n"]:
    classes = torch.from_numpy(setting.classes[places]).to(logits.device)
    return target(setting.target)(logits.double(), classes).cpu().numpy()


def _told(row: Tokenised) -> list[Any]:
    query = None if row.query is None else row.query.tolist()
    return [row.ids.tolist(), row.label, row.sentences.tolist(), query, row.candidates]
