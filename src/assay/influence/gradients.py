"""Per-example gradients from one backward pass through a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from assay.influence.gradient_records import Record, Rows, Whole, cut
from assay.influence.tape import Tape
from assay.models.textmodel import TextModel
from assay.types import Batch, Logits

REORDERED = ("word_encoder.", "word_alignment.")  # a hierarchical network reads sentences here, in any order


@dataclass(frozen=True)
class Gradients:
    """Per-example gradients of a batch by parameter, in factored form."""

    records: Mapping[str, list[Record]]
    shapes: Mapping[str, torch.Size]
    size: int

    def dense(self, name: str) -> Float[Tensor, "B P"]:
        """The gradients of one parameter, one flat row an example."""
        parts = [record.dense() for record in self.records[name]]
        return parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)

    def flat(self) -> Float[Tensor, "B P"]:
        """The gradients of all parameters concatenated, in the network's order."""
        return torch.cat([self.dense(name) for name in self.records], dim=1)

    def rows(self, name: str) -> Rows | None:
        """The gradient of an embedding table as the rows that were looked up, or None for another parameter."""
        records = [record for record in self.records[name] if isinstance(record, Rows)]
        if not records or len(records) < len(self.records[name]):
            return None
        ids, gradients = (torch.cat([getattr(each, part) for each in records], dim=1) for part in ("ids", "gradients"))
        return Rows(ids, gradients, records[0].shape)

    def lookups(self, name: str) -> Rows:
        """The gradient of an embedding table as rows: those that were looked up, or all where it is used otherwise."""
        found = self.rows(name)
        if found is None:
            whole = self.dense(name).reshape(self.size, *self.shapes[name])
            every = torch.arange(len(whole[0]), device=whole.device).expand(self.size, -1)
            found = Rows(every, whole, self.shapes[name])
        return found


@dataclass
class Reader:
    """Computes per-example gradients; the first batch shows which parameters need a backward pass for each example."""

    network: TextModel
    unbatched: set[str] | None = field(default=None)

    @property
    def shapes(self) -> dict[str, torch.Size]:
        return {name: each.shape for name, each in self.network.named_parameters() if each.requires_grad}

    def read(self, batch: Batch) -> Reading:
        """One forward pass, from which gradients in any direction of the logits can be computed."""
        tape = Tape(self.network, len(batch))
        tape.missed |= {name for name in self.shapes if name.startswith(REORDERED)}
        with tape, torch.enable_grad():
            logits = self.network(self.network.embed(batch), batch).logits
        if self.unbatched is None:
            self.unbatched = _wrong(Reading(self, tape, logits, set(tape.missed)))
        return Reading(self, tape, logits, self.unbatched | tape.missed)


@dataclass(frozen=True)
class Reading:
    """A forward pass with recorded parameter uses: logits, and per-example gradients in any direction of them."""

    reader: Reader
    tape: Tape
    logits: Logits
    unbatched: set[str]

    def gradients(self, logit_gradients: Logits) -> Gradients:
        """The gradient of Σ_c logit_gradients[b, c] logits[b, c] for each example b."""
        shapes, rows = self.reader.shapes, len(logit_gradients)
        parameters = dict(self.reader.network.named_parameters())
        with self.tape.recording() as found:
            wanted = [parameters[name] for name in shapes]
            torch.autograd.grad((self.logits * logit_gradients).sum(), wanted, retain_graph=True, allow_unused=True)
        own: dict[str, list[Record]] = {
            name: [Whole(self._each(parameters[name], logit_gradients))] for name in self.unbatched
        }
        nothing: dict[str, list[Record]] = {
            name: [Whole(self.logits.new_zeros(rows, *shapes[name]))] for name in shapes if name not in found
        }
        return Gradients({name: own.get(name) or found.get(name) or nothing[name] for name in shapes}, shapes, rows)

    def _each(self, parameter: Tensor, logit_gradients: Logits) -> Float[Tensor, "B ..."]:
        """The gradients of one parameter, by a backward pass for each example."""
        asked = (self.logits * logit_gradients).sum(-1)
        return torch.stack([_own(each, parameter) for each in asked])


def _own(value: Float[Tensor, ""], parameter: Tensor) -> Tensor:
    found = torch.autograd.grad(value, parameter, retain_graph=True, allow_unused=True)[0]
    return torch.zeros_like(parameter) if found is None else found.detach()


def _wrong(reading: Reading) -> set[str]:
    """Parameters whose recorded gradients differ from those of single backward passes, or were missed."""
    logit_gradients = torch.linspace(-1, 1, reading.logits.numel(), device=reading.logits.device)
    logit_gradients = logit_gradients.reshape(reading.logits.shape).to(reading.logits)
    found, parameters = reading.gradients(logit_gradients), dict(reading.reader.network.named_parameters())
    asked = (reading.logits * logit_gradients).sum(-1)
    wrong = set(reading.unbatched)
    indices = sorted({0, (len(logit_gradients) - 1) // 2, len(logit_gradients) - 1})
    names = [name for name in found.shapes if name not in wrong]
    tolerance, least = _precision(reading)
    for index in indices:
        own = torch.autograd.grad(
            asked[index], [parameters[name] for name in names], retain_graph=True, allow_unused=True
        )
        largest = max((float(each.norm()) for each in own if each is not None), default=0.0)
        for name, each in zip(names, own, strict=True):
            noted = _one(found, name, index).float()
            exact = torch.zeros_like(noted) if each is None else each.detach().flatten().float()
            if (noted - exact).norm() > tolerance * max(float(exact.norm()), least * largest):
                wrong.add(name)
    return wrong


def _precision(reading: Reading) -> tuple[float, float]:
    """Relative tolerance of recorded gradients, and the share of the largest gradient below which all is rounding.

    Some are 0 but for rounding, such as that of the bias of the keys of attention.
    """
    device = reading.logits.device.type
    rough = torch.is_autocast_enabled(device) or any(
        each.dtype.itemsize < 4 for each in reading.reader.network.parameters()
    )
    return (0.15, 0.05) if rough else (1e-3, 1e-3)


def _one(found: Gradients, name: str, index: int) -> Float[Tensor, " P"]:
    """The gradient of one example."""
    return torch.stack([cut(record, index, index + 1).dense()[0] for record in found.records[name]]).sum(0)
