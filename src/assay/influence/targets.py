"""Targets of influence: scalar functions of a text's logits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import unknown
from assay.types import Logits

Target = Callable[[Logits, Int[Tensor, " B"]], Float[Tensor, " B"]]
"""Takes logits and the class that is asked about."""


def margin(logits: Logits, classes: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
    """The log-odds of the class: its logit less the log-sum-exp of all others."""
    others = logits.scatter(1, classes[:, None], -torch.inf)
    return logit(logits, classes) - others.logsumexp(-1)


def loss(logits: Logits, classes: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
    """The cross-entropy of the class."""
    return -logit(logits.log_softmax(-1), classes)


def logit(logits: Logits, classes: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
    """The logit of the class."""
    return logits.gather(1, classes[:, None]).squeeze(1)


def probability(logits: Logits, classes: Int[Tensor, " B"]) -> Float[Tensor, " B"]:
    """The probability of the class."""
    return logit(logits.softmax(-1), classes)


TARGETS: dict[str, Target] = {each.__name__: each for each in (margin, loss, logit, probability)}


def target(name: str) -> Target:
    """The target of that name."""
    if name not in TARGETS:
        raise unknown("target", name, TARGETS)
    return TARGETS[name]


def logit_gradients(name: str, logits: Logits, classes: Int[Tensor, " B"]) -> Logits:
    """The gradient of each text's target by its own logits."""
    with torch.enable_grad():
        free = logits.detach().requires_grad_()
        return torch.autograd.grad(target(name)(free, classes).sum(), free)[0]
