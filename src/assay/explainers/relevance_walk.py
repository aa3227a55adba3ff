"""Relevance propagation through Hugging Face transformers of any architecture: a rule for every operation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from assay.errors import AssayError
from assay.explainers.needs import demand
from assay.explainers.relevance_layers import Reading
from assay.explainers.relevance_rules import Function, Rules
from assay.models.hf_attention import NAME, implemented
from assay.models.hf_body import Body
from assay.types import Batch, at_least_float32

# The explained quantity, and its distribution over tokens and other inputs.


FLOOR = 0.01  # less than this counts as this much when a gap is related to it


@dataclass(frozen=True)
class Shares:
    """The relevance of tokens, biases, positions, types, markers and query; it sums to `explained` if conserved."""

    tokens: Float[Tensor, "B T"]
    biases: Float[Tensor, " B"]
    positions: Float[Tensor, " B"]
    types: Float[Tensor, " B"]  # that say which of two texts a position is in
    markers: Float[Tensor, " B"]
    query: Float[Tensor, " B"]  # what it adds; where it multiplies the words, they have it all
    explained: Float[Tensor, " B"]

    @property
    def gap(self) -> Float[Tensor, " B"]:
        """The relative conservation error: |sum of parts − explained| / |explained|."""
        parts = self.tokens.sum(-1) + self.biases + self.positions + self.types + self.markers + self.query
        return (parts - self.explained).abs() / self.explained.abs().clamp(min=FLOOR)


def contrast(
    logits: Float[Tensor, "B C"], target: Int[Tensor, " B"], candidates: Bool[Tensor, "B C"] | None = None
) -> Float[Tensor, " B"]:
    """The target's logit minus the mean of the other candidate classes."""
    chosen = F.one_hot(target, logits.shape[1]).bool()
    others = ~chosen if candidates is None else candidates & ~chosen
    return (logits * chosen).sum(-1) - (logits * others).sum(-1) / others.sum(-1).clamp(min=1)


# Relevance propagation through any network: a TorchFunctionMode that applies a rule to every operation.


ACTIVATIONS = frozenset(
    ("elu", "gelu", "hardswish", "leaky_relu", "mish", "relu", "relu6", "selu", "silu", "softsign", "tanh")
)
"""Functions of one number that are 0 at 0, so that they can pass on what they get."""

LIBRARY = "transformers.activations"  # some of its activations are made of several functions


@dataclass(frozen=True)
class Lookups:
    """Embedding tables and what their rows stand for; factors of 1 multiply special tokens, query, types, positions."""

    words: nn.Parameter
    asked: Int[Tensor, "R Q"] | None
    kinds: frozenset[int]  # the identities of tables that say which of two texts a position is in
    markers: Float[Tensor, " R"]
    query: Float[Tensor, " R"]
    positions: Float[Tensor, " R"]
    types: Float[Tensor, " R"]

    def factor(self, ids: Tensor, table: Tensor) -> Float[Tensor, " R"] | None:
        """The factor of these rows, or None where they are word embeddings."""
        if table is self.words:
            return self.markers if ids.dim() == 1 else self.query if ids is self.asked else self.types
        beside = table.shape[-1] == self.words.shape[-1] and ids.dim() == 2 and len(ids) in (1, len(self.markers))
        return None if not beside else self.types if id(table) in self.kinds else self.positions


class Steps(TorchFunctionMode):
    """A TorchFunctionMode: operations keep their values and get the rules' derivatives; parameters are constants."""

    def __init__(self, reading: Reading, lookups: Lookups) -> None:
        super().__init__()
        self.reading, self.lookups = reading, lookups
        self.aside = False  # within, steps are the network's own
        self.opened: Tensor | None = None  # what the latest activation returned: where it is a factor, it is a gate

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = getattr(function, "__name__", ""), kwargs or {}
        if name == "embedding" and not self.aside:
            return self.looked_up(function, *args, **named)
        given = [self.settled(each) for each in args]
        named = {key: self.settled(each) for key, each in named.items()}
        step = None if self.aside else STEPS.get(name)
        if step is None or not any(map(depends, (*given, *named.values()))):
            return function(*given, **named)
        return step(self, function, *given, **named)

    def settled(self, given: Any) -> Any:
        """A parameter as a constant, in the precision of the embeddings."""
        return given.detach().to(self.reading.biases.dtype) if isinstance(given, nn.Parameter) else given

    def constant(self, values: Any, factor: Float[Tensor, " R"], beside: Float[Tensor, "N ..."]) -> Tensor:
        """A constant that is added; its rows may be those of texts, or of all positions."""
        copies, rest = divmod(len(beside), len(factor))
        if rest:
            raise AssayError("Relevance cannot tell whose a bias is: the rows of a layer are not those of the texts.")
        term: Tensor = values * factor.repeat_interleave(copies).reshape(-1, *[1] * (beside.dim() - 1))
        return term

    def looked_up(self, function: Any, ids: Tensor, table: Tensor, *rest: Any, **named: Any) -> Tensor:
        rows: Tensor = function(ids, self.settled(table), *rest, **named)
        factor = self.lookups.factor(ids, table)
        return rows if factor is None else rows * factor.reshape(-1, 1, 1)

    def linear(self, function: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        z = F.linear(x, weight)
        return self.reading.total(z if bias is None else z + self.constant(bias, self.reading.biases, z))

    def affine(self, function: Any, bias: Tensor, x: Tensor, weight: Tensor, **named: Any) -> Tensor:
        if named or depends(bias):
            return torch.addmm(bias, x, weight, **named)
        z = x @ weight
        return self.reading.total(z + self.constant(bias, self.reading.biases, z))

    def matrices(self, function: Any, left: Tensor, right: Tensor) -> Tensor:
        multiply = self.reading.rules.bilinear if depends(left) and depends(right) else torch.matmul
        return self.reading.total(multiply(left, right))

    def add(self, function: Any, left: Any, right: Any, **named: Any) -> Tensor:
        if named:
            return torch.add(left, right, **named)
        term, other = (left, right) if depends(left) else (right, left)
        if not depends(other) and self.counted(other, term):
            other = self.constant(other, self.reading.biases, term)
        return self.reading.total(term + other)

    def counted(self, constant: Any, term: Tensor) -> bool:
        """Whether a constant counts as a bias: attention masks do not."""
        if not isinstance(constant, Tensor):
            return True
        return constant.dim() <= term.dim() and bool(constant.isfinite().all())

    def add_into(self, function: Any, left: Tensor, right: Any, **named: Any) -> Tensor:
        return left.copy_(self.add(function, left, right, **named))

    def multiply(self, function: Any, left: Any, right: Any, **named: Any) -> Tensor:
        """A product; of two factors that depend on the words one is a gate, held constant or given half."""
        gate, opened = self.opened, [each is self.opened for each in (left, right)]
        if gate is None or sum(opened) != 1 or not (depends(left) and depends(right)):
            return torch.mul(left, right, **named)  # two factors that depend, no gate: `tracing` finds it not linear
        signal: Tensor = right if opened[0] else left
        if not self.reading.rules.weighs:
            return gate.detach() * signal
        return (gate.detach() * signal + gate * signal.detach()) / 2

    def activate(self, function: Any, x: Tensor, *rest: Any, **named: Any) -> Tensor:
        named = {key: value for key, value in named.items() if key != "inplace"}
        self.opened = self.reading.unary(differentiable(lambda given: function(given, *rest, **named)), x)
        return self.opened

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
        z = self.reading.rules.standard(x, eps)
        z = z if weight is None else z * weight
        return z if bias is None else z + self.constant(bias, self.reading.biases, z)

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
        return weights if self.reading.rules.weighs else weights.detach()

    def recast(self, function: Any, x: Tensor, *rest: Any, **named: Any) -> Tensor:
        """A change of dtype or device; lower precision is ignored, as rounding has no relevance."""
        moved: Tensor = function(x, *rest, **named)
        return x if moved.dtype.itemsize < x.dtype.itemsize else moved

    @contextmanager
    def over(self, network: nn.Module) -> Iterator[None]:
        """Context manager: the rules hold for what this network computes."""
        whole = [each for each in network.modules() if type(each).__module__ == LIBRARY and _starts_at_zero(each)]
        hooks = [each.register_forward_hook(self._activated) for each in whole]
        try:
            with self:
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def _activated(self, module: nn.Module, given: tuple[Any, ...], output: Tensor) -> Tensor:
        if len(given) != 1 or not depends(given[0]):
            return output
        self.aside = True
        try:
            return self.activate(module.forward, *given)
        finally:
            self.aside = False


STEPS: dict[str, Callable[..., Tensor]] = {
    "linear": Steps.linear,
    "addmm": Steps.affine,
    **dict.fromkeys(("matmul", "bmm", "__matmul__", "__rmatmul__"), Steps.matrices),
    **dict.fromkeys(("add", "__add__", "__radd__"), Steps.add),
    **dict.fromkeys(("add_", "__iadd__"), Steps.add_into),
    **dict.fromkeys(("mul", "multiply", "__mul__", "__rmul__"), Steps.multiply),
    **dict.fromkeys(ACTIVATIONS, Steps.activate),
    "layer_norm": Steps.normalise,
    "rms_norm": Steps.scale,
    **dict.fromkeys(("sqrt", "rsqrt"), Steps.deviation),
    "softmax": Steps.weigh,
    **dict.fromkeys(("to", "float", "half", "bfloat16", "type_as"), Steps.recast),
}


def depends(given: Any) -> bool:
    return isinstance(given, Tensor) and given.requires_grad


def differentiable(value: Callable[[Tensor], Tensor]) -> Function:
    """The function with its derivative by autograd."""

    def derivative(x: Tensor) -> Tensor:
        with torch.enable_grad():
            position = x.detach().requires_grad_()
            return torch.autograd.grad(value(position).sum(), position)[0]

    return Function(value, derivative)


@torch.no_grad()
def _starts_at_zero(module: nn.Module) -> bool:
    zero = next(module.parameters(), torch.zeros(1)).new_zeros(1)
    return float(module.forward(zero)) == 0


# Checks an autograd graph: every operation in the backward pass must be linear, or a rule is missing.


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


# Relevance propagation through Hugging Face transformers of any architecture.


LENGTHS = (3, 2)  # of the texts on which a network is tried
SAME = 1e-4  # of the largest logit: what rounding may change


def propagated(model: Body, batch: Batch, target: Int[Tensor, " B"], rules: Rules) -> Shares:
    """Gradient × input under these rules, in one forward and one backward pass."""
    words, factors, logits = _read(model, batch, rules)
    demand(_missing(model, logits, rules))
    with torch.enable_grad():
        margins = contrast(logits, target)
        total = margins.sum()
    gradients = torch.autograd.grad(total, [words, factors], materialize_grads=True)
    tokens = (gradients[0] * words.detach()).sum(-1) * batch.mask
    biases, positions, types, markers, query = gradients[1]
    return Shares(tokens, biases, positions, types, markers, query, margins.detach())


def no_rules(model: Body, rules: Rules) -> str | None:
    """Why a transformer has no rules, found by a pass over two short texts, or None."""
    ids = torch.full((len(LENGTHS), max(LENGTHS)), min(model.ordinary, len(_table(model)) - 1))
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    batch = Batch(ids, mask, torch.zeros(len(LENGTHS), dtype=torch.long)).to(model.device)
    try:
        _, _, logits = _read(model, batch, rules)
    except AssayError as error:
        return str(error).rstrip(".")
    return _missing(model, logits, rules) or _changed(model, batch, logits)


def _read(
    model: Body, batch: Batch, rules: Rules
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "5 B"], Float[Tensor, "B C"]]:
    """The word embeddings, factors of 1 for all other additive inputs, and the logits that depend on both."""
    x = model.embed(batch).detach()
    words = at_least_float32(x).requires_grad_()
    factors = words.new_ones(5, len(batch)).requires_grad_()
    with torch.enable_grad(), implemented(model.inner, NAME if model.traits.unedited is None else "eager"):
        biases, positions, types, markers, query = factors
        kinds = frozenset(id(table) for name, table in model.named_parameters() if "type" in name)
        asked = None if batch.query is None else batch.query.ids
        lookups = Lookups(_table(model), asked, kinds, markers, query, positions, types)
        with Steps(Reading(rules, biases, positions, query), lookups).over(model):
            return words, factors, model(words, batch).logits


def _table(model: Body) -> nn.Parameter:
    table = model.embedding.weight
    assert isinstance(table, nn.Parameter)
    return table


def _missing(model: Body, logits: Float[Tensor, "B C"], rules: Rules) -> str | None:
    step = unruled(logits, rules.weighs)
    kind = type(model.inner).__name__
    return None if step is None else f"relevance has no rule for a step of {kind} ({step})"


@torch.no_grad()
def _changed(model: Body, batch: Batch, logits: Float[Tensor, "B C"]) -> str | None:
    """Why the rules do not fit, if they changed the model's outputs."""
    own = model(model.embed(batch), batch).logits.to(logits)
    near = max(SAME, torch.finfo(model.inner.dtype).eps ** 0.5)
    same = bool((own - logits).abs().max() <= near * max(1.0, float(own.abs().max())))
    return None if same else f"{type(model.inner).__name__} answers otherwise when relevance is propagated"
