"""Rules of contextual decomposition: how an operation is divided into β, from chosen words, and γ, from the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn import functional as F

from assay.errors import AssayError
from assay.models.walk import ACTIVATIONS, Layer, Lstm, Trace, Walk

Rows = Shaped[Tensor, "R *N"]
Part = Float[Tensor, "S k *N"]
Unary = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Blocks:
    """The layout of stacked rows: texts, then for each set of words their β parts, then contexts.

    All blocks have the same rows in the same order, so that whatever a model makes of rows (sentences, steps) can be
    told apart again. What is not relevant is γ, the text's value without β. With `samples` there are that many versions
    of each text and set, in which the context is another; they stand in for the two contexts of Shapley's formula.
    """

    sets: int
    samples: int = 0
    outer: frozenset[int] = frozenset()  # the identities of biases that are nobody's, not even the text's

    @property
    def count(self) -> int:
        return 1 + self.sets * (1 + self.samples)

    def cut(self, rows: Rows) -> tuple[Any, Any, Any]:
        """Views of the rows of texts [k, …], of parts [S, k, …], and of contexts [S, K, k, …], if any."""
        if not rows.dim() or len(rows) % self.count:
            raise AssayError("Contextual decomposition cannot tell whose the rows of a layer are.")
        shape = (len(rows) // self.count, *rows.shape[1:])
        apart = rows.view(self.count, *shape)
        seen = apart[1 + self.sets :].view(self.sets, self.samples, *shape) if self.samples else None
        return apart[0], apart[1 : 1 + self.sets], seen

    def shared(self, rows: Rows, total: Rows) -> Rows:
        """The sum of rows and a constant, split in proportion |β| : |β| + |γ| (Singh et al., 2019)."""
        whole, part, _ = self.cut(rows)
        _, divided, _ = self.cut(total)
        divided.sub_(part).mul_(share(part, whole - part)).add_(part)
        return total

    def activated(self, function: Unary, rows: Rows, alone: bool) -> Rows:
        """An activation with f(0) = 0; `alone`: f of β without its context (Singh et al., 2019).

        Else β is the mean of f(h) − f(h − β) over contexts h: no context at all and the text, Shapley's formula for two
        (Murdoch et al., 2018), or the versions of the text (Jin et al., 2020).
        """
        values = function(rows).clone()
        (whole, part, seen), (of_whole, of_part, of_seen) = self.cut(rows), self.cut(values)
        if seen is not None:
            of_part.copy_((of_seen - function(seen - part[:, None])).mean(1))
        elif not alone:
            of_part.add_(of_whole - function(whole - part)).div_(2)
        return values

    def held(self, rows: Rows) -> Rows:
        """Undivided: the text's values in place of its parts."""
        values = rows.clone()
        whole, part, _ = self.cut(values)
        part.copy_(whole.expand_as(part))
        return values

    def foreign(self, rows: Rows) -> Rows:
        """Values that belong to no part: β is 0."""
        values = rows.clone()
        self.cut(values)[1].zero_()
        return values


def share(relevant: Tensor, rest: Tensor) -> Tensor:
    """|β| / (|β| + |γ|); 0 where both are 0."""
    size = relevant.abs()
    total = size + rest.abs()
    return torch.where(total > 0, size / torch.where(total > 0, total, 1.0), 0.0)


# LSTM and GRU: of each gate, A comes from the chosen words, C from its bias alone, and B is the rest (Murdoch et al.,
# 2018)


@dataclass(frozen=True)
class Moment:
    """One time step of all texts and word sets: what was computed of texts and, if any, of their contexts."""

    trace: Trace
    gates: Float[Tensor, "R T 2 H"]  # the arguments of the first two slots
    position: int
    blocks: Blocks
    parts: Float[Tensor, "S k 4 H"]  # β of the slots
    owned: Float[Tensor, "S k 1"]  # the share of the input that is chosen: 1 or 0 of a word
    bias: Float[Tensor, "4 H"]

    def at(self, values: Float[Tensor, "R T *N"]) -> tuple[Float[Tensor, k * N], Float[Tensor, "S K k *N"] | None]:
        """The values of texts and of contexts."""
        texts, now = self.parts.shape[1], values[:, self.position]
        if not self.blocks.samples:
            return now, None
        return now[:texts], now[texts:].reshape(self.blocks.sets, -1, texts, *now.shape[1:])

    def gain(self, function: Unary, part: Part, constant: Tensor | float, inside: Float[Tensor, "R T *N"]) -> Part:
        """β of an activation, given all that is inside it, of which a constant belongs to nobody."""
        whole, seen = self.at(inside)
        if seen is not None:
            return (function(seen) - function(seen - part[:, None])).mean(1)
        alone = part + constant
        return (function(alone) - function(alone - part) + function(whole) - function(whole - part)) / 2

    def opened(self) -> tuple[Tensor, ...]:
        """β of two gates, and what their biases alone open."""
        gates = self.gain(torch.sigmoid, self.parts[:, :, :2], self.bias[:2], self.gates)
        return *gates.unbind(-2), *self.bias[:2].sigmoid()


def _lstm(now: Moment, memory: Part) -> tuple[Part, Part]:
    """β of cell state and hidden state (Murdoch et al., 2018); the output gate is undivided."""
    keep, forget, keep_bias, forget_bias = now.opened()
    new = now.gain(torch.tanh, now.parts[:, :, 2], now.bias[2], now.trace.slots[2])
    new_bias = now.bias[2].tanh()
    written = keep * (new + new_bias) + keep_bias * new + keep_bias * new_bias * now.owned
    memory = written + (forget + forget_bias) * memory
    return memory, now.at(now.trace.active[3])[0] * now.gain(torch.tanh, memory, 0.0, now.trace.memory)


def _gru(now: Moment, memory: Part) -> tuple[Part, Part]:
    """β of the hidden state by the same rules: of a product, β needs β in one factor, and β or a bias in the other."""
    reset, update, reset_bias, update_bias = now.opened()
    past, past_bias = now.parts[:, :, 3], now.bias[3]
    argument = now.parts[:, :, 2] + reset * (past + past_bias) + reset_bias * past
    constant = now.bias[2] + reset_bias * past_bias
    new, new_bias = now.gain(torch.tanh, argument, constant, now.trace.active[3]), constant.tanh()
    written = (1 - update_bias) * (new + new_bias * now.owned) - update * (new + new_bias)
    memory = written + (update + update_bias) * memory
    return memory, memory


def recurrent(blocks: Blocks, rows: Float[Tensor, "R T D"], layer: Layer) -> Rows:
    """The divided states [R, T, H] of a layer; padding stands last."""
    whole, part, seen = blocks.cut(rows)
    trace = layer.trace(whole if seen is None else torch.cat([whole, seen.flatten(0, 2)]))
    gates = torch.stack(trace.slots[:2], dim=2)
    owned = share(part.abs().sum(-1, keepdim=True), (whole - part).abs().sum(-1, keepdim=True))
    given, recur = F.linear(part, layer.inputs.flatten(0, 1)), layer.states.flatten(0, 1)
    states = part.new_empty(*part.shape[:3], layer.bias.shape[1])
    memory = state = torch.zeros_like(states[:, :, 0])
    advance = _lstm if isinstance(layer.cell, Lstm) else _gru
    for position in range(rows.shape[1]):
        parts = (given[:, :, position] + F.linear(state, recur)).view(*state.shape[:2], *layer.bias.shape)
        now = Moment(trace, gates, position, blocks, parts, owned[:, :, position], layer.bias)
        memory, state = advance(now, memory)
        states[:, :, position] = state
    return torch.cat([trace.state[: len(whole)], states.flatten(0, 1), trace.state[len(whole) :]])


# The walk: any network computes with stacked rows

LINEAR = frozenset(
    (
        *("__get__", "__getitem__", "chunk", "clone", "contiguous", "cumsum", "detach", "dropout", "expand", "flatten"),
        *("flip", "gather", "index_select", "mean", "movedim", "narrow", "neg", "new_zeros", "permute", "repeat"),
        *("repeat_interleave", "reshape", "roll", "select", "split", "squeeze", "sum", "swapaxes", "t"),
        *("take_along_dim", "tensor_split", "tile", "transpose", "unbind", "unflatten", "unfold", "unsqueeze", "view"),
        *("zeros_like", "__neg__", "__iter__", "alias", "narrow_copy", "swapdims", "new_empty", "empty_like"),
    )
)
"""Steps that are linear, and are taken for a text and its parts alike."""

CONSTANT = frozenset(("new_ones", "new_full", "new_tensor", "ones_like", "full_like"))
"""Steps whose result has nothing of what they are given."""

LIKE = frozenset(("expand_as", "reshape_as", "to", "type_as", "view_as"))
"""Steps that make a tensor like another; only the first is in the result."""

DIVISIONS = frozenset(("div", "divide", "true_divide", "__truediv__", "__rtruediv__"))


class Divided(Tensor):
    """Stacked rows; `lost` names the first operation without a rule, after which the values can only gate."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]
    lost: str | None = "a step outside torch"
    gate: bool = False  # whether it is what an activation returned


class Dividing(Walk):
    """Context manager: operations on stacked rows are divided between the parts as they run."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__()
        self.blocks = blocks

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = getattr(function, "__name__", ""), kwargs or {}
        stacks = given(args, named)
        if not stacks or name in CONSTANT or (name in LIKE and not isinstance(args[0], Divided)):
            return function(*args, **named)
        if (name.endswith("_") and not name.endswith("__")) or name in ("__iadd__", "__isub__", "__imul__"):
            return self._in_place(function, name, args, named)
        if name == "__setitem__":
            return self._written(function, name, args, named)
        if name in self.operations:
            return super().__torch_function__(function, types, args, named)
        lost = first_lost(stacks)
        return divided(function(*args, **named), lost if name in LINEAR or lost else name)

    def _in_place(self, function: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What writes in place has the rule of what does not."""
        apart = name.strip("_").removeprefix("i") if name.startswith("__i") else name.rstrip("_")
        if apart not in self.operations or not isinstance(args[0], Divided):
            return self._written(function, name, args, named, apart in LINEAR)
        found = self.operations[apart](self, getattr(torch, apart), *args, **named)
        args[0].copy_(found)
        args[0].lost = found.lost
        return args[0]

    def _written(
        self, function: Any, name: str, args: tuple[Any, ...], named: dict[str, Any], linear: bool = False
    ) -> Divided:
        """In-place writes: allowed into a stack, an error elsewhere."""
        target = args[0]
        if not isinstance(target, Divided):
            raise AssayError(f"Contextual decomposition has no rule for a step that writes into a constant ({name}).")
        lost = first_lost(given(args, named))
        function(*args, **named)
        target.lost = lost if linear or lost else name
        return target

    def stacked(self, rows: Tensor) -> Divided:
        """Rows in the layout of the blocks."""
        self.blocks.cut(rows)
        found: Divided = divided(rows)
        return found

    def linear(self, function: Any, x: Divided, weight: Tensor, bias: Tensor | None = None) -> Any:
        """A linear map; its bias is shared between the parts."""
        return self._biased(F.linear(x, weight.to(x)), bias, x.lost)

    def affine(self, function: Any, bias: Tensor, x: Divided, weight: Tensor, **named: Any) -> Any:
        if named or isinstance(bias, Divided) or isinstance(weight, Divided):
            return divided(function(bias, x, weight, **named), "addmm")
        return self._biased(x @ weight.to(x), bias, x.lost)

    def convolution(
        self, function: Any, x: Divided, weight: Tensor, bias: Tensor | None = None, *rest: Any, **named: Any
    ) -> Any:
        return self._biased(function(x, weight.to(x), None, *rest, **named), bias, x.lost, 1)

    def _biased(self, total: Tensor, bias: Tensor | None, lost: str | None, behind: int = 0) -> Any:
        """Adds a bias that is broadcast over some axes; the decoder's own bias is left out."""
        if bias is None or id(bias) in self.blocks.outer:
            return divided(total, lost)
        whole = total + bias.detach().to(total).reshape(-1, *[1] * behind)
        return divided(whole if lost else self.blocks.shared(total, whole), lost)

    def add(self, function: Any, left: Any, right: Any, **named: Any) -> Any:
        """Parts are added; a constant is shared like a bias."""
        total, stacks = function(left, right, **named), given((left, right), {})
        lost = first_lost(stacks)
        if len(stacks) == 2 or lost:
            return divided(total, lost)
        base = plain(stacks[0]).expand(total.shape)
        subtracted = right if function.__name__ in ("sub", "__sub__", "subtract") else None
        subtracted = left if function.__name__ in ("rsub", "__rsub__") else subtracted
        return divided(self.blocks.shared(-base if stacks[0] is subtracted else base, total))

    def multiply(self, function: Any, left: Any, right: Any, **named: Any) -> Any:
        """A product; if both factors depend on words, one of them is a gate and undivided."""
        stacks, name = given((left, right), {}), function.__name__
        if len(stacks) == 1:
            turned = name in DIVISIONS and stacks[0] is not left
            return divided(function(left, right, **named), stacks[0].lost or (name if turned else None))
        weighs = [bool(each.lost) for each in stacks]
        if not any(weighs):
            weighs = [each.gate for each in stacks]
        if sum(weighs) != 1 or (name in DIVISIONS and weighs[0]):
            return divided(function(left, right, **named), first_lost(stacks) or name)
        held = [self.blocks.held(each) if weigh else each for each, weigh in zip(stacks, weighs, strict=True)]
        return divided(function(*held, **named))

    def activate(self, function: Any, x: Divided, *rest: Any, **named: Any) -> Any:
        """ReLU of a part alone (Singh et al., 2019); of other functions, the contribution with and without the rest."""
        named.pop("inplace", None)
        if x.lost:
            return divided(function(x, *rest, **named), x.lost)
        alone = function.__name__.rstrip("_") == "relu"
        return divided(self.blocks.activated(lambda rows: function(rows, *rest, **named), x, alone), gate=True)

    def activation(self, module: Callable[..., Any], given: tuple[Any, ...], output: Any) -> Any:
        return self.activate(module, *given) if len(given) == 1 and isinstance(given[0], Divided) else output

    def normalise(
        self,
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
        scaled = centred * (deviation if x.lost else self.blocks.held(deviation))
        return self._biased(scaled if weight is None else scaled * weight.to(x), bias, x.lost)

    def attention(self, function: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **named: Any) -> Any:
        """Attention: undivided weights, decomposed values."""
        positions = torch.eye(value.shape[-2], dtype=value.dtype, device=value.device)
        weights = function(query, key, positions.expand(*value.shape[:-1], -1), *rest, **named)
        lost = value.lost if isinstance(value, Divided) else "scaled_dot_product_attention"
        return divided(self.blocks.held(weights) @ value, lost)

    def joined(self, function: Any, *args: Any, **named: Any) -> Any:
        """Concatenation; a constant beside parts belongs to none."""
        stacks = given(args, named)
        widest = max(stacks, key=lambda each: each.dim())
        return divided(function(*self._foreign(args, widest), **named), first_lost(stacks))

    def _foreign(self, args: Any, beside: Tensor) -> list[Any]:
        """Arguments with constants as values of no part, broadcast to all rows."""
        found: list[Any] = []
        for each in args:
            if isinstance(each, list | tuple) and any(isinstance(one, Divided) for one in each):
                found.append(self._foreign(each, beside))
            elif _constant(each):
                wide = torch.as_tensor(each).to(beside)
                wide = wide[(None,) * (beside.dim() - wide.dim())]
                found.append(self.blocks.foreign(wide.expand(len(beside), *wide.shape[1:])))
            else:
                found.append(each)
        return found

    def filled(self, function: Any, x: Divided, mask: Tensor, value: Any) -> Any:
        return divided(function(x, mask, value), x.lost or (None if value == 0 else "masked_fill"))

    def padded(self, function: Any, x: Divided, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
        lost = None if not value and mode == "constant" else "pad"
        return divided(function(x, pad, mode, value), x.lost or lost)

    def recast(self, function: Any, x: Divided, *rest: Any, **named: Any) -> Any:
        """A change of dtype or device; lower precision is ignored."""
        moved = function(x, *rest, **named)
        if not moved.is_floating_point():
            return moved
        return divided(plain(x) if moved.dtype.itemsize < x.dtype.itemsize else moved, x.lost, x.gate)

    def compared(self, function: Any, left: Any, right: Any) -> Any:
        """A mask: that of the text."""
        return self.blocks.held(function(left, right))

    def recurrence(self, function: Any, x: Divided, *rest: Any) -> Any:
        """A recurrent layer of one direction with zero initial state."""
        name = function.__name__
        if len(rest) != 8 or len(rest[1]) != 4 or rest[3] != 1 or not rest[7] or x.lost:
            return divided(function(x, *rest), x.lost or name)
        states = recurrent(self.blocks, plain(x), Layer.of(name, rest[1], x))
        return (divided(states), *(divided(states[None, :, -1], name) for _ in range(1 + (name == "lstm"))))

    operations: ClassVar = {
        "linear": linear,
        "addmm": affine,
        "conv1d": convolution,
        **dict.fromkeys(("add", "__add__", "__radd__", "sub", "subtract", "__sub__", "rsub", "__rsub__"), add),
        **dict.fromkeys(("mul", "multiply", "__mul__", "__rmul__", *DIVISIONS), multiply),
        **dict.fromkeys(("matmul", "bmm", "__matmul__", "__rmatmul__"), multiply),
        **dict.fromkeys(ACTIVATIONS, activate),
        "layer_norm": normalise,
        "scaled_dot_product_attention": attention,
        **dict.fromkeys(("cat", "stack", "concat", "where", "index_put", "masked_scatter"), joined),
        **dict.fromkeys(("gt", "ge", "lt", "le", *("__gt__", "__ge__", "__lt__", "__le__")), compared),
        "masked_fill": filled,
        "pad": padded,
        **dict.fromkeys(("to", "float", "double", "half", "bfloat16", "type_as"), recast),
        **dict.fromkeys(("lstm", "gru"), recurrence),
    }


def _constant(given: Any) -> bool:
    """Whether an argument is a number or a plain tensor, not a stack."""
    if isinstance(given, Tensor):
        return not isinstance(given, Divided) and given.is_floating_point() and given.numel() > 0
    return isinstance(given, float)


def given(args: tuple[Any, ...], named: dict[str, Any]) -> list[Divided]:
    """The stacks among an operation's arguments."""
    found: list[Divided] = []
    for each in (*args, *named.values()):
        if isinstance(each, Divided):
            found.append(each)
        elif isinstance(each, list | tuple):
            found += given(tuple(each), {})
    return found


def first_lost(stacks: list[Divided]) -> str | None:
    """The name of the first operation without a rule."""
    return next((each.lost for each in stacks if each.lost), None)


def divided(answer: Any, lost: str | None = None, gate: bool = False) -> Any:
    """The output as a stack; integer outputs, such as indices, unchanged."""
    if isinstance(answer, Tensor) and answer.is_floating_point():
        stack = answer.as_subclass(Divided)
        stack.lost, stack.gate = lost, gate
        return stack
    if isinstance(answer, tuple | list) and not isinstance(answer, torch.Size):
        return type(answer)([divided(each, lost) for each in answer])
    return answer


def plain(rows: Tensor) -> Tensor:
    """The underlying tensor."""
    with torch._C.DisableTorchFunction():
        return rows.as_subclass(Tensor)
