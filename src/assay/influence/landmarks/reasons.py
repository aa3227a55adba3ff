"""Reasons: the landmarks that an answer comes from, and those that speak against it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from assay.influence.landmarks.model import LandmarkModel
from assay.influence.landmarks.relevance import contrast, relevance


@dataclass(frozen=True)
class Reasons:
    """Indices of training texts, the strongest first."""

    alike: list[int]  # of the answer's class, more alike than usual, for the answer
    unlike: list[int]  # of another class, less alike than usual, and so for the answer
    against: list[int]  # of another class, more alike than usual, against the answer


def reasons(model: LandmarkModel, likeness: Float[Tensor, "B M"], answers: Int[Tensor, " B"]) -> list[Reasons]:
    """The landmarks that support each text's answer and no other; those in several sets are summed."""
    # differs from Croce et al. (2019), who say of all that speak against an answer that the text does not recall them:
    # it is like these, and that counts against it.
    own, first, columns = np.unique(model.indices, return_index=True, return_inverse=True)
    parts = contrast(relevance(model.network, likeness), answers.to(likeness.device)).double().cpu().numpy()
    more = (likeness - model.network.usual).double().cpu().numpy()
    total = _summed(parts, columns, len(own))
    nearer = _summed(more, columns, len(own))
    same = model.labels[first] == answers.cpu().numpy()[:, None]
    found = []
    for part, order in enumerate(np.argsort(-total, axis=1, kind="stable")):
        speaks, near, known = (each[part][order] for each in (total, nearer, same))
        alike = own[order[(speaks > 0) & (near > 0) & known]]
        unlike = own[order[(speaks > 0) & (near < 0) & ~known]]
        against = own[order[(speaks < 0) & (near > 0) & ~known]][::-1]
        found.append(Reasons(alike.tolist(), unlike.tolist(), against.tolist()))
    return found


def _summed(values: Float[np.ndarray, "B M"], columns: Int[np.ndarray, " M"], count: int) -> Float[np.ndarray, "B N"]:
    """Sums over the columns of each landmark."""
    found = np.zeros((count, len(values)))
    np.add.at(found, columns, values.T)
    return found.T
