"""Landmark classifier: its recipe, its landmarks and its network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.influence.landmarks.kernels import Kernel, Passage, Spectrum, WordVectors
from assay.influence.landmarks.network import LandmarkNetwork, Layers
from assay.models.config import Training


@dataclass(frozen=True)
class LandmarkRecipe:
    """All options that decide which classifier is trained, besides the texts (Croce et al., 2018)."""

    kernels: tuple[Kernel, ...] = (Spectrum(longest=2),)
    landmarks: int = 200  # of each set
    choice: str = "balanced"  # one of nystrom.CHOICES
    sets: int = 1  # for each kernel; several make an ensemble
    cutoff: float = 1e-3  # directions with a smaller share of the largest eigenvalue are left out; see nystrom.py
    joint: bool = False  # the word vectors of kernels that have any are trained as well
    layers: Layers = field(default_factory=Layers)
    training: Training = field(default_factory=lambda: Training(epochs=60, patience=8))

    def __post_init__(self) -> None:
        if not self.kernels or self.sets < 1:
            raise AssayError("At least one kernel and one set of landmarks are needed.")
        if self.joint and not any(isinstance(kernel, WordVectors) for kernel in self.kernels):
            raise AssayError("Only word vectors can be trained jointly; name a kernel that has them: WordVectors().")


@dataclass(frozen=True)
class LandmarkSet:
    """Some training texts and the kernel that compares with them; `indices` are theirs among the training texts."""

    kernel: Kernel
    indices: Int[np.ndarray, " M"]
    texts: tuple[Passage, ...]
    labels: Int[np.ndarray, " M"]


@dataclass(frozen=True)
class LandmarkModel:
    """Sets of landmarks, and the network over similarities to them; `learnt` is the number of training texts."""

    sets: tuple[LandmarkSet, ...]
    network: LandmarkNetwork
    classes: tuple[str, ...]
    learnt: int
    history: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def indices(self) -> Int[np.ndarray, " M"]:
        """The index of each landmark among the training texts; one in several sets appears several times."""
        return np.concatenate([each.indices for each in self.sets])

    @cached_property
    def labels(self) -> Int[np.ndarray, " M"]:
        return np.concatenate([each.labels for each in self.sets])

    @cached_property
    def texts(self) -> tuple[Passage, ...]:
        return tuple(text for each in self.sets for text in each.texts)

    def likeness(self, texts: Sequence[Passage]) -> Float[Tensor, "N M"]:
        """The similarity of each text to each landmark."""
        parts = [torch.from_numpy(each.kernel(texts, each.texts)) for each in self.sets]
        return torch.cat(parts, dim=1).to(self.network.projections[0])

    @torch.no_grad()
    def logits(self, texts: Sequence[Passage]) -> Float[Tensor, "N C"]:
        found: Tensor = self.network(self.likeness(texts))
        return found
