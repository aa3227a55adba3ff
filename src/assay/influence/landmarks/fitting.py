"""Training over similarities to landmarks, with early stopping."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from assay import progress
from assay.influence.landmarks.network import LandmarkNetwork, TrainedVectors
from assay.models.config import Training

Goals = Shaped[Tensor, "N ..."]
"""The right class of each text, [N], or the logits that are to be learnt, [N, C]."""


class LikenessLayer(nn.Module):
    """Similarity of texts to the landmarks of all sets: precomputed, or from word vectors that are trained.

    Texts are given by their indices.

    Texts are named by their indices.
    """

    def __init__(self, parts: Sequence[Float[Tensor, "N _"] | tuple[TrainedVectors, Tensor, Tensor]]) -> None:
        super().__init__()
        self.known = [None if isinstance(part, tuple) else part for part in parts]
        trained = [part for part in parts if isinstance(part, tuple)]
        self.trained = nn.ModuleList([part[0] for part in trained])
        self.texts = [(ids, mask) for _, ids, mask in trained]

    def forward(self, indices: Int[Tensor, " B"]) -> Float[Tensor, "B M"]:
        made = iter(
            [each(ids[indices], mask[indices]) for each, (ids, mask) in zip(self.trained, self.texts, strict=True)]
        )
        return torch.cat([next(made) if each is None else each[indices] for each in self.known], dim=1)


def fit(
    network: LandmarkNetwork, front: LikenessLayer, goals: Goals, dev: Int[np.ndarray, " D"], training: Training
) -> dict[str, object]:
    """Trains network and word vectors in place on all indices but `dev`, and restores the weights of the best epoch."""
    learner = nn.ModuleDict({"network": network, "front": front})
    train = np.setdiff1d(np.arange(len(goals)), dev)
    weights = _class_weights(goals[train], training)
    parameters = [each for each in learner.parameters() if each.requires_grad]
    optimiser = torch.optim.Adam(parameters, lr=training.learning_rate, weight_decay=training.decay)
    best, best_epoch, best_score, losses = _copied(learner), 0, (-np.inf, -np.inf), []
    with progress.bar("status") as shown, torch.random.fork_rng():
        torch.manual_seed(training.seed)
        task = shown.add_task("landmarks", total=training.epochs, status="")
        for epoch in range(1, training.epochs + 1):
            learner.train()
            order = torch.from_numpy(np.random.default_rng((training.seed, epoch)).permutation(train)).to(goals.device)
            loss = torch.zeros((), device=goals.device)
            for indices in order.split(training.batch_size):  # type: ignore[no-untyped-call]
                optimiser.zero_grad()
                part = lost(network(front(indices)), goals[indices], weights)
                part.backward()  # type: ignore[no-untyped-call]
                if training.clip is not None:
                    nn.utils.clip_grad_norm_(parameters, training.clip)
                optimiser.step()
                loss += part.detach() * len(indices) / len(train)
            losses.append(float(loss))
            score = _judged(learner, goals, dev)
            if score > best_score:
                best, best_epoch, best_score = _copied(learner), epoch, score
            shown.update(task, advance=1, status=f"loss {losses[-1]:.3f}  dev {score[0]:.3f}")
            if epoch - best_epoch >= training.patience:
                break
    learner.load_state_dict(best)
    learner.eval()
    return {"epochs": len(losses), "best_epoch": best_epoch, "dev_score": best_score[0], "losses": losses}


def lost(logits: Float[Tensor, "B C"], goals: Goals, weights: Float[Tensor, " C"] | None = None) -> Float[Tensor, ""]:
    """The loss: cross-entropy of classes, or the mean squared error of centred logits."""
    if goals.dim() == 1:
        return F.cross_entropy(logits, goals, weights)
    return F.mse_loss(logits - logits.mean(-1, keepdim=True), goals - goals.mean(-1, keepdim=True))


@torch.no_grad()
def _judged(learner: nn.ModuleDict, goals: Goals, dev: Int[np.ndarray, " D"]) -> tuple[float, float]:
    """Accuracy (or agreement with the logits to be learnt) on dev texts, and minus the loss."""
    learner.eval()
    indices = torch.from_numpy(dev).to(goals.device)
    logits = learner["network"](learner["front"](indices))
    loss = -float(lost(logits, goals[indices]))
    if goals.dim() > 1:
        return loss, loss
    return float((logits.argmax(-1) == goals[indices]).double().mean()), loss


def _class_weights(goals: Goals, training: Training) -> Float[Tensor, " C"] | None:
    if goals.dim() > 1 or not training.balanced:
        return None
    counts = torch.bincount(goals).clamp(min=1).float()
    return counts.sum() / (len(counts) * counts)


def _copied(learner: nn.Module) -> dict[str, Tensor]:
    return {name: each.clone() for name, each in learner.state_dict().items()}
