"""Checks an autograd graph: every operation in the backward pass must be linear, or a rule is missing."""

from __future__ import annotations

import re
from typing import Any

from jaxtyping import Float
from torch import Tensor

ENDING = re.compile(r"Backwards?\d*$")  # torch names what goes back through a step after the step

LINEAR = frozenset(
    (
        *("AccumulateGrad", "Add", "Alias", "AsStrided", "Cat", "Clone", "ConstantPadNd", "Copy", "CopySlices"),
        *("Expand", "Flip", "Gather", "Index", "IndexAdd", "IndexPut", "IndexSelect", "MaskedFill", "MaskedScatter"),
        *("Mean", "Neg", "Permute", "Repeat", "ReshapeAlias", "Roll", "Scatter", "ScatterAdd", "Select", "Slice"),
        *("Split", "SplitWithSizes", "Squeeze", "Stack", "Sub", "Sum", "T", "ToCopy", "Transpose", "Unbind"),
        *("UnsafeSplit", "UnsafeView", "Unsqueeze", "View", "Where"),
    )
)
"""Steps that are linear in all that they are given."""

PRODUCTS = frozenset(("Addmm", "Baddbmm", "Bmm", "Div", "Dot", "Linear", "Mm", "Mul", "Mv"))
"""Steps that are linear where only one of the things that they are given depends on the words."""


def unruled(answer: Float[Tensor, "*N"], weighs: bool) -> str | None:
    """The first nonlinear operation in the graph, or None; softmax is allowed where attention weights are explained."""
    allowed = LINEAR | {"Softmax"} if weighs else LINEAR
    seen: set[Any] = set()
    waiting: list[Any] = [answer.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        name, below = ENDING.sub("", node.name().rpartition("::")[2]), [each for each, _ in node.next_functions]
        if name not in allowed and not (name in PRODUCTS and _one(name, below)):
            return str(name)
        waiting += below
    return None


def _one(name: str, below: list[Any]) -> bool:
    """Whether a product is linear: one factor depends on the words; of a quotient, the numerator."""
    return sum(each is not None for each in below) <= 1 and not (name == "Div" and below[-1] is not None)
