"""Records parameter uses during a forward pass, so that one backward pass gives per-example gradients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.influence.gradient_records import Outer, Record, Rows, Whole
from assay.models.walk import UnfusedOps

Make = Callable[[Tensor], list[tuple[str, Record]]]

ELEMENTWISE = {
    *(torch.add, torch.sub, torch.mul, torch.div, torch.where, torch.Tensor.where),
    *(getattr(torch.Tensor, name) for name in ("add", "sub", "mul", "div", "__add__", "__sub__", "__mul__")),
    *(getattr(torch.Tensor, name) for name in ("__radd__", "__rmul__", "__truediv__", "__iadd__", "add_", "__rsub__")),
}
ALIKE = {torch.Tensor.to, torch.Tensor.float, torch.Tensor.double, torch.Tensor.type, torch.Tensor.contiguous}


@dataclass(frozen=True)
class Unbatched:
    """A tensor without batch dimension that derives from a parameter, and how its gradient becomes a record."""

    tensor: Tensor
    name: str
    make: Callable[[Tensor], Record]


class Tape(UnfusedOps):
    """Context manager: hooks every known use of a parameter to record its per-example gradient; notes the unknown ones.

    The `size` examples are the first dimension everywhere; in a matrix, it may be they and their indices.
    """

    def __init__(self, network: nn.Module, size: int) -> None:
        super().__init__()
        self.names = {id(each): name for name, each in network.named_parameters() if each.requires_grad}
        self.size = size
        self.missed: set[str] = set()
        self.found: dict[str, list[Record]] | None = None
        self.unbatched: dict[int, Unbatched] = {}

    @contextmanager
    def recording(self) -> Iterator[dict[str, list[Record]]]:
        """Within, the per-example gradients of one backward pass, by parameter."""
        self.found = defaultdict(list)
        yield self.found
        self.found = None

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(function, "__name__", "") in self.operations:
            return super().__torch_function__(function, types, args, kwargs)
        named = kwargs or {}
        origins = [origin for each in (*args, *named.values()) if (origin := self._origin(each)) is not None]
        return self._unbatched_use(function, origins, args, named) if origins else function(*args, **named)

    def _name(self, tensor: Tensor | None) -> str | None:
        return None if tensor is None else self.names.get(id(tensor))

    def _hook(self, tensor: Tensor, make: Make) -> None:
        """Registers a hook that records what `make` makes of the tensor's gradient."""

        def record_gradient(gradient: Tensor) -> None:
            if self.found is not None:
                for name, record in make(gradient.detach()):
                    self.found[name].append(record)

        if tensor.requires_grad:
            hook: Any = tensor.register_hook
            hook(record_gradient)

    def _miss(self, *parameters: Tensor | None) -> None:
        """Parameters whose gradients need a backward pass for each example."""
        self.missed |= {name for each in parameters if (name := self._name(each)) is not None}

    def _rows(self, tensor: Tensor) -> Tensor | None:
        """The tensor with one example a row and its positions behind: [B, T, size]."""
        if len(tensor) != self.size and (tensor.dim() != 2 or len(tensor) % self.size):
            return None
        return tensor.reshape(self.size, -1, tensor.shape[-1])

    def linear(self, function: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        y = F.linear(x, weight, bias)
        self._record_linear(x, y, weight, bias)
        return y

    def _record_linear(
        self,
        x: Tensor,
        y: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        transposed: bool = False,
        columns: bool = False,
    ) -> None:
        """Records a linear map; outputs may be in columns, [B, O, T]."""
        matrix, shift, inputs = self._name(weight), self._name(bias), self._rows(x.detach())
        if inputs is None:
            self._miss(weight, bias)
            return

        def make(gradient: Tensor) -> list[tuple[str, Record]]:
            rows = gradient.mT if columns else gradient
            gradients = rows.reshape(self.size, -1, rows.shape[-1])
            made: list[tuple[str, Record]] = []
            if matrix is not None:
                made.append((matrix, Outer(inputs, gradients, weight.shape, transposed)))
            if shift is not None:
                made.append((shift, Whole(gradients.sum(1))))
            return made

        if matrix is not None or shift is not None:
            self._hook(y, make)

    def affine(self, function: Any, bias: Tensor, x: Tensor, weight: Tensor, **named: Any) -> Tensor:
        y: Tensor = function(bias, x, weight, **named)
        if named:
            self._miss(bias, weight)
        else:
            self._record_linear(x, y, weight, bias, transposed=True)
        return y

    def convolution(
        self, function: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None, *others: Any, **options: Any
    ) -> Tensor:
        y: Tensor = function(x, weight, bias, *others, **options)
        padding = options.get("padding", others[1] if len(others) > 1 else 0)
        around = padding[0] if isinstance(padding, tuple) else padding
        windows = F.pad(x, (around, around)).unfold(2, weight.shape[2], 1)  # [B, D, T, W]
        inputs = windows.permute(0, 2, 1, 3).flatten(2)
        if inputs.shape[1] != y.shape[2] or len(x) != self.size:  # strides, dilations and groups are not known here
            self._miss(weight, bias)
        else:
            self._record_linear(inputs, y, weight, bias, columns=True)
        return y

    def embedding(
        self, function: Any, ids: Tensor, weight: Tensor, padding_idx: int | None = None, *others: Any, **named: Any
    ) -> Tensor:
        y: Tensor = function(ids, weight, padding_idx, *others, **named)
        name = self._name(weight)
        if name is None:
            return y
        blank = -1 if padding_idx is None else padding_idx % weight.shape[0]
        if ids.dim() > 1 and len(ids) == self.size:
            self._hook(y, lambda gradient: [(name, _looked_up(ids, gradient, weight.shape, blank))])
        else:
            every = ids.reshape(1, -1).expand(self.size, -1)
            self._remember(y, name, lambda gradient: _looked_up(every, gradient, weight.shape, blank))
        return y

    def layer_norm(
        self,
        function: Any,
        x: Tensor,
        shape: Any,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        y = F.layer_norm(x, shape, weight, bias, eps)
        scale, shift = self._name(weight), self._name(bias)
        normed = None if self._rows(x) is None else self._rows(F.layer_norm(x.detach(), shape, None, None, eps))
        if normed is None:
            self._miss(weight, bias)
            return y

        def make(gradient: Tensor) -> list[tuple[str, Record]]:
            gradients = gradient.reshape(normed.shape)
            made: list[tuple[str, Record]] = []
            if scale is not None:
                made.append((scale, Whole((gradients * normed).sum(1))))
            if shift is not None:
                made.append((shift, Whole(gradients.sum(1))))
            return made

        if scale is not None or shift is not None:
            self._hook(y, make)
        return y

    def recurrence(
        self, function: Any, x: Tensor, before: Any, weights: Sequence[Tensor], *options: Any
    ) -> tuple[Tensor, ...]:
        """Step by step; the recurrent weights' gradient is recorded through an added tensor of zeros."""
        bias, layers, *_, both, batch_first = options
        if bias is not True or layers != 1 or both or not batch_first or self._name(weights[1]) is None:
            self._miss(*weights)
            return super().recurrence(function, x, before, weights, *options)
        given = self.linear(F.linear, x, weights[0], weights[2])
        nothing = given * 0  # on the backward path to the parameters, as what is recorded must be
        zeros = iter(nothing.unbind(1))
        states, last = self.read(
            function, given, before, lambda state: F.linear(state, weights[1], weights[3]) + next(zeros)
        )
        start = (before[0] if function is torch.lstm else before).squeeze(0)[:, None]
        self._record_linear(torch.cat([start, states[:, :-1]], dim=1), nothing, weights[1], weights[3])
        return states, *last

    operations: ClassVar[Mapping[str, Callable[..., Any]]] = {
        "linear": linear,
        "addmm": affine,
        "conv1d": convolution,
        "embedding": embedding,
        "layer_norm": layer_norm,
        **dict.fromkeys(("lstm", "gru"), recurrence),
        "scaled_dot_product_attention": UnfusedOps.attention,
    }

    def _origin(self, tensor: Any) -> Unbatched | None:
        """The parameter that a tensor without batch dimension derives from, or None."""
        if not isinstance(tensor, Tensor):
            return None
        if (name := self.names.get(id(tensor))) is not None:
            return Unbatched(tensor, name, Whole)
        return self.unbatched.get(id(tensor))

    def _remember(self, tensor: Tensor, name: str, make: Callable[[Tensor], Record]) -> None:
        """Keeps such a tensor alive, so that no other takes its id."""
        self.unbatched[id(tensor)] = Unbatched(tensor, name, make)

    def _unbatched_use(
        self, function: Any, origins: list[Unbatched], args: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """An operation on a tensor without batch dimension: expanded to the batch where it meets one, and recorded."""
        first, tensors = origins[0], [each for each in (*args, *named.values()) if isinstance(each, Tensor)]
        if function in ELEMENTWISE:
            dims = max(each.dim() for each in tensors)
            if any(each.dim() == dims and len(each) == self.size and self._origin(each) is None for each in tensors):
                given = [self._repeated(each, dims) for each in args]
                return function(*given, **{name: self._repeated(each, dims) for name, each in named.items()})
        result = function(*args, **named)
        if function in ALIKE and args[0] is first.tensor:
            if result is not first.tensor:
                self._remember(result, first.name, first.make)
            return result
        if function is torch.Tensor.expand and len(result) == self.size and result.dim() >= first.tensor.dim():
            return self._expanded(result, first)
        one_row = function is torch.Tensor.__getitem__ and isinstance(args[1], int) and first.tensor.dim() == 2
        if one_row and first.make is Whole:
            row, shape = args[1] % len(first.tensor), first.tensor.shape
            ids = torch.full((self.size, 1), row, device=result.device)
            self._remember(result, first.name, lambda gradient: Rows(ids, gradient.reshape(self.size, 1, -1), shape))
            return result
        if isinstance(result, Tensor) and result.requires_grad:
            self.missed |= {each.name for each in origins}
        return result

    def _repeated(self, value: Any, dims: int) -> Any:
        """The tensor expanded to the batch, the rest of its shape as broadcasting has it."""
        origin = self._origin(value)
        if origin is None or (value.dim() == dims and len(value) != 1):
            return value
        shape = (1,) * (dims - value.dim()) + tuple(value.shape)
        return self._expanded(value.reshape(shape).expand(self.size, *shape[1:]), origin)

    def _expanded(self, copies: Tensor, origin: Unbatched) -> Tensor:
        """Records the gradient of an expanded tensor for each example."""
        own = tuple(origin.tensor.shape)
        if len(own) == copies.dim():
            own = own[1:]
        padded = (1,) * (copies.dim() - 1 - len(own)) + own

        def make(gradient: Tensor) -> list[tuple[str, Record]]:
            return [(origin.name, origin.make(gradient.sum_to_size(self.size, *padded).reshape(self.size, *own)))]

        self._hook(copies, make)
        return copies


def _looked_up(ids: Tensor, gradient: Tensor, shape: torch.Size, blank: int) -> Rows:
    """The gradients of the rows that were looked up; 0 for that of the padding."""
    flat = ids.flatten(1)
    gradients = gradient.reshape(*flat.shape, shape[1])
    return Rows(flat, gradients * (flat != blank)[..., None] if blank >= 0 else gradients, shape)
