"""Each step as a plain loop over examples, the way the published code does it: what ours is measured against."""

from __future__ import annotations

import torch
from scipy.stats import kendalltau

from assay.intervene.adversary import Search
from assay.models.network import Classifier
from assay.types import Batch, token_logits


def singles(batch: Batch) -> list[Batch]:
    """Each example as a batch of its own, without padding."""
    rows = []
    for row, length in enumerate(batch.lengths.tolist()):
        one = batch[row : row + 1]
        rows.append(Batch(one.ids[:, :length], one.mask[:, :length], one.labels))
    return rows


def gradient(model: Classifier, batch: Batch) -> None:
    for one in singles(batch):
        x = model.embed(one).detach().requires_grad_()
        probability = model(x, one, lambda weights, mask: weights.detach()).probabilities[0, 0]
        (torch.autograd.grad(probability, x)[0] * x).sum(-1).abs()


@torch.no_grad()
def leave_one_out(model: Classifier, batch: Batch) -> None:
    for one in singles(batch):
        whole = model(model.embed(one), one).probabilities
        for place in range(one.ids.shape[1]):
            kept = torch.arange(one.ids.shape[1]) != place
            shorter = Batch(one.ids[:, kept], one.mask[:, kept], one.labels)
            (model(model.embed(shorter), shorter).probabilities - whole).abs().sum() / 2


@torch.no_grad()
def permutation(model: Classifier, batch: Batch, shuffles: int = 100) -> None:
    for one in singles(batch):
        states = model.states(model.embed(one), one)
        weights = model.attend(states, one)
        whole = model.decode(states, weights).softmax(-1)
        moved = []
        for _ in range(shuffles):
            shuffled = weights[:, torch.randperm(weights.shape[1])]
            moved.append((model.decode(states, shuffled).softmax(-1) - whole).abs().sum() / 2)
        torch.stack(moved).median()


def adversary(model: Classifier, batch: Batch) -> None:
    for one in singles(batch):
        searched(model, one)


def searched(model: Classifier, batch: Batch) -> None:
    """The search on all examples of a batch at once."""
    with torch.no_grad():
        states = model.states(model.embed(batch), batch)
        values, weights = token_logits(model, states), model.attend(states, batch)
    Search()(values, weights, batch.mask)


def dependence(model: Classifier, batch: Batch) -> None:
    for one in singles(batch):
        x = model.embed(one).detach().requires_grad_()
        for size in model.states(x, one)[0].norm(dim=-1):
            torch.autograd.grad(size, x, retain_graph=True)[0].norm(dim=-1)


def kendall(one: torch.Tensor, other: torch.Tensor, batch: Batch) -> None:
    for row, length in enumerate(batch.lengths.tolist()):
        kendalltau(one[row, :length], other[row, :length])
