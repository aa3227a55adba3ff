"""A walk that keeps an operation's values and gives it the derivatives of a set of rules, in any network.

Those that depend on the words and are no linear maps get their rule here; sums and linear maps have the rule of sums,
and what is added to them is counted as a bias.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from assay.errors import AssayError
from assay.explainers.relevance_rules import straight
from assay.models.encoders import Additive, Block, Dot, Encoder, Product, Transformer, positions
from assay.models.projections import Projection
from assay.models.walk import ACTIVATIONS, CELLS, GELU, RELU, TANH, Function, Layer, Multipliers, Rules, Walk

Mask = Bool[Tensor, "R S"]
States = Float[Tensor, "R S M"]
Factor = Float[Tensor, " R"]
Query = Float[Tensor, "R M"]
OfRows = Float[Tensor, "R ..."]
FUNCTIONS = {"relu": RELU, "tanh": TANH, "gelu": GELU}


@dataclass(frozen=True)
class Factors:
    """Factors of 1 for each row, which multiply what is added to words, to collect its relevance.

    The derivative with respect to that of the biases is the sum of bias × multiplier: what those of the row get.
    """

    biases: Factor
    positions: Factor
    types: Factor  # that say which of two texts a position is in
    markers: Factor
    query: Factor

    @classmethod
    def of(cls, leaf: Float[Tensor, "R 5"]) -> Factors:
        return cls(*leaf.unbind(1))

    def rows(self, chosen: Int[Tensor, " N"]) -> Factors:
        """Those of parts of these rows, whose relevance is summed per row."""
        return Factors(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Tables:
    """Embedding tables: that of the words, the identities of those of types, and the words of a query."""

    words: nn.Parameter
    types: frozenset[int] = frozenset()
    asked: Int[Tensor, "R Q"] | None = None

    def factor(self, factors: Factors, ids: Tensor, table: Tensor) -> Factor | None:
        """The factor of these rows, or None where they are word embeddings."""
        if table is self.words:
            return factors.markers if ids.dim() == 1 else factors.query if ids is self.asked else factors.types
        beside = table.shape[-1] == self.words.shape[-1] and ids.dim() == 2 and len(ids) in (1, len(factors.markers))
        return None if not beside else factors.types if id(table) in self.types else factors.positions


class Relevance(Walk):
    """Context manager: operations keep their values and get the rules' derivatives; parameters are constants."""

    def __init__(self, rules: Rules, factors: Factors, tables: Tables | None = None) -> None:
        super().__init__()
        self.rules, self.factors, self.tables, self.dtype = rules, factors, tables, factors.biases.dtype
        self.opened: Tensor | None = None  # what the latest activation returned: where it is a factor, it is a gate

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = getattr(function, "__name__", ""), kwargs or {}
        if name == "__get__":
            return function(*args)
        if self.tables is not None and name == "embedding":
            return self.embedding(self.tables, function, *args, **named)
        args = [self.settled(each) for each in args]
        named = {key: self.settled(each) for key, each in named.items()}
        rule = self.operations.get(name)
        if rule is None or not any(map(depends, (*args, *named.values()))):
            return function(*args, **named)
        return rule(self, function, *args, **named)

    def settled(self, given: Any) -> Any:
        """A parameter as a constant, in the precision of the embeddings."""
        return given.detach().to(self.dtype) if type(given) is nn.Parameter else given

    def walked(self, function: Callable[..., Tensor], *given: Any) -> Tensor:
        """The function under the rules."""
        with self:
            return function(*given)

    # What the rules are made of

    def total(self, z: OfRows) -> OfRows:
        multiplier = self.rules.total(z.detach())
        return straight(z, z * multiplier) if isinstance(multiplier, Tensor) else z

    def unary(self, function: Function, x: OfRows) -> OfRows:
        value = function.value(x.detach())
        return straight(value, x * self.rules.unary(function, x.detach(), value)) if x.requires_grad else value

    def constant(self, values: Any, factor: Factor, beside: Float[Tensor, "N ..."]) -> Tensor:
        """A constant that is added; its rows may be those of texts, or of all positions."""
        copies, rest = divmod(len(beside), len(factor))
        if rest:
            raise AssayError("Relevance cannot tell whose a bias is: the rows of a layer are not those of the texts.")
        each = factor if copies == 1 else factor.repeat_interleave(copies)
        term: Tensor = values * each.reshape(-1, *[1] * (beside.dim() - 1))
        return term

    def biased(self, z: Tensor, bias: Tensor | None) -> Tensor:
        return z if bias is None else z + self.constant(bias, self.factors.biases, z)

    def mapped(self, layer: nn.Linear, x: OfRows) -> OfRows:
        """The terms of a linear map, of which the bias is one whatever the words are."""
        return self.biased(F.linear(x, self.settled(layer.weight)), self.settled(layer.bias))

    # One operation each

    def embedding(self, tables: Tables, function: Any, ids: Tensor, table: Tensor, *rest: Any, **named: Any) -> Tensor:
        rows: Tensor = function(ids, self.settled(table), *rest, **named)
        factor = tables.factor(self.factors, ids, table)
        return rows if factor is None else rows * factor.reshape(-1, 1, 1)

    def linear(self, function: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return self.total(self.biased(F.linear(x, weight), bias))

    def affine(self, function: Any, bias: Tensor, x: Tensor, weight: Tensor, **named: Any) -> Tensor:
        if named or depends(bias):
            return torch.addmm(bias, x, weight, **named)
        return self.total(self.biased(x @ weight, bias))

    def convolution(self, function: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None, *rest: Any) -> Tensor:
        return self.total(self.biased(function(x, weight, None, *rest), None if bias is None else bias[:, None]))

    def recurrence(
        self, function: Any, x: Tensor, before: Any, weights: list[Tensor], *options: Any
    ) -> tuple[Tensor | None, ...]:
        """The states; nobody has a rule for the last one by itself."""
        name = function.__name__
        if len(weights) != 4 or not options[-1]:
            raise AssayError("Relevance has rules for recurrent layers of one direction, with biases, rows first.")
        layer = Layer.of(name, weights, x)
        states = Recurrence.apply(x, self.factors.biases, layer, self.rules)  # type: ignore[no-untyped-call]
        return states, *[None] * (2 if name == "lstm" else 1)

    def matrices(self, function: Any, left: Tensor, right: Tensor) -> Tensor:
        multiply = self.rules.bilinear if depends(left) and depends(right) else torch.matmul
        return self.total(multiply(left, right))

    def add(self, function: Any, left: Any, right: Any, **named: Any) -> Tensor:
        """A sum; a constant counts as a bias, unless it is an attention mask."""
        if named:
            return torch.add(left, right, **named)
        term, other = (left, right) if depends(left) else (right, left)
        mask = isinstance(other, Tensor) and not (other.dim() <= term.dim() and bool(other.isfinite().all()))
        if not depends(other) and not mask:
            other = self.constant(other, self.factors.biases, term)
        return self.total(term + other)

    def add_into(self, function: Any, left: Tensor, right: Any, **named: Any) -> Tensor:
        return left.copy_(self.add(function, left, right, **named))

    def multiply(self, function: Any, left: Any, right: Any, **named: Any) -> Tensor:
        """A product; of two factors that depend on the words one is a gate, held constant or given half."""
        gate, opened = self.opened, [each is self.opened for each in (left, right)]
        if gate is None or sum(opened) != 1 or not (depends(left) and depends(right)):
            return torch.mul(left, right, **named)  # two factors that depend, no gate: `unruled` finds it not linear
        signal: Tensor = right if opened[0] else left
        if not self.rules.weighs:
            return gate.detach() * signal
        return (gate.detach() * signal + gate * signal.detach()) / 2

    def activate(self, function: Any, x: Tensor, *rest: Any, **named: Any) -> Tensor:
        named.pop("inplace", None)
        plain = not rest and named in ({}, {"approximate": "none"})
        known = FUNCTIONS.get(getattr(function, "__name__", "")) if plain else None
        self.opened = self.unary(known or differentiable(lambda given: function(given, *rest, **named)), x)
        return self.opened

    def activation(self, module: Callable[..., Any], given: tuple[Any, ...], output: Any) -> Any:
        return self.activate(module, *given) if len(given) == 1 and depends(given[0]) else output

    def normalise(
        self,
        function: Any,
        x: Tensor,
        shape: Any,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        if len(shape) > 1:
            return F.layer_norm(x, shape, weight, bias, eps)
        z = self.rules.standard(x, eps)
        return self.biased(z if weight is None else z * weight, bias)

    def scale(
        self, function: Any, x: Tensor, shape: Any, weight: Tensor | None = None, eps: float | None = None
    ) -> Tensor:
        """RMS norm: its scale is held constant."""
        axes = tuple(range(-len(shape), 0))
        floor = torch.finfo(x.dtype).eps if eps is None else eps
        z = x * (x.detach().square().mean(axes, keepdim=True) + floor).rsqrt()
        return z if weight is None else z * weight

    def deviation(self, function: Any, variance: Tensor, **named: Any) -> Tensor:
        """The square root of a variance per position, by which a norm divides: held constant."""
        root: Tensor = function(variance, **named)
        return root.detach() if variance.shape[-1] == 1 else root

    def weigh(self, function: Any, scores: Tensor, *rest: Any, **named: Any) -> Tensor:
        weights: Tensor = function(scores, *rest, **named)
        return weights if self.rules.weighs else weights.detach()

    def recast(self, function: Any, x: Tensor, *rest: Any, **named: Any) -> Tensor:
        """A change of dtype or device; lower precision is ignored, as rounding has no relevance."""
        moved: Tensor = function(x, *rest, **named)
        return x if moved.dtype.itemsize < x.dtype.itemsize else moved

    operations: ClassVar = {
        "linear": linear,
        "addmm": affine,
        "conv1d": convolution,
        **dict.fromkeys(CELLS, recurrence),
        **dict.fromkeys(("matmul", "bmm", "__matmul__", "__rmatmul__"), matrices),
        **dict.fromkeys(("add", "__add__", "__radd__"), add),
        **dict.fromkeys(("add_", "__iadd__"), add_into),
        **dict.fromkeys(("mul", "multiply", "__mul__", "__rmul__"), multiply),
        **dict.fromkeys(ACTIVATIONS, activate),
        "layer_norm": normalise,
        "rms_norm": scale,
        **dict.fromkeys(("sqrt", "rsqrt"), deviation),
        "softmax": weigh,
        **dict.fromkeys(("to", "float", "half", "bfloat16", "type_as"), recast),
    }

    # Parts of assay's own networks that are more than one operation

    def encode(self, encoder: Encoder, x: Float[Tensor, "R S D"], mask: Mask) -> States:
        if not isinstance(encoder, Transformer):
            return self.walked(encoder, x, mask)
        indices = positions(x.shape[1], encoder.size).to(x)
        placed = self.mapped(encoder.project, x) + self.constant(indices, self.factors.positions, x)
        states = self.total(placed)
        first = torch.arange(mask.shape[1], device=mask.device) == 0
        visible = (mask | (first & ~mask.any(-1, keepdim=True)))[:, None, None]
        for block in encoder.blocks:
            assert isinstance(block, Block)
            states = self.total(states + self.attention(block, self.walked(block.before_attention, states), visible))
            mixed = self.walked(lambda given, block=block: block.mix(block.before_mixing(given)), states)
            states = self.total(states + mixed)
        return self.walked(encoder.norm, states) * mask[..., None]

    def attention(self, block: Block, x: States, visible: Bool[Tensor, "R 1 1 S"]) -> States:
        rows, tokens, size = x.shape
        split = self.walked(block.project, x).reshape(rows, tokens, 3, block.heads, -1)
        query, key, value = (split[:, :, part].transpose(1, 2) for part in range(3))

        def compared(query: Tensor, key: Tensor) -> Tensor:
            return self.rules.bilinear(query, key.transpose(-1, -2)) / math.sqrt(query.shape[-1])

        shown = visible.expand(rows, block.heads, tokens, tokens)
        weights = self.weights(block.projection, shown, compared, query, key)
        heads = self.total(self.rules.bilinear(weights, value))
        return self.walked(block.merge, heads.transpose(1, 2).reshape(rows, tokens, size))

    def weights(
        self, project: Projection, mask: Bool[Tensor, "R *N S"], scores: Callable[..., Tensor], *given: Tensor
    ) -> Float[Tensor, "R *N S"]:
        """Attention weights; where the rules hold them constant, what they are computed from is."""
        return self.rules.weights(
            project, scores(*(each if self.rules.weighs else each.detach() for each in given)), mask
        )

    def pooled(
        self,
        project: Projection,
        alignment: Additive | Dot | Product,
        states: States,
        mask: Mask,
        query: Query | None = None,
    ) -> Query:
        """The attention-weighted mean of hidden states, with the query beside each where there is one."""

        def scores(states: States) -> Float[Tensor, "R S"]:
            if isinstance(alignment, Product):
                assert query is not None
                return self.total((states * query.detach()[:, None]).sum(-1)) / math.sqrt(states.shape[-1])
            return self.walked(alignment, states)

        seen = states
        if query is not None and not isinstance(alignment, Product):
            seen = torch.cat([states, query[:, None].expand_as(states)], dim=-1)
        weights = self.weights(project, mask, scores, seen)
        return self.total(self.rules.bilinear(weights[:, None], states)).squeeze(1)


def depends(given: Any) -> bool:
    return isinstance(given, Tensor) and given.requires_grad


def differentiable(value: Callable[[Tensor], Tensor]) -> Function:
    """The function with its derivative by autograd."""

    def derivative(x: Tensor) -> Tensor:
        with torch.enable_grad():
            position = x.detach().requires_grad_()
            return torch.autograd.grad(value(position).sum(), position)[0]

    return Function(value, derivative)


class Recurrence(torch.autograd.Function):
    """The states of an LSTM or GRU; its backward pass is linear, with the rules' multipliers of all steps.

    What a rule holds has no multiplier and drops out: the ε-rule, which holds the gates, follows the candidate alone.
    """

    @staticmethod
    def forward(ctx, x, biases, layer, rules):  # type: ignore[no-untyped-def]
        trace = layer.trace(x)
        ctx.layer, ctx.multipliers = layer, layer.cell.multipliers(rules, trace)
        return trace.state

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        layer = ctx.layer
        chosen, back = _passed_back(ctx.multipliers, layer.states, gradient)
        back = back.transpose(0, 1).flatten(2)
        to_x = (back @ layer.inputs[chosen].flatten(0, 1)).transpose(0, 1)
        to_biases = (back @ layer.bias[chosen].flatten()).sum(0)
        return to_x, to_biases, None, None


def _passed_back(
    found: Multipliers, weights: Float[Tensor, "4 H H"], gradient: Float[Tensor, "R T H"]
) -> tuple[list[int], Float[Tensor, "R T K H"]]:
    """The slots that are not held constant, and their gradients."""
    written, shown = (
        {slot: each for slot, each in enumerate(parts) if isinstance(each, Tensor)}
        for parts in (found.written, found.shown)
    )
    chosen = [*written, *shown]
    rows, tokens, size = gradient.shape
    back = gradient.new_empty(tokens, rows, len(chosen), size).transpose(0, 1)  # each step contiguous
    recur = weights[chosen].flatten(0, 1)
    from_state = from_memory = gradient.new_zeros(rows, size)
    for position in reversed(range(tokens)):
        state = gradient[:, position] + from_state
        through = found.opened[:, position] * state if isinstance(found.opened, Tensor) else state
        memory = through + from_memory
        for number, each in enumerate((*written.values(), *shown.values())):
            torch.mul(each[:, position], memory if number < len(written) else state, out=back[:, position, number])
        from_state = back[:, position].flatten(1) @ recur
        from_memory = found.retained[:, position] * memory
    return chosen, back


# Whether every operation of a backward pass is linear, or a rule is missing

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
