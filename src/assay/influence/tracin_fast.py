"""TracIn for the last layer alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from assay.influence.checkpoints import UNKNOWN_TRAINING
from assay.influence.head import Head, head, headless, read_by_head
from assay.influence.setting import Influence, Setting
from assay.influence.similarity import shares
from assay.influence.stories import CHANGE
from assay.influence.targets import logit_gradients
from assay.influence.tracin import TracIn
from assay.stories import with_story


@with_story("TracIn of the last layer", "Pruthi et al. (2020), section 3.4", like=CHANGE)
@dataclass(frozen=True)
class TracInFast:
    """TracIn for the parameters of the last layer alone; Pruthi et al. (2020), section 3.4.

    What the layers below learnt from an example is not seen: only a small share of the parameters is covered.
    """

    checkpoints: int = 6
    steps: bool = True

    def unfit(self, setting: Setting) -> str | None:
        """Where the training is unknown, or there is no last linear layer."""
        return UNKNOWN_TRAINING if setting.training_run is None else headless(setting)

    def __call__(self, setting: Setting) -> Influence:
        last = head(setting)
        found = np.zeros((len(setting.queries), len(setting.train)))
        for length, each in self._passed(setting):
            asked, learnt = _at_head(each, last, True), _at_head(each, last, False)
            found += length * _products(last, asked, learnt)
        read = sum(setting.parameters[name].numel() for name in last.names)
        covered = read / sum(each.numel() for each in setting.parameters.values())
        notes = {"checkpoints": self.checkpoints, "parameters": f"of the last layer alone: {', '.join(last.names)}"}
        return Influence(found * shares(setting), covered, notes=notes)

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
        """The rise of each loss without the example's own contributions to the last layer."""
        last, found = head(setting), np.zeros(len(setting.train))
        for length, each in self._passed(setting):
            features, own = _at_head(each, last, False)
            found += length * (own**2).sum(1) * ((features**2).sum(1) + (last.bias is not None))
        return np.asarray(found * shares(setting))

    def _passed(self, setting: Setting) -> list[tuple[float, Setting]]:
        method = TracIn(self.checkpoints, steps=self.steps)
        return [(method.length(each), each.setting(setting)) for each in method.passed(setting)]


AtHead = tuple[Float[np.ndarray, "_ F"], Float[np.ndarray, "_ C"]]


def _at_head(setting: Setting, last: Head, asked: bool) -> AtHead:
    """Inputs of the last layer and gradients of its outputs, for the queries or the training rows."""
    rows = setting.queries if asked else setting.train
    features, logits = read_by_head(setting, rows, last.weight)
    classes = setting.classes if asked else np.array([row.label for row in rows])
    target = setting.target if asked else "loss"
    return features, logit_gradients(target, torch.from_numpy(logits), torch.from_numpy(classes)).numpy()


def _products(last: Head, left: AtHead, right: AtHead) -> Float[np.ndarray, "Q N"]:
    """Products of the last layer's gradients."""
    return np.asarray((left[1] @ right[1].T) * (left[0] @ right[0].T + (last.bias is not None)))
