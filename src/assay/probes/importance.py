"""Head importance and pruning: gradients by head gates, and accuracy as heads are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay.data.batches import Tokenised, by_tokens, collate
from assay.errors import AssayError
from assay.intervene.edits import Prune
from assay.metrics.shares import shares
from assay.models import budget
from assay.models.hf_models import Pretrained
from assay.models.textmodel import predict
from assay.types import Batch, Edit

Ticked = Callable[[float], None]
Heads = Float[np.ndarray, "L H"]


@dataclass(frozen=True)
class Pruning:
    """Options: the number of `steps` in which all heads are removed, and of random orders beside the two sorted ones.

    Where it is `normalised`, the importance of a head is divided by the norm of those in its layer, as Michel et al.
    (2019) do before they compare heads of different layers.
    """

    steps: int = 10
    draws: int = 3
    normalised: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.draws < 1:
            raise AssayError("Heads are pruned in at least one step, beside at least one random order.")


@dataclass(frozen=True, eq=False)
class Gated:
    """Edit that multiplies each head's attention weights by a gate, one set of gates an example."""

    gates: Float[Tensor, "B L H"]

    def at(self, layer: int) -> Edit:
        return partial(_times, self.gates[:, layer])

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        """Unchanged: attention that pools has no heads."""
        return weights


def _times(gates: Tensor, weights: Float[Tensor, "B H *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B H *Q T"]:
    # where positions may attend to different others, each position of an example comes as a row of its own
    rows = gates.repeat_interleave(len(weights) // len(gates), dim=0).to(weights)
    return weights * rows.reshape(*rows.shape, *[1] * (weights.ndim - 2))


def importance(
    network: Pretrained, rows: Sequence[Tokenised], normalised: bool = False, ticked: Ticked = lambda share: None
) -> Heads:
    """The mean over texts of |∂L/∂ξ_h|, ξ_h being a gate on the weights of head h; Michel et al. (2019), equation 2.

    Every text has gates of its own, so one backward pass gives the derivatives of all heads for all texts of a batch.
    """
    heads = int(network.inner.config.num_attention_heads)
    total = np.zeros((network.layers, heads))
    was_training = network.training
    network.eval()
    for batch in _batches(network, rows):
        total += gate_gradients(network, batch, heads).abs().sum(0).double().cpu().numpy()
        ticked(len(batch) / len(rows))
    network.train(was_training)
    mean = total / len(rows)
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-300) if normalised else mean


def gate_gradients(network: Pretrained, batch: Batch, heads: int) -> Float[Tensor, "B L H"]:
    """The gradient of each text's cross-entropy by each head's gate, where all gates are 1."""
    with torch.enable_grad():
        x = network.embed(batch).detach()
        precise = x.dtype if x.dtype.itemsize >= 4 else torch.float32
        gates = torch.ones(len(batch), network.layers, heads, device=x.device, dtype=precise, requires_grad=True)
        logits = network(x, batch, Gated(gates)).logits
        loss = F.cross_entropy(logits.to(precise), batch.labels, reduction="sum")
        (found,) = torch.autograd.grad(loss, gates)
    return found


def _batches(network: Pretrained, rows: Sequence[Tokenised]) -> Iterator[Batch]:
    lengths = np.array([len(row.ids) for row in rows])
    for group in by_tokens(lengths, budget.room(network.device, "head gradients")):
        yield collate([rows[index] for index in group], network.classes).to(network.device)


def right(
    network: Pretrained, rows: Sequence[Tokenised], pruned: Int[np.ndarray, " k"], heads: int
) -> Float[np.ndarray, " N"]:
    """1 for each text that is classified correctly without the pruned heads, else 0."""
    edit = Prune([divmod(int(index), heads) for index in pruned])
    answers = predict(network, rows, lambda batch: edit).argmax(-1)
    return np.asarray(answers == np.array([row.label for row in rows]), dtype=np.float64)


def curve(
    network: Pretrained,
    rows: Sequence[Tokenised],
    found: Heads,
    options: Pruning = Pruning(),  # noqa: B008
    ticked: Ticked = lambda share: None,
) -> list[dict[str, float | int]]:
    """Accuracy as heads are removed: least important first, in random orders, and most important first.

    The interval is that of the first, over texts; `random` is the mean over the draws.
    """
    size, heads = found.size, found.shape[1]
    counts = [round(step * size / options.steps) for step in range(options.steps + 1)]
    least = np.argsort(found.ravel(), kind="stable")
    generator = np.random.default_rng(options.seed)
    orders = [least, np.flip(least).copy(), *(generator.permutation(size) for _ in range(options.draws))]
    points = []
    for count in counts:
        first = right(network, rows, least[:count], heads)
        # without any head or without all, the order makes no difference
        same = count in (0, size)
        others = [first if same else right(network, rows, order[:count], heads) for order in orders[1:]]
        interval = shares(first[:, None])
        points.append(
            {
                "pruned": count,
                "share": count / size,
                "accuracy": float(first.mean()),
                "low": float(interval.low[0]),
                "high": float(interval.high[0]),
                "random": float(np.mean(others[1:])),
                "reverse": float(others[0].mean()),
            }
        )
        ticked(1 / len(counts))
    return points


def pruned(
    network: Pretrained,
    dev: Sequence[Tokenised],
    test: Sequence[Tokenised],
    options: Pruning = Pruning(),  # noqa: B008
    ticked: Ticked = lambda share: None,
) -> dict[str, Any]:
    """The importance of every head on the dev texts, and the accuracy on the test texts as heads are removed by it."""
    if not dev or not test:
        raise AssayError("Head importance needs dev and test texts that fit into the model; this corpus has none.")
    found = importance(network, dev, options.normalised, lambda share: ticked(0.3 * share))
    points = curve(network, test, found, options, lambda share: ticked(0.7 * share))
    labels = np.array([row.label for row in test])
    return {
        "n": len(test),
        "n_dev": len(dev),
        "importance": found.tolist(),
        "curve": points,
        "accuracy": points[0]["accuracy"],
        "majority": float(np.bincount(labels).max() / len(labels)),
        "draws": options.draws,
        "normalised": options.normalised,
    }
