"""Landmarks as an influence method: which training texts an answer comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Float, Int

from assay.data.batches import Tokenised
from assay.influence import targets
from assay.influence.landmarks.kernels import Kernel, Passage, Represented
from assay.influence.landmarks.model import LandmarkModel, LandmarkRecipe
from assay.influence.landmarks.relevance import relevance
from assay.influence.landmarks.training import train
from assay.influence.setting import Influence, Setting
from assay.models.textmodel import TextModel, groups


def influence(
    model: LandmarkModel,
    texts: Sequence[Passage],
    classes: Int[np.ndarray, " Q"] | None = None,
    target: str = "logit",
    epsilon: float = 0.0,
) -> Influence:
    """Minus each landmark's relevance: the first-order change of each text's target without it.

    Computed by relevance propagation; 0 for texts that are no landmarks. `covered` is the share of the training texts
    that are. The targets are those of the predicted classes, unless others are given.
    """
    likeness = model.likeness(texts)
    with torch.no_grad():
        logits = model.network(likeness)
    asked = logits.argmax(-1) if classes is None else torch.from_numpy(classes).to(logits.device)
    gradients = targets.logit_gradients(target, logits, asked)
    parts = torch.einsum("qc,qcm->qm", gradients, relevance(model.network, likeness, epsilon)).double().cpu().numpy()
    scores = np.zeros((len(texts), model.learnt))
    np.subtract.at(scores.T, model.indices, parts.T)
    share = len(np.unique(model.indices)) / model.learnt
    cancelled = np.abs(parts).sum(1) / np.maximum(np.abs(parts.sum(1)), 1e-12)
    notes = {
        "landmarks": np.unique(model.indices).tolist(),
        "covered": "share of training texts that are landmarks",
        "cancellation": float(np.median(cancelled)),  # 1 where no part is against another
    }
    return Influence(scores, share, notes=notes)


@dataclass(frozen=True)
class Landmarks:
    """Influence of training texts in a kernel-based classifier (Croce et al., 2018, 2019).

    It trains that classifier itself, on the same rows, and answers about it, not about the given network. With
    `distilled` the classifier learns the network's logits instead of the labels, and the notes say on what share of
    rows that it did not learn from, and of the queries, it answers as the network does.
    """

    recipe: LandmarkRecipe = field(default_factory=lambda: LandmarkRecipe((Represented(),), cutoff=1e-2))
    distilled: bool = True
    epsilon: float = 0.0

    def unfit(self, setting: Setting) -> str | None:
        if len(setting.train) < 4:
            return "landmarks need at least four training texts"
        if any(row.candidates is not None for row in setting.train):
            return "landmarks answer with any class, and here only some can be right"
        return None

    def __call__(self, setting: Setting) -> Influence:
        """The scores of the classifier's landmarks, 0 for all other rows; see `influence`."""
        model = self.learnt(setting)
        found = influence(model, setting.queries, setting.classes, setting.target, self.epsilon)
        held = [setting.train[index] for index in model.history["held"]]
        agreement = {
            "agreement": agreement_with(setting.network, model, setting.queries),
            "agreement_held_out": agreement_with(setting.network, model, held),
        }
        return replace(found, notes={**found.notes, **agreement, "about": "a classifier of its own"})

    def learnt(self, setting: Setting) -> LandmarkModel:
        """The landmark classifier, trained on the setting's rows."""
        recipe = replace(self.recipe, kernels=tuple(_bound(each, setting.network) for each in self.recipe.kernels))
        labels = np.array([row.label for row in setting.train])
        known = logits(setting.network, setting.train) if self.distilled else None
        names = [str(number) for number in range(setting.network.classes)]
        return train(recipe, setting.train, labels, names, logits=known, device=str(setting.network.device))


def agreement_with(network: TextModel, model: LandmarkModel, rows: Sequence[Tokenised]) -> float:
    """The share of rows on which classifier and network agree."""
    theirs, ours = logits(network, rows), model.logits(rows).cpu().numpy()
    return float((theirs.argmax(-1) == ours.argmax(-1)).mean())


def _bound(kernel: Kernel, network: TextModel) -> Kernel:
    """The kernel with the network, where it compares representations and has no network yet."""
    return replace(kernel, network=network) if isinstance(kernel, Represented) and kernel.network is None else kernel


@torch.no_grad()
def logits(network: TextModel, rows: Sequence[Tokenised]) -> Float[np.ndarray, "N C"]:
    """The logits of a network for each row."""
    found = np.zeros((len(rows), network.classes))
    for indices, batch in groups(network, rows):
        found[indices] = network(network.embed(batch), batch).logits.double().cpu().numpy()
    return found
