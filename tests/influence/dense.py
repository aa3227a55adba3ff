"""Small settings, and what is asked of them by dense matrices over all parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from assay.data.batches import Tokenised, collate
from assay.influence.setting import Setting
from assay.models.textmodel import TextModel
from assay.models.walk import UnfusedOps
from tests import builders

SIZES: dict[str, object] = {"embedding": 3, "hidden": 4, "alignment_size": 3}


def rows(count: int, seed: int = 0, classes: int = 2, longest: int = 8) -> list[Tokenised]:
    """Random texts of one word and more."""
    random = torch.Generator().manual_seed(seed)
    made = []
    for index in range(count):
        length = int(torch.randint(1, longest, (1,), generator=random))
        ids = torch.randint(4, builders.WORDS, (length,), generator=random)
        nothing = torch.zeros(length, dtype=torch.long)
        made.append(Tokenised(index, ids, torch.zeros(length, 2, dtype=torch.int32), nothing, index % classes))
    return made


def setting(encoder: str = "lstm", classes: int = 2, target: str = "margin", count: int = 12) -> Setting:
    """A random network that was never trained; some examples weigh more, and embeddings do not decay."""
    network = builders.model(encoder=encoder, classes=classes, **SIZES)
    train, queries = rows(count, 0, classes), rows(3, 1, classes)
    found = Setting.of(network, train, queries, target)
    decay = {name: 0.0 if name.startswith("embedding") else 2e-3 for name in found.parameters}
    return Setting(network, train, queries, found.classes, target, np.linspace(0.5, 2, count), decay)


@dataclass(frozen=True)
class Dense:
    """Jacobians and the curvature of a setting, by one backward pass for each logit of each example."""

    setting: Setting

    @cached_property
    def jacobian(self) -> Tensor:
        """[N, C, P]."""
        return torch.stack([_jacobian(self.setting.network, row) for row in self.setting.train])

    @cached_property
    def probabilities(self) -> Tensor:
        return torch.cat([_logits(self.setting.network, row) for row in self.setting.train]).detach().softmax(-1)

    @cached_property
    def gradients(self) -> Tensor:
        """Of the losses: [N, P]."""
        labels = F.one_hot(torch.tensor([row.label for row in self.setting.train]), self.probabilities.shape[1])
        return torch.einsum("ncp,nc->np", self.jacobian, self.probabilities - labels)

    @cached_property
    def asked(self) -> Tensor:
        """The gradients of the targets: [Q, P]."""
        found = []
        for index, row in enumerate(self.setting.queries):
            reading = self.setting.reader.read(collate([row]))
            gradients = self.setting.query_logit_gradients(np.array([index]), reading)
            found.append(gradients[0].detach() @ _jacobian(self.setting.network, row))
        return torch.stack(found)

    @property
    def shares(self) -> Tensor:
        return torch.from_numpy(self.setting.weights) / len(self.setting.train)

    def piece(self, index: int) -> Tensor:
        """The curvature of the loss of one example."""
        own = self.probabilities[index]
        jacobian = self.jacobian[index]
        return self.shares[index] * jacobian.T @ (torch.diag(own) - own[:, None] * own) @ jacobian

    def curvature(self, damping: float, metric: Tensor | float = 1.0) -> Tensor:
        """The Gauss–Newton curvature [P, P], with L2 and damping."""
        sizes = {name: each.numel() for name, each in self.setting.parameters.items()}
        decay = torch.cat(
            [torch.full((n,), self.setting.decay[name], dtype=torch.float64) for name, n in sizes.items()]
        )
        own = torch.diag_embed(self.probabilities) - self.probabilities[:, :, None] * self.probabilities[:, None]
        half = (self.shares[:, None, None] * own @ self.jacobian).flatten(0, 1)
        whole = self.jacobian.flatten(0, 1).T @ half
        return whole + torch.diag(decay + damping * metric)

    def scores(self, curvature: Tensor, asked: Tensor | None = None) -> np.ndarray:
        """By the inverse."""
        vectors = self.asked if asked is None else asked
        return (vectors @ torch.linalg.solve(curvature, self.gradients.T) * self.shares).numpy()

    def removed(self, curvature: Tensor, asked: Tensor, indices: Sequence[int]) -> np.ndarray:
        """Of some examples, by the inverse of the curvature without each."""
        found = [
            asked @ torch.linalg.solve(curvature - self.piece(index), self.gradients[index]) * self.shares[index]
            for index in indices
        ]
        return torch.stack(found, dim=-1).numpy()


def _logits(network: TextModel, row: Tokenised) -> Tensor:
    batch = collate([row])
    logits: Tensor = network(network.embed(batch), batch).logits
    return logits


def _jacobian(network: TextModel, row: Tokenised) -> Tensor:
    parameters = list(network.parameters())
    with UnfusedOps():
        logits = _logits(network, row)[0]
    found = [torch.autograd.grad(each, parameters, retain_graph=True, allow_unused=True) for each in logits]
    return torch.stack(
        [
            torch.cat(
                [(torch.zeros_like(p) if g is None else g).flatten() for g, p in zip(each, parameters, strict=True)]
            )
            for each in found
        ]
    )
