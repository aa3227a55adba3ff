"""Methods of the last linear layer: representer points, and TracIn for its parameters alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay import progress
from assay.errors import AssayError
from assay.influence.gradients import Gradients, Reading
from assay.influence.setting import Influence, PerExample, Scores, Setting, Texts
from assay.influence.solvers import ConjugateGradients
from assay.influence.stories import CHANGE, ORDER
from assay.influence.targets import logit_gradients
from assay.influence.tracin import passed
from assay.stories import with_story

HEADLESS = "the logits of this model are no linear map of what comes before"


@dataclass(frozen=True)
class Head:
    """Parameter names of the linear layer that makes the logits."""

    weight: str
    bias: str | None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.weight,) if self.bias is None else (self.weight, self.bias)

    def covered(self, setting: Setting) -> float:
        """The share of the parameters that the layer has."""
        return sum(setting.parameters[name].numel() for name in self.names) / setting.size


def head(setting: Setting) -> Head:
    """The last layer, found by name and checked on some training rows."""
    found = _found(setting)
    if found is None:
        raise AssayError(f"This method cannot be used: {HEADLESS}.")
    return found


def headless(setting: Setting) -> str | None:
    """Why there is no last layer, as the end of a sentence, or None."""
    return None if _found(setting) is not None else HEADLESS


def _found(setting: Setting) -> Head | None:
    parameters, every = setting.parameters, dict(setting.network.named_parameters())
    _, batch = next(iter(setting.batches(setting.train[:3])))
    reading = setting.reader.read(batch)
    for weight, values in reversed(parameters.items()):
        if values.dim() != 2 or len(values) != setting.network.classes:
            continue
        bias = weight.removesuffix("weight") + "bias"
        logits = _read(reading, weight) @ values.detach().T + (every[bias].detach() if bias in every else 0)
        tolerance = 1e-4 if logits.dtype.itemsize >= 4 else 0.1
        if torch.allclose(logits, reading.logits.detach(), rtol=tolerance, atol=tolerance):
            return Head(weight, bias if bias in parameters else None)
    return None


def _read(reading: Reading, weight: str) -> Float[Tensor, "B F"]:
    """The inputs of the layer, as the derivative of the first logit by the first row of the weights."""
    logit_gradients = torch.zeros_like(reading.logits)
    logit_gradients[:, 0] = 1
    if weight in reading.unbatched:
        found = reading.gradients(logit_gradients)
    else:  # the backward pass ends at the layer
        parameter = dict(reading.reader.network.named_parameters())[weight]
        with reading.tape.recording() as records:
            torch.autograd.grad(
                (reading.logits * logit_gradients).sum(), parameter, retain_graph=True, allow_unused=True
            )
        if weight not in records:
            return logit_gradients.new_zeros(len(logit_gradients), parameter.shape[1])
        found = Gradients(records, reading.reader.shapes, len(logit_gradients))
    return found.dense(weight).view(len(logit_gradients), logit_gradients.shape[1], -1)[:, 0]


def read_by_head(
    setting: Setting, rows: Texts, weight: str
) -> tuple[Float[np.ndarray, "N F"], Float[np.ndarray, "N C"]]:
    """The inputs of the last layer for each row, and the logits."""
    features = np.zeros((len(rows), setting.parameters[weight].shape[1]))
    logits = np.zeros((len(rows), setting.network.classes))
    for indices, batch in setting.batches(rows):
        reading = setting.reader.read(batch)
        features[indices] = _read(reading, weight).double().cpu().numpy()
        logits[indices] = reading.logits.detach().double().cpu().numpy()
    return features, logits


STEPS = 100  # of Newton's method; about ten are needed


@with_story("Representer points", "Yeh et al. (2018), theorem 3.1", like=CHANGE)
@dataclass(frozen=True)
class Representer:
    """Refits the last layer with L2, so that each logit is Σ_i α_i k(x_i, x); Yeh et al. (2018), theorem 3.1.

    Without the example its term is gone, as if all other α stayed: the change of a logit is −α_i k(x_i, x), that of
    another target follows from its gradient. differs from the paper: the layer learns the labels, not the model's
    answers.
    """

    strength: float = 1e-3  # of L2, on bias and weights alike

    def __post_init__(self) -> None:
        if not self.strength > 0:
            raise AssayError(f"The strength of L2 must be above 0, got {self.strength:g}.")

    def unfit(self, setting: Setting) -> str | None:
        """Without a last linear layer."""
        return headless(setting)

    def __call__(self, setting: Setting) -> Influence:
        last, points = head(setting), self.points(setting)
        features, logits = read_by_head(setting, setting.queries, last.weight)
        kernel = points.kernel(features)
        refitted = kernel @ points.values
        asked = logit_gradients(setting.target, torch.from_numpy(refitted), torch.from_numpy(setting.classes)).numpy()
        agreed = float((refitted.argmax(1) == logits.argmax(1)).mean())
        notes = {"parameters": f"of the last layer alone: {', '.join(last.names)}", "decisions kept": agreed}
        return Influence(-(asked @ points.values.T) * kernel, last.covered(setting), notes=notes)

    def own(self, setting: Setting) -> PerExample:
        """The rise of each loss without the example's own term."""
        points = self.points(setting)
        return np.asarray(-(points.gradients * points.values).sum(1) * (points.features**2).sum(1))

    def points(self, setting: Setting) -> Points:
        """Refits the last layer and expresses it by training examples."""
        last = head(setting)
        read, _ = read_by_head(setting, setting.train, last.weight)
        features = torch.from_numpy(_extended(read))
        labels = torch.from_numpy(setting.labels)
        weights = torch.from_numpy(setting.shares)
        layer = refit(features, labels, weights, self.strength, setting.network.classes)
        rest = (features @ layer.T).softmax(-1) - F.one_hot(labels, setting.network.classes)
        values = -rest * weights[:, None] / (2 * self.strength)
        return Points(features.numpy(), rest.numpy(), values.numpy(), layer.numpy())


@dataclass(frozen=True)
class Points:
    """The refitted layer with the features, loss gradients and representer values of each training example."""

    features: Float[np.ndarray, "N F"]  # a 1 at the end, for the bias
    gradients: Float[np.ndarray, "N C"]  # of the loss, by the logits
    values: Float[np.ndarray, "N C"]  # α
    layer: Float[np.ndarray, "C F"]

    def kernel(self, read: Float[np.ndarray, "Q G"]) -> Scores:
        """k(x_i, x) for the last layer's inputs of some texts."""
        return np.asarray(_extended(read) @ self.features.T)


def _extended(read: Float[np.ndarray, "N G"]) -> Float[np.ndarray, "N F"]:
    return np.concatenate([read, np.ones((len(read), 1))], axis=1)


def refit(
    features: Float[Tensor, "N F"],
    labels: Int[Tensor, " N"],
    weights: Float[Tensor, " N"],
    strength: float,
    classes: int,
) -> Float[Tensor, "C F"]:
    """The layer that minimises Σ_i weights[i] loss_i + strength ‖layer‖², by Newton's method."""
    layer = features.new_zeros(classes, features.shape[1])
    solver = ConjugateGradients(iterations=4 * layer.numel(), tolerance=1e-10)

    def height(layer: Tensor) -> Tensor:
        losses = F.cross_entropy(features @ layer.T, labels, reduction="none")
        return weights @ losses + strength * layer.square().sum()

    def curved(flat: Float[Tensor, "1 P"]) -> Float[Tensor, "1 P"]:
        """The curvature times a change of the layer."""
        change = flat.view_as(layer)
        moved = shares * (features @ change.T)
        moved = (moved - shares * moved.sum(1, keepdim=True)) * weights[:, None]
        return (moved.T @ features + 2 * strength * change).view_as(flat)

    with progress.bar() as shown:
        task = shown.add_task("refitting the last layer", total=None)
        for _ in range(STEPS):
            shares = (features @ layer.T).softmax(-1)
            gradient = ((shares - F.one_hot(labels, classes)) * weights[:, None]).T @ features + 2 * strength * layer
            if gradient.abs().max() < 1e-12:
                break
            flat = gradient.reshape(1, -1)
            step, length = solver.solved(curved, flat, torch.ones_like(flat[0])).tries[0].view_as(layer), 1.0
            fall = (step * gradient).sum()
            while (
                height(layer - length * step) > height(layer) - 1e-4 * length * fall and length > 1e-3 and fall > 1e-14
            ):
                length /= 2
            layer = layer - length * step
            shown.advance(task)
    return layer


@with_story("TracIn of the last layer", "Pruthi et al. (2020), section 3.4", like=ORDER)
@dataclass(frozen=True)
class TracInFast:
    """TracIn for the parameters of the last layer alone; Pruthi et al. (2020), section 3.4.

    What the layers below learnt from an example is not seen: only a small share of the parameters is covered.
    """

    checkpoints: int = 6
    steps: bool = True

    def unfit(self, setting: Setting) -> str | None:
        """Where the training is unknown, or there is no last linear layer."""
        return setting.untrainable or headless(setting)

    def __call__(self, setting: Setting) -> Influence:
        last, found = head(setting), setting.zeros()
        for factor, at, _ in passed(setting, self.checkpoints, self.steps):
            asked, learnt = _at_head(at, last, True), _at_head(at, last, False)
            found += factor * (asked[1] @ learnt[1].T) * (asked[0] @ learnt[0].T + (last.bias is not None))
        notes = {"checkpoints": self.checkpoints, "parameters": f"of the last layer alone: {', '.join(last.names)}"}
        return Influence(found * setting.shares, last.covered(setting), notes=notes)

    def own(self, setting: Setting) -> PerExample:
        """The rise of each loss without the example's own contributions to the last layer."""
        last, found = head(setting), np.zeros(len(setting.train))
        for factor, at, _ in passed(setting, self.checkpoints, self.steps):
            features, own = _at_head(at, last, False)
            found += factor * (own**2).sum(1) * ((features**2).sum(1) + (last.bias is not None))
        return np.asarray(found * setting.shares)


def _at_head(setting: Setting, last: Head, asked: bool) -> tuple[Float[np.ndarray, "_ F"], Float[np.ndarray, "_ C"]]:
    """Inputs of the last layer and gradients of its outputs, for the queries or the training rows."""
    features, logits = read_by_head(setting, setting.queries if asked else setting.train, last.weight)
    classes = setting.classes if asked else setting.labels
    target = setting.target if asked else "loss"
    return features, logit_gradients(target, torch.from_numpy(logits), torch.from_numpy(classes)).numpy()
