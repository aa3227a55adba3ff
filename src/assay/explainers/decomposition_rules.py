"""Rules of contextual decomposition: how an operation is divided into β, from chosen words, and γ, from the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn import functional as F

from assay.errors import AssayError
from assay.explainers.relevance_layers import Cell, Gru, Lstm, Trace, Weights, passed
from assay.explainers.relevance_walk import ACTIVATIONS

# The stacked layout of texts and their β parts, and generic rules of decomposition.


Rows = Shaped[Tensor, "R *N"]
Part = Float[Tensor, "S k *N"]
Seen = Float[Tensor, "S K k *N"]
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

    @contextmanager
    def within(self) -> Iterator[None]:
        """Context manager, for this thread alone: stacked rows have this layout."""
        token = BLOCKS.set(self)
        try:
            yield
        finally:
            BLOCKS.reset(token)

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
        """An activation with f(0) = 0; `alone`: f of β without its context (Singh et al., 2019)."""
        values = function(rows).clone()
        whole, part, seen = self.cut(rows)
        if alone and seen is None:
            return values  # of a part by itself
        self.cut(values)[1].copy_(gain(function, part, part, whole, seen))
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


BLOCKS: ContextVar[Blocks] = ContextVar("blocks")


def share(relevant: Tensor, rest: Tensor) -> Tensor:
    """|β| / (|β| + |γ|); 0 where both are 0."""
    size = relevant.abs()
    total = size + rest.abs()
    return torch.where(total > 0, size / torch.where(total > 0, total, 1.0), 0.0)


def gain(function: Unary, part: Part, alone: Part, whole: Tensor, seen: Seen | None) -> Part:
    """A part's contribution to an activation: the mean of f(h) − f(h − β) over contexts h.

    These are no context at all and the text, Shapley's formula for two (Murdoch et al., 2018), or else the versions of
    the text (Jin et al., 2020).
    """
    if seen is not None:
        return (function(seen) - function(seen - part[:, None])).mean(1)
    return (function(alone) - function(alone - part) + function(whole) - function(whole - part)) / 2


# A tensor subclass of stacked rows: any network can compute with it, and its operations are decomposed.


LINEAR = frozenset(
    (
        *("__get__", "__getitem__", "chunk", "clone", "contiguous", "cumsum", "detach", "dropout", "expand", "flatten"),
        *("flip", "gather", "index_select", "mean", "movedim", "narrow", "neg", "new_zeros", "permute", "repeat"),
        *(
            "repeat_interleave",
            "reshape",
            "roll",
            "select",
            "split",
            "squeeze",
            "sum",
            "swapaxes",
            "t",
            "take_along_dim",
        ),
        *("tensor_split", "tile", "transpose", "unbind", "unflatten", "unfold", "unsqueeze", "view", "zeros_like"),
        *("__neg__", "__iter__", "alias", "narrow_copy", "swapdims", "new_empty", "empty_like"),
    )
)
"""Steps that are linear, and are taken for a text and its parts alike."""

CONSTANT = frozenset(("new_ones", "new_full", "new_tensor", "ones_like", "full_like"))
"""Steps whose result has nothing of what they are given."""

LIKE = frozenset(("expand_as", "reshape_as", "to", "type_as", "view_as"))
"""Steps that make a tensor like another; only the first is in the result."""


class Divided(Tensor):
    """Stacked rows; `lost` names the first operation without a rule, after which the values can only gate."""

    lost: str | None = "a step outside torch"
    gate: bool = False  # whether it is what an activation returned

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        # rules for this very class

        with torch._C.DisableTorchFunctionSubclass():
            return _taken(function, STEPS, args, kwargs or {})


Rule = Callable[..., "Divided | Tensor"]


def _taken(function: Any, rules: dict[str, Rule], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The output of an operation on stacked rows."""
    name = getattr(function, "__name__", "")
    if (name.endswith("_") and not name.endswith("__")) or name in ("__iadd__", "__isub__", "__imul__", "__setitem__"):
        return _in_place(function, name, rules, args, named)
    if name in CONSTANT or (name in LIKE and not isinstance(args[0], Divided)):
        return function(*args, **named)
    lost = next((each.lost for each in given(args, named) if each.lost), None)
    if name in rules:
        return rules[name](function, *args, **named)
    answer = function(*args, **named)
    return divided(answer, lost if name in LINEAR or lost else name)


def _in_place(function: Any, name: str, rules: dict[str, Rule], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """In-place writes: allowed into a stack, an error elsewhere."""
    target = args[0]
    apart = name.strip("_").removeprefix("i") if name.startswith("__i") else name.rstrip("_")
    if not isinstance(target, Divided):
        raise AssayError(f"Contextual decomposition has no rule for a step that writes into a constant ({name}).")
    if name == "__setitem__" or apart not in rules:
        lost = next((each.lost for each in given(args, named) if each.lost), None)
        function(*args, **named)
        target.lost = lost if apart in LINEAR or lost else name
        return target
    found = rules[apart](getattr(torch, apart), *args, **named)
    assert isinstance(found, Divided)
    target.copy_(found)
    target.lost = found.lost
    return target


def given(args: tuple[Any, ...], named: dict[str, Any]) -> list[Divided]:
    """The stacks among an operation's arguments."""
    found: list[Divided] = []
    for each in (*args, *named.values()):
        if isinstance(each, Divided):
            found.append(each)
        elif isinstance(each, list | tuple):
            found += given(tuple(each), {})
    return found


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
    with torch._C.DisableTorchFunctionSubclass():
        return rows.as_subclass(Tensor)


def stacked(rows: Tensor) -> Divided:
    """Rows in the layout of this thread's blocks."""
    BLOCKS.get().cut(rows)
    found: Divided = divided(rows)
    return found


# Decomposed LSTM and GRU layers: one loop over time for all texts and word sets at once.


@dataclass(frozen=True)
class Step:
    """One time step: β of the four pre-activations, and the activations of texts and contexts."""

    part: Float[Tensor, "S k 4 H"]
    owned: Float[Tensor, "S k 1"]  # the share of the input that is chosen: 1 or 0 of a word
    position: int
    texts: Trace
    seen: Trace | None
    bias: Float[Tensor, "4 H"]

    def gate(self, slots: slice) -> tuple[Tensor, Tensor]:
        """β of some gates."""
        alone = self.part[:, :, slots] + self.bias[slots]
        whole, seen = self._at("slots")
        opened = None if seen is None else seen[..., slots, :]
        return gain(torch.sigmoid, self.part[:, :, slots], alone, whole[:, slots], opened), self.bias[slots].sigmoid()

    def tanh(self, part: Part, alone: Part, name: str, slot: int | None = None) -> Part:
        """β of the hyperbolic tangent of the trace's values of that name."""
        whole, seen = (each if each is None or slot is None else each[..., slot, :] for each in self._at(name))
        assert whole is not None
        return gain(torch.tanh, part, alone, whole, seen)

    def _at(self, name: str) -> tuple[Tensor, Tensor | None]:
        here = getattr(self.texts, name)[:, self.position]
        if self.seen is None:
            return here, None
        seen = getattr(self.seen, name)[:, self.position]
        return here, seen.reshape(self.part.shape[0], -1, *here.shape)


def lstm(step: Step, memory: Part) -> tuple[Part, Part]:
    """β of cell state and hidden state (Murdoch et al., 2018); the output gate is undivided."""
    (keep, forget), (keep_bias, forget_bias) = (each.unbind(-2) for each in step.gate(slice(0, 2)))
    new_bias = step.bias[2].tanh()
    new = step.tanh(step.part[:, :, 2], step.part[:, :, 2] + step.bias[2], "slots", 2)
    written = keep * (new + new_bias) + keep_bias * new + keep_bias * new_bias * step.owned
    memory = written + (forget + forget_bias) * memory
    return memory, step.texts.active[:, step.position, 3] * step.tanh(memory, memory, "memory")


def gru(step: Step, memory: Part) -> tuple[Part, Part]:
    """β of the hidden state by the same rules: of a product, β needs β in one factor, and β or a bias in the other."""
    (reset, update), (reset_bias, update_bias) = (each.unbind(-2) for each in step.gate(slice(0, 2)))
    past, past_bias = step.part[:, :, 3], step.bias[3]
    argument = step.part[:, :, 2] + reset * (past + past_bias) + reset_bias * past
    constant = step.bias[2] + reset_bias * past_bias
    new, new_bias = step.tanh(argument, argument + constant, "active", 3), constant.tanh()
    written = (1 - update_bias) * (new + new_bias * step.owned) - update * (new + new_bias)
    memory = written + (update + update_bias) * memory
    return memory, memory


def recurrent(blocks: Blocks, rows: Float[Tensor, "R T D"], name: str, given: Sequence[Tensor]) -> Rows:
    """The decomposed states [R, T, H] of a layer of one direction, given its weights; padding stands last."""
    cell, weights = _cell(name, [each.detach().to(rows) for each in given])
    whole, part, seen = blocks.cut(rows)
    own = whole if seen is None else torch.cat([whole, seen.flatten(0, 2)])
    positions = range(rows.shape[1])
    trace = passed(cell, weights, own, own.new_ones(own.shape[:2], dtype=torch.bool), positions)
    texts = _some(trace, slice(0, len(whole)))
    steps = _steps(weights, part, whole, texts, None if seen is None else _some(trace, slice(len(whole), None)))
    advance = lstm if isinstance(cell, Lstm) else gru
    states = part.new_empty(*part.shape[:3], weights.bias.shape[1])
    memory = state = torch.zeros_like(states[:, :, 0])
    for step in steps:
        step.part.add_(F.linear(state, weights.states.flatten(0, 1)).view(step.part.shape))
        memory, state = advance(step, memory)
        states[:, :, step.position] = state
    return torch.cat([texts.state, states.flatten(0, 1), trace.state[len(whole) :]])


def _steps(weights: Weights, part: Part, whole: Tensor, texts: Trace, seen: Trace | None) -> Iterator[Step]:
    """The time steps in order, with β of the pre-activations from the input alone."""
    read = F.linear(part, weights.inputs.flatten(0, 1)).view(*part.shape[:3], *weights.bias.shape)
    owned = share(part.abs().sum(-1, keepdim=True), (whole - part).abs().sum(-1, keepdim=True))
    for position in range(part.shape[2]):
        yield Step(read[:, :, position], owned[:, :, position], position, texts, seen, weights.bias)


def _some(trace: Trace, rows: slice) -> Trace:
    return Trace(*(getattr(trace, name)[rows] for name in ("slots", "active", "memory", "shown", "state")))


def _cell(name: str, given: Sequence[Tensor]) -> tuple[Cell, Weights]:
    """The cell, and its weights by gate; a GRU's candidate has two slots, before and after the reset gate."""
    size = given[1].shape[1]
    inputs, states, own, other = (each.reshape(-1, size, *each.shape[1:]) for each in given)
    if name == "lstm":
        return Lstm(), Weights(inputs, states, own + other)
    inputs, own = (torch.cat([each, torch.zeros_like(each[:1])]) for each in (inputs, own))
    states, other = (torch.cat([each[:2], torch.zeros_like(each[:1]), each[2:]]) for each in (states, other))
    return Gru(), Weights(inputs, states, own + other)


# The decomposition rule of each tensor operation, by its name in torch.


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
