"""Records parameter uses during a forward pass, so that one backward pass gives per-example gradients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.influence.gradient_records import Outer, Record, Rows, Whole
from assay.models.walk import UnfusedOps, gru, lstm

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
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.linear:
            return self.linear(*args, **kwargs)
        if func is torch.addmm and self._name(args[2]) is not None:
            return self._addmm(*args)
        if func is F.embedding:
            return self._embedding(*args, **kwargs)
        if func is F.layer_norm:
            return self._layer_norm(*args, **kwargs)
        if func in (F.conv1d, torch.conv1d):
            return self._conv1d(*args, **kwargs)
        if func in (torch.lstm, torch.gru, F.scaled_dot_product_attention):
            return super().__torch_function__(func, types, args, kwargs)
        given = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
        if origins := [origin for each in given if (origin := self._origin(each)) is not None]:
            return self._unbatched_use(func, origins, args, kwargs)
        return func(*args, **kwargs)

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

    def _rows(self, tensor: Tensor) -> Tensor | None:
        """The tensor with one example a row and its positions behind: [B, T, size]."""
        if len(tensor) != self.size and (tensor.dim() != 2 or len(tensor) % self.size):
            return None
        return tensor.reshape(self.size, -1, tensor.shape[-1])

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
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
            self.missed |= {name for name in (matrix, shift) if name is not None}
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

    def _addmm(self, bias: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        y = torch.addmm(bias, x, weight)
        self._record_linear(x, y, weight, bias, transposed=True)
        return y

    def _conv1d(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, *others: Any, **options: Any) -> Tensor:
        y = F.conv1d(x, weight, bias, *others, **options)
        padding = options.get("padding", others[1] if len(others) > 1 else 0)
        around = padding[0] if isinstance(padding, tuple) else padding
        windows = F.pad(x, (around, around)).unfold(2, weight.shape[2], 1)  # [B, D, T, W]
        inputs = windows.permute(0, 2, 1, 3).flatten(2)
        if inputs.shape[1] != y.shape[2] or len(x) != self.size:  # strides, dilations and groups are not known here
            self.missed |= {name for each in (weight, bias) if (name := self._name(each)) is not None}
            return y
        self._record_linear(inputs, y, weight, bias, columns=True)
        return y

    def _embedding(
        self, ids: Tensor, weight: Tensor, padding_idx: int | None = None, *others: Any, **kw: Any
    ) -> Tensor:
        y = F.embedding(ids, weight, padding_idx, *others, **kw)
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

    def _layer_norm(
        self, x: Tensor, shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
    ) -> Tensor:
        y = F.layer_norm(x, shape, weight, bias, eps)
        scale, shift = self._name(weight), self._name(bias)
        if self._rows(x) is None:
            self.missed |= {name for name in (scale, shift) if name is not None}
            return y
        normed = self._rows(F.layer_norm(x.detach(), shape, None, None, eps))

        def make(gradient: Tensor) -> list[tuple[str, Record]]:
            gradients = gradient.reshape(self.size, -1, gradient.shape[-1])
            made: list[tuple[str, Record]] = []
            if scale is not None and normed is not None:
                made.append((scale, Whole((gradients * normed).sum(1))))
            if shift is not None:
                made.append((shift, Whole(gradients.sum(1))))
            return made

        if scale is not None or shift is not None:
            self._hook(y, make)
        return y

    def recurrence(self, long: bool, x: Tensor, before: Any, weights: Any, *options: Any) -> tuple[Tensor, ...]:
        """Step by step; the recurrent weights' gradient is recorded through an added tensor of zeros."""
        if options[0] is not True or options[1] != 1 or options[4] or not options[5] or self._name(weights[1]) is None:
            self.missed |= {name for each in weights if (name := self._name(each)) is not None}
            return super().recurrence(long, x, before, weights, *options)
        given = self.linear(x, weights[0], weights[2])
        nothing = given * 0  # on the backward path to the parameters, as what is noted must be
        indices = iter(nothing.unbind(1))
        states, last = (lstm if long else gru)(
            given, before, lambda state: F.linear(state, weights[1], weights[3]) + next(indices)
        )
        start = (before[0] if long else before).squeeze(0)[:, None]
        earlier = torch.cat([start, states[:, :-1]], dim=1)
        self._record_linear(earlier, nothing, weights[1], weights[3])
        return states, *last

    def _origin(self, tensor: Tensor) -> Unbatched | None:
        """The parameter that a tensor without batch dimension derives from, or None."""
        if (name := self.names.get(id(tensor))) is not None:
            return Unbatched(tensor, name, Whole)
        return self.unbatched.get(id(tensor))

    def _remember(self, tensor: Tensor, name: str, make: Callable[[Tensor], Record]) -> None:
        """Keeps such a tensor alive, so that no other takes its id."""
        self.unbatched[id(tensor)] = Unbatched(tensor, name, make)

    def _unbatched_use(self, func: Any, origins: list[Unbatched], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An operation on a tensor without batch dimension: expanded to the batch where it meets one, and recorded."""
        first = origins[0]
        if func in ALIKE and args[0] is first.tensor:
            result = func(*args, **kwargs)
            if result is not first.tensor:
                self._remember(result, first.name, first.make)
            return result
        if func is torch.Tensor.expand:
            result = func(*args, **kwargs)
            if len(result) == self.size and result.dim() >= first.tensor.dim():
                return self._expanded(result, first)
        elif func is torch.Tensor.__getitem__ and isinstance(args[1], int) and first.tensor.dim() == 2:
            result = func(*args, **kwargs)
            if first.make is Whole:
                row, shape = args[1] % len(first.tensor), first.tensor.shape
                ids = torch.full((self.size, 1), row, device=result.device)
                self._remember(
                    result, first.name, lambda gradient: Rows(ids, gradient.reshape(self.size, 1, -1), shape)
                )
                return result
        elif func in ELEMENTWISE:
            tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
            dims = max(each.dim() for each in tensors)
            if any(each.dim() == dims and len(each) == self.size and self._origin(each) is None for each in tensors):
                return func(
                    *(self._repeated(each, dims) for each in args),
                    **{name: self._repeated(each, dims) for name, each in kwargs.items()},
                )
            result = func(*args, **kwargs)
        else:
            result = func(*args, **kwargs)
        if isinstance(result, Tensor) and result.requires_grad:
            self.missed |= {each.name for each in origins}
        return result

    def _repeated(self, value: Any, dims: int) -> Any:
        """The tensor expanded to the batch, the rest of its shape as broadcasting has it."""
        origin = self._origin(value) if isinstance(value, Tensor) else None
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
