"""How much is added to the curvature, found from the training: what was too flat to be learnt in its steps.

Adam moves a parameter by η / √v for each unit of its gradient, v the mean of the squared gradient. If the gradient
changes by 1 along a direction of curvature h, T steps answer with (1 − exp(−Tηh / √v)) / h: 1 / h where h is large,
Tη / √v where it is small. 1 / (h + √v / (Tη)) has the same limits, so √v / (Tη) is the damping.

The curvature of an example pulls only once there is something to pull at, so that steps before the network tells
classes apart do not count: T is multiplied by the square of the share of the loss that was learnt. That is a rule of
thumb, found on small models; it matters where training was stopped long before it was done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import entr
from torch import Tensor

from assay import progress
from assay.errors import AssayError, unknown
from assay.influence.curvature import output_roots
from assay.influence.gradient_records import TableGradients, add_kernel
from assay.influence.gradients import Gradients
from assay.influence.replay import adam_states, divided
from assay.influence.setting import Setting
from assay.influence.targets import loss
from assay.influence.training_run import TrainingRun
from assay.models.textmodel import TextModel

OUTPUTS, FEWEST = 256, 64  # of training examples, of which the number of learnt directions is taken
WORK = 1e11  # multiplications that their products with each other may take, unless they are the fewest
LEAST = 1e-3  # of the loss is taken to be learnt

_reached: WeakKeyDictionary[TextModel, tuple[Any, Any, dict[str, Tensor]]] = WeakKeyDictionary()


def damping_of_each(setting: Setting) -> dict[str, Tensor]:
    """√v / (Tη) of each number that was trained; the training is gone through once.

    Where it is not known how the network was trained, the mean of the diagonal of the Gauss–Newton curvature.
    """
    if setting.training_run is None:
        return {name: torch.full_like(each.detach(), _mean(setting)) for name, each in setting.parameters.items()}
    learnt = learnt_share(setting) ** 2
    return {
        name: (1 / (each * learnt)).to(setting.parameters[name]) for name, each in reach(setting.training_run).items()
    }


def chosen_damping(setting: Setting) -> float:
    """One λ for all parameters, with the same effective number of learnt directions as the damping of each.

    That number is Σ e / (e + λ) over the eigenvalues of the Gauss–Newton curvature, of a part of the training examples.
    """
    if setting.training_run is None:
        return _mean(setting)
    roots = {name: each.double().rsqrt() for name, each in damping_of_each(setting).items()}
    sampled = _sampled(setting)
    learnt, plain = (_eigenvalues(sampled, scales) for scales in (roots, {}))
    count = float((learnt / (1 + learnt)).sum())
    low, high = -30.0, float(plain.max().log10()) + 30.0
    power: float = brentq(lambda given: float((plain / (plain + 10.0**given)).sum()) - count, low, high)
    return float(10.0**power)


def reach(training_run: TrainingRun) -> dict[str, Tensor]:
    """Tη / √v: how far each parameter would move in all steps, for each unit of a constant gradient."""
    identity = training_run.training, training_run.epochs
    known = _reached.get(training_run.network)
    if known is not None and known[0] is training_run.rows and known[1] == identity:
        return known[2]
    found: dict[str, Tensor] = {}

    def watch(number: int, network: TextModel, optimiser: torch.optim.Optimizer) -> None:
        shown.update(task, completed=number)
        if number < training_run.steps:
            return
        for name, group, state in adam_states(network, optimiser):
            moment, divisor = divided(group, state)
            found[name] = number * group["lr"] / torch.where(moment > 0, divisor, 0.0)

    with progress.bar() as shown:
        task = shown.add_task("training once more, for the damping", total=training_run.steps)
        training_run.learn(watch=watch)
    seen = torch.cat([each[each.isfinite()].flatten() for each in found.values()])
    typical = float(seen.median()) if len(seen) else 1.0  # for what never had a gradient: nothing pulls there
    complete = {
        name: found[name].nan_to_num(posinf=typical) if name in found else torch.full_like(each.detach(), typical)
        for name, each in training_run.network.named_parameters()
        if each.requires_grad
    }
    _reached[training_run.network] = training_run.rows, identity, complete
    return complete


@torch.no_grad()
def learnt_share(setting: Setting) -> float:
    """The share of the loss of a constant predictor (class frequencies) that training removed."""
    weights, total = setting.weights / setting.weights.sum(), 0.0
    for indices, batch in setting.batches(setting.train):
        losses = loss(setting.logits(batch).double(), batch.labels)
        total += float(losses.cpu().numpy() @ weights[indices])
    constant = float(entr(np.bincount(setting.labels, weights)).sum())
    return max(LEAST, 1 - total / max(constant, 1e-12))


def _sampled(setting: Setting) -> list[Gradients]:
    """Roots of the Gauss–Newton curvature of some training examples, read as one batch."""
    outputs = int(min(OUTPUTS, max(FEWEST, (WORK / setting.size) ** 0.5)))
    some = np.random.default_rng(0).permutation(len(setting.train))[: max(1, outputs // (setting.network.classes - 1))]
    part = replace(setting, train=[setting.train[index] for index in some], weights=setting.weights[some])
    ((indices, batch),) = part.batches(part.train, tokens=2**40)
    reading = part.reader.read(batch)
    shares = torch.from_numpy(part.weights[indices] / len(some)).to(reading.logits)
    return [
        reading.gradients(each * shares.sqrt()[:, None]) for each in output_roots(reading.logits.detach()).unbind(-1)
    ]


def _eigenvalues(sampled: list[Gradients], scales: dict[str, Tensor]) -> Float[Tensor, " n"]:
    """Eigenvalues of the curvature in which each parameter is divided by its own scale."""
    found = torch.stack([_kernel(sampled, name, scales.get(name)) for name in sampled[0].shapes]).sum(0)
    values: Tensor = torch.linalg.eigvalsh((found + found.T) / 2)
    return values.clamp(min=0)


def _kernel(sampled: list[Gradients], name: str, scale: Tensor | None) -> Float[Tensor, "n n"]:
    """Inner products of the gradients of one parameter."""
    rows = [each.rows(name) for each in sampled]
    tables = [each for each in rows if each is not None]
    if len(tables) == len(rows):
        total = len(tables) * sampled[0].size
        owners = torch.arange(total, device=tables[0].ids.device).split(sampled[0].size)  # type: ignore[no-untyped-call]
        parts = [TableGradients.of(each, own, total) for each, own in zip(tables, owners, strict=True)]
        found = TableGradients.joined(parts)
        found = found if scale is None else found.scaled(scale.to(found.gradients))
        products = found.gradients.new_zeros(total, total, dtype=torch.float64)
        add_kernel(products, found, found)
        return products
    whole = torch.cat([each.dense(name) for each in sampled])
    whole = whole if scale is None else whole * scale.flatten().to(whole)
    return (whole @ whole.T).double()


def _mean(setting: Setting) -> float:
    """The mean of the diagonal of the Gauss–Newton curvature."""
    return float(_eigenvalues(_sampled(setting), {}).sum()) / setting.size


METRICS = ("plain", "adam")
SMALLEST = 1e-3  # of the mean of the metric; what was hardly ever learnt is not free to move without bound


def diagonal(setting: Setting, metric: str, damping: float | None) -> dict[str, Float[Tensor, ...]]:
    """decay + damping · metric of each parameter: one number, or one for each number in it.

    Where no damping is given, it is chosen from the training.
    """
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    found = {name: setting.decay.get(name, 0.0) + each for name, each in _damped(setting, metric, damping).items()}
    if min(float(each.min()) for each in found.values()) <= 0:
        raise AssayError("Without weight decay the curvature can be singular; give a damping above 0.")
    return found


def mean_damping(setting: Setting, added: Mapping[str, Float[Tensor, ...]]) -> float:
    """The mean of what was added beside the L2 regularisation, over all parameters."""
    total = sum(
        each.numel() * (float(added[name].mean()) - setting.decay.get(name, 0.0))
        for name, each in setting.parameters.items()
    )
    return total / setting.size


def _damped(setting: Setting, metric: str, damping: float | None) -> dict[str, Float[Tensor, ...]]:
    if metric == "adam" and damping is None and setting.training_run is not None:
        return {name: each.double() for name, each in damping_of_each(setting).items()}
    strength = chosen_damping(setting) if damping is None else damping
    if metric == "adam":
        return {name: strength * each for name, each in adam_metric(setting).items()}
    one = torch.ones((), device=setting.network.device, dtype=torch.float64)
    return dict.fromkeys(setting.parameters, strength * one)


def adam_metric(setting: Setting) -> dict[str, Float[Tensor, ...]]:
    """The root of Adam's second moments at the end of training, or else of the mean squared gradient; its mean is 1.

    Adam divides its steps by it, so that what had small gradients moved as far as what had large ones.
    """
    if setting.training_run is None:
        roots = {name: each.sqrt() for name, each in mean_squares(setting).items()}
    else:
        roots = {name: 1 / each.double() for name, each in reach(setting.training_run).items()}
    mean = torch.stack([each.sum() for each in roots.values()]).sum() / sum(each.numel() for each in roots.values())
    return {name: (each / mean).clamp(min=SMALLEST) for name, each in roots.items()}


def mean_squares(setting: Setting) -> dict[str, Float[Tensor, ...]]:
    """The mean over the training examples of the squared gradient of the loss."""
    found = {name: torch.zeros_like(each, dtype=torch.float64) for name, each in setting.parameters.items()}
    for indices, gradients in setting.train_gradients(label="squared gradients"):
        share = torch.from_numpy(setting.weights[indices]).to(setting.network.device).square() / len(setting.train)
        for name, total in found.items():
            rows = gradients.rows(name)
            if rows is None:
                total += (share @ gradients.dense(name).double().square()).view_as(total)
            else:
                owners = torch.arange(len(indices), device=share.device)
                each = TableGradients.of(rows, owners, len(indices))
                total.index_add_(0, each.tokens, share[each.owners, None] * each.gradients.double().square())
    return found
