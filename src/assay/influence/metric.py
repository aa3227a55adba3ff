"""The diagonal added to the curvature: L2 regularisation, and damping in the metric of the optimiser."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.errors import AssayError, unknown
from assay.influence.damping import chosen_damping, damping_of_each, reach
from assay.influence.setting import Setting
from assay.influence.table_gradients import TableGradients

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
    sizes = {name: each.numel() for name, each in setting.parameters.items()}
    total = sum(size * (float(added[name].mean()) - setting.decay.get(name, 0.0)) for name, size in sizes.items())
    return total / sum(sizes.values())


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
    device = setting.network.device
    with progress.bar() as shown:
        task = shown.add_task("squared gradients", total=len(setting.train))
        for indices, batch in setting.batches(setting.train):
            reading = setting.reader.read(batch)
            gradients = reading.gradients(setting.train_logit_gradients(batch, reading))
            share = torch.from_numpy(setting.weights[indices]).to(device).square() / len(setting.train)
            for name, total in found.items():
                rows = gradients.rows(name)
                if rows is None:
                    total += (share @ gradients.dense(name).double().square()).view_as(total)
                else:
                    each = TableGradients.of(rows, torch.arange(len(indices), device=device), len(indices))
                    total.index_add_(0, each.tokens, share[each.owners, None] * each.gradients.double().square())
            shown.advance(task, len(indices))
    return found
