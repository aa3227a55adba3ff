"""The decomposition rule of each tensor operation, by its name in torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from assay.explainers.hierarchies.decomposed.blocks import BLOCKS
from assay.explainers.hierarchies.decomposed.divided import Divided, Rule, divided, given
from assay.explainers.hierarchies.decomposed.recurrence import recurrent
from assay.explainers.relevance.steps import ACTIVATIONS


def linear(function: Any, x: Divided, weight: Tensor, bias: Tensor | None = None) -> Any:
    """A linear map; its bias is shared between the parts."""
    return _biased(F.linear(x, weight.to(x)), bias, x.lost)


def addmm(function: Any, bias: Tensor, x: Divided, weight: Tensor, **named: Any) -> Any:
    if named or isinstance(bias, Divided) or isinstance(weight, Divided):
        return divided(function(bias, x, weight, **named), "addmm")
    return _biased(x @ weight.to(x), bias, x.lost)


def convolution(function: Any, x: Divided, weight: Tensor, bias: Tensor | None = None, *rest: Any, **named: Any) -> Any:
    found = function(x, weight.to(x), None, *rest, **named)
    return _biased(found, bias, x.lost, 1)


def _biased(total: Tensor, bias: Tensor | None, lost: str | None, behind: int = 0) -> Any:
    """Adds a bias that is broadcast over some axes; the decoder's own bias is left out."""
    blocks = BLOCKS.get()
    if bias is None or id(bias) in blocks.outer:
        return divided(total, lost)
    whole = total + bias.detach().to(total).reshape(-1, *[1] * behind)
    return divided(whole if lost else blocks.shared(total, whole), lost)


def add(function: Any, left: Any, right: Any, **named: Any) -> Any:
    """Parts are added; a constant is shared like a bias."""
    total, stacks = function(left, right, **named), given((left, right), {})
    lost = next((each.lost for each in stacks if each.lost), None)
    if len(stacks) == 2 or lost:
        return divided(total, lost)
    base = stacks[0].expand(total.shape) if stacks[0].shape != total.shape else stacks[0]
    negative = function.__name__ in ("sub", "__sub__", "subtract") and stacks[0] is right
    negative |= function.__name__ in ("rsub", "__rsub__") and stacks[0] is left
    return divided(BLOCKS.get().shared(-base if negative else base.as_subclass(Tensor), total))


def multiply(function: Any, left: Any, right: Any, **named: Any) -> Any:
    """A product; if both factors depend on words, one of them is a gate and undivided."""
    stacks = given((left, right), {})
    if len(stacks) == 1:
        turned = function.__name__ in DIVISIONS and stacks[0] is not left
        return divided(function(left, right, **named), stacks[0].lost or (function.__name__ if turned else None))
    weighs = [bool(each.lost) for each in (left, right)]
    if not any(weighs):
        weighs = [each.gate for each in (left, right)]
    if sum(weighs) != 1 or (function.__name__ in DIVISIONS and weighs[0]):
        return divided(function(left, right, **named), left.lost or right.lost or function.__name__)
    held = [BLOCKS.get().held(each) if weigh else each for each, weigh in zip((left, right), weighs, strict=True)]
    return divided(function(*held, **named))


def activation(function: Any, x: Divided, *rest: Any, **named: Any) -> Any:
    """ReLU of a part alone (Singh et al., 2019); for other functions, the contribution with and without the rest."""
    named = {key: value for key, value in named.items() if key != "inplace"}
    if x.lost:
        return divided(function(x, *rest, **named), x.lost)
    alone = function.__name__.rstrip("_") == "relu"
    return divided(BLOCKS.get().activated(lambda rows: function(rows, *rest, **named), x, alone), gate=True)


def normalise(
    function: Any,
    x: Divided,
    shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    """A layer norm: the mean is subtracted from each part, the standard deviation is undivided."""
    axes = tuple(range(-len(shape), 0))
    centred = x - x.mean(axes, keepdim=True)
    deviation = (centred.square().mean(axes, keepdim=True) + eps).rsqrt()
    scaled = centred * (deviation if x.lost else BLOCKS.get().held(deviation))
    scaled = scaled if weight is None else scaled * weight.to(x)
    return _biased(scaled, bias, x.lost)


def attention(function: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **named: Any) -> Any:
    """Attention: undivided weights, decomposed values."""
    positions = torch.eye(value.shape[-2], dtype=value.dtype, device=value.device)
    weights = function(query, key, positions.expand(*value.shape[:-1], -1), *rest, **named)
    lost = value.lost if isinstance(value, Divided) else "scaled_dot_product_attention"
    return divided(BLOCKS.get().held(weights) @ value, lost)


def joined(function: Any, *args: Any, **named: Any) -> Any:
    """Concatenation; a constant beside parts belongs to none."""
    stacks = given(args, named)
    lost = next((each.lost for each in stacks if each.lost), None)
    widest = max(stacks, key=lambda each: each.dim())
    return divided(function(*_foreign(args, widest), **named), lost)


def _foreign(args: Any, beside: Tensor) -> list[Any]:
    """Arguments with constants as values of no part, broadcast to all rows."""
    found: list[Any] = []
    for each in args:
        if isinstance(each, list | tuple) and any(isinstance(one, Divided) for one in each):
            found.append(_foreign(each, beside))
        elif _constant(each):
            wide = torch.as_tensor(each).to(beside)
            wide = wide[(None,) * (beside.dim() - wide.dim())]
            found.append(BLOCKS.get().foreign(wide.expand(len(beside), *wide.shape[1:])))
        else:
            found.append(each)
    return found


def _constant(given: Any) -> bool:
    """Whether an argument is a number or a plain tensor, not a stack."""
    if isinstance(given, Tensor):
        return not isinstance(given, Divided) and given.is_floating_point() and given.numel() > 0
    return isinstance(given, float)


def filled(function: Any, x: Divided, mask: Tensor, value: Any) -> Any:
    return divided(function(x, mask, value), x.lost or (None if value == 0 else "masked_fill"))


def padded(function: Any, x: Divided, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    return divided(function(x, pad, mode, value), x.lost or (None if not value and mode == "constant" else "pad"))


def recast(function: Any, x: Divided, *rest: Any, **named: Any) -> Any:
    """A change of dtype or device; lower precision is ignored."""
    moved = function(x, *rest, **named)
    if not moved.is_floating_point():
        return moved
    return divided(x.as_subclass(Tensor) if moved.dtype.itemsize < x.dtype.itemsize else moved, x.lost, x.gate)


def compared(function: Any, left: Any, right: Any) -> Any:
    """A mask: that of the text."""
    return BLOCKS.get().held(function(left, right))


def cell(function: Any, x: Divided, *rest: Any) -> Any:
    """A recurrent layer of one direction with zero initial state."""
    name = function.__name__
    known = len(rest) == 8 and len(rest[1]) == 4 and rest[3] == 1 and rest[7] and not x.lost
    if not known:
        return divided(function(x, *rest), x.lost or name)
    states = recurrent(BLOCKS.get(), x.as_subclass(Tensor), name, rest[1])
    return (divided(states), *(divided(states[None, :, -1], name) for _ in range(1 + (name == "lstm"))))


DIVISIONS = frozenset(("div", "divide", "true_divide", "__truediv__", "__rtruediv__"))

STEPS: dict[str, Rule] = {
    "linear": linear,
    "addmm": addmm,
    "conv1d": convolution,
    **dict.fromkeys(("add", "__add__", "__radd__", "sub", "subtract", "__sub__", "rsub", "__rsub__"), add),
    **dict.fromkeys(("mul", "multiply", "__mul__", "__rmul__", *DIVISIONS), multiply),
    **dict.fromkeys(("matmul", "bmm", "__matmul__", "__rmatmul__"), multiply),
    **dict.fromkeys(ACTIVATIONS, activation),
    "layer_norm": normalise,
    "scaled_dot_product_attention": attention,
    **dict.fromkeys(("cat", "stack", "concat", "where", "index_put", "masked_scatter"), joined),
    **dict.fromkeys(("gt", "ge", "lt", "le", *("__gt__", "__ge__", "__lt__", "__le__")), compared),
    "masked_fill": filled,
    "pad": padded,
    **dict.fromkeys(("to", "float", "double", "half", "bfloat16", "type_as"), recast),
    **dict.fromkeys(("lstm", "gru"), cell),
}
